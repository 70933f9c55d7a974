//! Killed at any moment of an operation, with a real systemd.

use crate::cut::Cut;
use crate::node::{Bed, config, unit_with};
use crate::reload;
use tread_node::operation::Ended;

#[test]
fn killed_at_any_moment_the_unit_has_read_what_is_on_the_disk_with_one_reload_more_at_most() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    let whole = Cut::never();
    bed.carry_out_watched(&config("two"), &reload(), whole.clone()).unwrap();
    let moments = whole.seen();
    let every = std::env::var("TREAD_CRASHES").ok().and_then(|it| it.parse().ok()).unwrap_or(40);
    let stride = moments.div_ceil(every).max(1);
    let (mut there, mut next) = ("two", "one");
    for at in (0..moments).step_by(stride) {
        let before = bed.log().len();
        let _ = bed.carry_out_watched(&config(next), &reload(), Cut::at(at));
        let ended = bed.go_on().unwrap();
        let log = bed.log();
        let (said, more) = (log.last().unwrap(), log.len() - before);
        let has = bed.text("/etc/a.conf").unwrap();
        match ended {
            Ended::Done | Ended::Nothing | Ended::WentBack { .. } => {}
            other => panic!("killed at {at}: {other:?}"),
        }
        assert!(said.ends_with(&has), "killed at {at}: {said:?}, and the file has {has}");
        assert!(has == there || has == next, "killed at {at}: {has}");
        assert!(more <= 2, "killed at {at}: {more} reloads");
        if has == next {
            (there, next) = (next, there);
        }
    }
    assert_eq!(bed.machine.boots().len(), 1);
}
