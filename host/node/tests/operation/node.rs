//! A machine that tread manages, driven from outside.

use std::io;
use std::sync::Arc;
use std::time::Duration;
use tread_model::digest::Sha256;
use tread_model::plan::{Decider, Step, VerifiablePlan};
use tread_model::verdict::Layer;
use tread_node::change::{Adopt, adopt};
use tread_node::documents::{Document, Documents, digest};
use tread_node::host::ThisHost;
use tread_node::journal::Journal;
use tread_node::operation::{Node, Patience};
use tread_node::permits::Alone;
use tread_node::progress::{Progress, Reporter};
use tread_node::systemd::{Limits, Manager, Reboot};
use tread_node::terms::Terms;
use tread_node::tree::{Tree, Unwatched, Witness};
use tread_test_machine::{Builder, End, Machine};

/// How long a unit has to stay well here.
pub(crate) const WELL_FOR: Duration = Duration::from_millis(300);

/// How long a machine lives whose test takes as long as it may, however busy this one is.
const LIFETIME: Duration = Duration::from_secs(3600);

pub(crate) struct Bed {
    pub(crate) machine: Machine,
    pub(crate) terms: Terms,
    pub(crate) patience: Patience,
}

fn patience() -> Patience {
    let minute = Duration::from_secs(60);
    let reboot = Reboot { inhibited: minute, going_down: minute };
    Patience { reboot, ..Patience::default() }
}

/// The unit that these configs are about: it says in its log what it read when.
pub(crate) fn unit_with(reload: &str) -> String {
    format!(
        "[Service]\n\
         Type=notify\n\
         NotifyAccess=all\n\
         ExecStart=/bin/sh -c 'echo start $(cat /etc/a.conf) >> /var/a.log; \
         grep -q bad /etc/a.conf && exit 1; systemd-notify --ready; exec sleep infinity'\n\
         ExecReload={reload}\n\
         ExecReload=/bin/sh -c 'echo reload $(cat /etc/a.conf) >> /var/a.log'\n"
    )
}

/// A config in which the unit's file says this.
pub(crate) fn config(word: &str) -> Documents {
    config_with(word, "", "")
}

/// As [`config`], with more files, each with a comma after it, and with units.
pub(crate) fn config_with(word: &str, files: &str, units: &str) -> Documents {
    let text = format!(
        r#"{{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {{"name": "rendered-worker-1",
                          "labels": {{"machineconfiguration.openshift.io/role": "worker"}}}},
            "spec": {{"config": {{"ignition": {{"version": "3.4.0"}}, "storage": {{"files": [{files}
                {{"path": "/etc/a.conf", "contents": {{"source": "data:,{word}"}}}}]}},
                "systemd": {{"units": [{units}]}}}}}}}}"#
    );
    Documents(vec![Document { name: "config.yaml".to_owned(), text }])
}

/// As [`config`], with more of a MachineConfig's spec, each field with a comma before it.
pub(crate) fn config_with_spec(word: &str, fields: &str) -> Documents {
    let mut config = config(word);
    for document in &mut config.0 {
        // Before the braces of the spec and of all.
        document.text.insert_str(document.text.len() - 2, fields);
    }
    config
}

struct Nobody;

impl Reporter for Nobody {
    fn report(&self, _: &Progress) {}
}

fn no_kernel() -> io::Result<()> {
    Err(io::Error::other("a test never boots the machine that it runs on"))
}

pub(crate) fn plan(from: &Documents, to: &Documents, steps: &[Step]) -> VerifiablePlan {
    let digest = |documents: &Documents| digest(&documents.config().unwrap()).unwrap();
    let mut plan = VerifiablePlan::always_allowed(digest(from), digest(to));
    plan.steps = steps.to_vec();
    plan.digest = plan.computed_digest();
    plan
}

/// The plan as an admin's policy decided it.
pub(crate) fn decided(mut plan: VerifiablePlan) -> VerifiablePlan {
    let digest = Sha256::of(b"ours");
    let (policy, layer) = ("ours".to_owned(), Layer::Admin);
    plan.deciders = vec![Decider { policy, layer, digest, settings_digest: digest }];
    plan.digest = plan.computed_digest();
    plan
}

impl Bed {
    /// A machine that runs, with the unit and a file that says this, which tread adopted.
    pub(crate) fn with(word: &str, unit: &str) -> Bed {
        Bed::of(Machine::build().lifetime(LIFETIME), word, unit, &config(word))
    }

    /// The same of a machine that has more, and that has this config.
    pub(crate) fn of(machine: Builder, word: &str, unit: &str, config: &Documents) -> Bed {
        let machine =
            machine.unit_at_boot("a.service", unit).file("/etc/a.conf", word).make().unwrap();
        machine.start().unwrap();
        machine.wait_until_running().unwrap();
        let terms = Terms { proof: 60, ..Terms::default() };
        let bed = Bed { machine, terms, patience: patience() };
        let tree = bed.tree(Arc::new(Unwatched));
        let journal = Journal::open(&tree).unwrap();
        let host = ThisHost::read(&tree, true).unwrap();
        let label = |path: &str, kind| host.label(path, kind);
        let order = ("adopt", config.clone(), Adopt::Ask);
        let adoption = adopt(&tree, &host, &label, order, Vec::new()).unwrap();
        journal.write(&adoption.ready.record, &adoption.ready.new).unwrap();
        journal.finish().unwrap();
        bed
    }

    pub(crate) fn tree(&self, witness: Arc<dyn Witness>) -> Tree {
        Tree::witnessed(&self.machine.root().unwrap(), witness).unwrap()
    }

    fn manager(&self) -> Manager {
        let address = format!("unix:path={}", self.machine.bus().unwrap().display());
        let limits = Limits { well_for: WELL_FOR, ..Limits::default() };
        Manager::new(&address, limits)
    }

    pub(crate) fn node<R>(
        &self,
        witness: Arc<dyn Witness>,
        with: impl FnOnce(&Node<'_>) -> R,
    ) -> R {
        self.node_of(&self.manager(), self.patience, witness, with)
    }

    pub(crate) fn node_of<R>(
        &self,
        manager: &Manager,
        patience: Patience,
        witness: Arc<dyn Witness>,
        with: impl FnOnce(&Node<'_>) -> R,
    ) -> R {
        let tree = self.tree(witness);
        let host = ThisHost::read(&tree, true).unwrap();
        let label = |path: &str, kind| host.label(path, kind);
        with(&Node {
            tree,
            host: &host,
            label: &label,
            manager,
            permits: &Alone,
            reporter: &Nobody,
            terms: self.terms.clone(),
            patience,
            kernel: &no_kernel,
        })
    }

    /// Boots it in order, as somebody else does.
    pub(crate) fn reboot(&self) {
        let _ = self.machine.run(["systemctl", "reboot"]);
        assert_eq!(self.machine.wait_for_end().unwrap(), End::Reboot);
        self.boot();
    }

    pub(crate) fn boot(&self) {
        self.machine.start().unwrap();
        self.machine.wait_until_booted().unwrap();
    }

    /// What the unit read, and when.
    pub(crate) fn log(&self) -> Vec<String> {
        let log = self.text("/var/a.log").unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let at = self.machine.root().unwrap().join(path.trim_start_matches('/'));
        std::fs::read_to_string(at).ok()
    }

    /// The same of a machine that is off.
    pub(crate) fn progress_at_rest(&self) -> Progress {
        let tree = Tree::open(&self.machine.disk()).unwrap();
        Progress::read(&tree).unwrap().unwrap()
    }

    pub(crate) fn progress(&self) -> Progress {
        Progress::read(&self.tree(Arc::new(Unwatched))).unwrap().unwrap()
    }
}
