//! Modules that failed to compile: by their digest, so that nobody tries the
//! same bytes again soon, whoever ships them, and also not after a restart.

use crate::policies::load::Retry;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tread_kube::api::disruption_policy::FailureStatus;
use tread_model::digest::Sha256;
use tread_model::verdict::{Failure, FailureKind};

/// Before one is tried again: at first, and at most.
const AGAIN: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(30), SignedDuration::from_secs(3600));

/// How many are remembered.
const MOST: usize = 1024;

/// What failed to compile. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Hopeless(Arc<Mutex<BTreeMap<Sha256, (Failure, Retry)>>>);

impl Hopeless {
    /// Why this module is not tried now, if it is not.
    pub(super) fn why(&self, digest: &Sha256, now: Timestamp) -> Option<(Failure, Retry)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(digest).filter(|(_, retry)| now < retry.at).cloned()
    }

    /// Notes how a module did; when it is tried again, if it failed to compile.
    pub(super) fn note(
        &self,
        digest: Sha256,
        failure: Option<&Failure>,
        now: Timestamp,
    ) -> Option<Retry> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(failure) = failure.filter(|it| is_of_compiling(it.kind)) else {
            all.remove(&digest);
            return None;
        };
        let tries = all.get(&digest).map_or(0, |(_, retry)| retry.tries);
        let retry = Retry {
            at: now.saturating_add(wait(tries)).unwrap_or(now),
            tries: tries.saturating_add(1),
        };
        put(&mut all, digest, (failure.clone(), retry));
        Some(retry)
    }

    /// Takes over what a status says, which another replica may have written.
    pub(super) fn learn(&self, said: &FailureStatus, now: Timestamp) {
        let kind = FailureKind::ALL.iter().find(|kind| kind.name() == said.name);
        let digest = said.digest.as_deref().and_then(Sha256::parse);
        let (Some(&kind), Some(digest), Some(at)) = (kind, digest, &said.retry_at) else { return };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_of_compiling(kind) || all.contains_key(&digest) {
            return;
        }
        // No clock of another machine holds it back for longer than it ever is.
        let at = at.0.min(now.saturating_add(AGAIN.1).unwrap_or(now));
        let tries = said.tries.and_then(|it| u32::try_from(it).ok()).unwrap_or(1);
        let failure = Failure { kind, message: said.message.clone() };
        put(&mut all, digest, (failure, Retry { at, tries }));
    }
}

/// Remembers one more. Where there are too many, the one that is tried again first
/// is forgotten.
fn put(all: &mut BTreeMap<Sha256, (Failure, Retry)>, digest: Sha256, it: (Failure, Retry)) {
    all.insert(digest, it);
    while all.len() > MOST {
        let first = all.iter().min_by_key(|(_, (_, retry))| retry.at);
        let Some(first) = first.map(|(digest, _)| *digest) else { return };
        all.remove(&first);
    }
}

/// Whether a module fails so while it is compiled.
pub(super) fn is_of_compiling(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::CompileFailed | FailureKind::CompileTimeout)
}

fn wait(tries: u32) -> SignedDuration {
    let (first, most) = AGAIN;
    first.saturating_mul(2_i32.saturating_pow(tries.min(16))).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn slow() -> Failure {
        Failure { kind: FailureKind::CompileTimeout, message: "it took longer".to_owned() }
    }

    #[test]
    fn the_same_bytes_are_tried_again_after_longer_and_longer_pauses() {
        let (hopeless, digest) = (Hopeless::default(), Sha256::of(b"a"));
        let mut now = 0;
        for (tries, wait) in [(1, 30), (2, 60), (3, 120), (4, 240)] {
            assert_eq!(hopeless.why(&digest, at(now)), None, "{tries}");
            let retry = hopeless.note(digest, Some(&slow()), at(now)).unwrap();
            assert_eq!(retry, Retry { at: at(now + wait), tries });
            assert_eq!(hopeless.why(&digest, at(now + wait - 1)), Some((slow(), retry)));
            now += wait;
        }
        for _ in 0..40 {
            hopeless.note(digest, Some(&slow()), at(now));
        }
        assert_eq!(hopeless.note(digest, Some(&slow()), at(now)).unwrap().at, at(now + 3600));
        assert_eq!(hopeless.why(&Sha256::of(b"b"), at(now)), None, "others are tried");
        // One that compiles, or fails in another way, is not held back.
        let trap = Failure { kind: FailureKind::Trap, message: String::new() };
        for done in [None, Some(&trap)] {
            hopeless.note(digest, Some(&slow()), at(now));
            assert_eq!(hopeless.note(digest, done, at(now)), None);
            assert_eq!(hopeless.why(&digest, at(now)), None);
            assert_eq!(hopeless.note(digest, Some(&slow()), at(now)).unwrap().tries, 1);
        }
    }

    #[test]
    fn of_very_many_those_that_have_to_wait_longest_are_remembered() {
        let hopeless = Hopeless::default();
        let digest = |number: usize| Sha256::of(&number.to_le_bytes());
        for number in 0..3 * MOST {
            let now = at(i64::try_from(number).unwrap());
            hopeless.note(digest(number), Some(&slow()), now);
            assert!(hopeless.why(&digest(number), now).is_some(), "{number}");
            assert!(hopeless.0.lock().unwrap().len() <= MOST);
        }
        let said = FailureStatus {
            name: "compile-timeout".to_owned(),
            message: String::new(),
            digest: Some(digest(usize::MAX).to_string()),
            since: None,
            tries: Some(9),
            retry_at: Some(Time(at(1_000_000))),
        };
        hopeless.learn(&said, at(3100));
        assert!(hopeless.why(&digest(usize::MAX), at(3100)).is_some(), "what a status says counts");
    }

    #[test]
    fn what_a_status_says_holds_after_a_restart_and_no_longer_than_it_may() {
        let said = |name: &str, at: Option<Timestamp>| FailureStatus {
            name: name.to_owned(),
            message: "it took longer".to_owned(),
            digest: Some(Sha256::of(b"a").to_string()),
            since: None,
            tries: Some(3),
            retry_at: at.map(Time),
        };
        let learnt = |said: &FailureStatus| {
            let hopeless = Hopeless::default();
            hopeless.learn(said, at(1000));
            hopeless.why(&Sha256::of(b"a"), at(1000))
        };
        let found = learnt(&said("compile-timeout", Some(at(1100)))).unwrap();
        assert_eq!(found, (slow(), Retry { at: at(1100), tries: 3 }));
        let far = learnt(&said("compile-timeout", Some(at(4_000_000_000)))).unwrap();
        assert_eq!(far.1.at, at(1000 + 3600));
        assert_eq!(learnt(&said("compile-timeout", Some(at(999)))), None);
        assert_eq!(learnt(&said("compile-timeout", None)), None);
        assert_eq!(learnt(&said("trap", Some(at(1100)))), None);
        assert_eq!(learnt(&said("nonsense", Some(at(1100)))), None);
    }
}
