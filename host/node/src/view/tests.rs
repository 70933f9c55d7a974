#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use std::os::unix::fs::symlink;

fn tree() -> (tempfile::TempDir, Tree) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("usr/lib/units")).unwrap();
    std::fs::write(dir.path().join("usr/lib/units/a"), "text").unwrap();
    std::fs::write(dir.path().join("usr/lib/units/b"), b"\xff").unwrap();
    symlink("usr/lib", dir.path().join("lib")).unwrap();
    symlink("../units/a", dir.path().join("usr/lib/units/c")).unwrap();
    symlink("/lib/units/nothing", dir.path().join("usr/lib/units/d")).unwrap();
    symlink("e", dir.path().join("usr/lib/units/e")).unwrap();
    let tree = Tree::open(dir.path()).unwrap();
    (dir, tree)
}

#[test]
fn an_overlay_shows_what_is_set_and_else_what_is_there() {
    let (_dir, tree) = tree();
    let mut view = Overlay::new(&tree);
    view.set("/usr/lib/units/a", Entry::Absent);
    view.set("/usr/lib/units/new/x", Entry::File(Some("x".to_owned())));
    assert_eq!(view.entry("/usr/lib/units/a").unwrap(), Entry::Absent);
    assert_eq!(view.entry("/usr/lib/units/b").unwrap(), Entry::File(None));
    assert_eq!(view.entry("/usr/lib/units/new").unwrap(), Entry::Folder);
    assert_eq!(view.entry("/lib").unwrap(), Entry::Link("usr/lib".to_owned()));
    assert_eq!(view.names("/usr/lib/units").unwrap(), ["b", "c", "d", "e", "new"]);
    assert_eq!(view.names("/usr/lib/units/new").unwrap(), ["x"]);
    assert_eq!(view.names("/usr/lib/units/b").unwrap(), [""; 0]);
    assert_eq!(view.names("/nothing/here").unwrap(), [""; 0]);
}

#[test]
fn a_path_is_followed_to_where_it_leads() {
    let (_dir, tree) = tree();
    let cases = [
        ("/lib/units/c", false, Some("/usr/lib/units/c")),
        ("/lib/units/c", true, Some("/usr/lib/units/a")),
        ("/lib/units/d", true, Some("/usr/lib/units/nothing")),
        ("/lib/units/e", false, Some("/usr/lib/units/e")),
        ("/lib/units/e", true, None),
        ("/lib/../lib/units/./a", true, Some("/usr/lib/units/a")),
        ("/", true, Some("/")),
    ];
    for (path, last, expected) in cases {
        assert_eq!(real(&tree, path, last).unwrap().as_deref(), expected, "{path} {last}");
    }
}
