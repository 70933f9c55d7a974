//! The Machines of nodes: which go, and which tread keeps from being replaced.

use super::known::Moment;
use super::scene::Scene;
use super::settings::Settings;
use crate::remediation::mark;
use crate::slots;
use tread_kube::asking::Failed;

/// Takes tread's own mark from the Machines whose node is not disrupted any more.
pub(crate) async fn tidy(
    settings: &Settings,
    moment: &Moment,
    scene: &Scene,
) -> Result<(), Failed> {
    let is_over = |node: &String| !scene.nodes.get(node).is_some_and(|it| it.is_busy());
    let over = moment.machines.iter().filter(|(node, it)| it.is_marked && is_over(node));
    let over: Vec<_> = over.collect();
    if over.is_empty() {
        return Ok(());
    }
    // What the watch says of slots may be older than the mark: that comes after the slot.
    let slots = slots::read(&settings.acts).await?;
    // One that cannot be written keeps none of the others.
    let mut done = Ok(());
    for (node, machine) in over.into_iter().filter(|(node, _)| slots.slots.of(node).is_none()) {
        tracing::debug!(node, "its Machine may be remedied again");
        done = done.and(mark(&settings.acts, &machine.machine, false).await);
    }
    done
}
