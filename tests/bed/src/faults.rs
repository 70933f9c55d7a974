//! What a test does to a control plane, and the programs that it runs beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::supervisor::{Signal, Write};
use crate::{Access, ControlPlane, Part};

impl ControlPlane {
    /// No other test gets it after this.
    fn is_hurt(&self) {
        self.hurt.store(true, Ordering::Relaxed);
    }

    /// Stops a part with SIGSTOP, so that it hangs, until the answer is dropped.
    ///
    /// # Errors
    /// The part does not run.
    pub fn pause(&self, part: Part) -> Result<Paused<'_>> {
        self.is_hurt();
        let pid = self.supervisor.signal(part.name(), Signal::Stop)?;
        let paused = Paused { plane: self, part };
        wait_until_stopped(pid)?;
        Ok(paused)
    }

    /// Kills a part with SIGKILL, and waits for its end. Its data and its port
    /// stay for [`ControlPlane::restart`].
    ///
    /// # Errors
    /// The part was never started.
    pub fn kill(&self, part: Part) -> Result<()> {
        self.is_hurt();
        self.supervisor.stop(part.name()).map(|_| ())
    }

    /// Starts a part that was killed, or kills it first, and waits for the API
    /// server to be ready again.
    ///
    /// # Errors
    /// It did not come up again.
    pub fn restart(&self, part: Part) -> Result<()> {
        self.kill(part)?;
        self.start_part(part)?;
        if part == Part::Etcd {
            self.wait_for_api_server()?;
        }
        Ok(())
    }

    /// Makes etcd forget every revision but the current one, which it returns.
    /// What goes on from an older one (the rest of a list in pages, or a watch
    /// that the API server's cache cannot serve) is answered with 410.
    ///
    /// # Errors
    /// etcd does not answer.
    pub fn compact(&self) -> Result<i64> {
        self.is_hurt();
        self.supervisor.compact()
    }

    /// All that was written below a prefix of etcd's keys, such as `/registry/minions/`, from a
    /// revision on: also while no API server told of it. It takes
    /// [`crate::Options::with_readable_store`].
    ///
    /// # Errors
    /// etcd does not answer, or what was written is no JSON.
    pub fn history(&self, prefix: &str, from: u64) -> Result<Vec<Write>> {
        self.supervisor.history(prefix, from)
    }

    /// Makes etcd refuse every write, as it does when it has used up its space, until the
    /// answer is dropped.
    ///
    /// # Errors
    /// etcd does not answer.
    pub fn fill(&self) -> Result<Full<'_>> {
        self.is_hurt();
        self.supervisor.set_full(true)?;
        Ok(Full { plane: self })
    }

    /// Where the requests are logged, as JSON lines, by
    /// [`crate::Options::with_audit_log`].
    pub fn audit_log(&self) -> PathBuf {
        self.supervisor.log("audit")
    }

    /// Runs a program that must not outlive the test: it is killed with this
    /// control plane. Its output goes to [`ControlPlane::log`], and it talks to
    /// this control plane as `access`.
    ///
    /// # Errors
    /// It cannot be started, or one by that name runs.
    pub fn spawn(&self, name: &str, access: &Access, program: &Path, args: &[&str]) -> Result<u32> {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        let kubeconfig = access.kubeconfig().display().to_string();
        self.supervisor.run(name, Some(program), &args, &[("KUBECONFIG", &kubeconfig)])
    }

    /// Sends a signal to a program of [`ControlPlane::spawn`].
    ///
    /// # Errors
    /// It does not run.
    pub fn signal(&self, name: &str, signal: Signal) -> Result<()> {
        self.supervisor.signal(name, signal).map(|_| ())
    }

    /// Kills a program of [`ControlPlane::spawn`] with all that it started, and
    /// waits for its end.
    ///
    /// # Errors
    /// It was never started.
    pub fn stop(&self, name: &str) -> Result<String> {
        self.supervisor.stop(name)
    }

    /// How a program of [`ControlPlane::spawn`] ended (`exit status 1`); None
    /// while it runs.
    ///
    /// # Errors
    /// It was never started.
    pub fn ended(&self, name: &str) -> Result<Option<String>> {
        self.supervisor.ended(name)
    }

    /// The log of a part ([`Part::name`]) or of a program.
    pub fn log(&self, name: &str) -> PathBuf {
        self.supervisor.log(name)
    }

    /// The last lines of that log, for a message.
    pub fn end_of_log(&self, name: &str) -> String {
        self.supervisor.end_of_log(name)
    }
}

/// An etcd without space; it has space again when this is dropped.
#[derive(Debug)]
#[must_use = "etcd has space again when this is dropped"]
pub struct Full<'a> {
    plane: &'a ControlPlane,
}

impl Full<'_> {
    /// Gives it space again.
    ///
    /// # Errors
    /// etcd does not answer.
    pub fn empty(self) -> Result<()> {
        self.plane.supervisor.set_full(false)
    }
}

impl Drop for Full<'_> {
    fn drop(&mut self) {
        // Where etcd has ended there is nobody to tell.
        let _ = self.plane.supervisor.set_full(false);
    }
}

/// A part that hangs; it goes on when this is dropped.
#[derive(Debug)]
#[must_use = "the part goes on when this is dropped"]
pub struct Paused<'a> {
    plane: &'a ControlPlane,
    part: Part,
}

impl Paused<'_> {
    /// Lets it go on.
    ///
    /// # Errors
    /// It has been killed meanwhile.
    pub fn resume(self) -> Result<()> {
        self.plane.supervisor.signal(self.part.name(), Signal::Continue)?;
        Ok(())
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        // One that was killed meanwhile needs nothing.
        let _ = self.plane.supervisor.signal(self.part.name(), Signal::Continue);
    }
}

fn wait_until_stopped(pid: u32) -> Result<()> {
    loop {
        // The third field, after a name in brackets.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        match stat.rsplit(") ").next().and_then(|rest| rest.chars().next()) {
            Some('T') => return Ok(()),
            Some('Z' | 'X') | None => bail!("process {pid} has ended"),
            Some(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
}
