//! The tree of a system that does not run, and `tread node` on it.

use std::path::Path;
use std::process::{Command, Output};
use tread_model::plan::{Step, VerifiablePlan};
use tread_node::documents::{Document, Documents, digest};

pub(crate) fn config(word: &str, rest: &str) -> Documents {
    let text = format!(
        r#"{{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {{"name": "rendered-worker-1",
                          "labels": {{"machineconfiguration.openshift.io/role": "worker"}}}},
            "spec": {{"config": {{"ignition": {{"version": "3.4.0"}}, "storage": {{"files": [
                {{"path": "/etc/a", "contents": {{"source": "data:,{word}"}}}}]}}}}{rest}}}}}"#
    );
    Documents(vec![Document { name: "config".to_owned(), text }])
}

pub(crate) struct Bed(pub(crate) tempfile::TempDir);

impl Bed {
    /// The tree of a system that has this config.
    pub(crate) fn with(config: &Documents) -> Bed {
        let bed = Bed(tempfile::tempdir().unwrap());
        std::fs::create_dir_all(bed.0.path().join("root/etc")).unwrap();
        bed.put("root/etc/a", "one");
        bed.put("now.json", &config.0.first().unwrap().text);
        let adopted = bed.node("adopt", &["--config", "now.json"]);
        assert!(adopted.status.success(), "{adopted:?}");
        bed
    }

    pub(crate) fn put(&self, path: &str, text: &str) {
        std::fs::write(self.0.path().join(path), text).unwrap();
    }

    pub(crate) fn node(&self, verb: &str, args: &[&str]) -> Output {
        let root = self.0.path().join("root");
        Command::new(Path::new(env!("CARGO_BIN_EXE_tread-node")))
            .current_dir(self.0.path())
            .args(["node", verb, "--root"])
            .arg(root)
            .args(args)
            .output()
            .unwrap()
    }

    /// Applies the next config with these arguments.
    pub(crate) fn apply(&self, from: &Documents, to: &Documents, args: &[&str]) -> Output {
        let digest = |documents: &Documents| digest(&documents.config().unwrap()).unwrap();
        let mut plan = VerifiablePlan::always_allowed(digest(from), digest(to));
        plan.steps = vec![Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
        plan.digest = plan.computed_digest();
        self.put("plan.json", &serde_json::to_string(&plan).unwrap());
        self.put("next.json", &to.0.first().unwrap().text);
        let all = [&["--config", "next.json", "--plan", "plan.json"], args].concat();
        self.node("apply", &all)
    }
}
