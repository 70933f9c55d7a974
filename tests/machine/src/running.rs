//! One boot after the other: what runs, and how it ended.

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const BOOT: &str = include_str!("boot.sh");

/// One boot of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// What `/proc/sys/kernel/random/boot_id` says in it.
    pub id: String,
    /// How it ended; nothing while it runs.
    pub end: Option<End>,
}

/// How a boot ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It asked for another boot.
    Reboot,
    /// It switched itself off.
    PowerOff,
    /// Its PID 1 was killed.
    PowerCut,
    /// It never came up, or systemd ended in another way.
    Broken(ExitStatus),
}

/// What is known of a machine's boots, for whoever waits for the next one.
#[derive(Debug)]
pub(crate) struct Boots {
    pub(crate) dir: PathBuf,
    pub(crate) cgroup: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    boots: Vec<Boot>,
    by_itself: bool,
    cut: bool,
    closed: bool,
}

impl Boots {
    pub(crate) fn new(dir: PathBuf, cgroup: PathBuf) -> Arc<Boots> {
        Arc::new(Boots { dir, cgroup, state: Mutex::default(), changed: Condvar::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those so far, the running one included.
    pub(crate) fn so_far(&self) -> Vec<Boot> {
        self.state().boots.clone()
    }

    pub(crate) fn by_itself(&self, wanted: bool) {
        self.state().by_itself = wanted;
    }

    /// Kills PID 1 of the running boot: however that boot ends, its power was cut. Fails, and
    /// changes nothing, where it has ended by itself or the next one is just beginning.
    pub(crate) fn cut(&self) -> Result<()> {
        // No boot ends or begins while this is held, so it is this one that is killed.
        let mut state = self.state();
        let runs = state.boots.last().is_some_and(|boot| boot.end.is_none());
        ensure!(runs, "The machine does not run");
        let pid = self.pid().and_then(Pid::from_raw).context("The machine has no PID 1 yet")?;
        kill_process(pid, Signal::KILL).context("killing PID 1 of the machine")?;
        state.cut = true;
        Ok(())
    }

    /// No boot begins after this.
    pub(crate) fn close(&self) {
        self.state().closed = true;
    }

    /// Begins a boot, and those after it while the machine boots by itself.
    pub(crate) fn start(self: &Arc<Boots>) -> Result<()> {
        let mut running = self.begin()?;
        let boots = Arc::clone(self);
        std::thread::Builder::new().name("machine".to_owned()).spawn(move || {
            while let Ok(status) = running.wait() {
                if !boots.ended(status) {
                    break;
                }
                match boots.begin() {
                    Ok(next) => running = next,
                    Err(_) => break,
                }
            }
        })?;
        Ok(())
    }

    fn begin(&self) -> Result<Child> {
        let mut state = self.state();
        ensure!(!state.closed, "The machine is gone");
        ensure!(
            state.boots.last().is_none_or(|boot| boot.end.is_some()),
            "The machine runs already"
        );
        let id = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?.trim().to_owned();
        std::fs::write(self.dir.join("boot_id"), &id)?;
        let _ = std::fs::remove_file(self.dir.join("pid"));
        let console = std::fs::File::options().append(true).open(self.dir.join("console"))?;
        let child = in_cgroup(&self.cgroup, "unshare")
            .args(["--mount", "--propagation", "private", "--uts", "--ipc", "--cgroup", "--pid"])
            .args(["--fork", "--kill-child=KILL", "sh", "-c", BOOT, "boot.sh"])
            .arg(&self.dir)
            .stdin(Stdio::null())
            .stdout(console.try_clone()?)
            .stderr(console)
            .spawn()
            .context("starting the machine's namespaces by unshare")?;
        state.boots.push(Boot { id, end: None });
        state.cut = false;
        self.changed.notify_all();
        Ok(child)
    }

    /// Notes how a boot ended, and says whether the next one is to begin.
    fn ended(&self, status: ExitStatus) -> bool {
        let mut state = self.state();
        let end = if state.cut { End::PowerCut } else { End::of(status) };
        if let Some(boot) = state.boots.last_mut() {
            boot.end = Some(end);
        }
        self.changed.notify_all();
        end == End::Reboot && state.by_itself && !state.closed
    }

    /// Waits until what is known of the boots is as wanted.
    pub(crate) fn wait<T>(
        &self,
        limit: Duration,
        mut wanted: impl FnMut(&[Boot]) -> Option<T>,
    ) -> Option<T> {
        let end = Instant::now() + limit;
        let mut state = self.state();
        loop {
            if let Some(found) = wanted(&state.boots) {
                return Some(found);
            }
            let left = end.checked_duration_since(Instant::now())?;
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// PID 1 of the running boot, as it is called from outside.
    pub(crate) fn pid(&self) -> Option<i32> {
        std::fs::read_to_string(self.dir.join("pid")).ok()?.trim().parse().ok()
    }
}

impl End {
    fn of(status: ExitStatus) -> End {
        // A namespace whose PID 1 calls for a boot ends by SIGHUP, by SIGINT where it is
        // to be switched off. unshare ends as it did, or says so by its exit status.
        match status.signal().or(status.code().map(|code| code - 128)) {
            Some(1) => End::Reboot,
            Some(2) => End::PowerOff,
            Some(9) => End::PowerCut,
            _ => End::Broken(status),
        }
    }
}

/// A command that becomes `program` in a control group.
pub(crate) fn in_cgroup(cgroup: &Path, program: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", r#"echo 0 >"$0/cgroup.procs" && exec "$@""#]).arg(cgroup).arg(program);
    command
}
