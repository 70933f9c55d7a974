//! Policies for tests, written as WebAssembly text, so that they can do what no
//! compiler would write.

#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test uses a part of it")]

mod memory;

use memory::Memory;
use std::path::Path;
use tread_engine::limits::Limits;
use tread_engine::sandbox::{Call, CallFailure, Module, Options, Reply, Sandbox, Speaker, Words};
use tread_model::change::{Change, Content, FileState, State};
use tread_model::description::{Claim, DECLARATIONS, Declarations, Description, SECTION};
use tread_model::effect::Effect;
use tread_model::verdict::{Failure, FailureKind, Layer};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

/// A verdict as a guest writes it down.
#[derive(Debug, Clone)]
pub struct Says {
    pub change: u32,
    pub answer: Answer,
    pub reason: &'static [u8],
}

#[derive(Debug, Clone)]
pub enum Answer {
    Abstain,
    Act(Vec<Action>),
    Refuse,
}

#[derive(Debug, Clone)]
pub enum Action {
    Reload(&'static str),
    Restart(&'static str),
    DaemonReload,
    Drain,
    Reboot,
    RebootUndrained,
}

pub fn act(change: u32, actions: &[Action]) -> Says {
    Says { change, answer: Answer::Act(actions.to_vec()), reason: b"because" }
}

/// A policy that answers with constants, except for the functions that a test
/// writes anew. Bodies are WebAssembly text; `$log` and `$realloc` can be called.
#[derive(Debug, Clone)]
pub struct Guest {
    /// What `describe` returns.
    pub exported: Description,
    /// What the custom section says. None: there is none.
    pub section: Option<Vec<u8>>,
    pub verdicts: Vec<Says>,
    /// Instead of the verdicts; returns the address of a list.
    pub classify: Option<String>,
    /// Instead of the description.
    pub describe: Option<String>,
    /// What is wrong with any settings.
    pub settings_errors: Vec<&'static str>,
    /// What it imports.
    pub imports: &'static str,
    /// More fields of the module.
    pub fields: String,
    /// Pages of memory at first.
    pub pages: u32,
    /// The version of the contract.
    pub version: &'static str,
    /// What `declare` returns, and the custom section says. None: neither is there.
    pub declares: Option<Declarations>,
}

pub fn claim(changes: &str, least: Effect, most: Effect) -> Claim {
    Claim::on(changes, least, most)
}

pub fn described() -> Description {
    Description {
        name: "test".to_owned(),
        version: "1.2.3".to_owned(),
        summary: "A policy for tests".to_owned(),
        claims: vec![claim("file:/etc/**", Effect::None, Effect::Restart)],
        settings: None,
    }
}

impl Default for Guest {
    fn default() -> Guest {
        Guest {
            exported: described(),
            section: Some(serde_json::to_vec(&described()).unwrap()),
            verdicts: vec![act(0, &[Action::Reload("crio.service")])],
            classify: None,
            describe: None,
            settings_errors: Vec::new(),
            imports: LOG,
            fields: String::new(),
            pages: 2,
            version: "1.0.0",
            declares: None,
        }
    }
}

/// A guest whose `classify` is this text.
pub fn classifying(body: &str) -> Guest {
    Guest { classify: Some(body.to_owned()), ..Guest::default() }
}

/// A guest that answers this.
pub fn answering(verdicts: Vec<Says>) -> Guest {
    Guest { verdicts, ..Guest::default() }
}

/// The import of most guests.
pub const LOG: &str = r#"(import "tread:policy/host@{version}" "log" (func $log (param i32 i32)))"#;

const CONTRACT: &str = include_str!("../../../../wit/policy.wit");

impl Guest {
    /// As another compiler would write it: no component, and no section that
    /// says what its types are.
    pub fn module(&self) -> Vec<u8> {
        wat::parse_str(self.text()).expect("the guest's text")
    }

    pub fn component(&self) -> Vec<u8> {
        let mut module = self.module();
        let contract = CONTRACT.replace("@1.2.0", &format!("@{}", self.version));
        let mut resolve = wit_parser::Resolve::default();
        let package = resolve.push_str(Path::new("policy.wit"), &contract).expect("the contract");
        let world = self.declares.as_ref().map_or("policy", |_| "declaring-policy");
        let world = resolve.select_world(&[package], Some(world)).expect("the world");
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
        let mut encoder = ComponentEncoder::default().module(&module).unwrap().validate(true);
        let mut component = encoder.encode().expect("a component");
        if let Some(section) = &self.section {
            append_section(&mut component, SECTION, section);
        }
        if let Some(declarations) = &self.declares {
            let section = serde_json::to_vec(declarations).unwrap();
            append_section(&mut component, DECLARATIONS, &section);
        }
        component
    }

    fn text(&self) -> String {
        let mut memory = Memory::new(1024);
        let describe = match &self.describe {
            Some(body) => body.clone(),
            None => format!("(i32.const {})", memory.description(&self.exported)),
        };
        let check = format!("(i32.const {})", memory.settings_result(&self.settings_errors));
        let classify = match &self.classify {
            Some(body) => body.clone(),
            None => format!("(i32.const {})", memory.verdicts(&self.verdicts)),
        };
        let (version, pages) = (self.version, self.pages);
        let imports = self.imports.replace("{version}", version);
        let declare = self.declares.as_ref().map_or_else(String::new, |it| {
            let at = memory.declarations(it);
            format!(
                r#"(func (export "tread:policy/declarations@{version}#declare") (result i32)
                (i32.const {at}))"#
            )
        });
        let fields = format!("{declare} {}", self.fields);
        let (base, data, heap) = (memory.base(), memory.text(), memory.end());
        format!(
            r#"(module
  {imports}
  (memory (export "memory") {pages})
  (data (i32.const {base}) "{data}")
  (global $next (mut i32) (i32.const {heap}))
  (func $realloc (export "cabi_realloc")
    (param $old i32) (param $size i32) (param $align i32) (param $new i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and
      (i32.add (global.get $next) (i32.sub (local.get $align) (i32.const 1)))
      (i32.sub (i32.const 0) (local.get $align))))
    (global.set $next (i32.add (local.get $at) (local.get $new)))
    (if (i32.gt_u (global.get $next) (i32.shl (memory.size) (i32.const 16)))
      (then (drop (memory.grow (i32.add (i32.const 1) (i32.shr_u
        (i32.sub (global.get $next) (i32.shl (memory.size) (i32.const 16)))
        (i32.const 16)))))))
    (local.get $at))
  (func (export "tread:policy/classifier@{version}#describe") (result i32) {describe})
  (func (export "tread:policy/classifier@{version}#check-settings")
    (param i32 i32) (result i32) {check})
  (func (export "tread:policy/classifier@{version}#classify")
    (param $settings i32) (param $settings-len i32)
    (param $changes i32) (param $changes-len i32)
    (param $unchanged i32) (param $unchanged-len i32)
    (result i32) (local $n i32) {classify})
  {fields})"#
        )
    }
}

/// Appends a custom section.
pub fn append_section(component: &mut Vec<u8>, name: &str, content: &[u8]) {
    let mut body = Vec::new();
    leb(&mut body, name.len());
    body.extend(name.as_bytes());
    body.extend(content);
    append(component, 0, &body);
}

/// Appends a section.
pub fn append(component: &mut Vec<u8>, id: u8, body: &[u8]) {
    component.push(id);
    leb(component, body.len());
    component.extend(body);
}

fn leb(out: &mut Vec<u8>, mut number: usize) {
    loop {
        let byte = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            out.push(byte);
            return;
        }
        out.push(byte | 0x80);
    }
}

/// For what a policy computes until its fuel is used up, however long it waits for a processor.
pub fn patient() -> Limits {
    Limits { patience: 1000, ..Limits::default() }
}

pub fn sandbox(limits: Limits) -> Sandbox {
    Sandbox::new(Options { limits, slots: 2, ..Options::default() }).unwrap()
}

/// Changes of files in /etc with contents of so many bytes on each side.
pub fn changes(count: usize, bytes: usize) -> Vec<Change<'static>> {
    (0..count)
        .map(|n| Change {
            id: format!("file:/etc/{n:04}.conf"),
            before: file(vec![b'a'; bytes]),
            after: file(vec![b'b'; bytes]),
        })
        .collect()
}

fn file(bytes: Vec<u8>) -> State<'static> {
    State::File(FileState {
        content: Content::Bytes(bytes.into()),
        mode: 0o644,
        user: "root".into(),
        group: "root".into(),
    })
}

/// Asks about two small changes, by the claims of [`described`].
pub fn ask(sandbox: &Sandbox, module: &Module) -> Result<Reply, CallFailure> {
    ask_as(sandbox, module, Layer::Template, &changes(2, 16))
}

pub fn ask_as(
    sandbox: &Sandbox,
    module: &Module,
    layer: Layer,
    changes: &[Change<'_>],
) -> Result<Reply, CallFailure> {
    ask_within(sandbox, module, layer, changes, sandbox.limits())
}

pub fn ask_within(
    sandbox: &Sandbox,
    module: &Module,
    layer: Layer,
    changes: &[Change<'_>],
    limits: &Limits,
) -> Result<Reply, CallFailure> {
    let changes: Vec<&Change<'_>> = changes.iter().collect();
    let claims = described().claims;
    let settings = "{}";
    let call = Call {
        settings,
        changes: &changes,
        unchanged: &[],
        claims: &claims,
        layer,
        speaker: Speaker::Policy,
        words: &Words::default(),
    };
    sandbox.classify_within(module, &call, limits)
}

/// The failure of a call, and that the sandbox serves the next one.
pub fn fails(sandbox: &Sandbox, guest: &Guest) -> CallFailure {
    fails_within(sandbox, guest, sandbox.limits())
}

/// As [`fails`], where only that call has these limits.
pub fn fails_within(sandbox: &Sandbox, guest: &Guest, limits: &Limits) -> CallFailure {
    let module = sandbox.load(&guest.component(), None).expect("it can be loaded");
    let failed = ask_within(sandbox, &module, Layer::Template, &changes(2, 16), limits)
        .expect_err("it cannot be asked");
    still_serves(sandbox);
    failed
}

/// The failure to load, and that the sandbox serves the next one.
pub fn is_not_loaded(sandbox: &Sandbox, component: &[u8]) -> Failure {
    let failure = sandbox.load(component, None).expect_err("it cannot be loaded");
    still_serves(sandbox);
    failure
}

pub fn still_serves(sandbox: &Sandbox) {
    let module = sandbox.load(&Guest::default().component(), None).expect("the next policy");
    let reply = ask(sandbox, &module).expect("the next call");
    assert_eq!(reply.verdicts.iter().flatten().count(), 1);
}

#[track_caller]
pub fn assert_failure(failure: &Failure, kind: FailureKind, words: &str) {
    assert_eq!(failure.kind, kind, "{failure}");
    assert!(failure.message.contains(words), "{failure}");
}
