//! Inline rules: policies that need no code. They are evaluated by the built-in
//! component `rules`, whose settings are a [`RuleSet`]; what they claim is
//! computed here, from the rules themselves.

mod check;
mod claimed;
mod inline;
mod manifest;
pub(crate) mod matching;
pub(crate) mod policy;
mod read;
pub(crate) mod rule;

pub use check::warnings;
pub use claimed::claimed;
pub use inline::API_VERSION;
pub use manifest::{Manifest, manifest};
pub use matching::deciding_rule;
pub use policy::RulesPolicy;
pub use read::{read, read_any, read_shadow};
pub use rule::{Rule, RuleAction, RuleSet, Then};

#[cfg(test)]
mod tests;
