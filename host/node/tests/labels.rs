//! Labels against those of libselinux itself, with a whole policy of a distribution.
//!
//! `tests/selinux/run` brings both and runs this.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use tread_node::host::ThisHost;
use tread_node::journal::{Journal, Owned};
use tread_node::labels::Labels;
use tread_node::prepare::{Target, Wanted, prepare};
use tread_node::tree::{Kind, Owner, Tree};

/// Where the policy is, as the script says.
fn given(variable: &str) -> PathBuf {
    match std::env::var_os(variable) {
        Some(path) => path.into(),
        None => panic!("{variable} is not set; run tests/selinux/run, which sets it"),
    }
}

/// What libselinux says of many paths: the label of each, empty for none.
fn of_libselinux(program: &Path, contexts: &Path, kind: &str, paths: &[&String]) -> Vec<String> {
    let mut labels = Vec::new();
    for some in paths.chunks(200) {
        let mut command = Command::new(program);
        command.arg("-n").arg("-f").arg(contexts).args(["-m", kind]).args(some);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let output = String::from_utf8(output.stdout).unwrap();
        let found: Vec<String> = output.lines().map(|it| it.replace("<<none>>", "")).collect();
        assert_eq!(found.len(), some.len());
        labels.extend(found);
    }
    labels
}

/// Paths that an expression is likely to match, or to miss by little.
fn near(expression: &str) -> Vec<String> {
    let plain = |with: &str, optional: bool| {
        let mut path = String::new();
        let mut letters = expression.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '\\' => path.extend(letters.next()),
                '.' => path.push_str(with),
                '[' => {
                    let class: String = letters.by_ref().take_while(|it| *it != ']').collect();
                    path.push(class.chars().find(|it| !"^-/".contains(*it)).unwrap_or('x'));
                }
                '*' | '+' | '(' | ')' | '^' | '$' => {}
                '?' if optional => {
                    path.pop();
                }
                '?' => {}
                '|' => path.push('/'),
                letter => path.push(letter),
            }
        }
        path
    };
    let first = plain("x", false);
    let mut all = vec![first.clone(), plain("", false), plain("a/b", true), format!("{first}/x")];
    // The two sides of an alternative, each by itself.
    if let Some((before, rest)) = first.split_once('/').filter(|_| expression.contains('|')) {
        all.extend(rest.split('/').map(|side| format!("{before}/{side}")));
    }
    all.retain(|path| {
        let clean = path
            .strip_prefix('/')
            .is_some_and(|rest| rest.split('/').all(|name| !matches!(name, "" | "." | "..")));
        clean && path.is_ascii()
    });
    all
}

/// Some files of this machine.
fn of_this_machine(folder: &Path, deep: usize, paths: &mut BTreeSet<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten().take(60) {
        let path = entry.path();
        paths.extend(path.to_str().filter(|it| it.is_ascii()).map(str::to_owned));
        if deep > 0 && entry.file_type().is_ok_and(|it| it.is_dir()) {
            of_this_machine(&path, deep - 1, paths);
        }
    }
}

#[test]
fn every_label_is_the_one_that_libselinux_gives() {
    let program = given("TREAD_MATCHPATHCON");
    let root = given("TREAD_SELINUX_ROOT");
    let contexts = root.join("etc/selinux/targeted/contexts/files/file_contexts");
    let text = std::fs::read_to_string(&contexts).unwrap();
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let expressions: Vec<&str> = lines.filter_map(|it| it.split_whitespace().next()).collect();
    let mut paths: BTreeSet<String> = expressions.iter().flat_map(|it| near(it)).collect();
    for folder in ["/etc", "/usr", "/var"] {
        of_this_machine(Path::new(folder), 3, &mut paths);
    }
    let paths: Vec<&String> = paths.iter().collect();
    assert!(paths.len() > 5000, "{} paths are too few", paths.len());

    let labels = Labels::read(&Tree::open(&root).unwrap()).unwrap().unwrap();
    let mut differ = Vec::new();
    let mut labelled = 0;
    for (name, kind) in [("file", Kind::File), ("dir", Kind::Folder), ("link", Kind::Link)] {
        let expected = of_libselinux(&program, &contexts, name, &paths);
        for (path, expected) in paths.iter().zip(&expected) {
            let label = labels.label(path, kind).unwrap().unwrap_or_default();
            labelled += usize::from(!label.is_empty());
            if label != expected {
                differ.push(format!("{path} {name}: {label:?}, and libselinux says {expected:?}"));
            }
        }
    }
    assert!(labelled > paths.len(), "only {labelled} labels");
    assert!(differ.is_empty(), "{} differ: {:#?}", differ.len(), &differ[..differ.len().min(20)]);
}

/// The label of what stands there, itself and not where it leads; empty for none.
fn label_at(path: &Path) -> String {
    let mut label = Vec::with_capacity(4096);
    let room = rustix::buffer::spare_capacity(&mut label);
    match rustix::fs::lgetxattr(path, "security.selinux", room) {
        Ok(_) | Err(rustix::io::Errno::NODATA) => {}
        Err(errno) => panic!("{}: {errno}", path.display()),
    }
    String::from_utf8(label).unwrap().trim_end_matches('\0').to_owned()
}

#[test]
fn files_folders_and_links_that_an_operation_makes_have_the_labels_of_libselinux() {
    let program = given("TREAD_MATCHPATHCON");
    let policy = given("TREAD_SELINUX_ROOT");
    let contexts = policy.join("etc/selinux/targeted/contexts/files/file_contexts");
    let bed = tempfile::tempdir().unwrap();
    let root = bed.path();
    for folder in ["etc", "usr", "var/usrlocal", "var/home/core"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    symlink("../var/usrlocal", root.join("usr/local")).unwrap();
    symlink("var/home", root.join("home")).unwrap();
    let copied = Command::new("cp")
        .arg("-a")
        .args([policy.join("etc/selinux"), root.join("etc")])
        .status()
        .unwrap();
    assert!(copied.success());
    let tree = Tree::open(root).unwrap();
    let owner = Owner { uid: 0, gid: 0, mode: 0o644 };
    let file = |path: &str| {
        let wanted = Wanted::File { bytes: b"x"[..].into(), owner };
        Target { path: path.to_owned(), wanted, folders: Owned::Root }
    };
    let unit = "/etc/systemd/system/a.service";
    let wants = "/etc/systemd/system/multi-user.target.wants/a.service";
    let link = Wanted::Link { target: unit.to_owned() };
    let link = Target { path: wants.to_owned(), wanted: link, folders: Owned::Root };
    let keys = Owner { uid: 1000, gid: 1000, mode: 0o700 };
    let keys =
        Target { folders: Owned::User(keys), ..file("/home/core/.ssh/authorized_keys.d/ignition") };
    let targets = vec![
        file(unit),
        file("/etc/systemd/system/crio.service.d/10.conf"),
        link,
        file("/etc/containers/registries.conf.d/1.conf"),
        file("/etc/NetworkManager/dispatcher.d/pre-up.d/1"),
        file("/usr/local/bin/tool"),
        file("/usr/local/lib/deep/er/lib.so"),
        file("/var/lib/kubelet/config.json"),
        keys,
    ];
    let host = ThisHost::read(&tree, false).unwrap();
    let label = |path: &str, kind| host.label(path, kind);
    let journal = Journal::open(&tree).unwrap();
    let ready = prepare(&tree, "1", targets, &label).unwrap();
    journal.write(&ready.record, &ready.new).unwrap();
    journal.finish().unwrap();

    let made = ready.record.made.iter().map(|it| format!("{}/{}", it.folder, it.name));
    let made: Vec<(&str, String)> = made.map(|path| ("dir", path)).collect();
    assert!(made.len() >= 12, "{made:?}");
    let entries = ready.record.entries.iter().map(|it| {
        let kind = if it.path == wants { "link" } else { "file" };
        (kind, format!("{}/{}", it.folder, it.name))
    });
    for (kind, path) in made.into_iter().chain(entries) {
        let expected = of_libselinux(&program, &contexts, kind, &[&path]);
        let below = root.join(path.strip_prefix('/').unwrap());
        assert_eq!(label_at(&below), expected[0], "{kind} {path}");
    }
}
