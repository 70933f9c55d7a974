//! Where the API server asks: a path that nobody can guess, so that nobody else
//! asks. It is kept, exchanged and served like a certificate: a new one is served
//! everywhere before the API server is told of it, and the old one goes when it
//! has been told.

use super::lives::{CertificateError, Lives};
use crate::names::PATH;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, PoisonError, RwLock};
use tread_model::digest::Digest;

/// How many random bytes a path has.
const BYTES: usize = 20;

/// A path at which the API server may ask.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Asked {
    token: String,
    /// In seconds since 1970.
    made: u64,
}

impl Asked {
    pub(super) fn fresh(now: u64) -> Result<Asked, CertificateError> {
        let mut bytes = [0; BYTES];
        let random = rustls::crypto::ring::default_provider().secure_random;
        random.fill(&mut bytes).map_err(|_| {
            CertificateError::Unusable("the system gives no random numbers for a path".to_owned())
        })?;
        Ok(Asked { token: bytes.iter().map(|byte| format!("{byte:02x}")).collect(), made: now })
    }

    /// What is kept may be anything.
    fn is_possible(&self, now: u64, lives: &Lives) -> bool {
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        self.token.len() == 2 * BYTES
            && self.token.bytes().all(is_hex)
            && self.made <= now.saturating_add(lives.overlap.as_secs())
    }

    fn path(&self) -> String {
        format!("{PATH}/{}", self.token)
    }

    fn known(&self, lives: &Lives) -> u64 {
        self.made.saturating_add(lives.overlap.as_secs())
    }

    /// When nobody asks at the path before it any more.
    fn alone(&self, lives: &Lives) -> u64 {
        self.known(lives).saturating_add(lives.overlap.as_secs())
    }

    fn due(&self, lives: &Lives) -> u64 {
        self.made.saturating_add(lives.server.as_secs() / 3 * 2)
    }
}

/// What the paths have to become, the newest first, and why; None: nothing now.
pub(super) fn due(
    kept: &[Asked],
    trusted: bool,
    now: u64,
    lives: &Lives,
) -> Result<Option<(Vec<Asked>, &'static str)>, CertificateError> {
    let [newest, older @ ..] = kept else {
        return Ok(Some((vec![Asked::fresh(now)?], "there was no path that nobody can guess")));
    };
    if !kept.iter().all(|path| path.is_possible(now, lives)) {
        return Ok(Some((vec![Asked::fresh(now)?], "its path was spoilt")));
    }
    if !older.is_empty() && trusted && newest.alone(lives) <= now {
        return Ok(Some((vec![newest.clone()], "nobody asks at the old path any more")));
    }
    if older.is_empty() && newest.due(lives) <= now {
        let both = vec![Asked::fresh(now)?, newest.clone()];
        return Ok(Some((both, "its path is in its last third")));
    }
    Ok(None)
}

/// When something is due with them next.
pub(super) fn until(kept: &[Asked], now: u64, lives: &Lives) -> Option<u64> {
    let newest = kept.first()?;
    let times = match kept.len() {
        1 => [newest.due(lives), newest.due(lives)],
        _ => [newest.known(lives), newest.alone(lives)],
    };
    times.into_iter().filter(|time| *time > now).min()
}

/// The path that the API server is told of.
pub(super) fn announced(kept: &[Asked], now: u64, lives: &Lives) -> String {
    let known = kept.iter().find(|path| path.known(lives) <= now);
    // If no path is old enough, the oldest is taken: it is the first one, so that no
    // other replica serves another.
    known.or(kept.last()).map_or_else(|| PATH.to_owned(), Asked::path)
}

/// The paths at which this replica answers. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Paths(Arc<RwLock<Vec<Digest>>>);

impl Paths {
    /// Where these are the paths for good.
    pub fn of(paths: &[&str]) -> Paths {
        Paths(Arc::new(RwLock::new(paths.iter().map(|path| digest(path)).collect())))
    }

    pub(super) fn set(&self, kept: &[Asked]) {
        let paths = kept.iter().map(|path| digest(&path.path())).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = paths;
    }

    /// Whether this is one. How long it takes tells nothing of them.
    pub(crate) fn has(&self, path: &str) -> bool {
        let paths = self.0.read().unwrap_or_else(PoisonError::into_inner);
        paths.contains(&digest(path))
    }
}

fn digest(path: &str) -> Digest {
    Digest::of(path.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;
    const DAY: u64 = 24 * 3600;

    fn step(kept: &[Asked], trusted: bool, now: u64) -> Option<(Vec<Asked>, &'static str)> {
        due(kept, trusted, now, &Lives::default()).unwrap()
    }

    #[test]
    fn a_path_is_exchanged_without_a_moment_in_which_the_one_that_is_told_is_not_served() {
        let lives = Lives::default();
        let (first, _) = step(&[], true, NOW).unwrap();
        let (mut kept, mut now, mut exchanged) = (first.clone(), NOW, 0);
        while now < NOW + 720 * DAY {
            let before = announced(&kept, now, &lives);
            match step(&kept, true, now) {
                None => now = until(&kept, now, &lives).unwrap(),
                Some((next, why)) => {
                    let (paths, after) = (Paths::default(), announced(&next, now, &lives));
                    // One replica has it already, another one has not yet.
                    for served in [&kept, &next] {
                        paths.set(served);
                        assert!(paths.has(&before) && paths.has(&after), "{why}");
                    }
                    exchanged += usize::from(why == "nobody asks at the old path any more");
                    kept = next;
                }
            }
            assert!(kept.len() <= 2);
        }
        assert!((4..=6).contains(&exchanged), "{exchanged}");
        let paths = Paths::default();
        paths.set(&kept);
        assert!(!paths.has(&announced(&first, NOW, &lives)), "the first one is served for ever");
    }

    #[test]
    fn the_old_path_stays_until_the_api_server_was_told_of_the_new_one() {
        let (first, _) = step(&[], true, NOW).unwrap();
        let (both, _) = step(&first, true, NOW + 120 * DAY).unwrap();
        assert_eq!(both.len(), 2);
        assert!(step(&both, false, NOW + 200 * DAY).is_none());
        assert_eq!(step(&both, true, NOW + 200 * DAY).unwrap().0.len(), 1);
    }

    #[test]
    fn what_somebody_spoilt_is_made_anew_and_no_two_are_alike() {
        let (good, _) = step(&[], true, NOW).unwrap();
        let made_later = Asked { made: u64::MAX, ..good[0].clone() };
        let guessed = Asked { token: "warn".to_owned(), made: NOW };
        for spoilt in [made_later, guessed] {
            let (next, why) = step(&[spoilt], true, NOW).unwrap();
            assert_eq!((next.len(), why), (1, "its path was spoilt"));
            assert!(next[0].token != good[0].token);
        }
    }
}
