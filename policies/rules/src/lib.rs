//! Carries out rules that an admin writes: the most specific pattern that
//! matches a change decides. tread computes what a set of rules claims and may
//! answer; what stands here as the claims is as wide as rules can be.

mod matching;
mod settings;

use settings::{Do, Rules, Say, Then};
use tread_guest_sdk::{Action, Change, Claim, Context, Effect, Policy, Verdict, export};

/// The policy `rules`.
pub struct ByRules;

const fn any(changes: &'static str) -> Claim {
    Claim::on(changes, Effect::None, Effect::Refuse)
}

impl Policy for ByRules {
    type Settings = Rules;
    const NAME: &'static str = "rules";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "Answers by rules that an admin writes";
    const CLAIMS: &'static [Claim] = &[
        any("file:/**"),
        any("unit:**"),
        any("ssh-keys:**"),
        any("password:**"),
        any("kernel-arguments"),
        any("kernel-type"),
        any("os-image"),
        any("extensions"),
    ];

    fn schema() -> Option<String> {
        Some(include_str!("schema.json").to_string())
    }

    fn check(settings: &Rules) -> Result<(), Vec<String>> {
        let errors: Vec<String> = settings
            .rules
            .iter()
            .enumerate()
            .filter_map(|(at, rule)| Some(format!("rules[{at}]: {}", rule.fault()?)))
            .collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    fn classify(settings: &Rules, change: &Change, _: &Context<'_>) -> Verdict {
        matching::deciding(&settings.rules, &change.id)
            .map_or_else(Verdict::abstain, |rule| verdict(&rule.then))
    }
}

export!(ByRules);

fn verdict(then: &Then) -> Verdict {
    match then.answer {
        Say::Abstain => Verdict::abstain(),
        Say::Refuse => Verdict::refuse(&then.reason),
        Say::Act => Verdict::act(then.actions.iter().map(action).collect(), &then.reason),
    }
}

fn action(wanted: &settings::Wanted) -> Action {
    let unit = || wanted.unit.clone().unwrap_or_default();
    match wanted.what {
        Do::Reload => Action::Reload(unit()),
        Do::Restart => Action::Restart(unit()),
        Do::DaemonReload => Action::DaemonReload,
        Do::Drain => Action::Drain,
        Do::Reboot => Action::Reboot,
        Do::RebootUndrained => Action::RebootUndrained,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_guest_sdk::test;

    fn verdicts(rules: &str, changes: Vec<Change>) -> Vec<Verdict> {
        let settings = test::settings::<ByRules>(rules).unwrap();
        // An admin's rules may say what a policy of a template may not.
        ByRules::classify_all(&settings, &Context { changes: &changes, unchanged: &[] })
    }

    #[test]
    fn each_answer_of_a_rule_becomes_a_verdict() {
        let rules = r#"{"rules": [
            {"match": ["file:/etc/a"], "then": {"answer": "act", "reason": "all", "actions": [
                {"do": "reload", "unit": "a.service"}, {"do": "restart", "unit": "b@1.service"},
                {"do": "daemon-reload"}, {"do": "drain"}, {"do": "reboot"}, {"do": "reboot-undrained"}]}},
            {"match": ["file:/etc/b"], "then": {"answer": "act", "actions": [], "reason": "none"}},
            {"match": ["file:/etc/c"], "then": {"answer": "refuse", "reason": "not here"}},
            {"match": ["file:/etc/d"], "then": {"answer": "abstain"}}
        ]}"#;
        let changes = ["a", "b", "c", "d", "e"];
        let changes = changes.map(|name| test::file(&format!("/etc/{name}"), "1", "2")).to_vec();
        let all = vec![
            Action::reload("a.service"),
            Action::restart("b@1.service"),
            Action::DaemonReload,
            Action::Drain,
            Action::Reboot,
            Action::RebootUndrained,
        ];
        assert_eq!(
            verdicts(rules, changes),
            [
                Verdict::act(all, "all"),
                Verdict::nothing("none"),
                Verdict::refuse("not here"),
                Verdict::abstain(),
                Verdict::abstain(),
            ]
        );
    }

    #[test]
    fn wrong_rules_are_refused_by_name() {
        for (rules, fault) in [
            (r#"{"rule": []}"#, "rule: there is no such setting; there are: rules"),
            (
                r#"{"rules": [{"match": ["file:/a"], "then": {"answer": "act", "actions":
                [{"do": "reload"}], "reason": "x"}}]}"#,
                "rules[0]: reload needs a unit",
            ),
            (
                r#"{"rules": [{"match": ["file:/a"], "then": {"answer": "act", "actions":
                [{"do": "drain", "unit": "a.service"}], "reason": "x"}}]}"#,
                "rules[0]: only reload and restart take a unit",
            ),
            (
                r#"{"rules": [{"match": ["file:/a"], "then": {"answer": "refuse"}}]}"#,
                "rules[0]: it says no reason",
            ),
            (
                r#"{"rules": [{"match": ["file:/a"], "then": {"answer": "abstain",
                "actions": [{"do": "drain"}]}}]}"#,
                "rules[0]: only an answer that acts has actions",
            ),
            (
                r#"{"rules": [{"match": [], "then": {"answer": "abstain"}}]}"#,
                "rules[0]: it matches nothing",
            ),
        ] {
            assert_eq!(
                test::settings::<ByRules>(rules).err(),
                Some(vec![fault.to_string()]),
                "{rules}"
            );
        }
        for rules in [
            r#"{"rules": [{"match": ["file:/a"], "then": {"answer": "act", "do": []}}]}"#,
            r#"{"rules": [{"match": ["file:/a"], "then": {"answer": "maybe"}}]}"#,
            r#"{"rules": [{"match": "file:/a", "then": {"answer": "abstain"}}]}"#,
            r#"{"rules": {}}"#,
        ] {
            let errors = test::settings::<ByRules>(rules).err().unwrap();
            assert!(errors.len() == 1 && errors[0].starts_with("rules: "), "{errors:?}");
        }
    }

    #[test]
    fn without_rules_it_abstains() {
        let verdict = test::verdict::<ByRules>(test::file("/etc/a", "1", "2"));
        assert_eq!(verdict, Verdict::abstain());
    }
}
