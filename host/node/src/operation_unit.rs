//! What changes the node runs as a unit of the host: an order is handed over to it, and it is
//! followed until it ends. Whoever did so may die meanwhile.

use crate::boot_units::{BOOT, RESUME};
use crate::journal::{STATE, standing_id, stands};
use crate::notices::Notices;
use crate::orders::{Alone, Does, Given, Handed};
use crate::program;
use crate::progress::{Progress, Reporter};
use crate::systemd::{Lasting, Manager, Problem, Started};
use crate::tree::{PathError, Tree};
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What it is called.
pub const UNIT: &str = "tread-operation.service";

/// How long somebody else may take to hand an order over.
const HANDING: Duration = Duration::from_secs(30);
/// How often it is looked whether that one is done.
const AGAIN: Duration = Duration::from_millis(100);

/// Why an order was not handed over, or is not followed any more.
#[derive(Debug, thiserror::Error)]
pub enum UnitError {
    /// One operation at a time.
    #[error(
        "the node is busy with {id} ({unit}), and this order was not taken; wait until that is done: tread node status"
    )]
    Busy {
        /// The unit that carries it out.
        unit: &'static str,
        /// What goes on.
        id: String,
    },
    /// A path leads nowhere.
    #[error(transparent)]
    Path(#[from] PathError),
    /// systemd does not do it.
    #[error(transparent)]
    Systemd(#[from] Problem),
    /// The program for the host cannot be read.
    #[error("{path}: {error}")]
    Program {
        /// Its file.
        path: String,
        /// What the system, or the part below, said.
        error: io::Error,
    },
    /// The node does not say what changes.
    #[error("{STATE} cannot be watched: {0}")]
    Watch(#[from] io::Error),
}

/// Starts the unit that carries an order out, with the program in this file, which is not kept in
/// memory. An operation that stands is gone on with by the program that began it.
pub async fn hand_over(
    tree: &Tree,
    manager: &Manager,
    program: &Path,
    given: &Given,
) -> Result<(), UnitError> {
    let handed = Handed::of(tree)?;
    let Some(_alone) = alone(&handed).await? else {
        let id = "an order that another process hands over right now".to_owned();
        return Err(UnitError::Busy { unit: UNIT, id });
    };
    if let Some(unit) = running(manager).await? {
        return Err(busy(tree, unit)?);
    }
    let own = {
        let path = program.display().to_string();
        let unreadable = |error| UnitError::Program { path, error };
        program::install(tree, &std::fs::read(program).map_err(unreadable)?)?
    };
    let digest = match given.order {
        Does::Resume if stands(tree)? => program::current(tree)?.unwrap_or(own),
        _ => own,
    };
    // Orders that are there were left by a process that was killed before its unit began, or by a
    // power cut.
    handed.forget_all()?;
    handed.put(given)?;
    let path = program::path_of(&digest);
    let lasting = Lasting {
        unit: UNIT,
        description: "Bring this node to another configuration",
        after: BOOT,
        argv: vec![&path, "node", "carry-out", "--", &given.id],
    };
    let why = match manager.start_lasting(&lasting).await {
        Ok(Started::Now) => return Ok(()),
        Ok(Started::RunsAlready) => busy(tree, UNIT)?,
        Err(problem) => problem.into(),
    };
    handed.take_back(&given.id)?;
    Err(why)
}

/// Waits a moment while another process hands an order over: then it is known what that one began.
async fn alone(handed: &Handed) -> Result<Option<Alone>, PathError> {
    let deadline = Instant::now() + HANDING;
    loop {
        match handed.alone()? {
            None if Instant::now() < deadline => sleep(AGAIN).await,
            alone => return Ok(alone),
        }
    }
}

/// What goes on in a unit.
fn busy(tree: &Tree, unit: &'static str) -> Result<UnitError, PathError> {
    let known = || Ok::<_, PathError>(Progress::read(tree)?.map(|known| known.operation));
    let id = match standing_id(tree).ok().flatten() {
        Some(id) => Some(id),
        None => Handed::ids(tree)?.into_iter().next().map_or_else(known, |id| Ok(Some(id)))?,
    };
    Ok(UnitError::Busy { unit, id: id.unwrap_or_else(|| "another order".to_owned()) })
}

/// The unit that changes this node right now.
pub async fn running(manager: &Manager) -> Result<Option<&'static str>, Problem> {
    for unit in [UNIT, RESUME] {
        if manager.runs(unit).await? {
            return Ok(Some(unit));
        }
    }
    Ok(None)
}

/// Reports how far an operation is until its unit has ended; returns what is known of it then.
/// Without an id, it is whichever goes on there.
pub async fn follow(
    tree: &Tree,
    manager: &Manager,
    (unit, id): (&str, Option<&str>),
    reporter: &dyn Reporter,
) -> Result<Option<Progress>, UnitError> {
    let state = tree.private_folder(STATE)?;
    let mut notices = Notices::of(&[&state])?;
    let ended = manager.until_it_ends(unit);
    tokio::pin!(ended);
    let mut reported = None;
    let mut report = || {
        let is_it = |progress: &Progress| id.is_none_or(|id| progress.operation == id);
        let progress = match Progress::read(tree)?.filter(is_it) {
            None if id.is_some() => Progress::read_refused(tree)?.filter(is_it),
            progress => progress,
        };
        if let Some(progress) = &progress
            && reported.as_ref() != Some(progress)
        {
            reporter.report(progress);
            reported = Some(progress.clone());
        }
        Ok::<_, PathError>(progress)
    };
    loop {
        report()?;
        tokio::select! {
            changed = notices.next() => changed?,
            ended = &mut ended => {
                ended?;
                return Ok(report()?);
            }
        }
    }
}
