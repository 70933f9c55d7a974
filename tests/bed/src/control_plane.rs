//! A control plane: how it starts, and who asks it what.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use serde_json::{Value, json};

use crate::access::{Access, Ran, Server};
use crate::parts::{NODES, Options, Part, SERVING, SERVING_CERTIFICATE};
use crate::reuse;
use crate::supervisor::Supervisor;

/// A control plane of its own. Dropping it ends its processes and removes its
/// directory; so does the end of this process, in whatever way.
///
/// One of [`Options::maybe_used`] is kept for the next test instead, unless the test has failed,
/// or has hurt it.
#[derive(Debug)]
pub struct ControlPlane {
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) options: Options,
    pub(crate) port: u16,
    // Whether a test did what is not undone by putting back what etcd held.
    pub(crate) hurt: AtomicBool,
    server: Server,
    admin: Access,
    admin_token: String,
    users: Vec<(String, Access)>,
    took: Duration,
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // A log would tell the next test of requests that are not its own.
        let used = self.options.used && !self.options.audit_log;
        if used && !self.hurt.load(Ordering::Relaxed) && !thread::panicking() {
            reuse::give_back(self.handed_on());
        }
    }
}

/// Where `tests/run` put what a control plane is made of.
fn binary() -> Result<PathBuf> {
    let advice = "`tests/run --only cluster` builds a control plane and runs the tests that need \
                  one. To run them by hand, set TREAD_BED to the directory that it names.";
    let Some(dir) = env::var_os("TREAD_BED") else {
        bail!("TREAD_BED is not set. {advice}");
    };
    let binary = Path::new(&dir).join("supervisor");
    if !binary.is_file() {
        bail!("{} is not there. {advice}", binary.display());
    }
    Ok(binary)
}

impl ControlPlane {
    /// etcd and the API server alone.
    ///
    /// # Errors
    /// As [`Options::start`].
    pub fn start() -> Result<ControlPlane> {
        Options::default().start()
    }

    /// What to choose from.
    pub fn options() -> Options {
        Options::default()
    }

    pub(crate) fn start_with(options: Options) -> Result<ControlPlane> {
        let began = Instant::now();
        let binary = binary()?;
        let supervisor = Supervisor::start(&binary)?;
        let port = supervisor.reserve_port()?;
        let dir = supervisor.dir().to_owned();
        let server = Server {
            url: format!("https://127.0.0.1:{port}"),
            certificate: dir.join(SERVING_CERTIFICATE),
            dir,
            kubectl: binary.with_file_name("kubectl"),
        };
        let admin_token = "admin".to_owned();
        let admin = server.access("admin", &json!({ "token": admin_token }))?;
        let mut users = Vec::new();
        for (name, _) in &options.users {
            let access = server.access(name, &json!({ "token": token_of(name) }))?;
            users.push((name.clone(), access));
        }
        let mut plane = ControlPlane {
            supervisor: Arc::new(supervisor),
            options,
            port,
            // Until it is ready.
            hurt: AtomicBool::new(true),
            server,
            admin,
            admin_token,
            users,
            took: Duration::ZERO,
        };
        plane.write_files()?;
        plane.start_part(Part::Etcd)?;
        plane.supervisor.fill_first()?;
        plane.start_part(Part::ApiServer)?;
        if !plane.options.readable_store {
            plane.supervisor.keep_first()?;
        }
        if !plane.options.definitions.is_empty() {
            plane.define(&plane.options.definitions)?;
        }
        if !plane.options.objects.is_empty() {
            plane.apply(&plane.options.objects)?;
        }
        if plane.options.used {
            plane.supervisor.mark()?;
        }
        plane.start_others()?;
        if plane.options.registering {
            plane.apply(include_str!("../registering.yaml"))?;
        }
        plane.took = began.elapsed();
        plane.hurt.store(false, Ordering::Relaxed);
        Ok(plane)
    }

    /// Starts what is in front of the API server.
    pub(crate) fn start_others(&self) -> Result<()> {
        for part in self.parts() {
            if !matches!(part, Part::Etcd | Part::ApiServer) {
                self.start_part(part)?;
            }
        }
        self.wait_until_ready()
    }

    /// The same one, for another test.
    fn handed_on(&self) -> ControlPlane {
        ControlPlane {
            supervisor: Arc::clone(&self.supervisor),
            options: self.options.clone(),
            port: self.port,
            // Until it is put back.
            hurt: AtomicBool::new(true),
            server: self.server.clone(),
            admin: self.admin.clone(),
            admin_token: self.admin_token.clone(),
            users: self.users.clone(),
            took: self.took,
        }
    }

    fn write_files(&self) -> Result<()> {
        self.supervisor.write_key("service-accounts.key")?;
        self.supervisor.write_serving(SERVING)?;
        if self.options.registering {
            self.supervisor.write_authority(NODES)?;
        }
        let mut tokens = format!("{},admin,admin,\"system:masters\"\n", self.admin_token);
        for (name, groups) in &self.options.users {
            tokens += &format!("{},{name},{name},\"{}\"\n", token_of(name), groups.join(","));
        }
        self.write("tokens.csv", &tokens)?;
        self.write("kwok.yaml", include_str!("../stages.yaml"))?;
        self.write("audit.yaml", include_str!("../audit.yaml"))
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.supervisor.dir().join(name)
    }

    pub(crate) fn start_part(&self, part: Part) -> Result<()> {
        // Go's temporary files go where they are removed too.
        let tmp = self.path("tmp").display().to_string();
        self.supervisor.run(part.name(), None, &self.arguments(part), &[("TMPDIR", &tmp)])?;
        if part == Part::ApiServer {
            self.wait_for_api_server()?;
        }
        Ok(())
    }

    pub(crate) fn wait_for_api_server(&self) -> Result<()> {
        // It is ready before it has made the first namespaces.
        for path in ["/readyz", "/api/v1/namespaces/default"] {
            self.wait_until_answered(&[Part::Etcd, Part::ApiServer], path)?;
        }
        Ok(())
    }

    fn wait_until_answered(&self, needs: &[Part], path: &str) -> Result<()> {
        let needs: Vec<&str> = needs.iter().map(|part| part.name()).collect();
        let url = format!("{}{path}", self.server.url);
        self.supervisor.wait_until_answered(&needs, &url, &self.admin_token)
    }

    fn wait_until_ready(&self) -> Result<()> {
        if self.options.controllers {
            // What they make first of all.
            self.wait_until_answered(
                &[Part::Etcd, Part::ApiServer, Part::Controllers],
                "/api/v1/namespaces/default/serviceaccounts/default",
            )?;
        }
        for part in self.parts() {
            if let Some(how) = self.supervisor.ended(part.name())? {
                let log = self.supervisor.end_of_log(part.name());
                bail!("{} has ended: {how}. {log}", part.name());
            }
        }
        Ok(())
    }

    /// Whether it was started with that part.
    pub fn has(&self, part: Part) -> bool {
        self.parts().contains(&part)
    }

    /// How long it took to start.
    pub fn took(&self) -> Duration {
        self.took
    }

    /// Its directory: logs, kubeconfigs, etcd's data.
    pub fn dir(&self) -> &Path {
        self.supervisor.dir()
    }

    /// `https://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.server.url
    }

    /// The PEM file that a client needs to trust the API server.
    pub fn certificate_authority(&self) -> &Path {
        &self.server.certificate
    }

    /// The process that runs the others, and ends when this one does.
    pub fn supervisor_pid(&self) -> u32 {
        self.supervisor.pid()
    }

    /// The member of `system:masters`.
    pub fn admin(&self) -> &Access {
        &self.admin
    }

    /// The admin's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        self.admin.kubeconfig()
    }

    /// The admin's client, see [`Access::client`].
    ///
    /// # Errors
    /// As [`Access::client`].
    pub async fn client(&self) -> Result<Client> {
        self.admin.client().await
    }

    /// Runs kubectl as the admin.
    ///
    /// # Errors
    /// As [`Access::kubectl`].
    pub fn kubectl(&self, args: &[&str]) -> Result<Ran> {
        self.admin.kubectl(args)
    }

    /// Applies objects as the admin.
    ///
    /// # Errors
    /// As [`Access::apply`].
    pub fn apply(&self, objects: &str) -> Result<String> {
        self.admin.apply(objects)
    }

    /// Makes these definitions as the admin.
    ///
    /// # Errors
    /// As [`Access::define`].
    pub fn define(&self, definitions: &[CustomResourceDefinition]) -> Result<()> {
        self.admin.define(definitions)
    }

    /// Lets a command talk to this control plane as the admin.
    pub fn prepare(&self, command: &mut Command) {
        self.admin.prepare(command);
    }

    /// A user that [`Options::with_user`] named, with a token of their own.
    ///
    /// # Errors
    /// No such user was named.
    pub fn user(&self, name: &str) -> Result<&Access> {
        let found = self.users.iter().find(|(user, _)| user == name);
        found
            .map(|(_, access)| access)
            .with_context(|| format!("start the control plane with_user({name:?}, …)"))
    }

    /// Anybody, for RBAC: the admin's token, impersonating that user. Of no use
    /// where the token itself is looked at: take [`ControlPlane::user`] there.
    ///
    /// # Errors
    /// The kubeconfig cannot be written.
    pub fn impersonate(&self, user: &str, groups: &[&str]) -> Result<Access> {
        self.server
            .access(user, &json!({ "token": self.admin_token, "as": user, "as-groups": groups }))
    }

    /// A ServiceAccount, by a token of an hour from the TokenRequest API. It is
    /// created when it is not there; the namespace has to be.
    ///
    /// # Errors
    /// The API server refused.
    pub fn service_account(&self, namespace: &str, name: &str) -> Result<Access> {
        let all = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name },
        });
        self.post(&all, &account, &[201, 409])?;
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": { "expirationSeconds": 3600 },
        });
        let answer = self.post(&format!("{all}/{name}/token"), &request, &[201])?;
        let token = answer
            .pointer("/status/token")
            .with_context(|| format!("a TokenRequest without a token: {answer}"))?;
        self.server.access(name, &json!({ "token": token }))
    }

    fn post(&self, path: &str, body: &Value, expected: &[u16]) -> Result<Value> {
        let url = format!("{}{path}", self.server.url);
        let answer = self.supervisor.request("POST", &url, &self.admin_token, body.to_string())?;
        if !expected.contains(&answer.status) {
            bail!("POST {path}: {} {}", answer.status, answer.body);
        }
        serde_json::from_str(&answer.body).with_context(|| format!("POST {path}: {}", answer.body))
    }

    /// Makes a namespace with a name that no other test has.
    ///
    /// # Errors
    /// The API server refused.
    pub fn namespace(&self, prefix: &str) -> Result<String> {
        let name = crate::unique(prefix);
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name },
        });
        self.post("/api/v1/namespaces", &namespace, &[201])?;
        Ok(name)
    }
}

fn token_of(user: &str) -> String {
    format!("token-of-{user}")
}
