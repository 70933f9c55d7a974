//! Watches that end as soon as they begin, as behind a proxy that does not stream: each is begun again
//! without an error, so that nothing else slows them down.

use crate::asking::pause;
use http::Uri;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A watch that is begun again within this time was short.
const SHORT: Duration = Duration::from_secs(1);
/// How long is waited before it is begun again, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
/// After so many short ones in a row the log says so.
const SAID_AFTER: u32 = 5;
/// So many watches are remembered. tread has about 25 at a time.
const MOST: usize = 256;

/// When each watch was begun last. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ShortWatches(Arc<Mutex<HashMap<String, Begun>>>);

#[derive(Debug)]
struct Begun {
    at: Instant,
    /// How many were short, one after the other.
    short: u32,
}

impl ShortWatches {
    /// How long to wait before this one is begun. It counts as begun then.
    pub(crate) fn pause(&self, uri: &Uri, now: Instant) -> Duration {
        let watched = watched(uri);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            all.retain(|_, begun| now < begun.at + WAITS.1);
        }
        let before = all.get(&watched);
        let short = match before {
            Some(begun) if now < begun.at + SHORT => begun.short.saturating_add(1),
            _ => 0,
        };
        if short == SAID_AFTER {
            tracing::warn!(
                watch = watched,
                "ends as soon as it begins, and is begun again after a pause: is there a proxy before \
                 the API server that does not stream?"
            );
        }
        let wait = match short.checked_sub(1) {
            Some(failures) => pause(WAITS, failures),
            None => Duration::ZERO,
        };
        if all.len() < MOST || all.contains_key(&watched) {
            all.insert(watched, Begun { at: now + wait, short });
        }
        wait
    }
}

/// Whether something is watched by this request.
pub(crate) fn is_watch(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|part| part == "watch=true"))
}

/// What is watched, from whatever version on.
fn watched(uri: &Uri) -> String {
    let parts = uri.query().unwrap_or_default().split('&');
    let kept: Vec<&str> = parts.filter(|part| !part.starts_with("resourceVersion=")).collect();
    format!("{}?{}", uri.path(), kept.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(query: &str) -> Uri {
        format!("/api/v1/nodes?{query}").parse().unwrap()
    }

    #[test]
    fn only_a_watch_that_ends_as_soon_as_it_begins_waits_and_longer_each_time() {
        let (watches, mut now) = (ShortWatches::default(), Instant::now());
        let of = |version: u32| {
            uri(&format!("&watch=true&timeoutSeconds=290&resourceVersion={version}"))
        };
        assert_eq!(watches.pause(&of(1), now), Duration::ZERO);
        let (mut last, mut all) = (Duration::ZERO, Duration::ZERO);
        for version in 2..12 {
            let wait = watches.pause(&of(version), now);
            assert!(wait >= last.min(WAITS.1 / 2) && wait > Duration::ZERO && wait <= WAITS.1);
            (last, all) = (wait, all + wait);
            now += wait;
            // Another one does not wait for it.
            assert_eq!(
                watches.pause(&uri(&format!("watch=true&n={version}")), now),
                Duration::ZERO
            );
        }
        assert!(all > Duration::from_secs(10), "{all:?}");
        // One that lasted was none of these.
        now += SHORT;
        assert_eq!(watches.pause(&of(12), now), Duration::ZERO);
        assert!(watches.pause(&of(13), now) <= WAITS.0);
    }

    #[test]
    fn no_more_are_remembered_than_there_is_room_for() {
        let (watches, now) = (ShortWatches::default(), Instant::now());
        for number in 0..2 * MOST {
            watches.pause(&uri(&format!("watch=true&n={number}")), now);
        }
        assert_eq!(watches.0.lock().unwrap().len(), MOST);
        watches.pause(&uri("watch=true"), now + WAITS.1);
        assert_eq!(watches.0.lock().unwrap().len(), 1);
    }

    #[test]
    fn a_watch_is_told_from_a_list() {
        assert!(is_watch(&uri("&watch=true&timeoutSeconds=290")));
        assert!(!is_watch(&uri("limit=500&resourceVersion=0")));
        assert!(!is_watch(&"/api/v1/nodes".parse().unwrap()));
    }
}
