//! Whether the agent of a node that joins may bring what Ignition cannot: write, and boot once.
//! No slot is taken for it, since no pod is put there before it has joined.

use super::super::facts::Facts;
use super::serving::{Joining, one};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use std::time::Duration;
use tread_kube::agents::{Answer, Ask};
use tread_kube::asking::{Call, ask};
use tread_kube::dated::time;
use tread_kube::node_lease;
use tread_model::joining::Claim;

/// So long it may begin.
const LASTS: Duration = Duration::from_secs(60);

impl Joining {
    /// The answer, by what the node is at this moment; none: it does not join.
    pub(crate) async fn permit(&self, node: &str, asked: &Ask) -> Option<Answer> {
        let moment = self.known.now()?;
        moment.nodes.get(node)?.joins.as_ref()?;
        Some(match self.may(node).await {
            Ok(()) => Answer::Permitted {
                number: asked.number,
                lasts: u64::try_from(LASTS.as_millis()).unwrap_or(u64::MAX),
            },
            Err(why) => Answer::Refused { why },
        })
    }

    async fn may(&self, name: &str) -> Result<(), String> {
        let acts = &self.settings.acts;
        let api: Api<Node> = Api::all(acts.client.clone());
        let node = ask(&acts.metrics, Call::new("get", "nodes"), api.get(name)).await;
        let facts = Facts::of(&node.map_err(|failed| failed.to_string())?);
        let registered = facts.joins.as_ref().ok_or("the node has joined by now")?;
        let keys = self.keys.now().and_then(|all| one(&all));
        let keys = keys.ok_or("the keys that claims are signed with are not known yet")?;
        let claim = Claim::read(&registered.claim, keys.read.as_deref().map_err(Clone::clone)?);
        let claim = claim.map_err(|_| "its claim is none of tread's")?;
        let record = self.record().flatten().ok_or("who joined is not known yet")?;
        if record.by(claim.id).map(String::as_str) != Some(name) {
            return Err("its claim has not been settled yet".to_owned());
        }
        if facts.held.is_some() || facts.is_cordoned_by_others() {
            return Err("somebody else has the node".to_owned());
        }
        let moment = self.known.now().ok_or("nodes are not known yet")?;
        if moment.has_operators_daemon {
            return Err("OpenShift's operator rolls out here".to_owned());
        }
        let lease = node_lease::name(name).and_then(|lease| moment.leases.get(&lease));
        let now = time(k8s_openapi::jiff::Timestamp::now()).unwrap_or_default();
        let is_anothers = |it: &&std::sync::Arc<_>| {
            node_lease::read(it, &acts.holder).is_anothers(now, &acts.terms)
        };
        match lease.filter(is_anothers) {
            Some(_) => Err("somebody else holds the node's Lease".to_owned()),
            None => Ok(()),
        }
    }
}
