//! The labels by which a node is in a pool, as far as its selector leaves no choice.

use std::collections::BTreeMap;

/// Labels of a node.
pub type Labels = BTreeMap<String, String>;

/// One of a selector's expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requirement<'a> {
    /// Of which label.
    pub key: &'a str,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`
    pub operator: &'a str,
    /// Of `In` and `NotIn`.
    pub values: &'a [String],
}

/// Why a selector does not say which labels a node has to have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ambiguous {
    /// It says nothing.
    #[error("spec.nodeSelector is empty")]
    Nothing,
    /// An expression leaves a choice.
    #[error("spec.nodeSelector leaves open what a node has there: {0}")]
    Open(String),
    /// Two of its parts contradict each other.
    #[error("spec.nodeSelector asks for two values of {0}")]
    Contradicts(String),
}

/// The labels that a selector determines: `matchLabels`, `In` with one value, and `Exists`.
pub fn determined<'a>(
    match_labels: impl IntoIterator<Item = (&'a str, &'a str)>,
    expressions: impl IntoIterator<Item = Requirement<'a>>,
) -> Result<Labels, Ambiguous> {
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    let mut labels: Labels = match_labels.into_iter().map(owned).collect();
    let mut exist = Vec::new();
    for Requirement { key, operator, values } in expressions {
        match (operator, values) {
            ("In", [one]) => {
                if labels.insert(key.to_owned(), one.clone()).is_some_and(|it| it != *one) {
                    return Err(Ambiguous::Contradicts(key.to_owned()));
                }
            }
            ("Exists", _) => exist.push(key),
            _ => return Err(Ambiguous::Open(format!("{key} {operator} {values:?}"))),
        }
    }
    for key in exist {
        labels.entry(key.to_owned()).or_default();
    }
    if labels.is_empty() { Err(Ambiguous::Nothing) } else { Ok(labels) }
}
