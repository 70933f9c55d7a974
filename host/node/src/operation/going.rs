//! An operation that is gone on with, from wherever it was cut short.

use super::node::{ENDED, Ended, Kept, Node, OperationError, Stopped};
use super::reporting::Reporting;
use crate::drift::is_of_others;
use crate::journal::{Direction, Journal, Note, Settled, Standing};
use crate::permits::{Act, Permit};
use crate::progress::{Phase, Progress};
use crate::tree::Tree;
use tokio::time::Instant;
use tread_model::plan::Step;
use tread_model::text::listed;

/// The most boots that an operation asks for: one for its plan or for a step that failed,
/// and one more to go back. Where a new image ships something else than its config sets, one more.
const MOST_BOOTS: usize = 2;

/// What is said of a node that waits for a boot.
const WAITS: &str = "what only a boot brings into effect is staged; no boot is planned, so boot \
                     the node when it suits";

/// An operation that is gone on with.
pub(super) struct Going<'g> {
    pub(super) node: &'g Node<'g>,
    pub(super) journal: &'g Journal,
    pub(super) standing: Standing,
    pub(super) kept: Kept,
    /// This boot.
    pub(super) boot: String,
    pub(super) reporting: Reporting<'g>,
    /// What a mount covers of what was to go.
    pub(super) covered: Option<String>,
    /// The paths of the new config that somebody else changed since they were committed.
    pub(super) left: Vec<String>,
}

/// Whether a boot needs a permit of its own.
#[derive(Clone, Copy)]
enum Asks {
    /// It is permitted already, or nobody can be asked.
    Nobody,
    /// It does. A node that is cut off meanwhile goes back, and if it does so already it boots: nobody
    /// can be asked for that.
    UnlessCutOff,
    /// It does, however long that takes: its slot may be another node's.
    WhateverComes,
}

/// A reason, and what an admin has to see to besides.
pub(super) fn with(because: &str, more: Option<String>) -> String {
    more.map_or_else(|| because.to_owned(), |more| format!("{because}; {more}"))
}

/// Notes that the node is reported as degraded: from then on each boot needs a permit of its own.
/// Where the note cannot be written, as on a full disk, it is reported all the same.
pub(super) fn note_degraded(journal: &Journal, boot: &str) {
    if let Err(error) = journal.note(&Note::Degraded { boot: boot.to_owned() }) {
        tracing::warn!(%error, "that the operation ended as degraded was not noted");
    }
}

/// What is told of an operation that waits for a boot, where the status is another one's, as that of what
/// was fetched meanwhile.
pub(super) fn waits_again(tree: &Tree, waits: &Standing) -> Option<Progress> {
    let Kept { plan, .. } = serde_json::from_value(waits.record.order.clone()).ok()?;
    let known = Progress::of(tree, &waits.record.id, plan.to, &plan.steps).by(plan.digest);
    Some(Progress { phase: Phase::WaitsForBoot, message: WAITS.to_owned(), ..known })
}

impl Going<'_> {
    /// The boots in which one was asked for.
    fn asked(&self) -> Vec<&str> {
        let asked = self.standing.notes.iter().filter_map(|note| match note {
            Note::BootAsked { boot } => Some(boot.as_str()),
            _ => None,
        });
        let mut asked: Vec<&str> = asked.collect();
        asked.dedup();
        asked
    }

    /// Whether the node booted since the operation began: a boot does all that steps do.
    pub(super) fn was_booted(&self) -> bool {
        self.kept.boot != self.boot
    }

    pub(super) async fn forward(mut self: Box<Self>) -> Result<Ended, OperationError> {
        if self.asked().contains(&self.boot.as_str()) {
            return self.boots("").await;
        }
        if let Some(why) = self.keeps_going_down() {
            return Box::pin(self.is_not_well(&why)).await;
        }
        let missing = match self.os_is_missing().await {
            Ok(missing) => missing,
            // That nobody can look does not prove that something is missing.
            Err(why) if self.was_booted() => return self.degraded(&why).await,
            Err(why) => Some(why),
        };
        if let Some(missing) = &missing
            && !self.asked().is_empty()
        {
            // The boot that was asked for came, and did not bring it.
            return self.goes_back(missing, false).await;
        }
        if self.kept.os.is_some() && (missing.is_some() || !self.was_booted()) {
            self.reporting.phase(Phase::Staging, "");
            if let Err(why) = self.stage().await {
                return self.goes_back(&why, false).await;
            }
        }
        let is_planned = self.kept.plan.steps.contains(&Step::Reboot);
        if !self.was_booted() {
            if !self.kept.instead.is_empty() {
                let why = self.kept.instead.clone();
                return self.boots(&why).await;
            }
            self.reporting.phase(Phase::Acting, "");
            match self.act().await? {
                Ok(()) => {}
                Err(Stopped::Failed(why)) => return self.boots(&why).await,
                Err(Stopped::CutOff(why)) => return self.goes_back_cut_off(&why).await,
            }
        }
        let why = match is_planned && (missing.is_some() || !self.was_booted()) {
            true => Some(self.kept.instead.clone()),
            false => self.was_read_too_early().filter(|_| missing.is_none()),
        };
        if let Some(why) = why {
            return self.boots(&why).await;
        }
        self.begins_in_this_boot();
        self.reporting.absorbed();
        self.reporting.phase(Phase::Proving, &self.why_it_booted());
        match self.proof().await? {
            Ok(()) => {
                if let Some(why) = self.cut_off().await {
                    return self.goes_back_cut_off(&why).await;
                }
                if missing.is_some() {
                    return self.waits().await;
                }
                self.is_over(Phase::Done, "")?;
                Ok(Ended::Done)
            }
            // Without a boot that was asked for, a boot is what comes first (law 9).
            Err(why) if !self.was_booted() => self.boots(&why).await,
            Err(why) => Box::pin(self.is_not_well(&why)).await,
        }
    }

    /// Goes back from a node that is not well after its boot.
    async fn is_not_well(self: Box<Self>, why: &str) -> Result<Ended, OperationError> {
        match self.elsewhere(why) {
            // The old config is not there either. Where all names are, they came along into a
            // deployment that somebody staged.
            Some(why) if !matches!(self.disk_is_as_wanted(), Ok(Ok(()))) => {
                self.degraded(&why).await
            }
            _ => self.goes_back(why, false).await,
        }
    }

    /// What to do where somebody else changed names of the new config, as a service may that writes
    /// its own file at each start. An admin has to look at these. The node goes back nevertheless if it
    /// is cut off, and after a boot if it is not well otherwise: nobody may reach it any more.
    pub(super) async fn differs(mut self: Box<Self>) -> Result<Ended, OperationError> {
        let why = format!("somebody else changed {} meanwhile", listed(&self.left, 10));
        if let Some(why) = self.elsewhere(&why) {
            return self.degraded(&why).await;
        }
        if !self.was_booted() {
            return match self.cut_off().await {
                Some(cut_off) => self.goes_back_cut_off(&format!("{why}; {cut_off}")).await,
                None => self.degraded(&why).await,
            };
        }
        if self.was_well_otherwise() {
            return self.degraded(&why).await;
        }
        if self.asked().contains(&self.boot.as_str()) {
            return self.boots(&why).await;
        }
        if let Some(why) = self.was_read_too_early() {
            return self.boots(&why).await;
        }
        match self.is_ill_otherwise(&why).await? {
            Some(ill) => self.goes_back(&format!("{why}; {ill}"), false).await,
            None => self.degraded(&why).await,
        }
    }

    /// Why a node of which this is known is not well besides, if it is not.
    async fn is_ill_otherwise(&mut self, known: &str) -> Result<Option<String>, OperationError> {
        if let Some(why) = self.keeps_going_down() {
            return Ok(Some(why));
        }
        self.begins_in_this_boot();
        self.reporting.absorbed();
        self.reporting.phase(Phase::Proving, known);
        if !self.asked().is_empty()
            && let Ok(Some(missing)) = self.os_is_missing().await
        {
            return Ok(Some(missing));
        }
        Ok(match self.proof().await? {
            Ok(()) => self.cut_off().await,
            Err(why) => Some(why),
        })
    }

    /// Which names had what a new image ships until they were put back in this boot, and what follows;
    /// nothing where none had.
    fn was_read_too_early(&self) -> Option<String> {
        let (boot, why) = self.replaced()?;
        let why = || format!("{why}, and the node boots once more for what read it before");
        (*boot == self.boot).then(why)
    }

    /// In which boot names were put back that a new image ships, and which.
    fn replaced(&self) -> Option<(&String, String)> {
        let boot = self.standing.notes.iter().rev().find_map(|note| match note {
            Note::Replaced { boot, .. } => Some(boot),
            _ => None,
        })?;
        let paths: Vec<&str> = self.standing.replaced_in(boot).into_iter().collect();
        let why = "the new OS image ships something else than the config sets for";
        Some((boot, format!("{why} {}: that is put back", listed(&paths, 10))))
    }

    /// How many boots this operation may ask for.
    fn most_boots(&self) -> usize {
        MOST_BOOTS + usize::from(self.replaced().is_some())
    }

    /// What failed before the boot, and what is waited for now; nothing where all went well.
    fn why_it_booted(&self) -> String {
        let failed = self.standing.notes.iter().rev().find_map(|note| match note {
            Note::Ended { well: false, message, .. } => Some(message),
            _ => None,
        });
        let units = self.kept.well.join(", ");
        let limit = self.kept.terms.proof;
        match failed.filter(|_| self.was_booted()) {
            Some(failed) => format!(
                "{failed}; the node booted for that, and goes back unless these units are well within {limit} s: {units}"
            ),
            None => self.replaced().map(|(_, why)| why).unwrap_or_default(),
        }
    }

    /// Somebody else has to boot the node.
    async fn waits(self: Box<Self>) -> Result<Ended, OperationError> {
        let note = Note::Waits { boot: self.boot.clone() };
        if self.standing.last() != Some(&note) {
            self.journal.note(&note)?;
        }
        self.reporting.phase(Phase::WaitsForBoot, WAITS);
        Ok(Ended::WaitsForBoot)
    }

    /// Takes the operation back: its files, and what is booted next.
    async fn goes_back(
        mut self: Box<Self>,
        why: &str,
        by_units: bool,
    ) -> Result<Ended, OperationError> {
        let settled = self.journal.take_back(why, by_units)?;
        self.covered = settled.as_ref().and_then(Settled::covered);
        self.left = settled.map(|settled| settled.left).unwrap_or_default();
        self.left.retain(|path| !is_of_others(path));
        self.standing.notes.push(Note::Back { because: why.to_owned(), by_units });
        self.back().await
    }

    /// The same, since the node is cut off: as the new config came, by units or by a boot.
    async fn goes_back_cut_off(self: Box<Self>, why: &str) -> Result<Ended, OperationError> {
        let by_units = !self.was_booted();
        self.goes_back(why, by_units).await
    }

    /// Tells the units of the plan what is there again, and proves that the node is well.
    async fn back_by_units(mut self: Box<Self>, because: String) -> Result<Ended, OperationError> {
        self.reporting.phase(Phase::GoingBack, &because);
        // The new ones may have been put into the trust store already, as before a boot.
        if let Err(why) = self.anchors_are_trusted().await {
            return self.boots(&format!("{because}; with the old config: {why}")).await;
        }
        if let Err(why) = self.units_again().await? {
            return self.boots(&format!("{because}; with the old config: {why}")).await;
        }
        match self.proof().await? {
            Ok(()) => self.went_back(because),
            // Nothing read the new contents, so that no boot mends this.
            Err(why) if self.is_unread() => {
                self.degraded(&format!("{because}; with the old config: {why}")).await
            }
            Err(why) => self.boots(&format!("{because}; with the old config: {why}")).await,
        }
    }

    fn went_back(self: Box<Self>, because: String) -> Result<Ended, OperationError> {
        let because = with(&because, self.covered.clone());
        self.is_over(Phase::WentBack, &because)?;
        Ok(Ended::WentBack { because })
    }

    /// Reported first: who finds no operation knows how the last one ended. On a full disk there is
    /// room for that only once what was staged is gone.
    fn is_over(&self, phase: Phase, because: &str) -> Result<(), OperationError> {
        let reported = self.reporting.end(phase, because);
        self.journal.finish()?;
        Ok(reported.or_else(|_| self.reporting.end(phase, because))?)
    }

    pub(super) async fn back(mut self: Box<Self>) -> Result<Ended, OperationError> {
        let decided = self.standing.notes.iter().rev().find_map(|note| match note {
            Note::Back { because, by_units } => Some((because.clone(), *by_units)),
            _ => None,
        });
        let (because, by_units) = decided.unwrap_or_default();
        if let Some(why) = self.keeps_going_down() {
            // There is no other config to go to.
            return self.degraded(&format!("{because}; with the old config: {why}")).await;
        }
        self.begins_in_this_boot();
        let booted_since = self.asked().last().is_some_and(|asked| *asked != self.boot);
        // Files went back after the last boot that was asked for, unless one was asked for
        // since: the note of going back stands before that of the boot.
        let position = |wanted: fn(&Note) -> bool| self.standing.notes.iter().rposition(wanted);
        let back_at = position(|note| matches!(note, Note::Back { .. }));
        let boot_at = position(|note| matches!(note, Note::BootAsked { .. }));
        let has_to_boot = boot_at < back_at || !booted_since;
        if has_to_boot && let Err(error) = self.bring_back().await {
            // A boot would bring the new system with the old files.
            let why = format!("{because}; the old system cannot be booted: {error}");
            return self.degraded(&why).await;
        }
        if by_units && boot_at < back_at {
            return self.back_by_units(because).await;
        }
        if has_to_boot && !self.is_unread() {
            return self.boots(&because).await;
        }
        self.reporting.phase(Phase::Proving, &because);
        let is_not_back = if self.is_unread() { None } else { self.os_is_not_back().await };
        let proven = match is_not_back {
            Some(why) => Err(why),
            None => self.proof().await?,
        };
        match proven {
            Ok(()) => self.went_back(because),
            Err(why) => {
                let why = format!("{because}; with the old config: {why}");
                let why = with(&why, self.covered.clone());
                self.degraded(&why).await
            }
        }
    }

    /// Asks for a boot, if there may be one more.
    async fn boots(self: Box<Self>, because: &str) -> Result<Ended, OperationError> {
        let asked = self.asked();
        let is_asked_for = asked.contains(&self.boot.as_str());
        let most = self.most_boots();
        if !is_asked_for && asked.len() >= most {
            let why = format!("{because}; {most} boots were asked for already");
            return self.degraded(&why).await;
        }
        // The permit for one boot covers the one by which the node goes back: from the cluster
        // nobody could help it. For a boot that was permitted and did not come, a permit is asked
        // for again. Once the operation was reported as degraded, the node may be somebody else's,
        // unless that was right before the boot that was permitted: an admin has brought that about.
        let was_before = |boot: &str| boot != self.boot && asked.contains(&boot);
        let was_reported = self
            .standing
            .notes
            .iter()
            .any(|note| matches!(note, Note::Degraded { boot } if !was_before(boot)));
        let goes_back = self.standing.direction() == Direction::Back;
        let is_permitted = goes_back && asked.iter().any(|boot| *boot != self.boot);
        let asks = match (was_reported, is_permitted) {
            (true, _) => Asks::WhateverComes,
            (false, false) => Asks::UnlessCutOff,
            (false, true) => Asks::Nobody,
        };
        self.trust_anchors_again().await;
        if let Some(why) = self.may_boot(asks, because).await? {
            let why = if because.is_empty() { why } else { format!("{because}; {why}") };
            return Box::pin(self.goes_back_cut_off(&why)).await;
        }
        if !is_asked_for {
            self.journal.note(&Note::BootAsked { boot: self.boot.clone() })?;
        }
        let note = |text: String| self.reporting.message(&text);
        let (manager, how) = (self.node.manager, self.node.patience.reboot);
        let problem = manager.reboot_now(how, note, self.node.kernel).await;
        self.degraded(&problem.to_string()).await
    }

    /// Waits until nobody inhibits a boot any more, or for too long, with a permit that still
    /// holds then: one that ended meanwhile is asked for anew. Why the node has to go back in
    /// place of this boot, if it is cut off while it waits for the permit.
    async fn may_boot(&self, asks: Asks, because: &str) -> Result<Option<String>, OperationError> {
        let deadline = Instant::now() + self.node.patience.reboot.inhibited;
        loop {
            let act = || Act::Boot { because: because.to_owned() };
            let asked = match asks {
                Asks::Nobody => Ok(Permit::FOREVER),
                Asks::UnlessCutOff => self.permit_unless_cut_off(act()).await?,
                Asks::WhateverComes => Ok(self.node.permit(&self.reporting, act()).await?),
            };
            let permit = match asked {
                Ok(permit) => permit,
                Err(_) if self.standing.direction() == Direction::Back => Permit::FOREVER,
                Err(why) => return Ok(Some(why)),
            };
            if !permit.holds() {
                return Err(OperationError::Forbidden(ENDED.to_owned()));
            }
            self.reporting.boots(&self.boot, because);
            let mut note = |text: String| self.reporting.message(&text);
            self.node.manager.wait_for_inhibitors(deadline, &mut note).await;
            if permit.holds() {
                return Ok(None);
            }
        }
    }

    pub(super) async fn degraded(self: Box<Self>, because: &str) -> Result<Ended, OperationError> {
        note_degraded(self.journal, &self.boot);
        // The operation stands: what it began with can still be gone back to.
        self.reporting.phase(Phase::Degraded, because);
        Ok(Ended::Degraded { because: because.to_owned() })
    }
}
