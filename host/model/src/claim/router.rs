//! From a change to the claims that match it.

use super::automaton::{Automaton, Run};
use super::pattern::Pattern;
use crate::description::Claim;

/// Which claim of which policy, by index.
type Target = (usize, usize);

/// The claims of many policies, arranged so that the cost of routing a change
/// does not grow with the number of claims: exact ones are found by binary
/// search, globs by what stands before their first glob character, and those
/// that are left are matched all at once.
#[derive(Debug, Clone, Default)]
pub struct Router {
    /// By id.
    exact: Vec<(String, Target)>,
    /// By literal, each once.
    starts: Vec<Start>,
    globs: Automaton,
    /// The last element of each glob, and what it is of.
    ends: Vec<(usize, Target)>,
}

/// All globs that begin with the same literal.
#[derive(Debug, Clone)]
struct Start {
    literal: String,
    /// The longest other start that this one begins with.
    parent: Option<usize>,
    /// The first element of each glob, and of what follows it.
    globs: Vec<(usize, usize)>,
}

impl Router {
    /// Arranges the claims of policies, each given with its index. A claim that
    /// is no pattern is an error; [`super::validate_description`] finds it
    /// earlier.
    pub fn new<'c>(
        policies: impl IntoIterator<Item = (usize, &'c [Claim])>,
    ) -> Result<Router, String> {
        let mut patterns = Vec::new();
        for (policy, claims) in policies {
            for (index, claim) in claims.iter().enumerate() {
                patterns.push((Pattern::parse(&claim.changes)?, (policy, index)));
            }
        }
        Ok(Router::of(patterns))
    }

    /// Of patterns that were read.
    pub(super) fn of(patterns: Vec<(Pattern, Target)>) -> Router {
        let mut exact = Vec::new();
        let mut globs = Vec::new();
        for (pattern, target) in patterns {
            match pattern.exact() {
                Some(id) => exact.push((id.to_owned(), target)),
                None => globs.push((pattern, target)),
            }
        }
        exact.sort();
        globs.sort_by(|(a, _), (b, _)| a.literal.cmp(&b.literal));
        let mut router = Router { exact, ..Router::default() };
        let mut elements = Vec::new();
        let mut open = Vec::new();
        for (pattern, target) in globs {
            let mut places = Vec::with_capacity(pattern.globs.len());
            for glob in &pattern.globs {
                let first = elements.len();
                elements.extend_from_slice(glob);
                places.push((first, elements.len()));
                // Where `**` is the last element, a name ends at it too.
                router.ends.push((elements.len(), target));
            }
            router.add_start(pattern.literal, places, &mut open);
        }
        router.globs = Automaton::new(&elements);
        router
    }

    /// Adds the globs of one literal. They come in the order of their literals. `open`
    /// are the starts that the last literal begins with, itself included.
    fn add_start(
        &mut self,
        literal: String,
        mut globs: Vec<(usize, usize)>,
        open: &mut Vec<usize>,
    ) {
        if let Some(last) = self.starts.last_mut().filter(|last| last.literal == literal) {
            last.globs.append(&mut globs);
            return;
        }
        let begins = |index: &usize| {
            self.starts.get(*index).is_some_and(|start| literal.starts_with(&start.literal))
        };
        while open.last().is_some_and(|index| !begins(index)) {
            open.pop();
        }
        let parent = open.last().copied();
        open.push(self.starts.len());
        self.starts.push(Start { literal, parent, globs });
    }

    /// The claims that match an id, in order of policy and claim.
    pub fn claimants(&self, id: &str) -> impl Iterator<Item = (usize, usize)> + use<> {
        self.claimants_at_cost(id).0.into_iter()
    }

    /// Whether any claim matches an id.
    pub fn is_claimed(&self, id: &str) -> bool {
        self.claimants(id).next().is_some()
    }

    /// As [`Router::claimants`], and how much work the globs were.
    pub(super) fn claimants_at_cost(&self, id: &str) -> (Vec<Target>, u64) {
        let first = self.exact.partition_point(|(exact, _)| exact.as_str() < id);
        let exact = self.exact.iter().skip(first).take_while(|(exact, _)| exact == id);
        let mut found: Vec<Target> = exact.map(|(_, target)| *target).collect();
        let starts = self.starts_of(id);
        let mut run = Run::default();
        for (number, start) in starts.iter().enumerate() {
            for (first, end) in &start.globs {
                self.globs.begin(&mut run, *first, *end);
            }
            let until = starts.get(number + 1).map_or(id.len(), |next| next.literal.len());
            let bytes = id.as_bytes().get(start.literal.len()..until).unwrap_or_default();
            self.globs.advance(&mut run, bytes);
        }
        found.extend(self.globs.ended(&run).filter_map(|element| {
            let glob = self.ends.partition_point(|(end, _)| *end <= element);
            self.ends.get(glob).map(|(_, target)| *target)
        }));
        found.sort_unstable();
        // Several alternatives of one claim may match.
        found.dedup();
        (found, run.cost)
    }

    /// The starts that an id begins with, the shortest first.
    fn starts_of(&self, id: &str) -> Vec<&Start> {
        // Only the last start that sorts before the id, and its parents, can be such
        // starts: those that are no longer than what that last one and the id have in
        // common.
        let after = self.starts.partition_point(|start| start.literal.as_str() <= id);
        let mut next = after.checked_sub(1).and_then(|last| self.starts.get(last));
        let Some(last) = next else { return Vec::new() };
        let alike = |(a, b): &(u8, u8)| a == b;
        let common = last.literal.bytes().zip(id.bytes()).take_while(alike).count();
        let mut starts = Vec::new();
        while let Some(start) = next {
            if start.literal.len() <= common {
                starts.push(start);
            }
            next = start.parent.and_then(|parent| self.starts.get(parent));
        }
        starts.reverse();
        starts
    }
}

impl Pattern {
    /// Whether it matches a change with this id, as a whole. For many patterns
    /// or ids there is [`Router`].
    pub fn matches(&self, id: &str) -> bool {
        match self.exact() {
            Some(exact) => id == exact,
            None => Router::of(vec![(self.clone(), (0, 0))]).claimants(id).next().is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::Effect;

    fn claims(patterns: &[&str]) -> Vec<Claim> {
        patterns.iter().map(|it| Claim::on(*it, Effect::None, Effect::Reboot)).collect()
    }

    #[test]
    fn routing_finds_what_trying_every_claim_finds() {
        let policies = [
            claims(&["file:/etc/a.conf", "file:/etc/a/**", "file:/etc/a/*.conf", "unit:*"]),
            claims(&["file:/**", "file:/etc/a/b/**", "file:/etc/a.conf", "kernel-arguments"]),
            claims(&["file:/etc/a/b", "file:/etc/a/b*/**", "file:/etc/{a,c}/x", "file:**/x"]),
            claims(&["unit:a@*.service", "unit:a@1.service", "ssh-keys:*", "file:/etc/\\*"]),
        ];
        let slices = || policies.iter().map(Vec::as_slice).enumerate();
        let router = Router::new(slices()).expect("patterns");
        for id in [
            "file:/etc/a.conf",
            "file:/etc/a/x.conf",
            "file:/etc/a/b",
            "file:/etc/a/b/c/d",
            "file:/etc/c/x",
            "file:/etc/*",
            "file:/x",
            "file:/zzz",
            "file:",
            "unit:a@1.service",
            "unit:b.service",
            "ssh-keys:core",
            "password:core",
            "kernel-arguments",
            "kernel-type",
            "",
            "zzz",
        ] {
            let mut expected = Vec::new();
            for (policy, claims) in slices() {
                for (index, claim) in claims.iter().enumerate() {
                    if Pattern::parse(&claim.changes).expect("pattern").matches(id) {
                        expected.push((policy, index));
                    }
                }
            }
            assert_eq!(router.claimants(id).collect::<Vec<_>>(), expected, "{id}");
        }
    }

    #[test]
    fn a_claim_that_is_no_pattern_is_an_error() {
        let claims = claims(&["file:etc"]);
        assert!(Router::new([(0, claims.as_slice())]).is_err());
    }

    #[test]
    fn nothing_is_claimed_where_there_are_no_policies() {
        assert_eq!(Router::default().claimants("file:/etc/a").count(), 0);
    }
}
