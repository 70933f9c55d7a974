//! What a change of policies makes of the plans that wait, pool by pool: pools
//! are looked at at different times, and some cannot be.

use crate::policies::current::Current;
use crate::previews::Described;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tread_model::digest::Digest;
use tread_model::effect::Effect;

/// The policies that decide, each with a text that is another one when it may decide otherwise.
#[derive(Debug)]
pub(super) struct Deciders {
    digest: Digest,
    policies: BTreeMap<String, String>,
}

/// What changed policies made of plans, by the plans' names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Made {
    /// The policies: those that decide now and did not before, or otherwise, and
    /// those that do not any more.
    pub(super) by: BTreeSet<String>,
    /// Plans by name, each with the effect that it had before.
    pub(super) gentler: Effects,
    pub(super) harsher: Effects,
}

/// With which policies each pool was described last, and how disruptive its plans
/// were with them.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pools: BTreeMap<String, (Arc<Deciders>, Effects)>,
    /// Everything that came with those who decide now.
    all: Option<(Digest, Vec<Made>)>,
    /// What could not be reported yet.
    pub(super) unreported: Vec<Made>,
}

/// The effects of plans by their names; None: not known.
pub(super) type Effects = BTreeMap<String, Option<Effect>>;

impl Deciders {
    pub(super) fn of(current: &Current) -> Deciders {
        let said = current.policies.policies().iter().map(|policy| {
            let it = &policy.identity;
            let claims: Vec<&str> = policy.claims.iter().map(|it| it.changes.as_str()).collect();
            let said = format!(
                "{} {} {} {} {} {} {claims:?}",
                it.layer,
                it.digest,
                it.settings_digest,
                policy.may_relax,
                policy.read_secrets,
                policy.condition(),
            );
            (it.policy.clone(), said)
        });
        Deciders { digest: current.digest, policies: said.collect() }
    }

    /// Whether a policy is there.
    pub(super) fn has(&self, policy: &str) -> bool {
        self.policies.contains_key(policy)
    }

    fn changed_since(&self, then: &Deciders) -> BTreeSet<String> {
        let (now, then) = (&self.policies, &then.policies);
        let new = now.iter().filter(|(name, said)| then.get(*name) != Some(said));
        let gone = then.iter().filter(|(name, _)| !now.contains_key(*name));
        new.chain(gone).map(|(name, _)| name.clone()).collect()
    }
}

impl Compared {
    /// Notes the plans of some pools as they are now. If policies changed since such a pool was
    /// last noted, what they made of its plans has to be reported.
    pub(super) fn note(
        &mut self,
        now: &Arc<Deciders>,
        pools: &BTreeMap<String, Vec<Arc<Described>>>,
    ) {
        for (pool, plans) in pools {
            let effects = plans.iter().map(|plan| (plan.name.clone(), effect(plan))).collect();
            self.pool(now, pool, effects);
        }
    }

    fn pool(&mut self, now: &Arc<Deciders>, pool: &str, effects: Effects) {
        let before = self.pools.insert(pool.to_owned(), (Arc::clone(now), effects));
        let (Some((then, before)), Some((_, after))) = (before, self.pools.get(pool)) else {
            return;
        };
        if then.digest == now.digest {
            return;
        }
        let mut made = Made { by: now.changed_since(&then), ..Made::default() };
        for (plan, effect) in after {
            let Some(before) = before.get(plan) else { continue };
            match effect.cmp(before) {
                std::cmp::Ordering::Less => made.gentler.insert(plan.clone(), *before),
                std::cmp::Ordering::Greater => made.harsher.insert(plan.clone(), *before),
                std::cmp::Ordering::Equal => continue,
            };
        }
        if !(made.gentler.is_empty() && made.harsher.is_empty()) {
            add(&mut self.unreported, made);
        }
    }

    /// Forgets pools that are gone.
    pub(super) fn keep(&mut self, is_there: impl Fn(&str) -> bool) {
        self.pools.retain(|pool, _| is_there(pool));
    }

    /// What these policies made of all plans that were reported, this included: the
    /// sum that stands in their status.
    pub(super) fn sum(&mut self, now: &Deciders, made: &Made) -> Made {
        if self.all.as_ref().is_none_or(|(digest, _)| *digest != now.digest) {
            self.all = Some((now.digest, Vec::new()));
        }
        let Some((_, all)) = &mut self.all else { return made.clone() };
        add(all, made.clone());
        all.iter().find(|it| it.by == made.by).cloned().unwrap_or_default()
    }
}

/// What the same policies made is reported together.
fn add(all: &mut Vec<Made>, made: Made) {
    match all.iter_mut().find(|it| it.by == made.by) {
        Some(there) => {
            there.gentler.extend(made.gentler);
            there.harsher.extend(made.harsher);
        }
        None => all.push(made),
    }
}

/// By tread's own policies: what the operator does does not follow them.
pub(super) fn effect(plan: &Described) -> Option<Effect> {
    plan.status.transitions.iter().filter_map(|way| way.effect).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deciders(policies: &[(&str, &str)]) -> Arc<Deciders> {
        let policies: BTreeMap<String, String> =
            policies.iter().map(|(name, said)| ((*name).to_owned(), (*said).to_owned())).collect();
        Arc::new(Deciders { digest: Digest::of(format!("{policies:?}").as_bytes()), policies })
    }

    fn effects(plans: &[(&str, Effect)]) -> Effects {
        plans.iter().map(|(name, effect)| ((*name).to_owned(), Some(*effect))).collect()
    }

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn were(name: &str) -> Effects {
        effects(&[(name, Effect::Reboot)])
    }

    #[test]
    fn each_pool_is_compared_with_the_policies_that_it_was_described_with_and_once() {
        let (first, second) = (deciders(&[("a", "1"), ("b", "1")]), deciders(&[("a", "2")]));
        let mut compared = Compared::default();
        for pool in ["one", "two"] {
            compared.pool(&first, pool, effects(&[(pool, Effect::Reboot)]));
        }
        assert_eq!(compared.unreported, []);
        // The other pool cannot be looked at yet.
        compared.pool(&second, "one", effects(&[("one", Effect::None), ("new", Effect::None)]));
        let news = std::mem::take(&mut compared.unreported);
        let one = Made { by: set(&["a", "b"]), gentler: were("one"), harsher: Effects::new() };
        assert_eq!(news, std::slice::from_ref(&one));
        assert_eq!(compared.sum(&second, &news[0]), one);
        compared.pool(&second, "one", effects(&[("one", Effect::None)]));
        assert_eq!(compared.unreported, []);
        // Now it can.
        compared.pool(&second, "two", effects(&[("two", Effect::Refuse)]));
        let news = std::mem::take(&mut compared.unreported);
        assert_eq!(news, [Made { gentler: Effects::new(), harsher: were("two"), ..one.clone() }]);
        assert_eq!(compared.sum(&second, &news[0]), Made { harsher: were("two"), ..one });
    }

    #[test]
    fn what_is_new_and_what_stays_as_it_was_is_not_told_of() {
        let (first, second) = (deciders(&[("a", "1")]), deciders(&[("a", "2")]));
        let mut compared = Compared::default();
        compared.pool(&first, "one", effects(&[("same", Effect::Drain)]));
        compared.pool(&second, "one", effects(&[("same", Effect::Drain), ("new", Effect::None)]));
        compared.pool(&second, "two", effects(&[("other", Effect::None)]));
        assert_eq!(compared.unreported, []);
        compared.keep(|pool| pool != "one");
        compared.pool(&first, "one", effects(&[("same", Effect::Reboot)]));
        assert_eq!(compared.unreported, []);
    }
}
