//! Waiting for somebody else who holds a node.

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::runtime::{WatchStreamExt as _, watcher};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tread_console::print::warn;
use tread_enforce::by_hand::{Hand, HeldBy, NotTaken};
use tread_kube::node_lease::name;
use tread_model::protocol::Time;

/// Takes a node's Lease; waits for so long at most until nobody else holds it.
pub(super) async fn acquire(
    hand: &Hand,
    node: &str,
    lasts: Duration,
    reason: Option<&str>,
    wait: Duration,
) -> Result<Time, NotTaken> {
    let deadline = Instant::now() + wait;
    let mut is_said = false;
    loop {
        let by = match hand.acquire(node, lasts, reason).await {
            Err(NotTaken::Held(by)) if Instant::now() < deadline => by,
            done => return done,
        };
        if !is_said {
            warn(&format!("{node} is not free yet: {by}"));
            is_said = true;
        }
        changed(hand, node, &by, deadline).await;
    }
}

/// Until the Lease is another one, may be taken, or the time is over.
async fn changed(hand: &Hand, node: &str, by: &HeldBy, deadline: Instant) {
    let free = by.free.map(|free| Instant::now() + free.since(by.now) + Duration::from_secs(1));
    let next = free.map_or(deadline, |free| free.min(deadline));
    let leases: Api<Lease> = Api::namespaced(hand.client.clone(), &hand.namespace);
    let name = name(node).unwrap_or_default();
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    // The first one is what is known.
    let events = watcher(leases, config).default_backoff().touched_objects();
    let others = events.into_stream().skip(1);
    tokio::pin!(others);
    let is_another = async {
        while others.try_next().await.ok().flatten().is_none() {
            // A watch that failed begins again by itself.
        }
    };
    tokio::select! {
        () = is_another => {}
        () = sleep_until(next) => {}
    }
}
