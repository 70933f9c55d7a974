//! What a file keeps when its contents change.

use super::*;
use std::collections::BTreeMap;

#[test]
fn an_access_list_goes_where_owner_or_mode_change_and_comes_again_on_the_way_back() {
    let with = |mode| {
        let wanted = Wanted::File { bytes: b"new".as_slice().into(), owner: mine(mode) };
        Target { path: "/etc/a".to_owned(), wanted, folders: Owned::Root }
    };
    for (mode, stays) in [(0o640, true), (0o600, false), (0o644, false)] {
        let bed = Bed::new();
        bed.folder(STATE);
        bed.file("/etc/a", "old");
        let at = bed.path("/etc/a");
        std::fs::set_permissions(&at, std::fs::Permissions::from_mode(0o640)).unwrap();
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(&at, "system.posix_acl_access", &ACCESS, flags).unwrap();
        rustix::fs::setxattr(&at, "trusted.note", b"mine", flags).unwrap();
        let has = |name: &[u8]| {
            let attributes = bed.tree().folder("/etc").unwrap().unwrap().attributes("a").unwrap();
            attributes.iter().any(|attribute| attribute.name == name)
        };
        assert!(has(b"system.posix_acl_access"));
        let Ready { mut record, new } =
            prepare(&bed.tree(), "1", vec![with(mode)], &no_label).unwrap();
        record.order = serde_json::json!({"steps": []});
        let journal = Journal::open(&bed.tree()).unwrap();
        journal.write(&record, &new).unwrap();
        assert_eq!(has(b"system.posix_acl_access"), stays, "{mode:o}");
        assert!(has(b"trusted.note"), "{mode:o}");
        journal.take_back("it was not well", false).unwrap();
        assert!(has(b"system.posix_acl_access"), "{mode:o}");
    }
}

/// The attributes of a file, by name.
fn seen(bed: &Bed) -> BTreeMap<String, Vec<u8>> {
    let etc = bed.tree().folder("/etc").unwrap().unwrap();
    let all = etc.attributes("a").unwrap().into_iter();
    all.map(|it| (String::from_utf8(it.name).unwrap(), it.value)).collect()
}

#[test]
fn attributes_that_change_while_a_permit_is_waited_for_are_on_what_is_written() {
    const LIST: &str = "system.posix_acl_access";
    let with = |mode| {
        let wanted = Wanted::File { bytes: b"new".as_slice().into(), owner: mine(mode) };
        Target { path: "/etc/a".to_owned(), wanted, folders: Owned::Root }
    };
    for (mode, keeps_list) in [(0o640, true), (0o600, false)] {
        let bed = Bed::new();
        bed.folder(STATE);
        bed.file("/etc/a", "old");
        let at = bed.path("/etc/a");
        std::fs::set_permissions(&at, std::fs::Permissions::from_mode(0o640)).unwrap();
        let flags = rustix::fs::XattrFlags::empty();
        let set = |name: &str, value: &[u8]| rustix::fs::setxattr(&at, name, value, flags).unwrap();
        for name in ["trusted.gone", "trusted.same", "trusted.other"] {
            set(name, b"before");
        }
        let Ready { mut record, new } =
            prepare(&bed.tree(), "1", vec![with(mode)], &no_label).unwrap();
        record.order = serde_json::json!({"steps": []});
        let recorder = Arc::new(Recorder::default());
        let journal = Journal::open(&bed.witnessed(recorder.clone())).unwrap();
        let staged = journal.stage(&record, &new).unwrap();
        set(LIST, &ACCESS);
        set("trusted.other", b"after");
        set("trusted.new", b"after");
        rustix::fs::removexattr(&at, "trusted.gone").unwrap();
        let (all, syncs) = (seen(&bed), recorder.syncs());
        let are_on_the_disk = || recorder.syncs() > syncs;
        journal.place_if(&record, &staged, are_on_the_disk).unwrap();
        let mut expected = all.clone();
        expected.retain(|name, _| keeps_list || name != LIST);
        assert_eq!(seen(&bed), expected, "{mode:o}");
        let etc = bed.tree().folder("/etc").unwrap().unwrap();
        assert_eq!(etc.stat("a").unwrap().unwrap().owner, mine(mode));
        journal.take_back("it was not well", false).unwrap();
        assert_eq!(seen(&bed), all, "{mode:o}");
        assert_eq!(bed.text("/etc/a").as_deref(), Some("old"));
    }
}
