//! What rules are about, also where some of them cannot be read.

use crate::claim::Pattern;
use crate::description::Claim;
use crate::effect::Effect;
use serde_json::Value;

/// What the readable patterns of a list of rules match, whatever else is wrong with the list: as
/// long as it cannot be followed, each change of those costs a reboot. A rule that only abstains
/// claims nothing.
pub fn claimed(rules: &Value) -> Vec<Claim> {
    let is_true = |rule: &Value, field: &str| rule.get(field) == Some(&Value::Bool(true));
    let abstains = |rule: &&Value| {
        is_true(rule, "abstain")
            && ["actions", "refuse"].iter().all(|field| rule.get(field).is_none())
    };
    let rules = rules.as_array().into_iter().flatten().filter(|rule| !abstains(rule));
    let patterns = rules.filter_map(|rule| rule.get("match")?.as_array()).flatten();
    let patterns = patterns.filter_map(Value::as_str).filter(|text| Pattern::parse(text).is_ok());
    patterns.map(|text| Claim::on(text, Effect::Reboot, Effect::Reboot)).collect()
}
