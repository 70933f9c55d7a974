//! `tread node`: what an admin does on the node itself. The executable that the units of
//! the host run has nothing else.

mod files;
mod show;

use crate::applied::{Applied, AppliedError};
use crate::boot_units;
use crate::change::{Adopt, Order, OrderError, adopt, change, wanted};
use crate::documents::{Documents, digest};
use crate::drift::{Drift, drift};
use crate::host::{HostError, ThisHost};
use crate::journal::{Direction, Journal, JournalError};
use crate::operation::{Alone, Ended, Node, OperationError, Patience, needs_files_only};
use crate::progress::Progress;
use crate::systemd::{Limits, Manager};
use crate::tree::{PathError, Tree};
use clap::{Args, Subcommand};
use files::FileError;
use show::Terminal;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tread_model::plan::{PlanFault, VerifiablePlan};
use tread_model::problem::Problems;

/// The bus of the system that runs.
const BUS: &str = "unix:path=/run/dbus/system_bus_socket";

/// What an admin does on the node itself.
#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// Brings this node to a config, with exactly the steps of a plan.
    #[command(after_help = APPLY_EXAMPLES)]
    Apply(ApplyArgs),
    /// Says which config this node has: how tread begins with a node.
    #[command(after_help = ADOPT_EXAMPLES)]
    Adopt(AdoptArgs),
    /// Resolves an operation that was cut short: forward if it was committed, else back.
    #[command(after_help = SETTLE_EXAMPLES)]
    Settle(RootArgs),
    /// Goes on with the operation that stands, after a crash or a boot.
    #[command(after_help = RESUME_EXAMPLES)]
    Resume,
    /// Shows the last operation, and how this node stands.
    #[command(after_help = STATUS_EXAMPLES)]
    Status(StatusArgs),
    /// Holds everything on the disk against the config last applied.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(RootArgs),
}

/// For the help of `tread node`.
pub const EXAMPLES: &str = "\
Examples:
  tread node adopt --config now.yaml                            this node has this config
  tread node apply --config next.yaml --plan plan.json          with a plan of `tread plan -o json`
  tread node status                                             how far is it?";

const APPLY_EXAMPLES: &str = "\
Examples:
  tread node apply --config next.yaml --plan plan.json --dry-run
  tread node apply --config next.yaml --plan plan.json --no-drain   the node is drained already
  tread node apply --config next.yaml --reboot --no-drain           write it all, and boot

A plan is made by `tread plan now.yaml next.yaml -o json > plan.json`.

Exit codes:
  0  the node has the new config, or boots to get it
  1  it was not carried out: nothing was told to any unit
  5  the node went back to the old config, or is not well";

const ADOPT_EXAMPLES: &str = "\
Examples:
  tread node adopt --config now.yaml              what differs is an error
  tread node adopt --config now.yaml --keep       what differs stays, and is accepted
  tread node adopt --config now.yaml --overwrite --no-drain   what differs is overwritten
  tread node adopt --config now.yaml --give-up --keep         out of an operation that is degraded";

const SETTLE_EXAMPLES: &str = "\
Examples:
  tread node settle                  what was cut short, on this system
  tread node settle --root /mnt      of another system's tree

Exit codes:
  0  nothing is half done
  1  it could not be settled
  5  somebody else changed a name meanwhile: it was left as it is";

const RESUME_EXAMPLES: &str = "\
Examples:
  tread node resume                  the steps that are left, and the proof that it is well";

const STATUS_EXAMPLES: &str = "\
Examples:
  tread node status
  tread node status -o json | jq .operation.phase";

const CHECK_EXAMPLES: &str = "\
Examples:
  tread node check                   what differs from the config last applied

Exit codes:
  0  nothing
  1  it cannot be checked
  5  the paths that were listed";

/// Which system.
#[derive(Debug, Args)]
pub struct RootArgs {
    /// The tree of another system: its files only, no unit is told
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

/// What to apply.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// The config that the node is to get: MachineConfigs, as YAML or JSON
    #[arg(long, value_name = "FILE", required = true)]
    config: Vec<PathBuf>,
    /// The plan that leads to it: `tread plan OLD NEW -o json`
    #[arg(long, value_name = "FILE", required_unless_present = "reboot")]
    plan: Option<PathBuf>,
    /// Use the plan that is always allowed: drain, write, reboot, uncordon
    #[arg(long, conflicts_with = "plan")]
    reboot: bool,
    /// Show each step, and every path that would change; change nothing
    #[arg(long)]
    dry_run: bool,
    /// The node is drained, or need not be: `drain` and `uncordon` are left out
    #[arg(long)]
    no_drain: bool,
    /// Paths whose difference from the config last applied is accepted, one a line
    #[arg(long, value_name = "FILE")]
    accept_drift: Option<PathBuf>,
    #[command(flatten)]
    root: RootArgs,
}

/// What the node has.
#[derive(Debug, Args)]
pub struct AdoptArgs {
    /// The config that the node is said to have: MachineConfigs, as YAML or JSON
    #[arg(long, value_name = "FILE", required = true)]
    config: Vec<PathBuf>,
    /// What differs stays as it is, and counts as accepted
    #[arg(long, conflicts_with = "overwrite")]
    keep: bool,
    /// What differs is overwritten, and the node boots
    #[arg(long)]
    overwrite: bool,
    /// The node is drained, or need not be, where it has to boot
    #[arg(long)]
    no_drain: bool,
    /// End an operation that stands and cannot be gone on with: names stay as they are
    #[arg(long)]
    give_up: bool,
    #[command(flatten)]
    root: RootArgs,
}

/// What to show.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// For a script
    #[arg(short, long, value_name = "FORMAT", value_parser = ["json"])]
    output: Option<String>,
    #[command(flatten)]
    root: RootArgs,
}

/// Why a command came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// A file that was named cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The host is not known.
    #[error(transparent)]
    Host(#[from] HostError),
    /// What was applied last is not known.
    #[error(transparent)]
    Applied(#[from] AppliedError),
    /// A config cannot be read.
    #[error("{0}")]
    Config(#[from] Problems),
    /// The plan is none.
    #[error(transparent)]
    Plan(#[from] PlanFault),
    /// It is not carried out.
    #[error(transparent)]
    Operation(#[from] OperationError),
    /// A path leads nowhere.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The system does not answer.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<OrderError> for NodeError {
    fn from(error: OrderError) -> NodeError {
        NodeError::Operation(error.into())
    }
}

impl From<JournalError> for NodeError {
    fn from(error: JournalError) -> NodeError {
        NodeError::Operation(error.into())
    }
}

/// How long systemd may take to read its units.
const RELOAD: Duration = Duration::from_secs(60);
/// The same while everything else waits for it.
const RELOAD_AT_BOOT: Duration = Duration::from_secs(20);
/// It is as it should be, or has become so.
const WELL: u8 = 0;
/// It is not: it drifted, went back, or is degraded.
const NOT_WELL: u8 = 5;

impl NodeCommand {
    /// Does it.
    pub fn run(&self) -> Result<ExitCode, NodeError> {
        let code = match self {
            NodeCommand::Apply(args) => args.run()?,
            NodeCommand::Adopt(args) => args.run()?,
            NodeCommand::Settle(args) => args.settle()?,
            NodeCommand::Resume => resume()?,
            NodeCommand::Status(args) => args.run()?,
            NodeCommand::Check(args) => args.check()?,
        };
        Ok(ExitCode::from(code))
    }
}

impl RootArgs {
    fn runs(&self) -> bool {
        self.root.is_none()
    }

    fn tree(&self) -> Result<Tree, NodeError> {
        Ok(Tree::open(self.root.as_deref().unwrap_or(Path::new("/")))?)
    }

    fn host(&self, tree: &Tree) -> Result<ThisHost, NodeError> {
        Ok(ThisHost::read(tree, self.runs())?)
    }

    fn settle(&self) -> Result<u8, NodeError> {
        let tree = self.tree()?;
        let settled = {
            let journal = Journal::open(&tree)?;
            let standing = journal.standing()?;
            let settled = journal.settle()?;
            // What has no plan has no steps that would follow.
            let is_over = !self.runs() || standing.is_some_and(|it| it.record.order.is_null());
            if is_over && settled.is_some() {
                journal.finish()?;
            }
            settled
        };
        let Some(settled) = settled else {
            show::line("nothing to settle")?;
            return Ok(WELL);
        };
        let which = match settled.direction {
            Direction::Forward => "the new config is whole",
            Direction::Undone | Direction::Back => "the old config is whole again",
        };
        show::line(&format!("settled: {which}"))?;
        for path in &settled.left {
            show::line(&format!("left as it is, since somebody else changed it: {path}"))?;
        }
        if self.runs() && settled.changed {
            // What systemd read of its units before this is older than what is there.
            let manager = Manager::before_the_bus(Limits::default());
            // Names are whole whether or not it is heard: whoever goes on tells it again.
            if let Err(problem) = blocking(manager.daemon_reload(RELOAD_AT_BOOT))? {
                show::line(&format!("systemd did not read its units again yet: {problem}"))?;
            }
        }
        Ok(if settled.left.is_empty() { WELL } else { NOT_WELL })
    }

    fn check(&self) -> Result<u8, NodeError> {
        let tree = self.tree()?;
        let applied = Applied::read(&tree)?.ok_or(OrderError::Unknown)?;
        let config = applied.documents.config()?;
        let desired = wanted(&config, &self.host(&tree)?)?;
        let found = drift(&tree, &desired, &applied.accepted)?;
        for Drift { path, differs, .. } in &found {
            show::line(&format!("{path}: {differs}"))?;
        }
        show::line(&format!("{} of {} paths differ", found.len(), desired.pieces.len()))?;
        Ok(if found.is_empty() { WELL } else { NOT_WELL })
    }
}

impl ApplyArgs {
    fn run(&self) -> Result<u8, NodeError> {
        let tree = self.root.tree()?;
        let documents = files::documents(&self.config)?;
        let plan = self.plan(&tree, &documents)?;
        let accept = self.accept_drift.as_deref().map_or(Ok(Vec::new()), files::lines)?;
        let order = Order { id: files::operation_id(), documents, plan, accept };
        let host = self.root.host(&tree)?;
        let label = |path: &str, kind| host.label(path, kind);
        if self.dry_run {
            let change = change(&tree, &host, &label, &order)?;
            needs_files_only(&change)?;
            show::dry_run(&order.plan, &change.ready.record)?;
            return Ok(WELL);
        }
        if !self.root.runs() {
            let journal = Journal::open(&tree)?;
            let change = change(&tree, &host, &label, &order)?;
            needs_files_only(&change)?;
            journal.write(&change.ready.record, &change.ready.new)?;
            journal.finish()?;
            let names = change.ready.record.entries.len();
            show::line(&format!("written: {names} names; no unit was told"))?;
            return Ok(WELL);
        }
        let manager = Manager::new(BUS, Limits::default());
        let terminal = Terminal::default();
        let node = node(&tree, &host, &label, &manager, &terminal);
        ended(&blocking(node.carry_out(&order, self.no_drain))??)
    }

    fn plan(&self, tree: &Tree, documents: &Documents) -> Result<VerifiablePlan, NodeError> {
        match &self.plan {
            Some(file) => Ok(VerifiablePlan::read(&files::bytes(file)?)?),
            None => {
                let applied = Applied::read(tree)?.ok_or(OrderError::Unknown)?;
                let from = digest(&applied.documents.config()?)?;
                Ok(VerifiablePlan::always_allowed(from, digest(&documents.config()?)?))
            }
        }
    }
}

impl AdoptArgs {
    fn run(&self) -> Result<u8, NodeError> {
        let tree = self.root.tree()?;
        let host = self.root.host(&tree)?;
        let label = |path: &str, kind| host.label(path, kind);
        let what = match (self.keep, self.overwrite) {
            (true, _) => Adopt::Keep,
            (_, true) => Adopt::Overwrite,
            _ => Adopt::Ask,
        };
        let others = match self.root.runs() {
            true => boot_units::targets(files::own_executable()?),
            false => Vec::new(),
        };
        let order = (&*files::operation_id(), files::documents(&self.config)?, what);
        if self.give_up {
            let journal = Journal::open(&tree)?;
            journal.settle()?;
            journal.finish()?;
        }
        let adoption = adopt(&tree, &host, &label, order, others)?;
        let word = if what == Adopt::Overwrite { "overwritten" } else { "accepted" };
        for Drift { path, differs, .. } in &adoption.found {
            show::line(&format!("{word}: {path}: {differs}"))?;
        }
        if !self.root.runs() {
            let journal = Journal::open(&tree)?;
            journal.write(&adoption.ready.record, &adoption.ready.new)?;
            journal.finish()?;
        } else {
            let manager = Manager::new(BUS, Limits::default());
            let terminal = Terminal::default();
            let node = node(&tree, &host, &label, &manager, &terminal);
            let ended = blocking(async {
                let ended = node.adopt(adoption, self.no_drain).await?;
                manager.daemon_reload(RELOAD).await?;
                Ok::<Ended, OperationError>(ended)
            })??;
            if ended != Ended::Done {
                return self::ended(&ended);
            }
        }
        show::line("adopted: the next plan begins at this config")?;
        Ok(WELL)
    }
}

impl StatusArgs {
    fn run(&self) -> Result<u8, NodeError> {
        let tree = self.root.tree()?;
        let applied = Applied::read(&tree)?;
        let has = match &applied {
            Some(applied) => Some(digest(&applied.documents.config()?)?),
            None => None,
        };
        let progress = Progress::read(&tree)?;
        match self.output.as_deref() {
            Some(_) => show::status_json(has, progress.as_ref())?,
            None => show::status(has, progress.as_ref())?,
        }
        Ok(WELL)
    }
}

fn resume() -> Result<u8, NodeError> {
    let tree = Tree::open(Path::new("/"))?;
    let host = ThisHost::read(&tree, true)?;
    let label = |path: &str, kind| host.label(path, kind);
    let manager = Manager::new(BUS, Limits::default());
    let terminal = Terminal::default();
    let node = node(&tree, &host, &label, &manager, &terminal);
    ended(&blocking(node.go_on())??)
}

fn node<'n>(
    tree: &Tree,
    host: &'n ThisHost,
    label: &'n crate::prepare::Label<'n>,
    manager: &'n Manager,
    terminal: &'n Terminal,
) -> Node<'n> {
    Node {
        tree: tree.clone(),
        host,
        label,
        manager,
        permits: &Alone,
        reporter: terminal,
        patience: Patience::default(),
        kernel: &Manager::reboot_by_kernel,
    }
}

fn ended(ended: &Ended) -> Result<u8, NodeError> {
    let (text, code) = match ended {
        Ended::Nothing => ("nothing to go on with".to_owned(), WELL),
        Ended::Done => ("done: the node has the new config".to_owned(), WELL),
        Ended::WentBack { because } => {
            (format!("the node has the old config again: {because}"), NOT_WELL)
        }
        Ended::Degraded { because } => (format!("the node is not well: {because}"), NOT_WELL),
    };
    show::line(&text)?;
    Ok(code)
}

fn blocking<T>(future: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(future))
}
