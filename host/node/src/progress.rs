//! How far an operation is, for people and for whoever asked for it. Nothing of it holds
//! contents (law 10).

use crate::clock::since_boot;
use crate::journal::STATE;
use crate::tree::{Kind, Owner, PathError, Tree};
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};
use tread_model::digest::Digest;
use tread_model::plan::Step;

const FILE: &str = "progress";
const REFUSED: &str = "refused";
const MOST: u64 = 1 << 20;

/// How far an operation is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// Which operation.
    pub operation: String,
    /// The config that the node is to get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Digest>,
    /// The plan that is carried out, by its digest: what was previewed has the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Digest>,
    /// What was refused, by the digest of the order: another one may not have its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Digest>,
    /// What is being done.
    pub phase: Phase,
    /// The boot in which the next one was asked for, as the kernel calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// Each step of the plan.
    pub steps: Vec<StepProgress>,
    /// What an admin has to know, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What an admin has to know however far it is, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub warning: String,
}

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// It was not begun: nothing was touched.
    Refused,
    /// Files are staged and named.
    Writing,
    /// It waits until it may do what comes next.
    Waiting,
    /// The tool of the host prepares what the next boot brings.
    Staging,
    /// It goes no further until somebody mends what the message says.
    Stopped,
    /// Units are told.
    Acting,
    /// The node boots.
    Booting,
    /// The node proves that it is well.
    Proving,
    /// Its units are told of the old contents again.
    GoingBack,
    /// It has the new config, and is well.
    Done,
    /// It is well, and a part of the new config waits for a boot that somebody else causes.
    WaitsForBoot,
    /// What a config needs is there, and nothing was changed.
    Fetched,
    /// It has the old config again.
    WentBack,
    /// It is not well, and tread does nothing more by itself.
    Degraded,
}

impl Phase {
    /// Whether tread does nothing more by itself.
    pub fn is_end(self) -> bool {
        use Phase::{Degraded, Done, Fetched, Refused, WaitsForBoot, WentBack};
        matches!(self, Refused | Done | WaitsForBoot | Fetched | WentBack | Degraded)
    }
}

/// One step of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepProgress {
    /// As the plan has it: `reload crio.service`.
    pub step: String,
    /// How it stands.
    pub state: StepState,
    /// When it began, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    /// The same in seconds since the boot, by a clock that nobody sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_boot: Option<u64>,
    /// When it ended, in seconds since 1970: before it began, where the clock was set back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// What came of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// How a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepState {
    /// It is still to come.
    Waiting,
    /// It is being done.
    Running,
    /// It was done, or there was nothing to do.
    Done,
    /// It failed.
    Failed,
    /// A boot did it too.
    Absorbed,
    /// It is for whoever gave the order, not for the node.
    Left,
}

/// Who is told how far an operation is.
pub trait Reporter {
    /// It is so far now.
    fn report(&self, progress: &Progress);
}

impl Progress {
    /// Of an operation that begins.
    pub fn new(operation: &str, to: Digest, steps: &[Step]) -> Progress {
        let waiting = |step: &Step| StepProgress {
            step: step.to_string(),
            state: StepState::Waiting,
            started: None,
            since_boot: None,
            ended: None,
            seconds: None,
            message: String::new(),
        };
        Progress {
            operation: operation.to_owned(),
            to: Some(to),
            plan: None,
            order: None,
            phase: Phase::Writing,
            boot: None,
            steps: steps.iter().map(waiting).collect(),
            message: String::new(),
            warning: String::new(),
        }
    }

    /// Of an operation that is gone on with: what is known of its steps stays known.
    pub fn of(tree: &Tree, operation: &str, to: Digest, steps: &[Step]) -> Progress {
        let mut progress = Progress::new(operation, to, steps);
        let known = Progress::read(tree).ok().flatten();
        let is_it = |known: &Progress| {
            let texts = known.steps.iter().map(|it| &it.step);
            known.operation == operation && texts.eq(progress.steps.iter().map(|it| &it.step))
        };
        if let Some(known) = known.filter(is_it) {
            progress.warning = known.warning;
            for (step, known) in progress.steps.iter_mut().zip(known.steps) {
                (step.started, step.since_boot) = (known.started, known.since_boot);
                (step.ended, step.seconds) = (known.ended, known.seconds);
            }
        }
        progress
    }

    /// By the plan with this digest.
    #[must_use]
    pub fn by(self, plan: Digest) -> Progress {
        Progress { plan: Some(plan), ..self }
    }

    /// For the order with this digest, where it is known.
    #[must_use]
    pub fn of_order(self, order: Option<Digest>) -> Progress {
        Progress { order: order.or(self.order), ..self }
    }

    /// Of an operation that was not begun.
    pub fn refused(operation: &str, because: &str) -> Progress {
        Progress {
            operation: operation.to_owned(),
            to: None,
            plan: None,
            order: None,
            phase: Phase::Refused,
            boot: None,
            steps: Vec::new(),
            message: tread_model::text::one_line_within(because, 4096).0,
            warning: String::new(),
        }
    }

    /// A step begins.
    pub fn begins(&mut self, index: usize) {
        if let Some(step) = self.steps.get_mut(index) {
            step.state = StepState::Running;
            step.started = step.started.or_else(|| Some(now()));
            step.since_boot = step.since_boot.or_else(|| Some(since_boot().as_secs()));
        }
    }

    /// A step ends.
    pub fn ends(&mut self, index: usize, state: StepState, message: &str) {
        if let Some(step) = self.steps.get_mut(index) {
            // Of one that ended before, as in another process, it is known how long it took.
            step.ended = step.ended.or_else(|| Some(now()));
            // By the clock since boot: somebody may have set the wall clock meanwhile.
            let now = since_boot().as_secs();
            let took = || step.since_boot.and_then(|begun| now.checked_sub(begun));
            step.seconds = step.seconds.or_else(took);
            step.state = state;
            step.message = tread_model::text::one_line_within(message, 1024).0;
        }
    }

    /// No step is on its way any more: what was begun is done, where the operation is, and cut
    /// short otherwise.
    fn stop_steps(&mut self) {
        let (state, message) = match self.phase {
            Phase::Done => (StepState::Done, ""),
            _ => (StepState::Failed, "it was cut short"),
        };
        let running = |(index, step): (usize, &StepProgress)| {
            (step.state == StepState::Running).then_some(index)
        };
        let running: Vec<usize> = self.steps.iter().enumerate().filter_map(running).collect();
        running.into_iter().for_each(|index| self.ends(index, state, message));
    }

    /// An operation of which something is known already ends like this.
    pub fn ends_here(
        tree: &Tree,
        operation: &str,
        phase: Phase,
        because: &str,
    ) -> Result<(), PathError> {
        match Progress::read(tree)?.filter(|known| known.operation == operation) {
            // Degraded since it could not be settled; by now it is.
            Some(known) if !known.phase.is_end() || known.phase == Phase::Degraded => {
                let mut known = Progress { phase, message: because.to_owned(), ..known };
                known.stop_steps();
                known.write(tree)
            }
            _ => Ok(()),
        }
    }

    /// An order that was refused, or went back, while another one's operation stands, which is what
    /// the status shows.
    pub fn read_refused(tree: &Tree) -> Result<Option<Progress>, PathError> {
        Progress::read_from(tree, REFUSED)
    }

    /// How the last operation ended stays known where another one stands, whose status comes next.
    pub fn keep_beside(tree: &Tree, standing: &str) -> Result<(), PathError> {
        let ended = |known: &Progress| known.operation != standing && known.phase.is_end();
        match Progress::read(tree)?.filter(ended) {
            Some(known) => known.write_refused(tree),
            None => Ok(()),
        }
    }

    /// What is known of the last operation; nothing if there was none.
    pub fn read(tree: &Tree) -> Result<Option<Progress>, PathError> {
        Progress::read_from(tree, FILE)
    }

    fn read_from(tree: &Tree, file: &str) -> Result<Option<Progress>, PathError> {
        let path = format!("{STATE}/{file}");
        let failed = |error| PathError::io(&path, error);
        let Some((folder, name)) = tree.place(&path)? else { return Ok(None) };
        if folder.stat(name).map_err(failed)?.is_some_and(|stat| stat.kind != Kind::File) {
            // Somebody put it there: the next operation puts it aside.
            tracing::warn!(path, "tread keeps a file there, and it is none");
            return Ok(None);
        }
        let Some(bytes) = folder.read(name, MOST).map_err(failed)? else { return Ok(None) };
        // What cannot be read was cut short, or is of another version: nothing depends on it.
        Ok(serde_json::from_slice(&bytes).ok())
    }

    /// Lets others see it. It is no record: what has to be known is in the journal.
    pub fn write(&self, tree: &Tree) -> Result<(), PathError> {
        self.write_to(tree, FILE)
    }

    /// Lets others see that it was refused, or went back, beside what stands.
    pub fn write_refused(&self, tree: &Tree) -> Result<(), PathError> {
        self.write_to(tree, REFUSED)
    }

    fn write_to(&self, tree: &Tree, file: &str) -> Result<(), PathError> {
        let path = format!("{STATE}/{file}");
        let failed = |error| PathError::io(&path, error);
        let Some(state) = tree.folder(STATE)? else { return Ok(()) };
        let stat = state.own_stat().map_err(failed)?;
        let bytes = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        let (owner, next) = (Owner { mode: 0o600, ..stat.owner }, "progress.next");
        let written = || {
            state.remove_own(next)?;
            state.create(next, &bytes, owner, &[])?;
            state.replace_own(next, file)
        };
        written().map_err(failed)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_clock_that_is_set_in_the_middle_of_a_step_makes_it_no_longer_and_no_shorter() {
        for days in [-30, 0, 30] {
            let mut progress = Progress::new("one", Digest([1; 32]), &[Step::Write]);
            progress.begins(0);
            let step = progress.steps.first_mut().unwrap();
            // As if it had been set by so much since.
            step.started = step.started.unwrap().checked_add_signed(-days * 24 * 3600);
            progress.ends(0, StepState::Done, "");
            let took = progress.steps.first().unwrap().seconds.unwrap();
            assert!(took < 600, "{days} days: {took} s");
        }
    }

    #[test]
    fn an_operation_that_could_be_settled_later_is_not_called_degraded_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::open(dir.path()).unwrap();
        drop(tree.private_folder(STATE).unwrap());
        let ends = |known: Phase| {
            let progress = Progress::new("one", Digest([1; 32]), &[Step::Write]);
            Progress { phase: known, ..progress }.write(&tree).unwrap();
            Progress::ends_here(&tree, "two", Phase::WentBack, "another").unwrap();
            Progress::ends_here(&tree, "one", Phase::WentBack, "settled").unwrap();
            Progress::read(&tree).unwrap().unwrap().phase
        };
        assert_eq!(ends(Phase::Degraded), Phase::WentBack);
        assert_eq!(ends(Phase::Writing), Phase::WentBack);
        assert_eq!(ends(Phase::Done), Phase::Done);
    }
}
