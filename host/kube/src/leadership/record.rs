//! What is in the Lease, and what follows from it: pure functions.

use crate::api::words::{NAME, PART_OF_LABEL};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// No Lease of tread lasts longer.
const LONGEST: Duration = Duration::from_secs(600);

/// How fast an election is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timings {
    /// For how long a Lease that is not renewed keeps others away.
    pub lease: Duration,
    /// For how long a leader that cannot renew goes on.
    pub deadline: Duration,
    /// How often the leader renews.
    pub renew: Duration,
    /// How long to wait after a request that failed.
    pub retry: Duration,
    /// How long an answer may take.
    pub request: Duration,
    /// Nobody waits longer for a holder that is gone, whatever the Lease says.
    pub longest: Duration,
}

impl Default for Timings {
    fn default() -> Timings {
        Timings {
            lease: Duration::from_secs(15),
            deadline: Duration::from_secs(10),
            renew: Duration::from_secs(3),
            retry: Duration::from_secs(1),
            request: Duration::from_secs(3),
            longest: LONGEST,
        }
    }
}

/// Timings that could give two leaders, or none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimingsError {
    /// Another one could take over while the leader goes on.
    #[error(
        "the leader goes on for {deadline:?} without renewal, but others may take over after \
         {lease:?}: the first has to be at most three quarters of the second"
    )]
    TwoLeaders {
        /// What was given.
        deadline: Duration,
        /// What was given.
        lease: Duration,
    },
    /// The leader would step down between two renewals.
    #[error(
        "the leader renews every {renew:?}, but steps down {deadline:?} after a renewal: the \
         first has to be at most half of the second"
    )]
    NoLeader {
        /// What was given.
        renew: Duration,
        /// What was given.
        deadline: Duration,
    },
    /// The API server keeps whole seconds.
    #[error("a Lease lasts for whole seconds, 1 to 600, not {0:?}")]
    NotWholeSeconds(Duration),
    /// A request without time would always fail, and be tried without pause.
    #[error("the times to wait for an answer and after a failure must not be zero")]
    Zero,
}

impl Timings {
    pub(super) fn check(&self) -> Result<(), TimingsError> {
        let Timings { lease, deadline, renew, retry, request, longest } = *self;
        if lease.subsec_nanos() != 0 || lease.is_zero() || lease > LONGEST {
            return Err(TimingsError::NotWholeSeconds(lease));
        }
        // A quarter for clocks that do not run equally fast, and to stop in.
        if deadline * 4 > lease * 3 {
            return Err(TimingsError::TwoLeaders { deadline, lease });
        }
        if renew * 2 > deadline {
            return Err(TimingsError::NoLeader { renew, deadline });
        }
        if [retry, request, renew, longest].iter().any(Duration::is_zero) {
            return Err(TimingsError::Zero);
        }
        Ok(())
    }
}

/// A Lease as it was seen, and since when it says what it says.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    /// None: there is none.
    pub(super) lease: Option<Lease>,
    since: Instant,
    /// Whether this candidate saw a leader, or another Lease or none, before.
    had_leader: bool,
}

impl Observed {
    /// Notes what was seen. The time begins anew only when the record itself
    /// changed: a label on it, or seeing it again, does not renew it. `led` says
    /// whether this candidate itself led before.
    pub(super) fn note(
        earlier: Option<Observed>,
        lease: Option<Lease>,
        led: bool,
        now: Instant,
    ) -> Observed {
        let uid = |lease: Option<&Lease>| lease.and_then(|it| it.metadata.uid.clone());
        let had_leader = earlier.as_ref().is_some_and(|earlier| {
            earlier.had_leader
                || earlier.holder().is_some()
                || uid(earlier.lease.as_ref()) != uid(lease.as_ref())
        });
        let since = earlier
            .filter(|earlier| record(earlier.lease.as_ref()) == record(lease.as_ref()))
            .map_or(now, |earlier| earlier.since);
        Observed { lease, since, had_leader: had_leader || led }
    }

    /// From when on this candidate may try to take it.
    pub(super) fn free_at(&self, identity: &str, timings: &Timings) -> Instant {
        let own = timings.lease;
        // The holder of a Lease that was deleted may not know that yet.
        let Some(lease) = &self.lease else { return self.since + own };
        let never_held = LeaseSpec::default();
        let spec = lease.spec.as_ref().unwrap_or(&never_held);
        let is_new = spec.lease_transitions.is_none();
        match spec.holder_identity.as_deref() {
            // A Lease that nobody ever held took the place of the leader's.
            None | Some("") if is_new && self.had_leader => self.since + own,
            None | Some("") => self.since,
            // A write of ours came through after we had given up on it.
            Some(holder) if holder == identity => self.since,
            Some(_) => {
                let theirs = spec.lease_duration_seconds.and_then(|s| u64::try_from(s).ok());
                let theirs = theirs.map_or(own, Duration::from_secs).min(timings.longest);
                self.since + theirs.max(own)
            }
        }
    }

    /// Who holds it.
    pub(super) fn holder(&self) -> Option<&str> {
        self.lease.as_ref().and_then(holder)
    }
}

/// Two Leases of one name are different ones, if one was deleted in between.
fn record(lease: Option<&Lease>) -> Option<(Option<&str>, Option<&LeaseSpec>)> {
    lease.map(|lease| (lease.metadata.uid.as_deref(), lease.spec.as_ref()))
}

/// Who holds a Lease.
pub(super) fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

/// The Lease as this candidate takes or renews it; what else is in it stays.
pub(super) fn held(
    lease: Option<&Lease>,
    (namespace, name): (&str, &str),
    identity: &str,
    duration: Duration,
    now: Timestamp,
) -> Lease {
    let mut lease = lease.cloned().unwrap_or_else(|| Lease {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            labels: Some(BTreeMap::from([(PART_OF_LABEL.to_owned(), NAME.to_owned())])),
            ..ObjectMeta::default()
        },
        spec: None,
    });
    let mine = holder(&lease) == Some(identity);
    let spec = lease.spec.get_or_insert_default();
    if !mine {
        // With these fields a stranger could have Kubernetes' own controller choose the leader.
        spec.strategy = None;
        spec.preferred_holder = None;
        spec.acquire_time = Some(MicroTime(now));
        let earlier = spec.lease_transitions.unwrap_or_default();
        spec.lease_transitions = Some(earlier.saturating_add(1));
    }
    spec.holder_identity = Some(identity.to_owned());
    spec.lease_duration_seconds = Some(i32::try_from(duration.as_secs()).unwrap_or(i32::MAX));
    spec.renew_time = Some(MicroTime(now));
    lease
}

/// The Lease as it is given up.
pub(super) fn released(mut lease: Lease) -> Lease {
    if let Some(spec) = lease.spec.as_mut() {
        spec.holder_identity = None;
        spec.lease_duration_seconds = Some(1);
    }
    lease
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: (&str, &str) = ("tread-system", "tread");
    const OWN: Duration = Duration::from_secs(15);

    fn free_at(seen: &Observed) -> Instant {
        seen.free_at("a", &Timings::default())
    }

    fn note(earlier: Option<Observed>, lease: Option<Lease>, now: Instant) -> Observed {
        Observed::note(earlier, lease, false, now)
    }

    fn taken(by: &str, second: i64) -> Lease {
        held(None, NAME, by, OWN, Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn timings_that_could_give_two_leaders_or_none_are_refused() {
        let good = Timings::default();
        assert_eq!(good.check(), Ok(()));
        let seconds = Duration::from_secs;
        for (bad, says) in [
            (Timings { deadline: seconds(15), ..good }, "three quarters"),
            (Timings { deadline: seconds(12), ..good }, "three quarters"),
            (Timings { renew: seconds(6), ..good }, "half"),
            (Timings { lease: Duration::from_millis(15_500), ..good }, "whole seconds"),
            (Timings { lease: seconds(0), ..good }, "whole seconds"),
            (Timings { lease: seconds(3600), ..good }, "whole seconds"),
            (Timings { retry: seconds(0), ..good }, "zero"),
            (Timings { request: seconds(0), ..good }, "zero"),
        ] {
            let error = bad.check().unwrap_err().to_string();
            assert!(error.contains(says), "{bad:?}: {error}");
        }
    }

    #[test]
    fn a_lease_is_free_when_it_did_not_change_for_its_duration_by_the_own_clock() {
        let start = Instant::now();
        // Whatever the time in it says: long ago, or in the future.
        for second in [0, 4_000_000_000] {
            let seen = note(None, Some(taken("b", second)), start);
            assert_eq!(free_at(&seen), start + OWN);
            let later = start + Duration::from_secs(5);
            let again = note(Some(seen.clone()), Some(taken("b", second)), later);
            assert_eq!(free_at(&again), start + OWN, "seeing it again renews nothing");
            let renewed = note(Some(seen), Some(taken("b", second + 1)), later);
            assert_eq!(free_at(&renewed), later + OWN);
        }
    }

    #[test]
    fn nobody_holds_a_released_and_an_own_lease() {
        let now = Instant::now();
        let mut labelled = released(taken("b", 1));
        labelled.spec.as_mut().unwrap().holder_identity = Some(String::new());
        for lease in [
            Some(released(taken("b", 1))),
            Some(labelled),
            Some(taken("a", 1)),
            Some(Lease::default()),
        ] {
            assert_eq!(free_at(&note(None, lease.clone(), now)), now, "{lease:?}");
        }
    }

    #[test]
    fn whoever_held_a_lease_that_was_deleted_may_go_on_for_as_long_as_it_lasts() {
        let start = Instant::now();
        let later = start + Duration::from_secs(5);
        let held = note(None, Some(taken("b", 1)), start);
        let gone = note(Some(held), None, later);
        assert_eq!(free_at(&gone), later + OWN);
        // Who starts now does not know what there was.
        assert_eq!(free_at(&note(None, None, start)), start + OWN);
    }

    #[test]
    fn whoever_held_a_lease_that_was_made_anew_may_go_on_for_as_long_as_it_lasts() {
        let start = Instant::now();
        let later = start + Duration::from_secs(5);
        let anew = |uid: &str, spec: Option<LeaseSpec>| {
            let mut lease = Lease { spec, ..Lease::default() };
            lease.metadata.uid = Some(uid.to_owned());
            Some(lease)
        };
        let empty = || anew("2", Some(LeaseSpec::default()));
        let held = Observed::note(None, Some(taken("b", 1)), false, start);
        for (earlier, lease) in [
            (held.clone(), empty()),
            (held, anew("2", None)),
            (note(None, None, start), empty()),
            (note(None, anew("1", None), start), empty()),
        ] {
            let seen = note(Some(earlier), lease.clone(), later);
            assert_eq!(free_at(&seen), later + OWN, "{lease:?}");
            let again = note(Some(seen), lease, later + OWN);
            assert_eq!(free_at(&again), later + OWN, "seeing it again renews nothing");
        }
        // Whoever led may not know who came after it.
        assert_eq!(free_at(&Observed::note(None, empty(), true, start)), start + OWN);
        // The first candidate takes the Lease of the manifests at once. What a leader gave up anybody
        // takes at once.
        let first = note(None, empty(), start);
        assert_eq!(free_at(&first), start);
        assert_eq!(free_at(&note(Some(first), empty(), later)), start);
        let given_up = note(None, Some(taken("b", 1)), start);
        let given_up = note(Some(given_up), Some(released(taken("b", 1))), later);
        assert_eq!(free_at(&given_up), later);
    }

    #[test]
    fn the_longer_of_both_durations_counts_up_to_a_bound() {
        let now = Instant::now();
        for (theirs, expected) in
            [(Some(1), 15), (Some(60), 60), (Some(i32::MAX), 600), (Some(-5), 15), (None, 15)]
        {
            let mut lease = taken("b", 1);
            lease.spec.as_mut().unwrap().lease_duration_seconds = theirs;
            let free = free_at(&note(None, Some(lease), now));
            assert_eq!(free, now + Duration::from_secs(expected), "{theirs:?}");
        }
    }

    #[test]
    fn a_takeover_is_counted_and_a_renewal_is_not() {
        let first = taken("a", 1);
        let at = |second| Timestamp::from_second(second).unwrap();
        let renewed = held(Some(&first), NAME, "a", OWN, at(2)).spec.unwrap();
        assert_eq!(renewed.lease_transitions, Some(1));
        assert_eq!(renewed.acquire_time, Some(MicroTime(at(1))));
        assert_eq!(renewed.renew_time, Some(MicroTime(at(2))));
        let over = held(Some(&released(first)), NAME, "b", OWN, at(3)).spec.unwrap();
        assert_eq!(over.lease_transitions, Some(2));
        assert_eq!(over.acquire_time, Some(MicroTime(at(3))));
        assert_eq!(over.holder_identity.as_deref(), Some("b"));
        assert_eq!(over.lease_duration_seconds, Some(15));
    }
}
