//! Which nodes of a pool come first.

use super::node::Node;
use std::cmp::Ordering;

/// Which nodes come first, as an admin wants it: unless said otherwise zone by zone in the order of
/// their names, and in each the oldest node first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Order {
    /// Zones in the order in which they go. All others follow, by their names.
    pub zones: Vec<String>,
    /// Which nodes of a zone come first.
    pub first: First,
}

/// Which nodes of a zone come first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum First {
    /// Those that are there for longest.
    #[default]
    Oldest,
    /// Those that came last.
    Newest,
    /// Those whose names come first.
    Name,
}

impl Order {
    /// Whether one node comes before another one. Whatever an admin wants, canaries go first, and
    /// the node of the replica that leads goes last.
    pub(super) fn compare(&self, one: &Node, other: &Node) -> Ordering {
        let place = |node: &Node| (node.leads, !node.canary, node.last, self.place_of(&node.zone));
        let within = || match self.first {
            First::Oldest => one.since.cmp(&other.since),
            First::Newest => other.since.cmp(&one.since),
            First::Name => Ordering::Equal,
        };
        place(one)
            .cmp(&place(other))
            .then_with(|| one.zone.cmp(&other.zone))
            .then_with(within)
            .then_with(|| one.name.cmp(&other.name))
    }

    /// A zone that is not named comes after all that are.
    fn place_of(&self, zone: &str) -> usize {
        let place = self.zones.iter().position(|named| named == zone);
        place.unwrap_or(self.zones.len())
    }
}
