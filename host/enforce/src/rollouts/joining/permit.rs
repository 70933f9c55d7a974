//! Whether the agent of a node that joins may bring what Ignition cannot: write, and boot once.
//! No slot is taken for it, since no pod is put there before it has joined. What disrupts the node
//! needs its Lease, which is given back once it counts in its pool.

use super::super::facts::{Facts, PAUSED_ANNOTATION};
use super::bound::Bound;
use super::serving::Joining;
use crate::carry::{make_lease, write_lease};
use crate::reading::lease;
use k8s_openapi::api::core::v1::Node;
use std::time::Duration;
use tread_kube::agents::{Answer, Ask, Asked};
use tread_kube::asking::{Call, CallOutcome};
use tread_kube::dated;
use tread_kube::held::Maintained;
use tread_kube::node_lease::{self, OfNode};
use tread_model::joining::Claim;
use tread_model::protocol::{Operation, Time, lease_to_join};

/// So long it may begin.
const LASTS: Duration = Duration::from_secs(60);
/// How often the Lease is written where others write it too.
const TRIES: usize = 4;

/// Whether nobody holds a node back, by what it says and by what other objects say of it.
fn is_free(facts: &Facts, maintained: Maintained) -> Result<(), String> {
    if facts.is_paused {
        return Err(format!("an admin holds the node back: it has {PAUSED_ANNOTATION}=true"));
    }
    match facts.held.or_else(|| maintained.held()) {
        None if !facts.is_cordoned_by_others() => Ok(()),
        _ => Err("somebody else has the node".to_owned()),
    }
}

impl Joining {
    /// The answer, by what the node is at this moment; none: it does not join.
    pub(crate) async fn permit(
        &self,
        node: &str,
        operation: Operation,
        asked: &Ask,
    ) -> Option<Answer> {
        let moment = self.known.now()?;
        moment.nodes.get(node)?.joins.as_ref()?;
        Some(match self.may(node, operation, asked.what).await {
            Ok(()) => Answer::Permitted {
                number: asked.number,
                lasts: u64::try_from(LASTS.as_millis()).unwrap_or(u64::MAX),
            },
            Err(why) => Answer::Refused { why },
        })
    }

    async fn may(&self, name: &str, operation: Operation, what: Asked) -> Result<(), String> {
        let acts = &self.settings.acts;
        let (call, path) = (Call::new("get", "nodes"), format!("/api/v1/nodes/{name}"));
        let node = dated::read::<Node>(&acts.client, &acts.metrics, call, &path).await;
        let node = node.map_err(|failed| failed.to_string())?;
        let (now, node) = (node.at, node.object.ok_or("there is no such node any more")?);
        let facts = Facts::of(&node);
        let registered = facts.joins.as_ref().ok_or("the node has joined by now")?;
        // Whose it is was written once it had been checked: whatever else the node says counts nothing.
        let claim = Claim::unproved(&registered.claim).ok_or("its claim is none of tread's")?;
        let record = self.record().flatten().ok_or("who joined is not known yet")?;
        if record.by(claim.id).map(String::as_str) != Some(name) {
            return Err("its claim has not been settled yet".to_owned());
        }
        if record.held(claim.id).is_some() {
            return Err("it is held; its NodeUpdate says why".to_owned());
        }
        // Its agent may be at an order of before: what that left undone comes by another one.
        if !record.is_first(claim.id, &facts.uid) {
            return Err("it registered again, and is brought nothing before it joins".to_owned());
        }
        let booted = record.bound_by(claim.id).and_then(Bound::config);
        if booted.and_then(|config| record.needs_agent(config)).is_none() {
            return Err("its machine booted with all that is brought before it joins".to_owned());
        }
        let moment = self.known.now().ok_or("nodes are not known yet")?;
        is_free(&facts, moment.maintained.get(name).copied().unwrap_or_default())?;
        if moment.has_operators_daemon {
            return Err("OpenShift's operator rolls out here".to_owned());
        }
        let of_node = OfNode { name: name.to_owned(), uid: facts.uid };
        self.holds(&of_node, operation, now, what != Asked::Write).await
    }

    /// Whether nobody else holds the node's Lease; takes it for what disrupts the node.
    async fn holds(
        &self,
        node: &OfNode,
        operation: Operation,
        now: Time,
        takes: bool,
    ) -> Result<(), String> {
        let acts = &self.settings.acts;
        let name = node_lease::name(&node.name).ok_or("its name is too long for a Lease")?;
        for _ in 0..TRIES {
            let object = lease(acts, &acts.leases, &name).await;
            let object = object.map_err(|failed| failed.to_string())?;
            let stands = object.as_ref().map(|it| node_lease::read(it, &acts.holder));
            let next = lease_to_join(stands.as_ref(), operation, now, &acts.terms);
            let next = next.map_err(|_| "somebody else holds the node's Lease")?;
            let Some(next) = next.filter(|_| takes) else { return Ok(()) };
            let written = match object {
                None => make_lease(acts, node, now, &next).await,
                before => write_lease(acts, node, now, &next, before.as_ref()).await,
            };
            match written {
                Err(failed) if failed.outcome != CallOutcome::Conflict => {
                    return Err(format!("the node's Lease cannot be taken: {failed}"));
                }
                _ => {}
            }
        }
        Err("others write the node's Lease at the same time".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_node_that_joins_is_left_to_whoever_has_it_or_holds_it_back() {
        let facts = |object: Value| Facts::of(&serde_json::from_value::<Node>(object).unwrap());
        let well = || facts(json!({}));
        let is_gone = Maintained { machine_goes: true, ..Maintained::default() };
        let is_maintained = Maintained { by_object: true, ..Maintained::default() };
        let paused =
            |value: &str| facts(json!({"metadata": {"annotations": {"tread.dev/paused": value}}}));
        let none = Maintained::default();
        for (what, facts, maintained, expected) in [
            ("it is nobody's", well(), none, Ok(())),
            ("its Machine is being deleted", well(), is_gone, Err("somebody else has the node")),
            (
                "a NodeMaintenance names it",
                well(),
                is_maintained,
                Err("somebody else has the node"),
            ),
            (
                "somebody cordoned it",
                facts(json!({"spec": {"unschedulable": true}})),
                none,
                Err("somebody else has the node"),
            ),
            (
                "an admin paused it",
                paused("true"),
                none,
                Err("an admin holds the node back: it has tread.dev/paused=true"),
            ),
            ("it is paused no more", paused("false"), none, Ok(())),
        ] {
            let expected = expected.map_err(str::to_owned);
            assert_eq!(is_free(&facts, maintained), expected, "{what}");
        }
    }
}
