//! Commands of the host, as units of their own: they outlive whoever started them, and are
//! found again.

use super::bus::Unanswered;
use super::facts::{Active, Load, UnitFacts};
use super::job::NoJob;
use super::manager::Manager;
use super::problem::{Problem, What};
use super::transient::{Properties, exec};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How often it is looked how it stands, should nothing be heard.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// As `SIGCHLD` says that a process ended by itself.
const EXITED: i32 = 1;

/// A command of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The unit that it runs as. The same operation always gives the same command the same
    /// name: see [`Command::unit_of`].
    pub unit: String,
    /// The program, by its absolute path on the host, and its arguments.
    pub argv: Vec<String>,
    /// How long it may take.
    pub limit: Duration,
}

impl Command {
    /// The unit of a command in an operation: `tread-OPERATION-COMMAND.service`.
    pub fn unit_of(operation: &str, command: &str) -> String {
        // 255 bytes are a name's limit.
        format!("tread-{}-{}.service", fit(operation, 100), fit(command, 100))
    }

    pub(super) fn asked(&self) -> String {
        format!("run {}", self.unit)
    }
}

/// As much of a text as may stand in a unit's name.
fn fit(text: &str, most: usize) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() || "_.".contains(c) { c } else { '-' };
    text.chars().take(most).map(fit).collect()
}

/// How it stands with a command, by what systemd keeps of it until the next boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandState {
    /// Systemd knows nothing of it: it never ran in this boot, or was forgotten.
    Unknown,
    /// It runs.
    Running,
    /// It ended well.
    Well,
    /// It ended, and not well.
    Failed {
        /// Its exit status; nothing when a signal ended it.
        exit: Option<i32>,
        /// In systemd's word: `exit-code`, `signal`, `timeout`.
        result: String,
    },
}

impl CommandState {
    pub(super) fn of(unit: &UnitFacts) -> CommandState {
        match unit.active {
            _ if unit.load == Load::NotFound => CommandState::Unknown,
            Active::Active => CommandState::Well,
            Active::Failed => CommandState::Failed {
                exit: unit.ended.filter(|it| it.0 == EXITED).map(|it| it.1),
                result: unit.result.clone(),
            },
            Active::Inactive => CommandState::Unknown,
            _ => CommandState::Running,
        }
    }
}

impl Manager {
    /// How it stands with the command that runs, or ran, as this unit.
    pub async fn command_state(&self, unit: &str) -> Result<CommandState, Problem> {
        self.facts(unit).await.map(|facts| CommandState::of(&facts))
    }

    /// Runs a command and waits for its end; where it runs already, or ended, since a
    /// caller before this one started it, its end is told. It stays known until it is
    /// forgotten: see [`Manager::forget_command`].
    pub async fn command(&self, command: &Command) -> Result<(), Problem> {
        // What ends it is systemd; this is for a systemd that does not.
        let deadline = Instant::now() + command.limit + Duration::from_secs(30);
        let state = self.run(command, deadline).await;
        let unanswered = |why| Problem::unanswered(&command.asked(), command.limit, why);
        match state.map_err(unanswered)? {
            CommandState::Well => Ok(()),
            state => Err(self.failed(command, state).await),
        }
    }

    async fn run(&self, command: &Command, deadline: Instant) -> Result<CommandState, Unanswered> {
        let path = self.path(&command.unit, deadline).await?;
        let mut changes = self.changes_of(&path, deadline).await?;
        loop {
            match CommandState::of(&self.facts_at(&path, deadline).await?) {
                CommandState::Unknown => self.begin(command, deadline).await?,
                CommandState::Running => {}
                ended => return Ok(ended),
            }
            let until = deadline.min(Instant::now() + LOOK_AGAIN);
            match timeout_at(until, changes.next()).await {
                Err(_) if until == deadline => return Err(Unanswered::Late),
                // Systemd does not tell when it drops a unit of this name that was there.
                Err(_) | Ok(true) => {}
                Ok(false) => changes = self.changes_of(&path, deadline).await?,
            }
        }
    }

    async fn begin(&self, command: &Command, deadline: Instant) -> Result<(), Unanswered> {
        let argv: Vec<&str> = command.argv.iter().map(String::as_str).collect();
        let words = argv.join(" ");
        let properties = Properties::once(&words, vec![exec(&argv, false)], command.limit)
            // So that systemd still knows how it ended.
            .with("RemainAfterExit", true);
        match self.start_transient(&command.unit, &properties, deadline).await {
            Err(Unanswered::Refused { name, .. }) if name.ends_with(".UnitExists") => Ok(()),
            // Whether it was heard is seen by how it stands.
            Err(Unanswered::Lost(_)) => Ok(()),
            started => started.map(|_| ()),
        }
    }

    pub(super) async fn failed(&self, command: &Command, state: CommandState) -> Problem {
        let what = match state {
            CommandState::Failed { result, .. } if result == "timeout" => {
                What::TimedOut { limit: command.limit, cancelled: true }
            }
            CommandState::Failed { exit, result } => What::Command { exit, result },
            _ => What::TimedOut { limit: command.limit, cancelled: false },
        };
        let mut problem = Problem::new(command.asked(), what);
        problem.excerpt = self.excerpt_of(&command.unit).await;
        problem
    }

    /// Lets systemd forget how a command ended, once that was written down: it can run
    /// again. One that runs is left alone.
    pub async fn forget_command(&self, unit: &str) -> Result<(), Problem> {
        let done = match self.command_state(unit).await? {
            CommandState::Well => self.stop(unit).await,
            CommandState::Failed { .. } => self.ask("ResetFailedUnit", &(unit,), self.soon()).await,
            CommandState::Unknown | CommandState::Running => Ok(()),
        };
        match done {
            Err(Unanswered::Refused { name, .. }) if name.ends_with(".NoSuchUnit") => Ok(()),
            done => {
                let asked = format!("forget {unit}");
                done.map_err(|why| Problem::unanswered(&asked, self.limits.answer, why))
            }
        }
    }

    async fn stop(&self, unit: &str) -> Result<(), Unanswered> {
        let path = self.path(unit, self.soon()).await?;
        let body = (unit, "replace");
        match self.run_job((&path, unit), "StopUnit", &body, self.soon()).await {
            Ok(_) => Ok(()),
            Err(NoJob::Late { .. }) => Err(Unanswered::Late),
            Err(NoJob::Unanswered(why)) => Err(why),
        }
    }

    /// Runs a command anew, however one of the same name ended: for what does no harm when
    /// it is done twice. One that still runs may have read what was there before, so its
    /// end is waited for and counts for nothing.
    pub async fn command_anew(&self, command: &Command) -> Result<(), Problem> {
        if self.command_state(&command.unit).await? == CommandState::Running {
            let _ = self.command(command).await;
        }
        self.forget_command(&command.unit).await?;
        let ended = self.command(command).await;
        self.forget_command(&command.unit).await?;
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_unit_whose_name_systemd_takes() {
        for (operation, command, expected) in [
            ("7f3a", "update-ca-trust", "tread-7f3a-update-ca-trust.service"),
            ("a/b c", "rpm@ostree", "tread-a-b-c-rpm-ostree.service"),
        ] {
            assert_eq!(Command::unit_of(operation, command), expected);
        }
        let long = "ä".repeat(500);
        assert!(Command::unit_of(&long, &long).len() <= 255);
    }
}
