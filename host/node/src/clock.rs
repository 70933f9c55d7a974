//! The node's own clock for how long something holds: it counts from the boot, goes on while
//! the node sleeps, and nobody can set it.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The time since this boot.
pub fn since_boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}
