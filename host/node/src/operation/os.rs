//! The operating system in an operation: what is due is fetched before the first write,
//! staged once the files are committed, and proved after the boot that brings it.
//!
//! The commit of the journal decides for both. A crash or a power cut before it leaves
//! nothing staged; one after it is found again, since what is staged is held against what
//! is due each time somebody goes on.

use super::going::Going;
use super::node::{Kept, Node, OperationError};
use super::reporting::Reporting;
use crate::applied::Applied;
use crate::change::{Adopt, Adoption, Checked, Order, OrderError};
use crate::drift::{Drift, Kind};
use crate::journal::{Journal, JournalError, Note, Standing};
use crate::os::{
    ARGUMENTS, Deployment, Deployments, Due, IDS, IMAGE, Os, OsError, Tool, Way, Wish, arguments,
};
use crate::progress::{Phase, Progress};
use crate::tree::Found;
use std::time::Duration;
use tokio::time::sleep;
use tread_model::digest::Digest;
use tread_model::plan::Step;

/// How often a tool is asked again that does not answer as it should.
const ATTEMPTS: usize = 3;
/// What is said of what nobody knows of.
const STAGED: &str = "another deployment is staged for the next boot";
/// How long to wait before that.
const AGAIN: Duration = Duration::from_secs(2);

impl Node<'_> {
    /// What an operation waits for that only a boot brings into effect, in this boot.
    pub(super) fn waits_for(&self, standing: &Standing) -> Result<Option<Due>, OperationError> {
        let this = self.boot()?;
        let waits = |note: &Note| matches!(note, Note::Waits { boot } if *boot == this);
        if !standing.last().is_some_and(waits) {
            return Ok(None);
        }
        let kept = serde_json::from_value::<Kept>(standing.record.order.clone());
        Ok(kept.ok().and_then(|kept| kept.os))
    }

    /// The same of the operation that stands, if one does. Any other one has to be settled first.
    pub(super) fn waiting(&self, journal: &Journal) -> Result<Option<Due>, OperationError> {
        let Some(standing) = journal.standing()? else { return Ok(None) };
        match self.waits_for(&standing)? {
            None => Err(JournalError::Unsettled.into()),
            waits => Ok(waits),
        }
    }

    pub(super) fn os<'o>(&'o self, operation: &'o str) -> Os<'o> {
        let (tree, manager, limits) = (&self.tree, self.manager, self.patience.os);
        Os { tree, manager, limits, operation }
    }

    /// Fetches what a config needs that the node does not have yet, and changes nothing: for
    /// whoever drains the node after that.
    pub async fn fetch(&self, id: &str, to: Digest, wish: &Wish) -> Result<(), OperationError> {
        let journal = Journal::open_soon(&self.tree)?;
        let waits = self.waiting(&journal)?.is_some();
        let mut message = "this config names no OS image".to_owned();
        if !wish.image.is_empty() {
            let os = self.os(id);
            let tool = os.tool_for(&[IMAGE], wish, wish)?;
            if !waits {
                self.take_back_what_was_fetched(&os, tool, wish).await?;
            }
            message = match os.fetch(tool, wish).await? {
                true => format!("the OS image {} is on the node now", wish.image),
                false => format!("the OS image {} was on the node already", wish.image),
            };
        }
        Reporting::new(self, Progress::new(id, to, &[])).phase(Phase::Fetched, &message);
        Ok(())
    }

    /// Has forgotten what is staged of this config's image: whoever fetched it before was killed on
    /// the way.
    async fn take_back_what_was_fetched(
        &self,
        os: &Os<'_>,
        tool: Tool,
        wish: &Wish,
    ) -> Result<(), OperationError> {
        if os.is_staged()? && os.look(tool).await?.at_next_boot().has_image(&wish.image) {
            os.unstage(tool).await?;
        }
        Ok(())
    }

    /// What has to become of the operating system so that a node has the config that it is
    /// said to have: what differs is an error, stays, or is due. What earlier configs wanted and
    /// this one does not goes, with what `waits` of it for a boot.
    pub(super) async fn os_adopted(
        &self,
        adoption: &Adoption<'_>,
        (what, drained): (Adopt, bool),
        waits: Option<Due>,
    ) -> Result<Option<Due>, OperationError> {
        let Adoption { wish, had, .. } = adoption;
        let os = self.os(&adoption.ready.record.id);
        let is_waiting = waits.is_some();
        let earlier = waits.map_or_else(|| had.iter().cloned().collect(), Due::over);
        if what == Adopt::Overwrite {
            let wants = !wish.is_none() || !earlier.iter().all(Wish::is_none);
            self.boots_no_other(&os, wants || adoption.plan.is_some(), |_| false).await?;
        }
        // What is kept was accepted before this.
        if what == Adopt::Keep || (wish.is_none() && earlier.iter().all(Wish::is_none)) {
            return Ok(None);
        }
        let mut found = drift_of_os(&os, wish).await?;
        if what == Adopt::Ask {
            return match found.is_empty() {
                true => Ok(None),
                false => Err(OrderError::Drifted(found).into()),
            };
        }
        if found.is_empty()
            && let Some(tool) = os.tool()?
        {
            let due = self.due_to_have(&os, tool, (earlier.clone(), wish)).await?;
            found.extend(os.is_booted(tool, &due).await?.map(|left| of_its_own(&left)));
            if os.is_staged()? {
                found.push(drift(IMAGE, STAGED.to_owned()));
            }
        }
        if found.is_empty() {
            return Ok(None);
        }
        if !drained {
            return Err(OperationError::Drain);
        }
        let ids: Vec<&str> = found.iter().map(|drift| drift.path.as_str()).collect();
        let tool = os.tool_for(&ids, wish, wish)?;
        // Without a permit, what waits for a boot stands as it is.
        if !is_waiting {
            os.unstage(tool).await?;
        }
        os.fetch(tool, wish).await?;
        Ok(Some(self.due_to_have(&os, tool, (earlier, wish)).await?))
    }

    /// What is due so that a node has what a config wants, and nothing of the earlier ones.
    async fn due_to_have(
        &self,
        os: &Os<'_>,
        tool: Tool,
        (earlier, wish): (Vec<Wish>, &Wish),
    ) -> Result<Due, OperationError> {
        let (there, arguments) = (os.look(tool).await?.booted, os.booted_arguments()?);
        let mut passed = earlier.into_iter();
        let mut from = passed.next().unwrap_or_default();
        let mut left = arguments.clone();
        let mut is_there = |argument: &String| {
            let at = left.iter().position(|it| it == argument);
            at.map(|at| left.swap_remove(at)).is_some()
        };
        from.arguments.retain(|argument| is_there(argument));
        // What the node has of the config besides counts as put there by the config.
        let mut wanted = wish.arguments.clone();
        for argument in &from.arguments {
            let at = wanted.iter().position(|it| it == argument);
            at.map(|at| wanted.remove(at));
        }
        from.arguments.extend(wanted.into_iter().filter(|argument| is_there(argument)));
        from.image = there.image;
        let (to, passed, deployment) = (wish.clone(), passed.collect(), there.id);
        Ok(Due { to, from, passed, deployment, arguments })
    }

    /// What of the operating system is due with an order. It is possible here, nobody
    /// changed what is there, and all of it is fetched.
    pub(super) async fn os_due(
        &self,
        order: &Order,
        change: &Checked<'_>,
        waits: Option<Due>,
    ) -> Result<Option<Due>, OperationError> {
        let (from, to) = (&change.from, &change.to);
        let os = self.os(&order.id);
        let is_accepted = |id: &str| change.accepted.contains_key(id);
        let ids: Vec<&str> = IDS.into_iter().filter(|id| change.has(id)).collect();
        let waits = match waits {
            None if !from.is_none() && os.is_staged()? => self.is_ours(&os, from).await?,
            waits => waits,
        };
        let boots = !ids.is_empty() || order.plan.steps.contains(&Step::Reboot);
        // What an admin accepted before is another image, and not one that is queued since.
        let lets_begin = |id: &str| order.accept.iter().any(|it| it == id);
        self.boots_no_other(&os, boots, lets_begin).await?;
        if waits.is_none() {
            // It has no way to fetch alone, and what it staged for that is nobody else's.
            if ids.contains(&IMAGE) && os.tool()? == Some(Tool::Bootc) {
                self.take_back_what_was_fetched(&os, Tool::Bootc, to).await?;
            }
            self.has_not_drifted(&os, from, !ids.is_empty(), &is_accepted)?;
        }
        if ids.is_empty() && waits.is_none() {
            return Ok(None);
        }
        let tool = os.tool_for(&ids, from, to)?;
        let there = os.look(tool).await?;
        if waits.is_none() && !from.image.is_empty() && !there.booted.has_image(&from.image) {
            let differs = format!("it is {}, and not {}", there.booted.name(), from.image);
            drifted(IMAGE, differs, &is_accepted)?;
        }
        os.fetch(tool, to).await?;
        Ok(Some(match waits {
            Some(Due { to: passed, from, passed: mut all, deployment, arguments }) => {
                all.push(passed);
                Due { to: to.clone(), from, passed: all, deployment, arguments }
            }
            None => {
                let mut from = from.clone();
                if from.image.is_empty() && !to.image.is_empty() {
                    // What it goes back to has to have a name.
                    from.image.clone_from(&there.booted.image);
                }
                let arguments = os.booted_arguments()?;
                let (deployment, to) = (there.booted.id, to.clone());
                Due { to, from, passed: Vec::new(), deployment, arguments }
            }
        }))
    }

    /// What is staged may come from this config itself: if an operation that waited for a boot
    /// ended before the next one could take it over.
    async fn is_ours(&self, os: &Os<'_>, wish: &Wish) -> Result<Option<Due>, OperationError> {
        let Some(tool) = os.tool()? else { return Ok(None) };
        let (there, booted) = (os.look(tool).await?, os.booted_arguments()?);
        let has_arguments = arguments::is_in_order(&wish.arguments, &booted);
        let from = Wish { image: there.booted.image.clone(), ..Wish::default() };
        let (to, deployment) = (wish.clone(), there.booted.id.clone());
        let due = Due { to, from, passed: Vec::new(), deployment, arguments: booted };
        // Where all is booted, nothing of it can be staged.
        let is_booted = has_arguments && due.missing(&there.booted).is_none();
        Ok((!is_booted && os.would_bring(tool, &due).await?).then_some(due))
    }

    /// Whether the next boot brings what is booted, or what is staged: the files of an order do not
    /// come along into any other deployment, which has an `/etc` of its own. Where the order does
    /// not boot, nobody has to know it.
    async fn boots_no_other(
        &self,
        os: &Os<'_>,
        boots: bool,
        is_accepted: impl Fn(&str) -> bool,
    ) -> Result<(), OperationError> {
        let Some(tool) = os.tool()? else { return Ok(()) };
        match os.look(tool).await {
            Ok(there) => match there.queued() {
                Some(other) => drifted(IMAGE, queued(tool, &there, other), &is_accepted),
                None => Ok(()),
            },
            Err(error) if boots => Err(error.into()),
            Err(error) => {
                tracing::warn!(%error, "nobody knows what the next boot brings");
                Ok(())
            }
        }
    }

    /// Whether the arguments are those of the config last applied, and nobody staged
    /// anything else for the next boot.
    fn has_not_drifted(
        &self,
        os: &Os<'_>,
        from: &Wish,
        changes: bool,
        is_accepted: &impl Fn(&str) -> bool,
    ) -> Result<(), OperationError> {
        if let Some(differs) = wrong_arguments(os, from)? {
            drifted(ARGUMENTS, differs, is_accepted)?;
        }
        if (changes || !from.is_none()) && os.is_staged()? {
            let differs = "somebody staged another deployment for the next boot; boot into it, or \
                           have it forgotten: rpm-ostree cleanup --pending, or ostree admin \
                           undeploy 0";
            drifted(IMAGE, differs.to_owned(), is_accepted)?;
        }
        Ok(())
    }
}

/// What of the operating system is not as a config wants it: what is booted, and what is
/// staged.
pub async fn drift_of_os(os: &Os<'_>, wish: &Wish) -> Result<Vec<Drift>, OperationError> {
    let mut found = Vec::new();
    if let Some(differs) = wrong_arguments(os, wish)? {
        found.push(drift(ARGUMENTS, differs));
    }
    if wish.is_none() {
        return Ok(found);
    }
    let of_a_tool = Wish { arguments: Vec::new(), ..wish.clone() };
    let tool = os.tool()?;
    if !of_a_tool.is_none() && tool.is_none() {
        let differs = "this host is run by neither rpm-ostree nor bootc, so nobody knows it";
        found.push(drift(IMAGE, differs.to_owned()));
    }
    if let Some(tool) = tool {
        let there = os.look(tool).await?;
        let due = Due {
            to: wish.clone(),
            from: wish.clone(),
            passed: Vec::new(),
            deployment: String::new(),
            arguments: Vec::new(),
        };
        if !of_a_tool.is_none() {
            found.extend(due.missing(&there.booted).map(|missing| of_its_own(&missing)));
        }
        found.extend(there.queued().map(|other| drift(IMAGE, queued(tool, &there, other))));
    }
    if os.is_staged()? {
        found.push(drift(IMAGE, STAGED.to_owned()));
    }
    Ok(found)
}

/// What is said where another deployment boots next.
fn queued(tool: Tool, there: &Deployments, other: &Deployment) -> String {
    let again = match there.way_to(&there.booted.id) {
        // Where there are others besides, a rollback would bring one of them.
        Some(Way::Default(place)) => format!("ostree admin set-default {place}"),
        _ => format!("{}, or ostree admin set-default", rollback(tool)),
    };
    format!(
        "the next boot brings {}, which is not booted and has an /etc of its own; boot into it, or have what is \
         booted come next again: {again}",
        other.name()
    )
}

/// What the tool's way back is called.
fn rollback(tool: Tool) -> &'static str {
    match tool {
        Tool::RpmOstree => "rpm-ostree rollback",
        Tool::Bootc => "bootc rollback",
    }
}

fn wrong_arguments(os: &Os<'_>, wish: &Wish) -> Result<Option<String>, OperationError> {
    if wish.arguments.is_empty() || arguments::is_in_order(&wish.arguments, &os.booted_arguments()?)
    {
        return Ok(None);
    }
    Ok(Some("this node was not booted with all of them, in their order".to_owned()))
}

/// What is missing, as a drift: it begins with the id of what it is a part of.
fn of_its_own(missing: &str) -> Drift {
    let (id, differs) = missing.split_once(": ").unwrap_or((IMAGE, missing));
    drift(id, differs.to_owned())
}

fn drift(id: &str, differs: String) -> Drift {
    let kinds = vec![Kind::Contents];
    Drift { path: id.to_owned(), of: id.to_owned(), there: Found::Other, kinds, differs }
}

fn drifted(
    id: &str,
    differs: String,
    is_accepted: &impl Fn(&str) -> bool,
) -> Result<(), OperationError> {
    match is_accepted(id) {
        true => Ok(()),
        false => Err(OrderError::Drifted(vec![drift(id, differs)]).into()),
    }
}

impl Going<'_> {
    /// Why the node is in another deployment than the one in whose `/etc` this operation wrote,
    /// where it has another image than its config wants. Where nobody can look, that says nothing.
    pub(super) async fn other_image(&self) -> Option<String> {
        self.elsewhere("")?;
        let applied = Applied::read(&self.node.tree).ok().flatten()?;
        let wish = Wish::of(&applied.documents.config().ok()?);
        if wish.image.is_empty() || applied.accepted.contains_key(IMAGE) {
            return None;
        }
        let os = self.node.os(&self.standing.record.id);
        let looked = self.asked_again(async || match os.tool()? {
            Some(tool) => {
                let booted = os.look(tool).await?.booted;
                let is_it = booted.has_image(&wish.image);
                Ok((!is_it).then(|| format!("it is {}, and not {}", booted.name(), wish.image)))
            }
            None => Ok(None),
        });
        self.elsewhere(&format!("{IMAGE}: {}", looked.await.ok().flatten()?))
    }

    /// As a reason is told on a node that booted into another deployment than the one in whose
    /// `/etc` this operation wrote, though nothing of it asked for another one; nothing elsewhere.
    pub(super) fn elsewhere(&self, why: &str) -> Option<String> {
        let tree = &self.node.tree;
        let is_other = self.was_booted() && self.standing.is_in_another_etc(tree);
        // Until it is committed it asks for none.
        let asks_for_another = self.kept.os.is_some() && self.standing.was_committed();
        if asks_for_another || !is_other {
            return None;
        }
        let tool = self.node.os("").tool().ok()??;
        let back = rollback(tool);
        let status = match tool {
            Tool::RpmOstree => "rpm-ostree status",
            Tool::Bootc => "bootc status",
        };
        Some(format!(
            "the node booted into another deployment than the one in whose /etc this operation wrote: {why}; boot into \
             that one again (at once where it comes next by {status}, else after {back} or ostree admin set-default), \
             then: tread node resume"
        ))
    }

    /// What is due, with the tool for it; nothing if nothing is.
    fn due(&self) -> Result<Option<(Os<'_>, Tool, &Due)>, OsError> {
        let Some(due) = &self.kept.os else { return Ok(None) };
        let os = self.node.os(&self.standing.record.id);
        let tool = os.tool()?;
        let tool = tool.ok_or_else(|| OsError::NoTool(IMAGE.to_owned()))?;
        Ok(Some((os, tool, due)))
    }

    /// What of the operating system is due and not booted; nothing if all of it is. It is an error
    /// if nobody can look.
    pub(super) async fn os_is_missing(&self) -> Result<Option<String>, String> {
        self.asked_again(async || match self.due()? {
            Some((os, tool, due)) => os.is_booted(tool, due).await,
            None => Ok(None),
        })
        .await
    }

    /// The same for what was there before, once the operation went back.
    pub(super) async fn os_is_not_back(&self) -> Option<String> {
        if !self.may_have_staged() {
            return None;
        }
        let back = self.asked_again(async || match self.due()? {
            Some((os, tool, due)) => os.is_back(tool, due).await,
            None => Ok(None),
        });
        back.await.unwrap_or_else(Some)
    }

    async fn asked_again(
        &self,
        ask: impl AsyncFn() -> Result<Option<String>, OsError>,
    ) -> Result<Option<String>, String> {
        let mut why = String::new();
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                sleep(AGAIN).await;
            }
            match ask().await {
                Ok(missing) => return Ok(missing),
                Err(error) => why = error.to_string(),
            }
        }
        Err(why)
    }

    /// Lets the next boot bring what is due; otherwise why not, and then nothing of it is
    /// staged.
    pub(super) async fn stage(&self) -> Result<(), String> {
        let in_words = |error: OsError| error.to_string();
        let Some((os, tool, due)) = self.due().map_err(in_words)? else { return Ok(()) };
        let staged = os.stage(tool, due).await;
        if staged.is_err() {
            // What fails here is seen by whoever brings it back.
            let _ = os.unstage(tool).await;
        }
        staged.map_err(in_words)
    }

    /// Lets the next boot bring what was there before; otherwise why not.
    pub(super) async fn bring_back(&self) -> Result<(), String> {
        let in_words = |error: OsError| error.to_string();
        let Some((os, tool, due)) = self.due().map_err(in_words)? else { return Ok(()) };
        if !self.may_have_staged() {
            return Ok(());
        }
        if self.is_unread() && os.is_staged().is_ok_and(|staged| !staged) {
            return Ok(());
        }
        os.bring_back(tool, due).await.map_err(in_words)
    }

    /// Whether what is booted or staged may be there by this operation: until it is committed it is not, and
    /// may be what another one waited for.
    fn may_have_staged(&self) -> bool {
        self.standing.was_committed()
    }

    /// Whether nothing has read what was written: no unit was told, and no boot was asked
    /// for or came.
    pub(super) fn is_unread(&self) -> bool {
        let may_be_read = |note: &Note| matches!(note, Note::Begun { .. } | Note::BootAsked { .. });
        !self.was_booted() && !self.standing.notes.iter().any(may_be_read)
    }
}
