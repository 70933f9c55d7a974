#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use std::os::unix::fs::symlink;

fn tree() -> (tempfile::TempDir, Tree) {
    let dir = tempfile::tempdir().unwrap();
    let tree = Tree::open(dir.path()).unwrap();
    (dir, tree)
}

#[test]
fn a_link_of_roots_among_the_folders_is_followed_within_the_tree() {
    let (dir, tree) = tree();
    std::fs::create_dir_all(dir.path().join("var/usrlocal/bin")).unwrap();
    std::fs::create_dir(dir.path().join("usr")).unwrap();
    symlink("../var/usrlocal", dir.path().join("usr/local")).unwrap();
    symlink("/var", dir.path().join("absolute")).unwrap();
    let folder = tree.folder("/usr/local/bin").unwrap().unwrap();
    assert_eq!(folder.path(), "/var/usrlocal/bin");
    let folder = tree.folder("/absolute/usrlocal").unwrap().unwrap();
    assert_eq!(folder.path(), "/var/usrlocal");
}

#[test]
fn no_link_leads_out_of_the_tree() {
    let (dir, tree) = tree();
    symlink("../../../../etc", dir.path().join("up")).unwrap();
    std::fs::create_dir(dir.path().join("etc")).unwrap();
    std::fs::write(dir.path().join("etc/passwd"), "mine").unwrap();
    let read = tree.read("/up/passwd", 100).unwrap();
    assert_eq!(read.as_deref(), Some(&b"mine"[..]));
}

#[test]
fn a_link_that_somebody_else_owns_is_not_followed() {
    let (dir, tree) = tree();
    std::fs::create_dir(dir.path().join("etc")).unwrap();
    symlink("/etc", dir.path().join("home")).unwrap();
    std::os::unix::fs::lchown(dir.path().join("home"), Some(4711), Some(4711)).unwrap();
    let error = tree.folder("/home/core").err().unwrap().to_string();
    assert!(error.contains("/home is a link that root does not own"), "{error}");
}

#[test]
fn paths_that_are_not_clean_are_refused() {
    let (_dir, tree) = tree();
    for path in ["etc", "", "/etc/../root", "/etc//a", "/./etc", "/etc/", "/a\0b"] {
        assert!(matches!(tree.read(path, 1), Err(PathError::Unclean { .. })), "{path:?}");
    }
}

#[test]
fn a_file_is_read_through_links_of_root_and_never_out_of_the_tree() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    std::fs::create_dir_all(root.join("a/b")).unwrap();
    std::fs::write(dir.path().join("outside"), "outside").unwrap();
    std::fs::write(root.join("a/file"), "inside").unwrap();
    let link = |target: &str, at: &str| symlink(target, root.join(at)).unwrap();
    link("../../../../a/file", "a/b/up");
    link("/a/b/up", "absolute");
    link("../outside", "out");
    link(dir.path().join("outside").to_str().unwrap(), "far-out");
    link("a/..", "folder");
    link("a/gone", "dangling");
    let tree = Tree::open(&root).unwrap();
    let read = |path: &str| tree.read_followed(path, 100);
    for path in ["/a/file", "/a/b/up", "/absolute", "/a/b/../file", "/a/b/../../../a/file"] {
        assert_eq!(read(path).unwrap().as_deref(), Some(&b"inside"[..]), "{path}");
    }
    for path in ["/out", "/far-out", "/dangling", "/missing", "/gone/missing"] {
        assert_eq!(read(path).unwrap(), None, "{path}");
    }
    for path in ["/folder", "/a", "/", "a/file", "/a/..", "/a/file/below"] {
        assert!(read(path).is_err(), "{path}");
    }
}

#[test]
fn links_in_a_circle_end() {
    let (dir, tree) = tree();
    symlink("b", dir.path().join("a")).unwrap();
    symlink("a", dir.path().join("b")).unwrap();
    assert!(matches!(tree.folder("/a/c"), Err(PathError::Circle { .. })));
}

#[test]
fn a_fifo_is_neither_read_nor_gone_through() {
    let (dir, tree) = tree();
    let fifo = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, dir.path().join("fifo"), fifo, mode, 0).unwrap();
    let error = tree.read("/fifo", 10).unwrap_err().to_string();
    assert!(error.contains("a FIFO, a socket or a device"), "{error}");
    assert!(matches!(tree.folder("/fifo/a"), Err(PathError::NoWay { .. })));
    assert_eq!(tree.folder("/").unwrap().unwrap().see("fifo").unwrap(), Found::Other);
}

#[test]
fn a_file_has_the_owner_mode_and_bytes_that_it_was_made_with() {
    let (_dir, tree) = tree();
    let root = tree.folder("/").unwrap().unwrap();
    let owner = Owner { uid: 4711, gid: 4712, mode: 0o4750 };
    root.create("a", b"bytes", owner, &[]).unwrap();
    let stat = root.stat("a").unwrap().unwrap();
    assert_eq!((stat.kind, stat.owner, stat.size), (Kind::File, owner, 5));
    let seen = Found::File { digest: tread_model::digest::Digest::of(b"bytes"), owner };
    assert_eq!(root.see("a").unwrap(), seen);
}

#[test]
fn a_path_is_reached_as_far_as_there_are_folders_also_through_links() {
    let (dir, tree) = tree();
    symlink("var/opt", dir.path().join("opt")).unwrap();
    let reached = tree.reach("/opt/a/b").unwrap();
    assert_eq!((reached.folder.path(), reached.missing.join("/")), ("/", "var/opt/a/b".to_owned()));
    let made = tree.folder_made("/opt/a/b").unwrap();
    assert_eq!(made.path(), "/var/opt/a/b");
    assert!(dir.path().join("var/opt/a/b").is_dir());
}

#[test]
fn a_file_larger_than_any_of_a_config_is_not_read_to_know_it() {
    let (dir, tree) = tree();
    let file = std::fs::File::create(dir.path().join("huge")).unwrap();
    file.set_len(1 << 40).unwrap();
    assert_eq!(tree.folder("/").unwrap().unwrap().see("huge").unwrap(), Found::Other);
}

#[test]
fn more_folders_than_are_kept_open_are_all_found() {
    let bed = tempfile::tempdir().unwrap();
    let path = |index: usize| format!("/etc/{index:03}/name");
    for index in (0..200).filter(|index| index % 3 != 0) {
        let folder = bed.path().join(format!("etc/{index:03}"));
        std::fs::create_dir_all(folder).unwrap();
    }
    let tree = Tree::open(bed.path()).unwrap();
    let folders = Folders::new(&tree);
    for index in (0..200).chain((0..200).rev()) {
        let path = path(index);
        let found = folders.place(&path).unwrap().map(|(folder, name)| folder.path_of(name));
        assert_eq!(found, (index % 3 != 0).then_some(path));
    }
    assert!(folders.place("/etc/../name").is_err());
}
