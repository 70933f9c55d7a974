//! What can be known of a component without compiling or running it.

mod description;
mod readable;
mod shape;

pub use description::{declarations, description};
pub(crate) use readable::check_size;
pub use shape::{can_be_imported, unspoken, what_can_be_imported};

use crate::limits::Limits;
use shape::Shape;
use tread_model::description::{Declarations, Description};
use tread_model::digest::Sha256;
use tread_model::verdict::Failure;

/// What can be known of a file without running it, also of one that is broken
/// or no policy at all.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// Its identity.
    pub digest: Sha256,
    /// In bytes.
    pub size: usize,
    /// Whether it is a component, and not a core module or anything else.
    pub is_component: bool,
    /// The functions and interfaces that it imports.
    pub imports: Vec<String>,
    /// What it exports.
    pub exports: Vec<String>,
    /// The version of the contract that it exports: `1.0.0`.
    pub contract: Option<String>,
    /// What it says of itself in its custom section.
    pub description: Option<Description>,
    /// What it declares beside that.
    pub declarations: Declarations,
    /// Why it cannot be loaded, as far as that can be seen from outside.
    pub problems: Vec<Failure>,
}

/// Looks at a file that may be a policy.
pub fn inspect(bytes: &[u8], limits: &Limits) -> Inspection {
    let mut problems: Vec<Failure> = check_size(bytes, limits).err().into_iter().collect();
    let mut shape = Shape::default();
    let (mut described, mut declared) = (None, Declarations::default());
    if problems.is_empty() {
        match Shape::read(bytes) {
            Ok(read) => {
                problems.extend(read.problems(limits));
                shape = read;
                match description(bytes, limits) {
                    Ok(description) => described = Some(description),
                    Err(problem) => problems.push(problem),
                }
                match declarations(bytes, limits) {
                    Ok(declarations) => declared = declarations,
                    Err(problem) => problems.push(problem),
                }
            }
            Err(problem) => problems.push(problem),
        }
    }
    Inspection {
        digest: Sha256::of(bytes),
        size: bytes.len(),
        is_component: shape.is_component || wasmparser::Parser::is_component(bytes),
        contract: shape.contract().map(str::to_owned),
        imports: shape.imports.into_iter().map(|import| import.name).collect(),
        exports: shape.exports,
        description: described,
        declarations: declared,
        problems,
    }
}

/// Whether a component may be compiled.
pub(crate) fn check(bytes: &[u8], limits: &Limits) -> Result<(), Failure> {
    check_size(bytes, limits)?;
    Shape::read(bytes)?.problems(limits).into_iter().next().map_or(Ok(()), Err)
}
