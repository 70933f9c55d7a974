//! `tread node carry-out` and `tread node resume`: what the units of the host run.

use super::check::of_the_system;
use super::ended::ended_before;
use super::error::NodeError;
use super::follow::by_the_unit;
use super::give_up::give_up;
use super::show::Terminal;
use super::system::{BUS, NOT_WELL, WELL, blocking, this_node, until_terminated};
use super::{files, show};
use crate::applied::Applied;
use crate::boot_image;
use crate::boot_units;
use crate::change::{Adopt, Order, OrderError};
use crate::documents::{Documents, digest};
use crate::host::ThisHost;
use crate::journal::{Journal, JournalError, Standing, standing_id, stands};
use crate::operation::{Ended, OperationError, terms_of};
use crate::orders::{Does, Given, Handed};
use crate::os::Wish;
use crate::permits::{Alone, ByFile, Permits};
use crate::prepare::Label;
use crate::program;
use crate::progress::{Phase, Progress};
use crate::systemd::{AGAIN, Manager};
use crate::terms::Asked;
use crate::tree::Tree;
use clap::Args;
use std::path::Path;
use std::time::Duration;
use tread_model::digest::Digest;
use tread_model::plan::VerifiablePlan;

pub(super) const RESUME_EXAMPLES: &str = "\
Examples:
  tread node resume                  the steps that are left, and the proof that it is well

It is carried out by tread-operation.service, also if you leave.";

pub(super) const EXAMPLES: &str = "\
Examples:
  tread node carry-out 1763840000000-17      an order below /var/lib/tread/node/orders
  tread node carry-out                       what stands, as tread-resume.service does after a boot

Exit codes:
  0  the node has the new config, or boots to get it
  1  it was refused: nothing was touched
  5  the node went back to the old config, or is not well";

/// How long systemd may take to read its units.
const RELOAD: Duration = Duration::from_secs(60);

/// Which order.
#[derive(Debug, Args)]
pub struct CarryOutArgs {
    /// What the order is called; without one, what stands is gone on with
    #[arg(value_name = "ID")]
    id: Option<String>,
}

impl CarryOutArgs {
    pub(super) fn run(&self) -> Result<u8, NodeError> {
        let Some(id) = &self.id else { return what_stands() };
        let tree = Tree::open(Path::new("/"))?;
        let handed = Handed::of(&tree)?;
        let given = handed.get(id)?;
        if let Err(why) = boot_image::keep(&tree) {
            show::line(&format!("from which image the node booted first cannot be kept: {why}"))?;
        }
        let (order, resumes) = (given.digest(), given.order == Does::Resume);
        let ended = carried_out(&tree, given);
        match ended {
            Err(error) if has_to_wait(&error) => {
                show::line(&format!("{error}; it is tried again"))?;
                Ok(AGAIN)
            }
            ended => {
                let note_end = || match &ended {
                    Err(error) => came_to_nothing(&tree, (id, order, resumes), error),
                    Ok(_) => Ok(()),
                };
                let noted = note_end();
                // It has ended whether or not that could be told: on a full disk there is room
                // for it only now.
                handed.forget_all()?;
                if let Err(why) = noted.or_else(|_| note_end()) {
                    show::line(&format!("how it ended could not be kept: {why}"))?;
                }
                show_end(&ended?)
            }
        }
    }
}

/// Whether it is no end of an order: somebody else has the journal, or this process was told
/// to end.
fn has_to_wait(error: &NodeError) -> bool {
    use OperationError::Journal;
    matches!(error, NodeError::Operation(Journal(JournalError::Busy)) | NodeError::Terminated)
}

/// Says why an order came to nothing. Where it was to go on with what stands, that is told of too:
/// otherwise the status would still be the one from before the boot.
fn came_to_nothing(
    tree: &Tree,
    (id, order, resumes): (&str, Option<Digest>, bool),
    error: &NodeError,
) -> Result<(), NodeError> {
    let because = &error.to_string();
    if matches!(error, NodeError::IdIsTaken(_)) {
        // The status of the order that had its id says that it ended well, or why it was refused.
        let refused = Progress::refused(id, because).of_order(order);
        match stands(tree)? {
            true => refused.write_refused(tree)?,
            false => refused.write(tree)?,
        }
        return Ok(());
    }
    cut_short(tree, (id, order), because)?;
    match standing_id(tree).ok().flatten().filter(|_| resumes) {
        Some(standing) => cut_short(tree, (&standing, None), because),
        None => Ok(()),
    }
}

/// Says why an order goes no further: it was not begun, or it waits until somebody mends something.
/// The status of another operation that stands is not touched.
fn cut_short(
    tree: &Tree,
    (id, order): (&str, Option<Digest>),
    because: &str,
) -> Result<(), NodeError> {
    let known = Progress::read(tree)?.filter(|known| known.operation == id);
    let refused = Progress::refused(id, because).of_order(order);
    // What waits for a boot has not ended once it cannot be gone on with after that.
    let has_ended = |known: &Progress| known.phase.is_end() && known.phase != Phase::WaitsForBoot;
    if let Some(known) = known.clone().filter(has_ended) {
        if known.phase == Phase::Refused && known.order.is_none() {
            known.of_order(order).write(tree)?;
        }
        return Ok(());
    }
    let is_standing = || standing_id(tree).ok().flatten().is_some_and(|standing| standing == id);
    match (known, stands(tree)?) {
        (Some(known), true) => {
            let message = tread_model::text::one_line_within(because, 4096).0;
            Progress { phase: Phase::Stopped, message, ..known }.write(tree)?;
        }
        (None, true) if is_standing() => {
            Progress { phase: Phase::Stopped, ..refused }.write(tree)?;
        }
        (None, true) => refused.write_refused(tree)?,
        (_, false) => refused.write(tree)?,
    }
    Ok(())
}

/// Carries an order out, or goes on with it where this order is what stands: a signal may
/// have ended the process that began it.
fn carried_out(tree: &Tree, given: Given) -> Result<Ended, NodeError> {
    let host = ThisHost::read(tree, true)?;
    let label = |path: &str, kind| host.label(path, kind);
    let given_up = give_up(tree, &host, &given)?;
    let ended = carried_out_of(tree, (&host, &label), given);
    match (ended, given_up) {
        (Err(error), Some(which)) if !has_to_wait(&error) => {
            Err(NodeError::Said(format!("{error}; {which}, which stood, was given up before")))
        }
        (ended, _) => ended,
    }
}

fn carried_out_of(
    tree: &Tree,
    (host, label): (&ThisHost, &Label<'_>),
    given: Given,
) -> Result<Ended, NodeError> {
    let standing = {
        let journal = Journal::open_soon(tree)?;
        let standing = journal.standing()?;
        if standing.is_none() {
            // A process may have been killed while it removed the record of an operation that had
            // ended: what is left of the record goes.
            journal.settle()?;
        }
        standing
    };
    let goes_on =
        standing.as_ref().filter(|it| it.record.id == given.id || given.order == Does::Resume);
    let (id, terms) = match goes_on {
        Some(standing) => (standing.record.id.clone(), terms_of(standing)),
        None => (given.id.clone(), given.terms.clone()),
    };
    let manager = Manager::new(BUS, terms.limits());
    let terminal = Terminal::default();
    let permits = permits(tree, &id, terms.permits);
    let node = this_node(tree, (host, label), &manager, (&*permits, terms), &terminal);
    if let Some(standing) = goes_on {
        let ended = until_terminated(node.go_on())?.map_err(NodeError::from);
        if let Err(error) = &ended
            && !has_to_wait(error)
            && let Err(why) = cut_short(tree, (&id, None), &error.to_string())
        {
            show::line(&format!("why it goes no further could not be kept: {why}"))?;
        }
        // How this one ended is what its order is told.
        if ended.is_ok()
            && let Err(error) = waited_before(tree, &id)
        {
            if has_to_wait(&error) {
                return Err(error);
            }
            show::line(&format!("what waited for a boot before it is not gone on with: {error}"))?;
        }
        // The process that wrote without a plan was killed after that: systemd has not read the units
        // that it wrote.
        if standing.record.order.is_null() && matches!(ended, Ok(Ended::Done)) {
            blocking(manager.daemon_reload(RELOAD))?.map_err(OperationError::from)?;
            watched(&manager, &Ended::Done)?;
        }
        // An adoption that was killed while it wrote had no effect, and nobody was told of it: it
        // begins again.
        let is_adoption = matches!(given.order, Does::Adopt { .. });
        let has_no_plan = is_adoption && standing.record.order.is_null();
        if !(has_no_plan && matches!(ended, Ok(Ended::WentBack { .. }))) {
            return ended;
        }
    }
    if let Some(ended) = ended_before(tree, &given)? {
        return Ok(ended);
    }
    // One that waits for a boot goes along with the next one.
    if standing.as_ref().is_none_or(Standing::waits) && !matches!(given.order, Does::Fetch { .. }) {
        become_current(tree)?;
    }
    let others = boot_units::targets();
    match given.order {
        Does::Resume => Ok(Ended::Nothing),
        Does::Fetch { config } => {
            let config = config.config()?;
            blocking(node.fetch(&given.id, digest(&config)?, &Wish::of(&config)))??;
            Ok(Ended::Nothing)
        }
        Does::Apply { config, plan, accept, drained } => {
            let plan = plan.map_or_else(|| always_allowed(tree, &config), |plan| Ok(*plan))?;
            let order = Order { id: given.id, documents: config, plan, accept, others };
            let ended = until_terminated(node.carry_out(&order, drained))??;
            watched(&manager, &ended)?;
            Ok(ended)
        }
        Does::Adopt { config, differs, drained, give_up: _ } => {
            Applied::put_aside(tree)?;
            let of_os = match differs {
                Adopt::Keep => of_the_system(tree, &Wish::of(&config.config()?))?,
                Adopt::Ask | Adopt::Overwrite => Vec::new(),
            };
            let order = (&*given.id, config, differs);
            // If another operation was given up, nobody knows which contents the running services
            // have read.
            let boots = given.gives_up.is_some();
            let adopted = async {
                let ended = node.adopt_with(order, &others, &of_os, (drained, boots)).await?;
                manager.daemon_reload(RELOAD).await?;
                Ok::<Ended, OperationError>(ended)
            };
            let ended = until_terminated(adopted)??;
            watched(&manager, &ended)?;
            Ok(ended)
        }
    }
}

/// Has the current program watch from now on.
fn watched(manager: &Manager, ended: &Ended) -> Result<(), NodeError> {
    if *ended == Ended::Done
        && let Err(problem) = blocking(manager.start_anew(boot_units::WATCH))?
    {
        // The node has its config: the watch starts with the next boot.
        show::line(&format!("drift is not watched yet: {problem}"))?;
    }
    Ok(())
}

/// The program that runs is the one that units at the next boot run.
fn become_current(tree: &Tree) -> Result<(), NodeError> {
    let digest = program::install(tree, &files::own_executable()?)?;
    Ok(program::make_current(tree, &digest)?)
}

/// The plan that is always allowed, from what was applied last to this config.
fn always_allowed(tree: &Tree, config: &Documents) -> Result<VerifiablePlan, NodeError> {
    let applied = Applied::read(tree)?.ok_or(OrderError::Unknown)?;
    let from = digest(&applied.documents.config()?)?;
    Ok(VerifiablePlan::always_allowed(from, digest(&config.config()?)?))
}

/// `tread node resume`: handed over to the unit, as any order.
pub(super) fn resume() -> Result<u8, NodeError> {
    let tree = Tree::open(Path::new("/"))?;
    // Nor is one handed over whose record is of a form that this version does not know.
    if standing_id(&tree)?.is_none() {
        return show_end(&Ended::Nothing);
    }
    by_the_unit(&tree, &Given::new(&files::operation_id(), Does::Resume))
}

fn what_stands() -> Result<u8, NodeError> {
    let tree = Tree::open(Path::new("/"))?;
    let ended = gone_on_with(&tree);
    // One that is over by now has said how it ended.
    if let Err(error) = &ended
        && !has_to_wait(error)
        && let Some(id) = standing_id(&tree).ok().flatten()
        && let Err(why) = cut_short(&tree, (&id, None), &error.to_string())
    {
        show::line(&format!("why it goes no further could not be kept: {why}"))?;
    }
    show_end(&ended?)
}

fn gone_on_with(tree: &Tree) -> Result<Ended, NodeError> {
    let host = ThisHost::read(tree, true)?;
    let label = |path: &str, kind| host.label(path, kind);
    let Some(standing) = Journal::open_soon(tree)?.standing()? else { return Ok(Ended::Nothing) };
    let terms = terms_of(&standing);
    let manager = Manager::new(BUS, terms.limits());
    let terminal = Terminal::default();
    let permits = permits(tree, &standing.record.id, terms.permits);
    let of_host = (&host, &label as &Label<'_>);
    let node = this_node(tree, of_host, &manager, (&*permits, terms), &terminal);
    let ended = until_terminated(node.go_on())??;
    waited_before(tree, &standing.record.id)?;
    Ok(ended)
}

/// Goes on with what waited for a boot before this operation, where it stands again now that this one is
/// over. How this one ended is kept beside its status.
fn waited_before(tree: &Tree, over: &str) -> Result<(), NodeError> {
    let Some(waits) = standing_id(tree)?.filter(|id| id != over) else { return Ok(()) };
    Progress::keep_beside(tree, &waits)?;
    let ended = gone_on_with(tree);
    if let Err(error) = &ended
        && !has_to_wait(error)
    {
        cut_short(tree, (&waits, None), &error.to_string())?;
    }
    ended.map(drop)
}

fn permits(tree: &Tree, operation: &str, asked: Asked) -> Box<dyn Permits> {
    match asked {
        Asked::Agent => Box::new(ByFile::new(tree, operation)),
        Asked::Nobody => Box::new(Alone),
    }
}

fn show_end(ended: &Ended) -> Result<u8, NodeError> {
    let (text, code) = match ended {
        Ended::Nothing => ("nothing to go on with".to_owned(), WELL),
        Ended::Done => ("done: the node has the new config".to_owned(), WELL),
        Ended::WaitsForBoot => {
            ("done, but for what waits for a boot: boot the node when it suits".to_owned(), WELL)
        }
        Ended::WentBack { because } => {
            (format!("the node has the old config again: {because}"), NOT_WELL)
        }
        Ended::Degraded { because } => (format!("the node is not well: {because}"), NOT_WELL),
    };
    show::line(&text)?;
    Ok(code)
}
