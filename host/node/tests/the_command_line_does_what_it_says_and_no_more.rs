//! `tread node` on the tree of another system.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/other_tree.rs"]
mod other_tree;

use other_tree::{Bed, config};
use std::path::Path;
use std::process::Command;
use tread_node::documents::{Document, Documents, digest};

fn applied(bed: &Bed) -> Vec<u8> {
    std::fs::read(bed.0.path().join("root/var/lib/tread/node/applied")).unwrap()
}

#[test]
fn a_dry_run_accepts_nothing_for_good() {
    let (one, two) = (config("one", ""), config("two", ""));
    let bed = Bed::with(&one);
    bed.put("root/etc/a", "by hand");
    bed.put("accepted", "/etc/a\n");
    let before = applied(&bed);
    let shown = bed.apply(&one, &two, &["--dry-run", "--accept-drift", "accepted"]);
    assert!(shown.status.success(), "{shown:?}");
    assert!(String::from_utf8_lossy(&shown.stdout).contains("change /etc/a"), "{shown:?}");
    assert_eq!(applied(&bed), before);
    let applied = bed.apply(&one, &two, &["--accept-drift", "accepted", "--no-drain"]);
    assert!(applied.status.success(), "{applied:?}");
}

#[test]
fn what_needs_a_tool_of_the_host_is_never_taken_for_applied() {
    let one = config("one", "");
    let arguments = config("one", r#", "kernelArguments": ["nosmt"]"#);
    let bed = Bed::with(&one);
    let before = applied(&bed);
    for args in [&[][..], &["--dry-run"]] {
        let refused = bed.apply(&one, &arguments, args);
        let error = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(
            error.contains("kernel-arguments is changed by a tool of the system itself"),
            "{error}"
        );
        assert_eq!(applied(&bed), before);
    }
}

#[test]
fn a_dropin_goes_where_the_folder_of_its_unit_leads() {
    let one = config("one", "");
    let bed = Bed::with(&one);
    std::fs::create_dir_all(bed.0.path().join("root/etc/systemd/system")).unwrap();
    std::fs::create_dir_all(bed.0.path().join("root/etc/elsewhere")).unwrap();
    let folder = bed.0.path().join("root/etc/systemd/system/a.service.d");
    std::os::unix::fs::symlink("/etc/elsewhere", folder).unwrap();
    let mut unit = config("one", "");
    for document in &mut unit.0 {
        document.text = document.text.replace(
            r#""storage":"#,
            r#""systemd": {"units": [{"name": "a.service", "enabled": true,
                "contents": "[Service]\nExecStart=/bin/true\n",
                "dropins": [{"name": "10.conf",
                             "contents": "[Install]\nWantedBy=multi-user.target\n"}]}]},
               "storage":"#,
        );
    }
    let applied = bed.apply(&one, &unit, &["--no-drain"]);
    assert!(applied.status.success(), "{applied:?}");
    let root = bed.0.path().join("root/etc");
    assert!(root.join("elsewhere/10.conf").is_file());
    let link = root.join("systemd/system/multi-user.target.wants/a.service");
    assert!(link.symlink_metadata().is_ok());
    assert!(bed.node("check", &[]).status.success());
}

#[test]
fn an_operation_that_cannot_be_gone_on_with_is_given_up_by_who_says_so() {
    use tread_node::journal::{Journal, Owned};
    use tread_node::prepare::{Target, Wanted, prepare};
    use tread_node::tree::{Owner, Tree};
    let (now, next) = (config("one", ""), config("two", ""));
    let bed = Bed::with(&now);
    let tree = Tree::open(&bed.0.path().join("root")).unwrap();
    {
        let owner = Owner { uid: 0, gid: 0, mode: 0o644 };
        let wanted = Wanted::File { bytes: b"half way"[..].into(), owner };
        let target = Target { path: "/etc/b".to_owned(), wanted, folders: Owned::Root };
        let mut ready = prepare(&tree, "1", vec![target], &|_, _| Ok(None)).unwrap();
        ready.record.order = serde_json::json!({"of": "another tread"});
        Journal::open(&tree).unwrap().write(&ready.record, &ready.new).unwrap();
    }
    let applied = bed.apply(&now, &next, &["--no-drain"]);
    assert!(String::from_utf8_lossy(&applied.stderr).contains("settled first"), "{applied:?}");
    let given_up = bed.node("adopt", &["--config", "now.json", "--give-up"]);
    assert!(given_up.status.success(), "{given_up:?}");
    let applied = bed.apply(&now, &next, &["--no-drain"]);
    assert!(applied.status.success(), "{applied:?}");
}

#[test]
fn an_order_that_was_handed_over_is_shown_before_its_unit_begins() {
    let bed = Bed::with(&config("one", ""));
    let said = |args: &[&str]| String::from_utf8(bed.node("status", args).stdout).unwrap();
    assert!(!said(&[]).contains("next:"));
    std::fs::create_dir(bed.0.path().join("root/var/lib/tread/node/orders")).unwrap();
    bed.put("root/var/lib/tread/node/orders/1763840000000-17", "{}");
    assert!(said(&[]).contains("next: 1763840000000-17 was handed over"), "{}", said(&[]));
    assert!(said(&["-o", "json"]).contains(r#""handedOver": "1763840000000-17""#));
}

#[test]
fn terms_that_no_order_can_have_are_refused() {
    let one = config("one", "");
    let bed = Bed::with(&one);
    for terms in
        [["--proof", "90000"], ["--well-for", "90000"], ["--proof", "0"], ["--well-for", "600"]]
    {
        let refused = bed.apply(&one, &config("two", ""), &terms);
        let error = String::from_utf8_lossy(&refused.stderr);
        assert!(error.contains("86400 at most"), "{error}");
    }
    let refused = bed.apply(&one, &config("two", ""), &["--api-server", "https://api:6443"]);
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(error.contains("HOST:PORT, as api.example.com:6443"), "{error}");
}

#[test]
fn the_tree_of_another_system_is_named_where_it_is_not_there_and_promised_nothing() {
    let bed = Bed::with(&config("one", ""));
    let said = String::from_utf8(bed.node("status", &[]).stdout).unwrap();
    assert!(!said.contains("systemctl"), "no unit watches a tree that does not run: {said}");
    let missing = Command::new(Path::new(env!("CARGO_BIN_EXE_tread-node")))
        .args(["node", "status", "--root", "/nowhere/at/all"])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(error.contains("/nowhere/at/all"), "{error}");
}

#[test]
fn what_is_wrong_with_a_config_is_said_once() {
    let bed = Bed::with(&config("one", ""));
    bed.put("none.json", "{}");
    let refused = bed.node("adopt", &["--config", "none.json"]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(error.matches("none.json").count(), 1, "{error}");
}

#[test]
fn a_disk_without_any_room_keeps_nothing_from_being_settled() {
    use tread_node::journal::{Journal, Owned};
    use tread_node::prepare::{Target, Wanted, prepare};
    use tread_node::progress::Progress;
    use tread_node::tree::{Owner, Tree};
    let now = config("one", "");
    let bed = Bed::with(&now);
    let root = bed.0.path().join("root");
    let tree = Tree::open(&root).unwrap();
    {
        let owner = Owner { uid: 0, gid: 0, mode: 0o644 };
        let wanted = Wanted::File { bytes: b"half way"[..].into(), owner };
        let target = Target { path: "/etc/b".to_owned(), wanted, folders: Owned::Root };
        let mut ready = prepare(&tree, "1", vec![target], &|_, _| Ok(None)).unwrap();
        ready.record.order = serde_json::json!({"of": "a plan"});
        drop(Journal::open(&tree).unwrap().stage(&ready.record, &ready.new).unwrap());
        let to = digest(&now.config().unwrap()).unwrap();
        Progress::new("1", to, &[]).write(&tree).unwrap();
    }
    // No byte can be written into any file.
    let settled = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"])
        .args([env!("CARGO_BIN_EXE_tread-node"), "node", "settle", "--root"])
        .arg(&root)
        .output()
        .unwrap();
    assert!(settled.status.success(), "{settled:?}");
    assert!(String::from_utf8_lossy(&settled.stdout).contains("the old config is whole"));
    assert!(!root.join("var/lib/tread/node/operation").exists() && !root.join("etc/b").exists());
}

#[test]
fn a_plan_that_drains_is_carried_out_on_another_tree_only_where_somebody_says_that_it_may() {
    let (one, two) = (config("one", ""), config("two", ""));
    let bed = Bed::with(&one);
    let before = applied(&bed);
    let refused = bed.apply(&one, &two, &[]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(error.contains("say so: --no-drain"), "{error}");
    assert_eq!(std::fs::read_to_string(bed.0.path().join("root/etc/a")).unwrap(), "one");
    assert_eq!(applied(&bed), before);
    let applied = bed.apply(&one, &two, &["--no-drain"]);
    assert!(applied.status.success(), "{applied:?}");
    // tread's own files are no names of the config's.
    let said = String::from_utf8_lossy(&applied.stdout).into_owned();
    assert!(said.contains("written: 1 name; no unit was told"), "{said}");
    let more = two.0.first().unwrap().text.replace(
        r#"{"path": "/etc/a","#,
        r#"{"path": "/etc/b", "contents": {"source": "data:,b"}}, {"path": "/etc/a","#,
    );
    let text = more.replace("data:,two", "data:,three");
    let three = Documents(vec![Document { name: "config".to_owned(), text }]);
    let shown = bed.apply(&two, &three, &["--no-drain", "--dry-run"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("  add /etc/b") && !shown.contains("/var/lib/tread"), "{shown}");
    let applied = bed.apply(&two, &three, &["--no-drain"]);
    let said = String::from_utf8_lossy(&applied.stdout).into_owned();
    assert!(said.contains("written: 2 names; no unit was told"), "{said}");
}

#[test]
fn what_was_written_into_another_tree_is_the_last_operation_of_that_system() {
    let (one, two) = (config("one", ""), config("two", ""));
    let bed = Bed::with(&one);
    let status = || String::from_utf8(bed.node("status", &[]).stdout).unwrap();
    assert!(status().contains("(done)"), "that it was adopted: {}", status());
    assert!(bed.apply(&one, &two, &["--no-drain"]).status.success());
    let said = status();
    assert!(said.contains("(done)") && said.contains("  write done"), "{said}");
    assert!(said.contains("the next boot of this system brings the rest"), "{said}");
    assert!(!said.contains("settle"), "{said}");
    let refused = bed.apply(&one, &two, &["--no-drain"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(status().contains("(done)"), "an order that was not begun hides nothing");
}

#[test]
fn what_was_cut_short_in_another_tree_is_shown_with_how_it_is_settled() {
    use std::os::unix::process::ExitStatusExt as _;
    let (one, two) = (config("one", ""), config("two", ""));
    let bed = Bed::with(&one);
    let root = bed.0.path().join("root");
    let status = || String::from_utf8(bed.node("status", &[]).stdout).unwrap();
    let settle = format!("tread node settle --root '{}'", root.display());
    let text = two.0.first().unwrap().text.replace("data:,two", &"x".repeat(100_000));
    let text = text.replace("\"source\": \"", "\"source\": \"data:,");
    let large = Documents(vec![Document { name: "config".to_owned(), text }]);
    assert!(bed.apply(&one, &large, &["--no-drain", "--dry-run"]).status.success());
    // The kernel kills whoever writes a file as large as that one: it is staged after the record.
    let killed = Command::new("sh")
        .current_dir(bed.0.path())
        .args(["-c", "ulimit -c 0; ulimit -f 64; exec \"$@\"", "sh"])
        .args([env!("CARGO_BIN_EXE_tread-node"), "node", "apply", "--no-drain"])
        .args(["--config", "next.json", "--plan", "plan.json", "--root"])
        .arg(&root)
        .output()
        .unwrap();
    assert!(killed.status.signal().is_some(), "{killed:?}");
    let said = status();
    assert!(said.contains("(writing)") && said.contains(&settle), "{said}");
    assert!(bed.node("settle", &[]).status.success());
    let said = status();
    assert!(said.contains("(went back)") && !said.contains(&settle), "{said}");
}
