//! A real control plane for tests: etcd, the API server, and as wanted the
//! controller manager, the scheduler and simulated nodes. Fresh within seconds,
//! and gone with whoever started it, however they end.
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use tread_test_bed::ControlPlane;
//!
//! let plane = ControlPlane::options().with_controllers().with_simulated_nodes().start()?;
//! plane.create_nodes("worker", 3).await?;
//! println!("{}", plane.kubectl(&["get", "nodes"])?.success()?);
//! # Ok(())
//! # }
//! ```
//!
//! The tests of one binary share one ([`shared`], or a [`Shared`] of their own)
//! and keep apart by names: [`ControlPlane::namespace`], [`unique`]. Those that need a control
//! plane for themselves use one after the other: [`Options::maybe_used`].
//!
//! `tests/run --only cluster` builds what it needs, and says where it is by
//! `TREAD_BED`. With `TREAD_BED_KEEP` set, logs and data are kept.

mod access;
mod control_plane;
mod faults;
mod golden;
mod nodes;
mod parts;
mod refusal;
mod reuse;
mod shared;
mod supervisor;

use std::net::TcpListener;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub use access::{Access, Ran};
pub use control_plane::ControlPlane;
pub use faults::{Full, Paused};
pub use golden::{golden, is_update};
pub use parts::{Options, Part};
pub use refusal::refusal;
pub use shared::{Shared, shared};
pub use supervisor::{Signal, Write};

/// Nothing that a test waits for takes so long.
const LONG: Duration = Duration::from_secs(600);
/// Between two looks, at first and after a second: long enough that tests which wait leave the machine
/// to those that do something, and short enough to see what does not last.
const BETWEEN: Duration = Duration::from_millis(20);
const BETWEEN_LATER: Duration = Duration::from_millis(100);
const LONGEST_BETWEEN: Duration = Duration::from_secs(3);
/// The first port of [`free_port`], and how many there are: those from 30,000 on are for Services of the
/// kind NodePort, and the kernel gives out those from 32,768 on.
const FIRST_PORT: u32 = 23_000;
const PORTS: u32 = 7_000;

/// Waits for something that has to come, however slow the machine is. The time
/// only ends a test that would hang. Between two looks it waits for three times as long
/// as the last one took, so that looking leaves most of the machine to what is waited for.
#[expect(clippy::panic, reason = "it fails the test that waits")]
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        let looked = Instant::now();
        if let Some(found) = look().await {
            return found;
        }
        if begun.elapsed() > LONG {
            panic!("waited in vain: {what}");
        }
        let least = (begun.elapsed() / 10).clamp(BETWEEN, BETWEEN_LATER);
        tokio::time::sleep((looked.elapsed() * 3).clamp(least, LONGEST_BETWEEN)).await;
    }
}

/// Asks an API server until it says something: where it is too busy to take a connection, a test
/// that goes on asking is told later.
///
/// # Errors
/// What it refuses; what it failed with for so long that a test would hang.
pub async fn answered<T, A>(ask: impl Fn() -> A) -> kube::Result<T>
where
    A: Future<Output = kube::Result<T>>,
{
    let begun = Instant::now();
    loop {
        match ask().await {
            Err(error) if !is_answer(&error) && begun.elapsed() < LONG => {}
            answer => return answer,
        }
        tokio::time::sleep(BETWEEN_LATER).await;
    }
}

fn is_answer(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code < 500 && status.code != 429)
}

/// A port on which nothing listens, at any address. The kernel gives it to nobody who asks for any
/// port, so it is still free when it is listened on later.
#[expect(clippy::panic, reason = "it fails the test that needs one")]
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..PORTS {
        // Processes that run side by side begin at different ones.
        let begin = process::id().wrapping_mul(97);
        let number = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(begin);
        if let Ok(port) = u16::try_from(FIRST_PORT + number % PORTS)
            && TcpListener::bind(("0.0.0.0", port)).is_ok()
        {
            return port;
        }
    }
    panic!("something listens on each of the {PORTS} ports from {FIRST_PORT} on");
}

/// A name that nothing else on the machine uses, fit for a Kubernetes object.
pub fn unique(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}-{}-{number}", process::id())
}
