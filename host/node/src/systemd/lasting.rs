//! A program of the host that runs as long as it needs, as a unit without a file: it outlives
//! whoever started it, and whatever that one runs in, such as a container.

use super::bus::Unanswered;
use super::facts::{Active, Load, UnitFacts};
use super::manager::Manager;
use super::problem::Problem;
use super::transient::{Properties, exec};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How often it is looked whether it still runs, should nothing be heard: systemd does not
/// tell when it drops a unit.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How often it is started again in an hour when a signal ended it.
const STARTS_IN_AN_HOUR: u32 = 10;
const HOUR: Duration = Duration::from_secs(3600);
/// It has to be alive when the node runs out of memory.
const LAST_TO_GO: i32 = -900;

/// A program of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lasting<'l> {
    /// The unit that it runs as.
    pub unit: &'l str,
    /// What it is for, as systemd lists it.
    pub description: &'l str,
    /// The unit after which it starts, and before which it is ended.
    pub after: &'l str,
    /// The program, by its absolute path on the host, and its arguments.
    pub argv: Vec<&'l str>,
}

/// The exit status of a program that has to be started again: it was told to end, or somebody
/// else was at it.
pub const AGAIN: u8 = 75;

/// Whether it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    /// It was.
    Now,
    /// One of this name runs already.
    RunsAlready,
}

impl Manager {
    /// Whether a unit of this name runs, or will again at once.
    pub async fn runs(&self, unit: &str) -> Result<bool, Problem> {
        Ok(runs(&self.facts(unit).await?))
    }

    /// Starts it. If a signal ends it systemd starts it again; once it has ended systemd forgets
    /// the unit.
    pub async fn start_lasting(&self, lasting: &Lasting<'_>) -> Result<Started, Problem> {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let commands = vec![exec(&lasting.argv, false)];
        let properties = Properties::service(lasting.description, "exec", commands)
            .with("After", vec![lasting.after.to_owned()])
            .with("Restart", "on-abnormal".to_owned())
            .with("RestartForceExitStatus", (vec![i32::from(AGAIN)], Vec::<i32>::new()))
            .with("RestartUSec", micros(Duration::from_millis(100)))
            .with("StartLimitIntervalUSec", micros(HOUR))
            .with("StartLimitBurst", STARTS_IN_AN_HOUR)
            .with("OOMScoreAdjust", LAST_TO_GO)
            .with("CollectMode", "inactive-or-failed".to_owned());
        match self.start_transient(lasting.unit, &properties, self.soon()).await {
            Ok(_) => Ok(Started::Now),
            Err(Unanswered::Refused { name, .. }) if name.ends_with(".UnitExists") => {
                Ok(Started::RunsAlready)
            }
            // Whether it was heard is seen by how it stands.
            Err(Unanswered::Lost(_)) if self.runs(lasting.unit).await? => Ok(Started::Now),
            Err(why) => {
                let asked = format!("start {}", lasting.unit);
                Err(Problem::unanswered(&asked, self.limits.answer, why))
            }
        }
    }

    /// Waits until no unit of this name runs.
    pub async fn until_it_ends(&self, unit: &str) -> Result<(), Problem> {
        loop {
            let looked = async {
                let path = self.path(unit, self.soon()).await?;
                let mut changes = self.changes_of(&path, self.soon()).await?;
                while runs(&self.facts_at(&path, self.soon()).await?) {
                    match timeout_at(Instant::now() + LOOK_AGAIN, changes.next()).await {
                        Err(_) | Ok(true) => {}
                        // The bus was started anew.
                        Ok(false) => return Ok(false),
                    }
                }
                Ok(true)
            };
            let asked = format!("look-at {unit}");
            let looked: Result<bool, Unanswered> = looked.await;
            if looked.map_err(|why| Problem::unanswered(&asked, self.limits.answer, why))? {
                return Ok(());
            }
        }
    }
}

fn runs(unit: &UnitFacts) -> bool {
    let is_at_rest = matches!(unit.active, Active::Inactive | Active::Failed);
    // A job that was asked for has not begun for a moment.
    unit.load != Load::NotFound && (unit.job.is_some() || !is_at_rest)
}
