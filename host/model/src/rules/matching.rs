//! Which rule decides.

use super::rule::Rule;
use crate::claim::{Pattern, Specificity};

/// The index of the rule that decides on a change: the one with the most
/// specific pattern that matches, of equals the first. None: nobody does, which
/// is to abstain.
///
/// The component `rules` decides by the same rule; `tests/cases/rules-matching.json`
/// keeps the two equal. A pattern that cannot be read matches nothing.
pub fn deciding_rule(rules: &[Rule], id: &str) -> Option<usize> {
    let mut decider: Option<(Specificity, usize)> = None;
    for (index, rule) in rules.iter().enumerate() {
        for pattern in rule.r#match.iter().filter_map(|text| Pattern::parse(text).ok()) {
            let closer = decider.is_none_or(|(best, _)| pattern.specificity() > best);
            if closer && pattern.matches(id) {
                decider = Some((pattern.specificity(), index));
            }
        }
    }
    decider.map(|(_, index)| index)
}
