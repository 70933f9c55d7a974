//! Who answers, and with what, as far as it is known without asking.

use crate::description::Claim;
use crate::effect::Effect;
use crate::rules::policy::RulesPolicy;
use crate::rules::rule::{Rule, RuleSet, Then};
use crate::verdict::{Action, Layer};
use serde::Deserialize as _;

/// Somebody who answers: rules, which are known whole, or a policy, of which
/// the claims are known.
#[derive(Debug, Clone)]
pub struct Voice {
    /// What it is called.
    pub name: String,
    /// Who speaks.
    pub layer: Layer,
    /// Whether its actions stand against the built-ins' answers.
    pub may_relax: bool,
    /// What it says.
    pub says: Says,
}

/// What somebody says, as far as it is known without asking.
#[derive(Debug, Clone)]
pub enum Says {
    /// These rules, and nothing else.
    Rules(Vec<Rule>),
    /// Something within the range of each claim.
    Claims(Vec<Claim>),
}

impl From<&RulesPolicy> for Voice {
    fn from(policy: &RulesPolicy) -> Voice {
        let rules = RuleSet::deserialize(&policy.settings).unwrap_or_default().rules;
        Voice {
            name: policy.name.clone(),
            layer: policy.layer,
            may_relax: policy.may_relax,
            says: Says::Rules(rules),
        }
    }
}

impl Voice {
    /// Whether what a pattern of it says is that others decide.
    pub(super) fn abstains_on(&self, text: &str) -> bool {
        match &self.says {
            Says::Rules(rules) => rules
                .iter()
                .find(|rule| rule.r#match.iter().any(|it| it == text))
                .is_some_and(|rule| rule.then == Then::Abstain),
            Says::Claims(_) => false,
        }
    }

    /// Whether what a pattern of it says is always a reboot.
    pub(super) fn only_reboots(&self, text: &str) -> bool {
        match &self.says {
            Says::Rules(rules) => rules
                .iter()
                .find(|rule| rule.r#match.iter().any(|it| it == text))
                .is_some_and(|rule| match &rule.then {
                    Then::Act { actions, .. } => {
                        actions.iter().any(|it| it.action() == Action::Reboot)
                    }
                    Then::Refuse { .. } | Then::Abstain => false,
                }),
            Says::Claims(claims) => claims
                .iter()
                .filter(|claim| claim.changes == text)
                .all(|claim| claim.least == Effect::Reboot && claim.most == Effect::Reboot),
        }
    }
}
