//! What the conditions of Rollouts and NodeUpdates say of pools and nodes. Each word here stands on
//! the page for operators.

use super::facts::Facts;
use super::progress::{Counts, sentence};
use super::scene::OfPool;
use tread_kube::api::conditions::Finding;
use tread_kube::api::node_update::{ConfigName, LOST, NEEDS_AGENT, UPDATED};
use tread_model::joining::JOINED;
use tread_model::rollout::{Node, State};

/// Whether a node has what its pool is to have.
pub(super) fn updated(
    target: &ConfigName,
    node: &Node,
    facts: &Facts,
    needs_agent: bool,
) -> Finding {
    let has_it = node.state == State::Updated;
    let is_updated = has_it && !facts.is_cordoned_by_tread();
    Finding {
        type_: UPDATED,
        status: Some(is_updated),
        reason: match is_updated {
            true => "HasIt",
            false if needs_agent => NEEDS_AGENT,
            false if node.lost => LOST,
            false => "NotYet",
        }
        .to_owned(),
        message: match (is_updated, has_it) {
            (true, _) => format!("it has {}", target.name),
            (_, true) => format!("it has {}, and is still cordoned", target.name),
            _ if needs_agent => {
                format!("it is to get {} once its agent is upgraded", target.name)
            }
            _ if node.lost => format!(
                "it is to get {}, and is taken for lost: the message of its Rollout says why",
                target.name
            ),
            _ => match node.held.as_ref().filter(|_| facts.is_cordoned_by_tread()) {
                Some(why) => format!("it is to get {}: {why}", target.name),
                None => format!("it is to get {}", target.name),
            },
        },
    }
}

/// Of a node that did not join, and counts in a pool now.
pub(super) fn joined(pool: &str) -> Finding {
    Finding {
        type_: JOINED,
        status: Some(true),
        reason: "Joined".to_owned(),
        message: format!("it has joined pool {pool}"),
    }
}

/// How far a pool is.
pub(super) fn of_pool(pool: &OfPool, counts: Counts) -> [Finding; 3] {
    let finding = |type_, status, reason: &str, message: String| Finding {
        type_,
        status: Some(status),
        reason: reason.to_owned(),
        message,
    };
    let all_have_it = counts.updated == counts.nodes && pool.target.is_some();
    let is_updated = all_have_it && pool.still_cordoned == 0;
    let (updated, progressing) = match () {
        () if is_updated => ("AllHaveIt", (false, "AllHaveIt")),
        () if pool.halted.is_some() => ("NotYet", (false, "Halted")),
        () if pool.anew.is_some() && counts.under_way == 0 && !all_have_it => {
            ("NotYet", (false, "MadeAnew"))
        }
        () if counts.failed > 0 => ("NotYet", (counts.under_way > 0, "Failed")),
        () if all_have_it => ("NotYet", (true, "Uncordons")),
        () if counts.under_way > 0 || !pool.turns.next.is_empty() => ("NotYet", (true, "UnderWay")),
        () => ("NotYet", (false, "Waiting")),
    };
    let (rendered, word, why) = match &pool.not_made {
        Some((word, why)) => (false, *word, why.clone()),
        None => (true, "Rendered", "the config of the pool is made".to_owned()),
    };
    [
        finding(UPDATED, is_updated, updated, sentence(pool)),
        finding("Progressing", progressing.0, progressing.1, sentence(pool)),
        finding("Rendered", rendered, word, why),
    ]
}
