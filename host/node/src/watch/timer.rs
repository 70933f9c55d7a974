//! A time that is waited for with one wake-up. The runtime's own timers take several for a
//! time that is far away.

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::fs::File;
use std::future::pending;
use std::io;
use std::time::{Duration, Instant};
use tokio::net::unix::pipe::Receiver;

/// Waits until then.
pub(super) async fn wait_until(then: Instant) {
    let left = then.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return;
    }
    match timer(left) {
        Ok(timer) => drop(timer.readable().await),
        // Without room for one more file, a few wake-ups more.
        Err(_) => tokio::time::sleep(left).await,
    }
}

fn timer(left: Duration) -> io::Result<Receiver> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
    let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
    let it_value = Timespec {
        tv_sec: i64::try_from(left.as_secs()).map_err(io::Error::other)?,
        tv_nsec: left.subsec_nanos().into(),
    };
    let once = Itimerspec { it_interval: zero, it_value };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &once)?;
    waited_on(timer)
}

/// What is waited on until something can be read. The process is woken by each event as
/// long as it lives.
pub(super) fn waited_on(file: std::os::fd::OwnedFd) -> io::Result<Receiver> {
    // It is no pipe, but is waited on as one: what else takes any file is unsafe.
    Receiver::from_file_unchecked(File::from(file))
}

/// Whether there is something to read before that time.
pub(super) async fn readable_before(then: Instant, file: io::Result<Receiver>) -> bool {
    let readable = async {
        match file {
            Ok(file) => file.readable().await.is_ok(),
            Err(_) => pending().await,
        }
    };
    tokio::select! {
        biased;
        readable = readable => readable,
        () = wait_until(then) => false,
    }
}
