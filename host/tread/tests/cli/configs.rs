//! Node configs for tests, in short, and one change for each kind of plan.

use crate::support::{Bench, Ran};
use serde_json::{Value, json};

/// A MachineConfig for workers.
pub fn machine_config(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {
            "name": name,
            "labels": {"machineconfiguration.openshift.io/role": "worker"},
        },
        "spec": spec,
    })
}

/// A spec with more than an Ignition version in its config.
pub fn config(parts: Value) -> Value {
    let mut config = json!({"ignition": {"version": "3.4.0"}});
    config.as_object_mut().unwrap().extend(parts.as_object().unwrap().clone());
    json!({"config": config})
}

/// A file as Ignition writes it.
pub fn file(path: &str, text: &str, mode: u32) -> Value {
    let encoded: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
    json!({"path": path, "mode": mode, "contents": {"source": format!("data:,{encoded}")}})
}

/// A spec with these files, which everybody may read.
pub fn files(files: &[(&str, &str)]) -> Value {
    let files: Vec<Value> = files.iter().map(|(path, text)| file(path, text, 0o644)).collect();
    config(json!({"storage": {"files": files}}))
}

/// A spec with what the user `core` may log in with.
pub fn core_user(keys: &[&str], password_hash: Option<&str>) -> Value {
    let user = json!({"name": "core", "sshAuthorizedKeys": keys, "passwordHash": password_hash});
    config(json!({"passwd": {"users": [user]}}))
}

/// An ImageDigestMirrorSet with this mirror of quay.io/app.
pub fn mirrors(mirrors: &[&str]) -> Value {
    json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ImageDigestMirrorSet",
        "metadata": {"name": "app"},
        "spec": {"imageDigestMirrors": [{"source": "quay.io/app", "mirrors": mirrors}]},
    })
}

/// A DisruptionPolicy of an admin with one rule.
pub fn rule(name: &str, rule: Value) -> Value {
    json!({
        "apiVersion": "tread.dev/v1alpha1",
        "kind": "DisruptionPolicy",
        "metadata": {"name": name},
        "spec": {"rules": [rule]},
    })
}

impl Bench {
    /// Plans from one list of objects to another.
    pub fn plan_objects(&self, old: &[Value], new: &[Value], args: &[&str]) -> Ran {
        let list = |items: &[Value]| json!({"apiVersion": "v1", "kind": "List", "items": items});
        self.write("old.json", list(old).to_string());
        self.write("new.json", list(new).to_string());
        let args: Vec<&str> =
            ["plan", "old.json", "new.json"].into_iter().chain(args.iter().copied()).collect();
        self.tread(&args)
    }

    /// Plans from one spec of a MachineConfig to another.
    pub fn plan(&self, old: Value, new: Value, args: &[&str]) -> Ran {
        let worker = |spec| [machine_config("worker", spec)];
        self.plan_objects(&worker(old), &worker(new), args)
    }
}

/// A change, and what becomes of it.
pub struct Sample {
    pub old: Vec<Value>,
    pub new: Vec<Value>,
    /// A rule that goes with it.
    pub rule: Option<Value>,
    pub first_line: &'static str,
    /// The word for `--max` that just allows it; none if it is refused.
    pub effect: Option<&'static str>,
}

/// One of each kind.
pub fn samples() -> Vec<Sample> {
    let crio = |text: &str| files(&[("/etc/crio/crio.conf.d/01-x", text)]);
    let unit = |text: &str| {
        config(json!({"systemd": {"units": [{"name": "app.service", "contents": text}]}}))
    };
    let ca = "/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt";
    let sample = |old: Value, new: Value, first_line, effect| Sample {
        old: vec![machine_config("worker", old)],
        new: vec![machine_config("worker", new)],
        rule: None,
        first_line,
        effect: Some(effect),
    };
    let ruled = |sample: Sample, it: Value| Sample { rule: Some(rule("mine", it)), ..sample };
    let base = || machine_config("worker", config(json!({})));
    let mirrored = |old: Vec<Value>, new: Vec<Value>, sample: Sample| Sample { old, new, ..sample };
    let none = || config(json!({}));
    vec![
        sample(
            files(&[("/etc/a", "same")]),
            files(&[("/etc/a", "same")]),
            "nothing to do; both configs mean the same",
            "none",
        ),
        sample(
            core_user(&["ssh-ed25519 AAAA one"], None),
            core_user(&["ssh-ed25519 BBBB two"], None),
            "no action; no drain, no reboot",
            "none",
        ),
        ruled(
            sample(
                unit("[Unit]\n"),
                unit("[Unit]\n#\n"),
                "daemon-reload; no drain, no reboot",
                "reload",
            ),
            json!({"match": ["unit:app.service"], "actions": []}),
        ),
        mirrored(
            vec![base()],
            vec![base(), mirrors(&["mirror.example/app"])],
            sample(none(), none(), "reload crio.service; no drain, no reboot", "reload"),
        ),
        sample(
            crio("[crio.runtime]\npids_limit = 1024\n"),
            crio("[crio.runtime]\npids_limit = 2048\n"),
            "restart crio.service; no drain, no reboot",
            "restart",
        ),
        sample(
            files(&[(ca, "one\n")]),
            files(&[(ca, "one\ntwo\n")]),
            "update-ca-trust, restart crio.service; no drain, no reboot",
            "restart",
        ),
        mirrored(
            vec![base(), mirrors(&["mirror.example/app", "other.example/app"])],
            vec![base(), mirrors(&["mirror.example/app"])],
            sample(none(), none(), "drain, reload crio.service; no reboot", "drain"),
        ),
        sample(none(), files(&[("/etc/unknown", "x")]), "drain, reboot", "reboot"),
        ruled(
            sample(none(), files(&[("/etc/unknown", "x")]), "reboot; no drain", "reboot"),
            json!({"match": ["file:/etc/unknown"], "actions": [{"do": "reboot"}], "drain": false}),
        ),
        Sample {
            effect: None,
            ..sample(
                json!({"fips": false}),
                json!({"fips": true}),
                "refused; a running node cannot take: fips",
                "",
            )
        },
    ]
}

impl Sample {
    /// Plans it.
    pub fn plan(&self, bench: &Bench, args: &[&str]) -> Ran {
        let mut args = args.to_vec();
        if let Some(rule) = &self.rule {
            bench.write("rule.json", rule.to_string());
            args.extend(["--rules", "rule.json"]);
        }
        bench.plan_objects(&self.old, &self.new, &args)
    }
}
