//! Whether the replica that leads may act on nodes, and since when: an agent is waited for only while
//! somebody could give it a permit.

use super::halted::says_halted;
use super::known::Moment;
use super::sightings::mark;
use k8s_openapi::api::coordination::v1::Lease as Object;
use std::collections::BTreeMap;
use std::sync::Arc;
use tread_kube::api::node_update::{UpdateOrder, UpdateStage};
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
    /// On those that somebody else has, or had meanwhile, and whose agents are waited for: nothing
    /// while they have it.
    given_back: BTreeMap<String, Option<Time>>,
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
        self.since.get_or_insert(now);
        let before = std::mem::take(&mut self.given_back);
        let waited_for = moment
            .updates
            .iter()
            .filter(|(_, update)| update.spec.order.as_ref().is_some_and(is_waited_for));
        for (name, _) in waited_for {
            let Some(facts) = moment.nodes.get(name) else { continue };
            let is_taken = mark(name, facts, moment).is_some()
                || others_lease(name, moment, (us, terms), now).is_some();
            let given_back = match (is_taken, before.get(name)) {
                (true, _) => None,
                (false, Some(known)) => Some(known.unwrap_or(now)),
                (false, None) => continue,
            };
            self.given_back.insert(name.clone(), given_back);
        }
    }

    /// Since when it may act on this node: nothing where it may not.
    pub(crate) fn since(&self, name: &str) -> Option<Time> {
        let since = self.since?;
        self.given_back.get(name).map_or(Some(since), |given_back| *given_back)
    }
}

/// Whether it is waited for the end of an order.
fn is_waited_for(order: &UpdateOrder) -> bool {
    order.go_since.is_some() && order.stage != UpdateStage::Closed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollouts::facts::Facts;
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
        [may_act.since("a"), may_act.since("b")]
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
        assert!(may_act.given_back.is_empty());
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
