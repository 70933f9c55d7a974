//! Names that have what the booted image ships, in the `/etc` of another image's deployment.

use super::*;
use crate::prepare::Pinned;
use crate::shipped::is_as_shipped;

const ENABLED: &str = "systemd/system/multi-user.target.wants/a.service";
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// What the config sets to what the booted image ships.
fn pinned() -> Vec<Target<'static>> {
    vec![
        file("/etc/changed.conf", "old"),
        file("/etc/gone.d/set.conf", "old"),
        absent("/etc/new.d/unwanted.conf"),
        file("/etc/set.conf", "old"),
        link(&format!("/etc/{ENABLED}"), "/etc/a.service"),
        absent("/etc/unwanted.conf"),
    ]
}

/// Which of them another image ships otherwise.
const REPLACED: [&str; 6] = [
    "/etc/changed.conf",
    "/etc/gone.d/set.conf",
    "/etc/new.d/unwanted.conf",
    "/etc/set.conf",
    "/etc/systemd/system/multi-user.target.wants/a.service",
    "/etc/unwanted.conf",
];

fn of_config(targets: Vec<Target<'static>>) -> Pinned {
    let owned = targets.iter().map(|target| target.path.clone()).collect();
    Pinned { targets, owned }
}

/// A system on which the config has something else for two of what its image ships, and writes both
/// as the image ships them: one is the config's afterwards, the other one the image's.
fn written() -> Bed {
    let bed = Bed::new();
    bed.folder(STATE);
    bed.file(BOOT, "02eec978-0e89-4d9d-a39e-34f1f6880f14\n");
    for etc in ["/etc", "/usr/etc"] {
        let word = if etc == "/etc" { "mine" } else { "old" };
        bed.file(&format!("{etc}/set.conf"), "old");
        bed.file(&format!("{etc}/gone.d/set.conf"), "old");
        bed.link(&format!("{etc}/{ENABLED}"), "/etc/a.service");
        bed.file(&format!("{etc}/changed.conf"), word);
        bed.file(&format!("{etc}/left.conf"), word);
    }
    let changes = vec![
        file("/etc/added.conf", "added"),
        file("/etc/changed.conf", "old"),
        file("/etc/left.conf", "old"),
    ];
    let tree = bed.tree();
    let mut ready = prepare(&tree, "1", changes, &no_label).unwrap();
    hold(&tree, &mut ready, of_config(pinned()), &no_label).unwrap();
    ready.record.order = serde_json::json!({"steps": []});
    let journal = Journal::open(&tree).unwrap();
    journal.write(&ready.record, &ready.new).unwrap();
    assert!(!is_mixed(&tree).unwrap());
    bed
}

/// The node boots into another image, as ostree makes its `/etc`: what the old image shipped is gone.
fn in_another_image() -> Bed {
    let bed = written();
    copy(&bed.path("/etc"), &bed.path("/other"));
    for etc in ["/other", "/usr/etc"] {
        std::fs::remove_dir_all(bed.path(&format!("{etc}/gone.d"))).unwrap();
        std::fs::remove_file(bed.path(&format!("{etc}/{ENABLED}"))).unwrap();
        for name in
            ["set.conf", "changed.conf", "left.conf", "unwanted.conf", "new.d/unwanted.conf"]
        {
            bed.file(&format!("{etc}/{name}"), "new");
        }
    }
    std::fs::remove_dir_all(bed.path("/etc")).unwrap();
    std::fs::rename(bed.path("/other"), bed.path("/etc")).unwrap();
    bed
}

fn texts(bed: &Bed) -> [Option<String>; 7] {
    [
        "set.conf",
        "gone.d/set.conf",
        "changed.conf",
        "left.conf",
        "added.conf",
        "unwanted.conf",
        "new.d/unwanted.conf",
    ]
    .map(|name| bed.text(&format!("/etc/{name}")))
}

fn has(words: [&str; 7]) -> [Option<String>; 7] {
    words.map(|word| (!word.is_empty()).then(|| word.to_owned()))
}

fn is_enabled(bed: &Bed) -> bool {
    std::fs::read_link(bed.path(&format!("/etc/{ENABLED}")))
        .is_ok_and(|it| it.ends_with("a.service"))
}

#[test]
fn what_another_image_ships_is_replaced_by_what_the_config_sets_wherever_that_is_killed() {
    let whole = Cut::never();
    let bed = in_another_image();
    Journal::open(&bed.witnessed(whole.clone())).unwrap().settle().unwrap();
    assert!(whole.seen() > 20, "{}", whole.seen());
    for at in 0..=whole.seen() {
        let bed = in_another_image();
        assert_eq!(texts(&bed), has(["new", "", "new", "new", "added", "new", "new"]));
        if let Ok(journal) = Journal::open(&bed.witnessed(Cut::at(at))) {
            let _ = journal.settle();
        }
        let journal = Journal::open(&bed.tree()).unwrap();
        let settled = journal.settle().unwrap().unwrap();
        assert_eq!((settled.direction, settled.left), (Direction::Forward, Vec::new()), "at {at}");
        assert_eq!(texts(&bed), has(["old", "old", "old", "new", "added", "", ""]), "at {at}");
        assert!(is_enabled(&bed), "at {at}");
        let notes = journal.standing().unwrap().unwrap().notes;
        let named = notes.iter().find_map(|note| match note {
            Note::Replaced { paths, .. } => Some(paths.clone()),
            _ => None,
        });
        let mut named = named.unwrap_or_else(|| panic!("at {at}: {notes:?}"));
        named.sort();
        assert_eq!(named, REPLACED, "at {at}");
        // From now on somebody else changed what differs.
        bed.file("/etc/set.conf", "new");
        bed.file("/etc/added.conf", "mine");
        assert_eq!(journal.settle().unwrap().unwrap().left, ["/etc/added.conf"], "at {at}");
        assert_eq!(bed.text("/etc/set.conf").as_deref(), Some("new"), "at {at}");
    }
}

/// Each is found by the proof: the node goes back.
#[test]
fn what_somebody_else_put_in_place_of_a_held_name_stays_and_stops_nothing() {
    type Puts = fn(&Bed);
    let all: [Puts; 3] = [
        |bed| bed.file("/etc/set.conf", "mine"),
        // As the new image ships it.
        |bed| {
            for path in ["/etc/set.conf", "/usr/etc/set.conf"] {
                std::fs::remove_file(bed.path(path)).unwrap();
                bed.folder(path);
            }
        },
        |bed| {
            for path in ["/etc/gone.d", "/usr/etc/gone.d"] {
                bed.file(path, "no folder");
            }
        },
    ];
    for puts in all {
        let bed = in_another_image();
        puts(&bed);
        let before = (bed.text("/etc/set.conf"), bed.text("/etc/gone.d"));
        let journal = Journal::open(&bed.tree()).unwrap();
        let settled = journal.settle().unwrap().unwrap();
        assert_eq!(settled.left, Vec::<String>::new());
        assert_eq!(bed.text("/etc/changed.conf").as_deref(), Some("old"));
        let after = (bed.text("/etc/set.conf"), bed.text("/etc/gone.d"));
        let is_put_back = before.0.as_deref() == Some("new");
        assert!(before == after || (is_put_back && before.1 == after.1), "{before:?}, {after:?}");
    }
}

#[test]
fn in_the_etc_that_was_written_nothing_is_put_back() {
    let bed = written();
    bed.file("/etc/set.conf", "new");
    bed.file("/usr/etc/set.conf", "new");
    let journal = Journal::open(&bed.tree()).unwrap();
    let settled = journal.settle().unwrap().unwrap();
    assert_eq!((settled.changed, settled.left), (false, Vec::new()));
    assert_eq!(bed.text("/etc/set.conf").as_deref(), Some("new"));
}

#[test]
fn what_is_taken_back_in_another_image_is_what_the_config_before_had() {
    for settled_first in [false, true] {
        let bed = in_another_image();
        let journal = Journal::open(&bed.tree()).unwrap();
        if settled_first {
            journal.settle().unwrap();
        }
        let settled = journal.take_back("it was not well", false).unwrap().unwrap();
        assert_eq!(settled.left, Vec::<String>::new());
        assert_eq!(texts(&bed), has(["old", "old", "mine", "mine", "", "", ""]));
        assert!(is_enabled(&bed));
        journal.finish().unwrap();
        assert_eq!(bed.names(STATE), ["lock"]);
    }
}

#[test]
fn what_was_never_committed_goes_back_in_another_image_and_puts_nothing_back_that_it_held() {
    let killed = |at: usize| {
        let bed = Bed::new();
        bed.folder(STATE);
        bed.file("/etc/changed.conf", "mine");
        bed.file("/usr/etc/changed.conf", "old");
        for etc in ["/etc", "/usr/etc"] {
            bed.file(&format!("{etc}/set.conf"), "old");
        }
        let changes = vec![file("/etc/changed.conf", "old")];
        let mut ready = prepare(&bed.tree(), "1", changes, &no_label).unwrap();
        let set = vec![file("/etc/changed.conf", "old"), file("/etc/set.conf", "old")];
        hold(&bed.tree(), &mut ready, of_config(set), &no_label).unwrap();
        ready.record.order = serde_json::json!({"steps": []});
        let cut = Cut::at(at);
        write_ready(&bed, &ready, cut.clone());
        (bed, cut.seen())
    };
    let (_, whole) = killed(usize::MAX);
    let mut had_changed = 0;
    for at in 0..whole {
        let (bed, _) = killed(at);
        let journal = Journal::open(&bed.tree()).unwrap();
        if journal.standing().unwrap().is_none_or(|it| it.was_committed()) {
            continue;
        }
        // As where its stage is in /etc, which goes along into that of another image.
        journal.note(&Note::Staged { etc: etc(&bed.tree()) }).unwrap();
        copy(&bed.path("/etc"), &bed.path("/other"));
        bed.file("/usr/etc/changed.conf", "new");
        if bed.text("/etc/changed.conf").as_deref() == Some("old") {
            bed.file("/other/changed.conf", "new");
            had_changed += 1;
        }
        for etc in ["/other", "/usr/etc"] {
            bed.file(&format!("{etc}/set.conf"), "new");
        }
        std::fs::remove_dir_all(bed.path("/etc")).unwrap();
        std::fs::rename(bed.path("/other"), bed.path("/etc")).unwrap();
        let settled = journal.settle().unwrap().unwrap();
        assert_eq!((settled.direction, settled.left), (Direction::Undone, Vec::new()), "at {at}");
        assert_eq!(bed.text("/etc/changed.conf").as_deref(), Some("mine"), "at {at}");
        assert_eq!(bed.text("/etc/set.conf").as_deref(), Some("new"), "at {at}: no config sets it");
        assert_eq!(bed.names(STATE), ["lock"], "at {at}");
    }
    assert!(had_changed > 0);
}

#[test]
fn only_what_is_of_the_etc_of_the_deployment_and_as_it_was_looked_at_is_held() {
    let bed = Bed::new();
    bed.folder(STATE);
    for etc in ["/etc", "/usr/etc"] {
        bed.file(&format!("{etc}/set.conf"), "old");
    }
    let tree = bed.tree();
    let held = |pinned: Vec<Target<'static>>| {
        let mut ready = prepare(&tree, "1", Vec::new(), &no_label).unwrap();
        hold(&tree, &mut ready, of_config(pinned), &no_label).unwrap();
        ready.record.entries.into_iter().map(|it| it.path).collect::<Vec<_>>()
    };
    assert_eq!(held(vec![file("/etc/set.conf", "old")]), ["/etc/set.conf"]);
    assert_eq!(held(vec![file("/etc/set.conf", "other")]), Vec::<String>::new());
    // Two paths of one place, and one that a link leads out of /etc.
    bed.folder("/etc/b");
    bed.link("/etc/a", "b");
    bed.file("/var/out/x", "out");
    bed.link("/etc/out", "/var/out");
    assert_eq!(
        held(vec![absent("/etc/a/x"), absent("/etc/b/x"), file("/etc/out/x", "out")]),
        ["/etc/a/x"]
    );
}

#[test]
fn where_the_image_has_a_file_in_place_of_a_folder_it_ships_nothing_below() {
    let bed = Bed::new();
    bed.file("/usr/etc/foo", "a file");
    bed.folder("/usr/etc/bar");
    bed.link("/usr/etc/out", "/var/out");
    bed.file("/var/out/x", "out");
    let is_shipped = |path: &str, seen: &Found| is_as_shipped(&bed.tree(), path, seen).unwrap();
    assert!(is_shipped("/etc/foo/x", &Found::Absent));
    assert!(!is_shipped("/etc/bar", &Found::Other), "nobody compares folders");
    let out = file("/etc/out/x", "out").wanted.seen();
    assert!(!is_shipped("/etc/out/x", &out) && !is_shipped("/etc/out/x", &Found::Absent));
}
