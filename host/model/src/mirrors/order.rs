//! One order of mirrors out of several.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What is known of a mirror, or of the source.
#[derive(Default)]
struct Node<'m> {
    /// What comes directly before it in some list, and is not yet placed.
    before: BTreeSet<&'m str>,
    /// What comes directly after it in some list.
    after: BTreeSet<&'m str>,
}

/// Merges the mirrors that several lists name for one source into one order
/// that keeps the order of each list, where the lists do not contradict each
/// other. The source itself is tried last without being named, so it is dropped
/// from the end.
///
/// No list is empty, and each names something else than the source.
pub(super) fn merge<'m>(source: &'m str, lists: &[&'m [String]]) -> Vec<&'m str> {
    let mut graph: BTreeMap<&str, Node<'_>> = BTreeMap::new();
    let mut edge = |from: &'m str, to: &'m str| {
        graph.entry(from).or_default().after.insert(to);
        graph.entry(to).or_default().before.insert(from);
    };
    for list in lists {
        for pair in list.windows(2) {
            if let [from, to] = pair {
                edge(from, to);
            }
        }
        if let Some(last) = list.last().filter(|_| !list.iter().any(|mirror| mirror == source)) {
            edge(last, source);
        }
    }
    let mut order = sort(graph);
    if order.last() == Some(&source) {
        order.pop();
    }
    order
}

/// The nodes in an order that respects the edges where that is possible. A loop
/// is broken at its first node by name.
fn sort<'m>(mut graph: BTreeMap<&'m str, Node<'m>>) -> Vec<&'m str> {
    let mut left: BTreeSet<&str> = graph.keys().copied().collect();
    let free = |(_, node): &(&&'m str, &Node<'m>)| node.before.is_empty();
    let mut ready: VecDeque<&str> = graph.iter().filter(free).map(|(name, _)| *name).collect();
    let mut order = Vec::with_capacity(graph.len());
    while let Some(next) = ready.pop_front().or_else(|| left.first().copied()) {
        left.remove(next);
        order.push(next);
        let after = graph.get(next).map(|node| node.after.clone()).unwrap_or_default();
        for follower in after {
            let Some(node) = graph.get_mut(follower) else { continue };
            node.before.remove(next);
            if node.before.is_empty() && left.contains(follower) {
                ready.push_back(follower);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(source: &str, lists: &[&[&str]]) -> Vec<String> {
        let lists: Vec<Vec<String>> =
            lists.iter().map(|list| list.iter().map(|m| (*m).to_owned()).collect()).collect();
        let slices: Vec<&[String]> = lists.iter().map(Vec::as_slice).collect();
        merge(source, &slices).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn several_orders_become_one() {
        let cases: &[(&[&[&str]], &[&str])] = &[
            (&[&["b", "c"], &["a", "b"]], &["a", "b", "c"]),
            (&[&["a", "b", "c"]], &["a", "b", "c"]),
            (&[&["b"], &["a"]], &["a", "b"]),
            (&[&["c", "d"], &["a", "b"]], &["a", "c", "b", "d"]),
            (&[&["a", "b"], &["b", "a"]], &["a", "b"]),
            (&[&["a", "s", "b"]], &["a", "s", "b"]),
            (&[&["a", "b", "s"]], &["a", "b"]),
            (&[&["b", "s"], &["a"]], &["a", "b"]),
            (&[&["a", "a"]], &["a"]),
            (&[&["a", "b", "a"]], &["a", "b"]),
        ];
        for (lists, expected) in cases {
            assert_eq!(merged("s", lists), *expected, "{lists:?}");
        }
    }

    #[test]
    fn the_order_of_the_lists_does_not_matter() {
        let lists: [&[&str]; 4] = [&["b", "c"], &["x", "a", "c"], &["d"], &["c", "b"]];
        let expected = merged("s", &lists);
        for turn in 0..lists.len() {
            let mut turned = lists;
            turned.rotate_left(turn);
            assert_eq!(merged("s", &turned), expected);
            turned.reverse();
            assert_eq!(merged("s", &turned), expected);
        }
    }
}
