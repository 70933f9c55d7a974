//! `tread agent`.

use super::error::NodeError;
use super::files;
use super::system::{BUS, blocking};
use crate::agent::{Agent, Inbox, Orders, Permits};
use crate::permits::Alone;
use crate::program;
use crate::progress::{Progress, Reporter};
use crate::systemd::{Limits, Manager};
use crate::tree::Tree;
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

/// For the help of `tread agent`.
pub const AGENT_EXAMPLES: &str = "\
Examples:
  tread agent                                        orders from /var/lib/tread/orders
  tread agent --program /usr/libexec/tread-node      the host runs this program

It needs root, the system bus at /run/dbus/system_bus_socket and /var/lib/tread of the host, and
nothing else of it.";

/// What the static executable is called where it stands beside this one.
const PROGRAM: &str = "tread-node";

/// How an agent serves.
#[derive(Debug, Args)]
pub struct AgentArgs {
    /// The static executable that the units of the host run (default: tread-node
    /// beside this one, else this one)
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Whom an agent serves.
pub struct Served {
    /// Who gives orders.
    pub orders: Box<dyn Orders>,
    /// Who gives permits.
    pub permits: Box<dyn Permits>,
    /// Who gets reports of how far an operation is, beside the log.
    pub reporter: Option<Box<dyn Reporter>>,
}

/// Says in the log how far an operation is, and passes it on.
struct Logging(Option<Box<dyn Reporter>>);

impl Reporter for Logging {
    fn report(&self, progress: &Progress) {
        if let Some(reporter) = &self.0 {
            reporter.report(progress);
        }
        let Progress { operation, phase, message, .. } = progress;
        let running = progress.steps.iter().rfind(|step| step.started.is_some());
        let step = running.map(|step| step.step.as_str()).unwrap_or_default();
        tracing::info!(%operation, ?phase, step, message);
    }
}

impl AgentArgs {
    fn program(&self) -> Result<PathBuf, NodeError> {
        let own = Path::new("/proc/self/exe");
        let beside = own.read_link().ok().map(|own| own.with_file_name(PROGRAM));
        let beside = beside.filter(|beside| beside.exists());
        let file = self.program.as_deref().or(beside.as_deref()).unwrap_or(own);
        let bytes = files::bytes(file)?;
        match program::is_static(&bytes) {
            true => Ok(file.to_owned()),
            false => Err(NodeError::Said(format!(
                "{} needs libraries that the host may not have; name the static program: --program",
                file.display()
            ))),
        }
    }

    /// Serves the folder of orders until it is told to end.
    pub fn run(&self) -> Result<ExitCode, NodeError> {
        self.serve(async |tree| {
            let orders = Box::new(Inbox::of(tree)?);
            Ok(Served { orders, permits: Box::new(Alone), reporter: None })
        })
    }

    /// Serves somebody until it is told to end.
    pub fn serve(
        &self,
        whom: impl AsyncFnOnce(&Tree) -> Result<Served, NodeError>,
    ) -> Result<ExitCode, NodeError> {
        self.serve_whom(whom).map_err(NodeError::or_not_root)
    }

    fn serve_whom(
        &self,
        whom: impl AsyncFnOnce(&Tree) -> Result<Served, NodeError>,
    ) -> Result<ExitCode, NodeError> {
        let tree = Tree::open(Path::new("/"))?;
        let program = self.program()?;
        let manager = Manager::new(BUS, Limits::default());
        blocking(async {
            // The first process of a container ends by a signal only if it listens.
            let mut terminated = signal(SignalKind::terminate())?;
            let Served { orders, permits, reporter } = whom(&tree).await?;
            let agent = Agent {
                tree,
                manager: &manager,
                program: &program,
                orders: &*orders,
                permits: &*permits,
                reporter: &Logging(reporter),
            };
            tracing::info!(version = env!("CARGO_PKG_VERSION"), "the agent serves");
            tokio::select! {
                never = agent.run() => match never {},
                _ = terminated.recv() => Ok(ExitCode::SUCCESS),
            }
        })?
    }
}
