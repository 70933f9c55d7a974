//! What several tests share.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails the test, and not every test uses all"
)]

pub mod proxy;
pub mod web;

use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Waits for something that has to come, however slow the machine is.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "waited in vain: {what}");
        sleep(Duration::from_millis(20)).await;
    }
}
