//! What somebody else writes while a name changes, and the process dies.

use super::disk::Meddler;
use super::*;

/// The file of passwords as somebody wrote it who changed another user's.
const THEIRS: &str =
    "root:*:19000:0:99999:7:::\ncore:$6$old:19001:0:99999:7:::\nzoe:!mine:2::::::\n";
const LATER: &str =
    "root:*:19000:0:99999:7:::\ncore:$6$old:19001:0:99999:7:::\nzoe:!later:3::::::\n";

/// The names that an operation changes, makes and removes, and what somebody puts there, twice.
const PATHS: [(&str, [&str; 2]); 4] = [
    ("/etc/changed.conf", ["mine", "later"]),
    ("/etc/added.conf", ["mine", "later"]),
    ("/etc/removed.conf", ["mine", "later"]),
    (shadow::FILE, [THEIRS, LATER]),
];

/// Whether a text is there, but for the password that the operation is about.
fn is_there(bed: &Bed, path: &str, text: &str) -> bool {
    let there = bed.text(path).unwrap_or_default();
    there.replace("core:$6$new", "core:$6$old").lines().all(|line| {
        let user = line.split(':').next();
        user == Some("core") || text.lines().any(|it| it == line)
    }) && !there.is_empty()
}

/// How many moments there are to be killed in.
fn moments() -> usize {
    let whole = Cut::never();
    assert!(write(&bed(), whole.clone()));
    whole.seen()
}

#[test]
fn what_somebody_else_writes_survives_where_the_process_is_killed_right_after_it() {
    for (path, [mine, _]) in PATHS {
        for at in 0..moments() {
            for killed in 1..=4 {
                let bed = bed();
                let meddler = Meddler::killed_at(at + killed, bed.path(path), vec![(at, mine)]);
                write(&bed, meddler);
                settle(&bed);
                let there = bed.text(path);
                assert!(is_there(&bed, path, mine), "{path} at {at} + {killed}: {there:?}");
                assert_eq!(bed.names(STATE), ["lock"], "{path} at {at} + {killed}");
            }
        }
    }
}

/// An operation that is taken back, as far as the witness lets it.
fn taken_back(bed: &Bed, witness: Arc<dyn Witness>) {
    assert!(write(bed, Arc::new(crate::tree::Unwatched)));
    if let Ok(journal) = Journal::open(&bed.witnessed(witness)) {
        let _ = journal.take_back("it was not well", false);
    }
}

#[test]
fn what_somebody_else_writes_survives_where_the_process_is_killed_on_the_way_back() {
    let whole = Cut::never();
    taken_back(&bed(), whole.clone());
    for (path, [mine, _]) in PATHS {
        for at in 0..whole.seen() {
            for killed in 1..=4 {
                let bed = bed();
                let meddler = Meddler::killed_at(at + killed, bed.path(path), vec![(at, mine)]);
                taken_back(&bed, meddler);
                settle(&bed);
                let there = bed.text(path);
                assert!(is_there(&bed, path, mine), "{path} at {at} + {killed}: {there:?}");
            }
        }
    }
}

#[test]
fn of_what_somebody_else_writes_twice_the_last_one_stays() {
    let moments = moments();
    for (path, [mine, later]) in PATHS {
        for at in 0..moments {
            for second in 1..=3 {
                let bed = bed();
                let texts = vec![(at, mine), (at + second, later)];
                write(&bed, Meddler::killed_at(usize::MAX, bed.path(path), texts));
                settle(&bed);
                let there = bed.text(path);
                let last = if at + second < moments { later } else { mine };
                assert!(is_there(&bed, path, last), "{path} at {at} + {second}: {there:?}");
            }
        }
    }
}

#[test]
fn of_what_somebody_else_writes_twice_one_is_there_wherever_the_process_is_killed() {
    for (path, [mine, later]) in PATHS {
        for at in 0..moments() {
            for killed in 2..=4 {
                let bed = bed();
                let texts = vec![(at, mine), (at + 1, later)];
                write(&bed, Meddler::killed_at(at + killed, bed.path(path), texts));
                settle(&bed);
                let is_one = is_there(&bed, path, mine) || is_there(&bed, path, later);
                assert!(is_one, "{path} at {at} + {killed}: {:?}", bed.text(path));
            }
        }
    }
}
