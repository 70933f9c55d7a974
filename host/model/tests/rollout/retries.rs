//! When a node that failed is begun again by itself.

use std::time::Duration;
use tread_model::protocol::Time;
use tread_model::rollout::Retry;

#[test]
fn each_pause_is_twice_as_long_and_there_is_a_last_one() {
    let failed = Time(Duration::from_secs(1_000_000));
    const DAY: u64 = 24 * 60 * 60;
    for (attempts, first_after, tried, pause) in [
        (3, 600, 0, Some(600)),
        (3, 600, 1, Some(1200)),
        (3, 600, 2, Some(2400)),
        (3, 600, 3, None),
        (3, 600, u32::MAX, None),
        (0, 600, 0, None),
        (1, 0, 0, Some(0)),
        // No pause is longer than a day, whatever an admin writes and however often it was tried.
        (10, 20 * 60 * 60, 1, Some(DAY)),
        (10, 7 * DAY, 0, Some(DAY)),
        (u32::MAX, 600, 31, Some(DAY)),
        (u32::MAX, 600, 32, Some(DAY)),
        (u32::MAX, u64::MAX, 99, Some(DAY)),
    ] {
        let retry = Retry { attempts, first_after: Duration::from_secs(first_after) };
        let expected = pause.map(|pause| failed.after(Duration::from_secs(pause)));
        assert_eq!(retry.at(failed, tried), expected, "{attempts} {first_after} {tried}");
    }
}
