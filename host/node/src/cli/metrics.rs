//! How the node stands, as Prometheus reads it: for a collector of text files, since nothing
//! on the node listens for it.

use crate::progress::Progress;
use crate::watch::{Report, State};
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use tread_model::digest::Digest;

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

/// All of it.
pub(super) fn text(
    has: Option<Digest>,
    progress: Option<&Progress>,
    drift: Option<&Report>,
) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("tread_node");
    if let Some(digest) = has {
        let config = Info::new([("digest", digest.to_string())]);
        registry.register("config", "The config last applied", config);
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
    registry.register("drift_watched", "Whether drift is watched now", gauge(watched.into()));
    if let Some(drift) = drift {
        let differ = i64::try_from(drift.count).unwrap_or(i64::MAX);
        registry.register(
            "drifted_paths",
            "Paths that are not as the config wants them",
            gauge(differ),
        );
        if let Some(checked) = drift.checked {
            let help = "When everything was looked at last, since 1970";
            let unit = Unit::Seconds;
            registry.register_with_unit(
                "drift_checked_timestamp",
                help,
                unit,
                gauge(number(checked)),
            );
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
    registry.register("operation", "The last operation, and its phase", phase);
    let took = Family::<OfStep, Gauge>::default();
    for step in &progress.steps {
        let of_it = OfStep { step: step.step.clone(), state: word(step.state) };
        took.get_or_create(&of_it).set(number(step.seconds.unwrap_or_default()));
    }
    let help = "How long each step of the last operation took";
    registry.register_with_unit("step_duration", help, Unit::Seconds, took);
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
        let told = text(Some(digest), Some(&progress), Some(&report)).unwrap();
        for line in [
            &format!("tread_node_config_info{{digest=\"{digest}\"}} 1"),
            "tread_node_operation{operation=\"1\",phase=\"Done\"} 1",
            "tread_node_step_duration_seconds{step=\"reload crio.service\",state=\"Done\"} 0",
            "tread_node_drift_watched 1",
            "tread_node_drifted_paths 0",
        ] {
            assert!(told.lines().any(|it| it == line), "{line}: {told}");
        }
        assert!(text(None, None, None).unwrap().contains("tread_node_drift_watched 0"));
    }
}
