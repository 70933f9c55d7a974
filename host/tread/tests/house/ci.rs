//! What CI tests is what its clone has, and of that only what changed is written anew.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Stands for the tests: says where they run and where they build.
const TESTS: &str = "#!/bin/sh\ncd \"$(dirname \"$0\")/..\" && pwd && echo \"$CARGO_TARGET_DIR\"\n";

struct Clones {
    dir: tempfile::TempDir,
}

/// What was tested, and where it was built.
struct Tested {
    tree: PathBuf,
    target: PathBuf,
}

impl Tested {
    fn text(&self, name: &str) -> String {
        super::text_of(&self.tree.join(name))
    }

    fn written(&self, name: &str) -> SystemTime {
        self.tree.join(name).metadata().unwrap().modified().unwrap()
    }
}

impl Clones {
    /// A clone with this script of CI, two files, and a test that says where it is.
    fn new() -> Clones {
        use std::os::unix::fs::PermissionsExt;
        let clones = Clones { dir: tempfile::tempdir().unwrap() };
        let first = clones.at("first");
        for (name, text) in [
            (".ci/run", super::text_of(&super::tree().join(".ci/run")).as_str()),
            ("tests/run", TESTS),
            ("a", "one"),
            ("b", "one"),
        ] {
            let path = first.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        clones.git("first", &["init", "--quiet"]);
        clones.commit("first");
        clones
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn target(&self) -> PathBuf {
        self.at("target")
    }

    fn git(&self, clone: &str, args: &[&str]) {
        let ran = Command::new("git").arg("-C").arg(self.at(clone)).args(args).status();
        assert!(ran.unwrap().success(), "git {args:?}");
    }

    fn commit(&self, clone: &str) {
        self.git(clone, &["add", "--all"]);
        let who = ["-c", "user.name=a", "-c", "user.email=a@b.example"];
        self.git(clone, &[&who[..], &["commit", "--quiet", "--message", "It changes"]].concat());
    }

    fn tested(&self, clone: &str) -> Tested {
        let ran = Command::new(self.at(clone).join(".ci/run"))
            .env("CARGO_TARGET_DIR", self.target())
            .env("TREAD_CI_PATIENCE", "0")
            .current_dir(self.dir.path())
            .output()
            .unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let said = String::from_utf8(ran.stdout).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        Tested { tree: lines[0].into(), target: lines[1].into() }
    }
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

#[test]
fn of_another_clone_only_what_changed_is_written_into_the_tree_that_is_tested() {
    let clones = Clones::new();
    let first = clones.tested("first");
    let (a, b) = (first.written("a"), first.written("b"));
    write(&first.tree.join("left"), "by a test");
    clones.git(".", &["clone", "--quiet", "--depth=1", "--no-local", "first", "second"]);
    write(&clones.at("second/b"), "two");
    clones.commit("second");
    let second = clones.tested("second");
    assert_eq!((&second.tree, &second.target), (&first.tree, &clones.target()));
    assert_eq!((second.text("a"), second.text("b")), ("one".to_owned(), "two".to_owned()));
    assert_eq!(second.written("a"), a);
    assert!(second.written("b") > b);
    assert!(!second.tree.join("left").exists());
}

#[test]
fn what_was_not_committed_is_tested_too_and_all_is_built_again() {
    let clones = Clones::new();
    let first = clones.tested("first");
    let (a, kept) = (first.written("a"), first.tree);
    write(&clones.at("first/b"), "not committed");
    let second = clones.tested("first");
    assert_eq!((&second.tree, &second.target), (&clones.at("first"), &clones.target()));
    assert!(second.written("a") > a, "cargo sees that it may be from another tree");
    assert!(!kept.exists(), "what is built now is not from there");
}

#[test]
fn a_tree_that_git_does_not_go_on_with_is_made_anew() {
    let clones = Clones::new();
    let a = clones.tested("first").written("a");
    for broken in ["index.lock", "HEAD"] {
        write(&clones.target().join("tree/.git").join(broken), "");
        let tested = clones.tested("first");
        assert_eq!((&tested.tree, &tested.target), (&clones.at("target/tree"), &clones.target()));
        assert!(tested.written("a") > a, "{broken}");
    }
    std::fs::remove_dir_all(clones.target().join("tree/.git")).unwrap();
    assert_eq!(clones.tested("first").text("b"), "one");
}

#[test]
fn two_runs_do_not_build_into_the_same_directory() {
    let clones = Clones::new();
    clones.tested("first");
    let other = std::fs::File::open(clones.target().join("tree.lock")).unwrap();
    other.lock().unwrap();
    let tested = clones.tested("first");
    assert_eq!((tested.tree, tested.target), (clones.at("first"), clones.at("first/target")));
}
