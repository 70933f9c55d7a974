//! Whether the node is well: the disk is as its config wants it, and what was well before
//! is well again.

use super::going::Going;
use super::node::{Node, OperationError};
use crate::applied::Applied;
use crate::change::{OrderError, wanted};
use crate::drift::{drift, is_of_others, see};
use crate::journal::Direction;
use crate::kubelet;
use crate::systemd::{Active, Problem, What};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tread_model::plan::{Step, VerifiablePlan};

/// What a node is for: where they were well, they have to be well again.
const SERVICES: [&str; 3] = ["crio.service", "containerd.service", "kubelet.service"];
/// What mounts of other machines' disks are a part of: they may come late in a boot.
const REMOTE: &str = "remote-fs.target";
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
        let mut deadline = Instant::now() + self.limit_of_proof();
        // Without a boot each step has proved its own unit already.
        if self.was_booted() {
            if let Err(why) = self.anchors_are_trusted().await {
                return Ok(Err(why));
            }
            if let Err(why) = self.units_are_well(deadline).await {
                return Ok(Err(why));
            }
            // They may have waited for others for longer than that.
            deadline = Instant::now() + self.limit_of_proof();
        }
        let disk = match self.was_booted() && self.standing.was_committed() {
            true => self.disk_becomes_as_wanted(deadline).await?,
            // All of it was held against the config right before the write. What was never committed is as
            // it was, whatever that is.
            false => self.names_are_as_written()?,
        };
        if let Err(why) = disk {
            return Ok(Err(why));
        }
        while self.kept.kubelet && !kubelet::answers().await {
            if Instant::now() >= deadline {
                return Ok(Err(format!("the kubelet does not answer on {}", kubelet::ADDRESS)));
            }
            sleep(AGAIN).await;
        }
        Ok(Ok(()))
    }

    fn limit_of_proof(&self) -> Duration {
        Duration::from_secs(self.kept.terms.proof)
    }

    /// Whether each name that this operation changed is as it left it; otherwise why not.
    fn names_are_as_written(&self) -> Result<Result<(), String>, OperationError> {
        let is_back = self.standing.direction() == Direction::Back;
        let entries = self.standing.record.entries.iter();
        let is_own = |path: &String| !is_of_others(path) && !self.left.contains(path);
        for entry in entries.filter(|it| is_own(&it.path) && !it.is_held()) {
            let wanted = if is_back { &entry.old } else { &entry.new };
            if see(&self.node.tree, &entry.path)? != *wanted {
                return Ok(Err(format!("{}: somebody else changed it", entry.path)));
            }
        }
        Ok(Ok(()))
    }

    /// Whether the whole disk is as the config last applied wants it, once all of it is mounted
    /// that is to be; otherwise why not.
    async fn disk_becomes_as_wanted(
        &self,
        deadline: Instant,
    ) -> Result<Result<(), String>, OperationError> {
        let disk = self.disk_is_as_wanted()?;
        if disk.is_ok() {
            return Ok(disk);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        // If systemd does not answer, what differs counts.
        let _ = self.node.manager.until_it_has_no_job(REMOTE, left).await;
        self.disk_is_as_wanted()
    }

    /// Whether the whole disk is as the config last applied wants it; otherwise why not.
    pub(super) fn disk_is_as_wanted(&self) -> Result<Result<(), String>, OperationError> {
        let node = self.node;
        let Some(applied) = Applied::read(&node.tree).map_err(OrderError::Applied)? else {
            return Ok(Err("nobody knows which config the node has".to_owned()));
        };
        let config = applied.documents.config().map_err(OrderError::Config)?;
        let found = wanted(&config, node.host)
            .and_then(|wanted| Ok(drift(&node.tree, &wanted, &applied.accepted)?));
        let found = match found {
            Ok(mut found) => {
                // That somebody else changed these is known already.
                found.retain(|it| !self.left.contains(&it.path));
                found
            }
            // Whoever cannot look cannot say that all is well.
            Err(error @ (OrderError::Impossible(_) | OrderError::Path(_))) => {
                return Ok(Err(error.to_string()));
            }
            Err(error) => return Err(error.into()),
        };
        Ok(match found.first() {
            Some(first) => {
                let more = tread_model::text::and_more(found.len(), 1);
                Err(format!("{}: {}{more}", first.path, first.differs))
            }
            None => Ok(()),
        })
    }

    /// Whether the units that were well before are well after the boot; otherwise why not.
    /// A systemd that does not answer is no proof.
    async fn units_are_well(&self, deadline: Instant) -> Result<(), String> {
        let manager = self.node.manager;
        let left = || deadline.saturating_duration_since(Instant::now());
        // At boot it may have been too early to tell systemd of names that changed.
        manager.daemon_reload(left()).await.map_err(|problem| problem.to_string())?;
        let limit = left();
        let proven = self.kept.well.iter().map(async |unit| {
            let needed = SERVICES.contains(&unit.as_str());
            match manager.proves_well(unit, limit).await {
                Ok(None) => Ok(()),
                // The new config may have masked, disabled or removed it.
                Ok(Some(_)) if !needed => Ok(()),
                Err(Problem { what: What::Missing, .. }) if !needed => Ok(()),
                Ok(Some(note)) => Err(format!("{unit} was well before, and is not: {note}")),
                Err(problem) => Err(format!("{unit} was well before, and is not: {problem}")),
            }
        });
        futures::future::try_join_all(proven).await.map(drop)
    }
}
