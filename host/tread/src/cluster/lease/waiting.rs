//! Waiting for somebody else who holds a node.

use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt as _, watcher};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tread_console::print::warn;
use tread_enforce::by_hand::{Got, Hand, HeldBy, NotTaken};
use tread_kube::node_lease::name;

/// Takes a node's Lease; waits for so long at most until nobody else holds it. Gives also when that was
/// asked for which took it.
pub(super) async fn acquire(
    hand: &Hand,
    node: &str,
    lasts: Duration,
    reason: Option<&str>,
    wait: Duration,
) -> Result<(Got, Instant), NotTaken> {
    let deadline = Instant::now() + wait;
    let mut is_said = false;
    loop {
        let asked = Instant::now();
        let by = match hand.acquire(node, lasts, reason).await {
            Err(NotTaken::Held(by)) if Instant::now() < deadline => by,
            done => return done.map(|got| (got, asked)),
        };
        if !is_said {
            warn(&format!("{node} is not free yet: {by}"));
            is_said = true;
        }
        changed(hand, node, &by, deadline).await;
    }
}

/// Until the Lease is another one than was seen, may be taken, or the time is over.
async fn changed(hand: &Hand, node: &str, by: &HeldBy, deadline: Instant) {
    let free = by.free.map(|free| Instant::now() + free.since(by.now) + Duration::from_secs(1));
    let next = free.map_or(deadline, |free| free.min(deadline));
    let leases: Api<Lease> = Api::namespaced(hand.client.clone(), &hand.namespace);
    let name = name(node).unwrap_or_default();
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut events = std::pin::pin!(watcher(leases, config).default_backoff());
    let mut known = Known { version: by.version.clone(), is_there: false };
    let is_another = async {
        while let Some(event) = events.next().await {
            // A watch that failed begins again by itself.
            if event.is_ok_and(|event| known.is_outdated_by(&event)) {
                break;
            }
        }
    };
    tokio::select! {
        () = is_another => {}
        () = sleep_until(next) => {}
    }
}

/// What was seen of a Lease before it is watched.
struct Known {
    version: Option<String>,
    /// Whether it was in the list with which the watch begins.
    is_there: bool,
}

impl Known {
    /// Whether the Lease is another one by now: it may have become so before the watch began.
    fn is_outdated_by(&mut self, event: &Event<Lease>) -> bool {
        match event {
            Event::Init => {
                self.is_there = false;
                false
            }
            Event::InitApply(lease) | Event::Apply(lease) => {
                self.is_there = true;
                lease.metadata.resource_version != self.version
            }
            Event::InitDone => !self.is_there,
            Event::Delete(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    #[test]
    fn a_lease_that_became_another_one_before_the_watch_began_is_noticed() {
        let lease = |version: &str| Lease {
            metadata: ObjectMeta {
                resource_version: Some(version.to_owned()),
                ..ObjectMeta::default()
            },
            spec: None,
        };
        let notices = |events: &[Event<Lease>]| {
            let mut known = Known { version: Some("5".to_owned()), is_there: false };
            events.iter().any(|event| known.is_outdated_by(event))
        };
        let first =
            |version: &str| [Event::Init, Event::InitApply(lease(version)), Event::InitDone];
        assert!(!notices(&first("5")), "it is as it was");
        assert!(notices(&first("6")), "it was renewed, or taken");
        assert!(notices(&[Event::Init, Event::InitDone]), "it was given back");
        assert!(notices(&[&first("5")[..], &[Event::Apply(lease("6"))]].concat()));
        assert!(notices(&[&first("5")[..], &[Event::Delete(lease("5"))]].concat()));
        assert!(notices(&[&first("5")[..], &[Event::Init, Event::InitDone]].concat()));
    }
}
