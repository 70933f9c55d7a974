//! Policies that do what no compiler would write: as in the engine's tests.

#[path = "../../../engine/tests/support/mod.rs"]
mod written;

use tread_model::description::{Claim, Description, SECTION};
pub use written::{Action, Answer, Guest, Says, act, claim};

/// A policy with these claims, and with these answers to all questions.
pub fn answering(name: &str, claims: Vec<Claim>, verdicts: Vec<Says>) -> Guest {
    let exported = Description {
        name: name.to_owned(),
        version: "1.2.3".to_owned(),
        summary: "A policy for tests".to_owned(),
        claims,
        settings: None,
    };
    let section = Some(serde_json::to_vec(&exported).unwrap());
    Guest { exported, section, verdicts, ..Guest::default() }
}

/// The same, with this WebAssembly text in place of its answers.
pub fn classifying(name: &str, claims: Vec<Claim>, body: &str) -> Guest {
    Guest { classify: Some(body.to_owned()), ..answering(name, claims, Vec::new()) }
}

/// A component that is no policy, but describes itself as one.
pub fn disguised(name: &str, claims: Vec<Claim>, text: &str) -> Vec<u8> {
    let mut component = wat::parse_str(text).expect("the component's text");
    let section = answering(name, claims, Vec::new()).section.unwrap();
    written::append_section(&mut component, SECTION, &section);
    component
}
