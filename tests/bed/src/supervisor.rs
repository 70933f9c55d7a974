//! The other end of `supervisor supervise`: it starts processes, and ends
//! them when this process does, in whatever way.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write as _};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest that anything here waits for a server, in seconds. A condition
/// ends each wait; this only bounds a machine that is stuck.
const PATIENCE: u32 = 600;

/// How long the last clients of a control plane may take to leave it, in seconds.
const LEAVING: u32 = 40;

/// The lines of a log that an error shows.
const TAIL: usize = 15;

#[derive(Default, Serialize)]
struct Request<'a> {
    op: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    program: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    args: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<String, String>,
    signal: i32,
    method: &'a str,
    url: &'a str,
    token: &'a str,
    body: String,
    seconds: u32,
    #[serde(skip_serializing_if = "<[&str]>::is_empty")]
    needs: &'a [&'a str],
    revision: i64,
    port: u16,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Reply {
    error: String,
    name: String,
    dir: PathBuf,
    pid: u32,
    port: u16,
    ended: String,
    status: u16,
    body: String,
    revision: i64,
    writes: Vec<Write>,
}

/// What was written to one key of etcd.
#[derive(Clone, Debug, Deserialize)]
pub struct Write {
    /// As `/registry/minions/NAME`.
    pub key: String,
    /// The object: where it was deleted, as it was before.
    pub value: Value,
    /// The object's `resourceVersion`.
    pub revision: u64,
    /// Whether it was deleted.
    #[serde(default)]
    pub deleted: bool,
}

/// What an HTTP server said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// A signal that a test sends to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM: end in order.
    Terminate,
    /// SIGKILL, to this process alone: a crash.
    Kill,
    /// SIGSTOP: hang.
    Stop,
    /// SIGCONT: go on.
    Continue,
}

impl Signal {
    fn number(self) -> i32 {
        match self {
            Signal::Terminate => 15,
            Signal::Kill => 9,
            Signal::Stop => 19,
            Signal::Continue => 18,
        }
    }
}

#[derive(Debug)]
struct Wire {
    child: Child,
    // None once the end has begun.
    requests: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
}

/// A process that runs others, in a directory of its own.
#[derive(Debug)]
pub(crate) struct Supervisor {
    dir: PathBuf,
    pid: u32,
    wire: Mutex<Wire>,
}

impl Supervisor {
    pub(crate) fn start(binary: &Path) -> Result<Supervisor> {
        let mut child = Command::new(binary)
            .arg("supervise")
            .arg(std::env::temp_dir())
            // The API servers take a tenth less processor time, and more memory.
            .env("GOGC", "400")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Neither an interrupt from the terminal nor a kill of the tests'
            // process group may reach it: it has to clean up.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot run {}", binary.display()))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the supervisor has no pipes");
        };
        let pid = child.id();
        let mut wire = Wire { child, requests: Some(stdin), replies: BufReader::new(stdout) };
        let hello = wire.receive().context("its complaint is on standard error")?;
        Ok(Supervisor { dir: hello.dir, pid, wire: Mutex::new(wire) })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    fn ask(&self, request: &Request<'_>) -> Result<Reply> {
        let reply = self.exchange(request)?;
        if reply.error.is_empty() { Ok(reply) } else { Err(anyhow!(reply.error)) }
    }

    fn exchange(&self, request: &Request<'_>) -> Result<Reply> {
        // A test that panicked while it held the lock has read its reply or not
        // sent its request: both are whole lines.
        let mut wire = self.wire.lock().unwrap_or_else(PoisonError::into_inner);
        let mut line = serde_json::to_string(request)?;
        line.push('\n');
        wire.requests
            .as_mut()
            .ok_or_else(|| anyhow!("the control plane has been ended"))?
            .write_all(line.as_bytes())
            .context("the supervisor of the control plane has ended")?;
        wire.receive()
    }

    /// Starts a program, or with none the tool of the binary itself that the
    /// first argument names.
    pub(crate) fn run(
        &self,
        name: &str,
        program: Option<&Path>,
        args: &[String],
        env: &[(&str, &str)],
    ) -> Result<u32> {
        let program = program.map(Path::to_string_lossy).unwrap_or_default();
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        self.ask(&Request {
            op: "start",
            name,
            program: &program,
            args,
            env: env.collect(),
            ..Request::default()
        })
        .map(|reply| reply.pid)
        .with_context(|| format!("cannot start {name}"))
    }

    pub(crate) fn signal(&self, name: &str, signal: Signal) -> Result<u32> {
        let number = signal.number();
        self.ask(&Request { op: "signal", name, signal: number, ..Request::default() })
            .map(|reply| reply.pid)
    }

    /// Kills a process with its children, and waits for its end.
    pub(crate) fn stop(&self, name: &str) -> Result<String> {
        let request = Request { op: "stop", name, ..Request::default() };
        self.ask(&request).map(|reply| reply.ended)
    }

    /// How a process ended; None while it runs.
    pub(crate) fn ended(&self, name: &str) -> Result<Option<String>> {
        let request = Request { op: "ended", name, ..Request::default() };
        let reply = self.ask(&request)?;
        Ok(Some(reply.ended).filter(|how| !how.is_empty()))
    }

    pub(crate) fn reserve_port(&self) -> Result<u16> {
        let request = Request { op: "port", ..Request::default() };
        self.ask(&request).map(|reply| reply.port)
    }

    /// Writes a new private key into a file of the directory.
    pub(crate) fn write_key(&self, file: &str) -> Result<()> {
        let request = Request { op: "key", name: file, ..Request::default() };
        self.ask(&request).map(|_| ())
    }

    /// Writes what signs certificates into `name`.crt and `name`.key of the directory.
    pub(crate) fn write_authority(&self, name: &str) -> Result<()> {
        let request = Request { op: "authority", name, ..Request::default() };
        self.ask(&request).map(|_| ())
    }

    /// Writes what an API server shows its clients into `name`.crt and `name`.key of the
    /// directory.
    pub(crate) fn write_serving(&self, name: &str) -> Result<()> {
        let request = Request { op: "serving", name, ..Request::default() };
        self.ask(&request).map(|_| ())
    }

    /// Puts into an etcd that has just been started what each API server writes first, if
    /// [`Supervisor::keep_first`] has kept it.
    pub(crate) fn fill_first(&self) -> Result<()> {
        self.is_ready(&Request { op: "fill-first", ..Request::default() }, &["etcd"])
    }

    /// Keeps what an API server has written into an empty etcd for those that are started
    /// later, unless that was kept before.
    pub(crate) fn keep_first(&self) -> Result<()> {
        self.ask(&Request { op: "keep-first", ..Request::default() }).map(drop)
    }

    /// Remembers all that etcd holds, for [`Supervisor::restore`].
    pub(crate) fn mark(&self) -> Result<()> {
        self.ask(&Request { op: "mark", ..Request::default() }).map(drop)
    }

    /// Ends all processes but etcd and the API server on this port, waits until nobody is
    /// connected to that one, and has etcd hold again what was marked.
    ///
    /// The error says why that is not possible.
    pub(crate) fn restore(&self, port: u16) -> Result<()> {
        let seconds = LEAVING;
        self.ask(&Request { op: "restore", port, seconds, ..Request::default() }).map(drop)
    }

    pub(crate) fn request(
        &self,
        method: &str,
        url: &str,
        token: &str,
        body: String,
    ) -> Result<Answer> {
        let reply = self.ask(&Request {
            op: "request",
            method,
            url,
            token,
            body,
            seconds: PATIENCE,
            ..Request::default()
        })?;
        Ok(Answer { status: reply.status, body: reply.body })
    }

    /// Waits until a GET is answered with 200. The error shows the end of the
    /// log of the last of the processes that have to run for that, or of the one
    /// that has ended.
    pub(crate) fn wait_until_answered(&self, needs: &[&str], url: &str, token: &str) -> Result<()> {
        let request =
            Request { op: "await", needs, url, token, seconds: PATIENCE, ..Request::default() };
        self.is_ready(&request, needs)
    }

    fn is_ready(&self, request: &Request<'_>, needs: &[&str]) -> Result<()> {
        let reply = self.exchange(request)?;
        if reply.error.is_empty() {
            return Ok(());
        }
        let named = Some(reply.name.as_str()).filter(|name| !name.is_empty());
        let guilty = named.or(needs.last().copied()).unwrap_or_default();
        bail!("the control plane is not ready: {}. {}", reply.error, self.end_of_log(guilty))
    }

    pub(crate) fn compact(&self) -> Result<i64> {
        let request = Request { op: "compact", ..Request::default() };
        self.ask(&request).map(|reply| reply.revision)
    }

    /// All that was written below a prefix, from a revision on.
    pub(crate) fn history(&self, prefix: &str, from: u64) -> Result<Vec<Write>> {
        let revision = i64::try_from(from)?;
        let request = Request { op: "history", name: prefix, revision, ..Request::default() };
        self.ask(&request).map(|reply| reply.writes)
    }

    /// Whether etcd has used up its space.
    pub(crate) fn set_full(&self, full: bool) -> Result<()> {
        let op = if full { "fill" } else { "empty" };
        self.ask(&Request { op, ..Request::default() }).map(drop)
    }

    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.dir.join("logs").join(format!("{name}.log"))
    }

    pub(crate) fn end_of_log(&self, name: &str) -> String {
        let path = self.log(name);
        match fs::read_to_string(&path) {
            Ok(text) => {
                let lines: Vec<&str> = text.lines().collect();
                let tail = lines.get(lines.len().saturating_sub(TAIL)..);
                format!("The log of {name} ends with:\n{}", tail.unwrap_or_default().join("\n"))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => format!("{name} has no log."),
            Err(error) => format!("{} cannot be read: {error}.", path.display()),
        }
    }
}

impl Wire {
    fn receive(&mut self) -> Result<Reply> {
        let mut line = String::new();
        self.replies.read_line(&mut line)?;
        if line.is_empty() {
            bail!("the supervisor of the control plane has ended");
        }
        serde_json::from_str(&line).with_context(|| format!("the supervisor said {line:?}"))
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let wire = self.wire.get_mut().unwrap_or_else(PoisonError::into_inner);
        // The end of its input is what it ends everything on.
        wire.requests = None;
        // A failure to wait leaves nothing that could be done here.
        let _ = wire.child.wait();
    }
}
