//! A control plane: its parts, how they start, and how a test makes them fail.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kube::Client;
use serde_json::{Value, json};

use crate::access::{Access, Ran, Server};
use crate::supervisor::{Signal, Supervisor};

/// A process of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The store.
    Etcd,
    /// The API server.
    ApiServer,
    /// The controller manager: garbage collection, disruption budgets,
    /// namespaces, Deployments, node lifecycle…
    Controllers,
    /// What binds pods to nodes.
    Scheduler,
    /// kwok, which plays every node and kubelet.
    SimulatedNodes,
}

impl Part {
    /// The name of its process and of its log.
    pub fn name(self) -> &'static str {
        match self {
            Part::Etcd => "etcd",
            Part::ApiServer => "kube-apiserver",
            Part::Controllers => "kube-controller-manager",
            Part::Scheduler => "kube-scheduler",
            Part::SimulatedNodes => "kwok",
        }
    }
}

/// What a control plane is to consist of besides etcd and the API server.
#[derive(Clone, Debug, Default)]
pub struct Options {
    controllers: bool,
    scheduler: bool,
    simulated_nodes: bool,
    audit_log: bool,
    users: Vec<(String, Vec<String>)>,
}

impl Options {
    /// With the controller manager.
    #[must_use]
    pub fn with_controllers(mut self) -> Options {
        self.controllers = true;
        self
    }

    /// With the scheduler, and the controller manager, which gives it work.
    #[must_use]
    pub fn with_scheduler(mut self) -> Options {
        self.scheduler = true;
        self.with_controllers()
    }

    /// With kwok: every Node becomes Ready, every pod on one runs.
    #[must_use]
    pub fn with_simulated_nodes(mut self) -> Options {
        self.simulated_nodes = true;
        self
    }

    /// With a log of every request, see [`ControlPlane::audit_log`].
    #[must_use]
    pub fn with_audit_log(mut self) -> Options {
        self.audit_log = true;
        self
    }

    /// With a user who has a token of their own, see [`ControlPlane::user`].
    #[must_use]
    pub fn with_user(mut self, name: &str, groups: &[&str]) -> Options {
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        self.users.push((name.to_owned(), groups));
        self
    }

    /// Starts it, and waits until it is ready.
    ///
    /// # Errors
    /// A part did not come up; the error shows the end of its log.
    pub fn start(self) -> Result<ControlPlane> {
        ControlPlane::start_with(self)
    }
}

/// A control plane of its own. Dropping it ends its processes and removes its
/// directory; so does the end of this process, in whatever way.
#[derive(Debug)]
pub struct ControlPlane {
    // Before all else: what it needs is dropped after it.
    supervisor: Supervisor,
    options: Options,
    port: u16,
    server: Server,
    admin: Access,
    admin_token: String,
    users: Vec<(String, Access)>,
    took: Duration,
}

/// Where `tests/run` put what a control plane is made of.
fn binary() -> Result<PathBuf> {
    let advice = "`tests/run --only cluster` builds a control plane and runs the tests that need \
                  one. To run them by hand, set TREAD_BED to the directory that it names.";
    let Some(dir) = env::var_os("TREAD_BED") else {
        bail!("TREAD_BED is not set. {advice}");
    };
    let binary = Path::new(&dir).join("control-plane");
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

    fn start_with(options: Options) -> Result<ControlPlane> {
        let began = Instant::now();
        let binary = binary()?;
        let supervisor = Supervisor::start(&binary)?;
        let port = supervisor.reserve_port()?;
        let dir = supervisor.dir().to_owned();
        let server = Server {
            url: format!("https://127.0.0.1:{port}"),
            certificate: dir.join("apiserver.crt"),
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
            supervisor,
            options,
            port,
            server,
            admin,
            admin_token,
            users,
            took: Duration::ZERO,
        };
        plane.write_files()?;
        for part in plane.parts() {
            plane.start_part(part)?;
        }
        plane.wait_until_ready()?;
        plane.took = began.elapsed();
        Ok(plane)
    }

    /// What it consists of, in the order in which it starts.
    fn parts(&self) -> Vec<Part> {
        let Options { controllers, scheduler, simulated_nodes, .. } = self.options;
        [
            (true, Part::Etcd),
            (true, Part::ApiServer),
            (controllers, Part::Controllers),
            (scheduler, Part::Scheduler),
            (simulated_nodes, Part::SimulatedNodes),
        ]
        .into_iter()
        .filter_map(|(wanted, part)| wanted.then_some(part))
        .collect()
    }

    fn write_files(&self) -> Result<()> {
        self.supervisor.write_key("service-accounts.key")?;
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

    fn path(&self, name: &str) -> PathBuf {
        self.supervisor.dir().join(name)
    }

    fn arguments(&self, part: Part) -> Vec<String> {
        let path = |name: &str| self.path(name).display().to_string();
        let kubeconfig = format!("--kubeconfig={}", self.admin.kubeconfig().display());
        let mut args = vec![part.name().to_owned()];
        match part {
            Part::Etcd => args.push(path("etcd")),
            Part::ApiServer => {
                args.extend([
                    format!("--etcd-servers=unix://{}", path("etcd/client.sock")),
                    format!("--cert-dir={}", path("")),
                    format!("--secure-port={}", self.port),
                    // With the supervisor, which keeps the port for this one.
                    "--permit-port-sharing".to_owned(),
                    "--bind-address=127.0.0.1".to_owned(),
                    // Nothing reaches it by the `kubernetes` Service.
                    "--advertise-address=127.0.0.1".to_owned(),
                    "--endpoint-reconciler-type=none".to_owned(),
                    "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
                    format!("--service-account-key-file={}", path("service-accounts.key")),
                    format!("--service-account-signing-key-file={}", path("service-accounts.key")),
                    "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
                    format!("--token-auth-file={}", path("tokens.csv")),
                    "--authorization-mode=RBAC,Node".to_owned(),
                    // A pod needs no ServiceAccount to be there first.
                    "--disable-admission-plugins=ServiceAccount".to_owned(),
                    "--allow-privileged".to_owned(),
                    "--profiling=false".to_owned(),
                ]);
                if self.options.audit_log {
                    args.extend([
                        format!("--audit-policy-file={}", path("audit.yaml")),
                        format!("--audit-log-path={}", self.audit_log().display()),
                    ]);
                }
            }
            Part::Controllers => args.extend([
                kubeconfig,
                "--secure-port=0".to_owned(),
                "--leader-elect=false".to_owned(),
                format!("--service-account-private-key-file={}", path("service-accounts.key")),
            ]),
            Part::Scheduler => args.extend([
                kubeconfig,
                "--secure-port=0".to_owned(),
                "--leader-elect=false".to_owned(),
            ]),
            Part::SimulatedNodes => args.extend([
                kubeconfig,
                "--manage-all-nodes".to_owned(),
                "--node-lease-duration-seconds=40".to_owned(),
                // No server for logs and exec: nothing listens.
                "--node-port=0".to_owned(),
                format!("--config={}", path("kwok.yaml")),
            ]),
        }
        args
    }

    fn start_part(&self, part: Part) -> Result<()> {
        // Go's temporary files go where they are removed too.
        let tmp = self.path("tmp").display().to_string();
        self.supervisor.run(part.name(), None, &self.arguments(part), &[("TMPDIR", &tmp)])?;
        if part == Part::ApiServer {
            self.wait_for_api_server()?;
        }
        Ok(())
    }

    fn wait_for_api_server(&self) -> Result<()> {
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

    /// Stops a part with SIGSTOP, so that it hangs, until the answer is dropped.
    ///
    /// # Errors
    /// The part does not run.
    pub fn pause(&self, part: Part) -> Result<Paused<'_>> {
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
        self.supervisor.compact()
    }

    /// Where the requests are logged, as JSON lines, by
    /// [`Options::with_audit_log`].
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

fn token_of(user: &str) -> String {
    format!("token-of-{user}")
}
