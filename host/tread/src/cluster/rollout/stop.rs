//! Pauses, and waits until nothing is under way.

use super::change::pause;
use super::status::{doing, is_seen};
use crate::cluster::connect::Cluster;
use crate::cluster::rollouts::{
    Known, Watching, chosen, has_failed, holder, is_treads, lease_of, open_order, rollouts,
    warn_of_operator,
};
use anyhow::{Result, bail};
use std::io::Write;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tread_console::exit::{Exit, unless_nobody_reads};
use tread_console::print::line;
use tread_kube::api::NodeUpdate;
use tread_kube::api::node_update::{UpdateDisrupts, UpdateOrder};
use tread_kube::asking::PATIENCE;

/// Something that is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Left {
    what: String,
    how: How,
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// It goes on by itself.
    GoesOn,
    /// A node failed, and stands until somebody mends it.
    Failed,
    /// Nobody knows.
    Unknown,
}

impl Left {
    fn goes_on(&self) -> bool {
        self.how == How::GoesOn
    }
}

/// Does it.
pub(super) async fn run(
    out: &mut impl Write,
    cluster: Cluster,
    asked: &[String],
    timeout: Duration,
    (leases, namespace): (&str, &str),
) -> Result<Exit> {
    let deadline = Instant::now().checked_add(timeout);
    let there = rollouts(&cluster).await?;
    let pools = chosen(&there, asked)?;
    for pool in &pools {
        if there.get(pool).is_none_or(|rollout| !rollout.spec.paused) {
            pause(&cluster, pool).await?;
            show(out, &format!("{} is paused", line(pool)), &[])?;
        }
    }
    warn_of_operator(&cluster).await;
    let of = Asked { pools: &pools, all: asked.is_empty() };
    // However short it is: what is left is said in any case.
    let listed_by = deadline.map(|deadline| deadline.max(Instant::now() + PATIENCE));
    let watching = before(listed_by, Watching::begin(cluster, leases, Some(namespace))).await;
    let Some(watching) = watching else { bail!("{UNKNOWN}") };
    let mut watching = watching?;
    let mut shown = Vec::new();
    loop {
        let mut left = left(&watching.known, &of);
        if !left.iter().any(Left::goes_on) {
            let Some(afresh) = before(listed_by, watching.afresh()).await else {
                bail!("{UNKNOWN}")
            };
            left = self::left(&afresh?, &of);
        }
        if !left.iter().any(Left::goes_on) {
            return said(out, &left, "nothing is under way");
        }
        if left != shown {
            show(out, "waiting for:", &left)?;
            shown.clone_from(&left);
        }
        match before(deadline, watching.next()).await {
            Some(changed) => changed?,
            None => return said(out, &left, "the time is over"),
        }
    }
}

/// Where the time is over before anything is known.
const UNKNOWN: &str = "the time is over, and the cluster has not said yet what is under way: the pools are \
    paused; ask again with a longer --timeout";

/// What is to be done about nodes that failed.
const KEEP_THEIR_CORDON: &str = "nodes that failed keep their cordon, since nobody knows whether they are well: \
    mend each, then `kubectl uncordon NODE`; once tread has seen that, stop ends with 0";

/// What comes of it; None: the time is over.
async fn before<T>(deadline: Option<Instant>, what: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(deadline) => timeout_at(deadline, what).await.ok(),
        None => Some(what.await),
    }
}

/// How it ends.
fn said(out: &mut impl Write, left: &[Left], why: &str) -> Result<Exit> {
    if left.is_empty() {
        show(out, &format!("{why}, and no cordon and no Lease of tread's is left"), &[])?;
        return Ok(Exit::Done);
    }
    show(out, &format!("{why}; this is left:"), left)?;
    if left.iter().any(|it| it.how == How::Failed) {
        show(out, KEEP_THEIR_CORDON, &[])?;
    }
    // As for a plan that does more than was allowed.
    Ok(Exit::TooDisruptive)
}

/// Shows it to whoever reads: it is waited for without them too.
fn show(out: &mut impl Write, head: &str, left: &[Left]) -> Result<()> {
    let lines: String = left.iter().map(|Left { what, .. }| format!("  {what}\n")).collect();
    let shown = write!(out, "{head}\n{lines}").and_then(|()| out.flush());
    unless_nobody_reads(shown.map_err(Into::into))
}

/// Which pools are stopped.
struct Asked<'a> {
    pools: &'a [String],
    /// All there are, and what belongs to none.
    all: bool,
}

/// What is not over yet, with words for people.
fn left(known: &Known, asked: &Asked<'_>) -> Vec<Left> {
    let mut left = Vec::new();
    let mut add = |what: String, how| left.push(Left { what, how });
    for pool in asked.pools {
        let Some(rollout) = known.rollouts.get(pool) else { continue };
        let pool = line(pool);
        if !is_seen(rollout) {
            let what = "tread has not seen yet that it is paused; see whether `tread serve` runs";
            add(format!("{pool}: {what}"), How::GoesOn);
        } else if let Some(count @ 1..) = rollout.status.as_ref().map(|status| status.under_way) {
            add(format!("{pool}: tread counts {count} under way"), How::GoesOn);
        }
    }
    let is_asked = |node: &str| match known.updates.get(node) {
        Some(update) => asked.all || asked.pools.contains(&update.spec.pool),
        None => asked.all,
    };
    let failed = |node: &str| known.updates.get(node).is_some_and(has_failed);
    for (node, update) in known.updates.iter().filter(|(node, _)| is_asked(node)) {
        if failed(node) {
            // Whoever mended one that was drained has uncordoned it.
            if !is_drained(update) || known.cordons.contains_key(node) {
                add(format!("{}: {}", line(node), doing(update)), How::Failed);
            }
        } else if open_order(update).is_some() {
            add(format!("{}: {}", line(node), doing(update)), How::GoesOn);
        }
    }
    let goes_on = |node: &str| is_asked(node) && !failed(node);
    for node in known.cordons.keys().filter(|node| goes_on(node)) {
        add(format!("{}: tread's cordon is still there", line(node)), How::GoesOn);
    }
    for node in leased(known).filter(|node| goes_on(node)) {
        add(format!("{}: tread still holds its Lease", line(&node)), How::GoesOn);
    }
    for (node, pool) in &known.slots {
        let is_asked = asked.all || asked.pools.contains(pool);
        // What its order says is said above.
        let is_said = known.updates.get(node).is_some_and(|it| open_order(it).is_some());
        if is_asked && !failed(node) && !is_said {
            add(format!("{}: it still has its slot", line(node)), How::GoesOn);
        }
    }
    if let Some(why) = &known.slots_unread {
        add(line(why), How::Unknown);
    }
    for node in &known.unreadable {
        add(format!("{}: its NodeUpdate cannot be read", line(node)), How::Unknown);
    }
    for unknown in &known.unknown {
        add(line(unknown), How::Unknown);
    }
    left
}

/// Whether its order drains the node.
fn is_drained(update: &NodeUpdate) -> bool {
    let drains =
        |it: &UpdateOrder| matches!(it.disrupts, UpdateDisrupts::Drain | UpdateDisrupts::Reboot);
    update.spec.order.as_ref().is_some_and(drains)
}

/// The nodes whose Leases are tread's.
fn leased(known: &Known) -> impl Iterator<Item = String> {
    let treads = known.leases.iter().filter(|(_, lease)| holder(lease).is_some_and(is_treads));
    treads.map(|(name, lease)| {
        let of_update = known.updates.keys().find(|node| {
            lease_of(known, node).is_some_and(|it| it.metadata.name == lease.metadata.name)
        });
        let node = || name.strip_prefix("node-").unwrap_or(name).to_owned();
        of_update.cloned().unwrap_or_else(node)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;
    use tread_console::exit::StandardOutput;

    fn named<K: serde::de::DeserializeOwned>(kind: &str, name: &str, rest: Value) -> (String, K) {
        let mut object = json!({"apiVersion": "tread.dev/v1alpha1", "kind": kind,
            "metadata": {"name": name, "generation": 2}});
        if let (Value::Object(object), Value::Object(rest)) = (&mut object, rest) {
            object.extend(rest);
        }
        (name.to_owned(), serde_json::from_value(object).unwrap())
    }

    fn known(seen: i64, stage: &str, phase: &str) -> Known {
        let order = json!({"operation": "1", "config": {"name": "a", "digest": "b"}, "token": 1,
            "disrupts": "Reboot", "stage": stage});
        let status = json!({"operation": "1", "phase": phase});
        let update = json!({"spec": {"pool": "worker", "order": order}, "status": status});
        let rollout = json!({"spec": {"paused": true}, "status": {"observedGeneration": seen}});
        Known {
            updates: BTreeMap::from([named("NodeUpdate", "a", update)]),
            rollouts: BTreeMap::from([named("Rollout", "worker", rollout)]),
            ..Known::default()
        }
    }

    fn how(known: &Known, pool: &str, all: bool) -> Vec<How> {
        let asked = Asked { pools: &[pool.to_owned()], all };
        left(known, &asked).into_iter().map(|it| it.how).collect()
    }

    #[test]
    fn what_is_left_is_no_end_that_went_well_also_if_nobody_reads_it() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut out = StandardOutput(writer);
        let left = |how| vec![Left { what: "a: Begun".to_owned(), how }];
        for (left, expected) in [
            (Vec::new(), Exit::Done),
            (left(How::GoesOn), Exit::TooDisruptive),
            (left(How::Failed), Exit::TooDisruptive),
            (left(How::Unknown), Exit::TooDisruptive),
        ] {
            assert_eq!(said(&mut out, &left, "the time is over").unwrap(), expected, "{left:?}");
        }
        // What is printed is the same to the letter.
        let mut out = Vec::new();
        said(&mut out, &left(How::Failed), "nothing is under way").unwrap();
        let head = "nothing is under way; this is left:\n  a: Begun\n";
        assert_eq!(String::from_utf8(out).unwrap(), format!("{head}{KEEP_THEIR_CORDON}\n"));
    }

    #[test]
    fn what_is_left_goes_on_or_failed_or_is_not_known() {
        assert_eq!(how(&known(2, "Closed", "Done"), "worker", false), []);
        assert_eq!(how(&known(1, "Closed", "Done"), "worker", false), [How::GoesOn], "not seen");
        assert_eq!(how(&known(2, "Go", "Begun"), "worker", false), [How::GoesOn]);
        assert_eq!(how(&known(2, "Go", "Begun"), "infra", false), [], "of another pool");
        // A node that failed keeps its cordon: that is not waited for.
        for stage in ["Go", "Closed"] {
            let mut failed = known(2, stage, "Degraded");
            failed.cordons.insert("a".to_owned(), "1".to_owned());
            assert_eq!(how(&failed, "worker", false), [How::Failed]);
            // Somebody mended it, and uncordoned it.
            failed.cordons.clear();
            assert_eq!(how(&failed, "worker", false), []);
            // That nobody cordoned it says nothing where it was not drained.
            let order = failed.updates.get_mut("a").unwrap().spec.order.as_mut().unwrap();
            order.disrupts = UpdateDisrupts::Softly;
            assert_eq!(how(&failed, "worker", false), [How::Failed]);
        }
        let mut hidden = known(2, "Closed", "Done");
        hidden.unreadable.insert("b".to_owned());
        hidden.unknown.push("leases: forbidden".to_owned());
        assert_eq!(how(&hidden, "worker", false), [How::Unknown, How::Unknown]);
        // One that was about to begin when its pool was paused has a slot before it has an order.
        let mut begins = known(2, "Closed", "Done");
        begins.slots.insert("a".to_owned(), "worker".to_owned());
        assert_eq!(how(&begins, "worker", false), [How::GoesOn]);
        assert_eq!(how(&begins, "infra", false), [], "of another pool");
        begins.slots_unread = Some("the slots cannot be read".to_owned());
        assert_eq!(how(&begins, "worker", false), [How::GoesOn, How::Unknown]);
        let mut keeps = known(2, "Closed", "Degraded");
        keeps.cordons.insert("a".to_owned(), "1".to_owned());
        keeps.slots.insert("a".to_owned(), "worker".to_owned());
        assert_eq!(how(&keeps, "worker", false), [How::Failed]);
        // Of a node without a NodeUpdate it is not known in which pool it is.
        let mut stray = known(2, "Closed", "Done");
        stray.cordons.insert("gone".to_owned(), "1".to_owned());
        assert_eq!(how(&stray, "worker", false), []);
        assert_eq!(how(&stray, "worker", true), [How::GoesOn]);
    }
}
