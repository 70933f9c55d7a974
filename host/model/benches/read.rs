//! How long it takes to read two configs and to compare them, against the
//! floor: parsing both as `serde_json::Value`.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub
)]

#[path = "../../tread/benches/plan/pairs.rs"]
mod pairs;

use pairs::{Differs, Size};
use std::hint::black_box;
use std::time::{Duration, Instant};
use tread_model::read::{Input, diagnosed, sides};

fn main() {
    println!(
        "{:>8} {:>7} {:>8} {:>9} {:>15} {:>15} {:>15}",
        "", "differs", "KB", "floor", "read", "read + diff", "diagnosed"
    );
    let both = [Differs::File, Differs::Mirror].map(|it| pairs::SIZES.map(|size| (size, it)));
    for (size, differs) in both.into_iter().flatten() {
        let (old, new) = pairs::pair(size, differs);
        let old = [Input { name: "old.json", bytes: &old }];
        let new = [Input { name: "new.json", bytes: &new }];
        let rounds = if size == Size::Large { 60 } else { 400 };
        // Interleaved, because the machine's speed drifts.
        let mut times: [Vec<Duration>; 4] = Default::default();
        for _ in 0..rounds {
            times[0].push(time(|| {
                let value = |input: &Input<'_>| -> serde_json::Value {
                    serde_json::from_slice(input.bytes).expect("the pair is JSON")
                };
                (value(&old[0]), value(&new[0]))
            }));
            times[1].push(time(|| sides(&old, &new).expect("the pair is readable")));
            times[2].push(time(|| {
                let (old, new) = sides(&old, &new).expect("the pair is readable");
                let compared = tread_model::diff::compare(&old.config, &new.config);
                black_box(&compared);
                drop(compared);
                (old, new)
            }));
            times[3].push(time(|| diagnosed(&old, &new).expect("the pair is readable")));
        }
        let [floor, read, compared, diagnosed] = times.map(median);
        let row = |time: Duration| {
            let ratio = time.as_secs_f64() / floor.as_secs_f64();
            format!("{:.4} ({ratio:.2})", time.as_secs_f64() * 1e3)
        };
        println!(
            "{:>8} {:>7} {:>8} {:>9.4} {:>15} {:>15} {:>15}",
            size.name(),
            format!("{differs:?}"),
            (old[0].bytes.len() + new[0].bytes.len()) / 1024,
            floor.as_secs_f64() * 1e3,
            row(read),
            row(compared),
            row(diagnosed),
        );
    }
    println!("medians in ms, and their ratio to the floor");
}

/// What is dropped counts too.
fn time<T>(run: impl FnOnce() -> T) -> Duration {
    // The allocator tidies up after the one before: not on this one's account.
    drop(black_box(Vec::<u8>::with_capacity(64 * 1024)));
    let start = Instant::now();
    drop(black_box(run()));
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
