//! Nodes that somebody else takes while a change has to come to them.

use super::scene::Scene;
use std::collections::BTreeMap;

/// So many are told of at a time: thousands may be cordoned at once.
const MOST: usize = 20;

/// Who had nodes that are to get a change, when it was looked at last.
#[derive(Debug, Default)]
pub(crate) struct Taken(Option<BTreeMap<String, String>>);

impl Taken {
    /// The nodes that somebody else took since the last look, each with why it waits. A new leader
    /// has looked at nothing before, and reports none.
    pub(crate) fn news(&mut self, scene: &Scene) -> Vec<(String, String)> {
        let taken = scene.nodes.iter().filter_map(|(name, node)| {
            let why = node.taken.clone()?;
            Some((name.clone(), why))
        });
        self.between(taken.collect())
    }

    fn between(&mut self, now: BTreeMap<String, String>) -> Vec<(String, String)> {
        let Some(before) = self.0.replace(now.clone()) else { return Vec::new() };
        now.into_iter().filter(|(name, _)| !before.contains_key(name)).take(MOST).collect()
    }

    /// Forgets the last look: another replica reports from now on.
    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_takes_a_node_is_told_of_once() {
        let all = |names: &[&str]| -> BTreeMap<String, String> {
            names
                .iter()
                .map(|name| ((*name).to_owned(), "somebody cordoned it".to_owned()))
                .collect()
        };
        let mut taken = Taken::default();
        let mut news = |names: &[&str]| -> Vec<String> {
            taken.between(all(names)).into_iter().map(|(name, _)| name).collect()
        };
        assert!(news(&["a"]).is_empty(), "it is not known since when");
        assert_eq!(news(&["a", "b"]), ["b"]);
        assert!(news(&["b"]).is_empty());
        assert_eq!(news(&["a", "b"]), ["a"], "again");
        let many: Vec<String> = (0..MOST * 2).map(|at| format!("n{at}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(news(&many).len(), MOST);
    }
}
