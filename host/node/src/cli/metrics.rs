//! How the node stands, as Prometheus reads it: for a collector of text files, since nothing
//! on the node listens for it.

use crate::progress::Progress;
use crate::watch::{Report, State};
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use tread_model::digest::Digest;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Config {
    digest: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Operation {
    operation: String,
    phase: Word,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfStep {
    step: String,
    state: Word,
}

/// A word as the status has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Word(String);

impl EncodeLabelValue for Word {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        self.0.encode(encoder)
    }
}

fn word(word: impl fmt::Debug) -> Word {
    Word(format!("{word:?}"))
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

const CONFIG: (&str, &str) = ("tread_node_config_info", "The config last applied, by its digest");
const OPERATION: (&str, &str) = ("tread_node_operation", "1: the last operation, and its phase");
const TOOK: (&str, &str) = (
    "tread_node_step_duration_seconds",
    "How long each step of the last operation took, and how it ended",
);
const WATCHED: (&str, &str) = ("tread_node_drift_watched", "1: drift is watched now");
const DRIFTED: (&str, &str) =
    ("tread_node_drifted_paths", "Paths that are not as the config wants them");
const CHECKED: (&str, &str) = (
    "tread_node_drift_checked_timestamp_seconds",
    "When everything was looked at last, since 1970",
);
const ALL: [(&str, &str); 6] = [CONFIG, OPERATION, TOOK, WATCHED, DRIFTED, CHECKED];

/// All of them as a table, for people.
pub fn table() -> String {
    let mut table = String::from("| metric | what |\n| --- | --- |\n");
    for (name, help) in ALL {
        table.push_str(&format!("| `{name}` | {help} |\n"));
    }
    table
}

/// The name without the unit, which the format adds to it.
fn in_seconds((name, help): (&'static str, &'static str)) -> (&'static str, &'static str) {
    (name.strip_suffix("_seconds").unwrap_or(name), help)
}

/// All of it.
pub(super) fn text(
    has: Option<Digest>,
    progress: Option<&Progress>,
    drift: Option<&Report>,
) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    if let Some(digest) = has {
        // Those who collect text files know no type `info`, and would read nothing.
        let config = Family::<Config, Gauge>::default();
        config.get_or_create(&Config { digest: digest.to_string() }).set(1);
        registry.register(CONFIG.0, CONFIG.1, config);
    }
    if let Some(progress) = progress {
        operation(&mut registry, progress);
    }
    let watched = drift.is_some_and(|drift| drift.state == State::Watching);
    let gauge = |value: i64| {
        let gauge = Gauge::<i64>::default();
        gauge.set(value);
        gauge
    };
    registry.register(WATCHED.0, WATCHED.1, gauge(watched.into()));
    if let Some(drift) = drift {
        let differ = i64::try_from(drift.count).unwrap_or(i64::MAX);
        registry.register(DRIFTED.0, DRIFTED.1, gauge(differ));
        if let Some(checked) = drift.checked {
            let (name, help) = in_seconds(CHECKED);
            registry.register_with_unit(name, help, Unit::Seconds, gauge(number(checked)));
        }
    }
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

fn operation(registry: &mut Registry, progress: &Progress) {
    let phase = Family::<Operation, Gauge>::default();
    let of_it = Operation { operation: progress.operation.clone(), phase: word(progress.phase) };
    phase.get_or_create(&of_it).set(1);
    registry.register(OPERATION.0, OPERATION.1, phase);
    let took = Family::<OfStep, Gauge>::default();
    for step in &progress.steps {
        let of_it = OfStep { step: step.step.clone(), state: word(step.state) };
        took.get_or_create(&of_it).set(number(step.seconds.unwrap_or_default()));
    }
    let (name, help) = in_seconds(TOOK);
    registry.register_with_unit(name, help, Unit::Seconds, took);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::progress::{Phase, StepState};

    #[test]
    fn the_last_operation_and_the_drift_are_told_to_prometheus() {
        let digest = Digest::of(b"one");
        let steps = [tread_model::plan::Step::Reload { unit: "crio.service".to_owned() }];
        let mut progress = Progress::new("1", digest, &steps);
        progress.phase = Phase::Done;
        progress.begins(0);
        progress.ends(0, StepState::Done, "");
        let report = Report::new(State::Watching, "");
        let shown = text(Some(digest), Some(&progress), Some(&report)).unwrap();
        for line in [
            &format!("tread_node_config_info{{digest=\"{digest}\"}} 1"),
            "tread_node_operation{operation=\"1\",phase=\"Done\"} 1",
            "tread_node_step_duration_seconds{step=\"reload crio.service\",state=\"Done\"} 0",
            "tread_node_drift_watched 1",
            "tread_node_drifted_paths 0",
        ] {
            assert!(shown.lines().any(|it| it == line), "{line}: {shown}");
        }
        assert!(text(None, None, None).unwrap().contains("tread_node_drift_watched 0"));
    }

    #[test]
    fn the_table_has_each_metric_that_there_is_and_no_other() {
        let steps = [tread_model::plan::Step::DaemonReload];
        let progress = Progress::new("1", Digest::of(b"one"), &steps);
        let mut report = Report::new(State::Watching, "");
        report.checked = Some(1);
        let shown = text(Some(Digest::of(b"one")), Some(&progress), Some(&report)).unwrap();
        let names = shown.lines().filter(|line| !line.starts_with('#'));
        let mut names: Vec<&str> = names.filter_map(|line| line.split(['{', ' ']).next()).collect();
        names.sort_unstable();
        let mut all: Vec<&str> = ALL.iter().map(|(name, _)| *name).collect();
        all.sort_unstable();
        assert_eq!(names, all, "{shown}");
        assert!(ALL.iter().all(|(name, _)| table().contains(&format!("| `{name}` |"))));
        // What node-exporter reads: it leaves out a file with any other type.
        let types = shown.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        assert!(
            types.clone().count() == ALL.len() && types.clone().all(|it| it.ends_with(" gauge")),
            "{shown}"
        );
    }
}
