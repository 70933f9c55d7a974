//! The watch as a service of the host: it follows the config last applied, and waits while
//! an operation stands.

use super::listener::Pace;
use super::paths::{Told, Watch};
use super::report::{Report, State};
use crate::applied::Applied;
use crate::change::wanted;
use crate::desired::Host;
use crate::drift::{Accepted, Expected, expected};
use crate::journal::STATE;
use crate::tree::{PathError, Stat, Tree};
use std::convert::Infallible;
use std::time::{SystemTime, UNIX_EPOCH};

/// Why the service ends: it cannot see what it has to know.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// A path leads nowhere.
    #[error(transparent)]
    Path(#[from] PathError),
}

/// What tells whether to watch, and what.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Situation {
    /// An operation stands.
    operation: bool,
    /// The file of what was applied last.
    applied: Option<Stat>,
}

fn operation_path() -> String {
    format!("{STATE}/operation")
}

fn applied_path() -> String {
    format!("{STATE}/applied")
}

impl Situation {
    fn of(tree: &Tree) -> Result<Situation, PathError> {
        let stat = |path: &str| match tree.place(path)? {
            Some((folder, name)) => folder.stat(name).map_err(|error| PathError::io(path, error)),
            None => Ok(None),
        };
        let operation = stat(&operation_path())?.is_some();
        Ok(Situation { operation, applied: stat(&applied_path())? })
    }
}

/// What is to be watched; why nothing is, if so.
fn what(
    tree: &Tree,
    host: &dyn Fn() -> Result<Box<dyn Host>, String>,
) -> Result<(Vec<Expected>, Accepted), String> {
    let applied = Applied::read(tree).map_err(|error| error.to_string())?;
    let unknown = "tread does not know which config this node has: tread node adopt";
    let applied = applied.ok_or(unknown)?;
    let config = applied.documents.config().map_err(|error| error.to_string())?;
    let host = host()?;
    let desired = wanted(&config, host.as_ref()).map_err(|error| error.to_string())?;
    Ok((expected(&desired).collect(), applied.accepted))
}

fn now() -> Option<u64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.ok().map(|since| since.as_secs())
}

/// Watches for ever. `host` says what has to be known of the host, anew for each config.
pub async fn serve(
    tree: &Tree,
    host: &dyn Fn() -> Result<Box<dyn Host>, String>,
    pace: Pace,
) -> Result<Infallible, ServiceError> {
    let others = [operation_path(), applied_path()];
    // Else the first report would be heard where its folder is made.
    Report::make_folder(tree)?;
    loop {
        let situation = Situation::of(tree)?;
        let (state, expected, accepted, message) = match situation.operation {
            true => (State::Paused, Vec::new(), Accepted::new(), String::new()),
            false => match what(tree, host) {
                Ok((expected, accepted)) => (State::Watching, expected, accepted, String::new()),
                Err(why) => (State::Waiting, Vec::new(), Accepted::new(), why),
            },
        };
        let mut watch = Watch::new(tree, expected, accepted, &others, pace);
        let (mut told_before, mut checked) = (None, None);
        // What changed since is heard from here on, or seen now.
        while Situation::of(tree)? == situation {
            let told = watch.next().await;
            // What an operation changes is no drift.
            let Told::Looked { all, .. } = told else { continue };
            if Situation::of(tree)? != situation {
                continue;
            }
            if all {
                checked = now();
            }
            let message = watch.deaf().map_or(message.clone(), |why| {
                format!("changes are found within the hour only: {why}")
            });
            let mut report = Report::new(state, &message);
            if state == State::Watching {
                report = report.with(watch.drifted(), watch.noted());
            }
            report.checked = checked;
            if told_before.as_ref() != Some(&report) && report.write(tree).is_ok() {
                told_before = Some(report);
            }
        }
    }
}
