//! From the config last applied to the one at hand: what the journal is given, and
//! everything that forbids it.

mod in_the_way;

pub use in_the_way::InTheWay;

use crate::applied::{Applied, AppliedError};
use crate::booted::{OwnClaim, besides, booted, has_claim};
use crate::desired::{Desired, Host, Impossible, desired};
use crate::documents::Documents;
use crate::drift::{Accepted, Drift, drift, is_of_others, see};
use crate::journal::JournalError;
use crate::left_open::{self, Open};
use crate::originals::{self, Originals};
use crate::os::{IDS, Wish};
use crate::prepare::{Label, Ready, Target, prepare};
use crate::tree::{Found, PathError, Tree};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use tread_model::config::NodeConfig;
use tread_model::diff::{self, Comparison};
use tread_model::digest::Digest;
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
    #[error("somebody changed what the config last applied had written: {}; restore it, or accept it by --accept-drift", drifted(.0))]
    Drifted(Vec<Drift>),
    /// The disk is not as the config wants it that the node is said to have.
    #[error("the node does not have this config: {}; let them stay by --keep, or take the config's by --overwrite", drifted(.0))]
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
    let (before, after) = (wanted(&old, host)?, wanted(new, host)?);
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
    let open = left_open::open(&old, new, &applied.originals);
    let targets = Targets { tree, before: &before, after: &after, applied: &applied, open: &open };
    let mut targets = targets.all(order, &differs)?;
    let links = host.left_open(&targets, &open.units);
    left_open::add(&mut targets, links, &after);
    let ready = prepare(tree, &order.id, targets, label)?;
    is_as_compared(&ready, &before, &applied.accepted)?;
    let (from, to, accepted) = (Wish::of(&old), Wish::of(new), applied.accepted);
    Ok(Checked { ready, differs, from, to, accepted })
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
        let Order { documents, others, .. } = order;
        let mut targets = Vec::new();
        let mut originals = self.applied.originals.clone();
        let mut accepted = self.applied.accepted.clone();
        let mut kept = self.applied.claim.clone();
        let own = OwnClaim::of(self.tree, booted(self.tree)?.as_ref(), kept.as_ref())?;
        accepted.retain(|id, _| !differs.contains(id));
        let lets_begin = &order.accept;
        let before = self.before.pieces.keys();
        let paths: BTreeSet<&String> = before.chain(self.after.pieces.keys()).collect();
        for path in paths {
            if self.is_left(path) {
                continue;
            }
            match self.after.target(path) {
                Some(target) => {
                    accepted.remove(path);
                    if !self.before.pieces.contains_key(path) {
                        targets.extend(self.taken(path, &mut originals)?);
                    }
                    match own.put(&target) {
                        Some(joins) => {
                            kept = None;
                            accepted.insert(path.clone(), joins.wanted.seen());
                            targets.push(joins);
                        }
                        None => {
                            kept = own.left_by(path).cloned().or(kept);
                            targets.push(owned(target));
                        }
                    }
                }
                None if self.after.pieces.contains_key(path) => {}
                None => {
                    let joins = self.before.pieces.get(path).and_then(|it| it.wanted.as_ref());
                    let joins = joins.map(|wanted| has_claim(self.tree, path, wanted));
                    let joins = joins.transpose()?.unwrap_or(false);
                    kept = own.left_by(path).cloned().or(kept);
                    // A path that an admin accepted only for this order is restored all the same,
                    // and so is a file that differs only by the claim with which the machine
                    // joined.
                    let stays = |_: &Found| !lets_begin.contains(path) && !joins;
                    match accepted.remove(path).filter(stays) {
                        None => targets.extend(originals::restore(self.tree, &originals, path)?),
                        Some(_) => targets.extend(originals::forget(&originals, path)),
                    }
                    originals.remove(path);
                }
            }
        }
        for path in &self.open.restored {
            // Of a unit that was disabled nothing stands there that a config could want.
            if !originals.contains_key(path) || self.after.pieces.contains_key(path) {
                continue;
            }
            targets.extend(originals::restore(self.tree, &originals, path)?);
            originals.remove(path);
        }
        let applied = Applied::new(documents.clone(), accepted, originals).keeping(kept);
        targets.push(applied.target());
        targets.extend_from_slice(others);
        Ok(targets)
    }

    /// Whether the config has nothing new for a path: what is there is as it was wanted, or
    /// as an admin accepted it.
    fn is_left(&self, path: &str) -> bool {
        let (before, after) = (self.before.pieces.get(path), self.after.pieces.get(path));
        before.zip(after).is_some_and(|(before, after)| before.wanted == after.wanted)
    }

    /// Keeps what is at a path that tread never wrote, so that it can be restored once no config
    /// has the path any more.
    fn taken(
        &self,
        path: &str,
        originals: &mut Originals,
    ) -> Result<Option<Target<'static>>, PathError> {
        let Some((original, copy)) = originals::keep(self.tree, path)? else { return Ok(None) };
        originals.insert(path.to_owned(), original);
        Ok(copy)
    }
}

/// A target that outlives the config that it was made of.
fn owned(target: Target<'_>) -> Target<'static> {
    use crate::prepare::Wanted;
    let wanted = match target.wanted {
        Wanted::File { bytes, owner } => Wanted::File { bytes: bytes.into_owned().into(), owner },
        Wanted::Link { target } => Wanted::Link { target },
        Wanted::Password { user, hash } => Wanted::Password { user, hash },
        Wanted::Absent => Wanted::Absent,
    };
    Target { path: target.path, wanted, folders: target.folders }
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
    /// What is done about what differs.
    pub what: Adopt,
    /// Whether the machine booted with this config, and has had no other since.
    pub is_booted: bool,
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
    let mut targets = others;
    let (mut originals, mut kept, before) = match Applied::read(tree) {
        Ok(None) => (Originals::new(), None, Before::Nothing),
        Ok(Some(it)) => (it.originals, it.claim, Before::Had(it.documents)),
        // To adopt is the way out of this.
        Err(AppliedError::Damaged(_) | AppliedError::NoFile) => {
            (Originals::new(), None, Before::Unknown)
        }
        Err(error) => return Err(error.into()),
    };
    let booted = booted(tree)?;
    let (mut accepted, is_booted);
    let mut plan = None;
    let (found, config, wish) = {
        let config = documents.config()?;
        let digest = crate::documents::digest(&config)?;
        let desired = wanted(&config, host)?;
        accepted = match &booted {
            Some(booted) => besides(tree, &desired, booted)?,
            None => Accepted::new(),
        };
        let found = drift(tree, &desired, &accepted)?;
        // A machine that booted with it has it: what differs is drift, as always.
        is_booted = booted.as_ref().is_some_and(|it| it.digest == digest) && before.leaves(digest);
        match what {
            Adopt::Ask if !found.is_empty() && !is_booted => {
                return Err(OrderError::Differs(found));
            }
            Adopt::Ask => {}
            Adopt::Keep => {
                let kept = found.iter().chain(of_os);
                accepted.extend(kept.map(|it| (it.path.clone(), it.there.clone())));
            }
            Adopt::Overwrite => {
                let own = OwnClaim::of(tree, booted.as_ref(), kept.as_ref())?;
                for Drift { path, .. } in &found {
                    if let Some((original, copy)) = originals::keep(tree, path)? {
                        originals.insert(path.clone(), original);
                        targets.extend(copy);
                    }
                    let Some(target) = desired.target(path) else { continue };
                    match own.put(&target) {
                        Some(joins) => {
                            kept = None;
                            accepted.insert(path.clone(), joins.wanted.seen());
                            targets.push(joins);
                        }
                        None => {
                            kept = own.left_by(path).cloned().or(kept);
                            targets.push(owned(target));
                        }
                    }
                }
                plan = (!found.is_empty()).then(|| VerifiablePlan::always_allowed(digest, digest));
            }
        }
        (found, digest, Wish::of(&config))
    };
    targets.push(Applied::new(documents, accepted, originals).keeping(kept).target());
    let ready = prepare(tree, id, targets, label)?;
    Ok(Adoption { ready, config, found, plan, wish, what, is_booted })
}

/// What was applied before something is adopted.
enum Before {
    Nothing,
    Had(Documents),
    Unknown,
}

impl Before {
    /// Whether a machine that booted with this config has had no other since.
    fn leaves(&self, config: Digest) -> bool {
        match self {
            Before::Nothing => true,
            Before::Had(documents) => {
                let had = documents.config().and_then(|it| crate::documents::digest(&it));
                had.is_ok_and(|had| had == config)
            }
            Before::Unknown => false,
        }
    }
}

#[cfg(test)]
mod tests;
