//! Commands that run in a machine.

use crate::machine::Machine;
use crate::running::in_cgroup;
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// A machine that goes down stops everything in it for a moment. Whoever came in from outside
/// stops with it, and nobody in there lets that one go on.
const AGAIN: Duration = Duration::from_millis(200);

/// What a command in a machine said, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Its exit status; nothing when a signal ended it.
    pub status: Option<i32>,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl Machine {
    /// A command in the running boot, for whoever wants to wait for it in another way
    /// than [`Machine::run`]. It ends with the boot.
    pub fn command<S: AsRef<OsStr>>(&self, argv: impl IntoIterator<Item = S>) -> Result<Command> {
        // Beside systemd's own groups, which it leaves alone.
        let cgroup = self.cgroup().join("commands");
        if !cgroup.is_dir() {
            std::fs::create_dir(&cgroup).context("making a control group for commands")?;
        }
        let mut command = in_cgroup(&cgroup, "nsenter");
        command
            .arg(format!("--target={}", self.pid()?))
            .args(["--mount", "--uts", "--ipc", "--pid", "--cgroup", "--", "env", "-i"])
            .arg("PATH=/usr/sbin:/usr/bin:/sbin:/bin")
            .args(argv);
        Ok(command)
    }

    /// Runs a command in it, at most five minutes long.
    pub fn run<S: AsRef<OsStr>>(&self, argv: impl IntoIterator<Item = S>) -> Result<Said> {
        let mut command = self.command(["timeout", "--signal=KILL", "300"])?;
        command.args(argv).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn()?;
        let pid = Pid::from_child(&child);
        let (over, is_over) = mpsc::channel::<()>();
        let out = thread::scope(|scope| {
            scope.spawn(move || {
                while is_over.recv_timeout(AGAIN) == Err(RecvTimeoutError::Timeout) {
                    let _ = kill_process(pid, Signal::CONT);
                }
            });
            let out = child.wait_with_output();
            drop(over);
            out
        })?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Said { status: out.status.code(), out: text(&out.stdout), err: text(&out.stderr) })
    }

    /// Runs a command that has to end well, and returns what it printed.
    pub fn run_well<S: AsRef<OsStr>>(
        &self,
        argv: impl IntoIterator<Item = S> + Clone,
    ) -> Result<String> {
        let said = self.run(argv.clone())?;
        let words: Vec<_> =
            argv.into_iter().map(|it| it.as_ref().to_string_lossy().into_owned()).collect();
        let words = words.join(" ");
        match said.status {
            Some(0) => Ok(said.out),
            Some(_) => bail!("{words} in the machine: {said:?}"),
            None => bail!("{words} in the machine did not end: {said:?}. {}", self.at_work()),
        }
    }
}
