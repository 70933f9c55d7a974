//! Conditions: what is true of an object, and since when.

use crate::clean::clean;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use tread_model::verdict::FailureKind;

/// The API server takes no longer message.
const LONGEST_MESSAGE: usize = 32_768;

/// Each condition that tread writes: on what, its type, and what it says.
pub const ALL: [(&str, &str, &str); 22] = [
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
        "Whether it is still to happen. True: `NotRendered`, `NotRolledOut`, `Paused`, \
         `RolloutPaused`. False: `Over`, `Withdrawn`. Unknown: `NotKnown`, `LeftOut`",
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
         True: `HasIt`. False: `NotYet`, `NeedsAgent`, `Lost` (its agent did not end its order in time, or the node is not \
         Ready since)",
    ),
    (
        "NodeUpdate",
        "Joined",
        "Of a node that registered as joining. True: `Joined`. False: `Prepares` (its agent brings first what Ignition \
         cannot), or why it is held, in no pool: `ClaimUnreadable`, `ClaimForged`, `ClaimOld`, `ClaimLater`, `ClaimUsed`, \
         `PoolGone`, `NoLabels`, `Elsewhere`, `KeysUnreadable` (nobody can check claims now), `ClaimsFull` (no other claim \
         can be noted), `RolloutMadeAnew` (nobody knows the taints of its pool's nodes), `NotWritten` (the API server refuses \
         the write); the message has the way out",
    ),
    (
        "Rollout",
        "Updated",
        "Whether all nodes of the pool have its newest config, and none is cordoned by tread any more. True: `AllHaveIt`. \
         False: `NotYet`; the message says how far it is",
    ),
    (
        "Rollout",
        "Progressing",
        "Whether something goes on in the pool. True: `UnderWay`, `Uncordons` (all have it, and some are still cordoned), \
         `Failed` (one failed, and others are still under way). False: `AllHaveIt`, `Halted`, `Failed`, `MadeAnew` \
         (its Rollout was removed: the one that tread made anew is paused), `Waiting` (it is nobody's turn; \
         `status.waiting` says why)",
    ),
    (
        "Rollout",
        "Rendered",
        "Whether the config of the pool could be made. True: `Rendered`. False: `NoMachineConfigs` (it selects none), \
         `Unreadable`, `Rejected` (a field that would reach no node), `TooLarge`, `ReadsOtherwise`, `NotRead` (the API \
         server did not give what it is made of, or the pool cannot be read), `Interrupted`; its nodes keep what they have",
    ),
    (
        "Rollout",
        "Serves",
        "Where tread serves machines that boot: whether those of the pool are served, and get a kubeconfig to register with. \
         True: `Bootstraps` (of the bootstrap Secret), `ConfigBrings` (the pool's config has one). False: `NoBootstrapSecret`, \
         `NoKubeconfig` (the Secret has no such key, or nothing in it), `KubeconfigUnreadable` (no text, or too long), where \
         the message names the Secret and its key; `NoLabels` (they are served, and their nodes are held, since the pool's \
         selector leaves open which labels they get); `CannotBeServed` (the config that they would get has no room for \
         claims, so that none is served; or where nodes have joined by theirs, that which the pool is to have: delete none of \
         their Nodes before that is mended); and where no machine is served at all `KeysUnreadable`, `TokensUnreadable` (the \
         Secret of all keys or tokens is spoilt)",
    ),
    (
        "Node",
        "MaintenancePlanned",
        "True: it is the node's turn, and it is about to be cordoned and drained. These four are there only while tread \
         drains a node for a change, with the reason `TreadUpdate`; others write the same for their own reasons",
    ),
    ("Node", "DrainInProgress", "True: it is cordoned, and pods are being moved. False: they are"),
    (
        "Node",
        "Drained",
        "False: pods are still being moved. True: they are, also of a node that failed and was left cordoned",
    ),
    (
        "Node",
        "MaintenanceInProgress",
        "True: it is drained, and its agent may change it and boot it",
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

/// Notes a finding among the conditions of an object, cleaned of what drives a terminal. What did
/// not change keeps its time, so that an object which is the same gives the same status.
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
        message: cut(clean(&finding.message), LONGEST_MESSAGE),
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
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};

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
    fn no_condition_drives_a_terminal() {
        let mut conditions = Vec::new();
        let odd = "a\u{1b}[31m\u{202e}b\u{7}\nforged: line";
        for second in [1, 2] {
            set(&mut conditions, finding(false, odd), second, at(second));
            assert_eq!(conditions[0].message, "a [31m b; forged: line");
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

    /// The sources of a folder without their tests, by path.
    fn sources(dir: &Path, found: &mut BTreeMap<PathBuf, String>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if !path.ends_with("tests.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let source = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default().to_owned();
                found.insert(path, source);
            }
        }
    }

    /// A word as conditions have: in CamelCase.
    fn is_word(text: &str) -> bool {
        let is_lower = |c: char| c.is_ascii_lowercase();
        text.starts_with(|c: char| c.is_ascii_uppercase())
            && text.chars().all(|c| c.is_ascii_alphanumeric())
            && text.contains(is_lower)
    }

    /// What stands there in quotes, or what the constant says that is named there.
    fn said(rest: &str, constants: &BTreeMap<String, String>) -> Option<String> {
        if let Some(quoted) = rest.strip_prefix('"') {
            return Some(quoted.split('"').next()?.to_owned());
        }
        let name = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
        constants.get(name).cloned()
    }

    /// The constants that say a word, by name.
    fn constants<'s>(sources: impl Iterator<Item = &'s String>) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for line in sources.flat_map(|source| source.lines()) {
            if let Some((_, rest)) = line.split_once("const ")
                && let Some((name, value)) = rest.split_once(": &str = \"")
                && let Some(value) = value.strip_suffix("\";").filter(|value| is_word(value))
            {
                all.insert(name.to_owned(), value.to_owned());
            }
        }
        all
    }

    #[test]
    fn the_page_names_every_condition_that_is_written_and_its_reasons() {
        /// Each word of these is a type or a reason, or one of those that follow.
        const OF_WORDS: [&str; 5] = [
            "enforce/src/conditions.rs",
            "enforce/src/rollouts/findings.rs",
            "enforce/src/rollouts/joining/bootstrap.rs",
            "model/src/joining/settle.rs",
            "model/src/rendering/unrendered.rs",
        ];
        const NO_WORDS: [&str; 2] = ["True", "False"];
        let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let (mut written, mut models) = (BTreeMap::new(), BTreeMap::new());
        for folder in ["kube/src", "cluster/src", "front/src", "enforce/src"] {
            sources(&host.join(folder), &mut written);
        }
        sources(&host.join("model/src"), &mut models);
        let constants = constants(written.values().chain(models.values()));
        let after = |word: &str| -> Vec<String> {
            let rests = written.values().flat_map(|source| source.split(word).skip(1));
            rests.filter_map(|rest| said(rest, &constants)).filter(|it| is_word(it)).collect()
        };
        let mut types: Vec<String> =
            ["type_: ", "type_ = ", "find(", "finding("].into_iter().flat_map(after).collect();
        let reasons: Vec<String> =
            ["reason: ", "reason = ", "word: ", "(Some(false), ", "(Some(true), "]
                .into_iter()
                .flat_map(after)
                .collect();
        types.retain(|it| !["RollingUpdate", "RuntimeDefault"].contains(&it.as_str()));
        for found in ["Loaded", "Pending", "Joined", "Serves", "Progressing", "MachinesJoin"] {
            assert!(types.iter().any(|it| it == found), "{found}: {types:?}");
        }
        for found in ["Prepares", "NotRead", "AsExpected"] {
            assert!(reasons.iter().any(|it| it == found), "{found}: {reasons:?}");
        }
        for word in types {
            assert!(ALL.iter().any(|(_, type_, _)| *type_ == word), "{word}");
        }
        let table = table();
        for word in reasons {
            assert!(table.contains(&format!("`{word}`")), "{word}");
        }
        for file in OF_WORDS {
            let path = host.join(file);
            let source = written.get(&path).or_else(|| models.get(&path)).unwrap();
            let quoted = source.split('"').skip(1).step_by(2);
            let words: Vec<&str> =
                quoted.filter(|it| is_word(it) && !NO_WORDS.contains(it)).collect();
            assert!(words.len() > 3, "{file}: {words:?}");
            for word in words {
                let is_type = ALL.iter().any(|(_, type_, _)| *type_ == word);
                assert!(is_type || table.contains(&format!("`{word}`")), "{file}: {word}");
            }
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
