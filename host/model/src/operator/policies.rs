//! The operator's nodeDisruptionPolicy: its defaults, what the user puts over
//! them, and which entry decides on a path.

use super::action::OperatorAction;
use super::defaults;
use crate::path::clean;
use crate::plan::{Step, steps};
use crate::verdict::Action;
use serde_json::Value;

/// All entries that are in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policies {
    files: Vec<Entry>,
    units: Vec<Entry>,
    ssh_keys: Entry,
}

/// What is done when something changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// A path, the name of a unit, or `sshkey`.
    name: String,
    /// What every path below it begins with.
    below: String,
    pub(super) actions: Vec<OperatorAction>,
    is_default: bool,
}

impl Entry {
    fn new(name: &str, actions: Vec<OperatorAction>, is_default: bool) -> Entry {
        let below = format!("{}/", clean(name));
        Entry { name: name.to_owned(), below, actions, is_default }
    }

    fn default(name: &str, actions: &[OperatorAction]) -> Entry {
        Entry::new(name, actions.to_vec(), true)
    }

    fn read(entry: &Value, key: &str) -> Option<Entry> {
        Some(Entry::new(entry.get(key)?.as_str()?, actions(entry), false))
    }

    /// For an admin who asks why.
    pub(super) fn describe(&self) -> String {
        let whose = if self.is_default { "default" } else { "entry" };
        format!("the nodeDisruptionPolicy's {whose} for {}", self.name)
    }
}

fn actions(entry: &Value) -> Vec<OperatorAction> {
    let list = entry.get("actions").and_then(Value::as_array);
    list.into_iter().flatten().map(OperatorAction::read).collect()
}

impl Default for Policies {
    fn default() -> Policies {
        let files = defaults::FILES.iter();
        Policies {
            files: files.map(|(path, actions)| Entry::default(path, actions)).collect(),
            units: vec![Entry::default(defaults::UNIT, &defaults::UNIT_ACTIONS)],
            ssh_keys: Entry::default("sshkey", &defaults::SSH_KEYS_ACTIONS),
        }
    }
}

impl Policies {
    /// What is in force with this `MachineConfiguration/cluster`, or without
    /// one. What the operator has already worked out stands in the status;
    /// until it has seen the newest spec, it is worked out here.
    pub fn of(machine_configuration: Option<&Value>) -> Policies {
        let Some(object) = machine_configuration else { return Policies::default() };
        let mut policies = Policies::default();
        let spec = object.pointer("/spec/nodeDisruptionPolicy").unwrap_or(&Value::Null);
        policies.put(spec);
        let status = object.pointer("/status/nodeDisruptionPolicyStatus/clusterPolicies");
        let seen = object.pointer("/status/observedGeneration").and_then(Value::as_i64);
        let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
        match status {
            Some(status) if seen >= generation => policies.only(status),
            _ => policies,
        }
    }

    /// Puts the user's entries over those that are there. An entry of the same name is
    /// replaced; that of the keys only if the user's one lists an action.
    fn put(&mut self, spec: &Value) {
        for (list, key, entries) in
            [("files", "path", &mut self.files), ("units", "name", &mut self.units)]
        {
            let listed = spec.get(list).and_then(Value::as_array);
            for entry in listed.into_iter().flatten().filter_map(|entry| Entry::read(entry, key)) {
                match entries.iter_mut().find(|there| there.name == entry.name) {
                    Some(there) => *there = entry,
                    None => entries.push(entry),
                }
            }
        }
        let actions = spec.get("sshkey").map(actions).unwrap_or_default();
        if !actions.is_empty() {
            self.ssh_keys = Entry::new("sshkey", actions, false);
        }
    }

    /// The entries that the status lists, and no others. Which of them are defaults is
    /// known from `self`.
    fn only(self, status: &Value) -> Policies {
        let read = |list: &str, key: &str, known: &[Entry]| {
            let listed = status.get(list).and_then(Value::as_array);
            let entries = listed.into_iter().flatten().filter_map(|entry| Entry::read(entry, key));
            let marked = entries.map(|entry| {
                let same = known.iter().find(|there| there.name == entry.name);
                Entry { is_default: same.is_some_and(|there| there.is_default), ..entry }
            });
            marked.collect()
        };
        let ssh_keys = status.get("sshkey").map(actions).unwrap_or_default();
        Policies {
            files: read("files", "path", &self.files),
            units: read("units", "name", &self.units),
            ssh_keys: Entry { actions: ssh_keys, ..self.ssh_keys },
        }
    }

    /// The longest path, as it is written, that is the file or a directory above
    /// it.
    pub(super) fn for_file(&self, path: &str) -> Option<&Entry> {
        let cleaned = clean(path);
        let matches = |entry: &&Entry| entry.name == path || cleaned.starts_with(&entry.below);
        // Of equally long ones the first, as the operator replaces only by a longer one.
        let matching = self.files.iter().filter(matches);
        matching.rev().max_by_key(|entry| entry.name.len())
    }

    /// What a node goes through for a change of a file, a unit, keys or a
    /// password; None where nothing is in force for it.
    pub(crate) fn steps_for(&self, id: &str) -> Option<Vec<Step>> {
        let entry = match id.split_once(':')? {
            ("file", path) => self.for_file(path)?,
            ("unit", name) => self.for_unit(name)?,
            ("ssh-keys" | "password", _) => self.for_ssh_keys(),
            _ => return None,
        };
        let actions: Vec<Action> =
            entry.actions.iter().filter_map(OperatorAction::action).collect();
        Some(steps(&actions, false))
    }

    pub(super) fn for_unit(&self, name: &str) -> Option<&Entry> {
        self.units.iter().find(|entry| entry.name == name)
    }

    pub(super) fn for_ssh_keys(&self) -> &Entry {
        &self.ssh_keys
    }
}
