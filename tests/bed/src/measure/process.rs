//! The tread that is measured.

use crate::cluster::Cluster;
use crate::limit::Limit;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tread_test_bed::free_port;

/// Starting takes compiling a hundred modules.
const PATIENCE: Duration = Duration::from_secs(600);

/// The tread that is measured. It ends with this.
pub(crate) struct Tread {
    child: Child,
    port: u16,
    limit: Option<Limit>,
}

/// The ports that it answers on.
#[derive(Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) plain: u16,
    pub(crate) tls: u16,
    /// That of agents, in the mode enforce.
    pub(crate) agents: Option<u16>,
}

/// Installs what the cluster needs for it.
pub(crate) fn install(program: &Path, cluster: &Cluster) -> Result<Ports> {
    let ports = Ports { plain: free_port(), tls: free_port(), agents: None };
    let outside = format!("https://127.0.0.1:{}", ports.tls);
    let manifests = Command::new(program)
        .args(["manifests", "--with-inputs", "--outside", &outside])
        .output()
        .context("cannot run tread manifests")?;
    if !manifests.status.success() {
        bail!("tread manifests: {}", String::from_utf8_lossy(&manifests.stderr));
    }
    cluster.plane.apply(&String::from_utf8(manifests.stdout)?)?;
    let wait = ["wait", "--for=condition=Established", "--timeout=600s", "crd", "--all"];
    cluster.plane.kubectl(&wait)?.success()?;
    Ok(ports)
}

/// What a process takes, in KB.
pub(crate) struct Memory {
    pub(crate) resident: u64,
    pub(crate) peak: u64,
}

impl Tread {
    pub(crate) fn start(
        program: &Path,
        cluster: &Cluster,
        ports: Ports,
        is_limited: bool,
    ) -> Result<Tread> {
        let access = cluster.plane.service_account("tread-system", "tread")?;
        let cache = cluster.plane.dir().join("cache");
        let mut command = Command::new(program);
        access.prepare(&mut command);
        let log = fs::File::create(cluster.plane.dir().join("tread.log"))?;
        let child = command
            .args(["serve", "--namespace", "tread-system", "--tls-name", "127.0.0.1"])
            .args(["--listen", &format!("127.0.0.1:{}", ports.plain)])
            .args(["--listen-tls", &format!("127.0.0.1:{}", ports.tls)])
            .args(ports.agents.into_iter().flat_map(|port| {
                ["--mode=enforce".to_owned(), format!("--listen-agents=127.0.0.1:{port}")]
            }))
            .env("TREAD_CACHE_DIR", cache)
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .context("cannot run tread serve")?;
        let mut tread = Tread { child, port: ports.plain, limit: None };
        if is_limited {
            tread.limit = Some(Limit::of(tread.child.id())?);
        }
        Ok(tread)
    }

    /// As whom it asks the API server.
    pub(crate) fn user(&self) -> &'static str {
        "system:serviceaccount:tread-system:tread"
    }

    /// Waits until it says that it is ready.
    pub(crate) async fn ready(&self) -> Result<()> {
        let begun = Instant::now();
        loop {
            let answer = self.get("/readyz").await.unwrap_or_default();
            if answer.starts_with("HTTP/1.1 200") {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                bail!("tread is not ready after {PATIENCE:?}: {answer}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn get(&self, path: &str) -> Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: tread\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    /// How long all its threads together have run.
    pub(crate) fn processor_time(&self) -> Result<Duration> {
        let mut all = Duration::ZERO;
        for thread in
            fs::read_dir(format!("/proc/{}/task", self.child.id())).context("tread ended")?
        {
            // One that ends meanwhile was not one that makes plans.
            let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
            let ran = text.split_whitespace().next().and_then(|it| it.parse().ok());
            all += Duration::from_nanos(ran.context("schedstat does not say how long it ran")?);
        }
        Ok(all)
    }

    /// How long all its threads together have run, those that ended included: in hundredths of
    /// a second.
    pub(crate) fn spent(&self) -> Result<Duration> {
        let text =
            fs::read_to_string(format!("/proc/{}/stat", self.child.id())).context("tread ended")?;
        // The name of the program stands in brackets, whatever is in it.
        let after = text.rsplit_once(')').map(|(_, after)| after).unwrap_or_default();
        let mut fields = after.split_whitespace().skip(11).map(str::parse::<u64>);
        let mut ticks = || fields.next()?.ok();
        let (user, system) = (ticks(), ticks());
        let all = user.zip(system).map(|(user, system)| user + system);
        Ok(Duration::from_millis(10 * all.context("stat does not say how long it ran")?))
    }

    pub(crate) fn memory(&self) -> Result<Memory> {
        if let Some(limit) = &self.limit
            && limit.kills()? > 0
        {
            bail!("tread was killed for its memory");
        }
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))
            .context("tread ended")?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':').split_whitespace().next()?.parse().ok()
        };
        let known = |name: &str| field(name).with_context(|| format!("{name} is not told"));
        Ok(Memory { resident: known("VmRSS")?, peak: known("VmHWM")? })
    }
}

impl Drop for Tread {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
