//! What a selector of a pool means to OpenShift.

use crate::labels::{Labels, is_key, is_value};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt as _};
use std::collections::BTreeSet;
use tread_model::joining::{self, Ambiguous, Determined, Requirement};

/// What a pool selects.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Selects {
    /// Nothing, since it is empty. An empty selector might as well mean everything; to OpenShift it
    /// means nothing.
    #[default]
    Nothing,
    /// What has these labels.
    Labels(Selector),
    /// It cannot be read, and why.
    Unreadable(String),
}

impl Selects {
    /// What a selector means.
    pub fn of(given: Option<&LabelSelector>) -> Selects {
        let Some(given) = given else { return Selects::Nothing };
        if let Err(why) = check(given) {
            return Selects::Unreadable(why);
        }
        match Selector::try_from(given.clone()) {
            Ok(selector) if selector.selects_all() => Selects::Nothing,
            Ok(selector) => Selects::Labels(selector),
            Err(error) => Selects::Unreadable(error.to_string()),
        }
    }

    /// Whether it selects what has these labels.
    pub fn matches(&self, labels: &Labels) -> bool {
        match self {
            Selects::Labels(selector) => selector.matches(labels),
            Selects::Nothing | Selects::Unreadable(_) => false,
        }
    }
}

/// What Kubernetes asks of a selector beyond its form; what the API server stores of a
/// pool need not keep to it.
fn check(given: &LabelSelector) -> Result<(), String> {
    let key = |key: &str| match is_key(key) {
        true => Ok(()),
        false => Err(format!("{key:?} is no key of a label")),
    };
    let value = |value: &str| match is_value(value) {
        true => Ok(()),
        false => Err(format!("{value:?} is no value of a label")),
    };
    for (name, text) in given.match_labels.iter().flatten() {
        key(name)?;
        value(text)?;
    }
    for it in given.match_expressions.iter().flatten() {
        key(&it.key)?;
        let values = it.values.as_deref().unwrap_or_default();
        let takes_values = match it.operator.as_str() {
            "In" | "NotIn" => true,
            "Exists" | "DoesNotExist" => false,
            other => return Err(format!("{other:?} is no operator")),
        };
        if takes_values == values.is_empty() {
            let wants = if takes_values { "needs values" } else { "takes no values" };
            return Err(format!("{} of {} {wants}", it.operator, it.key));
        }
        values.iter().try_for_each(|text| value(text))?;
    }
    Ok(())
}

/// The labels that a node gets that joins the pool, or why nobody can say which.
pub(super) fn gives(given: Option<&LabelSelector>) -> Result<Determined, Ambiguous> {
    let Some(given) = given else { return Err(Ambiguous::Nothing) };
    let labels = given.match_labels.iter().flatten();
    let expressions = given.match_expressions.iter().flatten();
    joining::determined(
        labels.map(|(key, value)| (key.as_str(), value.as_str())),
        expressions.map(|it| Requirement {
            key: &it.key,
            operator: &it.operator,
            values: it.values.as_deref().unwrap_or_default(),
        }),
    )
}

/// The labels that OpenShift's operator makes of a selector for a node that booted into the
/// pool: of what leaves no choice.
pub(super) fn determined(given: Option<&LabelSelector>) -> Determined {
    let Some(given) = given else { return Determined::default() };
    let mut labels: Labels = given
        .match_labels
        .iter()
        .flatten()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let mut any_value = BTreeSet::new();
    for it in given.match_expressions.iter().flatten() {
        match (it.operator.as_str(), it.values.as_deref().unwrap_or_default()) {
            ("In", [one]) => {
                labels.entry(it.key.clone()).or_insert_with(|| one.clone());
            }
            ("Exists", _) => {
                any_value.insert(it.key.clone());
            }
            _ => {}
        }
    }
    any_value.retain(|key| !labels.contains_key(key));
    Determined { labels, any_value }
}
