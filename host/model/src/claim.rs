//! Claims: which changes a policy wants to see, as patterns over change ids.
//!
//! tread matches them with an automaton, because patterns are strangers' texts, and
//! `fast-glob`, which the policies match with, takes its time on some.

pub mod approval;
mod automaton;
mod cover;
mod description;
mod glob;
mod kind;
mod pattern;
mod router;
mod shape;

pub use description::{check_size, usable_claims, validate_declarations, validate_description};
pub use kind::Kind;
pub use pattern::{LONGEST, MOST_ELEMENTS, Pattern, Specificity, escaped};
pub use router::Router;
pub use shape::Shape;

#[cfg(test)]
mod tests;
