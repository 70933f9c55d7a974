#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use proptest::prelude::*;

/// An ostree host: what the image ships, and what was added on the host.
const FILES: [(&str, &str); 4] = [
    (
        "etc/passwd",
        "# added here\nroot:x:0:0:Super User:/root:/bin/bash\ncore:x:1000:1001:CoreOS Admin:/var/home/core:/bin/bash\n+nis::::::\nshort:x:7\nchrony:x:9:9::/:\nnumber:x:many:1::/:\n",
    ),
    ("etc/group", "root:x:0:\ncore:x:1001:core,adm\nwheel:x:10:core\n"),
    (
        "usr/lib/passwd",
        "chrony:x:994:992:chrony:/var/lib/chrony:/sbin/nologin\ncontainers:x:990:990::/:\n",
    ),
    ("usr/lib/group", "wheel:x:11:\nkvm:x:36:qemu\n"),
];

fn host(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let tree = Tree::open(dir.path()).unwrap();
    (dir, tree)
}

#[test]
fn names_become_the_numbers_of_the_host_and_its_own_files_win_over_the_images() {
    let (_dir, tree) = host(&FILES);
    let owners = Owners::read(&tree).unwrap();
    let users = [("root", 0), ("core", 1000), ("chrony", 9), ("containers", 990), ("4711", 4711)];
    for (name, number) in users {
        assert_eq!(owners.uid("/etc/a", name).unwrap(), number, "user {name}");
    }
    let groups = [("root", 0), ("core", 1001), ("wheel", 10), ("kvm", 36), ("0", 0)];
    for (name, number) in groups {
        assert_eq!(owners.gid("/etc/a", name).unwrap(), number, "group {name}");
    }
    let core = owners.account("core").unwrap();
    assert_eq!((core.uid, core.gid, core.home.as_str()), (1000, 1001, "/var/home/core"));
}

#[test]
fn a_name_that_the_host_does_not_know_is_an_error_with_the_way_out() {
    let (_dir, tree) = host(&FILES);
    let owners = Owners::read(&tree).unwrap();
    for name in ["nobody-here", "short", "number", "+nis", "", "-1", "1000 ", "core:"] {
        let error = owners.uid("/etc/a.conf", name).unwrap_err().to_string();
        assert!(
            error.contains(&format!("/etc/a.conf: the host knows no user `{name}`")),
            "{error}"
        );
        assert!(error.contains("name one that it knows, or a number"), "{error}");
    }
    let error = owners.gid("/etc/a.conf", "qemu").unwrap_err().to_string();
    assert!(error.contains("/etc/a.conf: the host knows no group `qemu`"), "{error}");
    for number in ["4294967295", "4294967296", "99999999999999999999"] {
        let error = owners.gid("/etc/a.conf", number).unwrap_err().to_string();
        assert!(error.contains(&format!("can have the number {number}")), "{error}");
    }
}

#[test]
fn a_host_without_files_knows_root() {
    let (_dir, tree) = host(&[]);
    let owners = Owners::read(&tree).unwrap();
    assert_eq!((owners.uid("/a", "root").unwrap(), owners.gid("/a", "root").unwrap()), (0, 0));
    assert!(owners.account("core").is_none());
}

proptest! {
    #[test]
    fn no_text_of_the_files_makes_it_panic(text in "([a-z+#-]{0,3}:?|[0-9]{0,12}:|\\PC|\n){0,40}") {
        let accounts = table::accounts(&text).count();
        let groups = table::groups(&text).count();
        prop_assert!(accounts <= text.len() && groups <= text.len());
    }
}
