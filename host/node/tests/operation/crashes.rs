//! Killed at any moment of an operation, with a real systemd.

use crate::cut::Cut;
use crate::node::{Bed, config, unit_with};
use crate::{reload, with_password};
use std::time::Duration;
use tread_node::operation::Ended;
use tread_test_machine::Machine;

/// In how many runs it is killed, unless `TREAD_CRASHES` says otherwise.
pub(crate) struct Runs(usize);

impl Runs {
    pub(crate) fn usually(runs: usize) -> Runs {
        Runs(std::env::var("TREAD_CRASHES").ok().and_then(|it| it.parse().ok()).unwrap_or(runs))
    }

    /// How long a machine lives that goes through them, however busy this one is.
    pub(crate) fn lifetime(&self) -> Duration {
        Duration::from_secs(1800 + 60 * self.0 as u64)
    }

    /// The moments to be killed in, spread over all that there are. Where there are more runs
    /// than these, each moment is tried again and again.
    pub(crate) fn spread(self, moments: usize) -> impl Iterator<Item = usize> {
        (0..self.0).map(move |run| run * moments / self.0)
    }
}

fn bed(runs: &Runs) -> Bed {
    let machine = Machine::build().lifetime(runs.lifetime());
    Bed::of(machine, "one", &unit_with("/bin/true"), &config("one"))
}

#[test]
fn killed_at_any_moment_the_unit_has_read_what_is_on_the_disk_with_one_reload_more_at_most() {
    let runs = Runs::usually(40);
    let bed = bed(&runs);
    let whole = Cut::never();
    bed.carry_out_watched(&config("two"), &reload(), whole.clone()).unwrap();
    let moments = whole.seen();
    let (mut there, mut next) = ("two", "one");
    for at in runs.spread(moments) {
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

/// The hash of a user in the machine's /etc/shadow.
fn hash_of(bed: &Bed, user: &str) -> String {
    let text = bed.text("/etc/shadow").unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with(&format!("{user}:")));
    let hash = lines.next().unwrap().split(':').nth(1).unwrap().to_owned();
    assert!(lines.next().is_none(), "{user} has two lines");
    hash
}

#[test]
fn killed_at_any_moment_the_password_fits_the_files_and_those_of_others_are_theirs() {
    let runs = Runs::usually(20);
    let bed = bed(&runs);
    let root = bed.machine.root().unwrap();
    for user in ["core", "zoe"] {
        let add = ["useradd", "--no-create-home", user];
        bed.machine.run_well(add).unwrap();
    }
    let steps = reload();
    let whole = Cut::never();
    bed.carry_out(&with_password("one", "$6$salt$one"), &steps).unwrap();
    bed.carry_out_watched(&with_password("two", "$6$salt$two"), &steps, whole.clone()).unwrap();
    let moments = whole.seen();
    let (mut there, mut next) = ("two", "one");
    for at in runs.spread(moments) {
        let to = with_password(next, &format!("$6$salt${next}"));
        let _ = bed.carry_out_watched(&to, &steps, Cut::at(at));
        // Somebody changes another user's password before it is gone on with.
        let hers = format!("$6$hers${at}");
        let changed = ["usermod", "--password", &hers, "zoe"];
        bed.machine.run_well(changed).unwrap();
        let ended = bed.go_on().unwrap();
        assert!(!matches!(ended, Ended::Degraded { .. }), "killed at {at}: {ended:?}");
        let has = bed.text("/etc/a.conf").unwrap();
        assert_eq!(hash_of(&bed, "core"), format!("$6$salt${has}"), "killed at {at}");
        assert_eq!(hash_of(&bed, "zoe"), hers, "killed at {at}");
        assert!(has == there || has == next, "killed at {at}: {has}");
        if has == next {
            (there, next) = (next, there);
        }
    }
    let said = std::process::Command::new("pwck").arg("-r").arg("-R").arg(&root).output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(!said.contains("shadow"), "{said}");
}
