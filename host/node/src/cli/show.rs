//! What is printed, for a tired admin and for a script.

use crate::journal::Record;
use crate::progress::{Phase, Progress, Reporter, StepState};
use crate::tree::Seen;
use std::cell::RefCell;
use std::io::{self, Write as _};
use tread_model::digest::Digest;
use tread_model::plan::VerifiablePlan;

/// One line. Whoever closed the pipe has read enough.
pub(super) fn line(text: &str) -> io::Result<()> {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// What would be done.
pub(super) fn dry_run(plan: &VerifiablePlan, record: &Record) -> io::Result<()> {
    let steps: Vec<String> = plan.steps.iter().map(ToString::to_string).collect();
    line(&format!(
        "steps: {}",
        if steps.is_empty() { "none".to_owned() } else { steps.join(", ") }
    ))?;
    for entry in &record.entries {
        let does = match (&entry.old, &entry.new) {
            (Seen::Absent, _) => "add",
            (_, Seen::Absent) => "remove",
            _ => "change",
        };
        line(&format!("  {does} {}", tread_model::text::one_line(&entry.path)))?;
    }
    line("nothing was changed")
}

/// Tells what is new since the last line.
#[derive(Default)]
pub(super) struct Terminal {
    told: RefCell<Vec<String>>,
}

impl Reporter for Terminal {
    fn report(&self, progress: &Progress) {
        let mut told = self.told.borrow_mut();
        for text in lines(progress) {
            if !told.contains(&text) {
                // Whoever cannot read it does not stop it.
                let _ = line(&text);
                told.push(text);
            }
        }
    }
}

fn lines(progress: &Progress) -> Vec<String> {
    let mut lines = Vec::new();
    for step in &progress.steps {
        let state = match step.state {
            StepState::Waiting => continue,
            StepState::Running => "…",
            StepState::Done => "done",
            StepState::Failed => "failed",
            StepState::Absorbed => "done by the boot",
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
        Phase::Waiting => "waiting for a permit",
        Phase::Acting => "telling units",
        Phase::Booting => "booting",
        Phase::Proving => "proving that the node is well",
        Phase::GoingBack => "going back",
        Phase::Done => "done",
        Phase::WentBack => "went back",
        Phase::Degraded => "degraded",
    }
}

/// How the node stands.
pub(super) fn status(has: Option<Digest>, progress: Option<&Progress>) -> io::Result<()> {
    match has {
        Some(digest) => line(&format!("config: {digest}"))?,
        None => line("config: not known; tread node adopt --config CONFIG")?,
    }
    let Some(progress) = progress else { return line("no operation yet") };
    line(&format!("last operation: {} ({})", progress.operation, phase(progress.phase)))?;
    lines(progress).iter().try_for_each(|text| line(text))
}

/// The same for a script.
pub(super) fn status_json(has: Option<Digest>, progress: Option<&Progress>) -> io::Result<()> {
    let status = serde_json::json!({
        "schema": "tread.dev/node-status/v1",
        "config": has,
        "operation": progress,
    });
    line(&serde_json::to_string_pretty(&status)?)
}
