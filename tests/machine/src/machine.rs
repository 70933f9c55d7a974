//! A machine and what is done with it from outside.

use crate::building::Builder;
use crate::running::{Boot, Boots, End};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const KEEP: &str = include_str!("keep.sh");

/// How long anything that a machine does by itself may take. Long, since the machine
/// that the tests run on may be busy: who waits goes on at once when it came.
const PATIENCE: Duration = Duration::from_secs(300);
/// A process that was woken so seldom in so many seconds has nothing left to do.
const SELDOM: u64 = 1;
const QUIET: u64 = 5;
/// How often it is looked whether it sleeps on, if something wakes it in between.
const LOOKS: usize = 5;

/// A machine with a systemd of its own. It ends and is removed when this is dropped.
#[derive(Debug)]
pub struct Machine {
    pub(crate) boots: Arc<Boots>,
    keeper: Child,
    held: Option<ChildStdin>,
}

impl Machine {
    /// A machine that is being made.
    pub fn build() -> Builder {
        Builder::default()
    }

    pub(crate) fn keep(dir: PathBuf, cgroup: PathBuf, lifetime: Duration) -> Result<Machine> {
        use std::os::unix::process::CommandExt;
        let mut keeper = Command::new("sh")
            .args(["-c", KEEP, "keep.sh"])
            .arg(&dir)
            .arg(&cgroup)
            .arg(lifetime.as_secs().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Whoever interrupts the tests does not interrupt what cleans up after them.
            .process_group(0)
            .spawn()
            .context("starting what ends the machine")?;
        let held = keeper.stdin.take();
        Ok(Machine { boots: Boots::new(dir, cgroup), keeper, held })
    }

    /// Switches it on.
    pub fn start(&self) -> Result<()> {
        self.boots.start()
    }

    /// Whether it boots again by itself when it asks for that; else it waits for
    /// [`Machine::start`].
    pub fn reboots_by_itself(&self, wanted: bool) {
        self.boots.by_itself(wanted);
    }

    /// Its boots so far, the running one included.
    pub fn boots(&self) -> Vec<Boot> {
        self.boots.so_far()
    }

    /// PID 1 of the running boot, as it is called from outside.
    pub fn pid(&self) -> Result<i32> {
        self.boots.pid().with_context(|| self.with_console("The machine does not run"))
    }

    /// Its root directory, as it is called from outside, until the boot ends.
    pub fn root(&self) -> Result<PathBuf> {
        Ok(PathBuf::from(format!("/proc/{}/root", self.pid()?)))
    }

    /// The socket of its system bus, as it is called from outside, until the boot ends.
    pub fn bus(&self) -> Result<PathBuf> {
        Ok(self.root()?.join("run/dbus/system_bus_socket"))
    }

    /// The upper directory of its overlay: what was put in and what it wrote.
    pub fn disk(&self) -> PathBuf {
        self.boots.dir.join("disk")
    }

    /// Its control group, as it is called from outside.
    pub fn cgroup(&self) -> &Path {
        &self.boots.cgroup
    }

    /// What it said on its console in all of its boots.
    pub fn console(&self) -> String {
        std::fs::read(self.boots.dir.join("console"))
            .map(|said| String::from_utf8_lossy(&said).into_owned())
            .unwrap_or_default()
    }

    fn with_console(&self, what: &str) -> String {
        format!("{what}. Its boots: {:?}. Its console:\n{}", self.boots(), self.console())
    }

    /// Waits for a condition that nothing reports, and says what was waited for when it
    /// does not come. Looking leaves most of the time to what is looked for.
    pub fn wait_for(&self, what: &str, mut condition: impl FnMut() -> bool) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        loop {
            let looked = Instant::now();
            if condition() {
                return Ok(());
            }
            ensure!(Instant::now() < end, self.with_console(&format!("Waited in vain for {what}")));
            let pause = looked.elapsed() * 3;
            std::thread::sleep(pause.clamp(Duration::from_millis(5), Duration::from_millis(200)));
        }
    }

    /// Waits until a process has nothing left to do: how often it is woken after that in so many seconds,
    /// in the quietest of a few looks. `count` says how often it was woken so far.
    pub fn woken(&self, what: &str, count: impl Fn() -> u64, seconds: u64) -> Result<u64> {
        let woken = |seconds: u64| {
            let before = count();
            std::thread::sleep(Duration::from_secs(seconds));
            count() - before
        };
        let is_over = || woken(QUIET) <= SELDOM;
        self.wait_for(&format!("{what} to have nothing to do"), is_over)?;
        let mut fewest = u64::MAX;
        for _ in 0..LOOKS {
            fewest = fewest.min(woken(seconds));
            if fewest <= SELDOM {
                break;
            }
        }
        Ok(fewest)
    }

    /// Waits until all that belongs to its target was started, whether or not it failed.
    pub fn wait_until_booted(&self) -> Result<String> {
        let boots = self.boots().len();
        let mut word = String::new();
        let booted = self.wait_for("systemd to finish the boot", || {
            if self.ended(boots) {
                return true;
            }
            let said = self.run(["timeout", "60", "systemctl", "is-system-running", "--wait"]);
            word = said.map(|said| said.out.trim().to_owned()).unwrap_or_default();
            matches!(word.as_str(), "running" | "degraded" | "maintenance")
        });
        booted.with_context(|| format!("It is {word:?}. {}", self.at_work()))?;
        ensure!(!self.ended(boots), self.with_console("The machine ended while it booted"));
        Ok(word)
    }

    /// What its systemd is waiting for, and what was logged last.
    pub fn at_work(&self) -> String {
        let jobs = self.run(["systemctl", "list-jobs", "--no-pager"]);
        let journal =
            self.run(["journalctl", "--no-pager", "--output=short-monotonic", "--lines=40"]);
        format!("Jobs: {jobs:?}. Journal: {journal:?}")
    }

    fn ended(&self, boots: usize) -> bool {
        self.boots().get(boots.saturating_sub(1)).is_none_or(|boot| boot.end.is_some())
    }

    /// Waits until it is booted, and everything in it is well.
    pub fn wait_until_running(&self) -> Result<()> {
        let word = self.wait_until_booted()?;
        if word != "running" {
            let failed = self.run(["systemctl", "--failed", "--no-legend", "--plain"])?.out;
            bail!(self.with_console(&format!("The machine is {word}. Failed units:\n{failed}")));
        }
        Ok(())
    }

    /// Waits until the running boot ends.
    pub fn wait_for_end(&self) -> Result<End> {
        let boots = self.boots().len();
        self.wait_for_end_of(boots)
    }

    /// Waits until the boot with this number ends; the first one is 1.
    pub fn wait_for_end_of(&self, number: usize) -> Result<End> {
        let at = number.saturating_sub(1);
        let end = self.boots.wait(PATIENCE, |boots| boots.get(at).and_then(|boot| boot.end));
        end.with_context(|| {
            self.with_console(&format!("Waited in vain for the end of boot {number}"))
        })
    }

    /// Waits until this many boots have begun and the last one is booted, in a machine
    /// that boots by itself.
    pub fn wait_for_boot(&self, number: usize) -> Result<Boot> {
        let begun = |boots: &[Boot]| boots.get(number.saturating_sub(1)).cloned();
        let boot = self
            .boots
            .wait(PATIENCE, begun)
            .with_context(|| self.with_console(&format!("Waited in vain for boot {number}")))?;
        self.wait_until_booted()?;
        Ok(boot)
    }

    /// Waits until it asks for another boot, gives it that, and waits for it.
    pub fn wait_for_reboot(&self) -> Result<Boot> {
        match self.wait_for_end()? {
            End::Reboot => {}
            other => bail!(self.with_console(&format!("A reboot was expected, not {other:?}"))),
        }
        self.start()?;
        self.wait_until_booted()?;
        self.boots().last().cloned().context("no boot")
    }

    /// Kills it as a power cut does: nothing in it hears of that.
    pub fn cut_power(&self) -> Result<()> {
        self.boots.cut()?;
        match self.wait_for_end()? {
            End::PowerCut => Ok(()),
            other => bail!("The machine ended by {other:?} before its power was cut"),
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.boots.close();
        drop(self.held.take());
        let _ = self.keeper.wait();
    }
}
