//! From rules to a policy: what they claim, which effects they have, and the
//! settings for the component that evaluates them.

use super::rule::{Rule, RuleAction, RuleSet, Then};
use crate::claim::Pattern;
use crate::description::Claim;
use crate::effect::Effect;
use crate::plan::effect_of;
use crate::text::shortened;
use crate::verdict::Layer;
use std::collections::BTreeMap;

/// What the policy is called that OpenShift's own rules make.
pub(crate) const OF_OPENSHIFT: &str = "nodeDisruptionPolicy";

/// A reason ends at 512 bytes; of a pattern that is longer than this, in characters,
/// it names the beginning.
const LONGEST: usize = 100;

/// A policy that is made of rules.
#[derive(Debug, Clone, PartialEq)]
pub struct RulesPolicy {
    /// What it is called in plans.
    pub name: String,
    /// Who speaks.
    pub layer: Layer,
    /// Whether, in the template layer, it drops what built-ins say of the
    /// changes on which it acts.
    pub may_relax: bool,
    /// The settings for the component `rules`: a [`RuleSet`].
    pub settings: serde_json::Value,
    /// What the rules claim, and the effects that they have: in place of what
    /// the component declares. Rules that abstain claim nothing.
    pub claims: Vec<Claim>,
    /// What an admin should know besides; part of the plan.
    pub warnings: Vec<String>,
}

/// What a rule costs; nothing if it abstains.
fn effect(then: &Then) -> Option<Effect> {
    match then {
        Then::Act { actions, .. } => {
            Some(effect_of(&actions.iter().map(RuleAction::action).collect::<Vec<_>>()))
        }
        Then::Refuse { .. } => Some(Effect::Refuse),
        Then::Abstain => None,
    }
}

impl RulesPolicy {
    /// A policy of rules that have been checked.
    pub(crate) fn new(name: &str, layer: Layer, rules: Vec<Rule>) -> RulesPolicy {
        let mut claims = Vec::new();
        let mut warnings = Vec::new();
        let mut claimed = BTreeMap::new();
        for (index, rule) in rules.iter().enumerate() {
            for text in &rule.r#match {
                // Two spellings of one id are one pattern; what reads like an id may be a glob.
                let exact = Pattern::parse(text).ok().and_then(|p| p.exact().map(str::to_owned));
                let key = (exact.is_some(), exact.unwrap_or_else(|| text.clone()));
                if let Some(earlier) = claimed.get(&key) {
                    if *earlier == index {
                        warnings.push(format!("Rule {} of {name} names {text} twice.", index + 1));
                        continue;
                    }
                    warnings.push(format!(
                        "Rule {} of {name} never decides on {text}: rule {} matches it first.",
                        index + 1,
                        earlier + 1
                    ));
                    continue;
                }
                claimed.insert(key, index);
                if let Some(effect) = effect(&rule.then) {
                    claims.push(Claim::on(text.clone(), effect, effect));
                }
            }
        }
        // All of its keys are strings, so that this cannot fail.
        let settings = serde_json::to_value(RuleSet { rules }).unwrap_or_default();
        let may_relax = false;
        RulesPolicy { name: name.to_owned(), layer, may_relax, settings, claims, warnings }
    }
}

/// What stands as the reason where a rule gives none.
pub(super) fn default_reason(policy: &str, patterns: &[&str], actions: &[RuleAction]) -> String {
    let what = match patterns {
        [] => String::new(),
        [only] => format!(" for {}", shortened(only, LONGEST)),
        [first, ..] => format!(" for {} and others", shortened(first, LONGEST)),
    };
    let all: Vec<String> = actions.iter().map(in_words).collect();
    let says = match all.as_slice() {
        [] => "that writing it is enough".to_owned(),
        all => all.join(", "),
    };
    format!("The rule{what} in {policy} says {says}.")
}

fn in_words(action: &RuleAction) -> String {
    match action {
        RuleAction::Reload { unit } => format!("reload {unit}"),
        RuleAction::Restart { unit } => format!("restart {unit}"),
        RuleAction::DaemonReload => "daemon-reload".to_owned(),
        RuleAction::Drain => "drain".to_owned(),
        RuleAction::Reboot => "reboot".to_owned(),
        RuleAction::RebootUndrained => "reboot without a drain".to_owned(),
    }
}
