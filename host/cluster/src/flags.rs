//! Who else has nodes, or is about to take them. This keeps nobody from anything: it only warns
//! whoever changes such a node, and whoever takes a node that is about to change.

use crate::pools::Member;
use k8s_openapi::api::coordination::v1::Lease;
use std::collections::{BTreeMap, BTreeSet};
use tread_kube::clean::clean;
use tread_kube::held::{NODE_MAINTENANCE, leased, says};
use tread_kube::node_lease;
use tread_model::protocol::{Terms, Time};
use tread_model::text::and_more;

/// Who has nodes by objects of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// Who holds the Lease of a node, in words, by the name of the Lease.
    leases: BTreeMap<String, String>,
    /// The first object that says that a node is maintained, by the node.
    maintained: BTreeMap<String, String>,
}

impl Flags {
    /// By Leases of nodes, and by the names and nodes of what says that these are maintained.
    pub fn of<'a>(
        leases: impl IntoIterator<Item = &'a Lease>,
        maintained: impl IntoIterator<Item = (&'a String, &'a String)>,
        now: Time,
    ) -> Flags {
        let terms = Terms::default();
        let leases = leases
            .into_iter()
            .filter_map(|lease| Some((lease.metadata.name.clone()?, leased(lease, now, &terms)?)));
        let mut by_node = BTreeMap::new();
        for (name, node) in maintained {
            by_node.entry(node.clone()).or_insert_with(|| clean(name));
        }
        Flags { leases: leases.collect(), maintained: by_node }
    }

    /// Whether somebody holds the Lease of a node.
    pub fn has_leases(&self) -> bool {
        !self.leases.is_empty()
    }

    /// Nodes that may be somebody else's by these.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        let of_leases = self.leases.keys().filter_map(|lease| lease.strip_prefix("node-"));
        of_leases.chain(self.maintained.keys().map(String::as_str))
    }

    /// Why a node counts as somebody else's, in words.
    pub fn why(&self, name: &str, member: &Member) -> Option<String> {
        let by_lease = || {
            let lease = (!self.leases.is_empty()).then(|| node_lease::name(name)).flatten();
            self.leases.get(&lease?).cloned()
        };
        let by_object = || {
            let object = self.maintained.get(name)?;
            Some(format!("{} {object}", NODE_MAINTENANCE.kind))
        };
        by_lease().or_else(by_object).or_else(|| member.node.held.map(|by| says(by).to_owned()))
    }

    /// The nodes of which the other flags say something else. The Lease of a node is called `node-`
    /// and the node's name, which is in lower case.
    pub fn differ_from(&self, others: &Flags) -> BTreeSet<String> {
        let leases = differing(&self.leases, &others.leases);
        let of_leases = leases.filter_map(|lease| lease.strip_prefix("node-"));
        let of_objects = differing(&self.maintained, &others.maintained);
        of_leases.chain(of_objects).map(str::to_owned).collect()
    }
}

/// The keys that have another value on the other side, or none.
fn differing<'a>(
    one: &'a BTreeMap<String, String>,
    other: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = &'a str> {
    let here = one.iter().filter(|(key, value)| other.get(*key) != Some(value));
    let gone = other.iter().filter(|(key, _)| !one.contains_key(*key));
    here.chain(gone).map(|(key, _)| key.as_str())
}

/// A node that somebody else has, and why that is thought.
pub type Flagged = (String, String);

/// A line of this length at most for the nodes of a pool, as many of them as it has room for;
/// nothing if there are none.
pub fn line(pool: &str, flagged: &[Flagged], longest: usize) -> Option<String> {
    let begins = match flagged.len() {
        0 => return None,
        1 => format!("tread: 1 node of pool {pool} is flagged for maintenance: "),
        count => format!("tread: {count} nodes of pool {pool} are flagged for maintenance: "),
    };
    // With why, as long as all of what is told fits; else by name alone.
    let with_why = |(node, why): &Flagged| format!("{node} ({why})");
    let by_name = |(node, _): &Flagged| node.clone();
    let fits = |named: usize, words: &dyn Fn(&Flagged) -> String| {
        let said: Vec<String> = flagged.iter().take(named).map(words).collect();
        let text = format!("{begins}{}{}", said.join(", "), and_more(flagged.len(), named));
        (text.chars().count() <= longest).then_some(text)
    };
    let in_full = (1..=flagged.len().min(NAMED)).rev().find_map(|named| fits(named, &with_why));
    let named = || (1..=flagged.len().min(NAMED)).rev().find_map(|named| fits(named, &by_name));
    in_full.or_else(named).or_else(|| Some(begins.trim_end_matches(": ").to_owned()))
}

/// How many nodes are named.
const NAMED: usize = 10;

#[cfg(test)]
mod tests;
