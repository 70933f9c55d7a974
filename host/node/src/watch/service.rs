//! The watch as a service of the host: it follows the config last applied, and waits while
//! an operation stands.

use super::listener::Pace;
use super::paths::{Noticed, Watch};
use super::report::{Report, State};
use crate::applied::Applied;
use crate::change::wanted;
use crate::desired::Host;
use crate::drift::{Accepted, Drift, Expected, expected};
use crate::journal::STATE;
use crate::os::Wish;
use crate::tree::{PathError, Stat, Tree};
use futures::future::LocalBoxFuture;
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
) -> Result<(Vec<Expected>, Accepted, Wish), String> {
    let applied = Applied::read(tree).map_err(|error| error.to_string())?;
    let unknown =
        "tread does not know which config this node has; say so: tread node adopt --config CONFIG";
    let applied = applied.ok_or(unknown)?;
    let config = applied.documents.config().map_err(|error| error.to_string())?;
    let host = host()?;
    let desired = wanted(&config, host.as_ref()).map_err(|error| error.to_string())?;
    let wish = Wish::of(&config);
    Ok((expected(&desired).collect(), applied.accepted, wish))
}

fn now() -> Option<u64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.ok().map(|since| since.as_secs())
}

/// Says what of the operating system is not as a config wants it; otherwise why nobody knows.
pub type System<'s> = dyn Fn(Wish) -> LocalBoxFuture<'s, Result<Vec<Drift>, String>> + 's;

/// Watches for ever. `host` says what has to be known of the host, anew for each config;
/// `system` is asked whenever everything is looked at.
pub async fn serve(
    tree: &Tree,
    host: &dyn Fn() -> Result<Box<dyn Host>, String>,
    system: &System<'_>,
    pace: Pace,
) -> Result<Infallible, ServiceError> {
    let others = [operation_path(), applied_path()];
    // Else the first report would be heard where its folder is made.
    Report::make_folder(tree)?;
    loop {
        let situation = Situation::of(tree)?;
        let nothing = |why| (Vec::new(), Accepted::new(), Wish::default(), why);
        let (state, (expected, accepted, wish, message)) = match situation.operation {
            true => (State::Paused, nothing(String::new())),
            false => match what(tree, host) {
                Ok((expected, accepted, wish)) => {
                    (State::Watching, (expected, accepted, wish, String::new()))
                }
                Err(why) => (State::Waiting, nothing(why)),
            },
        };
        let passed = accepted.clone();
        let mut of_system: Result<Vec<Drift>, String> = Ok(Vec::new());
        let mut watch = Watch::new(tree, expected, accepted, &others, pace);
        let (mut written, mut checked) = (None, None);
        // What changed since is heard from here on, or seen now.
        while Situation::of(tree)? == situation {
            let noticed = watch.next().await;
            // What an operation changes is no drift.
            let Noticed::Looked { all, .. } = noticed else { continue };
            if Situation::of(tree)? != situation {
                continue;
            }
            // What kept it may be over by now.
            if all && state == State::Waiting && written.is_some() {
                break;
            }
            if all {
                checked = now();
            }
            if all && state == State::Watching && !wish.is_none() {
                of_system = system(wish.clone()).await;
                if Situation::of(tree)? != situation {
                    continue;
                }
            }
            let mut message = watch.deaf().map_or(message.clone(), |why| {
                format!("changes are found within the hour only: {why}")
            });
            if let Err(why) = &of_system {
                message = format!("{message} nobody knows how the operating system is: {why}");
            }
            let mut report = Report::new(state, message.trim_start());
            if state == State::Watching {
                let is_new = |drift: &&Drift| !passed.contains_key(&drift.path);
                let of_system = of_system.iter().flatten().filter(is_new);
                report = report.with(watch.drifted().chain(of_system), watch.noted());
            }
            report.checked = checked;
            if written.as_ref() != Some(&report) && report.write(tree).is_ok() {
                written = Some(report);
            }
        }
    }
}
