//! The Machines of nodes: which go, and which tread keeps from being replaced.

use super::known::Moment;
use super::scene::Scene;
use super::settings::Settings;
use crate::reading::lease;
use crate::remediation::mark;
use crate::slots;
use tread_kube::asking::Failed;
use tread_kube::node_lease;
use tread_model::protocol::Holder;

/// Takes tread's own mark from the Machines whose node is not disrupted any more.
pub(crate) async fn tidy(
    settings: &Settings,
    moment: &Moment,
    scene: &Scene,
) -> Result<(), Failed> {
    let is_over = |node: &String| {
        !scene.nodes.get(node).is_some_and(|it| it.is_busy()) || scene.is_left_unwell(node)
    };
    let over = moment.machines.iter().filter(|(node, it)| it.is_marked && is_over(node));
    let over: Vec<_> = over.collect();
    if over.is_empty() {
        return Ok(());
    }
    // The slots are read, since the watch may lag: the mark is written after the slot.
    let slots = slots::read(&settings.acts).await?;
    // One that cannot be written keeps none of the others.
    let mut done = Ok(());
    for (node, machine) in over {
        // A node that failed keeps its slot. Whoever tries it again takes its Lease before its
        // Machine is marked.
        if slots.slots.of(node).is_some()
            && !(scene.is_left_unwell(node) && is_free(settings, node).await?)
        {
            continue;
        }
        tracing::debug!(node, "its Machine may be remedied again");
        done = done.and(mark(&settings.acts, &machine.machine, false).await);
    }
    done
}

/// Whether tread does not hold the Lease of a node, or let it end.
async fn is_free(settings: &Settings, node: &str) -> Result<bool, Failed> {
    let acts = &settings.acts;
    let Some(name) = node_lease::name(node) else { return Ok(true) };
    let lease = lease(acts, &acts.leases, &name).await?;
    let now = acts.clock.now();
    Ok(lease.is_none_or(|it| {
        let lease = node_lease::read(&it, &acts.holder);
        lease.holder == Holder::Other || now.is_some_and(|now| lease.left(now).is_zero())
    }))
}
