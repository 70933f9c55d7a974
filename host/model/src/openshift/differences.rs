//! Where a nodeDisruptionPolicy means something else in tread, also as a
//! manifest of rules.

use crate::path::REGISTRIES_CONF;
use crate::rules::policy::RulesPolicy;
use crate::rules::rule::{RuleSet, Then};
use serde::Deserialize as _;

/// What an admin should know who replaces OpenShift's object by the rules that
/// were read from it.
pub fn differences(policy: &RulesPolicy) -> Vec<String> {
    let rules = RuleSet::deserialize(&policy.settings).unwrap_or_default().rules;
    let patterns = |abstain: bool| {
        let of = move |then: &Then| (*then == Then::Abstain) == abstain;
        rules.iter().filter(move |rule| of(&rule.then)).flat_map(|rule| &rule.r#match)
    };
    let mut notes = policy.warnings.clone();
    notes.push(
        "What no rule matches is decided by tread's built-in policies; OpenShift reboots for what \
         no entry matches."
            .to_owned(),
    );
    if patterns(false).any(|it| it.starts_with("file:")) {
        notes.push(
            "OpenShift takes the longest path as it is written, rules the most specific pattern: \
             for these entries both come to the same. An entry stands for a path and for all below \
             it, hence two patterns."
                .to_owned(),
        );
    }
    let longer = rules.iter().any(|rule| {
        rule.then != Then::Abstain
            && rule.r#match.iter().all(|it| it.starts_with("file:") && it.ends_with("/**"))
    });
    if longer {
        notes.push(
            "A path that is written longer than it is, as with a slash at its end, stands for what \
             is below it only, as in OpenShift."
                .to_owned(),
        );
    }
    let defaults: Vec<&str> = patterns(true).filter_map(|it| it.strip_prefix("file:")).collect();
    if !defaults.is_empty() {
        notes.push(format!(
            "Where a default of OpenShift is closer than an entry, the rules abstain, and tread's \
             built-in policies decide: {}.",
            defaults.join(", ")
        ));
    }
    if !patterns(false).any(|it| it.strip_prefix("file:") == Some(REGISTRIES_CONF)) {
        notes.push(format!(
            "OpenShift's default for {REGISTRIES_CONF} is Special, which no rule can say: tread's \
             policy registries decides there, from the contents."
        ));
    }
    let ordered = rules
        .iter()
        .any(|rule| matches!(&rule.then, Then::Act { actions, .. } if actions.len() > 1));
    if ordered {
        notes.push(
            "OpenShift runs actions as they are listed; tread in an order of its own (drain, write, \
             update-ca-trust, daemon-reload, then each unit once, by name)."
                .to_owned(),
        );
    }
    if patterns(false).any(|it| it.starts_with("ssh-keys:")) {
        notes.push(
            "sshkey stands for the keys and for the password of every user, hence two patterns."
                .to_owned(),
        );
    }
    notes
}
