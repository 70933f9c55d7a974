//! From a module that another compiler made to a policy's component.

use super::source::{Built, with_description, written};
use crate::inspect::Examined;
use anyhow::{Context as _, Result, anyhow, bail};
use std::collections::BTreeMap;
use std::path::Path;
use tread_console::exit::UsageError;
use tread_console::outputs;
use tread_console::print::{line, shown};
use tread_engine::inspect::{can_be_imported, inspect, unspoken, what_can_be_imported};
use tread_engine::limits::Limits;
use tread_engine::sandbox::Sandbox;
use tread_loading::builtins::check_name;
use tread_loading::file::read;
use tread_loading::sandbox;
use tread_loading::what::what;
use tread_model::description::SECTION;
use tread_model::digest::Sha256;
use tread_model::verdict::FailureKind;
use wasmparser::{Encoding, Parser, Payload};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

/// The contract, for modules that do not bring it along.
const CONTRACT: &str = include_str!("../../../../wit/policy.wit");

/// Its versions. A module that names none of them is taken for one of the oldest.
const VERSIONS: [&str; 3] = [OLDEST, "1.1.0", NEWEST];
const OLDEST: &str = "1.0.0";
const NEWEST: &str = "1.2.0";

/// What a module exports to be a policy's, beside its memory.
const FUNCTIONS: [&str; 3] = ["describe", "check-settings", "classify"];

/// Makes a policy of the module or component in a file, and writes it to `out`,
/// or to `NAME.wasm` here. The same file gives the same bytes.
pub(crate) fn build(path: &Path, out: Option<&Path>) -> Result<Built> {
    let sandbox = sandbox::for_one(Limits::default())?;
    let component = component(path, read(path)?, &sandbox)?;
    Examined::new(path, &component, &sandbox).check(path)?;
    let description = tread_engine::inspect::description(&component, sandbox.limits())?;
    check_name(&description.name, Some(Sha256::of(&component)))?;
    let own = format!("{}.wasm", description.name);
    let to = out.unwrap_or(Path::new(&own));
    if outputs::is_same(path, to) {
        let message = format!(
            "{} would be written over what it is made from: name another file with -o",
            to.display()
        );
        return Err(UsageError(message).into());
    }
    let declarations = tread_engine::inspect::declarations(&component, sandbox.limits())?;
    written(component, description, declarations, to)
}

/// The component, with its description.
fn component(path: &Path, bytes: Vec<u8>, sandbox: &Sandbox) -> Result<Vec<u8>> {
    let name = shown(path);
    let component = if Parser::is_core_wasm(&bytes) {
        of_module(&bytes).with_context(|| format!("{name} cannot become a policy"))?
    } else if Parser::is_component(&bytes) {
        bytes
    } else {
        let what = what(path, &bytes, &inspect(&bytes, sandbox.limits()));
        let advice = line(&what.advice.unwrap_or_default());
        let title = line(&what.title);
        bail!("{name} is {title}, and no WebAssembly module or component: {advice}");
    };
    let imports = inspect(&component, sandbox.limits()).imports;
    let system = imports.iter().filter_map(|import| import.split_once('#').or(Some((import, ""))));
    let system: Vec<_> = system.filter(|(interface, _)| interface.starts_with("wasi:")).collect();
    if !system.is_empty() {
        bail!("{name} cannot become a policy: {}", no_system(&grouped(system.into_iter())));
    }
    if sections(&component).with_context(|| format!("{name} cannot become a policy"))? > 0 {
        return Ok(component);
    }
    let (description, declarations) =
        sandbox.describe(&component).map_err(|failure| match failure.kind {
            FailureKind::WrongWorld | FailureKind::ForbiddenImport => {
                anyhow!("{name} cannot become a policy: {}", failure.message)
            }
            _ => anyhow!("{name} cannot become a policy; it was asked what it is, and: {failure}"),
        })?;
    with_description(component, &description, &declarations)
}

/// A component of a core module that was built against the contract, whether it
/// says so in a section of its own or only by what it exports.
fn of_module(bytes: &[u8]) -> Result<Vec<u8>> {
    let module = Module::read(bytes).context("it is a core module that is broken")?;
    let system = module.imports.iter().filter(|(from, _)| from.starts_with("wasi"));
    let system = grouped(system.map(|(from, name)| (from.as_str(), name.as_str())));
    if !system.is_empty() {
        bail!(no_system(&system));
    }
    // A module of another contract has other imports and exports, too: this comes first.
    if let Some(why) = module.contract().and_then(unspoken) {
        bail!(why);
    }
    let foreign = module.imports.iter().filter(|(from, name)| !can_be_imported(from, name));
    let foreign = grouped(foreign.map(|(from, name)| (from.as_str(), name.as_str())));
    if !foreign.is_empty() {
        bail!("it imports {}: {}", in_words(&foreign), what_can_be_imported());
    }
    let missing = module.missing();
    if !missing.is_empty() {
        bail!(
            "it is a core module that does not export {}: build it against wit/policy.wit of \
             tread, for example with wit-bindgen, as a library without a main function",
            missing.join(", ")
        );
    }
    let mut bytes = bytes.to_vec();
    if !module.has_types {
        let mut resolve = wit_parser::Resolve::default();
        // The words of 1.0.0 are the same in all that came after it.
        let contract = CONTRACT.replace(&format!("@{NEWEST};"), &format!("@{};", module.version()));
        let package = resolve.push_str("policy.wit", &contract)?;
        let declares = |export: &String| export.starts_with("tread:policy/declarations@");
        let world = match module.exports.iter().any(declares) {
            true => "declaring-policy",
            false => "policy",
        };
        let world = resolve.select_world(&[package], Some(world))?;
        embed_component_metadata(&mut bytes, &resolve, world, StringEncoding::UTF8)?;
    }
    ComponentEncoder::default()
        .validate(true)
        .module(&bytes)
        .and_then(|mut encoder| encoder.encode())
        .context("it exports the functions of a policy, but not as the contract has them")
}

/// The one sentence on modules that need a system.
fn no_system(imports: &BTreeMap<String, Vec<String>>) -> String {
    format!(
        "it imports {}: a policy has no WASI (no files, no clock, no randomness, no environment); \
         build it without the parts that call it, in Rust for wasm32-unknown-unknown",
        in_words(imports)
    )
}

fn grouped<'i>(imports: impl Iterator<Item = (&'i str, &'i str)>) -> BTreeMap<String, Vec<String>> {
    let mut grouped: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (from, name) in imports {
        let names = grouped.entry(from.to_owned()).or_default();
        if !name.is_empty() {
            names.push(name.to_owned());
        }
    }
    grouped
}

/// `wasi_snapshot_preview1 (fd_write, proc_exit)`
fn in_words(imports: &BTreeMap<String, Vec<String>>) -> String {
    let all = imports.iter().map(|(from, names)| match names.as_slice() {
        [] => from.clone(),
        names => format!("{from} ({})", names.join(", ")),
    });
    // A module may call what it wants by any name.
    line(&all.collect::<Vec<_>>().join(" and "))
}

/// What a core module shows to the outside.
#[derive(Debug, Default)]
struct Module {
    imports: Vec<(String, String)>,
    exports: Vec<String>,
    /// Whether a section of it says what its types are.
    has_types: bool,
}

impl Module {
    fn read(bytes: &[u8]) -> Result<Module> {
        let mut module = Module::default();
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        let import = import?;
                        module.imports.push((import.module.to_owned(), import.name.to_owned()));
                    }
                }
                Payload::ExportSection(section) => {
                    for export in section {
                        module.exports.push(export?.name.to_owned());
                    }
                }
                Payload::CustomSection(section) => {
                    module.has_types |= section.name().starts_with("component-type");
                }
                _ => {}
            }
        }
        Ok(module)
    }

    /// The version of the contract whose functions it exports.
    fn version(&self) -> &str {
        let known = |version: &&str| self.has_types || VERSIONS.contains(version);
        self.contract().filter(known).unwrap_or(OLDEST)
    }

    /// The version of the contract that its exports name, if they name one.
    fn contract(&self) -> Option<&str> {
        self.exports.iter().find_map(|export| {
            let rest = export.strip_prefix("tread:policy/classifier@")?;
            rest.split_once('#').map(|(version, _)| version)
        })
    }

    /// What it has to export and does not. Of a module that says its types
    /// itself, the encoder knows better.
    fn missing(&self) -> Vec<String> {
        let version = self.version();
        let functions =
            FUNCTIONS.map(|function| format!("tread:policy/classifier@{version}#{function}"));
        let memory = ["memory", "cabi_realloc"].map(str::to_owned);
        functions.into_iter().chain(memory).filter(|name| !self.exports.contains(name)).collect()
    }
}

/// How many sections of a component hold a description.
fn sections(component: &[u8]) -> Result<usize> {
    let (mut depth, mut count) = (0usize, 0);
    for payload in Parser::new(0).parse_all(component) {
        match payload.context("it is a component that is broken")? {
            Payload::Version { encoding: Encoding::Component | Encoding::Module, .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CustomSection(section) if depth == 1 && section.name() == SECTION => {
                count += 1
            }
            _ => {}
        }
    }
    Ok(count)
}
