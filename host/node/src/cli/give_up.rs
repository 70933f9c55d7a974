//! What stands is ended before an order is carried out that says so.

use super::error::NodeError;
use super::show;
use crate::change::{Adopt, OrderError, wanted};
use crate::host::ThisHost;
use crate::journal::{ByHand, Journal};
use crate::operation::OperationError;
use crate::orders::{Does, Given};
use crate::progress::{Phase, Progress};
use crate::tree::Tree;

/// Ends the operation that stands, if the order says so. An admin's order on the node ends any
/// operation, even one that cannot be read; another order ends only the one that it names, and only
/// if that is degraded. Says which one it was. An operation that this order itself began before a
/// crash is not ended.
pub(super) fn give_up(
    tree: &Tree,
    host: &ThisHost,
    given: &Given,
) -> Result<Option<String>, NodeError> {
    let journal = Journal::open_soon(tree)?;
    let standing = journal.standing();
    let stands = match &standing {
        Ok(standing) => standing.as_ref().map(|it| it.record.id.as_str()),
        Err(_) => None,
    };
    if stands == Some(&given.id) {
        return Ok(None);
    }
    let is_meant = match (&given.order, &given.gives_up) {
        (Does::Adopt { give_up: true, .. }, _) => standing.is_err() || stands.is_some(),
        (_, Some(named)) => stands == Some(named) && is_degraded(tree, named)?,
        _ => false,
    };
    if !is_meant {
        return Ok(None);
    }
    could_begin(host, given)?;
    let which = stands.map_or_else(|| "an operation that cannot be read".to_owned(), str::to_owned);
    show::line(&format!("{which} is given up for {}", given.id))?;
    for ByHand { path, why, .. } in journal.give_up()? {
        show::line(&format!("by hand: {path}: {why}"))?;
    }
    Ok(Some(which))
}

fn is_degraded(tree: &Tree, operation: &str) -> Result<bool, NodeError> {
    let known = Progress::read(tree)?.filter(|known| known.operation == operation);
    Ok(known.is_some_and(|known| known.phase == Phase::Degraded))
}

/// What can be refused whatever is on the disk is refused before anything is ended.
fn could_begin(host: &ThisHost, given: &Given) -> Result<(), NodeError> {
    let (config, drains, drained) = match &given.order {
        Does::Apply { config, drained, .. } => (config, true, *drained),
        Does::Adopt { config, differs, drained, .. } => {
            (config, *differs == Adopt::Overwrite, *drained)
        }
        Does::Fetch { .. } | Does::Resume => return Ok(()),
    };
    if drains && !drained {
        return Err(OperationError::Drain.into());
    }
    let config = config.config().map_err(OrderError::Config).map_err(OperationError::Order)?;
    wanted(&config, host).map_err(OperationError::Order)?;
    Ok(())
}
