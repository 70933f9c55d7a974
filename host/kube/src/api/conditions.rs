//! Conditions: what is true of an object, and since when.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use tread_model::verdict::FailureKind;

/// The API server takes no longer message.
const LONGEST_MESSAGE: usize = 32_768;

/// Each condition that tread writes: on what, its type, and what it says.
pub const ALL: [(&str, &str, &str); 14] = [
    (
        "DisruptionPolicy",
        "Loaded",
        "Whether the newest version was loaded and checked. True: `Loaded`. Unknown: `Waiting` (for its turn \
         to be compiled), `Disabled`. False: `Invalid` (the object says nothing that could be followed), or \
         how it failed, see below. The message names its digest",
    ),
    (
        "DisruptionPolicy",
        "Approved",
        "Whether an admin has to approve what it claims: `Approved`, `NeedsApproval`",
    ),
    ("DisruptionPlan", "Planned", "Whether it could be planned: `Planned`, `CannotBeRead`"),
    (
        "DisruptionPlan",
        "Pending",
        "Whether it is still to happen. True: `NotRendered`, `NotRolledOut`, `Paused`. False: `Over`, \
         `Withdrawn`. Unknown: `NotKnown`, `LeftOut`",
    ),
    (
        "BootImages",
        "SkewWithinLimit",
        "Whether new machines boot images that are new enough. Unknown: the mode is None, or it cannot \
         be told yet",
    ),
    (
        "BootImages",
        "Upgradeable",
        "Whether the images are new enough for an update to the next version; the message says what to do",
    ),
    (
        "BootImages",
        "Degraded",
        "Whether something that says of images cannot be read: `Unreadable`",
    ),
    (
        "BootImages",
        "OtherStreamsWithinLimit",
        "The same of machine resources of another stream than the cluster's, which hold nothing back. True without \
         any: `NoOtherStream`",
    ),
    (
        "BootImages",
        "MachinesJoin",
        "Whether machines of images that are too old or unknown get their nodes in time. False: \
         `MachineStuck`; the message names them with the probable cause",
    ),
    (
        "BootImages",
        "FirstBootsWithinLimit",
        "Where tread serves machines that boot: whether any said at its first boot, within the last day, that its image is \
         too old. False: `MachineStopped` (its kubelet does not start), `MachineWarned`; the message names machine and \
         address",
    ),
    (
        "NodeUpdate",
        "Updated",
        "Whether the node has the newest config of its pool, by its agent's word, and is not cordoned by tread any more. \
         True: `HasIt`. False: `NotYet`, `NeedsAgent`",
    ),
    (
        "Rollout",
        "Serves",
        "Where tread serves machines that boot: whether those of the pool are served, and get a kubeconfig to register with. \
         True: `Bootstraps` (of the bootstrap Secret), `ConfigBrings` (the pool's config has one). False: `NoBootstrapSecret`, \
         `NoKubeconfig` (the Secret has no such key, or nothing in it), `KubeconfigUnreadable` (no text, or too long), where \
         the message names the Secret and its key; and where no machine is served at all `CannotBeServed` (the pool's config \
         has no room for claims), `KeysUnreadable`, `TokensUnreadable` (the Secret of all keys or tokens is spoilt)",
    ),
    (
        "ClusterOperator",
        "Available",
        "With `--block-upgrades`, on ClusterOperator `tread`: always True (`AsExpected`), since OpenShift wants it",
    ),
    (
        "ClusterOperator",
        "Upgradeable",
        "With `--block-upgrades`, on ClusterOperator `tread`: False holds back minor and major updates of \
         OpenShift; the message is that of BootImages",
    ),
];

/// All of them as a table, for people, and how a version may fail.
pub fn table() -> String {
    let mut table = String::from("| on | condition | what |\n| --- | --- | --- |\n");
    for (kind, type_, what) in ALL {
        table.push_str(&format!("| {kind} | {type_} | {what} |\n"));
    }
    let reasons = FailureKind::ALL.iter().map(|kind| format!("`{}`", reason(kind.name())));
    let reasons: Vec<String> = reasons.collect();
    table.push_str(&format!("\nA version fails by one of: {}.\n", reasons.join(", ")));
    table
}

/// A condition as it is found now; [`set`] knows when it became so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// `Loaded`, …
    pub type_: &'static str,
    /// None: it is not known.
    pub status: Option<bool>,
    /// A word in CamelCase, or the stable name of a failure.
    pub reason: String,
    /// A sentence for a person.
    pub message: String,
}

/// Notes a finding among the conditions of an object. What did not change keeps
/// its time, so that an object which is the same gives the same status.
pub fn set(conditions: &mut Vec<Condition>, finding: Finding, generation: i64, now: Timestamp) {
    let status = match finding.status {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    };
    let found = conditions.iter().position(|condition| condition.type_ == finding.type_);
    let since = found
        .and_then(|at| conditions.get(at))
        .filter(|earlier| earlier.status == status)
        .map_or_else(|| Time(now), |earlier| earlier.last_transition_time.clone());
    let condition = Condition {
        type_: finding.type_.to_owned(),
        status: status.to_owned(),
        reason: reason(&finding.reason),
        message: cut(finding.message, LONGEST_MESSAGE),
        last_transition_time: since,
        observed_generation: Some(generation),
    };
    match found.and_then(|at| conditions.get_mut(at)) {
        Some(place) => *place = condition,
        None => conditions.push(condition),
    }
}

/// Stable names have dashes, which the API server does not take in a reason:
/// `out-of-fuel` becomes `OutOfFuel`.
pub fn reason(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    words.collect()
}

/// At most so many bytes of a text.
pub fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        let end = (0..=most.saturating_sub('…'.len_utf8()))
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or_default();
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(status: bool, message: &str) -> Finding {
        Finding {
            type_: "Loaded",
            status: Some(status),
            reason: "out-of-fuel".to_owned(),
            message: message.to_owned(),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_time_is_that_of_the_last_change_of_the_status() {
        let mut conditions = Vec::new();
        for (second, status, since) in [(1, false, 1), (2, false, 1), (3, true, 3), (4, true, 3)] {
            set(&mut conditions, finding(status, &second.to_string()), second, at(second));
            assert_eq!(conditions.len(), 1);
            assert_eq!(conditions[0].last_transition_time, Time(at(since)));
            assert_eq!(conditions[0].message, second.to_string());
            assert_eq!(conditions[0].observed_generation, Some(second));
        }
    }

    #[test]
    fn every_failure_has_a_reason_that_the_api_server_takes() {
        for kind in tread_model::verdict::FailureKind::ALL {
            let reason = reason(kind.name());
            assert!(reason.starts_with(|c: char| c.is_ascii_uppercase()), "{reason}");
            assert!(reason.chars().all(|c| c.is_ascii_alphanumeric()), "{reason}");
        }
        assert_eq!(reason("out-of-fuel"), "OutOfFuel");
    }

    /// What follows a word in the sources of this crate, in quotes.
    fn quoted_after(dir: &std::path::Path, word: &str, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                quoted_after(&path, word, found);
                continue;
            }
            if path.ends_with("tests.rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let source = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
            found.extend(
                source
                    .split(word)
                    .skip(1)
                    .filter_map(|rest| Some(rest.strip_prefix('"')?.split('"').next()?.to_owned())),
            );
        }
    }

    #[test]
    fn the_page_names_every_condition_that_is_written_and_its_reasons() {
        let host = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let (mut types, mut reasons) = (Vec::new(), Vec::new());
        for sources in ["kube/src", "cluster/src", "front/src"].map(|folder| host.join(folder)) {
            quoted_after(&sources, "type_: ", &mut types);
            quoted_after(&sources, "find(", &mut types);
            quoted_after(&sources, "reason: ", &mut reasons);
            quoted_after(&sources, "(Some(false), ", &mut reasons);
            quoted_after(&sources, "(Some(true), ", &mut reasons);
        }
        for words in [&mut types, &mut reasons] {
            words.retain(|it| it.starts_with(|c: char| c.is_ascii_uppercase()));
        }
        assert!(types.len() > 4 && reasons.len() > 6, "{types:?} {reasons:?}");
        let table = table();
        for word in
            types.iter().filter(|it| !["RollingUpdate", "RuntimeDefault"].contains(&it.as_str()))
        {
            assert!(ALL.iter().any(|(_, type_, _)| type_ == word), "{word}");
        }
        for word in reasons {
            assert!(table.contains(&format!("`{word}`")), "{word}");
        }
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("abc".to_owned(), 3), "abc");
        assert_eq!(cut("abcdef".to_owned(), 5), "ab…");
        assert_eq!(cut("äöü".to_owned(), 5), "ä…");
        assert!(cut("ö".repeat(50_000), LONGEST_MESSAGE).len() <= LONGEST_MESSAGE);
    }
}
