//! Whether the replica that leads may act on nodes, and since when: an agent is waited for only while
//! somebody could give it a permit.

use super::facts::Facts;
use super::halted::says_halted;
use super::known::Moment;
use super::sightings::mark;
use k8s_openapi::api::coordination::v1::Lease as Object;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tread_kube::api::node_update::{UpdateOrder, UpdateStage};
use tread_kube::dated::time;
use tread_kube::node_lease;
use tread_model::protocol::{Lease, Terms, Time};

/// Why nothing is done on any node.
pub(crate) fn halted(moment: &Moment) -> Option<String> {
    match &moment.slots {
        _ if moment.has_operators_daemon => Some(says_halted()),
        Err(why) => Some(why.clone()),
        Ok(_) => None,
    }
}

/// The Lease of a node, where somebody else than `us` holds it.
pub(crate) fn others_lease<'m>(
    name: &str,
    moment: &'m Moment,
    (us, terms): (&str, &Terms),
    now: Time,
) -> Option<(&'m Arc<Object>, Lease)> {
    let object = moment.leases.get(&node_lease::name(name)?)?;
    let lease = node_lease::read(object, us);
    lease.is_anothers(now, terms).then_some((object, lease))
}

/// Since when this replica leads and may act on nodes.
#[derive(Debug, Default)]
pub(crate) struct MayAct {
    /// On any: it leads, and nothing halts all rollouts.
    since: Option<Time>,
    /// Nodes that somebody else has, or had meanwhile, and whose agents are waited for.
    taken: BTreeMap<String, Taken>,
}

/// A node that somebody else has, or had, while its agent is waited for.
#[derive(Debug, Clone, Copy)]
struct Taken {
    /// Since when its agent is.
    waits_since: Time,
    /// Since when the node is given back: nothing while somebody has it.
    given_back: Option<Time>,
    /// For how long it could be acted on before that.
    before: Duration,
}

impl Taken {
    /// Somebody has it who did not before.
    fn again(self, now: Time) -> Taken {
        let more = self.given_back.map_or(Duration::ZERO, |at| now.since(at));
        Taken { given_back: None, before: self.before.saturating_add(more), ..self }
    }
}

impl MayAct {
    /// Looks who has which node now.
    pub(crate) fn look(
        &mut self,
        moment: &Moment,
        leads: bool,
        (us, terms): (&str, &Terms),
        now: Time,
    ) {
        if !leads || halted(moment).is_some() {
            *self = MayAct::default();
            return;
        }
        let since = *self.since.get_or_insert(now);
        let before = std::mem::take(&mut self.taken);
        let waited_for = moment.updates.iter().filter_map(|(name, update)| {
            let waits_since = waits_since(update.spec.order.as_ref()?)?;
            // After a retry its agent is waited for anew.
            let retried = retried(moment, &update.spec.pool).filter(|at| *at <= now);
            let waits_since = waits_since.max(retried.unwrap_or_default());
            Some((name, moment.nodes.get(name)?, waits_since))
        });
        for (name, facts, waits_since) in waited_for {
            let is_taken = mark(name, facts, moment).is_some()
                || others_lease(name, moment, (us, terms), now).is_some();
            let known = before.get(name).filter(|known| known.waits_since == waits_since);
            let taken = match (is_taken, known) {
                (true, Some(known)) => known.again(now),
                (true, None) => {
                    let given_back = Some(since.max(waits_since));
                    Taken { waits_since, given_back, before: Duration::ZERO }.again(now)
                }
                (false, Some(known)) => {
                    Taken { given_back: known.given_back.or(Some(now)), ..*known }
                }
                (false, None) => continue,
            };
            self.taken.insert(name.clone(), taken);
        }
    }

    /// Since when it may act on this node: nothing where it may not. Once the node is given back, its agent
    /// is waited for anew for `lost_after`, but for no more than twice that in all: so nobody who takes the
    /// node again and again keeps a dead agent from being taken for lost.
    pub(crate) fn since(&self, name: &str, lost_after: Duration) -> Option<Time> {
        let since = self.since?;
        let Some(taken) = self.taken.get(name) else { return Some(since) };
        let beyond = taken.before.saturating_sub(lost_after);
        taken.given_back.map(|at| at.before(beyond))
    }

    /// Since when nothing is heard of a node, where nobody else has it, or had it while its agent is
    /// waited for: what others turned off, and give back, may be on its way up.
    pub(crate) fn unheard_since(&self, name: &str, facts: &Facts) -> Option<Time> {
        facts.unheard_since.filter(|_| !self.taken.contains_key(name))
    }
}

/// When somebody last asked to try the nodes of a pool again.
fn retried(moment: &Moment, pool: &str) -> Option<Time> {
    time(moment.rollouts.get(pool)?.spec.retry_failed_before.as_ref()?.0)
}

/// Since when it is waited for the end of an order.
fn waits_since(order: &UpdateOrder) -> Option<Time> {
    let since = order.go_since.as_ref().filter(|_| order.stage != UpdateStage::Closed)?;
    time(since.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::time::Duration;

    fn at(second: u64) -> Time {
        Time(Duration::from_secs(second))
    }

    /// With nodes whose agents are waited for, by what their specs say.
    fn moment(nodes: &[(&str, Value)]) -> Moment {
        let facts = nodes.iter().map(|(name, spec)| {
            let node = serde_json::from_value(json!({ "spec": spec })).unwrap();
            ((*name).to_owned(), Arc::new(Facts::of(&node)))
        });
        let order = json!({"operation": format!("{:032x}", 7), "disrupts": "Reboot", "token": 1,
            "config": {"name": "c", "digest": "d"}, "stage": "Go", "given": true,
            "goSince": "2026-01-02T00:00:00.000000Z"});
        let updates = nodes.iter().map(|(name, _)| {
            let update = json!({"apiVersion": "tread.dev/v1alpha1", "kind": "NodeUpdate",
                "metadata": {"name": name}, "spec": {"pool": "worker", "order": order}});
            ((*name).to_owned(), Arc::new(serde_json::from_value(update).unwrap()))
        });
        Moment {
            nodes: Arc::new(facts.collect()),
            updates: Arc::new(updates.collect()),
            ..Moment::empty()
        }
    }

    fn look(may_act: &mut MayAct, moment: &Moment, leads: bool, second: u64) -> [Option<Time>; 2] {
        may_act.look(moment, leads, ("tread/1", &Terms::default()), at(second));
        let since = |name| may_act.since(name, Duration::from_secs(3600));
        [since("a"), since("b")]
    }

    #[test]
    fn a_node_may_be_acted_on_from_when_it_is_given_back_on_and_others_from_the_beginning() {
        let free = moment(&[("a", json!({})), ("b", json!({}))]);
        let karpenters = json!({"taints": [{"key": "karpenter.sh/disrupted", "effect": "x"}]});
        let taken = moment(&[("a", karpenters), ("b", json!({}))]);
        let mut may_act = MayAct::default();
        let since = |seconds: [u64; 2]| seconds.map(|second| Some(at(second)));
        assert_eq!(look(&mut may_act, &free, true, 1), since([1, 1]));
        assert_eq!(look(&mut may_act, &free, true, 2), since([1, 1]));
        assert_eq!(look(&mut may_act, &taken, true, 3), [None, Some(at(1))]);
        assert_eq!(look(&mut may_act, &taken, true, 4), [None, Some(at(1))]);
        assert_eq!(look(&mut may_act, &free, true, 5), since([5, 1]));
        assert_eq!(look(&mut may_act, &free, true, 6), since([5, 1]));
        // Of what ended since, nothing is kept.
        assert_eq!(look(&mut may_act, &Moment::empty(), true, 7), since([1, 1]));
        assert!(may_act.taken.is_empty());
    }

    #[test]
    fn whoever_takes_a_node_again_and_again_does_not_put_off_for_ever_that_it_is_lost() {
        let (minute, lost_after) = (60, Duration::from_secs(75 * 60));
        let karpenters = json!({"taints": [{"key": "karpenter.sh/disrupted", "effect": "x"}]});
        let (taken, mut free) = (moment(&[("a", karpenters)]), moment(&[("a", json!({}))]));
        let begun = time("2026-01-02T00:00:00Z".parse().unwrap()).unwrap();
        let at = |minutes: u64| begun.after(Duration::from_secs(minutes * minute));
        let mut may_act = MayAct::default();
        let mut look = |moment: &Moment, minutes: u64| {
            may_act.look(moment, true, ("tread/1", &Terms::default()), at(minutes));
            may_act.since("a", lost_after)
        };
        // By the minute: since when it is waited for then, and since when that counts.
        assert_eq!(look(&free, 0), Some(at(0)));
        for (takes, gives_back, counts) in
            [(50, 60, 60), (70, 500, 500), (550, 560, 525), (580, 590, 535)]
        {
            assert_eq!(look(&taken, takes), None);
            assert_eq!(look(&taken, takes + 5), None, "as long as somebody has it");
            assert_eq!(look(&free, gives_back), Some(at(counts)), "{takes}");
        }
        // It had 130 minutes by then, of twice 75: 20 are left, and it is lost after 610.
        assert_eq!(at(535).after(lost_after), at(610));
        // What comes by another order is waited for from its own beginning on.
        let update = free.updates["a"].clone();
        let mut update = Arc::unwrap_or_clone(update);
        let order = update.spec.order.as_mut().unwrap();
        order.go_since =
            Some(serde_json::from_value(json!("2026-01-02T10:00:00.000000Z")).unwrap());
        free.updates = Arc::new(BTreeMap::from([("a".to_owned(), Arc::new(update))]));
        assert_eq!(look(&free, 600), Some(at(0)), "nobody had it since");
    }

    #[test]
    fn what_somebody_turned_off_and_gives_back_is_not_gone_for_that() {
        let karpenters = json!({"taints": [{"key": "karpenter.sh/disrupted", "effect": "x"}]});
        let (taken, free) = (moment(&[("a", karpenters)]), moment(&[("a", json!({}))]));
        let unheard = Facts { unheard_since: Some(at(2)), ..Facts::default() };
        let mut may_act = MayAct::default();
        for (moment, second, expected) in
            [(&free, 5, Some(at(2))), (&taken, 10, None), (&free, 15, None)]
        {
            look(&mut may_act, moment, true, second);
            assert_eq!(may_act.unheard_since("a", &unheard), expected, "{second}");
        }
    }

    #[test]
    fn who_holds_the_lease_of_a_node_has_it_too() {
        let mut moment = moment(&[("a", json!({})), ("b", json!({}))]);
        let lease = json!({"spec": {"holderIdentity": "alice", "leaseDurationSeconds": 60,
            "renewTime": "1970-01-01T00:16:40.000000Z"}});
        let lease = Arc::new(serde_json::from_value(lease).unwrap());
        moment.leases = Arc::new(BTreeMap::from([("node-a".to_owned(), lease)]));
        let mut may_act = MayAct::default();
        assert_eq!(look(&mut may_act, &moment, true, 1001), [None, Some(at(1001))]);
        let long_after = 1001 + 3600;
        let since = [Some(at(long_after)), Some(at(1001))];
        assert_eq!(look(&mut may_act, &moment, true, long_after), since, "it has ended");
    }

    #[test]
    fn nobody_acts_who_does_not_lead_or_while_somebody_else_rolls_out_or_slots_cannot_be_read() {
        let free = moment(&[("a", json!({})), ("b", json!({}))]);
        let daemon = Moment { has_operators_daemon: true, ..free.clone() };
        let unreadable = Moment { slots: Err("they are spoilt".to_owned()), ..free.clone() };
        let mut may_act = MayAct::default();
        for (second, (moment, leads)) in
            (0..).step_by(10).zip([(&free, false), (&daemon, true), (&unreadable, true)])
        {
            assert_eq!(look(&mut may_act, moment, leads, second), [None, None]);
            let since = [Some(at(second + 5)); 2];
            assert_eq!(look(&mut may_act, &free, true, second + 5), since);
        }
    }
}
