//! A mount that is not there when an operation is settled, and a disk that is full at the end
//! of one.

use super::*;
use crate::tree::{Syscall, Witness};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder of another place, mounted in a tree.
struct Mounted {
    at: PathBuf,
    from: PathBuf,
}

fn run(words: &[&std::ffi::OsStr]) {
    let (program, args) = words.split_first().unwrap();
    assert!(Command::new(program).args(args).status().unwrap().success());
}

impl Mounted {
    fn at(bed: &Bed, path: &str) -> Mounted {
        bed.folder(path);
        bed.folder("/var/lib/tread/other");
        let mounted = Mounted { at: bed.path(path), from: bed.path("/var/lib/tread/other") };
        mounted.mount();
        mounted
    }

    fn mount(&self) {
        run(&["mount".as_ref(), "--bind".as_ref(), self.from.as_ref(), self.at.as_ref()]);
    }

    /// Also while a program that another test begins still has what is open here: then the
    /// mount would be busy.
    fn unmount(&self) {
        run(&["umount".as_ref(), "--lazy".as_ref(), self.at.as_ref()]);
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // It may be so already.
        let _ = Command::new("umount").arg(&self.at).output();
    }
}

fn on_both() -> Vec<Target<'static>> {
    vec![
        file("/etc/changed.conf", "new"),
        file("/home/core/changed", "new"),
        file("/home/core/added", "new"),
    ]
}

#[test]
fn a_mount_that_is_not_there_keeps_nothing_else_from_settling_and_is_settled_once_it_is() {
    let whole = {
        let (bed, _home) = two_mounts();
        let cut = Cut::never();
        assert!(write_both(&bed, cut.clone()));
        cut.seen()
    };
    let mut waited = 0;
    for at in 0..whole {
        let (bed, home) = two_mounts();
        write_both(&bed, Cut::at(at));
        home.unmount();
        let journal = Journal::open(&bed.tree()).unwrap();
        match journal.settle() {
            Err(JournalError::Away { stage }) => {
                assert!(stage.starts_with("/home/.tread-"), "{at}: {stage}");
                waited += 1;
            }
            settled => assert!(settled.is_ok(), "{at}: {settled:?}"),
        }
        let there = bed.text("/etc/changed.conf");
        home.mount();
        let _ = journal.settle().unwrap();
        assert_eq!(bed.text("/etc/changed.conf"), there, "{at}: it was settled without the mount");
        let found = [there, bed.text("/home/core/changed"), bed.text("/home/core/added")];
        let found = found.each_ref().map(Option::as_deref);
        let is_whole = found == [Some("old"), Some("old"), None] || found == [Some("new"); 3];
        assert!(is_whole, "{at}: {found:?}");
        journal.finish().unwrap();
        assert_eq!(bed.names(STATE), ["lock"], "{at}");
        // What could not be found is swept by the next operation there.
        let next = prepare(&bed.tree(), "2", vec![file("/home/core/changed", "next")], &no_label);
        drop(journal);
        assert!(write_ready(&bed, &next.unwrap(), Arc::new(crate::tree::Unwatched)), "{at}");
        Journal::open(&bed.tree()).unwrap().finish().unwrap();
        assert_eq!(bed.names("/home"), ["core"], "{at}");
    }
    assert!(waited > 10, "{waited}");
}

#[test]
fn that_all_is_staged_is_read_as_an_older_version_wrote_it() {
    let notes = log::read(b"{\"is\":\"staged\"}\n{\"is\":\"staged\",\"etc\":7}\n").unwrap();
    assert_eq!(notes, [Note::Staged { etc: None }, Note::Staged { etc: Some(7) }]);
}

#[test]
fn what_waits_for_a_boot_keeps_what_it_staged_on_a_mount_on_which_the_next_one_stages() {
    let (bed, _home) = two_mounts();
    assert!(write_both(&bed, Arc::new(crate::tree::Unwatched)));
    let journal = Journal::open(&bed.tree()).unwrap();
    journal.note(&Note::Waits { boot: "this".to_owned() }).unwrap();
    let targets = vec![file("/home/core/changed", "next")];
    let mut next = prepare(&bed.tree(), "2", targets, &no_label).unwrap();
    next.record.order = serde_json::json!({"steps": []});
    next.record.takes_along = Some("1".to_owned());
    let staged = journal.stage(&next.record, &next.new).unwrap();
    assert_eq!(bed.names("/home"), [".tread-1", ".tread-2", "core"]);
    let placed = journal.place_if(&next.record, &staged, || false);
    assert!(matches!(placed, Err(JournalError::Ended)), "{placed:?}");
    assert_eq!(bed.names("/home"), [".tread-1", "core"]);
    journal.take_back("it was not well", false).unwrap();
    assert_eq!(bed.text("/home/core/changed").as_deref(), Some("old"));
}

#[test]
fn a_name_right_below_a_mount_that_is_not_there_is_none_that_was_seen_to_have_to_go_back() {
    let (bed, home) = two_mounts();
    bed.file("/home/1", "old");
    let targets = vec![absent("/home/1")];
    let mut ready = prepare(&bed.tree(), "1", targets, &no_label).unwrap();
    ready.record.order = serde_json::json!({"steps": []});
    assert!(write_ready(&bed, &ready, Arc::new(crate::tree::Unwatched)));
    let back = Note::Back { because: "it was cut off".to_owned(), by_units: true };
    Journal::open(&bed.tree()).unwrap().note(&back).unwrap();
    assert!(has_to_go_back(&bed.tree()).unwrap());
    home.unmount();
    assert!(!has_to_go_back(&bed.tree()).unwrap(), "nobody sees what is there");
    home.mount();
    assert!(has_to_go_back(&bed.tree()).unwrap());
}

#[test]
fn an_operation_whose_mount_is_gone_for_good_is_given_up() {
    let (bed, home) = two_mounts();
    assert!(write_both(&bed, Arc::new(crate::tree::Unwatched)));
    home.unmount();
    let journal = Journal::open(&bed.tree()).unwrap();
    assert!(matches!(journal.settle(), Err(JournalError::Away { .. })));
    let by_hand = journal.give_up().unwrap();
    assert_eq!(bed.names(STATE), ["given-up", "lock"]);
    let paths: Vec<&str> = by_hand.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, ["/home/core/changed", "/home/core/added"]);
    assert!(by_hand[0].why.contains("its mount is not there"), "{}", by_hand[0].why);
    assert!(by_hand[0].why.contains("cp -a --remove-destination '/home/.tread-1/"));
    // Where the mount comes back, what it has is what belongs there.
    assert!(!by_hand[0].is_mended(&crate::tree::Found::Absent));
    home.mount();
    let home = bed.tree().folder("/home/core").unwrap().unwrap();
    assert!(by_hand[0].is_mended(&home.see("changed").unwrap()));
}

#[test]
fn a_folder_that_was_made_and_is_a_mount_now_keeps_no_operation_from_going_back() {
    let bed = bed();
    assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
    let mounted = Mounted::at(&bed, "/etc/deep");
    let journal = Journal::open(&bed.tree()).unwrap();
    let settled = journal.take_back("it was not well", false).unwrap().unwrap();
    assert_eq!(settled.covered, ["/etc/deep/er/added.conf"], "nobody else would name it");
    let said = settled.covered().unwrap();
    assert!(said.contains("covers /etc/deep/er/added.conf: unmount it"), "{said}");
    journal.finish().unwrap();
    mounted.unmount();
    assert_eq!(bed.text("/etc/changed.conf").as_deref(), Some("old"));
    assert_eq!(bed.names(STATE), ["lock"]);
}

#[test]
fn what_a_mount_covers_on_the_way_back_goes_once_it_is_seen_again() {
    let bed = bed();
    assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
    let mounted = Mounted::at(&bed, "/etc/deep");
    let journal = Journal::open(&bed.tree()).unwrap();
    let settled = journal.take_back("it was not well", false).unwrap().unwrap();
    assert_eq!(settled.covered, ["/etc/deep/er/added.conf"]);
    mounted.unmount();
    assert!(bed.text("/etc/deep/er/added.conf").is_some());
    let settled = journal.settle().unwrap().unwrap();
    assert_eq!((settled.changed, settled.left), (true, Vec::new()));
    assert_eq!(bed.text("/etc/deep/er/added.conf"), None);
}

/// The mount goes before the tree that it is in.
fn two_mounts() -> (Bed, Mounted) {
    let bed = Bed::new();
    bed.folder(STATE);
    let home = Mounted::at(&bed, "/home");
    bed.file("/etc/changed.conf", "old");
    bed.file("/home/core/changed", "old");
    (bed, home)
}

fn write_both(bed: &Bed, witness: Arc<dyn Witness>) -> bool {
    let mut ready = prepare(&bed.tree(), "1", on_both(), &no_label).unwrap();
    ready.record.order = serde_json::json!({"steps": []});
    write_ready(bed, &ready, witness)
}

/// From this change of the disk on there is no room for anything new: what is added to a file
/// is cut in the middle.
struct FullFrom {
    at: usize,
    seen: AtomicUsize,
    log: PathBuf,
}

impl Witness for FullFrom {
    fn before(&self, syscall: &Syscall<'_>) -> io::Result<()> {
        if self.seen.fetch_add(1, Ordering::SeqCst) < self.at {
            return Ok(());
        }
        if let Syscall::Append { bytes, .. } = syscall {
            use std::io::Write as _;
            let mut log = std::fs::OpenOptions::new().append(true).open(&self.log)?;
            log.write_all(bytes.get(..bytes.len() / 2).unwrap_or_default())?;
        }
        match syscall {
            Syscall::Create { .. }
            | Syscall::Append { .. }
            | Syscall::MakeFolder { .. }
            | Syscall::Symlink { .. } => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }

    fn after(&self, _: &Syscall<'_>) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_disk_that_is_full_from_any_moment_on_leaves_one_whole_state_and_nothing_else() {
    let (old, new) = both_states();
    let whole = Cut::never();
    assert!(write(&bed(), whole.clone()));
    let (mut backs, mut forwards) = (0, 0);
    for at in 0..whole.seen() {
        let bed = bed();
        let log = bed.path(&format!("{STATE}/operation/log"));
        let full = Arc::new(FullFrom { at, seen: AtomicUsize::new(0), log });
        let written = write(&bed, full.clone());
        // The disk stays full: the operation ends nevertheless.
        let journal = Journal::open(&bed.witnessed(full)).unwrap();
        journal.settle().unwrap();
        journal.finish().unwrap();
        let found = bed.snapshot();
        let expected = if written { &new } else { &old };
        assert!(found == *expected, "at {at}: {}", disk::difference(&old, &new, &found));
        assert_eq!(bed.names(STATE), ["lock"], "at {at}");
        if written { forwards += 1 } else { backs += 1 }
    }
    assert!(backs > 20 && forwards > 0, "{backs} back, {forwards} forward");
}

#[test]
fn a_disk_that_is_full_from_any_moment_of_the_next_one_on_loses_nothing_of_what_waits_for_a_boot() {
    let whole = Cut::never();
    let bed = beside::waiting();
    assert!(write_ready(&bed, &beside::next(&bed), whole.clone()));
    let (mut again, mut along) = (0, 0);
    for at in 0..whole.seen() {
        let bed = beside::waiting();
        let waits = bed.snapshot();
        let log = bed.path(&format!("{STATE}/operation/log"));
        let full = Arc::new(FullFrom { at, seen: AtomicUsize::new(0), log });
        let written = write_ready(&bed, &beside::next(&bed), full.clone());
        // The disk stays full.
        let journal = Journal::open(&bed.witnessed(full)).unwrap();
        journal.settle().unwrap();
        let standing = journal.standing().unwrap().unwrap();
        assert_eq!(standing.record.id, if written { "2" } else { "1" }, "at {at}");
        assert!(written || (standing.waits() && bed.snapshot() == waits), "at {at}");
        journal.finish().unwrap();
        assert_eq!(bed.names(STATE), ["lock"], "at {at}");
        if written { along += 1 } else { again += 1 }
    }
    assert!(again > 20 && along > 0, "{again} again, {along} along");
}

#[test]
fn an_operation_that_was_committed_goes_back_on_a_disk_that_became_full() {
    let bed = Bed::new();
    let disk = Mounted { at: bed.path("/"), from: bed.path("/") };
    let tmpfs = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs"].map(std::ffi::OsStr::new);
    run(&[&tmpfs[..], &[disk.at.as_os_str()]].concat());
    bed.folder(STATE);
    bed.file("/etc/changed.conf", "old");
    let targets = vec![file("/etc/changed.conf", "new")];
    let mut ready = prepare(&bed.tree(), "1", targets, &no_label).unwrap();
    ready.record.order = serde_json::json!({"steps": []});
    let journal = Journal::open(&bed.tree()).unwrap();
    journal.write(&ready.record, &ready.new).unwrap();
    let filled = std::fs::write(bed.path("/var/filled"), vec![b'x'; 2 << 20]).unwrap_err();
    assert_eq!(filled.kind(), io::ErrorKind::StorageFull);
    // More than the block that the log has begun.
    journal.take_back(&"long ".repeat(2000), false).unwrap();
    assert_eq!(bed.text("/etc/changed.conf").as_deref(), Some("old"));
}
