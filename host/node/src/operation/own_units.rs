//! tread's own units are on the disk, whole, before anything that they settle at boot: also on
//! a node that tread never managed, or from which somebody removed them.

use super::node::{Ended, Node, OperationError};
use crate::change::{Adopt, adopt_keeping};
use crate::documents::Documents;
use crate::drift::Drift;
use crate::journal::Journal;
use crate::prepare::{Target, prepare};
use tread_model::plan::VerifiablePlan;

/// What the operation is called that writes them: nothing follows from it.
const ID: &str = "own-units";

impl Node<'_> {
    /// Begins with a node as [`Node::adopt`] does, once those of these units that are missing are
    /// there. With `boots` the node has to boot even if nothing differs.
    pub async fn adopt_with(
        &self,
        order: (&str, Documents, Adopt),
        others: &[Target<'static>],
        of_os: &[Drift],
        (drained, boots): (bool, bool),
    ) -> Result<Ended, OperationError> {
        let adoption = || {
            let (tree, order, others) = (&self.tree, order.clone(), others.to_vec());
            let mut adoption = adopt_keeping(tree, self.host, self.label, order, others, of_os)?;
            let config = adoption.config;
            if boots && adoption.plan.is_none() {
                adoption.plan = Some(VerifiablePlan::always_allowed(config, config));
            }
            Ok::<_, OperationError>(adoption)
        };
        let journal = Journal::open_soon(&self.tree)?;
        self.settle_own_units(&journal)?;
        let mut adopts = adoption()?;
        let may_boot = adopts.plan.is_some() || (adopts.is_booted && !adopts.wish.is_none());
        if drained && may_boot && self.own_units_first(&journal, others)? {
            adopts = adoption()?;
        }
        drop(journal);
        self.adopt(adopts, drained).await
    }

    /// Whoever wrote them may have been killed: nothing else follows from that.
    pub(super) fn settle_own_units(&self, journal: &Journal) -> Result<(), OperationError> {
        if journal.standing()?.is_some_and(|standing| standing.record.id == ID) {
            journal.settle()?;
        }
        Ok(())
    }

    /// Writes those that are missing, by an operation of their own: if another operation is gone
    /// back from at boot, the unit that does so must not be removed with it. Whether any was
    /// missing.
    pub(super) fn own_units_first(
        &self,
        journal: &Journal,
        others: &[Target<'static>],
    ) -> Result<bool, OperationError> {
        if journal.standing()?.is_some() {
            return Ok(false);
        }
        let ready = prepare(&self.tree, ID, others.to_vec(), self.label)?;
        if ready.record.entries.is_empty() {
            return Ok(false);
        }
        journal.write(&ready.record, &ready.new)?;
        journal.finish()?;
        Ok(true)
    }
}
