//! From a change to the claims that match it.

use super::Pattern;
use crate::description::Claim;

/// Which claim of which policy, by index.
type Target = (usize, usize);

/// The claims of many policies, arranged so that the cost of routing a change
/// does not grow with the number of claims: exact ones are found by binary
/// search, globs by what stands before their first glob character.
#[derive(Debug, Clone, Default)]
pub struct Router {
    /// By id.
    exact: Vec<(String, Target)>,
    /// By literal, each once.
    starts: Vec<Start>,
}

/// The globs that begin with the same literal.
#[derive(Debug, Clone)]
struct Start {
    literal: String,
    /// The longest other start that this one begins with.
    parent: Option<usize>,
    globs: Vec<(Pattern, Target)>,
}

impl Router {
    /// Arranges the claims of policies, each given with its index. A claim that
    /// is no pattern is an error; [`super::validate_description`] finds it
    /// earlier.
    pub fn new<'c>(
        policies: impl IntoIterator<Item = (usize, &'c [Claim])>,
    ) -> Result<Router, String> {
        let mut exact = Vec::new();
        let mut globs = Vec::new();
        for (policy, claims) in policies {
            for (index, claim) in claims.iter().enumerate() {
                let pattern = Pattern::parse(&claim.changes)?;
                match pattern.exact() {
                    Some(id) => exact.push((id.to_owned(), (policy, index))),
                    None => globs.push((pattern, (policy, index))),
                }
            }
        }
        exact.sort();
        globs.sort_by(|(a, _), (b, _)| a.literal.cmp(&b.literal));
        Ok(Router { exact, starts: starts(globs) })
    }

    /// The claims that match an id, in order of policy and claim.
    pub fn claimants(&self, id: &str) -> impl Iterator<Item = (usize, usize)> + use<> {
        let first = self.exact.partition_point(|(exact, _)| exact.as_str() < id);
        let exact = self.exact.iter().skip(first).take_while(|(exact, _)| exact == id);
        let mut found: Vec<Target> = exact.map(|(_, target)| *target).collect();
        // Every start that the id begins with is one of the last start that
        // sorts before the id, or that itself.
        let after = self.starts.partition_point(|start| start.literal.as_str() <= id);
        let mut next = after.checked_sub(1);
        while let Some(start) = next.and_then(|index| self.starts.get(index)) {
            if id.starts_with(&start.literal) {
                let matching = start.globs.iter().filter(|(pattern, _)| pattern.matches(id));
                found.extend(matching.map(|(_, target)| *target));
            }
            next = start.parent;
        }
        found.sort_unstable();
        found.into_iter()
    }
}

/// Groups sorted globs by what they begin with.
fn starts(globs: Vec<(Pattern, Target)>) -> Vec<Start> {
    let mut starts: Vec<Start> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for (pattern, target) in globs {
        match starts.last_mut() {
            Some(last) if last.literal == pattern.literal => last.globs.push((pattern, target)),
            _ => {
                let holds = |index: &usize| {
                    starts
                        .get(*index)
                        .is_some_and(|start| pattern.literal.starts_with(&start.literal))
                };
                while open.last().is_some_and(|index| !holds(index)) {
                    open.pop();
                }
                let parent = open.last().copied();
                open.push(starts.len());
                let literal = pattern.literal.clone();
                starts.push(Start { literal, parent, globs: vec![(pattern, target)] });
            }
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::Effect;

    fn claims(patterns: &[&str]) -> Vec<Claim> {
        let claim = |pattern: &&str| Claim {
            changes: (*pattern).to_owned(),
            least: Effect::None,
            most: Effect::Reboot,
            with_unchanged: false,
        };
        patterns.iter().map(claim).collect()
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
