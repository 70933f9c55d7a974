//! An agent's orders and permits, from the service; and what its NodeUpdate says.

mod asking;
mod steps;

use crate::kept::{Keeps, Kept, Taken};
use crate::listening::{Heard, listen};
use crate::phase::{Known, phase};
use crate::reading::{Todo, gives_up, is_given_after_its_end, todo};
use crate::saying::say;
use crate::service::{Service, Settings, Unheard};
use crate::status::{Says, becomes, status};
use futures::future::LocalBoxFuture;
use kube::Client;
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tread_kube::agents::Instructions;
use tread_kube::api::node_update::{ConfigName, NodeUpdateStatus, UpdatePhase, UpdateStage};
use tread_model::joining::GAVE_UP;
use tread_model::protocol::Phase;
use tread_node::agent::Orders;
use tread_node::applied::Applied;
use tread_node::boot_image::boot_image_of;
use tread_node::change::Adopt;
use tread_node::documents::{Documents, digest};
use tread_node::journal::{is_in_the_way, standing_id, stands};
use tread_node::orders::{Does, Given};
use tread_node::progress::{Phase as Ended, Progress, Reporter};
use tread_node::terms::{Asked, Terms};
use tread_node::tree::Tree;

/// Before a node whose disk differs from what it is to have is looked at again.
const LOOKS_AGAIN: Duration = Duration::from_secs(600);

/// The service, as the agent of a node sees it. Clones are one.
#[derive(Clone)]
pub struct Wire(Rc<Inner>);

struct Inner {
    tree: Tree,
    keeps: Arc<Keeps>,
    service: Arc<Service>,
    heard: watch::Receiver<Heard>,
    said: watch::Sender<Option<NodeUpdateStatus>>,
    says: RefCell<Says>,
    progress: RefCell<Option<Progress>>,
    /// It asks for something now: for a boot that its plan does not have.
    asks: Cell<Option<bool>>,
    /// The number of its last question.
    number: Cell<u64>,
    adoption: RefCell<Option<Adoption>>,
    /// Nobody has looked since its start, or since an operation ended, whether the node has what it is
    /// said to have.
    unchecked: Cell<bool>,
    /// The revision at which all was said again.
    said_again: RefCell<Option<String>>,
    /// Listening and saying: both end with this.
    _tasks: JoinSet<Infallible>,
}

/// Why a node says of no config that it has it.
const UNFINISHED: &str = "an operation ended here before all of it was done: which config the node has is \
    known once its next order, or somebody by hand, has drained and booted it";

/// That the node is to say what it has.
#[derive(Debug, Clone)]
struct Adoption {
    id: String,
    revision: String,
    config: ConfigName,
    /// What came of it, in words.
    why: String,
    /// When it is tried again, where the disk differs.
    again: Option<Instant>,
}

/// Begins to listen to the service, and to write the node's NodeUpdate with this client, until the
/// last clone of the wire is dropped. To be called where tasks can be spawned.
///
/// # Errors
/// The service's URL is none, or what the agent keeps cannot be read or written.
pub fn start(tree: &Tree, settings: Settings, client: Client) -> Result<Wire, StartError> {
    let service = Arc::new(Service::new(settings)?);
    let keeps = Arc::new(Keeps::of(tree).map_err(io::Error::other)?);
    let number = keeps.first_number()?;
    let boot = tread_node::systemd::boot_id_of(tree);
    let boot = boot.inspect_err(|error| tracing::warn!(%error, "which boot this is, is not known"));
    let (hears, heard) = watch::channel(Heard::Nothing);
    let (said, says) = watch::channel(None);
    let mut tasks = JoinSet::new();
    tasks.spawn(listen(tree.clone(), keeps.clone(), service.clone(), hears));
    tasks.spawn(say(client, keeps.clone(), says));
    Ok(Wire(Rc::new(Inner {
        tree: tree.clone(),
        keeps,
        service,
        heard,
        said,
        says: RefCell::new(Says { boot: boot.ok(), ..Says::default() }),
        progress: RefCell::default(),
        asks: Cell::default(),
        number: Cell::new(number),
        adoption: RefCell::default(),
        unchecked: Cell::new(true),
        said_again: RefCell::default(),
        _tasks: tasks,
    })))
}

/// Why an agent does not begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The service cannot be asked.
    #[error(transparent)]
    Service(#[from] Unheard),
    /// What it keeps cannot be read or written.
    #[error("what the agent keeps below /var/lib/tread/agent: {0}")]
    Keeps(#[from] io::Error),
}

impl Orders for Wire {
    fn next(&self) -> LocalBoxFuture<'_, io::Result<Given>> {
        Box::pin(self.0.next())
    }

    fn ended<'o>(
        &'o self,
        id: &'o str,
        how: Option<&'o Progress>,
    ) -> LocalBoxFuture<'o, io::Result<()>> {
        Box::pin(async move { self.0.ended(id, how) })
    }
}

impl Reporter for Wire {
    fn report(&self, progress: &Progress) {
        *self.0.progress.borrow_mut() = Some(progress.clone());
        self.0.report_status_or_log();
    }
}

/// Whether the NodeUpdate is older than an order that the agent took: it was made anew, or the API
/// server was restored from a backup. The service can give an order again only once it knows the
/// highest token.
fn is_older(instructions: &Instructions, kept: &Kept) -> bool {
    let is_later = |taken: &Taken| match &instructions.order {
        Some(order) => order.operation != taken.operation && order.token <= kept.token,
        None => true,
    };
    kept.taken.as_ref().is_some_and(is_later)
}

/// Whether the service has no order for the node that is yet to end. What such an order leads from is
/// what its agent said before.
fn is_idle(heard: &Heard) -> bool {
    let Heard::Instructions(instructions) = heard else { return false };
    instructions.order.as_ref().is_none_or(|order| order.stage == UpdateStage::Closed)
}

/// Whether the node is another one by now, with the same name.
fn is_of_another_node(instructions: &Instructions, kept: &Kept) -> bool {
    instructions.uid.is_some() && kept.uid.is_some() && instructions.uid != kept.uid
}

/// Whether what the agent said is lost.
fn is_lost(instructions: &Instructions, kept: &Kept) -> bool {
    instructions.adopt || is_older(instructions, kept) || is_given_after_its_end(instructions, kept)
}

impl Inner {
    async fn next(&self) -> io::Result<Given> {
        let mut heard = self.heard.clone();
        loop {
            let is = heard.borrow_and_update().clone();
            self.settles()?;
            self.is_whole()?;
            if is_idle(&is) {
                self.still_has_it()?;
            }
            let mut again = None;
            match is {
                Heard::Nothing => {}
                Heard::Unknown(why) => self.says(&why),
                Heard::Instructions(instructions) => {
                    self.knows(&instructions)?;
                    match todo(self.keeps.get().local(), &instructions) {
                        Todo::Nothing => {}
                        Todo::Waits(why) => self.says(&why),
                        Todo::TurnBack(taken) => {
                            self.takes(taken, "it was withdrawn before it was begun")?
                        }
                        Todo::Carry(taken, mut given) => {
                            let stands = standing_id(&self.tree).ok().flatten();
                            let order = instructions.order.as_ref();
                            given.gives_up =
                                order.and_then(|it| gives_up(&self.keeps.get(), it, stands));
                            self.takes(taken, "")?;
                            return Ok(*given);
                        }
                        // The disk may match the config while what runs has not read it yet.
                        Todo::Adopt(..) if self.keeps.get().gone.is_some() => {
                            // Of an order it stands in the status already, with more of why.
                            if self.keeps.get().is_gone_without_an_order() {
                                self.says(UNFINISHED);
                            }
                            again = Some(Instant::now() + LOOKS_AGAIN);
                        }
                        Todo::Adopt(config, name) => {
                            let failed = self.failed_to_bring(&instructions, &name)?;
                            match failed.map_or_else(|| self.adopts(&instructions, name), Err) {
                                Ok(id) => return self.adoption(&id, config, instructions.joins),
                                Err(when) => again = when,
                            }
                        }
                    }
                }
            }
            self.report_status()?;
            let changed = async { heard.changed().await.map_err(io::Error::other) };
            match again {
                None => changed.await?,
                Some(again) => tokio::select! {
                    changed = changed => changed?,
                    () = sleep_until(again) => {}
                },
            }
        }
    }

    /// What is known of the node by the instructions.
    fn knows(&self, instructions: &Instructions) -> io::Result<()> {
        self.says("");
        let is_first = self.is_first(instructions);
        self.keeps.change(|kept| {
            if is_of_another_node(instructions, kept) {
                *kept = std::mem::take(kept).anew();
            }
            if !instructions.joins {
                kept.has_a_part();
            }
            let same = |taken: &Taken| {
                instructions.order.as_ref().filter(|it| it.operation == taken.operation)
            };
            if let Some(order) = kept.taken.as_ref().and_then(same) {
                // It was given anew, under another Lease.
                kept.token = kept.token.max(order.token);
            }
            kept.node.clone_from(&instructions.node);
            if instructions.uid.is_some() {
                kept.uid.clone_from(&instructions.uid);
            }
            if is_first && is_lost(instructions, kept) {
                kept.written = None;
            }
        })
    }

    /// The same while something is asked for: all is said again, where that is lost.
    fn says_again_what_is_lost(&self, instructions: &Instructions) {
        let kept = self.keeps.get();
        // What was said of the node before is not said of this one.
        if is_of_another_node(instructions, &kept) {
            return;
        }
        if !self.is_first(instructions) || !is_lost(instructions, &kept) {
            return;
        }
        if let Err(error) = self.keeps.change(|kept| kept.written = None) {
            tracing::error!(%error, "what the agent keeps cannot be written");
        }
        self.report_status_or_log();
    }

    /// Whether these instructions come for the first time.
    fn is_first(&self, instructions: &Instructions) -> bool {
        let before = self.said_again.replace(Some(instructions.revision.clone()));
        before.as_ref() != Some(&instructions.revision)
    }

    /// An order is taken, which is known from now on.
    fn takes(&self, taken: Taken, because: &str) -> io::Result<()> {
        self.keeps.change(|kept| {
            kept.token = kept.token.max(taken.token);
            let phase = taken.phase;
            if kept.taken.as_ref().is_none_or(|known| known.operation != taken.operation) {
                kept.taken = Some(taken);
            }
            if phase != UpdatePhase::Waiting {
                becomes(kept, phase, because);
            }
        })?;
        self.report_status()
    }

    /// Whether it was tried in vain to bring what a joining machine could not boot with. That costs
    /// one boot, and is not tried a second time.
    fn failed_to_bring(
        &self,
        instructions: &Instructions,
        config: &ConfigName,
    ) -> io::Result<Option<Option<Instant>>> {
        let kept = self.keeps.get();
        let Some((operation, digest)) = kept.brings else { return Ok(None) };
        let is_it = digest == config.digest || kept.brings_name.as_ref() == Some(&config.name);
        if !instructions.joins || !is_it {
            return Ok(None);
        }
        let of_it = |it: &Progress| it.operation == operation;
        let mut last = Progress::read(&self.tree).map_err(io::Error::other)?.filter(of_it);
        if last.is_none() {
            // Another one stands, whose status has come since.
            last = Progress::read_refused(&self.tree).map_err(io::Error::other)?.filter(of_it);
        }
        let failed = last.filter(|it| matches!(it.phase, Ended::WentBack | Ended::Degraded));
        Ok(failed.map(|it| {
            self.says(&format!("{GAVE_UP}: {}", steps::runnable(&it.message)));
            None
        }))
    }

    /// The order to adopt. A machine that joins may boot for it, with a permit.
    fn adoption(&self, id: &str, config: Documents, joins: bool) -> io::Result<Given> {
        let (differs, give_up) = (Adopt::Ask, false);
        let given = Given::new(id, Does::Adopt { config, differs, drained: joins, give_up });
        if !joins {
            return Ok(given);
        }
        let config = self.adoption.borrow().as_ref().map(|it| it.config.clone());
        self.keeps.change(|kept| {
            kept.brings = config.as_ref().map(|it| (id.to_owned(), it.digest.clone()));
            kept.brings_name = config.map(|it| it.name);
        })?;
        let terms = Terms { permits: Asked::Agent, ..Terms::default() };
        Ok(Given { terms, ..given })
    }

    /// What the order to adopt is called; nothing where it was tried, or when it is tried again.
    fn adopts(
        &self,
        instructions: &Instructions,
        config: ConfigName,
    ) -> Result<String, Option<Instant>> {
        let revision = instructions.revision.as_str();
        let mut adoption = self.adoption.borrow_mut();
        if let Some(known) = adoption.as_ref().filter(|known| known.revision == revision) {
            match known.again {
                Some(again) if again <= Instant::now() => {}
                again => {
                    self.says(&known.why);
                    return Err(again);
                }
            }
        }
        let id = match instructions.joins {
            // As the service reads operations: it is asked for permits.
            true => format!("{:032x}", self.number()),
            false => format!("adopt-{}", self.number()),
        };
        let revision = revision.to_owned();
        // Where it does not come to its end, as where the host does not answer, the next one is given.
        let again = Some(Instant::now());
        *adoption = Some(Adoption { id: id.clone(), revision, config, why: String::new(), again });
        Ok(id)
    }

    /// The number of one more question.
    fn number(&self) -> u64 {
        self.number.set(self.number.get() + 1);
        self.number.get()
    }

    fn ended(&self, id: &str, how: Option<&Progress>) -> io::Result<()> {
        let adopted = self.adoption.borrow().clone().filter(|it| it.id == id);
        let Some(adoption) = adopted else {
            if let Some(how) = how {
                *self.progress.borrow_mut() = Some(how.clone());
            }
            return self.report_status();
        };
        let is_done = how.is_some_and(|how| {
            let known = Known {
                progress: Some(how),
                is_blocked: false,
                permitted: true,
                needs_boot: false,
            };
            phase(&known) == Phase::Done
        });
        if is_done {
            let config = adoption.config.clone();
            self.keeps.change(|kept| (kept.current, kept.written) = (Some(config), None))?;
        }
        let why = how.map(|how| steps::runnable(&how.message)).unwrap_or_default();
        self.says(&why);
        let again = (!is_done).then(|| Instant::now() + LOOKS_AGAIN);
        *self.adoption.borrow_mut() = Some(Adoption { why, again, ..adoption });
        self.report_status()
    }

    /// How an operation ended that nobody attended to its end.
    fn settles(&self) -> io::Result<()> {
        let Some(taken) = self.keeps.get().taken else { return Ok(()) };
        if Phase::from(taken.phase).is_end() {
            return Ok(());
        }
        let of_this = |progress: &Progress| progress.operation == taken.operation;
        let known = Progress::read(&self.tree).map_err(io::Error::other)?.filter(of_this);
        let refused = || {
            Ok::<_, io::Error>(
                Progress::read_refused(&self.tree).map_err(io::Error::other)?.filter(of_this),
            )
        };
        let known = match known {
            None => refused()?,
            known => known,
        };
        if known.as_ref().is_some_and(|known| known.phase.is_end()) {
            *self.progress.borrow_mut() = known;
            return self.report_status();
        }
        let has_begun = taken.phase != UpdatePhase::Waiting;
        if !has_begun || stands(&self.tree).map_err(io::Error::other)? {
            return Ok(());
        }
        // Somebody else settled it, or how it ended could not be kept.
        let (phase, because) = match self.has(&taken.config) {
            true => (UpdatePhase::Done, ""),
            false => (UpdatePhase::WentBack, "it was cut short, and nothing of it stands any more"),
        };
        self.keeps.change(|kept| becomes(kept, phase, because))?;
        self.unchecked.set(true);
        self.report_status()
    }

    /// What a node that is gone left is whole once it ended well, by a boot or by an admin.
    fn is_whole(&self) -> io::Result<()> {
        if self.keeps.get().gone.is_none() || stands(&self.tree).map_err(io::Error::other)? {
            return Ok(());
        }
        let last = Progress::read(&self.tree).map_err(io::Error::other)?;
        let is_whole = match last.map(|last| last.phase) {
            Some(Ended::Done) => true,
            // One that went back without a boot left running what was running.
            Some(Ended::WentBack) => {
                self.keeps.get().has_booted_since(self.says.borrow().boot.as_ref())
            }
            _ => false,
        };
        if is_whole { self.keeps.change(Kept::is_whole) } else { Ok(()) }
    }

    /// Looks once, at the start and after each end, whether the node still has what it is said to have;
    /// while no order is open. An operation that was done may go back in a later boot, and one that gives
    /// up another goes back to what that left.
    fn still_has_it(&self) -> io::Result<()> {
        if !self.unchecked.get() || stands(&self.tree).map_err(io::Error::other)? {
            return Ok(());
        }
        self.unchecked.set(false);
        let Some(current) = self.keeps.get().current.filter(|it| !it.digest.is_empty()) else {
            return Ok(());
        };
        match self.applied() {
            // tread makes its digest in another way than when that was said.
            Some(applied) if applied.name == current.name && applied.digest != current.digest => {
                self.keeps.change(|kept| (kept.current, kept.written) = (Some(applied), None))
            }
            Some(applied) if applied.digest != current.digest => {
                tracing::warn!(
                    config = current.name,
                    "the node has another config than was said of it"
                );
                self.keeps.change(|kept| (kept.current, kept.written) = (None, None))
            }
            _ => Ok(()),
        }
    }

    /// Whether this config was applied here last: tread may have made its digest in another way when it
    /// was ordered. By hand any config may be applied that is called so.
    fn has(&self, config: &ConfigName) -> bool {
        let applied = Applied::read(&self.tree).ok().flatten();
        let given_as = applied.as_ref().and_then(|applied| applied.documents.given_as());
        given_as == Some(config.name.as_str())
            || self.applied().is_some_and(|is| is.digest == config.digest)
    }

    /// The config that was applied here last.
    fn applied(&self) -> Option<ConfigName> {
        let applied = Applied::read(&self.tree).ok().flatten()?;
        let config = applied.documents.config().ok()?;
        Some(ConfigName {
            name: config.name.to_string(),
            digest: digest(&config).ok()?.to_string(),
        })
    }

    fn says(&self, message: &str) {
        message.clone_into(&mut self.says.borrow_mut().message);
    }

    fn report_status_or_log(&self) {
        if let Err(error) = self.report_status() {
            tracing::error!(%error, "what the agent keeps cannot be written");
        }
    }

    /// Has the node's NodeUpdate say how it is.
    fn report_status(&self) -> io::Result<()> {
        self.follows()?;
        let kept = self.keeps.get();
        if kept.node.is_empty() {
            return Ok(());
        }
        let mut says = self.says.borrow_mut();
        if says.boot_image.is_none() {
            // A unit of the host writes it, at a time of its own.
            says.boot_image = boot_image_of(&self.tree);
        }
        self.said.send_replace(Some(status(&kept, &says)));
        Ok(())
    }

    /// Notes how far the operation is by what host/node tells.
    fn follows(&self) -> io::Result<()> {
        let Some(taken) = self.keeps.get().taken else { return Ok(()) };
        let progress = self.progress.borrow();
        let progress = progress.as_ref().filter(|it| it.operation == taken.operation);
        let before = Phase::from(taken.phase);
        if before.is_end() {
            self.says.borrow_mut().step.clear();
            return Ok(());
        }
        let asks = self.asks.get();
        let is_refused = progress.is_some_and(|it| it.phase == Ended::Refused);
        let known = Known {
            progress,
            is_blocked: is_refused && is_in_the_way(&self.tree).map_err(io::Error::other)?,
            permitted: before != Phase::Waiting,
            needs_boot: asks == Some(true),
        };
        let now = phase(&known);
        if let Some(progress) = progress {
            let mut says = self.says.borrow_mut();
            says.step = steps::step(progress);
            if asks.is_none() {
                says.message = steps::message(progress);
            }
        }
        if now == before {
            return Ok(());
        }
        let message = progress.map(steps::message).unwrap_or_default();
        if now.is_end() {
            self.unchecked.set(true);
            let mut says = self.says.borrow_mut();
            says.step.clear();
            says.message.clear();
        }
        self.keeps.change(|kept| becomes(kept, now.into(), &message))
    }
}
