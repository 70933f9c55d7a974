//! What stands is ended before an order is carried out that says so.

use super::error::NodeError;
use super::show;
use crate::change::{Adopt, OrderError, could_have};
use crate::desired::Unlinked;
use crate::host::ThisHost;
use crate::journal::{ByHand, Journal, has_to_go_back};
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
    could_begin(tree, host, given)?;
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
fn could_begin(tree: &Tree, host: &ThisHost, given: &Given) -> Result<(), NodeError> {
    let is_drained = match &given.order {
        Does::Apply { drained, .. } => *drained,
        Does::Adopt { differs, drained, .. } => *drained || *differs != Adopt::Overwrite,
        Does::Fetch { .. } | Does::Resume => true,
    };
    match is_drained {
        true => could_have_it(tree, host, given),
        false => Err(OperationError::Drain.into()),
    }
}

/// The same of a config that this host cannot have. Where names of what stands have yet to go back, the
/// links of units are not decided: they hang on what is there then.
pub(super) fn could_have_it(tree: &Tree, host: &ThisHost, given: &Given) -> Result<(), NodeError> {
    let (config, replaces) = match &given.order {
        Does::Apply { config, accept, .. } => (config, Some(accept.as_slice())),
        Does::Adopt { config, differs, .. } => {
            (config, (*differs == Adopt::Overwrite).then(Default::default))
        }
        Does::Fetch { .. } | Does::Resume => return Ok(()),
    };
    let config = config.config().map_err(OrderError::Config)?;
    match has_to_go_back(tree) {
        Ok(false) => could_have(tree, host, &config, replaces)?,
        _ => Unlinked::of(&config, host).possible().map_err(OrderError::Impossible)?,
    }
    Ok(())
}
