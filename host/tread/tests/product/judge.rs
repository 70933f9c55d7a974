//! What nodes went through, judged by each version of what was written, in the order of etcd.

use crate::recorded::Version;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What is known at a version.
#[derive(Default)]
struct Known {
    leased: BTreeSet<String>,
    cordoned: BTreeSet<String>,
    boots: BTreeMap<String, Value>,
    /// The node of each pod.
    pods: BTreeMap<String, String>,
    stages: BTreeMap<String, Value>,
}

/// What happened to each node after this version. Nowhere is a node cordoned without the Lease of
/// this holder, or beside another one, and none has a pod when its agent may begin to boot it.
pub fn went(versions: &[Version], after: u64, holder: &str) -> BTreeMap<String, Vec<&'static str>> {
    let mut known = Known::default();
    let mut went: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    for version in versions {
        if let Some((node, word)) = known.learns(version, holder)
            && version.number > after
        {
            went.entry(node).or_default().push(word);
        }
    }
    went
}

impl Known {
    fn learns(&mut self, version: &Version, holder: &str) -> Option<(String, &'static str)> {
        let Version { kind, name, is_gone, object, .. } = version;
        let word = match *kind {
            "Lease" => {
                let node = name.strip_prefix("node-").unwrap().to_owned();
                let is_held = !is_gone && object["spec"]["holderIdentity"] == holder;
                let word = changes(&mut self.leased, &node, is_held, ("leased", "let go"));
                return word.map(|word| (node, word));
            }
            "Node" => {
                let is_cordoned = object["spec"]["unschedulable"] == true;
                let words = ("cordoned", "uncordoned");
                let word = changes(&mut self.cordoned, name, is_cordoned, words);
                if is_cordoned {
                    assert!(self.leased.contains(name), "{name} is cordoned without its Lease");
                    assert_eq!(self.cordoned.len(), 1, "one at a time: {:?}", self.cordoned);
                }
                word
            }
            "Pod" => {
                match object["spec"]["nodeName"].as_str().filter(|_| !is_gone) {
                    Some(node) => self.pods.insert(name.clone(), node.to_owned()),
                    None => self.pods.remove(name),
                };
                None
            }
            _ => {
                let order = &object["spec"]["order"];
                let stage = order["stage"].clone();
                let before = self.stages.insert(name.clone(), stage.clone());
                let is_given = stage == "Go" && before.as_ref() != Some(&stage);
                if is_given && order["disrupts"] == "Reboot" {
                    let left = self.pods.values().filter(|node| *node == name).count();
                    assert_eq!(left, 0, "{name} has pods when its agent may begin");
                }
                // As its agent says it.
                let boot = &object["status"]["bootId"];
                let before = match boot.is_null() {
                    true => None,
                    false => self.boots.insert(name.clone(), boot.clone()),
                };
                let boots = before.is_some_and(|before| before != *boot);
                is_given.then_some("given").or(boots.then_some("booted"))
            }
        };
        word.map(|word| (name.clone(), word))
    }
}

/// What a change of this is called, if it is one.
fn changes(
    all: &mut BTreeSet<String>,
    name: &str,
    is: bool,
    (comes, goes): (&'static str, &'static str),
) -> Option<&'static str> {
    match is {
        true => all.insert(name.to_owned()).then_some(comes),
        false => all.remove(name).then_some(goes),
    }
}
