//! Operations that cannot be settled, and the way out of them.

use super::*;
use crate::tree::Found;
use std::process::Command;

/// Nobody can change what stands there, while this lives.
struct Immutable(std::path::PathBuf);

impl Immutable {
    fn at(path: std::path::PathBuf) -> Immutable {
        assert!(Command::new("chattr").arg("+i").arg(&path).status().unwrap().success());
        Immutable(path)
    }
}

impl Drop for Immutable {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = Command::new("chattr").arg("-i").arg(&self.0).output();
    }
}

/// A bed on a file system that knows the mark of an immutable file.
fn cut_short() -> Bed {
    let bed = bed();
    assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
    bed
}

fn given_up(bed: &Bed) -> Vec<ByHand> {
    Journal::open(&bed.tree()).unwrap().give_up().unwrap()
}

/// What is kept of one entry, and nothing of any other: its new contents are what is immutable.
fn kept_of(bed: &Bed, kept: &str) -> String {
    let names = bed.names(kept);
    let olds: Vec<&String> = names.iter().filter(|name| name.ends_with(".old")).collect();
    let [old] = &olds[..] else { panic!("{names:?}") };
    let index = old.trim_end_matches("old");
    assert!(names.iter().all(|name| name.starts_with(index)), "{names:?}");
    format!("{kept}/{old}")
}

#[test]
fn a_file_that_nobody_can_change_keeps_nothing_else_from_settling_and_is_named_with_its_way_out() {
    let bed = cut_short();
    let immutable = Immutable::at(bed.path("/etc/changed.conf"));
    let journal = Journal::open(&bed.tree()).unwrap();
    let error = journal.take_back("it was not well", false).unwrap_err().to_string();
    assert!(error.contains("/etc/changed.conf") && error.contains("--give-up"), "{error}");
    assert_eq!(bed.text("/etc/removed.conf").as_deref(), Some("away with it"), "all else is");
    drop(journal);

    let by_hand = given_up(&bed);
    let [left] = &by_hand[..] else { panic!("{by_hand:?}") };
    assert_eq!((left.path.as_str(), left.operation.as_str()), ("/etc/changed.conf", "1"));
    let kept = format!("{STATE}/.given-up-1");
    assert!(left.why.contains("Operation not permitted"), "{}", left.why);
    assert!(left.why.contains(&format!("cp -a --remove-destination '{kept}/")), "{}", left.why);
    assert_eq!(bed.names(STATE), [".given-up-1", "given-up", "lock"]);
    let name = kept_of(&bed, &kept);
    assert_eq!(bed.text(&name).as_deref(), Some("old"), "what belongs there");

    assert_eq!(ByHand::read(&bed.tree()).unwrap(), by_hand);
    let there =
        |bed: &Bed| bed.tree().folder("/etc").unwrap().unwrap().see("changed.conf").unwrap();
    assert!(!left.is_mended(&there(&bed)), "it still has the new contents");
    drop(immutable);
    std::fs::copy(bed.path(&name), bed.path("/etc/changed.conf")).unwrap();
    assert!(left.is_mended(&there(&bed)));
    // The next operation begins, and sweeps nothing of it away.
    assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
    Journal::open(&bed.tree()).unwrap().finish().unwrap();
    assert_eq!(bed.text(&name).as_deref(), Some("old"));
}

#[test]
fn an_operation_without_anything_left_is_given_up_without_a_trace() {
    let bed = cut_short();
    assert_eq!(given_up(&bed), []);
    assert_eq!(bed.names(STATE), ["lock"]);
    assert_eq!(given_up(&bed), [], "there is none");
}

#[test]
fn killed_at_any_moment_while_it_is_given_up_nothing_of_what_is_left_is_lost() {
    let moments = {
        let bed = cut_short();
        let _immutable = Immutable::at(bed.path("/etc/changed.conf"));
        let journal = Journal::open(&bed.tree()).unwrap();
        journal.take_back("it was not well", false).unwrap_err();
        drop(journal);
        let whole = Cut::never();
        Journal::open(&bed.witnessed(whole.clone())).unwrap().give_up().unwrap();
        whole.seen()
    };
    assert!(moments > 20, "{moments}");
    for at in 0..moments {
        let bed = cut_short();
        let _immutable = Immutable::at(bed.path("/etc/changed.conf"));
        let journal = Journal::open(&bed.tree()).unwrap();
        journal.take_back("it was not well", false).unwrap_err();
        drop(journal);
        if let Ok(journal) = Journal::open(&bed.witnessed(Cut::at(at))) {
            let _ = journal.give_up();
        }
        given_up(&bed);
        let kept = ByHand::read(&bed.tree()).unwrap();
        let [left] = &kept[..] else { panic!("{at}: {kept:?}") };
        assert!(left.why.contains("cp -a"), "{at}: {}", left.why);
        let kept = format!("{STATE}/.given-up-1");
        let name = kept_of(&bed, &kept);
        assert_eq!(bed.text(&name).as_deref(), Some("old"), "{at}");
        assert!(Journal::open(&bed.tree()).unwrap().standing().unwrap().is_none(), "{at}");
    }
}

#[test]
fn a_stage_that_cannot_be_removed_any_more_keeps_no_operation_standing() {
    for by in ["settled", "finished", "given up"] {
        let bed = cut_short();
        let stage = format!("{STATE}/.tread-1");
        let _immutable = Immutable::at(bed.path(&stage));
        let journal = Journal::open(&bed.tree()).unwrap();
        match by {
            "settled" => drop(journal.settle().unwrap()),
            "given up" => drop(journal.give_up().unwrap()),
            _ => {}
        }
        journal.finish().unwrap();
        assert!(journal.standing().unwrap().is_none(), "{by}");
        drop(journal);
        let next = prepare(&bed.tree(), "2", vec![file("/etc/changed.conf", "2")], &no_label);
        let next = write_ready(&bed, &next.unwrap(), Arc::new(crate::tree::Unwatched));
        assert!(next, "{by}: the next one begins");
    }
}

#[test]
fn a_journal_that_cannot_be_read_is_put_aside_with_all_that_was_staged() {
    type Spoil = fn(&Bed);
    let spoils: [(&str, Spoil); 4] = [
        ("a note", |bed| {
            let at = format!("{STATE}/operation/log");
            bed.file(&at, &format!("{}garbage\n", bed.text(&at).unwrap()));
        }),
        ("its record", |bed| {
            let at = bed.path(&format!("{STATE}/operation/record"));
            let text = std::fs::read_to_string(&at).unwrap();
            std::fs::write(at, text.replace("changed.conf", "another.conf")).unwrap();
        }),
        ("a folder as its record", |bed| {
            std::fs::remove_file(bed.path(&format!("{STATE}/operation/record"))).unwrap();
            bed.folder(&format!("{STATE}/operation/record"));
        }),
        ("a file", |bed| {
            std::fs::remove_dir_all(bed.path(&format!("{STATE}/operation"))).unwrap();
            bed.file(&format!("{STATE}/operation"), "mine");
        }),
    ];
    for (what, spoil) in spoils {
        let bed = cut_short();
        spoil(&bed);
        let journal = Journal::open(&bed.tree()).unwrap();
        let error = journal.settle().unwrap_err().to_string();
        assert!(error.contains("operation"), "{what}: {error}");
        let by_hand = journal.give_up().unwrap();
        assert!(by_hand[0].why.contains("nobody knows which names"), "{what}: {by_hand:?}");
        let names = bed.names(STATE);
        assert_eq!(names, [".given-up-1", "given-up", "lock", "operation.aside"], "{what}");
        assert!(!bed.names(&format!("{STATE}/.given-up-1")).is_empty(), "{what}");
        assert!(!by_hand[0].is_mended(&Found::Other) || what == "a file", "{what}");
        drop(journal);
        assert!(write(&bed, Arc::new(crate::tree::Unwatched)), "{what}: the next one begins");
    }
}

#[test]
fn a_journal_of_a_newer_version_is_not_given_up() {
    let bed = cut_short();
    let at = bed.path(&format!("{STATE}/operation/record"));
    let text = std::fs::read_to_string(&at).unwrap();
    std::fs::write(at, text.replacen("journal/v1", "journal/v9", 1)).unwrap();
    let given_up = Journal::open(&bed.tree()).unwrap().give_up();
    assert!(matches!(given_up, Err(JournalError::Newer { .. })), "{given_up:?}");
    assert_eq!(bed.text("/etc/changed.conf").as_deref(), Some("new"));
}

#[test]
fn a_folder_among_the_notes_of_an_operation_keeps_it_not_standing() {
    let bed = cut_short();
    bed.folder(&format!("{STATE}/operation/theirs/in it"));
    let journal = Journal::open(&bed.tree()).unwrap();
    journal.finish().unwrap();
    assert!(journal.standing().unwrap().is_none());
    assert!(bed.path(&format!("{STATE}/operation.aside/theirs/in it")).is_dir());
}

#[test]
fn what_is_left_by_hand_is_kept_also_where_somebody_spoilt_what_was_left_before() {
    type Spoil = fn(&Bed);
    let spoils: [Spoil; 3] = [
        |bed| bed.file(&format!("{STATE}/given-up"), "{"),
        |bed| bed.folder(&format!("{STATE}/given-up/theirs")),
        |bed| bed.link(&format!("{STATE}/given-up"), "/etc/changed.conf"),
    ];
    for spoil in spoils {
        let bed = cut_short();
        spoil(&bed);
        let read = ByHand::read(&bed.tree()).unwrap();
        assert!(read[0].path.ends_with("/given-up") && read[0].why.contains("look at it"));
        let immutable = Immutable::at(bed.path("/etc/changed.conf"));
        let journal = Journal::open(&bed.tree()).unwrap();
        journal.take_back("it was not well", false).unwrap_err();
        assert_eq!(journal.give_up().unwrap().len(), 1);
        let kept = ByHand::read(&bed.tree()).unwrap();
        let paths: Vec<&str> = kept.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(paths, ["/etc/changed.conf"]);
        drop(immutable);
        assert_eq!(bed.text("/etc/changed.conf").as_deref(), Some("new"), "no link is followed");
    }
}
