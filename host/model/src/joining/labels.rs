//! The labels by which a node is in a pool, as far as its selector leaves no choice.

use std::collections::{BTreeMap, BTreeSet};

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

/// The labels by which a node is in a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Determined {
    /// Those with one value.
    pub labels: Labels,
    /// The keys of all others: whatever value they have.
    pub any_value: BTreeSet<String>,
}

impl Determined {
    /// What a node that has these labels is given. A key that may have any value keeps the one that
    /// it has there, and is empty where it is not there.
    pub fn given(&self, has: &Labels) -> Labels {
        let mut given = self.labels.clone();
        let lacks = self.any_value.iter().filter(|key| !has.contains_key(*key));
        given.extend(lacks.map(|key| (key.clone(), String::new())));
        given
    }
}

/// The labels that a selector determines: `matchLabels`, `In` with one value, and `Exists`.
pub fn determined<'a>(
    match_labels: impl IntoIterator<Item = (&'a str, &'a str)>,
    expressions: impl IntoIterator<Item = Requirement<'a>>,
) -> Result<Determined, Ambiguous> {
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    let mut labels: Labels = match_labels.into_iter().map(owned).collect();
    let mut any_value = BTreeSet::new();
    for Requirement { key, operator, values } in expressions {
        match (operator, values) {
            ("In", [one]) => {
                if labels.insert(key.to_owned(), one.clone()).is_some_and(|it| it != *one) {
                    return Err(Ambiguous::Contradicts(key.to_owned()));
                }
            }
            ("Exists", _) => {
                any_value.insert(key.to_owned());
            }
            _ => return Err(Ambiguous::Open(format!("{key} {operator} {values:?}"))),
        }
    }
    any_value.retain(|key| !labels.contains_key(key));
    match labels.is_empty() && any_value.is_empty() {
        true => Err(Ambiguous::Nothing),
        false => Ok(Determined { labels, any_value }),
    }
}
