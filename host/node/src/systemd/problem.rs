//! What went wrong with what was asked of systemd, for an admin and for whoever decides.

use super::bus::Unanswered;
use super::job_result::JobResult;
use super::standing::Ill;
use std::fmt;
use std::time::Duration;
use thiserror::Error;

/// What was asked and came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct Problem {
    /// What was asked, with the unit: `restart crio.service`.
    pub asked: String,
    /// What became of it.
    pub what: What,
    /// The unit's last lines in the journal, cleaned. They are the unit's words: they stay
    /// on the node, for root.
    pub excerpt: Vec<String>,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Neither systemd nor the bus answered: what they said, or did not.
    Unreachable(String),
    /// Systemd refused: the error's name and text.
    Refused {
        /// As `org.freedesktop.systemd1.NoSuchUnit`.
        name: String,
        /// What it says.
        text: String,
    },
    /// The unit does not exist.
    Missing,
    /// Its file cannot be used: what systemd calls that.
    Unusable(String),
    /// It has no way to reload.
    CannotReload,
    /// Its job ended, and not well.
    Job(JobResult),
    /// Its time was over.
    TimedOut {
        /// How much it had.
        limit: Duration,
        /// Whether its job was cancelled. A process that was started for it may run on.
        cancelled: bool,
    },
    /// Its job had not begun when the time was over.
    Queued {
        /// How much it had.
        limit: Duration,
        /// The units for whose jobs it waited.
        behind: Vec<String>,
    },
    /// It was done, and the unit was not well after it.
    NotWell(Ill),
    /// A command ended, and not well: its exit status, or the signal that ended it.
    Command {
        /// The exit status; nothing when a signal ended it.
        exit: Option<i32>,
        /// In systemd's word: `exit-code`, `signal`, `timeout`.
        result: String,
    },
    /// This host has nothing that could do it.
    NoWay(String),
}

impl What {
    /// Whether the unit's own lines may say more.
    pub(crate) fn is_of_the_unit(&self) -> bool {
        matches!(self, What::Job(_) | What::TimedOut { .. } | What::NotWell(_))
    }
}

impl Problem {
    pub(crate) fn new(asked: impl Into<String>, what: What) -> Problem {
        Problem { asked: asked.into(), what, excerpt: Vec::new() }
    }

    pub(crate) fn unanswered(asked: &str, limit: Duration, why: Unanswered) -> Problem {
        let what = match why {
            Unanswered::Absent(why) | Unanswered::Lost(why) => What::Unreachable(why),
            Unanswered::Late => What::TimedOut { limit, cancelled: false },
            Unanswered::Refused { name, .. } if name.ends_with(".NoSuchUnit") => What::Missing,
            Unanswered::Refused { name, text } => What::Refused { name, text },
        };
        Problem::new(asked, what)
    }

    /// The unit that it is about, where it is about one.
    fn unit(&self) -> Option<&str> {
        self.asked.split_once(' ').map(|(_, unit)| unit)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = |text: &str| tread_model::text::one_line_within(text, 300).0;
        write!(f, "{}: ", said(&self.asked))?;
        let unit = self.unit().unwrap_or("the unit");
        let look = format!("See `systemctl status {unit}` and `journalctl -u {unit}` on the node");
        match &self.what {
            What::Unreachable(why) => write!(
                f,
                "systemd was not reached: {}. See `systemctl status dbus.service` on the node",
                said(why)
            ),
            What::Refused { name, text } => {
                write!(f, "systemd refused: {} ({}). {look}", said(text), said(name))
            }
            What::Missing => write!(
                f,
                "there is no such unit. Correct its name in the policy or rule that named it, or \
                 let the config bring the unit"
            ),
            What::Unusable(state) => write!(
                f,
                "systemd cannot use the unit's file ({}). See `systemd-analyze verify {unit}`",
                said(state)
            ),
            What::CannotReload => write!(
                f,
                "the unit has no way to reload (CanReload=no). Let the policy or rule restart it \
                 instead, or give the unit an ExecReload="
            ),
            What::Job(result) => write!(f, "systemd's job {result}. {look}"),
            What::TimedOut { limit, cancelled } => {
                let job = if *cancelled { ", and its job was cancelled" } else { "" };
                write!(f, "it was not done within {} s{job}. {look}", limit.as_secs())
            }
            What::Queued { limit, behind } => {
                let behind: Vec<String> = behind.iter().map(|unit| said(unit)).collect();
                let behind = match tread_model::text::listed(&behind, 5) {
                    none if none.is_empty() => "another unit".to_owned(),
                    units => units,
                };
                write!(
                    f,
                    "it was not started within {} s, since it waited for {behind}. See \
                     `systemctl list-jobs` on the node while it waits, and `journalctl` of that \
                     boot after it",
                    limit.as_secs()
                )
            }
            What::NotWell(ill @ Ill::NotStarted) => write!(f, "the unit {ill}. {look}"),
            What::NotWell(ill) => write!(f, "it was done, and then the unit {ill}. {look}"),
            What::Command { exit: Some(status), .. } => {
                write!(f, "the command ended with exit status {status}. {look}")
            }
            What::Command { exit: None, result } => {
                write!(f, "the command was ended from outside ({}). {look}", said(result))
            }
            What::NoWay(why) => f.write_str(why),
        }
    }
}
