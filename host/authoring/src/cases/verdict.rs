//! What a case expects of one policy alone.
//!
//! ```yaml
//! expect:
//!   verdicts:                      # every change that it is offered, by id
//!     file:/etc/chrony.conf:
//!       answer: act                # or abstain, refuse, or the name of a failure
//!       actions: [restart chronyd.service]   # none at all: []
//!       reason: /servers/          # words, or a /pattern/
//! ```

use super::field;
use super::reason::Reason;
use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use tread_model::unit_name::can_be_restarted;
use tread_model::verdict::{Action, Answer, Failure, FailureKind, Verdict};

/// What is expected for one change. What is not given is not looked at.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExpectedVerdict {
    /// `act`, `abstain`, `refuse`, or the stable name of a failure.
    pub answer: Option<String>,
    /// What it asks for, as [`action_line`] puts each; in any order.
    pub actions: Option<Vec<String>>,
    /// What the reason says.
    pub reason: Option<Reason>,
}

/// What a policy said of one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// As [`ExpectedVerdict::answer`].
    pub answer: &'static str,
    /// As [`ExpectedVerdict::actions`].
    pub actions: Vec<String>,
    /// Why; of a failure, what happened.
    pub reason: String,
}

impl Given {
    /// Of a verdict; none: it said nothing, and so abstains.
    pub fn verdict(verdict: Option<&Verdict>) -> Given {
        let Some(Verdict { answer, reason }) = verdict else {
            return Given { answer: "abstain", actions: Vec::new(), reason: String::new() };
        };
        let (answer, actions) = match answer {
            Answer::Abstain => ("abstain", [].as_slice()),
            Answer::Act(actions) => ("act", actions.as_slice()),
            Answer::Refuse => ("refuse", [].as_slice()),
        };
        let actions = actions.iter().map(action_line).collect();
        Given { answer, actions, reason: reason.clone() }
    }

    /// `act (restart a.service): the reason`.
    pub fn in_words(&self) -> String {
        let reason = if self.reason.is_empty() { "" } else { ": " };
        format!("{}{reason}{}", described(self), self.reason)
    }

    fn is_failure(&self) -> bool {
        !["act", "abstain", "refuse"].contains(&self.answer)
    }

    /// Of a call that failed.
    pub fn failure(failure: &Failure) -> Given {
        let Failure { kind, message } = failure;
        Given { answer: kind.name(), actions: Vec::new(), reason: message.clone() }
    }
}

/// An action in words: `restart chronyd.service`, `reboot-undrained`.
pub fn action_line(action: &Action) -> String {
    match action {
        Action::Reload(unit) => format!("reload {unit}"),
        Action::Restart(unit) => format!("restart {unit}"),
        Action::DaemonReload => "daemon-reload".to_owned(),
        Action::Drain => "drain".to_owned(),
        Action::Reboot => "reboot".to_owned(),
        Action::RebootUndrained => "reboot-undrained".to_owned(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with some of answer, actions and reason")]
struct Written {
    answer: Option<String>,
    actions: Option<Vec<String>>,
    reason: Option<String>,
}

/// Reads what is expected for each change.
pub(super) fn read(written: BTreeMap<String, Value>) -> Result<BTreeMap<String, ExpectedVerdict>> {
    let read = |(id, value)| {
        let verdict = verdict(value).with_context(|| format!("verdicts: {id}"))?;
        Ok((id, verdict))
    };
    written.into_iter().map(read).collect()
}

fn verdict(value: Value) -> Result<ExpectedVerdict> {
    let Written { answer, actions, reason } = field::read(value)?;
    ensure!(
        answer.is_some() || actions.is_some() || reason.is_some(),
        "expected answer, actions or reason"
    );
    let acts = answer.as_deref().is_none_or(|answer| answer == "act");
    ensure!(acts || actions.is_none(), "actions: only `answer: act` has some");
    if let Some(answer) = &answer {
        let failures = FailureKind::ALL.iter().map(|kind| kind.name());
        let mut all = ["act", "abstain", "refuse"].into_iter().chain(failures);
        ensure!(
            all.any(|known| known == answer),
            "answer: {answer:?} is none of act, abstain, refuse and the names of failures; what is \
             to be done is in `actions`"
        );
    }
    actions.iter().flatten().try_for_each(|action| check_action(action)).context("actions")?;
    let answer = answer.or_else(|| actions.is_some().then(|| "act".to_owned()));
    let reason = reason.map(Reason::new).transpose().context("reason")?;
    Ok(ExpectedVerdict { answer, actions, reason })
}

fn check_action(action: &str) -> Result<()> {
    match action.split_once(' ') {
        None if ["daemon-reload", "drain", "reboot", "reboot-undrained"].contains(&action) => {
            Ok(())
        }
        Some(("reload" | "restart", unit)) if can_be_restarted(unit) => Ok(()),
        _ => bail!(
            "{action:?} is none of reload UNIT, restart UNIT, daemon-reload, drain, reboot and \
             reboot-undrained, with units such as crio.service"
        ),
    }
}

impl ExpectedVerdict {
    /// Where what was said is not what was expected, in sentences.
    pub fn compare(&self, id: &str, given: &Given, differences: &mut Vec<String>) {
        if let Some(expected) = self.answer.as_deref().filter(|it| *it != given.answer) {
            let mut line = format!("{id}: answered {}, expected {expected}", described(given));
            // What a failure says is told behind it, with more.
            if !given.reason.is_empty() && !given.is_failure() {
                line += &format!(" (it said: {})", given.reason);
            }
            differences.push(line);
            // The rest would only say the same again.
            return;
        }
        let sorted = |actions: &[String]| {
            let mut sorted = actions.to_vec();
            sorted.sort();
            sorted
        };
        let actions = self.actions.as_ref();
        if let Some(expected) = actions.filter(|it| sorted(it) != sorted(&given.actions)) {
            let (found, expected) = (list(&given.actions), list(expected));
            differences.push(format!("{id}: asked for {found}, expected {expected}"));
        }
        if let Some(expected) = self.reason.as_ref().filter(|it| !it.matches(&given.reason)) {
            let (found, expected) = (&given.reason, &expected.written);
            differences.push(format!("{id}: the reason is {found:?}, expected {expected:?}"));
        }
    }
}

fn described(given: &Given) -> String {
    match given.answer {
        "act" => format!("act ({})", list(&given.actions)),
        other => other.to_owned(),
    }
}

fn list(actions: &[String]) -> String {
    if actions.is_empty() { "no action".to_owned() } else { actions.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn one(value: Value) -> Result<ExpectedVerdict> {
        read(BTreeMap::from([("file:/etc/a".to_owned(), value)]))
            .map(|mut all| all.remove("file:/etc/a").unwrap_or_default())
    }

    fn acts() -> Given {
        let actions = vec![Action::Restart("a.service".to_owned()), Action::Drain];
        let verdict = Verdict { answer: Answer::Act(actions), reason: "two servers".to_owned() };
        Given::verdict(Some(&verdict))
    }

    #[test]
    fn what_is_as_expected_has_no_differences() {
        for expected in [
            json!({"answer": "act"}),
            json!({"actions": ["drain", "restart a.service"]}),
            json!({"answer": "act", "actions": ["restart a.service", "drain"]}),
            json!({"reason": "/two S/"}),
        ] {
            let mut differences = Vec::new();
            one(expected.clone()).unwrap().compare("x", &acts(), &mut differences);
            assert_eq!(differences, Vec::<String>::new(), "{expected}");
        }
    }

    #[test]
    fn each_thing_that_is_not_as_expected_is_a_difference() {
        let failure = Failure { kind: FailureKind::Trap, message: "it broke".to_owned() };
        for (expected, given, part) in [
            (
                json!({"answer": "refuse"}),
                acts(),
                "act (restart a.service, drain), expected refuse",
            ),
            (json!({"actions": []}), acts(), "expected no action"),
            (json!({"reason": "three"}), acts(), "\"two servers\", expected \"three\""),
            (json!({"actions": []}), Given::verdict(None), "abstain, expected act"),
            (json!({"answer": "act"}), Given::failure(&failure), "trap, expected act"),
        ] {
            let mut differences = Vec::new();
            one(expected).unwrap().compare("x", &given, &mut differences);
            assert_eq!(differences.len(), 1, "{differences:?}");
            assert!(differences[0].contains(part), "{part} in {differences:?}");
        }
        let mut differences = Vec::new();
        let failed = Given::failure(&failure);
        one(json!({"answer": "trap", "reason": "broke"})).unwrap().compare(
            "x",
            &failed,
            &mut differences,
        );
        assert_eq!(differences, Vec::<String>::new());
    }

    #[test]
    fn what_an_expectation_cannot_say_is_an_error_that_names_it() {
        for (value, part) in [
            (json!({}), "expected answer"),
            (json!({"answer": "ok"}), "names of failures"),
            (json!({"answer": "abstain", "actions": []}), "only `answer: act`"),
            (json!({"actions": ["restart crio"]}), "restart crio"),
            (json!({"actions": ["update-ca-trust"]}), "update-ca-trust"),
            (json!({"verdict": "act"}), "`verdict`"),
            (json!({"reason": "/(/"}), "reason"),
        ] {
            let message = format!("{:#}", one(value).unwrap_err());
            assert!(message.contains(part), "{part} in {message}");
            assert!(message.contains("file:/etc/a"), "{message}");
        }
    }
}
