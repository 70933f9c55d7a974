//! What a claim brings into the crate: code, settings, tests and cases by its
//! kind.

use crate::questions::instance;
use crate::test::scalar;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use tread_model::claim::{Kind, Pattern};
use tread_model::description::Claim;
use tread_model::effect::Effect;
use tread_model::secrets::is_secret_file;
use tread_model::touch::touch_gently;
use tread_model::unit_name::{is_template, is_unit_name};

/// A claim that was asked for.
#[derive(Debug)]
pub(super) struct Claimed {
    /// `file:/etc/chrony.d/*`
    pub(super) pattern: String,
    /// A change that it matches.
    pub(super) id: String,
    pub(super) fragment: Fragment,
    kind: Kind,
}

/// A piece of example, for one or two kinds of claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fragment {
    /// A file that one service reads.
    File,
    /// Files, each with a service of its own.
    Files,
    Unit,
    Keys,
    Password,
    /// Kernel arguments and extensions.
    List,
    /// The kernel type and the OS image.
    Text,
}

impl Claimed {
    /// Reads all claims, or says what is wrong with one.
    pub(super) fn all(claims: &[String]) -> Result<Vec<Claimed>, String> {
        let mut seen = BTreeSet::new();
        let mut all = Vec::with_capacity(claims.len());
        for claim in claims {
            if !seen.insert(claim) {
                return Err(format!("--claim {claim} stands there twice"));
            }
            all.push(
                Claimed::parse(claim).map_err(|message| format!("--claim {claim}: {message}"))?,
            );
        }
        Ok(all)
    }

    fn parse(claim: &str) -> Result<Claimed, String> {
        let pattern = Pattern::parse(claim)?;
        let kind = pattern.kind();
        let id = example(claim, &pattern)?;
        if kind == Kind::Unit && id.strip_prefix("unit:").is_some_and(is_template) {
            let wider = claim.replace("@.", "@*.");
            return Err(format!(
                "that is a template, which never runs by itself: claim {wider}, its instances"
            ));
        }
        Ok(Claimed { pattern: claim.to_owned(), id, fragment: Fragment::for_kind(kind), kind })
    }

    /// The name of its file in `cases/`, which no other of them has.
    pub(super) fn file_stem(&self, all: &[Claimed]) -> String {
        let same = all.iter().filter(|other| other.kind == self.kind);
        let before = same.take_while(|other| other.pattern != self.pattern).count();
        match before {
            0 => self.kind.as_str().to_owned(),
            before => format!("{}-{}", self.kind.as_str(), before + 1),
        }
    }

    /// As the policy will declare it.
    pub(super) fn claim(&self) -> Claim {
        let (least, most) = self.fragment.range();
        Claim::on(self.pattern.clone(), least, most)
    }

    /// As the source has it.
    pub(super) fn source(&self) -> String {
        let (least, most) = self.fragment.range();
        format!("Claim::on({:?}, Effect::{least:?}, Effect::{most:?})", self.pattern)
    }

    /// What its cases expect where its command changes.
    fn unit_answer(&self, name: &str) -> String {
        match touch_gently(name).is_ok() {
            true => {
                let restart = scalar(&format!("restart {name}"));
                format!("{{answer: act, actions: [{restart}], reason: keys}}")
            }
            false => "{answer: abstain}".to_owned(),
        }
    }

    /// One of several files, of which each may have another service.
    pub(super) fn with_its_own_service(&mut self) {
        if self.fragment == Fragment::File {
            self.fragment = Fragment::Files;
        }
    }

    /// The path, the unit or the user of the example.
    pub(super) fn name(&self) -> &str {
        self.id.split_once(':').map_or("", |(_, name)| name)
    }

    /// Its cases. `service` is what reads a file, if that is known.
    pub(super) fn cases(&self, service: Option<&str>) -> &'static str {
        match (self.kind, service) {
            (Kind::File, None) => include_str!("../template/files/unread-cases.yaml"),
            // A policy is not shown what it holds.
            (Kind::File, _) if is_secret_file(self.name(), None) => {
                include_str!("../template/file/secret-cases.yaml")
            }
            _ => self.fragment.cases(),
        }
    }

    /// What its cases are filled with.
    pub(super) fn values(&self) -> Vec<(&'static str, String)> {
        let name = self.name();
        let (good, bad) = match self.kind {
            Kind::KernelType => ("default".to_owned(), "realtime".to_owned()),
            _ => {
                // Only the digest counts when two images are compared.
                let image = |host: &str, digit: &str| {
                    format!("{host}.example.com/os@sha256:{}", digit.repeat(64))
                };
                (image("registry", "0"), image("untrusted", "1"))
            }
        };
        let field = match self.kind {
            Kind::KernelArguments => "kernelArguments",
            Kind::KernelType => "kernelType",
            Kind::OsImage => "osImage",
            _ => "extensions",
        };
        vec![
            ("ID", scalar(&self.id)),
            ("PATH", scalar(name)),
            ("UNIT", scalar(name)),
            ("UNITANSWER", self.unit_answer(name)),
            ("LISTFIELD", field.to_owned()),
            ("TEXTFIELD", field.to_owned()),
            ("GOODTEXT", good),
            ("BADTEXT", bad),
        ]
    }
}

impl Fragment {
    fn for_kind(kind: Kind) -> Fragment {
        match kind {
            Kind::File => Fragment::File,
            Kind::Unit => Fragment::Unit,
            Kind::SshKeys => Fragment::Keys,
            Kind::Password => Fragment::Password,
            Kind::KernelArguments | Kind::Extensions => Fragment::List,
            Kind::KernelType | Kind::OsImage => Fragment::Text,
        }
    }

    /// Those that some claims need, each once.
    pub(super) fn of(claims: &[Claimed]) -> Vec<Fragment> {
        claims.iter().map(|claim| claim.fragment).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The least and the most disruptive answer of its example.
    pub(super) fn range(self) -> (Effect, Effect) {
        match self {
            Fragment::File | Fragment::Files | Fragment::Unit => (Effect::None, Effect::Restart),
            Fragment::Keys | Fragment::Password => (Effect::None, Effect::Refuse),
            Fragment::List | Fragment::Text => (Effect::Refuse, Effect::Refuse),
        }
    }

    /// The words that `Change::kind` may say.
    pub(super) fn kinds(self) -> &'static [&'static str] {
        match self {
            Fragment::File | Fragment::Files => &["file"],
            Fragment::Unit => &["unit"],
            Fragment::Keys => &["ssh-keys"],
            Fragment::Password => &["password"],
            Fragment::List => &["kernel-arguments", "extensions"],
            Fragment::Text => &["kernel-type", "os-image"],
        }
    }

    pub(super) fn function(self) -> &'static str {
        match self {
            Fragment::File | Fragment::Files => "file",
            Fragment::Unit => "unit",
            Fragment::Keys => "keys",
            Fragment::Password => "password",
            Fragment::List => "list",
            Fragment::Text => "text",
        }
    }

    /// What its code uses of the SDK beyond the rest.
    pub(super) fn imports(self) -> &'static [&'static str] {
        match self {
            Fragment::File => &["File", "diff"],
            Fragment::Files => &["File", "diff", "glob"],
            Fragment::Unit => &["Content", "Unit", "diff", "units"],
            Fragment::Password => &["Edit"],
            Fragment::Keys | Fragment::List | Fragment::Text => &[],
        }
    }

    /// What its tests use of the SDK beyond that.
    pub(super) fn test_imports(self) -> &'static [&'static str] {
        match self {
            Fragment::Files => &["Action"],
            Fragment::Unit | Fragment::Password => &["State"],
            _ => &[],
        }
    }
}

macro_rules! pieces {
    ($($piece:ident: $file:literal, $files:literal)*) => {
        impl Fragment {
            $(pub(super) fn $piece(self) -> &'static str {
                match self {
                    Fragment::File => include_str!(concat!("../template/file/", $file)),
                    Fragment::Files => include_str!(concat!("../template/", $files)),
                    Fragment::Unit => include_str!(concat!("../template/unit/", $file)),
                    Fragment::Keys => include_str!(concat!("../template/keys/", $file)),
                    Fragment::Password => include_str!(concat!("../template/password/", $file)),
                    Fragment::List => include_str!(concat!("../template/list/", $file)),
                    Fragment::Text => include_str!(concat!("../template/text/", $file)),
                }
            })*
        }
    };
}

pieces! {
    answer: "answer.rs", "file/answer.rs"
    fields: "fields.rs", "files/fields.rs"
    tests: "tests.rs", "files/tests.rs"
    cases: "cases.yaml", "file/cases.yaml"
}

impl Fragment {
    /// The check of its settings, where their types leave something open.
    pub(super) fn check(self) -> &'static str {
        match self {
            Fragment::File => include_str!("../template/file/check.rs"),
            Fragment::Files => include_str!("../template/files/check.rs"),
            _ => "",
        }
    }
}

/// A change that a claim matches, for tests and cases.
fn example(claim: &str, pattern: &Pattern) -> Result<String, String> {
    if let Some(id) = pattern.exact() {
        check_user(pattern.kind(), id)?;
        return Ok(id.to_owned());
    }
    if let Some(word) = [Kind::SshKeys, Kind::Password].iter().find(|it| **it == pattern.kind()) {
        let core = format!("{}:core", word.as_str());
        return match pattern.matches(&core) {
            true => Ok(core),
            false => Err(only_core(*word)),
        };
    }
    let made = instance(claim, 0);
    // A name that reads better, where the claim leaves room for it.
    let nicer = made.replace("made-up/000", "example").replace("000", "example");
    let is_unit = pattern.kind() == Kind::Unit;
    let mut names = vec![nicer, made];
    if is_unit {
        // The type of unit that a glob leaves open.
        let stems: Vec<String> =
            names.iter().filter_map(|it| it.rsplit_once('.')).map(|it| it.0.to_owned()).collect();
        names.extend(stems.iter().flat_map(|stem| TYPES.map(|kind| format!("{stem}.{kind}"))));
    }
    let can_be = |id: &String| {
        pattern.matches(id) && (!is_unit || id.strip_prefix("unit:").is_some_and(is_unit_name))
    };
    names.into_iter().find(can_be).ok_or_else(|| match is_unit {
        true => {
            "no name of a unit could be made up that it matches: names of units end in .service, \
                 .socket, .timer, .mount and the like, and no directory is before them"
                .to_owned()
        }
        false => {
            "no name could be made up that it matches; start with a simpler one, and change it \
                  in src/lib.rs"
                .to_owned()
        }
    })
}

/// The types of units that a policy may touch, and those that it is left to others to touch.
const TYPES: [&str; 9] =
    ["service", "socket", "path", "timer", "mount", "target", "slice", "swap", "automount"];

fn check_user(kind: Kind, id: &str) -> Result<(), String> {
    let user = matches!(kind, Kind::SshKeys | Kind::Password);
    if user && !id.ends_with(":core") { Err(only_core(kind)) } else { Ok(()) }
}

fn only_core(kind: Kind) -> String {
    let word = kind.as_str();
    format!("on a running node only the user core can change: claim {word}:core")
}

/// The example ids as constants for the unit tests.
pub(super) fn constants(claims: &[Claimed]) -> String {
    let mut source = String::new();
    for fragment in Fragment::of(claims) {
        let Some(claim) = claims.iter().find(|claim| claim.fragment == fragment) else { continue };
        let name = claim.name();
        let (constant, value) = match fragment {
            Fragment::File => ("FILE", name),
            Fragment::Files => continue,
            Fragment::Unit => ("UNIT", name),
            Fragment::Keys => ("KEYS", claim.id.as_str()),
            Fragment::Password => ("PASSWORD", claim.id.as_str()),
            Fragment::List => ("LIST", claim.id.as_str()),
            Fragment::Text => ("TEXT", claim.id.as_str()),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(source, "    const {constant}: &str = {value:?};");
    }
    source
}

/// What the unit tests expect where the command of their unit changes.
pub(super) fn unit_effect(claims: &[Claimed]) -> &'static str {
    let unit = claims.iter().find(|claim| claim.fragment == Fragment::Unit);
    match unit.is_none_or(|claim| touch_gently(claim.name()).is_ok()) {
        true => "Some(Effect::Restart)",
        false => "None",
    }
}

/// The range of answers in words.
pub(super) fn words(least: Effect, most: Effect) -> String {
    if least == most { most.to_string() } else { format!("{least} to {most}") }
}
