//! What is printed, for a tired admin and for a script.

use super::system::RootArgs;
use crate::change::Checked;
use crate::journal::{ByHand, Entry, Record, STATE};
use crate::os::IDS;
use crate::progress::{Phase, Progress, Reporter, StepState};
use crate::tree::Found;
use crate::watch::{Report, State};
use std::cell::RefCell;
use std::io::{self, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};
use tread_model::digest::Digest;
use tread_model::plan::{Step, VerifiablePlan};

/// So long after the last full check, the next one is late: it is made every hour.
const LATE: u64 = 2 * 3600;

/// One line. Whoever closed the pipe has read enough.
pub(super) fn line(text: &str) -> io::Result<()> {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// The names that an operation changes, but for what tread keeps of its own.
pub(super) fn names(record: &Record) -> impl Iterator<Item = &Entry> {
    let own = |entry: &&Entry| entry.path.strip_prefix(STATE).is_some_and(|it| it.starts_with('/'));
    record.entries.iter().filter(move |entry| !own(entry))
}

/// What would be done.
pub(super) fn dry_run(
    plan: &VerifiablePlan,
    change: &Checked<'_>,
    warning: Option<&str>,
) -> io::Result<()> {
    let steps: Vec<String> = plan.steps.iter().map(ToString::to_string).collect();
    line(&format!(
        "steps: {}",
        if steps.is_empty() { "none".to_owned() } else { steps.join(", ") }
    ))?;
    for id in IDS.into_iter().filter(|id| change.has(id)) {
        line(&format!("  stage {id} for the next boot"))?;
    }
    for entry in names(&change.ready.record) {
        let does = match (&entry.old, &entry.new) {
            (Found::Absent, _) => "add",
            (_, Found::Absent) => "remove",
            _ => "change",
        };
        line(&format!("  {does} {}", tread_model::text::one_line(&entry.path)))?;
    }
    if plan.steps.contains(&Step::Drain) {
        line("drain and uncordon are not done here: --no-drain says that somebody else does")?;
    }
    if let Some(warning) = warning {
        line(&format!("warning: {warning}"))?;
    }
    line("nothing was changed")
}

/// Shows what is new since the last line.
#[derive(Default)]
pub(super) struct Terminal {
    shown: RefCell<Vec<String>>,
}

impl Reporter for Terminal {
    fn report(&self, progress: &Progress) {
        let mut shown = self.shown.borrow_mut();
        let mut lines = lines(progress);
        if progress.phase == Phase::Refused {
            // It is the error with which the command ends.
            lines.pop();
        }
        for text in lines {
            if !shown.contains(&text) {
                // Whoever cannot read it does not stop it.
                let _ = line(&text);
                shown.push(text);
            }
        }
    }
}

fn lines(progress: &Progress) -> Vec<String> {
    let mut lines = Vec::new();
    if !progress.warning.is_empty() {
        lines.push(format!("warning: {}", progress.warning));
    }
    for step in &progress.steps {
        let state = match step.state {
            StepState::Waiting => continue,
            StepState::Running => "…",
            StepState::Done => "done",
            StepState::Failed => "failed",
            StepState::Absorbed => "done by the boot",
            StepState::Left => "is not done by tread here: it is for whoever gave the order",
        };
        let took = step.seconds.map(|seconds| format!(" ({seconds} s)")).unwrap_or_default();
        let message =
            if step.message.is_empty() { String::new() } else { format!(": {}", step.message) };
        lines.push(format!("  {} {state}{took}{message}", step.step));
    }
    if !progress.message.is_empty() {
        lines.push(format!("{}: {}", phase(progress.phase), progress.message));
    }
    lines
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Refused => "refused, nothing was touched",
        Phase::Writing => "writing",
        Phase::Stopped => {
            "stopped; mend it, then: tread node resume, or end it: tread node adopt --config CONFIG --give-up"
        }
        Phase::Waiting => "waiting for a permit",
        Phase::Staging => "preparing the next boot",
        Phase::Acting => "telling units",
        Phase::Booting => "booting",
        Phase::Proving => "proving that the node is well",
        Phase::GoingBack => "going back",
        Phase::Done => "done",
        Phase::WaitsForBoot => "waits for a boot",
        Phase::Fetched => "fetched, nothing was changed",
        Phase::WentBack => "went back",
        Phase::Degraded => {
            "degraded; mend it, then: tread node resume, or end it: tread node adopt --config CONFIG --give-up"
        }
    }
}

/// How the node stands.
pub(super) fn status(
    (has, unknown): (Option<Digest>, Option<&str>),
    progress: Option<&Progress>,
    drift: Option<&Report>,
    root: &RootArgs,
) -> io::Result<()> {
    let line = |text: &str| line(&root.named(text));
    match (has, unknown) {
        (Some(digest), _) => line(&format!("config: {digest}"))?,
        (None, Some(why)) => line(&format!("config: not known: {why}"))?,
        (None, None) => line("config: not known; tread node adopt --config CONFIG")?,
    }
    // Nobody watches the tree of a system that does not run.
    if root.runs() || drift.is_some() {
        drift_lines(drift).iter().try_for_each(|text| line(text))?;
    }
    let Some(progress) = progress else { return line("no operation yet") };
    line(&format!("last operation: {} ({})", progress.operation, phase(progress.phase)))?;
    lines(progress).iter().try_for_each(|text| line(text))
}

/// What the watch found.
fn drift_lines(drift: Option<&Report>) -> Vec<String> {
    let Some(drift) = drift else {
        return vec!["drift: not watched (systemctl status tread-watch)".to_owned()];
    };
    let seconds = drift.checked.map(|checked| unix_now().saturating_sub(checked));
    let age = match seconds {
        Some(seconds) if seconds > LATE => format!(
            "; everything was looked at {} hours ago, does tread-watch.service run?",
            seconds / 3600
        ),
        Some(seconds) => format!("; everything was looked at {} minutes ago", seconds / 60),
        None => String::new(),
    };
    let what = match (drift.state, drift.count) {
        (State::Watching, 0) => format!("none{age}"),
        (State::Watching, 1) => format!("1 path differs{age}"),
        (State::Watching, count) => format!("{count} paths differ{age}"),
        (State::Paused, _) => {
            "not watched while an operation stands; where none does: tread node settle".to_owned()
        }
        (State::Waiting, _) => "not watched yet".to_owned(),
    };
    let mut lines = vec![format!("drift: {what}")];
    if !drift.message.is_empty() {
        lines.push(format!("  {}", drift.message));
    }
    for (differs, word) in
        drift.drifted.iter().map(|it| (it, "")).chain(drift.noted.iter().map(|it| (it, "noted: ")))
    {
        let kinds: Vec<String> = differs.kinds.iter().map(ToString::to_string).collect();
        let path = tread_model::text::one_line(&differs.path);
        lines.push(format!("  {word}{path}: {}", kinds.join(", ")));
    }
    if drift.count > drift.drifted.len() {
        lines.push("  more: tread node check".to_owned());
    }
    lines
}

/// The status for a script.
pub(super) fn status_json(
    has: Option<Digest>,
    progress: Option<&Progress>,
    drift: Option<&Report>,
    (begins, by_hand): (Option<&str>, &[ByHand]),
) -> io::Result<()> {
    let status = serde_json::json!({
        "schema": "tread.dev/node-status/v1",
        "config": has,
        "operation": progress,
        "drift": drift,
        "handedOver": begins,
        "byHand": by_hand.iter().map(in_json).collect::<Vec<_>>(),
    });
    line(&serde_json::to_string_pretty(&status)?)
}

fn in_json(left: &ByHand) -> serde_json::Value {
    let ByHand { operation, path, why, .. } = left;
    serde_json::json!({"operation": operation, "path": path, "why": why})
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
