//! The last good version of a policy, and how far the search for it is.

use super::running::Running;
use crate::policies::choose::Version;
use crate::policies::load::Terms;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tread_engine::policy::Policy;
use tread_engine::sandbox::Module;
use tread_kube::api::DisruptionPolicy;
use tread_kube::api::disruption_policy::DisruptionPolicyStatus;
use tread_kube::asking::pause;
use tread_model::verdict::Failure;

/// Before it is searched for again: at first, and at most. Without it, what it
/// claims costs reboots.
const AGAIN: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(600));

/// A last good version: what the status says of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sought {
    pub(super) place: String,
    pub(super) digest: String,
    pub(super) settings_digest: String,
    pub(super) terms: Terms,
}

/// A version that is good, and could decide again.
#[derive(Debug, Clone)]
pub(super) struct Good {
    pub(super) version: Version,
    pub(super) policy: Arc<Policy>,
    pub(super) module: Option<Module>,
    pub(super) terms: Terms,
}

/// Why a last good version could not be loaded from its copy.
#[derive(Debug)]
pub(super) enum NotRestored {
    /// There is no copy, or it is not what was kept.
    Lost,
    /// For lack of time or room, which there may be at the next try.
    NotNow(Failure),
}

/// What is known of the last good version of a policy.
#[derive(Debug)]
pub(super) enum Last {
    /// It can decide.
    Good(Box<Good>),
    /// It could, but for lack of time or room, which there may be later.
    NotNow(Failure),
    /// There is none.
    Nobody,
}

/// How far the search for the last good version is that the status names.
#[derive(Debug, Default)]
pub(super) enum Search {
    /// None was needed.
    #[default]
    Idle,
    /// It is being loaded, after so many tries that failed.
    Runs {
        job: Running<Sought>,
        tries: u32,
        /// Why the last of them failed.
        why: Option<Failure>,
    },
    /// It could not be loaded for now: when it is tried again, how often it was, and why.
    Waits { sought: Sought, again: Instant, tries: u32, why: Failure },
    /// There is no such version any more.
    Lost(Sought),
}

/// What has to be done for a version that is searched for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Searched {
    /// Nothing: there is none.
    Lost,
    /// Nothing before that.
    Waits(Instant),
    /// Nothing: it is being loaded, after so many tries that failed.
    Runs { tries: u32 },
    /// It has to be loaded, after so many tries that failed.
    Due { tries: u32 },
}

impl Search {
    /// What has to be done for this version.
    pub(super) fn of(&self, sought: &Sought, now: Instant) -> Searched {
        match self {
            Search::Lost(lost) if lost == sought => Searched::Lost,
            Search::Runs { job, tries, .. } if job.what == *sought => {
                Searched::Runs { tries: *tries }
            }
            Search::Waits { sought: waits, again, tries, .. } if waits == sought => {
                match now < *again {
                    true => Searched::Waits(*again),
                    false => Searched::Due { tries: *tries },
                }
            }
            _ => Searched::Due { tries: 0 },
        }
    }

    /// Why the version could not be loaded at the last try.
    pub(super) fn why_not_now(&self) -> Option<&Failure> {
        match self {
            Search::Waits { why, .. } => Some(why),
            Search::Runs { why, .. } => why.as_ref(),
            Search::Idle | Search::Lost(_) => None,
        }
    }

    /// Notes how a search ended, if it is the one that runs; what was found.
    pub(super) fn ended(
        &mut self,
        sought: Sought,
        found: Result<Box<Good>, NotRestored>,
        now: Instant,
    ) -> Option<Good> {
        let tries = match self {
            Search::Runs { job, tries, .. } if job.what == sought => *tries,
            _ => return None,
        };
        match found {
            Ok(good) => {
                *self = Search::Idle;
                return Some(*good);
            }
            Err(NotRestored::Lost) => *self = Search::Lost(sought),
            Err(NotRestored::NotNow(why)) => {
                let again = now + pause(AGAIN, tries);
                *self = Search::Waits { sought, again, tries: tries.saturating_add(1), why };
            }
        }
        None
    }
}

impl Sought {
    /// The last good version that the status names.
    pub(super) fn of(object: &DisruptionPolicy, terms: &Terms) -> Option<Sought> {
        let status: &DisruptionPolicyStatus = object.status.as_ref()?;
        Some(Sought {
            place: status.kept_in.clone()?,
            digest: status.digest.clone()?,
            settings_digest: status.settings_digest.clone()?,
            terms: terms.clone(),
        })
    }

    /// Whether this is it.
    pub(super) fn is(&self, good: &Good) -> bool {
        // What carries out rules comes with tread, and may be newer.
        (good.module.is_none() || self.digest == good.version.digest.to_string())
            && self.settings_digest == good.version.settings_digest.to_string()
            && self.terms == good.terms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_model::verdict::{FailureKind, Layer};

    fn sought(place: &str) -> Sought {
        let terms =
            Terms { layer: Layer::Template, limits: None, may_relax: false, read_secrets: false };
        let (digest, settings_digest) = (String::new(), String::new());
        Sought { place: place.to_owned(), digest, settings_digest, terms }
    }

    fn runs(what: Sought, tries: u32) -> Search {
        let task = tokio::spawn(std::future::pending::<()>()).abort_handle();
        Search::Runs { job: Running { what, task }, tries, why: None }
    }

    #[tokio::test]
    async fn what_cannot_be_loaded_now_is_tried_again_and_what_is_lost_is_not() {
        let (now, it, other) = (Instant::now(), sought("a"), sought("b"));
        let mut search = Search::default();
        assert_eq!(search.of(&it, now), Searched::Due { tries: 0 });
        search = runs(it.clone(), 0);
        assert_eq!(search.of(&it, now), Searched::Runs { tries: 0 });
        let failure = Failure { kind: FailureKind::NoRoom, message: String::new() };
        let not_now = Err(NotRestored::NotNow(failure.clone()));
        assert!(search.ended(it.clone(), not_now, now).is_none());
        assert_eq!(search.why_not_now(), Some(&failure));
        assert!(matches!(search.of(&it, now), Searched::Waits(_)));
        assert_eq!(search.of(&it, now + AGAIN.1), Searched::Due { tries: 1 });
        search = runs(it.clone(), 1);
        search.ended(it.clone(), Err(NotRestored::Lost), now);
        assert_eq!(search.of(&it, now + AGAIN.1), Searched::Lost);
        assert_eq!(search.of(&other, now), Searched::Due { tries: 0 });
    }

    #[tokio::test]
    async fn a_search_that_ends_after_another_has_begun_says_nothing_of_that() {
        let (now, it, other) = (Instant::now(), sought("a"), sought("b"));
        let mut search = runs(other.clone(), 0);
        assert!(search.ended(it, Err(NotRestored::Lost), now).is_none());
        assert_eq!(search.of(&other, now), Searched::Runs { tries: 0 });
    }
}
