#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use super::*;
use crate::tree::Tree;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

fn shadow(text: &str) -> Shadow {
    Shadow { bytes: text.as_bytes().to_vec() }
}

fn text(shadow: &Shadow) -> String {
    String::from_utf8(shadow.bytes.clone()).unwrap()
}

/// Lines as hosts have them, and as they should not.
const OTHERS: &str = "root:*:19000:0:99999:7:::\n\n# core:x\n+::::::::\ncorea:1:2:3:4:5:6:7:8\n\
                      acore:!!:::::::\nbroken\r\n:::\n";

#[test]
fn one_line_changes_and_all_else_stays_to_the_byte() {
    let new = Hash::new("$6$new$hash").unwrap();
    for (line, expected) in [
        ("core:$6$old:19000:0:99999:7:::", "core:$6$new$hash:20000:0:99999:7:::"),
        ("core:!!:::::::", "core:$6$new$hash:20000::::::"),
        ("core::0:1:2:3:4:5:6", "core:$6$new$hash:20000:1:2:3:4:5:6"),
        ("core:*:19000:0:99999:7:::\r", "core:$6$new$hash:20000:0:99999:7:::\r"),
    ] {
        for (before, after) in [("", ""), (OTHERS, ""), (OTHERS, "\n"), ("", "\nlast:*:::::::")] {
            let there = shadow(&format!("{before}{line}{after}"));
            let with = there.with("core", &new, 20_000).unwrap();
            assert_eq!(text(&with), format!("{before}{expected}{after}"));
            assert_eq!(with.hash("core").unwrap(), new);
            assert!(with.is_else_as(&there, "core"));
            let back = with.with_hash_from("core", &there, Some(&with)).unwrap();
            assert!(back == there, "{}", text(&back));
        }
    }
}

#[test]
fn a_line_that_others_would_read_otherwise_is_not_changed_and_named() {
    for (line, expected) in [
        ("", "has no line of the user `core`"),
        ("core:a:1::::::\ncore:b:1::::::", "several lines"),
        ("core:a:1", "does not have 9 fields"),
        ("core:a:1:::::::x", "does not have 9 fields"),
        ("core", "does not have 9 fields"),
    ] {
        let there = shadow(&format!("{OTHERS}{line}\n"));
        let error = there.with("core", &Hash::locked(), 1).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_hash_that_would_change_other_fields_is_refused_and_not_told() {
    for text in ["$6$x:0:0", "$6$x\nroot::0::::::", "$6$x\r", "$6$x\0", &"x".repeat(1025)] {
        let why = Hash::new(text).unwrap_err();
        assert!(why.contains("mkpasswd") && !why.contains("$6$x"), "{why}");
    }
    for kept in [b"$6$x:0".to_vec(), b"a\nb".to_vec(), b"\0".to_vec()] {
        assert_eq!(Hash::kept(kept), None);
    }
    assert!(!format!("{:?}", Hash::new("$6$secret").unwrap()).contains("secret"));
}

#[test]
fn a_day_that_somebody_set_meanwhile_stays_when_the_hash_goes_back() {
    let old = shadow("core:old:100:0:9:7:::\n");
    let new = old.with("core", &Hash::new("new").unwrap(), 200).unwrap();
    let there = shadow("core:new:300:0:5:7:::\nother:*:::::::\n");
    let back = there.with_hash_from("core", &old, Some(&new)).unwrap();
    assert_eq!(text(&back), "core:old:300:0:5:7:::\nother:*:::::::\n");
}

#[test]
fn usermod_changes_the_same_bytes() {
    let lines = "root:*:19000:0:99999:7:::\ncore:!!:19000:0:99999:7:::\nzoe:$6$a$b:1::::::\n";
    let bed = tempfile::tempdir().unwrap();
    std::fs::create_dir(bed.path().join("etc")).unwrap();
    let at = |name: &str| bed.path().join("etc").join(name);
    std::fs::write(at("passwd"), "root:x:0:0::/root:/bin/sh\ncore:x:1000:1000::/:/bin/sh\n")
        .unwrap();
    std::fs::write(at("group"), "root:x:0:\ncore:x:1000:\n").unwrap();
    std::fs::write(at("shadow"), lines).unwrap();
    let before = today();
    let ran = Command::new("usermod")
        .args(["--prefix", bed.path().to_str().unwrap(), "--password", "$6$salt$hash", "core"])
        .status()
        .unwrap();
    assert!(ran.success());
    let theirs = std::fs::read(at("shadow")).unwrap();
    let hash = Hash::new("$6$salt$hash").unwrap();
    let mut days = before..=today();
    assert!(days.any(|day| shadow(lines).with("core", &hash, day).unwrap().bytes == theirs));
}

const HOLDER: &str = "TREAD_TEST_HOLDS_THE_LOCK_OF";

#[test]
fn whoever_holds_the_lock_on_users_is_waited_for_and_named() {
    if let Some(root) = std::env::var_os(HOLDER) {
        let _lock = Lock::take(&Tree::open(root.as_ref()).unwrap()).unwrap();
        std::io::stderr().write_all(b"held\n").unwrap();
        std::io::stdin().read_line(&mut String::new()).unwrap();
        return;
    }
    let bed = tempfile::tempdir().unwrap();
    std::fs::create_dir(bed.path().join("etc")).unwrap();
    let name = "shadow::tests::whoever_holds_the_lock_on_users_is_waited_for_and_named";
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(HOLDER, bed.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(holder.stderr.take().unwrap()).lines();
    assert!(said.map_while(Result::ok).any(|line| line == "held"));
    let tree = Tree::open(bed.path()).unwrap();
    let error = Lock::take_within(&tree, Duration::from_millis(100)).err().unwrap().to_string();
    assert!(error.contains("/etc/.pwd.lock is locked"), "{error}");
    // Without the second writer the pipe is at its end, and the holder ends.
    drop(holder.stdin.take());
    assert!(Lock::take_within(&tree, Duration::from_secs(300)).is_ok());
    assert!(holder.wait().unwrap().success());
}

#[test]
fn a_fifo_in_the_place_of_the_lock_is_not_waited_for() {
    let bed = tempfile::tempdir().unwrap();
    std::fs::create_dir(bed.path().join("etc")).unwrap();
    let fifo = bed.path().join("etc/.pwd.lock");
    assert!(Command::new("mkfifo").arg(fifo).status().unwrap().success());
    assert!(Lock::take(&Tree::open(bed.path()).unwrap()).is_err());
}

#[test]
fn a_clock_that_was_never_set_has_nobody_change_a_password_at_once() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("shadow"), "core:*:19001:0:99999:7:::\n").unwrap();
    let folder = Tree::open(dir.path()).unwrap().folder("/").unwrap().unwrap();
    let shadow = Shadow::read(&folder, "shadow").unwrap().unwrap();
    let hash = Hash::new("$6$new").unwrap();
    let line =
        |day| String::from_utf8(shadow.with("core", &hash, day).unwrap().bytes().to_vec()).unwrap();
    assert_eq!(line(0), "core:$6$new::0:99999:7:::\n");
    assert_eq!(line(1), "core:$6$new:1:0:99999:7:::\n");
}
