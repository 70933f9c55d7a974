#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod limits;
mod service;

use super::listener::Listener;
use super::*;
use crate::drift::{Accepted, Expected, Kind};
use crate::prepare::Wanted;
use crate::tree::{Found, Owner, Tree};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tokio::time::timeout;

const QUICK: Pace = Pace {
    settle: Duration::from_millis(20),
    apart: Duration::ZERO,
    full: Duration::from_secs(3600),
};

/// Nothing that is waited for takes so long, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(1200);

struct Bed(tempfile::TempDir);

impl Bed {
    fn new() -> Bed {
        Bed(tempfile::tempdir().unwrap())
    }

    fn tree(&self) -> Tree {
        Tree::open(self.0.path()).unwrap()
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path.trim_start_matches('/'))
    }

    fn folder(&self, path: &str) {
        fs::create_dir_all(self.path(path)).unwrap();
    }

    fn file(&self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
        fs::set_permissions(self.path(path), Permissions::from_mode(0o644)).unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.path(path)).unwrap();
    }

    fn link(&self, path: &str, target: &str) {
        symlink(target, self.path(path)).unwrap();
    }
}

fn file(path: &str, text: &'static str) -> Expected {
    let owner = Owner { uid: 0, gid: 0, mode: 0o644 };
    let seen = Wanted::File { bytes: text.as_bytes().into(), owner }.seen();
    Expected { path: path.to_owned(), of: format!("file:{path}"), seen: Some(seen) }
}

fn absent(path: &str) -> Expected {
    let of = "unit:a.service".to_owned();
    Expected { path: path.to_owned(), of, seen: Some(Found::Absent) }
}

fn in_time<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { timeout(PATIENCE, future).await.unwrap() })
}

/// Waits until exactly these paths differ.
async fn differ(watch: &mut Watch, expected: &[(&str, &[Kind])]) {
    loop {
        let found: Vec<(&str, &[Kind])> =
            watch.drifted().map(|it| (it.path.as_str(), it.kinds.as_slice())).collect();
        if found == expected {
            return;
        }
        watch.next().await;
    }
}

/// What every bed has: two files, one of them behind a link among the folders, a name that
/// is to be free, and a file in folders that are not there yet.
fn bed() -> (Bed, Vec<Expected>) {
    let bed = Bed::new();
    bed.file("/etc/a.conf", "a");
    bed.folder("/etc/systemd/system");
    bed.folder("/usr");
    bed.folder("/var/usrlocal");
    bed.link("/usr/local", "../var/usrlocal");
    bed.file("/usr/local/bin/tool", "tool");
    bed.file("/opt/deep/er/still", "deep");
    let expected = vec![
        file("/etc/a.conf", "a"),
        file("/opt/deep/er/still", "deep"),
        absent("/etc/systemd/system/a.service"),
        file("/usr/local/bin/tool", "tool"),
    ];
    (bed, expected)
}

/// What is done, what differs then, and how it is undone.
type Case = (&'static str, fn(&Bed), (&'static str, &'static [Kind]), fn(&Bed));

const CASES: [Case; 13] = [
    (
        "another text",
        |bed| bed.file("/etc/a.conf", "b"),
        ("/etc/a.conf", &[Kind::Contents]),
        |bed| bed.file("/etc/a.conf", "a"),
    ),
    (
        "another file by its name",
        |bed| {
            bed.file("/etc/next", "b");
            bed.rename("/etc/next", "/etc/a.conf");
        },
        ("/etc/a.conf", &[Kind::Contents]),
        |bed| bed.file("/etc/a.conf", "a"),
    ),
    (
        "another mode",
        |bed| fs::set_permissions(bed.path("/etc/a.conf"), Permissions::from_mode(0o600)).unwrap(),
        ("/etc/a.conf", &[Kind::Mode]),
        |bed| fs::set_permissions(bed.path("/etc/a.conf"), Permissions::from_mode(0o644)).unwrap(),
    ),
    (
        "another owner",
        |bed| std::os::unix::fs::chown(bed.path("/etc/a.conf"), Some(7), Some(7)).unwrap(),
        ("/etc/a.conf", &[Kind::User, Kind::Group]),
        |bed| std::os::unix::fs::chown(bed.path("/etc/a.conf"), Some(0), Some(0)).unwrap(),
    ),
    (
        "no file",
        |bed| bed.remove("/etc/a.conf"),
        ("/etc/a.conf", &[Kind::Missing]),
        |bed| bed.file("/etc/a.conf", "a"),
    ),
    (
        "a FIFO",
        |bed| {
            bed.remove("/etc/a.conf");
            let made = Command::new("mkfifo").arg(bed.path("/etc/a.conf")).status().unwrap();
            assert!(made.success());
        },
        ("/etc/a.conf", &[Kind::Type]),
        |bed| {
            bed.remove("/etc/a.conf");
            bed.file("/etc/a.conf", "a");
        },
    ),
    (
        "a link to the same text",
        |bed| {
            bed.rename("/etc/a.conf", "/etc/b.conf");
            bed.link("/etc/a.conf", "b.conf");
        },
        ("/etc/a.conf", &[Kind::Type]),
        |bed| bed.rename("/etc/b.conf", "/etc/a.conf"),
    ),
    (
        "what should not be there",
        |bed| bed.link("/etc/systemd/system/a.service", "/dev/null"),
        ("/etc/systemd/system/a.service", &[Kind::Unwanted]),
        |bed| bed.remove("/etc/systemd/system/a.service"),
    ),
    (
        "a folder that is moved away",
        |bed| bed.rename("/opt/deep", "/opt/elsewhere"),
        ("/opt/deep/er/still", &[Kind::Missing]),
        |bed| bed.rename("/opt/elsewhere", "/opt/deep"),
    ),
    (
        "all folders on the way",
        |bed| fs::remove_dir_all(bed.path("/opt")).unwrap(),
        ("/opt/deep/er/still", &[Kind::Missing]),
        |bed| bed.file("/opt/deep/er/still", "deep"),
    ),
    (
        "a folder that another one takes the place of",
        |bed| {
            bed.file("/opt/new/er/still", "other");
            bed.rename("/opt/deep", "/opt/elsewhere");
            bed.rename("/opt/new", "/opt/deep");
        },
        ("/opt/deep/er/still", &[Kind::Contents]),
        |bed| bed.file("/opt/deep/er/still", "deep"),
    ),
    (
        "a link among the folders that leads elsewhere",
        |bed| {
            bed.folder("/var/other");
            bed.link("/usr/next", "../var/other");
            bed.rename("/usr/next", "/usr/local");
        },
        ("/usr/local/bin/tool", &[Kind::Missing]),
        |bed| bed.file("/var/other/bin/tool", "tool"),
    ),
    (
        "a link of a user among the folders",
        |bed| {
            bed.link("/usr/next", "../var/other");
            std::os::unix::fs::lchown(bed.path("/usr/next"), Some(7), Some(7)).unwrap();
            bed.rename("/usr/next", "/usr/local");
        },
        ("/usr/local/bin/tool", &[Kind::Way]),
        |bed| std::os::unix::fs::lchown(bed.path("/usr/local"), Some(0), Some(0)).unwrap(),
    ),
];

#[test]
fn each_drift_is_told_when_it_appears_and_when_it_is_mended_one_after_another() {
    let (bed, expected) = bed();
    in_time(async {
        let mut watch = Watch::new(&bed.tree(), expected, Accepted::new(), &[], QUICK);
        assert_eq!(watch.next().await, Noticed::Looked { news: false, all: true });
        for (what, done, (path, kinds), undone) in CASES {
            done(&bed);
            let seen = timeout(PATIENCE / 4, differ(&mut watch, &[(path, kinds)])).await;
            let found: Vec<_> = watch.drifted().collect();
            assert!(seen.is_ok(), "{what}: {found:?}");
            undone(&bed);
            let seen = timeout(PATIENCE / 4, differ(&mut watch, &[])).await;
            assert!(seen.is_ok(), "{what}, undone: {:?}", watch.drifted().collect::<Vec<_>>());
        }
    });
}

#[test]
fn what_is_missing_at_the_start_is_told_and_heard_when_it_comes() {
    let bed = Bed::new();
    let path = "/a/b/c/d";
    in_time(async {
        let expected = vec![file(path, "d")];
        let mut watch = Watch::new(&bed.tree(), expected, Accepted::new(), &[], QUICK);
        differ(&mut watch, &[(path, &[Kind::Missing])]).await;
        bed.file(path, "d");
        differ(&mut watch, &[]).await;
        fs::remove_dir_all(bed.path("/a/b")).unwrap();
        differ(&mut watch, &[(path, &[Kind::Missing])]).await;
        for part in ["/a/b", "/a/b/c"] {
            bed.folder(part);
            watch.next().await;
        }
        bed.file(path, "d");
        differ(&mut watch, &[]).await;
    });
}

#[test]
fn what_an_admin_accepted_and_what_others_own_is_no_drift() {
    let bed = Bed::new();
    bed.file("/etc/kept", "by hand");
    bed.file("/etc/kubernetes/kubelet-ca.crt", "newer");
    let expected = vec![file("/etc/kept", "x"), file("/etc/kubernetes/kubelet-ca.crt", "x")];
    let there = crate::drift::see(&bed.tree(), "/etc/kept").unwrap();
    let accepted = Accepted::from([("/etc/kept".to_owned(), there)]);
    in_time(async {
        let mut watch = Watch::new(&bed.tree(), expected, accepted, &[], QUICK);
        watch.next().await;
        assert_eq!(watch.drifted().count(), 0);
        let noted: Vec<&str> = watch.noted().map(|it| it.path.as_str()).collect();
        assert_eq!(noted, ["/etc/kubernetes/kubelet-ca.crt"]);
        bed.file("/etc/kept", "by hand, again");
        differ(&mut watch, &[("/etc/kept", &[Kind::Contents])]).await;
    });
}

#[test]
fn a_password_that_changes_is_told_and_other_lines_are_not() {
    let bed = Bed::new();
    bed.file("/etc/shadow", "root:*:::::::\ncore:a:::::::\n");
    let seen = crate::shadow::Hash::new("a").unwrap().seen();
    let path = crate::shadow::path_of("core");
    let expected =
        vec![Expected { path: path.clone(), of: "password:core".to_owned(), seen: Some(seen) }];
    in_time(async {
        let mut watch = Watch::new(&bed.tree(), expected, Accepted::new(), &[], QUICK);
        watch.next().await;
        bed.file("/etc/shadow", "root:x:::::::\ncore:a:::::::\n");
        assert_eq!(watch.next().await, Noticed::Looked { news: false, all: false });
        bed.file("/etc/shadow", "root:x:::::::\ncore:b:::::::\n");
        differ(&mut watch, &[(&path, &[Kind::Password])]).await;
        let text = format!("{:?}", watch.drifted().collect::<Vec<_>>());
        assert!(!text.contains("core:b"), "{text}");
    });
}

#[test]
fn only_the_paths_of_an_event_are_looked_at_and_each_folder_is_watched_once() {
    let bed = Bed::new();
    let paths: Vec<String> =
        (0..2000).map(|it| format!("/etc/many/{}/{it}.conf", it / 50)).collect();
    for path in &paths {
        bed.file(path, "x");
    }
    let tree = bed.tree();
    in_time(async {
        let mut listener = Listener::new(paths.iter().map(String::as_str), QUICK);
        listener.watch(&tree);
        assert_eq!(listener.deaf(), None);
        // The root, /etc, /etc/many and 40 in it.
        assert_eq!(listener.watched(), 43);
        bed.file("/etc/many/0/other.conf", "of no interest");
        bed.file(&paths[77], "y");
        bed.remove(&paths[1234]);
        let touched = listener.heard().await;
        assert!(!touched.all && !touched.ways, "{touched:?}");
        assert_eq!(touched.paths.into_iter().collect::<Vec<_>>(), [77, 1234]);
        bed.rename("/etc/many/3", "/etc/many/4711");
        let touched = listener.heard().await;
        assert!(touched.ways && !touched.all, "{touched:?}");
        assert_eq!(touched.paths.into_iter().collect::<Vec<_>>(), (150..200).collect::<Vec<_>>());
        listener.watch(&tree);
        assert_eq!(listener.watched(), 42, "what is no way any more is watched no more");
    });
}

#[test]
fn everything_is_looked_at_once_in_a_while_whatever_was_heard() {
    let bed = Bed::new();
    bed.file("/etc/a.conf", "a");
    bed.folder("/elsewhere");
    fs::hard_link(bed.path("/etc/a.conf"), bed.path("/elsewhere/same")).unwrap();
    let pace = Pace { full: Duration::from_millis(500), ..QUICK };
    in_time(async {
        let expected = vec![file("/etc/a.conf", "a")];
        let mut watch = Watch::new(&bed.tree(), expected, Accepted::new(), &[], pace);
        watch.next().await;
        // By its other name, in a folder that nobody watches.
        fs::write(bed.path("/elsewhere/same"), "b").unwrap();
        assert_eq!(watch.next().await, Noticed::Looked { news: true, all: true });
        differ(&mut watch, &[("/etc/a.conf", &[Kind::Contents])]).await;
    });
}
