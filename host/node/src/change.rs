//! From the config last applied to the one at hand: what the journal is given, and
//! everything that forbids it.

mod gone;
mod in_the_way;
mod kept;

pub use in_the_way::InTheWay;

use crate::applied::{Applied, AppliedError};
use crate::booted::{OwnClaim, besides, booted};
use crate::desired::{Desired, Host, Impossible, Unlinked, desired};
use crate::documents::Documents;
use crate::drift::{Accepted, Drift, Kind, drift, is_of_others, see};
use crate::journal::{JournalError, STATE};
use crate::left_open::{self, Open};
use crate::os::{IDS, Wish};
use crate::prepare::{Label, Pinned, Ready, Target, Wanted, prepare};
use crate::shipped::is_as_shipped;
use crate::tree::{Found, PathError, Tree};
use kept::Kept;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use tread_model::config::NodeConfig;
use tread_model::diff::{self, Comparison};
use tread_model::digest::Digest;
use tread_model::joining::Booted;
use tread_model::plan::{PlanFault, VerifiablePlan};
use tread_model::problem::Problems;
use tread_model::refuse::Refusal;

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Order {
    /// What it is called, once and for all.
    pub id: String,
    /// The config that the node is to get.
    pub documents: Documents,
    /// The plan that leads to it.
    pub plan: VerifiablePlan,
    /// The paths whose difference from the config last applied an admin accepts.
    pub accept: Vec<String>,
    /// Names that have to be there besides: tread's own units.
    pub others: Vec<Target<'static>>,
}

/// Why an order is not carried out: nothing was touched.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// tread never managed this node.
    #[error(
        "tread does not know which config this node has; say so first: tread node adopt --config CONFIG (with --root, if it is of another tree)"
    )]
    Unknown,
    /// What was applied last cannot be read.
    #[error(transparent)]
    Applied(#[from] AppliedError),
    /// A config cannot be read.
    #[error("{0}")]
    Config(#[from] Problems),
    /// The plan is not for this.
    #[error(transparent)]
    Plan(#[from] PlanFault),
    /// A running node cannot take it.
    #[error("no running node can take this: {}", refused(.0))]
    Refused(Vec<Refusal>),
    /// The host cannot have it.
    #[error("this node cannot have it: {}", listed(.0))]
    Impossible(Vec<Impossible>),
    /// The disk is not as the config last applied wants it.
    #[error("somebody changed what the config last applied had written; restore it, or let it stay: tread node adopt --config CONFIG --keep, with that config (an order by tread node apply may accept it, by --accept-drift FILE). What differs: {}", drifted(.0))]
    Drifted(Vec<Drift>),
    /// The disk is not as the config wants it that the node is said to have.
    #[error("the node does not have this config; let what differs stay: tread node adopt --config CONFIG --keep, or take the config's by a boot: tread node adopt --config CONFIG --overwrite. What differs: {}", drifted(.0))]
    Differs(Vec<Drift>),
    /// No order can have it.
    #[error(transparent)]
    InTheWay(#[from] InTheWay),
    /// A path leads nowhere.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Something is in the way.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

fn listed<T: fmt::Display>(all: &[T]) -> String {
    let texts: Vec<String> = all.iter().map(T::to_string).collect();
    texts.join("; ")
}

fn refused(all: &[Refusal]) -> String {
    let texts: Vec<String> = all.iter().map(|it| format!("{}: {}", it.id, it.reason)).collect();
    texts.join("; ")
}

fn drifted(all: &[Drift]) -> String {
    let texts: Vec<String> =
        all.iter().map(|drift| format!("{} ({})", drift.path, drift.differs)).collect();
    tread_model::text::listed(&texts, 20)
}

/// An order that may be carried out, with all that has to be written.
#[derive(Debug)]
pub struct Checked<'c> {
    /// What the journal is given.
    pub ready: Ready<'c>,
    /// The ids of all that differs between the configs.
    pub differs: Vec<String>,
    /// What the config last applied wants of the operating system.
    pub from: Wish,
    /// What the one at hand wants of it.
    pub to: Wish,
    /// The differences that an admin accepted.
    pub accepted: Accepted,
    /// The names that the config sets to what the booted image ships.
    pub pinned: Pinned,
}

impl Checked<'_> {
    /// Whether something differs.
    pub fn has(&self, id: &str) -> bool {
        self.differs.iter().any(|it| it == id)
    }
}

/// Checks an order against the config last applied and against the disk, and says what
/// has to be written. It writes nothing.
pub fn change(
    tree: &Tree,
    host: &dyn Host,
    label: &Label<'_>,
    order: &Order,
) -> Result<Checked<'static>, OrderError> {
    change_to(tree, host, label, (order, &order.documents.config()?))
}

/// As [`change`], where the config of the order is read already.
pub fn change_to(
    tree: &Tree,
    host: &dyn Host,
    label: &Label<'_>,
    (order, new): (&Order, &NodeConfig<'_>),
) -> Result<Checked<'static>, OrderError> {
    let mut applied = Applied::read(tree)?.ok_or(OrderError::Unknown)?;
    let old = applied.documents.config()?;
    let Comparison { changes, refusals, settled, from, to, .. } = diff::compare(&old, new)?;
    if !refusals.is_empty() {
        return Err(OrderError::Refused(refusals));
    }
    let differs: Vec<String> =
        changes.into_iter().map(|it| it.id).chain(settled.into_iter().map(|it| it.id)).collect();
    order.plan.check((from, to), differs.iter().map(String::as_str))?;
    let (before, after) = (wanted(&old, host)?, Unlinked::of(new, host));
    // A path that an admin accepts only for this order is restored all the same.
    let stays = |path: &str| {
        applied.accepted.contains_key(path) && !order.accept.iter().any(|it| it == path)
    };
    let open = left_open::open(&old, new, &applied.originals);
    let gone = gone::gone(tree, &applied.originals, (&before, &after, &open), stays)?;
    let after = after.linked(host, &gone).map_err(OrderError::Impossible)?;
    in_the_way::are_of_a_config(&order.accept, (&before, &after))?;
    for path in &order.accept {
        let there = if IDS.contains(&path.as_str()) { Found::Other } else { see(tree, path)? };
        applied.accepted.insert(path.clone(), there);
    }
    in_the_way::no_file_becomes_a_folder(tree, (&before, &after))?;
    let found = drift(tree, &before, &applied.accepted)?;
    if !found.is_empty() {
        return Err(OrderError::Drifted(found));
    }
    let all = Targets { tree, before: &before, after: &after, applied: &applied, open: &open };
    let mut targets = all.all(order, &differs)?;
    let links = host.left_open(&targets, &open.units);
    left_open::add(&mut targets, links, &after).map_err(OrderError::Impossible)?;
    let ready = prepare(tree, &order.id, targets, label)?;
    is_as_compared(&ready, &before, &applied.accepted)?;
    let stays = |path: &str| applied.accepted.contains_key(path) && all.is_left(path);
    let pinned = pinned(tree, &after, stays, order.others.iter())?;
    let (from, to, accepted) = (Wish::of(&old), Wish::of(new), applied.accepted);
    Ok(Checked { ready, differs, from, to, accepted, pinned })
}

/// The names that a config sets to what the booted image ships, but for those at which something else
/// `stays`, as an admin accepted it.
fn pinned<'o>(
    tree: &Tree,
    config: &Desired<'_>,
    stays: impl Fn(&str) -> bool,
    others: impl Iterator<Item = &'o Target<'static>>,
) -> Result<Pinned, PathError> {
    let mut targets = Vec::new();
    for path in config.pieces.keys().filter(|path| !is_of_others(path) && !stays(path)) {
        if let Some(target) = config.target(path)
            && is_as_shipped(tree, path, &target.wanted.seen())?
        {
            targets.push(kept::owned(target));
        }
    }
    let others = others.map(|target| &target.path);
    let owned = config.pieces.keys().chain(others).cloned().collect();
    Ok(Pinned { targets, owned })
}

/// Whether what is replaced is still what was held against the config.
fn is_as_compared(
    ready: &Ready<'_>,
    before: &Desired<'_>,
    accepted: &Accepted,
) -> Result<(), JournalError> {
    let own = |it: &&crate::journal::Entry| !is_of_others(&it.path);
    for entry in ready.record.entries.iter().filter(own) {
        let piece = before.pieces.get(&entry.path);
        let Some(wanted) = piece.and_then(|piece| piece.wanted.as_ref()) else { continue };
        if wanted.seen() != entry.old && accepted.get(&entry.path) != Some(&entry.old) {
            return Err(JournalError::Changed { path: entry.path.clone() });
        }
    }
    Ok(())
}

/// Whether this host can have a config, as an order finds it by what is on the disk now. An order that
/// `replaces` the config applied last, where that is known, names the paths of which nothing stays.
pub fn could_have(
    tree: &Tree,
    host: &dyn Host,
    config: &NodeConfig<'_>,
    replaces: Option<&[String]>,
) -> Result<(), OrderError> {
    let applied = replaces.and_then(|_| Applied::read(tree).ok().flatten());
    let old = applied.as_ref().and_then(|applied| applied.documents.config().ok());
    let before = old.as_ref().and_then(|old| Some((old, wanted(old, host).ok()?)));
    let after = Unlinked::of(config, host);
    let gone = match applied.as_ref().zip(before) {
        Some((Applied { originals, accepted, .. }, (old, before))) => {
            let open = left_open::open(old, config, originals);
            let is_named = |path: &str| replaces.is_some_and(|all| all.iter().any(|it| it == path));
            let stays = |path: &str| accepted.contains_key(path) && !is_named(path);
            gone::gone(tree, originals, (&before, &after, &open), stays)?
        }
        None => Vec::new(),
    };
    after.linked(host, &gone).map(drop).map_err(OrderError::Impossible)
}

/// What a config puts on the disk of this host.
pub fn wanted<'c>(config: &'c NodeConfig<'c>, host: &dyn Host) -> Result<Desired<'c>, OrderError> {
    desired(config, host).map_err(OrderError::Impossible)
}

struct Targets<'t> {
    tree: &'t Tree,
    before: &'t Desired<'t>,
    after: &'t Desired<'t>,
    applied: &'t Applied,
    open: &'t Open,
}

impl Targets<'_> {
    /// Everything that has to stand somewhere, tread's own record of it included.
    fn all(&self, order: &Order, differs: &[String]) -> Result<Vec<Target<'static>>, PathError> {
        let Order { documents, others, accept: lets_begin, .. } = order;
        let mut targets = Vec::new();
        let Applied { originals, accepted, claim, .. } = self.applied.clone();
        let mut kept = Kept { originals, accepted, claim };
        let own = OwnClaim::of(self.tree, booted(self.tree)?.as_ref(), kept.claim.as_ref())?;
        kept.accepted.retain(|id, _| !differs.contains(id));
        let before = self.before.pieces.keys();
        let paths: BTreeSet<&String> = before.chain(self.after.pieces.keys()).collect();
        for path in paths {
            if self.is_left(path) {
                continue;
            }
            match self.after.target(path) {
                Some(target) => {
                    kept.accepted.remove(path);
                    if !self.before.pieces.contains_key(path) {
                        targets.extend(kept.takes(self.tree, path)?);
                    }
                    targets.push(kept.puts(&own, target));
                }
                None if self.after.pieces.contains_key(path) => {}
                None => {
                    // A path that an admin accepted only for this order is restored all the same.
                    let accepted = kept.accepted.remove(path).is_some();
                    let goes = (path.as_str(), accepted && !lets_begin.contains(path));
                    targets.extend(kept.lets_go(self.tree, (&own, self.before), goes)?);
                }
            }
        }
        targets.extend(kept.restores(self.tree, self.open, self.after)?);
        let Kept { originals, accepted, claim } = kept;
        targets.push(Applied::new(documents.clone(), accepted, originals).keeping(claim).target());
        targets.extend_from_slice(others);
        Ok(targets)
    }

    /// Whether the config has nothing new for a path: what is there is as it was wanted, or
    /// as an admin accepted it.
    fn is_left(&self, path: &str) -> bool {
        let (before, after) = (self.before.pieces.get(path), self.after.pieces.get(path));
        before.zip(after).is_some_and(|(before, after)| before.wanted == after.wanted)
    }
}

/// What `tread node adopt` does about what differs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Adopt {
    /// It is only told.
    #[default]
    Ask,
    /// What is there stays, and counts as accepted.
    Keep,
    /// The config takes its place: the node has to boot, since nobody planned that.
    Overwrite,
}

/// How a node that tread never managed becomes one that it does.
#[derive(Debug)]
pub struct Adoption<'c> {
    /// What the journal is given.
    pub ready: Ready<'c>,
    /// The config.
    pub config: Digest,
    /// What differs from the config, and is accepted or overwritten; or drift, of a machine that
    /// booted with it.
    pub found: Vec<Drift>,
    /// The plan that has to be carried out, if something is overwritten.
    pub plan: Option<VerifiablePlan>,
    /// What the config wants of the operating system.
    pub wish: Wish,
    /// What the config wanted of it that was applied before; nothing where none was, or nobody
    /// knows which.
    pub had: Option<Wish>,
    /// What is done about what differs.
    pub what: Adopt,
    /// Whether the machine booted with this config, and has had no other since.
    pub is_booted: bool,
    /// The names that the config sets to what the booted image ships.
    pub pinned: Pinned,
}

/// Begins with a node that tread never managed: the config that it is said to have is
/// held against the disk. With [`Adopt::Ask`] differences are an error. `others` are names
/// that have to be there besides.
pub fn adopt(
    tree: &Tree,
    host: &dyn Host,
    label: &Label<'_>,
    order: (&str, Documents, Adopt),
    others: Vec<Target<'static>>,
) -> Result<Adoption<'static>, OrderError> {
    adopt_keeping(tree, host, label, order, others, &[])
}

/// As [`adopt`]; what differs of the operating system, and is kept, was found before.
pub fn adopt_keeping(
    tree: &Tree,
    host: &dyn Host,
    label: &Label<'_>,
    order: (&str, Documents, Adopt),
    others: Vec<Target<'static>>,
    of_os: &[Drift],
) -> Result<Adoption<'static>, OrderError> {
    let (id, documents, what) = order;
    let own = others.clone();
    let mut targets = others;
    let mut kept = Kept::default();
    let before = match Applied::read(tree) {
        Ok(None) => Before::Nothing,
        Ok(Some(Applied { documents, accepted, originals, claim, .. })) => {
            kept = Kept { originals, claim, ..kept };
            Before::Had(documents, accepted)
        }
        // To adopt is the way out of this.
        Err(AppliedError::Damaged(_) | AppliedError::NoFile) => Before::Unknown,
        Err(error) => return Err(error.into()),
    };
    let booted = booted(tree)?;
    let is_booted;
    let mut plan = None;
    let old = before.config();
    let had = old.as_ref().map(Wish::of);
    let (found, config, wish, pinned) = {
        let config = documents.config()?;
        let digest = crate::documents::digest(&config)?;
        let had = match what {
            Adopt::Overwrite => old.as_ref().and_then(|old| {
                let open = left_open::open(old, &config, &kept.originals);
                Some((open, wanted(old, host).ok()?))
            }),
            Adopt::Ask | Adopt::Keep => None,
        };
        let desired = Unlinked::of(&config, host);
        let gone = match &had {
            Some((open, had)) => {
                let stays = |path: &str| before.accepts(path);
                gone::gone(tree, &kept.originals, (had, &desired, open), stays)?
            }
            None => Vec::new(),
        };
        let desired = desired.linked(host, &gone).map_err(OrderError::Impossible)?;
        // A node that has this config by its own record keeps what an admin accepted.
        if let Before::Had(_, accepted) = &before
            && what == Adopt::Ask
            && before.leaves(digest)
        {
            kept.accepted.clone_from(accepted);
        }
        if let Some(booted) = &booted {
            kept.accepted.extend(besides(tree, &desired, booted)?);
        }
        let mut found = drift(tree, &desired, &kept.accepted)?;
        // A machine that booted with it has it: what differs is drift, as always. Whoever served it may
        // have made the digest in another way.
        let is_it = |booted: &Booted| {
            booted.digest == digest || documents.given_as() == Some(booted.config.as_str())
        };
        is_booted = booted.as_ref().is_some_and(is_it) && before.leaves(digest);
        match what {
            Adopt::Ask if !found.is_empty() && !is_booted => {
                return Err(OrderError::Differs(found));
            }
            Adopt::Ask => {}
            Adopt::Keep => {
                let stays = found.iter().chain(of_os);
                kept.accepted.extend(stays.map(|it| (it.path.clone(), it.there.clone())));
            }
            Adopt::Overwrite => {
                let own = OwnClaim::of(tree, booted.as_ref(), kept.claim.as_ref())?;
                let wrote = |path: &str| {
                    is_booted || had.as_ref().is_some_and(|(_, had)| had.pieces.contains_key(path))
                };
                for Drift { path, .. } in &found {
                    // What was accepted may never have been written by tread either.
                    let was_accepted = before.accepts(path) && !kept.originals.contains_key(path);
                    if !wrote(path) || was_accepted {
                        targets.extend(kept.takes(tree, path)?);
                    }
                    targets.extend(desired.target(path).map(|target| kept.puts(&own, target)));
                }
                if let Some((open, had)) = &had {
                    let mut gone = Vec::new();
                    for path in had.pieces.keys() {
                        if !desired.pieces.contains_key(path) {
                            let goes = (path.as_str(), before.accepts(path));
                            gone.extend(kept.lets_go(tree, (&own, had), goes)?);
                        }
                    }
                    gone.extend(kept.restores(tree, open, &desired)?);
                    let all = [targets.as_slice(), gone.as_slice()].concat();
                    left_open::add(&mut gone, host.left_open(&all, &open.units), &desired)
                        .map_err(OrderError::Impossible)?;
                    for target in gone {
                        match let_go(tree, had, &target)? {
                            LetGo::Already => continue,
                            LetGo::Now(drift) => found.extend(drift),
                        }
                        targets.push(target);
                    }
                }
                plan = (!found.is_empty()).then(|| VerifiablePlan::always_allowed(digest, digest));
            }
        }
        let stays = |path: &str| kept.accepted.contains_key(path);
        let pinned = pinned(tree, &desired, stays, own.iter())?;
        (found, digest, Wish::of(&config), pinned)
    };
    let Kept { originals, accepted, claim } = kept;
    targets.push(Applied::new(documents, accepted, originals).keeping(claim).target());
    let ready = prepare(tree, id, targets, label)?;
    Ok(Adoption { ready, config, found, plan, wish, had, what, is_booted, pinned })
}

/// What becomes of a path that the config applied before had, and the one at hand has not.
enum LetGo {
    /// It is gone: there is no way to it any more.
    Already,
    /// It goes, or what stood there before tread comes back, where that differs.
    Now(Option<Drift>),
}

fn let_go(tree: &Tree, before: &Desired<'_>, target: &Target<'_>) -> Result<LetGo, PathError> {
    let Target { path, wanted, .. } = target;
    let there = match see(tree, path) {
        Err(PathError::NoWay { .. }) if *wanted == Wanted::Absent => return Ok(LetGo::Already),
        there => there?,
    };
    // A copy that is needed no more is nobody else's concern.
    if there == wanted.seen() || path.starts_with(STATE) {
        return Ok(LetGo::Now(None));
    }
    Ok(LetGo::Now(Some(Drift {
        path: path.clone(),
        of: before.pieces.get(path).map_or_else(|| path.clone(), |piece| piece.of.clone()),
        there,
        kinds: vec![Kind::Unwanted],
        differs: "it is of the config applied before, and not of this one".to_owned(),
    })))
}

/// What was applied before something is adopted.
enum Before {
    Nothing,
    Had(Documents, Accepted),
    Unknown,
}

impl Before {
    /// The config, where one is known.
    fn config(&self) -> Option<NodeConfig<'_>> {
        match self {
            Before::Had(documents, _) => documents.config().ok(),
            Before::Nothing | Before::Unknown => None,
        }
    }

    /// Whether an admin accepted what stands under a path.
    fn accepts(&self, path: &str) -> bool {
        matches!(self, Before::Had(_, accepted) if accepted.contains_key(path))
    }

    /// Whether a machine that booted with this config has had no other since.
    fn leaves(&self, config: Digest) -> bool {
        match self {
            Before::Nothing => true,
            Before::Had(documents, _) => {
                let had = documents.config().and_then(|it| crate::documents::digest(&it));
                had.is_ok_and(|had| had == config)
            }
            Before::Unknown => false,
        }
    }
}

#[cfg(test)]
mod tests;
