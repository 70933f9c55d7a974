//! A machine with an agent that is confined as its container is.

use crate::program::program;
use std::cell::Cell;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tread_model::plan::{Step, VerifiablePlan};
use tread_node::agent::confinement::MOUNTS;
use tread_node::change::Adopt;
use tread_node::documents::{Document, Documents, digest};
use tread_node::operation_unit::UNIT;
use tread_node::orders::{Does, Given};
use tread_node::progress::{Phase, Progress};
use tread_node::terms::Terms;
use tread_node::tree::Tree;
use tread_test_machine::{Builder, End, Machine};

/// How long a machine lives whose test takes as long as it may, however busy this one is.
const LIFETIME: Duration = Duration::from_secs(3600);

pub(crate) struct Bed {
    pub(crate) machine: Machine,
    orders: Cell<u32>,
}

/// The unit of the machine that these configs are about: it says in its log what it read when. A reload
/// lasts while there is a file `/var/hold`.
const A_SERVICE: &str = "[Service]\n\
    Type=notify\n\
    NotifyAccess=all\n\
    ExecStart=/bin/sh -c 'echo start $(cat /etc/a.conf) >> /var/a.log; systemd-notify --ready; exec sleep infinity'\n\
    ExecReload=/bin/sh -c 'echo reload $(cat /etc/a.conf) >> /var/a.log; \
    while [ -e /var/hold ]; do sleep 0.05; done'\n";

/// A config in which the unit's file says this.
pub(crate) fn config(word: &str) -> Documents {
    with_files(&format!(r#"{{"path": "/etc/a.conf", "contents": {{"source": "data:,{word}"}}}}"#))
}

/// A config with these files.
pub(crate) fn with_files(files: &str) -> Documents {
    let text = format!(
        r#"{{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {{"name": "rendered-worker-1",
                          "labels": {{"machineconfiguration.openshift.io/role": "worker"}}}},
            "spec": {{"config": {{"ignition": {{"version": "3.4.0"}},
                                  "storage": {{"files": [{files}]}}}}}}}}"#
    );
    Documents(vec![Document { name: "config.yaml".to_owned(), text }])
}

pub(crate) fn plan(from: &str, to: &str, steps: &[Step]) -> VerifiablePlan {
    plan_of(&config(from), &config(to), steps)
}

pub(crate) fn plan_of(from: &Documents, to: &Documents, steps: &[Step]) -> VerifiablePlan {
    let digest = |documents: &Documents| digest(&documents.config().unwrap()).unwrap();
    let mut plan = VerifiablePlan::always_allowed(digest(from), digest(to));
    plan.steps = steps.to_vec();
    plan.digest = plan.computed_digest();
    plan
}

pub(crate) fn reload() -> Vec<Step> {
    vec![Step::Write, Step::Reload { unit: "a.service".to_owned() }]
}

/// The static program, in the machine.
pub(crate) const PROGRAM: &str = "/opt/tread-node";
/// What an admin says.
pub(crate) const APPLY: [&str; 10] = [
    PROGRAM,
    "node",
    "apply",
    "--config",
    "/var/next.json",
    "--plan",
    "/var/plan.json",
    "--well-for",
    "0",
    "--no-drain",
];
/// What confines it, in the machine.
const CONFINE: &str = "/opt/confine.sh";

/// An agent that runs as long as its machine, unless it is killed.
pub(crate) struct Agent<'b> {
    bed: &'b Bed,
    child: Child,
}

impl Agent<'_> {
    /// As the kernel kills it, or a runtime that lost its patience.
    pub(crate) fn kill(mut self) {
        if let Some(pid) = self.bed.pid_of_agent() {
            let _ = self.bed.machine.run(["kill", "-KILL", pid.trim_start_matches("/proc/")]);
        } else {
            self.child.kill().unwrap();
        }
        // A machine that goes down stops everything in it, and nobody in there lets who came in
        // from outside go on.
        let pid = rustix::process::Pid::from_child(&self.child);
        let child = &mut self.child;
        let ended = || {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::CONT);
            child.try_wait().unwrap().is_some()
        };
        self.bed.machine.wait_for("its end", ended).unwrap();
        assert_eq!(self.bed.pid_of_agent(), None, "it is gone");
    }
}

impl Drop for Agent<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Bed {
    /// A machine with the unit, and a file that says this.
    pub(crate) fn with(word: &str, more: impl FnOnce(Builder) -> Builder) -> Bed {
        let builder = Machine::build()
            .lifetime(LIFETIME)
            .unit_at_boot("a.service", A_SERVICE)
            .file("/etc/a.conf", word);
        let builder = builder.file(CONFINE, include_str!("confine.sh"));
        let machine = more(builder).make().unwrap();
        // A machine has a /tmp of its own, and the tests may be built below the other one.
        let at = machine.disk().join(PROGRAM.trim_start_matches('/'));
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::fs::copy(program(), at).unwrap();
        machine.start().unwrap();
        machine.wait_until_running().unwrap();
        machine.run_well(["mkdir", "-p", "/var/lib/tread"]).unwrap();
        Bed { machine, orders: Cell::new(0) }
    }

    /// A machine whose node has the config with this word, and which no agent serves any more.
    pub(crate) fn adopted(word: &str) -> Bed {
        let bed = Bed::with(word, |machine| machine);
        let agent = bed.agent();
        bed.adopt(word);
        agent.kill();
        bed
    }

    /// Has an order carried out as far as its reload, which lasts until [`Bed::let_go`], and the
    /// agent killed then; what the order is called.
    pub(crate) fn held_in_its_reload(&self, agent: Agent<'_>) -> String {
        self.adopt("one");
        self.hold();
        let id = self.apply("one", "two", &reload(), Terms::default());
        self.logs("reload two");
        agent.kill();
        id
    }

    /// The same, with what carries it out stopped too.
    pub(crate) fn stopped_in_its_reload(&self, agent: Agent<'_>) -> String {
        let id = self.held_in_its_reload(agent);
        self.machine.run_well(["systemctl", "stop", UNIT]).unwrap();
        assert!(!self.runs(UNIT));
        id
    }

    /// The words that run something confined: with all that an agent is given, and no more.
    pub(crate) fn confined(args: &[&str]) -> Vec<String> {
        Bed::confined_program(PROGRAM, args)
    }

    fn confined_program(program: &str, args: &[&str]) -> Vec<String> {
        let unshared = ["unshare", "--mount", "--propagation=private", "--pid", "--fork"];
        let confine = ["--kill-child=KILL", "sh", CONFINE, "/tmp/agent", program];
        let mounts = MOUNTS.iter().map(|mount| mount.path);
        let all = unshared.into_iter().chain(confine).chain(mounts).chain(["--"]);
        all.chain(args.iter().copied()).map(str::to_owned).collect()
    }

    pub(crate) fn agent(&self) -> Agent<'_> {
        self.agent_with(PROGRAM)
    }

    /// Lets an operation reboot the machine, and attends it again after that.
    pub(crate) fn reboots(&self, id: &str, agent: Agent<'_>) -> Agent<'_> {
        self.goes_down(id, agent);
        self.machine.start().unwrap();
        self.machine.wait_until_booted().unwrap();
        let agent = self.agent();
        self.ends(id, Phase::Done);
        agent
    }

    /// Waits until an operation has the machine go down for a boot.
    pub(crate) fn goes_down(&self, id: &str, agent: Agent<'_>) {
        self.reaches(id, Phase::Booting);
        // The machine cannot end before what was brought into it from outside.
        agent.kill();
        assert_eq!(self.machine.wait_for_end().unwrap(), End::Reboot);
    }

    /// An agent of another build.
    pub(crate) fn agent_with(&self, program: &str) -> Agent<'_> {
        let words = Bed::confined_program(program, &["agent"]);
        let mut command: Command = self.machine.command(words).unwrap();
        let child = command.stdin(Stdio::null()).spawn().unwrap();
        let lives = || self.pid_of_agent().is_some();
        self.machine.wait_for("the agent", lives).unwrap();
        Agent { bed: self, child }
    }

    /// The agent's folder below `/proc`, as the machine calls it, while it lives.
    pub(crate) fn pid_of_agent(&self) -> Option<String> {
        let find = "root=root; for pid in /proc/[0-9]*; do \
            grep -qsx tread $pid/comm && [ -e $pid/$root/tread ] && echo $pid; done; :";
        // A machine that goes down takes the agent along.
        let found = self.machine.run_well(["sh", "-c", find]).ok()?;
        found.lines().next().map(str::to_owned)
    }

    /// Puts an order where the agent looks; returns what it is called.
    pub(crate) fn order(&self, order: Does, terms: Terms) -> String {
        self.order_that_gives_up(None, order, terms)
    }

    /// The same; another operation is ended for it.
    pub(crate) fn order_that_gives_up(
        &self,
        gives_up: Option<&str>,
        order: Does,
        terms: Terms,
    ) -> String {
        self.orders.set(self.orders.get() + 1);
        let id = format!("order-{}", self.orders.get());
        self.put_order(&id, gives_up, order, terms);
        id
    }

    /// The same, under this id.
    pub(crate) fn put_order(&self, id: &str, gives_up: Option<&str>, order: Does, terms: Terms) {
        let (terms, gives_up) = (Terms { well_for: 0, ..terms }, gives_up.map(str::to_owned));
        let given = Given { terms, gives_up, ..Given::new(id, order) };
        let at = self.machine.root().unwrap().join("var/lib/tread/orders");
        self.machine.wait_for("the folder of orders", || at.is_dir()).unwrap();
        std::fs::write(at.join("next"), serde_json::to_vec(&given).unwrap()).unwrap();
        std::fs::rename(at.join("next"), at.join(format!("{id}.json"))).unwrap();
    }

    /// The node is said to have this config.
    pub(crate) fn adopt(&self, word: &str) {
        let order = Does::Adopt {
            config: config(word),
            differs: Adopt::Ask,
            drained: false,
            give_up: false,
        };
        let id = self.order(order, Terms::default());
        self.ends(&id, Phase::Done);
    }

    pub(crate) fn apply(&self, from: &str, to: &str, steps: &[Step], terms: Terms) -> String {
        let plan = Some(Box::new(plan(from, to, steps)));
        let order = Does::Apply { config: config(to), plan, accept: Vec::new(), drained: true };
        self.order(order, terms)
    }

    pub(crate) fn apply_undrained(&self, from: &str, to: &str, steps: &[Step]) -> String {
        let plan = Some(Box::new(plan(from, to, steps)));
        let order = Does::Apply { config: config(to), plan, accept: Vec::new(), drained: false };
        self.order(order, Terms::default())
    }

    /// Puts what an admin applies where [`APPLY`] looks.
    pub(crate) fn put_files(&self, from: &str, to: &str, steps: &[Step]) {
        let root = self.machine.root().unwrap();
        std::fs::write(root.join("var/next.json"), &config(to).0.first().unwrap().text).unwrap();
        let plan = serde_json::to_vec(&plan(from, to, steps)).unwrap();
        std::fs::write(root.join("var/plan.json"), plan).unwrap();
    }

    pub(crate) fn progress(&self) -> Option<Progress> {
        // Also when the machine is off.
        let tree = Tree::open(&self.machine.disk()).ok()?;
        Progress::read(&tree).ok()?
    }

    /// Waits until an operation is in a phase.
    pub(crate) fn reaches(&self, id: &str, phase: Phase) {
        let reached = || self.progress().is_some_and(|it| it.operation == id && it.phase == phase);
        let waited = self.machine.wait_for(&format!("{phase:?} of {id}"), reached);
        assert!(waited.is_ok(), "{waited:?}: {:?}", self.progress());
    }

    /// Waits until an operation has ended in a phase, and its order is gone.
    pub(crate) fn ends(&self, id: &str, phase: Phase) {
        self.reaches(id, phase);
        self.is_taken_away(id);
    }

    /// Whether a unit runs.
    pub(crate) fn runs(&self, unit: &str) -> bool {
        self.machine.run(["systemctl", "is-active", unit]).is_ok_and(|said| said.status == Some(0))
    }

    /// The process that carries an order out, as the tests call it: waits until it is there.
    pub(crate) fn outer_pid(&self, id: &str) -> rustix::process::Pid {
        let carries = |cmdline: &str| cmdline.split('\0').rev().nth(1) == Some(id);
        let find = || {
            std::fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
                let cmdline = std::fs::read_to_string(entry.path().join("cmdline")).ok()?;
                let pid = entry.file_name().to_str()?.parse().ok()?;
                let is_it = cmdline.contains("carry-out") && carries(&cmdline);
                rustix::process::Pid::from_raw(pid).filter(|_| is_it)
            })
        };
        let mut found = None;
        let there = || {
            found = find();
            found.is_some()
        };
        self.machine.wait_for("the process of the operation", there).unwrap();
        found.unwrap()
    }

    /// How systemd says that a unit is.
    pub(crate) fn state(&self, unit: &str) -> String {
        self.machine.run(["systemctl", "is-active", unit]).unwrap().out.trim().to_owned()
    }

    pub(crate) fn signal(&self, unit: &str, signal: &str) {
        let signal = format!("--signal={signal}");
        self.machine.run_well(["systemctl", "kill", &signal, unit]).unwrap();
    }

    pub(crate) fn is_taken_away(&self, id: &str) {
        let order = format!("var/lib/tread/orders/{id}.json");
        let gone = || self.machine.root().is_ok_and(|root| !root.join(&order).exists());
        self.machine.wait_for("the order to be taken away", gone).unwrap();
    }

    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let at = self.machine.root().ok()?.join(path.trim_start_matches('/'));
        std::fs::read_to_string(at).ok()
    }

    /// What the unit read, and when.
    pub(crate) fn log(&self) -> Vec<String> {
        self.text("/var/a.log").unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// A reload that began lasts until this is called.
    pub(crate) fn let_go(&self) {
        self.machine.run_well(["rm", "/var/hold"]).unwrap();
    }

    pub(crate) fn hold(&self) {
        self.machine.run_well(["touch", "/var/hold"]).unwrap();
    }

    pub(crate) fn logs(&self, line: &str) {
        let logged = || self.log().last().is_some_and(|last| last == line);
        self.machine.wait_for(line, logged).unwrap();
    }
}
