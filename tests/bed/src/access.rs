//! Somebody who may ask the API server: a kubeconfig, and what to do with one.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use crate::LONG;

/// Longer than the 290 seconds after which a watch begins anew.
const SILENCE: Duration = Duration::from_secs(300);

/// What kubectl complains of where an object has no conditions yet.
const NO_CONDITIONS: &str = ".status.conditions accessor error: <nil>";

/// What a command did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// What it printed.
    pub stdout: String,
    /// What it complained of.
    pub stderr: String,
    /// Its exit code; -1 after a signal.
    pub code: i32,
}

impl Ran {
    /// What it printed, or an error that shows all, unless it ended with 0.
    ///
    /// # Errors
    /// The command failed.
    pub fn success(self) -> Result<String> {
        if self.code != 0 {
            bail!("exit code {}\n{}{}", self.code, self.stdout, self.stderr);
        }
        Ok(self.stdout)
    }
}

/// Somebody who may ask the API server.
#[derive(Clone, Debug)]
pub struct Access {
    kubeconfig: PathBuf,
    kubectl: PathBuf,
    // kubectl's, which it would keep in the home directory otherwise.
    cache: PathBuf,
}

/// Where the API server is.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) certificate: PathBuf,
    pub(crate) dir: PathBuf,
    pub(crate) kubectl: PathBuf,
}

impl Server {
    /// Writes a kubeconfig for a user, in the words of a kubeconfig.
    pub(crate) fn access(&self, name: &str, user: &Value) -> Result<Access> {
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{
                "name": "bed",
                "cluster": { "server": self.url, "certificate-authority": self.certificate },
            }],
            "users": [{ "name": name, "user": user }],
            "contexts": [{ "name": "bed", "context": { "cluster": "bed", "user": name } }],
            "current-context": "bed",
        });
        let file: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let kubeconfig = self.dir.join(format!("{}.kubeconfig", crate::unique(&file)));
        std::fs::write(&kubeconfig, format!("{config:#}"))
            .with_context(|| format!("cannot write {}", kubeconfig.display()))?;
        Ok(Access {
            kubeconfig,
            kubectl: self.kubectl.clone(),
            cache: self.dir.join("kubectl-cache"),
        })
    }
}

impl Access {
    /// The file for `KUBECONFIG` and `--kubeconfig`.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A client that lives in the runtime of the caller, so one for each test.
    ///
    /// It shows a 429, 503 or 504 at once: the default is to try again up to 15
    /// times, minutes with an eviction that a disruption budget blocks.
    ///
    /// # Errors
    /// The kubeconfig cannot be used.
    pub async fn client(&self) -> Result<Client> {
        Ok(Client::try_from(self.client_config().await?)?)
    }

    /// What [`Access::client`] is made of, for a test that wants it different.
    ///
    /// # Errors
    /// The kubeconfig cannot be used.
    pub async fn client_config(&self) -> Result<Config> {
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig)?;
        let mut config =
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        config.default_retry = false;
        config.read_timeout = Some(SILENCE);
        Ok(config)
    }

    /// Runs kubectl. A `wait` for a condition is run again where the object had no conditions yet:
    /// kubectl takes that for an error.
    ///
    /// # Errors
    /// It cannot be run; an exit code is no error.
    pub fn kubectl(&self, args: &[&str]) -> Result<Ran> {
        let begun = Instant::now();
        loop {
            let ran = self.kubectl_with_input(args, "")?;
            let has_none = args.first() == Some(&"wait") && ran.stderr.contains(NO_CONDITIONS);
            if !has_none || begun.elapsed() > LONG {
                return Ok(ran);
            }
        }
    }

    /// Runs kubectl with something to read on its standard input (`-f -`).
    ///
    /// # Errors
    /// It cannot be run; an exit code is no error.
    pub fn kubectl_with_input(&self, args: &[&str], input: &str) -> Result<Ran> {
        let mut command = Command::new(&self.kubectl);
        command.args(args);
        self.prepare(&mut command);
        run(&mut command, input).with_context(|| format!("kubectl {}", args.join(" ")))
    }

    /// Applies YAML or JSON, and fails unless the API server took all of it. The API server itself
    /// refuses fields that it does not know: kubectl would take three times as long to see them.
    ///
    /// # Errors
    /// kubectl failed.
    pub fn apply(&self, objects: &str) -> Result<String> {
        let args = ["apply", "--server-side", "--force-conflicts", "--validate=false", "-f", "-"];
        self.kubectl_with_input(&args, objects)?.success().context("kubectl apply")
    }

    /// Makes these definitions, and waits until objects of each can be made.
    ///
    /// # Errors
    /// kubectl failed.
    pub fn define(&self, definitions: &[CustomResourceDefinition]) -> Result<()> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": definitions}).to_string();
        self.apply(&list)?;
        let names = definitions.iter().filter_map(|it| it.metadata.name.as_ref());
        let names: Vec<String> = names.map(|name| format!("crd/{name}")).collect();
        let mut wait = vec!["wait", "--for=condition=Established", "--timeout=600s"];
        wait.extend(names.iter().map(String::as_str));
        self.kubectl(&wait)?.success().context("kubectl wait")?;
        Ok(())
    }

    /// Lets a command talk to this control plane: `KUBECONFIG` is set, and
    /// `kubectl` is the first in its `PATH`.
    pub fn prepare(&self, command: &mut Command) {
        command.env("KUBECONFIG", &self.kubeconfig).env("KUBECACHEDIR", &self.cache);
        // kubectl takes a seventh less processor time where it hardly collects garbage.
        command.env("GOGC", "400");
        if let Some(tools) = self.kubectl.parent() {
            let mut path = tools.as_os_str().to_owned();
            if let Some(rest) = std::env::var_os("PATH") {
                path.push(":");
                path.push(rest);
            }
            command.env("PATH", path);
        }
    }
}

/// Runs a command to its end.
fn run(command: &mut Command, input: &str) -> Result<Ran> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let stdin = child.stdin.take();
    let output = thread::scope(|scope| {
        scope.spawn(|| {
            // One that does not read its input has its reasons.
            if let Some(mut stdin) = stdin {
                let _ = stdin.write_all(input.as_bytes());
            }
        });
        child.wait_with_output()
    })?;
    Ok(Ran {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code().unwrap_or(-1),
    })
}
