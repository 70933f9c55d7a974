//! What others do to the disk meanwhile, and what is left where everything goes wrong.

use super::*;
use crate::tree::{Syscall, Witness};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_note_that_was_cut_short_does_not_spoil_those_after_it() {
    let bed = bed();
    assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
    let log = bed.path(&format!("{STATE}/operation/log"));
    let mut log = std::fs::OpenOptions::new().append(true).open(log).unwrap();
    log.write_all(b"{\"is\":\"begun\",\"st").unwrap();
    let journal = Journal::open(&bed.tree()).unwrap();
    let asked = Note::BootAsked { boot: "b".to_owned() };
    journal.note(&asked).unwrap();
    let notes = journal.standing().unwrap().unwrap().notes;
    assert!(matches!(&notes[..], [Note::Committed { .. }, last] if *last == asked), "{notes:?}");
}

#[test]
fn a_folder_that_somebody_put_something_else_in_place_of_keeps_nothing_else_from_settling() {
    type Attack = fn(&Bed);
    let attacks: [(&str, Attack); 4] = [
        ("a file", |bed| {
            std::fs::rename(bed.path("/etc/deep"), bed.path("/etc/away")).unwrap();
            bed.file("/etc/deep", "mine");
        }),
        ("a file in it", |bed| {
            std::fs::remove_dir_all(bed.path("/etc/deep/er")).unwrap();
            bed.file("/etc/deep/er", "mine");
        }),
        ("a link of a user", |bed| {
            std::fs::rename(bed.path("/etc/deep"), bed.path("/etc/away")).unwrap();
            bed.link("/etc/deep", "/etc/away");
            std::os::unix::fs::lchown(bed.path("/etc/deep"), Some(4711), Some(4711)).unwrap();
        }),
        ("a link that is no text", |bed| {
            std::fs::remove_file(bed.path("/etc/deep/er/added.conf")).unwrap();
            let target = std::ffi::OsStr::from_bytes(b"\xff");
            symlink(target, bed.path("/etc/deep/er/added.conf")).unwrap();
        }),
    ];
    for (what, attack) in attacks {
        let bed = bed();
        assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
        attack(&bed);
        let journal = Journal::open(&bed.tree()).unwrap();
        let settled = journal.take_back("it was not well", false);
        assert!(settled.is_ok(), "{what}: {settled:?}");
        journal.finish().unwrap();
        assert_eq!(bed.text("/etc/removed.conf").as_deref(), Some("away with it"), "{what}");
        assert_eq!(bed.text("/etc/changed.conf").as_deref(), Some("old"), "{what}");
        assert_eq!(bed.text("/var/usrlocal/bin/tool"), None, "{what}");
        assert_eq!(bed.names(STATE), ["lock"], "{what}");
    }
}

/// From the so-manyth new file on, the disk is full.
struct Full {
    from: usize,
    made: AtomicUsize,
}

impl Witness for Full {
    fn before(&self, syscall: &Syscall<'_>) -> io::Result<()> {
        let made = match syscall {
            Syscall::Create { .. } => self.made.fetch_add(1, Ordering::SeqCst),
            Syscall::Append { .. } => self.made.load(Ordering::SeqCst),
            _ => return Ok(()),
        };
        match made >= self.from {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }

    fn after(&self, _: &Syscall<'_>) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_disk_that_fills_up_is_left_as_it_was_also_where_no_note_can_be_written_any_more() {
    for from in 0..6 {
        let bed = bed();
        let before = bed.snapshot();
        assert!(!write(&bed, Arc::new(Full { from, made: AtomicUsize::new(0) })), "{from}");
        assert_eq!(bed.snapshot(), before, "{from}");
        assert_eq!(bed.names(STATE), ["lock"], "{from}");
    }
}

/// Whoever owns a folder puts a link in the place of what is made in it.
struct Swap {
    at: &'static str,
    path: std::path::PathBuf,
    to: std::path::PathBuf,
}

impl Witness for Swap {
    fn before(&self, _: &Syscall<'_>) -> io::Result<()> {
        Ok(())
    }

    fn after(&self, syscall: &Syscall<'_>) -> io::Result<()> {
        if matches!(syscall, Syscall::Rename { to, .. } if *to == self.at) {
            std::fs::rename(&self.path, self.path.with_extension("away"))?;
            symlink(&self.to, &self.path)?;
        }
        Ok(())
    }
}

#[test]
fn a_link_in_the_place_of_a_new_folder_changes_nothing_where_it_leads() {
    let bed = bed();
    bed.file("/etc/gshadow", "secret");
    let (path, to) = (bed.path("/etc/deep"), bed.path("/etc/gshadow"));
    std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o600)).unwrap();
    let swap = Swap { at: "/etc/deep", path, to: to.clone() };
    assert!(!write(&bed, Arc::new(swap)));
    assert_eq!(to.metadata().unwrap().mode() & 0o7777, 0o600);
    assert_eq!(bed.text("/etc/changed.conf").as_deref(), Some("old"));
}

#[test]
fn two_targets_that_are_one_place_or_stand_below_each_other_are_named_before_anything_is_written() {
    for (one, other) in [
        ("/usr/local/bin/tool", "/var/usrlocal/bin/tool"),
        ("/etc/x", "/etc/x"),
        ("/etc/x", "/etc/x/y/z"),
    ] {
        let bed = bed();
        let targets = vec![file(one, "1"), file(other, "2")];
        let error = prepare(&bed.tree(), "1", targets, &no_label).unwrap_err().to_string();
        assert!(error.contains(one) && error.contains(other), "{error}");
        assert!(error.contains("correct the config"), "{error}");
    }
}

#[test]
fn a_file_with_an_access_list_gets_the_mode_that_is_wanted() {
    let bed = bed();
    let path = bed.path("/etc/changed.conf");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o664)).unwrap();
    // The owner, user 4711, the group, the mask, others: each a tag, permissions and a number.
    let mut list = vec![2, 0, 0, 0];
    for (tag, may, who) in [
        (1u16, 6u16, u32::MAX),
        (2, 6, 4711),
        (4, 4, u32::MAX),
        (16, 6, u32::MAX),
        (32, 4, u32::MAX),
    ] {
        list.extend(tag.to_le_bytes());
        list.extend(may.to_le_bytes());
        list.extend(who.to_le_bytes());
    }
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(&path, "system.posix_acl_access", &list, flags).unwrap();
    assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
    assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o644);
    assert_eq!(
        settle(&bed),
        Some(Settled {
            direction: Direction::Forward,
            changed: false,
            left: Vec::new(),
            covered: Vec::new()
        })
    );
}

#[test]
fn a_stage_that_somebody_put_their_own_folder_in_place_of_is_not_used() {
    let bed = bed();
    assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
    let stage = format!("{STATE}/.tread-1");
    std::fs::rename(bed.path(&stage), bed.path("/etc/away")).unwrap();
    for index in 0..10 {
        bed.file(&format!("{stage}/{index}.old"), "evil");
    }
    std::os::unix::fs::chown(bed.path(&stage), Some(4711), Some(4711)).unwrap();
    let journal = Journal::open(&bed.tree()).unwrap();
    let settled = journal.take_back("it was not well", false).unwrap().unwrap();
    assert!(settled.left.contains(&"/etc/changed.conf".to_owned()), "{settled:?}");
    assert_eq!(bed.text("/etc/changed.conf").as_deref(), Some("new"));
    assert_eq!(bed.text("/etc/removed.conf"), None);
}

#[test]
fn what_others_put_in_the_place_of_a_stage_keeps_no_operation_standing_and_is_not_touched() {
    type Attack = fn(&Bed, &str);
    let attacks: [(&str, Attack); 4] = [
        ("a file", |bed, stage| bed.file(stage, "mine")),
        ("a link", |bed, stage| bed.link(stage, "/etc/theirs")),
        ("a folder of a user", |bed, stage| {
            bed.file(&format!("{stage}/0.new"), "mine");
            std::os::unix::fs::chown(bed.path(stage), Some(4711), Some(4711)).unwrap();
        }),
        ("a folder of root", |bed, stage| {
            bed.file(&format!("{stage}/in/it"), "mine");
            bed.file(&format!("{stage}/theirs"), "mine");
        }),
    ];
    for (what, attack) in attacks {
        let bed = bed();
        bed.file("/etc/theirs/0.new", "mine");
        assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
        let stage = format!("{STATE}/.tread-1");
        std::fs::rename(bed.path(&stage), bed.path("/etc/away")).unwrap();
        attack(&bed, &stage);
        let journal = Journal::open(&bed.tree()).unwrap();
        let settled = journal.settle();
        assert!(settled.is_ok(), "{what}: {settled:?}");
        let finished = journal.finish();
        assert!(finished.is_ok(), "{what}: {finished:?}");
        assert!(journal.standing().unwrap().is_none(), "{what}");
        assert_eq!(journal.settle().unwrap(), None, "{what}");
        for theirs in ["/etc/theirs/0.new", &format!("{stage}/theirs")] {
            assert!(bed.text(theirs).is_none_or(|text| text == "mine"), "{what}: {theirs}");
        }
        assert!(bed.path(&stage).symlink_metadata().is_ok(), "{what}");
        assert_eq!(bed.text("/etc/theirs/0.new").as_deref(), Some("mine"), "{what}");
    }
}
