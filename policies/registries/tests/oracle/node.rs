//! The files of a node on both sides of a change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use tread_guest_sdk::{Change, Context, Entry, Policy, State, Verdict, test};
use tread_policy_registries::{Registries, Settings};

const CONF: &str = "/etc/containers/registries.conf";
const LOOKASIDE: &str = "/etc/containers/registries.d/";
const POLICY: &str = "/etc/containers/policy.json";

/// What a node has: texts by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) files: BTreeMap<String, String>,
}

impl Node {
    pub(crate) fn set_main(&mut self, text: String) {
        self.files.insert(CONF.to_string(), text);
    }

    pub(crate) fn set_drop_in(&mut self, name: &str, text: String) {
        self.files.insert(format!("{CONF}.d/{name}"), text);
    }

    pub(crate) fn set_lookaside(&mut self, name: &str, text: String) {
        self.files.insert(format!("{LOOKASIDE}{name}"), text);
    }

    pub(crate) fn set_policy(&mut self, text: String) {
        self.files.insert(POLICY.to_string(), text);
    }

    /// What the runtime is asked.
    pub(crate) fn question(&self, names: &BTreeSet<String>) -> serde_json::Value {
        let below = |dir: &str| -> BTreeMap<&str, &str> {
            let all = self.files.iter();
            all.filter_map(|(path, text)| Some((path.strip_prefix(dir)?, text.as_str()))).collect()
        };
        let mut lookaside = below(LOOKASIDE);
        // Where it is asked what is said of signatures, what RHCOS says counts too.
        if !lookaside.is_empty() {
            for (name, text) in DELIVERED_LOOKASIDE {
                lookaside.entry(name).or_insert(text);
            }
        }
        serde_json::json!({
            // Without the file the runtime has the one that the node is delivered with.
            "main": self.files.get(CONF).map_or(DELIVERED, String::as_str),
            "dropIns": below(&format!("{CONF}.d/")),
            "lookaside": lookaside,
            "policy": self.files.get(POLICY),
            "names": names,
        })
    }
}

const DELIVERED: &str =
    "unqualified-search-registries = ['registry.access.redhat.com', 'docker.io']\n";

const DELIVERED_LOOKASIDE: [(&str, &str); 3] = [
    ("default.yaml", "default-docker:\n  lookaside-staging: file:///var/lib/containers/sigstore\n"),
    (
        "registry.access.redhat.com.yaml",
        "docker:\n  registry.access.redhat.com:\n    sigstore: https://access.redhat.com/x\n",
    ),
    (
        "registry.redhat.io.yaml",
        "docker:\n  registry.redhat.io:\n    sigstore: https://registry.redhat.io/x\n",
    ),
];

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, text) in &self.files {
            writeln!(f, "# {path}\n{}", text.trim_end())?;
        }
        Ok(())
    }
}

pub(crate) struct Pair {
    pub(crate) before: Node,
    pub(crate) after: Node,
    /// The images that may be pulled.
    pub(crate) names: BTreeSet<String>,
    pub(crate) settings: Settings,
}

/// The policy's verdict on a change.
pub(crate) struct Judged {
    pub(crate) id: String,
    pub(crate) verdict: Verdict,
}

impl Pair {
    /// Whether only files differ that the runtime does not read.
    pub(crate) fn is_read_alike(&self) -> bool {
        let read = |node: &Node| -> BTreeMap<String, String> {
            let is_read = |path: &str| match path.strip_prefix(LOOKASIDE) {
                Some(name) => name.ends_with(".yaml") && !name.contains('/'),
                None => true,
            };
            node.files.clone().into_iter().filter(|(path, _)| is_read(path)).collect()
        };
        read(&self.before) == read(&self.after)
    }

    pub(crate) fn verdicts(&self) -> Vec<Judged> {
        let (mut changes, mut unchanged) = (Vec::new(), Vec::new());
        let paths: BTreeSet<&String> =
            self.before.files.keys().chain(self.after.files.keys()).collect();
        for path in paths {
            let id = format!("file:{path}");
            let state = |node: &Node| {
                node.files.get(path).map_or(State::Absent, |text| test::file_state(text))
            };
            let (before, after) = (state(&self.before), state(&self.after));
            let claims = || Registries::CLAIMS.iter().filter(|claim| claim.matches(&id));
            if before != after {
                changes.push(Change { id, before, after });
            } else if claims().any(tread_guest_sdk::Claim::is_with_unchanged) {
                unchanged.push(Entry { id, state: after });
            }
        }
        let context = Context { changes: &changes, unchanged: &unchanged };
        let verdicts = Registries::classify_all(&self.settings, &context);
        let ids = changes.iter().map(|change| change.id.clone());
        ids.zip(verdicts).map(|(id, verdict)| Judged { id, verdict }).collect()
    }
}
