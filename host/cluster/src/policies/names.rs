//! What each policy is called in plans.

use std::collections::BTreeSet;
use tread_model::verdict::Layer;

/// A policy that wants a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    /// The built-ins first, so that nobody can take their names, then the admin's.
    rank: u8,
    /// Who came first goes first.
    created: i64,
    /// Its DisruptionPolicy.
    pub object: String,
    /// The name that it gives itself.
    pub declared: String,
}

impl Named {
    /// A policy with the name that it gives itself.
    pub fn new(layer: Layer, created: i64, object: &str, declared: &str) -> Named {
        let rank = match layer {
            Layer::Builtin => 0,
            Layer::Admin => 1,
            Layer::Template => 2,
        };
        Named { rank, created, object: object.to_owned(), declared: declared.to_owned() }
    }
}

/// The names of all: each its own, so that a plan has the same digest as on a
/// laptop; where two give themselves the same, the later one has that of its
/// object, which nobody else has.
pub fn names(mut all: Vec<Named>) -> Vec<(Named, String)> {
    all.sort();
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut out = Vec::with_capacity(all.len());
    for named in all {
        let mut name = named.declared.clone();
        let mut number = 2u32;
        if taken.contains(&name) {
            name.clone_from(&named.object);
        }
        while taken.contains(&name) {
            name = format!("{}.{number}", named.object);
            number = number.saturating_add(1);
        }
        taken.insert(name.clone());
        out.push((named, name));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_the_name_of_one_who_was_there_before() {
        let all = vec![
            Named::new(Layer::Template, 5, "b.chrony", "chrony"),
            Named::new(Layer::Template, 4, "z.chrony", "chrony"),
            Named::new(Layer::Template, 1, "evil.registries", "registries"),
            Named::new(Layer::Builtin, 9, "registries", "registries"),
            Named::new(Layer::Admin, 9, "z.chrony.2", "z.chrony.2"),
            Named::new(Layer::Template, 4, "a.chrony", "chrony"),
        ];
        let given: Vec<(String, String)> =
            names(all).into_iter().map(|(named, name)| (named.object, name)).collect();
        let expected = [
            ("registries", "registries"),
            ("z.chrony.2", "z.chrony.2"),
            ("evil.registries", "evil.registries"),
            ("a.chrony", "chrony"),
            ("z.chrony", "z.chrony"),
            ("b.chrony", "b.chrony"),
        ];
        let expected = expected.map(|(object, name)| (object.to_owned(), name.to_owned()));
        assert_eq!(given, expected);
    }

    #[test]
    fn every_name_is_given_once() {
        let all = (0..5).map(|at| Named::new(Layer::Template, at, "x", "x")).collect();
        let given: BTreeSet<String> = names(all).into_iter().map(|(_, name)| name).collect();
        assert_eq!(given.len(), 5);
    }
}
