//! A password changes, and so do other lines of the same file.

use super::*;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

fn line(hash: &str, day: &str) -> String {
    format!("core:{hash}:{day}:0:99999:7:::")
}

/// What the file is where the password of `core` changed, and nothing else.
fn changed() -> String {
    let today = shadow::today().to_string();
    SHADOW.replace(&line("$6$old", "19001"), &line("$6$new", &today))
}

fn replaced(bed: &Bed, from: &str, to: &str) {
    let text = bed.text(shadow::FILE).unwrap();
    assert!(text.contains(from), "{text}");
    bed.file("/etc/shadow.other", &text.replace(from, to));
    std::fs::rename(bed.path("/etc/shadow.other"), bed.path(shadow::FILE)).unwrap();
}

#[test]
fn a_password_changes_one_line_and_owner_mode_and_attributes_stay() {
    let bed = bed();
    let path = bed.path(shadow::FILE);
    std::os::unix::fs::chown(&path, Some(0), Some(42)).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(&path, "security.selinux", b"u:r:shadow_t:s0\0", flags).unwrap();
    assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
    assert_eq!(bed.text(shadow::FILE), Some(changed()));
    let stat = path.metadata().unwrap();
    assert_eq!((stat.gid(), stat.mode() & 0o7777), (42, 0o640));
    let mut label = Vec::with_capacity(100);
    let room = rustix::buffer::spare_capacity(&mut label);
    rustix::fs::getxattr(&path, "security.selinux", room).unwrap();
    assert_eq!(label, b"u:r:shadow_t:s0\0");
    let record = std::fs::read(bed.path(&format!("{STATE}/operation/record"))).unwrap();
    let record = String::from_utf8_lossy(&record).into_owned();
    assert!(record.contains("/etc/shadow:core") && !record.contains("$6$"), "{record}");
}

#[test]
fn what_others_change_in_the_file_afterwards_survives_going_back_at_any_moment() {
    let whole = {
        let bed = bed();
        assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
        let cut = Cut::never();
        let journal = Journal::open(&bed.witnessed(cut.clone())).unwrap();
        journal.take_back("it was not well", false).unwrap();
        cut.seen()
    };
    for at in 0..=whole {
        let bed = bed();
        assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
        replaced(&bed, "zoe:!:1:", "zoe:$6$hers:2:");
        replaced(&bed, "root:*:19000:0:99999:7:::\n", "new:*:::::::\nroot:*:19000:0:5:7:::\n");
        let others = |text: &str| {
            text.replace("zoe:!:1:", "zoe:$6$hers:2:")
                .replace("root:*:19000:0:99999:7:::\n", "new:*:::::::\nroot:*:19000:0:5:7:::\n")
        };
        assert_eq!(bed.text(shadow::FILE), Some(others(&changed())));
        if let Ok(journal) = Journal::open(&bed.witnessed(Cut::at(at))) {
            let _ = journal.take_back("it was not well", false);
        }
        let journal = Journal::open(&bed.tree()).unwrap();
        let settled = journal.take_back("it was not well", false).unwrap().unwrap();
        assert!(settled.left.is_empty(), "at {at}: {settled:?}");
        journal.finish().unwrap();
        assert_eq!(bed.text(shadow::FILE), Some(others(SHADOW)), "at {at}");
        assert_eq!(bed.names(STATE), ["lock"], "at {at}");
    }
}

#[test]
fn a_password_that_somebody_else_changed_meanwhile_is_left_as_it_is() {
    let bed = bed();
    assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
    replaced(&bed, "core:$6$new:", "core:$6$mine:");
    let journal = Journal::open(&bed.tree()).unwrap();
    let settled = journal.take_back("it was not well", false).unwrap().unwrap();
    assert_eq!(settled.left, ["/etc/shadow:core"]);
    assert!(bed.text(shadow::FILE).unwrap().contains("core:$6$mine:"));
}

#[test]
fn who_changes_the_file_during_the_write_without_the_lock_is_found_and_not_overwritten() {
    const MINE: &str = "core:$6$old:19001:0:99999:7:::\nzoe:$6$hers:2::::::\n";
    let whole = Cut::never();
    assert!(write(&bed(), whole.clone()));
    for at in 0..whole.seen() {
        let bed = bed();
        let written = write(&bed, disk::Meddler::at(at, bed.path(shadow::FILE), MINE));
        settle(&bed);
        let text = bed.text(shadow::FILE).unwrap();
        assert!(text.contains("zoe:$6$hers:2:"), "at {at}: {text}");
        // Before it is read, or after all was looked at, it is no change during the write.
        let core_is_old = text.contains("core:$6$old:19001:");
        assert!(written || core_is_old, "at {at}: {text}");
    }
}

#[test]
fn a_user_without_a_line_that_can_be_relied_on_is_named_before_anything_is_written() {
    for (text, expected) in [
        (Some("root:*:::::::\n"), "no line of the user `core`"),
        (Some("core:a:::::::\ncore:b:::::::\n"), "several lines"),
        (Some("core:a\n"), "does not have 9 fields"),
        (None, "no line of the user `core`"),
    ] {
        let bed = bed();
        match text {
            Some(text) => bed.file(shadow::FILE, text),
            None => std::fs::remove_file(bed.path(shadow::FILE)).unwrap(),
        }
        let before = bed.snapshot();
        let targets = vec![password("core", "$6$new")];
        let error = prepare(&bed.tree(), "1", targets, &no_label).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(bed.snapshot(), before);
    }
    let bed = bed();
    std::fs::rename(bed.path(shadow::FILE), bed.path("/etc/elsewhere")).unwrap();
    bed.link(shadow::FILE, "/etc/elsewhere");
    let targets = vec![password("core", "$6$new")];
    let error = prepare(&bed.tree(), "1", targets, &no_label).unwrap_err().to_string();
    assert!(error.contains("/etc/shadow: a link stands there"), "{error}");
}

#[test]
fn what_others_change_between_staging_and_writing_survives_at_any_moment() {
    let staged = |bed: &Bed, cut: Arc<Cut>| {
        let Ready { record, new } = ready(&bed.tree());
        let journal = Journal::open(&bed.tree()).unwrap();
        let staged = journal.stage(&record, &new).unwrap();
        replaced(bed, "zoe:!:1:", "zoe:$6$hers:2:");
        drop(journal);
        let journal = Journal::open(&bed.witnessed(cut)).unwrap();
        journal.place(&record, &staged).is_ok()
    };
    let others = |text: &str| text.replace("zoe:!:1:", "zoe:$6$hers:2:");
    let whole = Cut::never();
    let bed = bed();
    assert!(staged(&bed, whole.clone()));
    assert_eq!(bed.text(shadow::FILE), Some(others(&changed())));
    for at in 0..whole.seen() {
        let bed = self::bed();
        let committed = staged(&bed, Cut::at(at));
        settle(&bed);
        let text = bed.text(shadow::FILE).unwrap();
        let new = bed.text("/etc/changed.conf").as_deref() == Some("new");
        assert!(new || !committed, "at {at}");
        let expected = if new { others(&changed()) } else { others(SHADOW) };
        assert_eq!(text, expected, "at {at}");
    }
}

#[test]
fn a_password_that_changes_between_staging_and_writing_is_not_overwritten() {
    let bed = bed();
    let Ready { record, new } = ready(&bed.tree());
    let journal = Journal::open(&bed.tree()).unwrap();
    let staged = journal.stage(&record, &new).unwrap();
    replaced(&bed, "core:$6$old:", "core:$6$mine:");
    let error = journal.place(&record, &staged).unwrap_err();
    assert!(matches!(error, JournalError::Changed { .. }), "{error}");
    assert!(bed.text(shadow::FILE).unwrap().contains("core:$6$mine:"));
    assert_eq!(bed.text("/etc/changed.conf").as_deref(), Some("old"));
}

#[test]
fn an_attribute_of_the_file_that_changes_between_staging_and_writing_is_on_what_is_written() {
    let bed = bed();
    let Ready { record, new } = ready(&bed.tree());
    let journal = Journal::open(&bed.tree()).unwrap();
    let staged = journal.stage(&record, &new).unwrap();
    let at = bed.path(shadow::FILE);
    rustix::fs::setxattr(&at, "trusted.note", b"mine", rustix::fs::XattrFlags::empty()).unwrap();
    journal.place(&record, &staged).unwrap();
    assert_eq!(bed.text(shadow::FILE), Some(changed()));
    let etc = bed.tree().folder("/etc").unwrap().unwrap();
    assert!(etc.attributes("shadow").unwrap().iter().any(|it| it.value == b"mine"));
}
