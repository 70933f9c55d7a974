//! Why nodes and pools do not get further, and what to do, in sentences.

use super::super::state::Lost;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as At;
use std::time::Duration;
use tread_cluster::pools::{Member, Place, Selects};
use tread_kube::api::Rollout;
use tread_kube::dated::timestamp;
use tread_model::protocol::Time;
use tread_model::rollout::{Node, State};

/// What to do with labels that select no nodes.
const REMEDY: &str = "correct it, or take it away";

/// Why a node of another pool keeps a slot of this one, and what to do.
pub(super) fn moved(pool: &str, is_left_unwell: bool) -> String {
    let until = match is_left_unwell {
        true => format!(
            "it has ended well there: see to it, then tread rollout retry {pool}, which waits while \
             that pool is paused"
        ),
        false => format!(
            "what was begun on it has ended; tread rollout status {pool} says how far it is"
        ),
    };
    format!("it is in pool {pool} by now, and keeps its slot here until {until}")
}

/// Why a node that registered anew keeps a slot, and what to do: it has not joined.
pub(super) fn joins_anew(member: &Member) -> Option<String> {
    (member.place == Place::Joining).then(|| {
        "it registered anew, and the slot of the one before stays here until it has joined: the condition \
         Joined of its NodeUpdate says why it is held; or delete its Node"
            .to_owned()
    })
}

/// Why a node is taken for lost, and what that means.
pub(super) fn lost(why: Lost, state: State) -> String {
    let what = match (why, state) {
        (Lost::NotEnded(since), State::Failed) => format!(
            "its agent was to carry its order out at {}, and has not ended it since",
            timestamp(since)
        ),
        (Lost::NotEnded(since), _) => format!(
            "its agent was to write its config at {}, and has not ended that since",
            timestamp(since)
        ),
        (Lost::NotReady(since), _) => format!(
            "its agent has ended the order of {}, and the node is not Ready, or not for long enough",
            timestamp(since)
        ),
    };
    let means = match state {
        State::Failed => {
            "look at the node; its Lease is not renewed any more, so that others can mend it, and \
             `tread rollout retry` waits for it once more"
        }
        _ => {
            "look at the node, or delete its Node if it does not come back; the other nodes do not \
             wait for it, unless it is a canary or of the control plane"
        }
    };
    format!("{what}: {means}")
}

/// So far ahead a right time may be: what is known of the API server's clock lags behind.
const AHEAD: Duration = Duration::from_secs(60);

/// Whether what an admin wrote is yet to come. A failure is before it, whenever it happens: nothing
/// would halt a pool until then.
pub(super) fn is_to_come(at: &At, now: Time) -> bool {
    at.0 > timestamp(now.after(AHEAD))
}

pub(super) fn not_retried(at: &At, pool: &str) -> String {
    format!(
        "its Rollout's spec.retryFailedBefore is {}, which is yet to come, and counts from then on; to try \
         again now: tread rollout retry {pool}",
        at.0
    )
}

/// Nobody says that the pods of a node end whose kubelet is gone.
pub(super) fn down_in_its_drain(since: Time) -> String {
    format!(
        "nothing has been heard of its kubelet since {}, so that its pods do not end: mend it, or delete its \
         Node if it does not come back",
        timestamp(since)
    )
}

/// Without its Rollout nobody knows whether a pool is paused, and how many of its nodes may be down.
pub(super) fn no_rollout(rollout: Option<&Rollout>) -> Option<String> {
    let why = "its Rollout is not there yet: tread makes it, and begins no node before that";
    rollout.is_none().then(|| why.to_owned())
}

/// Why nobody knows which of these nodes are the canaries, where a Rollout wants some.
pub(super) fn no_canary(canary: &Selects, nodes: &[Node]) -> Option<String> {
    match canary {
        Selects::Unreadable(why) => {
            Some(format!("its Rollout's spec.canary cannot be read: {why}; {REMEDY}"))
        }
        Selects::Labels(_) if !nodes.iter().any(|node| node.canary) => {
            Some(format!("its Rollout's spec.canary selects no node of the pool; {REMEDY}"))
        }
        Selects::Labels(_) | Selects::Nothing => None,
    }
}

/// Why nobody knows which nodes come last, where a Rollout names some. Where it selects none, there
/// is none to come last.
pub(super) fn no_order(last: &Selects) -> Option<String> {
    match last {
        Selects::Unreadable(why) => {
            Some(format!("its Rollout's spec.order.last cannot be read: {why}; {REMEDY}"))
        }
        Selects::Labels(_) | Selects::Nothing => None,
    }
}
