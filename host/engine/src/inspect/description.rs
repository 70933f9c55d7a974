//! The description in a component's custom section.

use super::readable::{check_size, core_module, unreadable};
use crate::failure::failure;
use crate::limits::Limits;
use serde::de::DeserializeOwned;
use tread_model::description::{DECLARATIONS, Declarations, Description, SECTION};
use tread_model::verdict::{Failure, FailureKind};
use wasmparser::{Chunk, Parser, Payload};

/// What a component says of itself in its custom section. Nothing else is
/// read, and no rule but the form of the section is checked.
pub fn description(bytes: &[u8], limits: &Limits) -> Result<Description, Failure> {
    check_size(bytes, limits)?;
    let section = section(bytes, SECTION)?.ok_or_else(|| {
        bad(format!("it has no custom section {SECTION}, which `tread policy build` writes"))
    })?;
    read(section, SECTION, limits)
}

/// What a component declares in its custom section beside its description:
/// nothing, if it was built against a contract that has no such thing.
pub fn declarations(bytes: &[u8], limits: &Limits) -> Result<Declarations, Failure> {
    check_size(bytes, limits)?;
    let section = section(bytes, DECLARATIONS)?;
    section.map_or_else(|| Ok(Declarations::default()), |it| read(it, DECLARATIONS, limits))
}

fn read<T: DeserializeOwned>(section: &[u8], name: &str, limits: &Limits) -> Result<T, Failure> {
    if section.len() > limits.description_bytes {
        return Err(bad(format!(
            "the custom section {name} has {} bytes, and {} are allowed",
            section.len(),
            limits.description_bytes
        )));
    }
    serde_json::from_slice(section).map_err(|error| {
        let error = error.to_string();
        // The library names the types of this program, which tell an author nothing.
        let error = error
            .replace("struct Description", "an object with name, version, summary and claims")
            .replace("struct Declarations", "an object with needsSecrets and reasons")
            .replace("struct Claim", "an object with changes, least and most")
            .replace("struct SettingsDescription", "an object with defaults and schema")
            .replace("enum Effect", "none, reload, restart, drain, reboot or refuse");
        bad(format!(
            "the custom section {name}, which `tread policy build` writes, cannot be read: {error}"
        ))
    })
}

fn bad(message: String) -> Failure {
    failure(FailureKind::BadDescription, message)
}

/// The content of the one custom section of this name.
fn section<'b>(bytes: &'b [u8], name: &str) -> Result<Option<&'b [u8]>, Failure> {
    let mut parser = Parser::new(0);
    let mut rest = bytes;
    let mut found = Vec::new();
    loop {
        let chunk = parser.parse(rest, true).map_err(|error| unreadable(bytes, &error))?;
        let Chunk::Parsed { consumed, payload } = chunk else {
            // There is no more input that could be needed.
            return Err(failure(FailureKind::NotAComponent, "it ends too early"));
        };
        let mut next = consumed;
        match payload {
            Payload::Version { encoding: wasmparser::Encoding::Module, .. } => {
                return Err(failure(FailureKind::NotAComponent, core_module()));
            }
            Payload::CustomSection(custom) if custom.name() == name => {
                found.push(custom.data());
            }
            // What is nested is not looked into.
            Payload::ModuleSection { unchecked_range, .. }
            | Payload::ComponentSection { unchecked_range, .. } => {
                next = consumed.saturating_add(unchecked_range.len());
            }
            Payload::End(_) => break,
            _ => {}
        }
        rest = rest
            .get(next..)
            .ok_or_else(|| failure(FailureKind::NotAComponent, "it ends too early"))?;
    }
    match found.as_slice() {
        [one] => Ok(Some(one)),
        [] => Ok(None),
        _ => Err(bad(format!("it has more than one custom section {name}"))),
    }
}
