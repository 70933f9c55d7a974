//! What an operation costs: calls over D-Bus, and its own time beside the unit's.
#![allow(clippy::print_stdout, reason = "a figure is shown by printing it")]

use crate::node::{Bed, WELL_FOR, config, config_with, unit_with};
use crate::{reload, restart};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tread_model::plan::Step;
use tread_node::operation::Ended;
use tread_node::tree::{Syscall, Witness};

/// It takes 25; each change of the unit that systemd tells of meanwhile is looked at once,
/// and how many it tells of apart depends on how busy the machine is.
const MOST_CALLS: u64 = 40;

#[test]
fn a_reload_and_a_restart_take_few_calls_over_dbus_whatever_the_config_has() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    for (word, steps) in [("two", reload()), ("three", restart())] {
        let (ended, calls) = bed.calls_of(&config(word), &steps);
        assert_eq!(ended, Ended::Done);
        assert!(calls <= MOST_CALLS, "{steps:?} took {calls} calls");
    }
}

/// A config as clusters have it: 150 files and 60 units besides the unit's own file.
pub(crate) fn typical(word: &str) -> tread_node::documents::Documents {
    let file = |index: usize| {
        let text = format!("key{index}%20=%20value%0A").repeat(10 + index * 7 % 300);
        format!(
            r#"{{"path": "/etc/typical/{index}.conf", "contents": {{"source": "data:,{text}"}}}},"#
        )
    };
    let unit = |index: usize| {
        format!(
            r#"{{"name": "u{index}.service", "enabled": true, "contents":
                "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"}}"#
        )
    };
    let files: String = (0..150).map(file).collect();
    let units: Vec<String> = (0..60).map(unit).collect();
    config_with(word, &files, &units.join(", "))
}

#[derive(Default)]
struct Waited {
    began: Option<Instant>,
    syncs: Duration,
    changes: Duration,
}

/// How long the disk was waited for.
#[derive(Default)]
struct Disk(Mutex<Waited>);

impl Witness for Disk {
    fn before(&self, _: &Syscall<'_>) -> io::Result<()> {
        self.0.lock().unwrap().began = Some(Instant::now());
        Ok(())
    }

    fn after(&self, syscall: &Syscall<'_>) -> io::Result<()> {
        let mut seen = self.0.lock().unwrap();
        let took = seen.began.take().map(|began| began.elapsed()).unwrap_or_default();
        match syscall {
            Syscall::Sync { .. } | Syscall::SyncFolder { .. } => seen.syncs += took,
            _ => seen.changes += took,
        }
        Ok(())
    }
}

#[test]
fn one_changed_file_with_a_reload_shows_its_own_time_beside_the_units() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    let all = bed.carry_out(&typical("one"), &[Step::Write, Step::DaemonReload]).unwrap();
    assert_eq!(all, Ended::Done);
    let (mut outside, mut within) = (Vec::new(), Vec::new());
    let (mut syncs, mut changes) = (Vec::new(), Vec::new());
    let rounds = std::env::var("TREAD_ROUNDS").ok().and_then(|it| it.parse().ok()).unwrap_or(2);
    for round in 0..rounds {
        let word = if round % 2 == 0 { "two" } else { "one" };
        let disk = Arc::new(Disk::default());
        let (took, step) = bed.times_of(&typical(word), &reload(), disk.clone());
        let seen = disk.0.lock().unwrap();
        syncs.push(seen.syncs);
        changes.push(seen.changes);
        outside.push(took - step);
        within.push(step.saturating_sub(WELL_FOR));
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort();
        times[times.len() / 2]
    };
    println!("outside of the reload: {:?}", median(&mut outside));
    println!("of which in syncs: {:?}", median(&mut syncs));
    println!("of which in other changes of the disk: {:?}", median(&mut changes));
    println!("the reload, without the time to stay well: {:?}", median(&mut within));
}
