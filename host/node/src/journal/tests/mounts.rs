//! Folders of a config that are mounts of other kinds, and mounts that change meanwhile.

use super::*;
use std::process::Command;

/// A mount in a tree, while this lives.
struct Mount(std::path::PathBuf);

impl Mount {
    fn of(bed: &Bed, path: &str, words: &[&str]) -> Mount {
        bed.folder(path);
        let at = bed.path(path);
        assert!(Command::new("mount").args(words).arg(&at).status().unwrap().success());
        Mount(at)
    }

    fn again(&self, how: &str) {
        let options = format!("remount,bind,{how}");
        let done = Command::new("mount").args(["-o", &options]).arg(&self.0).status();
        assert!(done.unwrap().success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let done = Command::new("umount").arg(&self.0).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }
}

/// The same files as in any bed, with `/etc` on a mount of this kind, and what that is made of.
fn bed_with_etc(kind: &str) -> (Mount, Bed, Bed) {
    let (bed, parts) = (Bed::new(), Bed::new());
    let mount = match kind {
        "overlay" => {
            // What is below is old and cannot be changed.
            for (path, text) in [("changed.conf", "old"), ("removed.conf", "away with it")] {
                parts.file(&format!("/below/{path}"), text);
            }
            parts.file("/below/systemd/system/masked.service", "[Service]");
            ["/above", "/work"].iter().for_each(|path| parts.folder(path));
            let at = |path: &str| parts.path(path).display().to_string();
            let options = format!(
                "lowerdir={},upperdir={},workdir={}",
                at("/below"),
                at("/above"),
                at("/work")
            );
            Mount::of(&bed, "/etc", &["-t", "overlay", "overlay", "-o", &options])
        }
        _ => {
            let mount = Mount::of(&bed, "/etc", &["-t", kind, kind]);
            bed.file("/etc/changed.conf", "old");
            bed.file("/etc/removed.conf", "away with it");
            bed.file("/etc/systemd/system/masked.service", "[Service]");
            mount
        }
    };
    put_the_rest(&bed);
    (mount, bed, parts)
}

#[test]
fn killed_at_any_moment_on_an_overlay_or_in_memory_it_ends_in_the_old_or_the_new_state() {
    for kind in ["overlay", "tmpfs"] {
        let whole = Cut::never();
        let (old, new) = {
            let (_mount, bed, _parts) = bed_with_etc(kind);
            let old = bed.snapshot();
            assert!(write(&bed, whole.clone()), "{kind}");
            settle(&bed);
            (old, bed.snapshot())
        };
        assert_ne!(old, new, "{kind}");
        let (mut backs, mut forwards) = (0, 0);
        for at in (0..whole.seen()).rev().step_by(3) {
            let (_mount, bed, _parts) = bed_with_etc(kind);
            write(&bed, Cut::at(at));
            settle(&bed);
            let found = bed.snapshot();
            let differs = || disk::difference(&old, &new, &found);
            assert!(found == old || found == new, "{kind} at {at}: {}", differs());
            if found == old { backs += 1 } else { forwards += 1 }
        }
        assert!(backs > 10 && forwards > 0, "{kind}: {backs} back, {forwards} forward");
    }
}

#[test]
fn a_mount_that_can_only_be_read_by_now_is_settled_once_it_can_be_written_or_given_up() {
    for is_given_up in [false, true] {
        let bed = Bed::new();
        bed.folder(STATE);
        bed.file("/other/changed", "old");
        bed.file("/other/removed", "old");
        let other = bed.path("/other").display().to_string();
        let mount = Mount::of(&bed, "/srv", &["--bind", &other]);
        bed.file("/etc/changed.conf", "old");
        let targets = vec![
            file("/srv/changed", "new"),
            file("/srv/deep/added", "new"),
            absent("/srv/removed"),
            file("/etc/changed.conf", "new"),
        ];
        let mut ready = prepare(&bed.tree(), "1", targets, &no_label).unwrap();
        ready.record.order = serde_json::json!({"steps": []});
        assert!(write_ready(&bed, &ready, Arc::new(crate::tree::Unwatched)));
        mount.again("ro");
        let journal = Journal::open(&bed.tree()).unwrap();
        let error = journal.take_back("it was not well", false).unwrap_err().to_string();
        assert!(error.contains("/srv/") && error.contains("Read-only file system"), "{error}");
        assert!(error.contains("--give-up"), "{error}");
        assert_eq!(bed.text("/etc/changed.conf").as_deref(), Some("old"), "all else is settled");
        if is_given_up {
            let by_hand = journal.give_up().unwrap();
            let paths: Vec<&str> = by_hand.iter().map(|it| it.path.as_str()).collect();
            let expected = ["/srv/changed", "/srv/deep/added", "/srv/removed", "/srv/deep"];
            assert_eq!(paths, expected, "{by_hand:?}");
            assert!(journal.standing().unwrap().is_none());
            // What belongs there is where it was staged, since nothing can be renamed there.
            let kept = by_hand[0].why.split('\'').nth(1).unwrap();
            assert_eq!(bed.text(kept).as_deref(), Some("old"), "{kept}");
            assert!(by_hand[1].why.ends_with("remove it"), "{}", by_hand[1].why);
            assert!(by_hand[3].why.contains("rmdir '/srv/deep'"), "{}", by_hand[3].why);
        } else {
            mount.again("rw");
            assert_eq!(journal.settle().unwrap().unwrap().left, [""; 0]);
            journal.finish().unwrap();
            assert_eq!(bed.text("/srv/changed").as_deref(), Some("old"));
            assert_eq!(bed.text("/srv/removed").as_deref(), Some("old"));
            assert_eq!(bed.names("/srv"), ["changed", "removed"]);
        }
        drop(mount);
    }
}
