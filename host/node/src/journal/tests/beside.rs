//! An operation that waits for a boot, and the next one, which takes it along.

use super::disk::Snapshot;
use super::*;

/// A bed in which an operation waits for a boot.
pub(super) fn waiting() -> Bed {
    waiting_with(Arc::new(crate::tree::Unwatched))
}

/// The same, with somebody who sees each change of the disk.
pub(super) fn waiting_with(witness: Arc<dyn Witness>) -> Bed {
    let bed = bed();
    assert!(write(&bed, witness.clone()));
    let journal = Journal::open(&bed.witnessed(witness)).unwrap();
    journal.note(&Note::Waits { boot: "this".to_owned() }).unwrap();
    bed
}

/// The next one.
pub(super) fn next(bed: &Bed) -> Ready<'static> {
    let targets = vec![
        file("/etc/changed.conf", "next"),
        absent("/etc/added.conf"),
        file("/etc/other/next.conf", "next"),
        password("core", "$6$next"),
    ];
    let mut ready = prepare(&bed.tree(), "2", targets, &a_label).unwrap();
    ready.record.order = serde_json::json!({"steps": []});
    ready.record.takes_along = Some("1".to_owned());
    ready
}

/// What stands once all is settled that was cut short.
pub(super) fn stands(bed: &Bed) -> Standing {
    let journal = Journal::open(&bed.tree()).unwrap();
    // The one that was cut short, and the one that stands again.
    journal.settle().unwrap();
    journal.settle().unwrap();
    journal.standing().unwrap().unwrap()
}

/// Before the one that waits, with it, and with the next one.
fn states() -> [Snapshot; 3] {
    let (old, waits) = both_states();
    let bed = waiting();
    assert!(write_ready(&bed, &next(&bed), Arc::new(crate::tree::Unwatched)));
    [old, waits, bed.snapshot()]
}

/// Whether the next one stands; what stands has its names and its way back, and nothing else is left.
fn is_whole(bed: &Bed, [old, waits, new]: &[Snapshot; 3], said: &str) -> bool {
    let standing = stands(bed);
    let is_next = standing.record.id == "2";
    let (there, before) = if is_next { (new, waits) } else { (waits, old) };
    let found = bed.snapshot();
    assert!(found == *there, "{said}: {}", disk::difference(before, there, &found));
    assert!(is_next || standing.waits(), "{said}: {:?}", standing.notes);
    let journal = Journal::open(&bed.tree()).unwrap();
    journal.take_back("it was not well", false).unwrap();
    let found = bed.snapshot();
    assert!(found == *before, "{said}: {}", disk::difference(before, there, &found));
    journal.finish().unwrap();
    assert!(journal.standing().unwrap().is_none(), "{said}");
    assert_eq!(bed.names(STATE), ["lock"], "{said}");
    is_next
}

#[test]
fn killed_at_any_moment_of_the_next_one_what_waits_for_a_boot_stands_again_or_goes_along() {
    let states = states();
    let whole = Cut::never();
    let bed = waiting();
    assert!(write_ready(&bed, &next(&bed), whole.clone()));
    let (mut again, mut along) = (0, 0);
    for at in 0..whole.seen() {
        let bed = waiting();
        write_ready(&bed, &next(&bed), Cut::at(at));
        match is_whole(&bed, &states, &format!("at {at}")) {
            true => along += 1,
            false => again += 1,
        }
    }
    assert!(again > 20 && along > 0, "{again} again, {along} along");
}

#[test]
fn killed_while_the_next_one_is_settled_what_waits_for_a_boot_still_stands_again_or_goes_along() {
    let states = states();
    let whole = Cut::never();
    let bed = waiting();
    assert!(write_ready(&bed, &next(&bed), whole.clone()));
    let mut left = 0;
    for at in (0..whole.seen()).step_by(5) {
        for second in (0..40).step_by(3) {
            for is_given_again in [false, true] {
                let bed = waiting();
                write_ready(&bed, &next(&bed), Cut::at(at));
                if let Ok(journal) = Journal::open(&bed.witnessed(Cut::at(second))) {
                    let _ = journal.settle();
                    let _ = journal.settle();
                }
                let said = format!("at {at}, then {second}, given again: {is_given_again}");
                let journal = Journal::open(&bed.tree()).unwrap();
                let waits = journal.standing().unwrap().is_some_and(|it| it.waits());
                if is_given_again && waits {
                    left += usize::from(bed.names(STATE).iter().any(|name| name == ".tread-2"));
                    let ready = next(&bed);
                    let staged = journal.stage(&ready.record, &ready.new);
                    assert!(staged.is_ok(), "{said}: {:?}", staged.err());
                }
                drop(journal);
                is_whole(&bed, &states, &said);
            }
        }
    }
    assert!(left > 0, "none was killed before the stages of the other one went");
}

#[test]
fn what_waits_for_a_boot_stands_again_where_the_next_one_cannot_be_staged_or_written() {
    let states = states();
    for what in ["not staged", "not permitted", "taken back", "given up"] {
        let bed = waiting();
        let ready = next(&bed);
        let journal = Journal::open(&bed.tree()).unwrap();
        if what == "not staged" {
            bed.file("/etc/changed.conf", "somebody's");
            let staged = journal.stage(&ready.record, &ready.new);
            assert!(matches!(staged, Err(JournalError::Changed { .. })));
            bed.file("/etc/changed.conf", "new");
        } else {
            let staged = journal.stage(&ready.record, &ready.new).unwrap();
            assert_eq!(journal.standing().unwrap().unwrap().record.id, "2");
            match what {
                "not permitted" => {
                    let placed = journal.place_if(&ready.record, &staged, || false);
                    assert!(matches!(placed, Err(JournalError::Ended)), "{placed:?}");
                }
                // As where the boot after a power cut has read some of its names.
                "taken back" => {
                    journal.take_back("half of it was read", false).unwrap();
                    journal.finish().unwrap();
                }
                _ => {
                    assert_eq!(journal.give_up().unwrap(), []);
                    assert!(journal.standing().unwrap().is_none(), "both are given up");
                    assert_eq!(bed.names(STATE), ["lock"]);
                    continue;
                }
            }
        }
        drop(journal);
        assert!(!is_whole(&bed, &states, what));
    }
}

#[test]
fn only_what_waits_for_a_boot_and_is_named_lets_the_next_one_begin() {
    let stages = |bed: &Bed, change: fn(&mut Record)| {
        let mut ready = next(bed);
        change(&mut ready.record);
        let staged = Journal::open(&bed.tree()).unwrap().stage(&ready.record, &ready.new);
        !matches!(staged, Err(JournalError::Unsettled))
    };
    assert!(!stages(&waiting(), |it| it.takes_along = None));
    assert!(!stages(&waiting(), |it| it.takes_along = Some("another".to_owned())));
    assert!(!stages(&waiting(), |it| it.id = "1".to_owned()), "each has a stage of its own");
    let goes_on = bed();
    assert!(write(&goes_on, Arc::new(crate::tree::Unwatched)));
    assert!(!stages(&goes_on, |_| {}));
    assert!(stages(&waiting(), |_| {}));
}
