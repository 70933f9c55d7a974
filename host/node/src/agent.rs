//! `tread agent`: takes orders, hands each over to a unit of the host, and attends it until it
//! has ended: it answers what the unit asks, and tells how far it is.
//!
//! It may die at any time and be started again: what goes on is on the host, and found there.
//! It needs little: see [`confinement`].

pub mod confinement;
mod inbox;

pub use inbox::Inbox;

use crate::clock::since_boot;
use crate::journal::{JournalError, standing_id, stands};
use crate::operation_unit::{UNIT, UnitError, follow, hand_over, running};
use crate::orders::{Does, Given};
use crate::permits::{Act, Alone, Answer, NoPermit, Permit, Question, Questions};
use crate::program::CURRENT_PATH;
use crate::progress::{Phase, Progress, Reporter};
use crate::systemd::{Manager, Problem, boot_id_of};
use crate::tree::{PathError, Tree};
use futures::future::LocalBoxFuture;
use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a node may take to go down.
const GOING_DOWN: Duration = Duration::from_secs(600);
/// How long to wait before it is tried again what did not go on: twice as long each time.
const AGAIN: Duration = Duration::from_secs(10);
const MOST_AGAIN: Duration = Duration::from_secs(300);
/// How long a permit holds that its giver does not end.
const PERMIT: Duration = Duration::from_secs(600);

/// Who gives orders.
pub trait Orders {
    /// The next one. The same order comes again until it has ended.
    fn next(&self) -> LocalBoxFuture<'_, io::Result<Given>>;

    /// This one has ended, as far as it is known how.
    fn ended<'o>(
        &'o self,
        id: &'o str,
        how: Option<&'o Progress>,
    ) -> LocalBoxFuture<'o, io::Result<()>>;
}

/// Who gives permits.
pub trait Permits {
    /// Whether an operation may do this now; otherwise why not. Whoever is asked takes the time
    /// it needs.
    fn ask<'p>(
        &'p self,
        operation: &'p str,
        act: &'p Act,
    ) -> LocalBoxFuture<'p, Result<Permit, NoPermit>>;
}

impl Permits for Alone {
    fn ask<'p>(&'p self, _: &'p str, _: &'p Act) -> LocalBoxFuture<'p, Result<Permit, NoPermit>> {
        Box::pin(async { Ok(Permit::FOREVER) })
    }
}

/// An agent, and whom it serves.
pub struct Agent<'a> {
    /// Beneath it, the folder of tread's own: the agent sees nothing else of the host.
    pub tree: Tree,
    /// The host's systemd.
    pub manager: &'a Manager,
    /// The program that the units of the host run: a file that the agent sees.
    pub program: &'a Path,
    /// Who gives orders.
    pub orders: &'a dyn Orders,
    /// Who gives permits.
    pub permits: &'a dyn Permits,
    /// Who is told how far an operation is.
    pub reporter: &'a dyn Reporter,
}

/// Why an agent cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The unit of the host cannot be started or followed.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// systemd does not answer.
    #[error(transparent)]
    Systemd(#[from] Problem),
    /// A path leads nowhere.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The operation does not go on by itself.
    #[error(
        "{UNIT} ended before the operation did; see {CURRENT_PATH} node status, and journalctl -u {UNIT} on the node"
    )]
    CutShort,
    /// Nobody knows what stands.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Orders or permits cannot be read or written.
    #[error("orders and permits: {0}")]
    Files(#[from] io::Error),
}

impl Agent<'_> {
    /// Serves for ever. What keeps it from that is said, and it is tried again.
    pub async fn run(&self) -> Infallible {
        let mut wait = AGAIN;
        loop {
            let began = Instant::now();
            let Err(error) = self.serve().await;
            // What went well for a while may soon do so again.
            wait = if began.elapsed() > MOST_AGAIN { AGAIN } else { wait };
            let seconds = wait.as_secs();
            tracing::error!(%error, "it cannot go on, and tries again in {seconds} s");
            tokio::time::sleep(wait).await;
            wait = MOST_AGAIN.min(wait * 2);
        }
    }

    async fn serve(&self) -> Result<Infallible, AgentError> {
        self.go_on_with_what_stands().await?;
        loop {
            let given = self.orders.next().await?;
            self.go_on_with_what_stands().await?;
            self.carry_out(&given).await?;
        }
    }

    /// First sees to its end what another agent, an admin or a boot began.
    async fn go_on_with_what_stands(&self) -> Result<(), AgentError> {
        if let Some(unit) = running(self.manager).await? {
            tracing::info!(unit, "an operation is on its way");
            self.attend(unit, None).await?;
        }
        let Some(standing) = standing_id(&self.tree)? else { return Ok(()) };
        let last = Progress::read(&self.tree)?.filter(|last| last.operation == standing);
        // One that is degraded or waits for a boot stands until somebody says what to do.
        if last.is_none_or(|last| !last.phase.is_end()) {
            let id = format!("resume-{}", since_boot().as_millis());
            tracing::info!("what stands is gone on with");
            self.carry_out(&Given::new(&id, Does::Resume)).await?;
        }
        Ok(())
    }

    async fn carry_out(&self, given: &Given) -> Result<(), AgentError> {
        let id = &given.id;
        let mut was_busy_without_a_unit = false;
        loop {
            match hand_over(&self.tree, self.manager, self.program, given).await {
                Ok(()) => tracing::info!(order = %id, "handed over to the host"),
                // An admin, or a boot, was first.
                Err(UnitError::Busy { unit, id }) => {
                    tracing::info!(unit, on_its_way = id, "another operation is first");
                    let runs = self.manager.runs(unit).await?;
                    self.attend(unit, None).await?;
                    // The unit may just have ended: then it is tried again at once. A second time in
                    // a row systemd keeps a unit that does not run, and trying again can wait.
                    if !runs && was_busy_without_a_unit {
                        return Err(UnitError::Busy { unit, id }.into());
                    }
                    was_busy_without_a_unit = !runs;
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            // What is gone on with has a name of its own.
            let followed = (given.order != Does::Resume).then_some(id.as_str());
            let how = self.attend(UNIT, followed).await?;
            let phase = how.as_ref().map(|how| how.phase);
            tracing::info!(order = %id, ?phase, "its unit ended");
            match phase {
                // There was nothing to go on with.
                None if given.order == Does::Resume && !stands(&self.tree)? => {
                    return Ok(self.orders.ended(id, None).await?);
                }
                Some(Phase::Booting) if self.is_asked_for(how.as_ref()) => {
                    self.until_it_is_down().await;
                }
                Some(phase) if phase.is_end() => {
                    return Ok(self.orders.ended(id, how.as_ref()).await?);
                }
                _ => return Err(AgentError::CutShort),
            }
        }
    }

    /// Whether the next boot was asked for in this one. If it was asked for in an earlier boot, the
    /// status is from before that, and the unit that was to go on ended without a word.
    fn is_asked_for(&self, progress: Option<&Progress>) -> bool {
        let asked_in = progress.and_then(|progress| progress.boot.as_ref());
        let this = boot_id_of(&self.tree).ok();
        asked_in.zip(this.as_ref()).is_none_or(|(asked_in, this)| asked_in == this)
    }

    /// Waits for a boot that was asked for. A node that does not go down is asked again.
    async fn until_it_is_down(&self) {
        tokio::time::sleep(GOING_DOWN).await;
    }

    /// Answers and tells until the unit has ended.
    async fn attend(
        &self,
        unit: &'static str,
        id: Option<&str>,
    ) -> Result<Option<Progress>, AgentError> {
        let questions = Questions::of(&self.tree);
        let ended = tokio::select! {
            ended = follow(&self.tree, self.manager, (unit, id), self.reporter) => ended?,
            failed = self.answer(&questions) => match failed? {},
        };
        questions.forget()?;
        Ok(ended)
    }

    async fn answer(&self, questions: &Questions) -> io::Result<Infallible> {
        loop {
            let mut notices = questions.notices()?;
            if let Some(question) = questions.open()? {
                tokio::select! {
                    answer = self.answered(&question) => questions.answer(&answer)?,
                    // Whoever asked may be gone, and another one there.
                    changed = until_another(questions, &question) => changed?,
                }
            } else {
                notices.next().await?;
            }
        }
    }

    async fn answered(&self, question: &Question) -> Answer {
        let Question { id, operation, act } = question;
        let asked = self.permits.ask(operation, act).await;
        let what = match act {
            Act::Write => "write",
            Act::Unit { unit } => unit,
            Act::Boot { .. } => "boot",
        };
        let ends = matches!(asked, Err(NoPermit::Never(_)));
        let (until, refused) = match asked {
            Ok(permit) => {
                let ends = permit.ends().unwrap_or_else(|| since_boot() + PERMIT);
                tracing::info!(%operation, what, "permitted");
                (u64::try_from(ends.as_millis()).ok(), None)
            }
            Err(why) => {
                tracing::warn!(%operation, what, %why, "not permitted");
                (None, Some(why.to_string()))
            }
        };
        Answer { id: id.clone(), until, refused, ends }
    }
}

/// Waits until this question is not the open one any more.
async fn until_another(questions: &Questions, question: &Question) -> io::Result<()> {
    loop {
        let mut notices = questions.notices()?;
        if questions.open()?.as_ref() != Some(question) {
            return Ok(());
        }
        notices.next().await?;
    }
}
