//! Which rule decides. `tests/cases/rules-matching.json` of the source tree
//! keeps this equal to what tread itself computes from rules.

use crate::settings::Rule;
use tread_guest_sdk::glob;

/// How closely a pattern names what it matches: one without globs most, of
/// others the one with more in front of the first glob character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Closeness {
    exact: bool,
    literal: usize,
}

/// The rule with the closest pattern that matches; of equals the first.
pub(crate) fn deciding<'a>(rules: &'a [Rule], id: &str) -> Option<&'a Rule> {
    let mut best: Option<(Closeness, &Rule)> = None;
    for rule in rules {
        for pattern in &rule.r#match {
            let closeness = closeness(pattern);
            if best.is_none_or(|(most, _)| closeness > most) && matches(pattern, id) {
                best = Some((closeness, rule));
            }
        }
    }
    best.map(|(_, rule)| rule)
}

fn matches(pattern: &str, id: &str) -> bool {
    match (pattern.split_once(':'), id.split_once(':')) {
        (Some((kind, glob)), Some((of, name))) => kind == of && glob::matches(glob, name),
        _ => pattern == id,
    }
}

fn closeness(pattern: &str) -> Closeness {
    let mut literal = 0;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '*' | '?' | '[' | '{' => return Closeness { exact: false, literal },
            '\\' => literal += characters.next().map_or(0, char::len_utf8),
            other => literal += other.len_utf8(),
        }
    }
    Closeness { exact: true, literal }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Say, Then};
    use serde::Deserialize;

    #[derive(Deserialize)]
    struct Case {
        name: String,
        rules: Vec<Vec<String>>,
        id: String,
        expect: Option<usize>,
    }

    #[test]
    fn the_shared_cases_are_decided_as_tread_decides_them() {
        let cases = include_str!("../../../tests/cases/rules-matching.json");
        let cases: Vec<Case> = serde_json::from_str(cases).unwrap();
        assert!(cases.len() > 20);
        for case in cases {
            let rule = |(at, patterns): (usize, Vec<String>)| Rule {
                r#match: patterns,
                then: Then { answer: Say::Refuse, actions: vec![], reason: at.to_string() },
            };
            let rules: Vec<Rule> = case.rules.into_iter().enumerate().map(rule).collect();
            let decided = deciding(&rules, &case.id).map(|rule| rule.then.reason.parse().unwrap());
            assert_eq!(decided, case.expect, "{}", case.name);
        }
    }
}
