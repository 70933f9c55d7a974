//! How long something may take: its own processor time is what counts, so that
//! a busy machine changes nothing; the wall clock only ends what hangs.

use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// The processor time that something may take, and the wall clock after which
/// it counts as hanging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time {
    pub(crate) processor: Duration,
    pub(crate) wall: Duration,
}

/// What was taken of a [`Time`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    pub(crate) processor: Duration,
    pub(crate) wall: Duration,
}

/// Which of the two was too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TooLong {
    /// It computes and computes.
    #[error("it took more than {} s of processor time", .0.as_secs_f64())]
    Processor(Duration),
    /// It did not get to compute, or waits for something.
    #[error(
        "it did not end within {} s, though it took little processor time: this machine is very \
         busy, or it hangs",
        .0.as_secs_f64()
    )]
    Wall(Duration),
}

impl Time {
    /// `patience` is the wall clock in multiples of the processor time.
    pub(crate) fn new(processor: Duration, patience: u32) -> Time {
        Time { processor, wall: processor.saturating_mul(patience) }
    }

    /// How long it takes at least until the time could be over: a single thread cannot
    /// use its processor time up faster.
    pub(crate) fn left(&self, taken: Taken) -> Result<Duration, TooLong> {
        if taken.processor >= self.processor {
            return Err(TooLong::Processor(self.processor));
        }
        if taken.wall >= self.wall {
            return Err(TooLong::Wall(self.wall));
        }
        let processor = self.processor.saturating_sub(taken.processor);
        Ok(processor.min(self.wall.saturating_sub(taken.wall)))
    }
}

/// Both clocks of the current thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    processor: Duration,
    wall: Instant,
}

impl Stopwatch {
    /// For what began a moment ago, whose processor time counts from now on only.
    pub(crate) fn since(began: Instant) -> Stopwatch {
        Stopwatch { processor: of_this_thread(), wall: began }
    }

    /// To be asked on the thread that started it.
    pub(crate) fn taken(&self) -> Taken {
        Taken {
            processor: of_this_thread().saturating_sub(self.processor),
            wall: self.wall.elapsed(),
        }
    }
}

/// The processor time that the current thread has had.
fn of_this_thread() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The processor time of a process of ours, all its threads together. Zero where
/// the system does not tell, so that there only the wall clock counts.
pub(crate) fn of_process(id: u32) -> Duration {
    of_stat(&format!("/proc/{id}/stat"))
}

/// The processor time that a thread of this process has had.
pub(crate) fn of_thread(id: rustix::process::Pid) -> Duration {
    of_stat(&format!("/proc/self/task/{}/stat", id.as_raw_nonzero()))
}

fn of_stat(path: &str) -> Duration {
    let ticks = std::fs::read_to_string(path).ok().and_then(|text| ticks(&text)).unwrap_or(0);
    let millis = ticks.saturating_mul(1000).checked_div(clock_ticks_per_second());
    Duration::from_millis(millis.unwrap_or(0))
}

/// The time in user and in kernel mode, of a line in `proc_pid_stat(5)`. The
/// name, which may hold anything, is the second field and stands in brackets.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_ascii_whitespace().skip(11);
    let (user, kernel): (u64, u64) = (times.next()?.parse().ok()?, times.next()?.parse().ok()?);
    Some(user.saturating_add(kernel))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(processor: u64, wall: u64) -> Taken {
        Taken { processor: Duration::from_millis(processor), wall: Duration::from_millis(wall) }
    }

    #[test]
    fn what_a_thread_computes_counts_and_not_how_long_it_waits_for_a_processor() {
        let time = Time::new(Duration::from_millis(100), 10);
        let left = |millis| Ok(Duration::from_millis(millis));
        for (processor, wall, expected) in [
            (0, 0, left(100)),
            (40, 40, left(60)),
            (99, 900, left(1)),
            (10, 999, left(1)),
            (100, 100, Err(TooLong::Processor(time.processor))),
            (100, 5_000, Err(TooLong::Processor(time.processor))),
            (10, 1_000, Err(TooLong::Wall(time.wall))),
        ] {
            assert_eq!(time.left(taken(processor, wall)), expected, "{processor} {wall}");
        }
    }

    #[test]
    fn a_thread_that_waits_takes_no_processor_time() {
        let watch = Stopwatch::since(Instant::now());
        while watch.taken().wall < Duration::from_millis(100) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(watch.taken().processor < Duration::from_millis(50));
        while watch.taken().processor < Duration::from_millis(50) {}
    }

    #[test]
    fn the_times_of_a_process_are_found_behind_whatever_name_it_has() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 250 50 9 9 20 0 4 0 1 1 1";
        assert_eq!(ticks(stat), Some(300));
        for broken in ["", "7 (a", "7 (a) S 1 7"] {
            assert_eq!(ticks(broken), None, "{broken}");
        }
    }

    #[test]
    fn this_process_and_this_thread_have_taken_time() {
        while of_process(std::process::id()).is_zero() {}
        while of_thread(rustix::thread::gettid()).is_zero() {}
        assert_eq!(of_process(u32::MAX), Duration::ZERO);
    }
}
