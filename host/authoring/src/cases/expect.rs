//! What a case expects of a plan, and where a plan differs from it.

use super::field;
use super::reason::Reason;
use super::verdict::{self, ExpectedVerdict};
use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use tread_model::plan::{ChangeOutcome, Plan, PlanOutcome, PlannedChange, Step};

/// What a change is expected to cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Expect {
    /// As [`plan_line`] puts it; None where the case is about one policy only.
    pub plan: Option<String>,
    /// Every change, by id; None where the case does not look at them.
    pub changes: Option<BTreeMap<String, ExpectedChange>>,
    /// What the policy that is tested answers for every change that it is
    /// offered, by id; None where the case is about the plan only.
    pub verdicts: Option<BTreeMap<String, ExpectedVerdict>>,
}

/// What is expected of one change. What is not given is not looked at.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExpectedChange {
    /// The policy that decided.
    pub by: Option<String>,
    /// How the decision came about.
    pub outcome: Option<ChangeOutcome>,
    /// What it asks for by itself: `reload crio.service`.
    pub actions: Option<Vec<String>>,
    /// What the reason says.
    pub reason: Option<Reason>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with verdicts or plan")]
pub(super) struct Written {
    plan: Option<String>,
    changes: Option<BTreeMap<String, Value>>,
    verdicts: Option<BTreeMap<String, Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with some of by, outcome, actions and reason")]
struct WrittenChange {
    by: Option<String>,
    outcome: Option<String>,
    actions: Option<Vec<String>>,
    reason: Option<String>,
}

impl Expect {
    pub(super) fn new(written: Written) -> Result<Expect> {
        match (&written.plan, &written.changes, &written.verdicts) {
            (Some(plan), _, _) => check_line(plan).context("plan")?,
            (None, Some(_), _) => bail!("changes: the plan is expected too: add `plan`"),
            (None, None, _) => {}
        }
        let changes = written.changes.map(|changes| {
            let changes = changes.into_iter().map(|(id, change)| {
                let change = ExpectedChange::new(change).with_context(|| format!("changes: {id}"));
                change.map(|change| (id, change))
            });
            changes.collect::<Result<_>>()
        });
        let verdicts = written.verdicts.filter(|verdicts| !verdicts.is_empty());
        let verdicts = verdicts.map(verdict::read).transpose()?;
        Ok(Expect { plan: written.plan, changes: changes.transpose()?, verdicts })
    }

    /// Whether it expects nothing yet.
    pub fn is_open(&self) -> bool {
        self.plan.is_none() && self.verdicts.is_none()
    }

    /// Where a plan is not what was expected, in sentences; empty if it is.
    pub fn differences(&self, plan: &Plan) -> Vec<String> {
        let mut differences = Vec::new();
        let line = plan_line(plan);
        match &self.plan {
            Some(expected) if *expected == line => {}
            Some(expected) => {
                differences.push(format!("the plan is \"{line}\", expected \"{expected}\""));
            }
            None => differences.push("nothing is expected of the plan: add `plan`".to_owned()),
        }
        let Some(expected) = &self.changes else { return differences };
        for change in &plan.changes {
            match expected.get(&change.id) {
                Some(expected) => expected.compare(change, &mut differences),
                None => differences.push(format!("{} changes, and was not expected to", change.id)),
            }
        }
        for id in expected.keys().filter(|id| plan.changes.iter().all(|it| it.id != **id)) {
            differences.push(format!("{id} was expected to change, and does not"));
        }
        differences
    }
}

impl ExpectedChange {
    fn new(written: Value) -> Result<ExpectedChange> {
        let written: WrittenChange = field::read(written)?;
        for action in written.actions.iter().flatten() {
            check_word(action).context("actions")?;
        }
        Ok(ExpectedChange {
            by: written.by,
            outcome: written.outcome.map(|outcome| parse_outcome(&outcome)).transpose()?,
            actions: written.actions,
            reason: written.reason.map(Reason::new).transpose().context("reason")?,
        })
    }

    fn compare(&self, change: &PlannedChange, differences: &mut Vec<String>) {
        let id = &change.id;
        let by = change.decided_by.as_ref().map(|policy| policy.policy.as_str());
        if self.by.is_some() && self.by.as_deref() != by {
            let (found, expected) =
                (by.unwrap_or("nobody"), self.by.as_deref().unwrap_or_default());
            differences.push(format!("{id} is decided by {found}, expected {expected}"));
        }
        if let Some(expected) = self.outcome.filter(|outcome| *outcome != change.outcome) {
            let (found, expected) = (outcome_word(change.outcome), outcome_word(expected));
            differences.push(format!("{id} is {found}, expected {expected}"));
        }
        let actions: Vec<String> = change.actions.iter().map(Step::to_string).collect();
        if let Some(expected) = self.actions.as_ref().filter(|expected| **expected != actions) {
            differences.push(format!("{id} asks for {actions:?}, expected {expected:?}"));
        }
        if let Some(expected) = self.reason.as_ref().filter(|it| !it.matches(&change.reason)) {
            let (found, expected) = (&change.reason, &expected.written);
            differences.push(format!("the reason of {id} is \"{found}\", expected \"{expected}\""));
        }
    }
}

/// A plan in one line: `nothing`, `refuse`, `no action` (only files are
/// written), `reboot` (drained), `reboot without drain`, or the steps in their
/// order: `drain, reload crio.service`.
pub fn plan_line(plan: &Plan) -> String {
    match plan.outcome {
        PlanOutcome::Nothing => return "nothing".to_owned(),
        PlanOutcome::Refuse => return "refuse".to_owned(),
        PlanOutcome::Apply => {}
    }
    if plan.reboot {
        return if plan.drain { "reboot" } else { "reboot without drain" }.to_owned();
    }
    let steps: Vec<String> = plan
        .steps
        .iter()
        .filter(|step| !matches!(step, Step::Write | Step::Uncordon))
        .map(Step::to_string)
        .collect();
    if steps.is_empty() { "no action".to_owned() } else { steps.join(", ") }
}

const WHOLE_LINES: [&str; 5] = ["nothing", "no action", "refuse", "reboot", "reboot without drain"];

/// A line that no plan can ever have is a mistake in the case.
fn check_line(line: &str) -> Result<()> {
    if WHOLE_LINES.contains(&line) {
        return Ok(());
    }
    let mut last = (0, "");
    for word in line.split(", ") {
        let place = check_word(word)?;
        ensure!(place.0 < 5, "{word} stands alone");
        ensure!(last < place, "{word} comes earlier, and only once");
        last = place;
    }
    Ok(())
}

/// Where an action stands among the steps: its rank, then its unit.
fn check_word(word: &str) -> Result<(u8, &str)> {
    Ok(match word.split_once(' ') {
        None if word == "drain" => (1, ""),
        None if word == "update-ca-trust" => (2, ""),
        None if word == "daemon-reload" => (3, ""),
        None if word == "reboot" => (5, ""),
        Some(("reload" | "restart", unit)) if unit.contains('.') && !unit.contains(' ') => {
            (4, unit)
        }
        _ => bail!(
            "\"{word}\" is none of drain, update-ca-trust, daemon-reload, reload UNIT, restart \
             UNIT (by comma, in this order), nor one of {}",
            WHOLE_LINES.join(", ")
        ),
    })
}

const OUTCOMES: [(&str, ChangeOutcome); 4] = [
    ("decided", ChangeOutcome::Decided),
    ("fallback", ChangeOutcome::Fallback),
    ("failed", ChangeOutcome::Failed),
    ("refused", ChangeOutcome::Refused),
];

fn parse_outcome(word: &str) -> Result<ChangeOutcome> {
    let found = OUTCOMES.iter().find(|(name, _)| *name == word);
    found
        .map(|(_, outcome)| *outcome)
        .with_context(|| format!("outcome: expected {}", OUTCOMES.map(|(name, _)| name).join(", ")))
}

pub(crate) fn outcome_word(outcome: ChangeOutcome) -> &'static str {
    OUTCOMES.iter().find(|(_, it)| *it == outcome).map_or("", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tread_model::digest::Digest;
    use tread_model::plan::{Decided, build};

    fn expect(value: Value) -> Result<Expect> {
        Expect::new(serde_json::from_value(value)?)
    }

    /// A plan with one change that nobody decided on.
    fn fallback() -> Plan {
        let digest = Digest::of(b"");
        let edit = tread_model::change::Edit::Changed;
        let (id, statements) = ("file:/etc/a".to_owned(), Vec::new());
        let change = Decided { id, edit, statements, settled: None };
        build((digest, digest), vec![change], &[], Vec::new(), true)
    }

    #[test]
    fn a_plan_is_one_line_without_what_every_plan_does() {
        let mut plan = fallback();
        assert_eq!(plan_line(&plan), "reboot");
        plan.drain = false;
        assert_eq!(plan_line(&plan), "reboot without drain");
        plan.reboot = false;
        let unit = "crio.service".to_owned();
        plan.steps = vec![Step::Drain, Step::Write, Step::Reload { unit }, Step::Uncordon];
        assert_eq!(plan_line(&plan), "drain, reload crio.service");
        plan.steps = vec![Step::Write];
        assert_eq!(plan_line(&plan), "no action");
        plan.outcome = PlanOutcome::Refuse;
        assert_eq!(plan_line(&plan), "refuse");
    }

    #[test]
    fn a_line_that_no_plan_can_have_is_a_mistake_in_the_case() {
        for good in [
            "nothing",
            "reboot without drain",
            "drain",
            "drain, update-ca-trust, daemon-reload, reload a.service, restart b.service",
        ] {
            assert!(check_line(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "none",
            "reload",
            "reload crio",
            "drain, reboot",
            "restart b.service, reload a.service",
            "reload a.service, restart a.service",
            "reload a.service, drain",
            "reload a.service,restart b.service",
        ] {
            assert!(check_line(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_plan_that_is_as_expected_has_no_differences() {
        let changes = json!({"file:/etc/a": {"outcome": "fallback", "actions": ["reboot"]}});
        let expect = expect(json!({"plan": "reboot", "changes": changes})).unwrap();
        assert_eq!(expect.differences(&fallback()), Vec::<String>::new());
    }

    #[test]
    fn each_thing_that_is_not_as_expected_is_a_difference() {
        let plan = fallback();
        for (expected, part) in [
            (json!({"plan": "nothing"}), "expected \"nothing\""),
            (json!({"plan": "reboot", "changes": {}}), "was not expected to"),
            (json!({"plan": "reboot", "changes": {"file:/etc/a": {"by": "x"}}}), "by nobody"),
            (
                json!({"plan": "reboot", "changes": {"file:/etc/a": {"outcome": "decided"}}}),
                "is fall",
            ),
            (json!({"plan": "reboot", "changes": {"file:/etc/a": {"actions": []}}}), "asks for"),
            (json!({"plan": "reboot", "changes": {"file:/etc/a": {"reason": "/^x$/"}}}), "reason"),
        ] {
            let differences = expect(expected).unwrap().differences(&plan);
            assert_eq!(differences.len(), 1, "{differences:?}");
            assert!(differences[0].contains(part), "{part} in {differences:?}");
        }
        let both = json!({"file:/etc/a": {}, "unit:b.service": {}});
        let differences = expect(json!({"plan": "reboot", "changes": both})).unwrap();
        assert_eq!(
            differences.differences(&plan),
            ["unit:b.service was expected to change, and does not"]
        );
    }

    #[test]
    fn a_reason_is_a_pattern_between_slashes_or_words() {
        let pattern = Reason::new("/mirror .* added/".to_owned()).unwrap();
        assert!(pattern.matches("A mirror for x is added"));
        assert!(!pattern.matches("A mirror is removed"));
        let words = Reason::new("a.b".to_owned()).unwrap();
        assert!(words.matches("in a.b") && !words.matches("in aXb"));
        assert!(Reason::new("/(/".to_owned()).is_err());
        assert!(Reason::new(String::new()).is_err());
    }

    #[test]
    fn what_expects_nothing_yet_can_be_read_and_is_never_as_expected() {
        for value in [json!({}), json!({"verdicts": {}}), json!({"verdicts": null})] {
            let open = expect(value).unwrap();
            assert!(open.is_open());
            assert_eq!(open.differences(&fallback()).len(), 1);
        }
    }

    #[test]
    fn what_an_expectation_does_not_have_is_an_error_that_names_it() {
        for (value, part) in [
            (json!({"plan": "nothing", "change": {}}), "`change`"),
            (json!({"plan": "reload"}), "reload"),
            (json!({"plan": "nothing", "changes": {"x": {"why": ""}}}), "changes: x: unknown"),
            (json!({"plan": "nothing", "changes": {"x": {"outcome": "ok"}}}), "fallback"),
            (json!({"plan": "nothing", "changes": {"x": {"actions": ["stop"]}}}), "stop"),
            (json!({"changes": {}}), "`plan`"),
        ] {
            let message = format!("{:#}", expect(value).unwrap_err());
            assert!(message.contains(part), "{part} in {message}");
        }
    }
}
