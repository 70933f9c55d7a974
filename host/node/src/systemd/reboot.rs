//! A boot of the node: by logind, then by systemd, then by the kernel.

use super::bus::{Call, Unanswered};
use super::manager::{Manager, PROPERTIES};
use super::problem::{Problem, What};
use futures::StreamExt;
use std::fmt;
use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use zbus::message::Type as Kind;
use zbus::{MatchRule, OwnedObjectPath};

const LOGIND: &str = "org.freedesktop.login1";
const LOGIND_PATH: &str = "/org/freedesktop/login1";
const LOGIND_MANAGER: &str = "org.freedesktop.login1.Manager";
/// So that logind of a newer systemd (257) boots although somebody inhibits it.
const SKIP_INHIBITORS: u64 = 1 << 4;
/// How long a sync is waited for: that of a disk or a mount that hangs never ends.
const SYNC: Duration = Duration::from_secs(30);

/// Somebody who does not want the node to go down now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inhibitor {
    /// What they call themselves, cleaned.
    pub who: String,
    /// Their reason, cleaned.
    pub why: String,
    /// Their process.
    pub pid: u32,
}

/// Who was asked for the boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rung {
    /// logind.
    Logind,
    /// Systemd, by starting `reboot.target`: units are stopped in their order.
    Target,
    /// Systemd at once: processes are killed and file systems unmounted.
    Systemd,
    /// The kernel.
    Kernel,
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rung::Logind => "logind",
            Rung::Target => "systemd's reboot.target",
            Rung::Systemd => "systemd at once",
            Rung::Kernel => "the kernel",
        })
    }
}

/// How a boot is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reboot {
    /// How long those who inhibit it are waited for.
    pub inhibited: Duration,
    /// How long to wait for the node to go down before the next one is asked.
    pub going_down: Duration,
}

impl Default for Reboot {
    fn default() -> Reboot {
        Reboot { inhibited: Duration::from_secs(300), going_down: Duration::from_secs(600) }
    }
}

impl Manager {
    /// Boots the node. When all goes well this does not return, since the node goes down;
    /// `note` is told each step before it is taken. `kernel` is the last resort, the system
    /// call after a sync: [`Manager::reboot_by_kernel`].
    pub async fn reboot(
        &self,
        how: Reboot,
        mut note: impl FnMut(String),
        kernel: impl FnOnce() -> io::Result<()>,
    ) -> Problem {
        self.wait_for_inhibitors(Instant::now() + how.inhibited, &mut note).await;
        self.reboot_now(how, note, kernel).await
    }

    /// As [`Manager::reboot`], whoever inhibits it.
    pub async fn reboot_now(
        &self,
        how: Reboot,
        mut note: impl FnMut(String),
        kernel: impl FnOnce() -> io::Result<()>,
    ) -> Problem {
        for rung in [Rung::Logind, Rung::Target, Rung::Systemd] {
            note(format!("asking {rung} for a boot"));
            let asked = self.ask_rung(rung).await;
            let may_be_heard = match &asked {
                // A node that goes down at once has no time for an answer.
                Ok(()) | Err(Unanswered::Lost(_)) => true,
                // A systemd that is slow may have taken the job, and stops units in order later.
                Err(Unanswered::Late) => !matches!(rung, Rung::Logind),
                Err(_) => false,
            };
            match asked {
                Err(why) if !may_be_heard => {
                    let why = tread_model::text::one_line_within(&why.to_string(), 300).0;
                    note(format!("{rung} does not boot the node: {why}"));
                }
                _ => {
                    tokio::time::sleep(how.going_down).await;
                    let waited = how.going_down.as_secs();
                    note(format!("{rung} did not boot the node within {waited} s"));
                }
            }
        }
        note(format!("asking {} for a boot", Rung::Kernel));
        let why = match kernel() {
            Ok(()) => "the kernel was asked, and the node is still up".to_owned(),
            Err(error) => format!("the kernel refused: {error}"),
        };
        Problem::new(
            "reboot",
            What::NoWay(format!(
                "neither logind nor systemd booted the node, and {why}. Boot it by hand, or from \
                 outside"
            )),
        )
    }

    /// The system call. It never returns when the kernel does it.
    pub fn reboot_by_kernel() -> io::Result<()> {
        at_most(SYNC, rustix::fs::sync);
        rustix::system::reboot(rustix::system::RebootCommand::Restart).map_err(io::Error::from)
    }

    async fn ask_rung(&self, rung: Rung) -> Result<(), Unanswered> {
        match rung {
            Rung::Logind => self.ask_logind().await,
            Rung::Target => {
                let body = ("reboot.target", "replace-irreversibly");
                self.call("StartUnit", &body, self.soon()).await.map(|_: OwnedObjectPath| ())
            }
            Rung::Systemd => self.call("Reboot", &(), self.soon()).await,
            Rung::Kernel => Ok(()),
        }
    }

    async fn ask_logind(&self) -> Result<(), Unanswered> {
        let asked = self.bus.call(logind("Reboot"), &(false,), self.soon()).await;
        match asked {
            // That of a newer systemd refuses it to root too while somebody inhibits it.
            Err(Unanswered::Refused { .. }) => {
                let flagged = logind("RebootWithFlags");
                let overruled = self.bus.call(flagged, &(SKIP_INHIBITORS,), self.soon()).await;
                if matches!(overruled, Err(Unanswered::Refused { .. })) { asked } else { overruled }
            }
            asked => asked,
        }
    }

    /// Those who block a shutdown now. Those who only delay it are logind's to wait for.
    pub async fn inhibitors(&self) -> Result<Vec<Inhibitor>, Problem> {
        let listed = self.bus.call(logind("ListInhibitors"), &(), self.soon()).await;
        let listed: Vec<(String, String, String, String, u32, u32)> = listed
            .map_err(|why| Problem::unanswered("list-inhibitors", self.limits.answer, why))?;
        let clean = |text: &str| tread_model::text::one_line_within(text, 100).0;
        let blocks = |what: &str, mode: &str| {
            what.split(':').any(|it| it == "shutdown") && mode.starts_with("block")
        };
        let blocking = listed.iter().filter(|(what, _, _, mode, ..)| blocks(what, mode));
        Ok(blocking
            .map(|(_, who, why, _, _, pid)| Inhibitor {
                who: clean(who),
                why: clean(why),
                pid: *pid,
            })
            .collect())
    }

    /// Waits until nobody blocks a shutdown, or the time for that is over.
    pub async fn wait_for_inhibitors(&self, deadline: Instant, note: &mut impl FnMut(String)) {
        let rule = MatchRule::builder()
            .msg_type(Kind::Signal)
            .sender(LOGIND)
            .path(LOGIND_PATH)
            .interface(PROPERTIES)
            .member("PropertiesChanged")
            .build();
        // Without logind nobody can inhibit anything.
        let Ok(mut changes) = self.bus.signals(rule, self.soon()).await else { return };
        let mut noted = Vec::new();
        while let Ok(blocking) = self.inhibitors().await {
            if blocking.is_empty() {
                return;
            }
            let names: Vec<String> = blocking
                .iter()
                .map(|it| format!("{} (PID {}): {}", it.who, it.pid, it.why))
                .collect();
            let names = tread_model::text::listed(&names, 5);
            if noted != blocking {
                let seconds = deadline.saturating_duration_since(Instant::now()).as_secs_f64();
                note(format!("waiting up to {seconds:.0} s for who inhibits a boot: {names}"));
                noted = blocking;
            }
            if !matches!(timeout_at(deadline, changes.next()).await, Ok(Some(_))) {
                note(format!("booting although it is inhibited by {names}"));
                return;
            }
        }
    }
}

fn logind(method: &str) -> Call<'_> {
    Call { destination: LOGIND, path: LOGIND_PATH, interface: LOGIND_MANAGER, method }
}

/// Does what may hang, and waits for it no longer than this. Whether it was done by then.
fn at_most(limit: Duration, what: impl FnOnce() + Send + 'static) -> bool {
    let (done, ended) = mpsc::channel();
    let begun = thread::Builder::new().spawn(move || {
        what();
        // Nobody may wait for it any more.
        let _ = done.send(());
    });
    begun.is_ok() && ended.recv_timeout(limit).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hangs_is_waited_for_no_longer_than_it_may_take() {
        assert!(at_most(Duration::from_secs(600), || ()));
        assert!(!at_most(Duration::from_millis(10), || {
            loop {
                thread::park();
            }
        }));
    }
}
