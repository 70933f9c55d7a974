#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod attacks;
mod away;
mod beside;
mod disk;
mod give_up;
mod held;
mod kept;
mod labels;
mod later;
mod many;
mod meddled;
mod mounts;
mod passwords;
mod power;
mod syncs;

use super::*;
use crate::prepare::{Ready, Target, Wanted, hold, prepare};
use crate::shadow::{self, Hash};
use crate::tree::cut::Cut;
use crate::tree::{Attribute, Kind, Owner};
use crate::tree::{Syscall, Witness};
use disk::{Bed, Recorder};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

/// The owner of files in these tests: whoever runs them.
fn mine(mode: u32) -> Owner {
    Owner {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        mode,
    }
}

fn file(path: &str, text: &'static str) -> Target<'static> {
    let wanted = Wanted::File { bytes: text.as_bytes().into(), owner: mine(0o644) };
    Target { path: path.to_owned(), wanted, folders: Owned::Root }
}

fn link(path: &str, target: &str) -> Target<'static> {
    let wanted = Wanted::Link { target: target.to_owned() };
    Target { path: path.to_owned(), wanted, folders: Owned::Root }
}

/// A file of passwords with lines of others.
const SHADOW: &str = "root:*:19000:0:99999:7:::\ncore:$6$old:19001:0:99999:7:::\nzoe:!:1::::::\n";

fn password(user: &str, hash: &str) -> Target<'static> {
    let wanted = Wanted::Password { user: user.to_owned(), hash: Hash::new(hash).unwrap() };
    Target { path: shadow::path_of(user), wanted, folders: Owned::Root }
}

fn absent(path: &str) -> Target<'static> {
    Target { path: path.to_owned(), wanted: Wanted::Absent, folders: Owned::Root }
}

fn no_label(_: &str, _: Kind) -> Result<Option<Attribute>, String> {
    Ok(None)
}

/// Everything that an operation can do to a name.
fn targets() -> Vec<Target<'static>> {
    vec![
        file("/etc/changed.conf", "new"),
        file("/etc/added.conf", "added"),
        file("/etc/deep/er/added.conf", "deep"),
        absent("/etc/removed.conf"),
        file("/etc/same.conf", "same"),
        link("/etc/systemd/system/masked.service", "/dev/null"),
        link("/etc/systemd/system/multi-user.target.wants/a.service", "/etc/a.service"),
        absent("/etc/systemd/system/b.service"),
        file("/etc/was-a-link", "now a file"),
        file("/usr/local/bin/tool", "#!/bin/sh"),
        password("core", "$6$new"),
    ]
}

fn bed() -> Bed {
    let bed = Bed::new();
    bed.file("/etc/changed.conf", "old");
    bed.file("/etc/removed.conf", "away with it");
    bed.file("/etc/systemd/system/masked.service", "[Service]");
    put_the_rest(&bed);
    bed
}

/// What stands there whatever is mounted.
fn put_the_rest(bed: &Bed) {
    bed.file("/etc/same.conf", "same");
    bed.link("/etc/systemd/system/b.service", "/dev/null");
    bed.link("/etc/was-a-link", "/etc/changed.conf");
    bed.file(shadow::FILE, SHADOW);
    bed.file("/etc/.pwd.lock", "");
    bed.folder("/var/usrlocal/bin");
    bed.folder("/usr");
    bed.link("/usr/local", "../var/usrlocal");
    bed.folder(STATE);
}

/// What `setfacl -m u:UID:r` leaves of a file with mode 0640.
const ACCESS: [u8; 44] = [
    2, 0, 0, 0, // the version
    1, 0, 6, 0, 255, 255, 255, 255, // its owner
    2, 0, 4, 0, 0xd2, 4, 0, 0, // the user 1234
    4, 0, 4, 0, 255, 255, 255, 255, // its group
    16, 0, 4, 0, 255, 255, 255, 255, // what all but the owner may at most
    32, 0, 0, 0, 255, 255, 255, 255, // everybody else
];

/// The label of a policy that knows kinds only.
fn a_label(_: &str, kind: Kind) -> Result<Option<Attribute>, String> {
    let word = match kind {
        Kind::File => "file",
        Kind::Folder => "folder",
        Kind::Link => "link",
        Kind::Other => return Ok(None),
    };
    let value = format!("u:r:{word}_t:s0\0").into_bytes();
    Ok(Some(Attribute { name: b"security.selinux".to_vec(), value }))
}

fn ready(tree: &Tree) -> Ready<'static> {
    let mut ready = prepare(tree, "1", targets(), &a_label).unwrap();
    ready.record.order = serde_json::json!({"steps": []});
    ready
}

/// Writes as far as the witness lets it; whether all of it was written.
fn write(bed: &Bed, witness: Arc<dyn crate::tree::Witness>) -> bool {
    write_ready(bed, &ready(&bed.tree()), witness)
}

fn write_ready(bed: &Bed, ready: &Ready<'_>, witness: Arc<dyn crate::tree::Witness>) -> bool {
    let Ok(journal) = Journal::open(&bed.witnessed(witness)) else { return false };
    journal.write(&ready.record, &ready.new).is_ok()
}

/// What a system does at boot.
fn settle(bed: &Bed) -> Option<Settled> {
    let journal = Journal::open(&bed.tree()).unwrap();
    let settled = journal.settle().unwrap();
    journal.finish().unwrap();
    settled
}

#[test]
fn everything_new_is_in_its_place_and_nothing_is_left_behind() {
    let bed = bed();
    assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
    assert_eq!(
        settle(&bed),
        Some(Settled {
            direction: Direction::Forward,
            changed: false,
            left: Vec::new(),
            covered: Vec::new()
        })
    );
    assert_eq!(bed.text("/etc/changed.conf").as_deref(), Some("new"));
    assert_eq!(bed.text("/etc/deep/er/added.conf").as_deref(), Some("deep"));
    assert_eq!(bed.text("/var/usrlocal/bin/tool").as_deref(), Some("#!/bin/sh"));
    assert_eq!(bed.text("/etc/removed.conf"), None);
    assert_eq!(bed.names(STATE), ["lock"]);
    assert!(!bed.snapshot().keys().any(|path| path.contains(".tread-")), "{:?}", bed.snapshot());
}

#[test]
fn only_what_differs_is_written() {
    let bed = bed();
    let ready = ready(&bed.tree());
    assert!(!ready.record.entries.iter().any(|entry| entry.path == "/etc/same.conf"));
    assert_eq!(ready.record.entries.len(), targets().len() - 1);
    assert_eq!(ready.record.stages, [format!("{STATE}/.tread-1")]);
}

#[test]
fn a_committed_operation_can_be_taken_back_whole() {
    let bed = bed();
    let before = bed.snapshot();
    assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
    let journal = Journal::open(&bed.tree()).unwrap();
    let settled = journal.take_back("it was not well", false).unwrap();
    assert_eq!(
        settled,
        Some(Settled {
            direction: Direction::Back,
            changed: true,
            left: Vec::new(),
            covered: Vec::new()
        })
    );
    let again = Settled { changed: false, ..settled.unwrap() };
    assert_eq!(journal.settle().unwrap(), Some(again));
    journal.finish().unwrap();
    assert_eq!(bed.snapshot(), before);
    assert!(journal.standing().unwrap().is_none());
}

#[test]
fn what_somebody_puts_back_by_hand_after_the_commit_is_left_and_named() {
    let bed = bed();
    let old = bed.snapshot();
    assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
    let journal = Journal::open(&bed.tree()).unwrap();
    bed.file("/etc/changed.conf", "old");
    std::fs::remove_file(bed.path("/etc/added.conf")).unwrap();
    let left = ["/etc/changed.conf", "/etc/added.conf"];
    for _ in 0..2 {
        let settled = journal.settle().unwrap().unwrap();
        assert_eq!((settled.direction, settled.changed), (Direction::Forward, false));
        assert_eq!(settled.left, left);
        assert_eq!(bed.text("/etc/changed.conf").as_deref(), Some("old"));
        assert_eq!(bed.text("/etc/added.conf"), None);
    }
    assert!(!is_mixed(&bed.tree()).unwrap(), "nothing of tread's own waits for it");
    // The way back is there nevertheless.
    let settled = journal.take_back("it was not well", false).unwrap().unwrap();
    assert_eq!((settled.changed, settled.left), (true, Vec::new()));
    assert_eq!(bed.snapshot(), old);
}

#[test]
fn what_somebody_changes_by_hand_after_the_way_back_is_left_and_named() {
    let bed = bed();
    assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
    let journal = Journal::open(&bed.tree()).unwrap();
    journal.take_back("it was not well", false).unwrap();
    bed.file("/etc/changed.conf", "new");
    bed.folder("/etc/deep/er");
    for _ in 0..2 {
        let settled = journal.settle().unwrap().unwrap();
        assert_eq!((settled.direction, settled.changed), (Direction::Back, false));
        assert_eq!(settled.left, ["/etc/changed.conf"]);
        assert_eq!(bed.text("/etc/changed.conf").as_deref(), Some("new"));
        assert!(bed.path("/etc/deep/er").is_dir(), "a folder is theirs too");
    }
    assert!(!is_mixed(&bed.tree()).unwrap());
}

/// Copies a folder with all that is in it.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    let copied = std::process::Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.unwrap().success());
}

#[test]
fn what_went_back_goes_back_once_more_in_the_etc_of_another_deployment() {
    let bed = bed();
    let old = bed.snapshot();
    assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
    // As it was when the node booted into its new system.
    copy(&bed.path("/etc"), &bed.path("/other"));
    let journal = Journal::open(&bed.tree()).unwrap();
    journal.take_back("it was not well", false).unwrap();
    std::fs::remove_dir_all(bed.path("/etc")).unwrap();
    std::fs::rename(bed.path("/other"), bed.path("/etc")).unwrap();
    assert_eq!(bed.text("/etc/changed.conf").as_deref(), Some("new"));
    let settled = journal.settle().unwrap().unwrap();
    assert_eq!((settled.changed, settled.left), (true, Vec::new()));
    assert_eq!(bed.snapshot(), old);
    bed.file("/etc/changed.conf", "new");
    assert_eq!(journal.settle().unwrap().unwrap().left, ["/etc/changed.conf"]);
}

#[test]
fn killed_before_or_after_any_change_of_the_disk_it_ends_in_the_old_or_the_new_state() {
    let (old, new) = both_states();
    let whole = Cut::never();
    assert!(write(&bed(), whole.clone()));
    let (mut backs, mut forwards) = (0, 0);
    for at in 0..whole.seen() {
        let bed = bed();
        let written = write(&bed, Cut::at(at));
        assert!(!written || at + 1 >= whole.seen(), "{at}");
        settle(&bed);
        let found = bed.snapshot();
        assert!(found == old || found == new, "at {at}: {}", disk::difference(&old, &new, &found));
        if found == old {
            backs += 1
        } else {
            forwards += 1
        }
        assert_eq!(bed.names(STATE), ["lock"], "at {at}");
    }
    assert!(backs > 20 && forwards > 0, "{backs} back, {forwards} forward");
}

#[test]
fn killed_while_it_settles_it_still_ends_in_the_old_or_the_new_state() {
    let (old, new) = both_states();
    let whole = Cut::never();
    assert!(write(&bed(), whole.clone()));
    for at in (0..whole.seen()).step_by(7) {
        for second in (0..40).step_by(3) {
            let bed = bed();
            write(&bed, Cut::at(at));
            if let Ok(journal) = Journal::open(&bed.witnessed(Cut::at(second))) {
                let _ = journal.settle();
                let _ = journal.finish();
            }
            settle(&bed);
            let found = bed.snapshot();
            let differs = || disk::difference(&old, &new, &found);
            assert!(found == old || found == new, "at {at}, then {second}: {}", differs());
        }
    }
}

fn both_states() -> (disk::Snapshot, disk::Snapshot) {
    let bed = bed();
    let old = bed.snapshot();
    assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
    settle(&bed);
    (old, bed.snapshot())
}

#[test]
fn what_somebody_else_changes_during_the_write_is_found_and_not_overwritten() {
    for (path, text) in
        [("/etc/changed.conf", "mine"), ("/etc/added.conf", "mine"), ("/etc/removed.conf", "mine")]
    {
        let whole = Cut::never();
        assert!(write(&bed(), whole.clone()));
        for at in 0..whole.seen() {
            let bed = bed();
            let written = write(&bed, disk::Meddler::at(at, bed.path(path), text));
            settle(&bed);
            let found = bed.text(path);
            let committed_first = written && at + 6 > whole.seen();
            assert_eq!(found.as_deref(), Some("mine"), "{path} at {at}");
            let others = bed.text("/var/usrlocal/bin/tool");
            assert!(
                !written && others.is_none() || committed_first || written && at < 3,
                "{path} at {at}"
            );
        }
    }
}

#[test]
fn a_target_that_is_no_file_or_not_to_be_changed_is_named_before_anything_is_written() {
    let bed = bed();
    bed.folder("/etc/folder.conf");
    bed.file("/etc/plain", "a file");
    for (target, expected) in [
        (file("/etc/folder.conf", "x"), "/etc/folder.conf: a folder stands there"),
        (file("/etc/plain/below", "x"), "/etc/plain is a file"),
        (file("/etc/../shadow", "x"), "not an absolute path without"),
        (file("/etc/", "x"), "not an absolute path without"),
        (file(&format!("/etc/{}", "n".repeat(256)), "x"), "longer than 255 bytes"),
        (file(&format!("/etc/new/{}", "n".repeat(256)), "x"), "longer than 255 bytes"),
        (file(&format!("/etc/new/{}/x", "ü".repeat(128)), "x"), "longer than 255 bytes"),
    ] {
        let error = prepare(&bed.tree(), "1", vec![target], &no_label).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let longest = file(&format!("/etc/new/{}", "n".repeat(255)), "x");
    assert!(prepare(&bed.tree(), "1", vec![longest], &no_label).is_ok());
}

#[test]
fn an_operation_without_an_order_is_over_once_it_is_settled() {
    let bed = bed();
    let Ready { record, new } = prepare(&bed.tree(), "1", targets(), &no_label).unwrap();
    let journal = Journal::open(&bed.tree()).unwrap();
    journal.write(&record, &new).unwrap();
    assert_eq!(journal.settle().unwrap().unwrap().direction, Direction::Forward);
    assert!(journal.standing().unwrap().is_none());
    assert_eq!(bed.text("/etc/changed.conf").as_deref(), Some("new"));
}

#[test]
fn a_second_tread_waits_for_nobody_and_says_who_is_there() {
    let bed = bed();
    let _first = Journal::open(&bed.tree()).unwrap();
    assert!(matches!(Journal::open(&bed.tree()), Err(JournalError::Busy)));
}

#[test]
fn a_record_of_a_newer_version_is_not_touched_and_names_it() {
    let bed = bed();
    assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
    let at = format!("{STATE}/operation/record");
    let text = bed.text(&at).unwrap();
    let (head, body) = text.split_once('\n').unwrap();
    let head = head.replace("journal/v1", "journal/v2").replace(env!("CARGO_PKG_VERSION"), "9.1.0");
    bed.file(&at, &format!("{head}\n{body}"));
    let before = bed.snapshot();
    let journal = Journal::open(&bed.tree()).unwrap();
    let error = journal.settle().unwrap_err().to_string();
    assert!(error.contains("start tread 9.1.0 or later"), "{error}");
    assert_eq!(bed.snapshot(), before);
}

#[test]
fn a_note_that_nobody_can_read_is_a_newer_versions_only_where_that_one_began_the_operation() {
    for (began, expected) in [
        (env!("CARGO_PKG_VERSION"), "operation/log is damaged (line 2 is no note"),
        ("0.0.9", "operation/log is damaged (line 2 is no note"),
        ("99.0.0-rc.1", "start tread 99.0.0-rc.1 or later"),
    ] {
        let bed = bed();
        assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
        let at = |name: &str| format!("{STATE}/operation/{name}");
        let text = bed.text(&at("record")).unwrap();
        bed.file(&at("record"), &text.replacen(env!("CARGO_PKG_VERSION"), began, 1));
        bed.file(&at("log"), &format!("{}garbage\n", bed.text(&at("log")).unwrap()));
        let before = bed.snapshot();
        let error = Journal::open(&bed.tree()).unwrap().settle().unwrap_err().to_string();
        assert!(error.contains(expected), "{began}: {error}");
        assert_eq!(bed.snapshot(), before, "{began}: nothing is touched");
    }
}

#[test]
fn whether_it_may_be_done_is_looked_at_right_before_the_first_name_changes() {
    let bed = bed();
    let old = bed.snapshot();
    let recorder = Arc::new(Recorder::default());
    let journal = Journal::open(&bed.witnessed(recorder.clone())).unwrap();
    let Ready { record, new } = ready(&bed.tree());
    let staged = journal.stage(&record, &new).unwrap();
    let mut looked_at = 0;
    let placed = journal.place_if(&record, &staged, || {
        looked_at = recorder.all().len();
        assert_eq!(bed.snapshot(), old, "no name has changed");
        true
    });
    placed.unwrap();
    let next = &recorder.all()[looked_at];
    assert!(matches!(next, disk::Recorded::Move(..)), "a name changes at once: {next:?}");
    // Where it may not, none changes.
    journal.take_back("", false).unwrap();
    journal.finish().unwrap();
    let Ready { record, new } = ready(&bed.tree());
    let staged = journal.stage(&record, &new).unwrap();
    let ended = journal.place_if(&record, &staged, || false);
    assert!(matches!(ended, Err(JournalError::Ended)), "{ended:?}");
    assert_eq!(bed.snapshot(), old);
}

#[test]
fn names_are_mixed_while_tread_changes_them_and_not_by_what_somebody_else_writes() {
    let bed = bed();
    let journal = Journal::open(&bed.tree()).unwrap();
    let Ready { record, new } = ready(&bed.tree());
    let _staged = journal.stage(&record, &new).unwrap();
    assert!(!is_mixed(&bed.tree()).unwrap());
    std::fs::write(bed.path("/etc/changed.conf"), "mine").unwrap();
    assert!(!is_mixed(&bed.tree()).unwrap(), "nothing of tread's is in its place");

    let whole = Cut::never();
    assert!(write(&self::bed(), whole.clone()));
    let is_mixed_at = |at: &usize| {
        let bed = self::bed();
        write(&bed, Cut::at(*at));
        is_mixed(&bed.tree()).unwrap()
    };
    let mixed = (0..whole.seen()).filter(is_mixed_at).count();
    assert!(mixed > 0 && mixed < whole.seen() / 2, "{mixed} of {}", whole.seen());
}

#[test]
fn an_operation_that_stands_keeps_another_one_from_beginning() {
    let bed = bed();
    assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
    let journal = Journal::open(&bed.tree()).unwrap();
    let Ready { record, new } = ready(&bed.tree());
    assert!(matches!(journal.write(&record, &new), Err(JournalError::Unsettled)));
}

#[test]
fn an_operation_that_only_waits_for_a_boot_is_not_in_the_way_of_the_next_one() {
    let bed = bed();
    assert!(!is_in_the_way(&bed.tree()).unwrap(), "nothing stands");
    assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
    assert!(is_in_the_way(&bed.tree()).unwrap(), "what was written is not done");
    let journal = Journal::open(&bed.tree()).unwrap();
    journal.note(&Note::Waits { boot: "this".to_owned() }).unwrap();
    assert!(!is_in_the_way(&bed.tree()).unwrap());
    journal.note(&Note::Degraded { boot: "this".to_owned() }).unwrap();
    assert!(!is_in_the_way(&bed.tree()).unwrap(), "how far it came is as before");
    bed.file(&format!("{STATE}/operation/record"), "nobody can read this\n");
    assert!(is_in_the_way(&bed.tree()).unwrap(), "what it is about is not known");
}
