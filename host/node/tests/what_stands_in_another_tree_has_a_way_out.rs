//! Operations on the tree of another system that were cut short or cannot go on, what is said of
//! them, and the way out.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/other_tree.rs"]
mod other_tree;

use other_tree::{Bed, config};
use std::path::PathBuf;
use std::process::{Command, Output};
use tread_model::plan::Step;
use tread_node::documents::{Documents, digest};
use tread_node::journal::{Journal, Note, Owned};
use tread_node::prepare::{Target, Wanted, prepare};
use tread_node::progress::{Phase, Progress};
use tread_node::tree::{Owner, Tree};

fn root(bed: &Bed) -> PathBuf {
    bed.0.path().join("root")
}

fn tree(bed: &Bed) -> Tree {
    Tree::open(&root(bed)).unwrap()
}

fn said(output: &Output) -> String {
    let (out, error) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(error))
}

/// An operation that wrote `/etc/a` and `/etc/b`.
fn writes(bed: &Bed) {
    let owner = Owner { uid: 0, gid: 0, mode: 0o644 };
    let file = |path: &str| {
        let wanted = Wanted::File { bytes: b"half way"[..].into(), owner };
        Target { path: path.to_owned(), wanted, folders: Owned::Root }
    };
    let targets = vec![file("/etc/a"), file("/etc/b")];
    let mut ready = prepare(&tree(bed), "1", targets, &|_, _| Ok(None)).unwrap();
    ready.record.order = serde_json::json!({"of": "a plan"});
    Journal::open(&tree(bed)).unwrap().write(&ready.record, &ready.new).unwrap();
}

/// The same, which has yet to go back.
fn goes_back(bed: &Bed) {
    writes(bed);
    let journal = Journal::open(&tree(bed)).unwrap();
    journal.note(&Note::Back { because: "it was not well".to_owned(), by_units: false }).unwrap();
}

/// A config that says this of a unit.
fn with_unit(says: &str) -> Documents {
    let mut config = config("one", "");
    for document in &mut config.0 {
        let units = format!(r#""systemd": {{"units": [{{{says}}}]}}, "storage":"#);
        document.text = document.text.replace(r#""storage":"#, &units);
    }
    config
}

fn chattr(how: &str, path: &std::path::Path) {
    assert!(Command::new("chattr").arg(how).arg(path).status().unwrap().success());
}

#[test]
fn an_operation_that_nobody_can_settle_is_given_up_and_status_says_what_is_left_until_it_is_mended()
{
    let now = config("one", "");
    let bed = Bed::with(&now);
    goes_back(&bed);
    let at = root(&bed).join("etc/a");
    chattr("+i", &at);
    let settled = bed.node("settle", &[]);
    let named =
        format!("tread node adopt --root '{}' --config CONFIG --give-up", root(&bed).display());
    assert_eq!(settled.status.code(), Some(1), "{settled:?}");
    assert!(said(&settled).contains("/etc/a: Operation not permitted"), "{}", said(&settled));
    assert!(said(&settled).contains(&named), "{}", said(&settled));

    let adopted = bed.node("adopt", &["--config", "now.json", "--give-up", "--keep"]);
    assert!(adopted.status.success(), "{adopted:?}");
    assert!(!root(&bed).join("etc/b").exists(), "what can be settled is");
    let line = "by hand: /etc/a: /etc/a: Operation not permitted";
    for shown in [said(&adopted), said(&bed.node("status", &[]))] {
        assert!(shown.contains(line) && shown.contains("cp -a --remove-destination"), "{shown}");
    }
    let json = bed.node("status", &["-o", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["byHand"][0]["path"], "/etc/a");
    // The command that it names mends it.
    let shown = said(&bed.node("status", &[]));
    let mend = shown.lines().find_map(|line| line.split_once("put it there: ")).unwrap().1;
    chattr("-i", &at);
    assert!(Command::new("sh").args(["-c", mend]).status().unwrap().success(), "{mend}");
    assert_eq!(std::fs::read_to_string(&at).unwrap(), "one");
    assert!(!said(&bed.node("status", &[])).contains("by hand"));
}

#[test]
fn a_note_that_nobody_can_read_is_named_and_given_up() {
    let bed = Bed::with(&config("one", ""));
    goes_back(&bed);
    let log = root(&bed).join("var/lib/tread/node/operation/log");
    let notes = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, format!("{notes}garbage\n")).unwrap();
    let settled = bed.node("settle", &[]);
    assert_eq!(settled.status.code(), Some(1), "{settled:?}");
    let shown = said(&settled);
    assert!(shown.contains("operation/log is damaged") && shown.contains("--give-up"), "{shown}");
    let adopted = bed.node("adopt", &["--config", "now.json", "--give-up", "--keep"]);
    assert!(adopted.status.success(), "{adopted:?}");
    assert!(said(&bed.node("status", &[])).contains("operation.aside"), "{adopted:?}");
    assert!(bed.node("settle", &[]).status.success(), "nothing stands any more");
}

#[test]
fn a_config_that_enables_what_the_one_before_masked_can_be_adopted_by_who_gives_up() {
    let masked = with_unit(r#""name": "a.service", "mask": true"#);
    let enabled = with_unit(r#""name": "a.service", "enabled": true"#);
    for stands in [writes, goes_back] {
        let bed = Bed::with(&config("one", ""));
        let shipped = root(&bed).join("usr/lib/systemd/system");
        std::fs::create_dir_all(&shipped).unwrap();
        let text = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n";
        std::fs::write(shipped.join("a.service"), text).unwrap();
        let applied = bed.apply(&config("one", ""), &masked, &["--no-drain"]);
        assert!(applied.status.success(), "{applied:?}");
        stands(&bed);
        bed.put("next.json", &enabled.0.first().unwrap().text);
        let adopted = bed.node("adopt", &["--config", "next.json", "--give-up", "--overwrite"]);
        assert!(adopted.status.success(), "{adopted:?}");
        let units = root(&bed).join("etc/systemd/system");
        assert!(units.join("a.service").symlink_metadata().is_err(), "it is masked no more");
        assert!(units.join("multi-user.target.wants/a.service").symlink_metadata().is_ok());
    }
}

#[test]
fn a_config_that_the_node_cannot_have_gives_up_nothing() {
    let bed = Bed::with(&config("one", ""));
    writes(&bed);
    let missing = with_unit(r#""name": "missing.service", "enabled": true"#);
    bed.put("next.json", &missing.0.first().unwrap().text);
    let refused = bed.node("adopt", &["--config", "next.json", "--give-up", "--overwrite"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(said(&refused).contains("missing.service: there is no such unit"), "{refused:?}");
    assert!(root(&bed).join("var/lib/tread/node/operation").exists(), "it stands");
}

#[test]
fn what_is_adopted_is_what_is_there_once_that_which_stood_is_settled() {
    for how in ["--keep", "--overwrite"] {
        let bed = Bed::with(&config("one", ""));
        goes_back(&bed);
        let adopted = bed.node("adopt", &["--config", "now.json", "--give-up", how]);
        assert!(adopted.status.success(), "{adopted:?}");
        assert!(!said(&adopted).contains("to be "), "nothing differs: {}", said(&adopted));
        assert_eq!(std::fs::read_to_string(root(&bed).join("etc/a")).unwrap(), "one");
        let checked = said(&bed.node("check", &[]));
        assert!(checked.contains("0 of 1 paths differ"), "{how}: {checked}");
    }
}

#[test]
fn a_record_of_what_was_applied_that_is_a_folder_is_put_aside_by_who_adopts() {
    let bed = Bed::with(&config("one", ""));
    let applied = root(&bed).join("var/lib/tread/node/applied");
    std::fs::remove_file(&applied).unwrap();
    std::fs::create_dir_all(applied.join("theirs")).unwrap();
    let named = format!("tread node adopt --root '{}' --config CONFIG", root(&bed).display());
    for verb in ["status", "check"] {
        let shown = said(&bed.node(verb, &[]));
        assert!(shown.contains("applied is no file") && shown.contains(&named), "{verb}: {shown}");
    }
    let adopted = bed.node("adopt", &["--config", "now.json"]);
    assert!(adopted.status.success(), "{adopted:?}");
    assert!(said(&adopted).contains("put aside: /var/lib/tread/node/applied.aside"), "{adopted:?}");
    assert!(root(&bed).join("var/lib/tread/node/applied.aside/theirs").is_dir());
    assert!(bed.node("check", &[]).status.success());
}

#[test]
fn what_was_cut_short_has_no_step_that_is_on_its_way_once_it_is_settled() {
    let now = config("one", "");
    let to = digest(&now.config().unwrap()).unwrap();
    let running = || {
        let mut progress = Progress::new("1", to, &[Step::Write, Step::Reboot]);
        progress.begins(0);
        progress
    };
    let bed = Bed::with(&now);
    {
        let owner = Owner { uid: 0, gid: 0, mode: 0o644 };
        let wanted = Wanted::File { bytes: b"half way"[..].into(), owner };
        let target = Target { path: "/etc/b".to_owned(), wanted, folders: Owned::Root };
        let ready = prepare(&tree(&bed), "1", vec![target], &|_, _| Ok(None)).unwrap();
        drop(Journal::open(&tree(&bed)).unwrap().stage(&ready.record, &ready.new).unwrap());
    }
    running().write(&tree(&bed)).unwrap();
    assert!(bed.node("settle", &[]).status.success());
    let shown = said(&bed.node("status", &[]));
    assert!(shown.contains("  write failed") && shown.contains("it was cut short"), "{shown}");
    assert!(!shown.contains('…'), "{shown}");

    // What goes back is over too, where nobody goes on with it in that tree.
    let bed = Bed::with(&now);
    goes_back(&bed);
    running().write(&tree(&bed)).unwrap();
    assert!(bed.node("settle", &[]).status.success());
    assert_eq!(Progress::read(&tree(&bed)).unwrap().unwrap().phase, Phase::WentBack);
}

#[test]
fn a_target_on_a_mount_that_takes_no_folder_is_named_and_not_where_it_was_to_be_staged() {
    let (one, two) = (config("one", ""), config("two", ""));
    let bed = Bed::with(&one);
    std::fs::create_dir(root(&bed).join("proc")).unwrap();
    let mut next = two.clone();
    for document in &mut next.0 {
        document.text = document.text.replace(
            r#"{"path": "/etc/a","#,
            r#"{"path": "/proc/x", "contents": {"source": "data:,x"}}, {"path": "/etc/a","#,
        );
    }
    let mounted = Mounted(root(&bed).join("proc"));
    let mount = Command::new("mount").args(["-t", "proc", "proc"]).arg(&mounted.0).status();
    assert!(mount.unwrap().success());
    let refused = bed.apply(&one, &next, &["--no-drain"]);
    let shown = said(&refused);
    assert_eq!(refused.status.code(), Some(1), "{shown}");
    assert!(shown.contains("/proc/x: nothing can be written on its mount"), "{shown}");
    assert_eq!(std::fs::read_to_string(root(&bed).join("etc/a")).unwrap(), "one");
    assert!(said(&bed.node("settle", &[])).contains("nothing to settle"));
}

struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

#[test]
fn who_is_not_root_is_told_so_by_the_agent_too() {
    use std::os::unix::process::CommandExt as _;
    // Where everybody may run it.
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let program = dir.path().join("tread-node");
    // By another process: one that is begun meanwhile would keep the file open for writing.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_tread-node")).arg(&program).status();
    assert!(copied.unwrap().success());
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir.path(), all).unwrap();
    // It needs no library, as far as anybody sees who does not run it.
    let fake = dir.path().join("static");
    std::fs::write(&fake, [b"\x7fELF\x02\x01".as_slice(), &[0; 64]].concat()).unwrap();
    let mut agent = Command::new("timeout");
    agent.arg("60").arg(&program).args(["agent", "--program"]).arg(&fake);
    let refused = agent.uid(65534).gid(65534).output().unwrap();
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(said(&refused).contains("run this as root"), "{}", said(&refused));
}

/// A disk without any room for one byte more, while this lives.
fn full(bed: &Bed, path: &str) -> Mounted {
    let at = root(bed).join(path);
    std::fs::create_dir_all(&at).unwrap();
    let mounted = Mounted(at);
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&mounted.0);
    assert!(mount.status().unwrap().success());
    mounted
}

fn fill(at: &std::path::Path) {
    let mut filler = std::fs::File::create(at.join("filler")).unwrap();
    while std::io::Write::write_all(&mut filler, &[0; 4096]).is_ok() {}
}

#[test]
fn on_a_full_disk_nothing_is_adopted_and_what_stands_there_is_settled_or_given_up() {
    let now = config("one", "");
    let bed = Bed::with(&now);
    std::fs::rename(root(&bed).join("var/lib/tread"), bed.0.path().join("tread")).unwrap();
    let disk = full(&bed, "var/lib/tread");
    std::fs::write(root(&bed).join("etc/a"), "by hand").unwrap();
    fill(&disk.0);
    for how in ["--keep", "--overwrite"] {
        let refused = bed.node("adopt", &["--config", "now.json", how]);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(said(&refused).contains("No space left on device"), "{}", said(&refused));
        assert!(said(&refused).contains("/var/lib/tread/node"), "{}", said(&refused));
        assert!(said(&bed.node("settle", &[])).contains("nothing to settle"));
        let has = std::fs::read_to_string(root(&bed).join("etc/a")).unwrap();
        assert_eq!(has, "by hand", "{how}");
    }
    std::fs::remove_file(disk.0.join("filler")).unwrap();
    let adopted = bed.node("adopt", &["--config", "now.json", "--overwrite"]);
    assert!(adopted.status.success(), "{adopted:?}");

    // One that stands, with a file that nobody can change.
    goes_back(&bed);
    let at = root(&bed).join("etc/a");
    chattr("+i", &at);
    fill(&disk.0);
    assert!(said(&bed.node("settle", &[])).contains("/etc/a: Operation not permitted"));
    assert!(!root(&bed).join("etc/b").exists(), "all else is settled");
    let refused = bed.node("adopt", &["--config", "now.json", "--give-up", "--keep"]);
    chattr("-i", &at);
    // It is given up, and there may be room for what follows or not; it is named either way.
    let shown = format!("{}{}", said(&refused), said(&bed.node("status", &[])));
    assert!(shown.contains("by hand: /etc/a"), "{shown}");
    assert!(said(&bed.node("settle", &[])).contains("nothing to settle"));
}
