//! A policy of rules as the manifest that says the same.

use super::inline::API_VERSION;
use super::policy::RulesPolicy;
use super::rule::{Rule, RuleAction, RuleSet, Then};
use crate::verdict::Layer;
use serde::{Deserialize as _, Serialize};

/// A DisruptionPolicy with inline rules.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    spec: Spec,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Metadata {
    name: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    layer: Layer,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    may_relax: bool,
    rules: Vec<Written>,
}

/// A rule as it is written.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Written {
    r#match: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actions: Option<Vec<RuleAction>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drain: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refuse: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    abstain: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// The manifest of a policy under this name: read again, it gives the same
/// rules.
pub fn manifest(policy: &RulesPolicy, name: &str) -> Manifest {
    let rules = RuleSet::deserialize(&policy.settings).unwrap_or_default().rules;
    Manifest {
        api_version: API_VERSION,
        kind: "DisruptionPolicy",
        metadata: Metadata { name: name.to_owned() },
        spec: Spec {
            layer: policy.layer,
            may_relax: policy.may_relax,
            rules: rules.into_iter().map(written).collect(),
        },
    }
}

fn written(rule: Rule) -> Written {
    let mut written = Written {
        r#match: rule.r#match,
        actions: None,
        drain: None,
        refuse: None,
        abstain: None,
        reason: None,
    };
    match rule.then {
        Then::Act { actions, reason } => {
            if actions.contains(&RuleAction::RebootUndrained) {
                written.drain = Some(false);
                written.actions = Some(vec![RuleAction::Reboot]);
            } else {
                written.actions = Some(actions);
            }
            written.reason = Some(reason);
        }
        Then::Refuse { reason } => {
            (written.refuse, written.reason) = (Some(true), Some(reason));
        }
        Then::Abstain => written.abstain = Some(true),
    }
    written
}
