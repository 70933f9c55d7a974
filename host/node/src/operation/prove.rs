//! Whether the node is well: the disk is as its config wants it, and what was well before
//! is well again.

use super::{Going, Node, OperationError};
use crate::applied::Applied;
use crate::change::{OrderError, wanted};
use crate::drift::drift;
use crate::kubelet;
use crate::systemd::{Active, Load, Manager, Problem};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};
use tread_model::plan::{Step, VerifiablePlan};

/// What a node is for: where they were well, they have to be well again.
const SERVICES: [&str; 3] = ["crio.service", "containerd.service", "kubelet.service"];
/// How long to wait before the kubelet is asked again.
const AGAIN: Duration = Duration::from_secs(2);

impl Node<'_> {
    /// The units that are well now, and have to be well afterwards.
    pub(super) async fn well_units(
        &self,
        plan: &VerifiablePlan,
    ) -> Result<Vec<String>, OperationError> {
        let mut well = Vec::new();
        let units = plan.steps.iter().filter_map(Step::unit);
        for unit in SERVICES.into_iter().chain(units) {
            let facts = self.manager.facts(unit).await?;
            if facts.active == Active::Active && !well.iter().any(|it| it == unit) {
                well.push(unit.to_owned());
            }
        }
        Ok(well)
    }
}

impl Going<'_> {
    /// Whether the node is well; otherwise why not.
    pub(super) async fn proof(&self) -> Result<Result<(), String>, OperationError> {
        let node = self.node;
        let deadline = Instant::now() + node.patience.proof;
        let Some(applied) = Applied::read(&node.tree).map_err(OrderError::Applied)? else {
            return Ok(Err("nobody knows which config the node has".to_owned()));
        };
        let config = applied.documents.config().map_err(OrderError::Config)?;
        let found = wanted(&config, node.host)
            .and_then(|wanted| Ok(drift(&node.tree, &wanted, &applied.accepted)?));
        let found = match found {
            Ok(found) => found,
            // Whoever cannot look cannot say that all is well.
            Err(error @ (OrderError::Impossible(_) | OrderError::Path(_))) => {
                return Ok(Err(error.to_string()));
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(first) = found.first() {
            let more = tread_model::text::and_more(found.len(), 1);
            return Ok(Err(format!("{}: {}{more}", first.path, first.differs)));
        }
        for unit in &self.kept.well {
            if let Some(why) = becomes_well(node.manager, unit, deadline).await? {
                return Ok(Err(format!("{unit} was well before, and is not: {why}")));
            }
        }
        while self.kept.kubelet && !kubelet::answers().await {
            if Instant::now() >= deadline {
                return Ok(Err(format!("the kubelet does not answer on {}", kubelet::ADDRESS)));
            }
            sleep(AGAIN).await;
        }
        Ok(Ok(()))
    }
}

/// Waits until a unit is well, as a boot starts them one after another; why it is not, if
/// it failed, or if the node cannot do without it and it did not come back in time. The
/// new config may have masked, removed or disabled another one.
async fn becomes_well(
    manager: &Manager,
    unit: &str,
    deadline: Instant,
) -> Result<Option<String>, Problem> {
    let mut changes = manager.watch(unit).await?;
    loop {
        let facts = manager.facts(unit).await?;
        match facts.active {
            _ if matches!(facts.load, Load::Masked | Load::NotFound) => return Ok(None),
            Active::Active => return Ok(None),
            Active::Inactive if !SERVICES.contains(&unit) && facts.job.is_none() => {
                return Ok(None);
            }
            Active::Failed => return Ok(Some(format!("it failed ({})", facts.result))),
            _ => {}
        }
        match timeout_at(deadline, changes.next()).await {
            Ok(true) => {}
            Ok(false) => changes = manager.watch(unit).await?,
            Err(_) => return Ok(Some(format!("it is still {}", facts.sub))),
        }
    }
}
