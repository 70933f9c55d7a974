//! How far an operation is, as it is reported while it goes on.

use super::node::Node;
use crate::progress::{Phase, Progress, StepState};
use crate::tree::PathError;
use std::cell::RefCell;
use tread_model::plan::Step;

/// Reports how far it is.
pub(super) struct Reporting<'t> {
    node: &'t Node<'t>,
    progress: RefCell<Progress>,
}

impl<'t> Reporting<'t> {
    pub(super) fn new(node: &'t Node<'t>, progress: Progress) -> Reporting<'t> {
        Reporting { node, progress: RefCell::new(progress) }
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut Progress)) {
        let mut progress = self.progress.borrow_mut();
        change(&mut progress);
        // Where nobody can be told, that does not stop it.
        let _ = progress.write(&self.node.tree);
        self.node.reporter.report(&progress);
    }

    pub(super) fn phase(&self, phase: Phase, message: &str) {
        self.update(|progress| {
            progress.phase = phase;
            progress.message = tread_model::text::one_line_within(message, 4096).0;
        });
    }

    /// The next boot is asked for in this one.
    pub(super) fn boots(&self, boot: &str, because: &str) {
        self.progress.borrow_mut().boot = Some(boot.to_owned());
        self.phase(Phase::Booting, because);
    }

    /// How it ended has to be known to whoever comes next.
    pub(super) fn end(&self, phase: Phase, message: &str) -> Result<(), PathError> {
        self.phase(phase, message);
        self.progress.borrow().write(&self.node.tree)
    }

    pub(super) fn message(&self, message: &str) {
        let message = tread_model::text::one_line_within(message, 4096).0;
        self.update(|progress| progress.message = message);
    }

    pub(super) fn absorbed(&self) {
        self.update(|progress| {
            for step in &mut progress.steps {
                if matches!(step.state, StepState::Waiting | StepState::Running) {
                    step.state = match is_of_others(&step.step) {
                        true => StepState::Left,
                        false => StepState::Absorbed,
                    };
                }
            }
        });
    }

    /// Says that it waits for a permit, if it has to wait at all.
    pub(super) async fn while_waiting<T>(&self, asked: impl Future<Output = T>) -> T {
        tokio::pin!(asked);
        let at_once = futures::future::poll_immediate(&mut asked).await;
        if let Some(answer) = at_once {
            return answer;
        }
        let phase = self.progress.borrow().phase;
        self.phase(Phase::Waiting, "");
        let answer = asked.await;
        self.phase(phase, "");
        answer
    }
}

/// Whether a step is a controller's.
fn is_of_others(step: &str) -> bool {
    [Step::Drain, Step::Uncordon].iter().any(|it| it.to_string() == step)
}
