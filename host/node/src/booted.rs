//! What tread served a machine when it booted for the first time: its agent takes that config as
//! the one applied last, and what made the machine a node does not count as drift.

use crate::desired::Desired;
use crate::drift::{Accepted, see};
use crate::prepare::{Target, Wanted};
use crate::tree::{Found, Owner, PathError, Tree};
use tread_model::joining::{BOOTED, BOOTSTRAP, Booted, claim_in, with_claim, without_claim};

/// It is a few hundred bytes.
const MOST: u64 = 64 << 10;
/// More than any kubelet takes.
const MOST_OF_KUBELET: u64 = 16 << 20;

/// What a machine was served; nothing where tread did not serve it.
pub fn booted(tree: &Tree) -> Result<Option<Booted>, PathError> {
    Ok(tree.read(BOOTED, MOST)?.as_deref().and_then(Booted::read))
}

/// What was served with a config and is no part of it, where that has something else: the lines
/// of the claim, and the kubeconfig to register by.
pub fn besides(tree: &Tree, desired: &Desired<'_>, booted: &Booted) -> Result<Accepted, PathError> {
    let mut besides = Accepted::new();
    let wanted = |path: &str| desired.pieces.get(path)?.wanted.as_ref();
    if let Some(wanted) = wanted(&booted.kubelet)
        && has_claim(tree, &booted.kubelet, wanted)?
    {
        besides.insert(booted.kubelet.clone(), see(tree, &booted.kubelet)?);
    }
    if let Some(Wanted::File { owner, .. }) = wanted(BOOTSTRAP).filter(|_| booted.bootstrap) {
        let there = see(tree, BOOTSTRAP)?;
        let served = Owner { mode: 0o600, ..*owner };
        if matches!(there, Found::File { owner, .. } if owner == served) {
            besides.insert(BOOTSTRAP.to_owned(), there);
        }
    }
    Ok(besides)
}

/// Whether a file is what is wanted but for the lines of a claim.
pub fn has_claim(tree: &Tree, path: &str, wanted: &Wanted<'_>) -> Result<bool, PathError> {
    let Wanted::File { bytes, owner } = wanted else { return Ok(false) };
    let has = match see(tree, path) {
        Ok(Found::File { owner, .. }) => owner,
        Ok(_) | Err(PathError::NoWay { .. }) => return Ok(false),
        Err(error) => return Err(error),
    };
    let Some(text) = tree.read(path, MOST_OF_KUBELET)? else { return Ok(false) };
    let before = std::str::from_utf8(&text).ok().and_then(without_claim);
    Ok(has == *owner && before.is_some_and(|before| before.as_bytes() == &**bytes))
}

/// With which claim a node registers that tread served.
#[derive(Debug, Default)]
pub struct OwnClaim {
    /// Where its kubelet's configuration is.
    kubelet: String,
    /// The claim that stands there; or else the one that was kept, as nothing had room for it.
    claim: Option<String>,
}

impl OwnClaim {
    /// By what the machine was served; `kept` is the claim that was kept.
    pub fn of(
        tree: &Tree,
        booted: Option<&Booted>,
        kept: Option<&String>,
    ) -> Result<OwnClaim, PathError> {
        let Some(Booted { kubelet, .. }) = booted else { return Ok(OwnClaim::default()) };
        let there = match see(tree, kubelet)? {
            Found::File { .. } => tree.read(kubelet, MOST_OF_KUBELET)?,
            _ => None,
        };
        let there = there.as_deref().and_then(|text| std::str::from_utf8(text).ok());
        let claim = there.and_then(claim_in).map(str::to_owned).or_else(|| kept.cloned());
        Ok(OwnClaim { kubelet: kubelet.clone(), claim })
    }

    /// A new text of the kubelet's configuration with the claim in it: the node joins again whenever it
    /// registers. Nothing where there is no claim, or where the new text has no room for it.
    pub fn put(&self, target: &Target<'_>) -> Option<Target<'static>> {
        let Target { path, wanted: Wanted::File { bytes, owner }, folders } = target else {
            return None;
        };
        let claim = self.claim.as_ref().filter(|_| self.kubelet == *path)?;
        let text = with_claim(std::str::from_utf8(bytes).ok()?, claim).ok()?;
        Some(Target {
            path: path.clone(),
            wanted: Wanted::File { bytes: text.into_bytes().into(), owner: *owner },
            folders: *folders,
        })
    }

    /// The claim, if this path is the kubelet's configuration, which goes.
    pub fn left_by(&self, path: &str) -> Option<&String> {
        self.claim.as_ref().filter(|_| self.kubelet == path)
    }
}
