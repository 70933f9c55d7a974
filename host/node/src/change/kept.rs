//! What is kept beside the config last applied, as another one takes its place: what stood there
//! before tread, what an admin accepted, and the claim of a machine.

use crate::booted::{OwnClaim, has_claim};
use crate::desired::Desired;
use crate::drift::Accepted;
use crate::left_open::Open;
use crate::originals::{self, Originals};
use crate::prepare::{Target, Wanted};
use crate::tree::{PathError, Tree};

/// It.
#[derive(Default)]
pub(super) struct Kept {
    /// What stood there before tread.
    pub(super) originals: Originals,
    /// Where the disk differs from the config, as an admin accepted.
    pub(super) accepted: Accepted,
    /// The claim with which the node registers, while its config has no room for it.
    pub(super) claim: Option<String>,
}

impl Kept {
    /// Keeps what is at a path that tread never wrote, so that it can be restored once no config
    /// has the path any more: the copy that has to be made.
    pub(super) fn takes(
        &mut self,
        tree: &Tree,
        path: &str,
    ) -> Result<Option<Target<'static>>, PathError> {
        let Some((original, copy)) = originals::keep(tree, path)? else { return Ok(None) };
        self.originals.insert(path.to_owned(), original);
        Ok(copy)
    }

    /// What a config puts under a path: with the claim, where that stands there.
    pub(super) fn puts(&mut self, own: &OwnClaim, target: Target<'_>) -> Target<'static> {
        match own.put(&target) {
            Some(joins) => {
                self.claim = None;
                self.accepted.insert(joins.path.clone(), joins.wanted.seen());
                joins
            }
            None => {
                self.leaves(own, &target.path);
                owned(target)
            }
        }
    }

    /// What becomes of a path that no config has any more: it is as it was before tread, or as an
    /// admin accepted it, where that `stays`. A file that differs only by the claim with which the
    /// machine joined is restored all the same.
    pub(super) fn lets_go(
        &mut self,
        tree: &Tree,
        (own, before): (&OwnClaim, &Desired<'_>),
        (path, stays): (&str, bool),
    ) -> Result<Vec<Target<'static>>, PathError> {
        let wanted = before.pieces.get(path).and_then(|piece| piece.wanted.as_ref());
        let joins = match wanted {
            Some(wanted) => has_claim(tree, path, wanted)?,
            None => false,
        };
        self.leaves(own, path);
        let targets = match stays && !joins {
            false => originals::restore(tree, &self.originals, path)?,
            true => originals::forget(&self.originals, path).into_iter().collect(),
        };
        self.originals.remove(path);
        Ok(targets)
    }

    /// The links of before tread that come back, of units that the new config leaves open.
    pub(super) fn restores(
        &mut self,
        tree: &Tree,
        open: &Open,
        after: &Desired<'_>,
    ) -> Result<Vec<Target<'static>>, PathError> {
        let mut targets = Vec::new();
        for path in &open.restored {
            // Of a unit that was disabled nothing stands there that a config could want.
            if !self.originals.contains_key(path) || after.pieces.contains_key(path) {
                continue;
            }
            targets.extend(originals::restore(tree, &self.originals, path)?);
            self.originals.remove(path);
        }
        Ok(targets)
    }

    /// Keeps the claim, if this path is the kubelet's configuration, in which it stands no more.
    fn leaves(&mut self, own: &OwnClaim, path: &str) {
        if let Some(claim) = own.left_by(path) {
            self.claim = Some(claim.clone());
        }
    }
}

/// A target that outlives the config that it was made of.
pub(super) fn owned(target: Target<'_>) -> Target<'static> {
    let wanted = match target.wanted {
        Wanted::File { bytes, owner } => Wanted::File { bytes: bytes.into_owned().into(), owner },
        Wanted::Link { target } => Wanted::Link { target },
        Wanted::Password { user, hash } => Wanted::Password { user, hash },
        Wanted::Absent => Wanted::Absent,
    };
    Target { path: target.path, wanted, folders: target.folders }
}
