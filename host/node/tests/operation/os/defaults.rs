//! A new image ships something else than the one before for what the config sets: its deployment has
//! an `/etc` of its own, in which what never differed from the old image is as the new one ships it.

use super::by_itself::{TREAD, is_proved, put, started, tread};
use super::{NEW, OLD, Os, PLANNED, host};
use crate::away::KilledAfter;
use crate::node::{config_with, plan};
use tread_node::documents::Documents;
use tread_node::operation::{Ended, OperationError};
use tread_test_machine::{Builder, End};

/// What the old image ships; the new one ships no `gone.d`.
const SHIPPED: [&str; 4] = ["set.conf", "gone.d/set.conf", "changed.conf", "left.conf"];

/// It reads one of these files as soon as that is there.
const EARLY: &str = "[Unit]\nDefaultDependencies=no\nBefore=sysinit.target tread-settle.service\n\
    [Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo $(cat /etc/set.conf) >>/var/early.log'\n";

/// A host whose images ship these files, each with a word for the image.
pub(super) fn host_of_images(tool: &[&str]) -> Builder {
    // As an initrd does it: systemd reads its units from that /etc.
    let initrd = "#!/bin/sh\nexec /usr/libexec/stand-in boot\n";
    let mut host = host(tool)
        .file_with_mode("/usr/libexec/initrd", initrd, 0o755)
        .unit_at_boot("early.service", EARLY);
    for path in SHIPPED {
        host = host.file(format!("/usr/etc/{path}"), "old").file(format!("/etc/{path}"), "old");
    }
    for path in ["set.conf", "changed.conf", "left.conf"] {
        host = host.file(format!("/var/lib/stand-in/ships/new/{path}"), "new");
    }
    host
}

/// A config of some files in `/etc`, in which the unit's file says this.
fn config(word: &str, image: &str, files: &[(&str, &str)]) -> Documents {
    let file = |(path, text): &(&str, &str)| {
        format!(
            r#"{{"path": "/etc/{path}", "contents": {{"source": "data:,{text}"}}, "overwrite": true}},"#
        )
    };
    let mut config = config_with(word, &files.iter().map(file).collect::<String>(), "");
    for document in &mut config.0 {
        document.text.insert_str(document.text.len() - 2, &format!(r#", "osImageURL": "{image}""#));
    }
    config
}

fn files(os: &Os) -> Vec<Option<String>> {
    SHIPPED.iter().map(|path| os.bed.text(&format!("/etc/{path}"))).collect()
}

fn has(words: [&str; 4]) -> Vec<Option<String>> {
    words.iter().map(|word| Some((*word).to_owned())).collect()
}

/// What the config sets, before and after: two names stay as the old image ships them, one becomes
/// so, and one is the image's afterwards.
fn two(word: &str) -> (Documents, Documents) {
    let set = [("set.conf", "old"), ("gone.d/set.conf", "old")];
    let before = [&set[..], &[("changed.conf", "mine"), ("left.conf", "mine")]].concat();
    let after = [&set[..], &[("changed.conf", "old")]].concat();
    (config("one", OLD, &before), config(word, NEW, &after))
}

fn host_with(tool: &[&str]) -> Builder {
    let host = host_of_images(tool);
    host.file("/etc/changed.conf", "mine").file("/etc/left.conf", "mine")
}

#[test]
fn what_a_new_image_ships_in_place_of_what_the_config_sets_is_put_back_and_read_by_one_more_boot() {
    for tool in [&["rpm-ostree"][..], &["bootc", "ostree"]] {
        let (before, after) = two("two");
        let os = Os::of(host_with(tool), &before);
        assert_eq!(os.bed.until_it_boots(&after, &PLANNED), End::Reboot);
        os.bed.boot();
        assert_eq!(os.bed.text("/etc/set.conf").as_deref(), Some("new"), "as the image ships it");
        assert_eq!(os.bed.text("/etc/gone.d/set.conf"), None);
        let ended = os.bed.go_on_without_a_permit_to_boot();
        let Err(OperationError::Forbidden(why)) = ended else { panic!("{ended:?}") };
        assert!(why.contains("/etc/gone.d/set.conf, /etc/set.conf"), "{why}");
        assert_eq!(os.bed.until_it_boots_again(), End::Reboot);
        os.bed.boot();
        assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
        assert!(os.booted().starts_with(NEW), "{}", os.booted());
        assert_eq!(files(&os), has(["old", "old", "old", "new"]));
        assert_eq!(os.bed.text("/var/early.log").unwrap(), "old\nnew\nold\n");
        assert_eq!(os.bed.machine.boots().len(), 3);
    }
}

#[test]
fn a_node_that_is_not_well_after_that_goes_back_by_a_third_boot() {
    let machine = started(host_with(&["rpm-ostree"]));
    let (now, next) = two("bad");
    put(&machine, "var/now.json", &now.0[0].text);
    put(&machine, "var/next.json", &next.0[0].text);
    put(&machine, "var/plan.json", &serde_json::to_string(&plan(&now, &next, &PLANNED)).unwrap());
    tread(&machine, &["adopt", "--config", "/var/now.json"]);
    // The container runtime does not come up with the new config: long enough to see that it does with the old one.
    let argv = ["systemd-run", "--no-block", TREAD, "node", "apply", "--no-drain", "--proof", "20"];
    let files = ["--config", "/var/next.json", "--plan", "/var/plan.json"];
    machine.run_well(argv.into_iter().chain(files).collect::<Vec<&str>>()).unwrap();
    machine.wait_for_boot(4).unwrap();
    is_proved(&machine);
    let status = tread(&machine, &["status"]);
    assert!(status.contains("(went back)"), "{status}");
    assert!(status.contains("crio.service was well before"), "{status}");
    assert!(tread(&machine, &["check"]).starts_with("0 of"));
    assert_eq!(machine.boots().len(), 4);
    let text = |path: &str| machine.run_well(["cat", path]).unwrap();
    let words =
        [("set.conf", "old"), ("changed.conf", "mine"), ("left.conf", "mine"), ("a.conf", "one")];
    for (path, word) in words {
        assert_eq!(text(&format!("/etc/{path}")), word, "{path}");
    }
    // In the second boot, all that starts reads what the config sets.
    assert_eq!(text("/var/early.log"), "old\nnew\nold\nold\n");
}

#[test]
fn a_new_image_that_ships_the_same_costs_no_boot_more() {
    let (before, after) = two("two");
    let mut host = host_with(&["rpm-ostree"]);
    for path in SHIPPED {
        host = host.file(format!("/var/lib/stand-in/ships/new/{path}"), "old");
    }
    let os = Os::of(host, &before);
    assert_eq!(os.bed.until_it_boots(&after, &PLANNED), End::Reboot);
    os.bed.boot();
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
    assert_eq!(files(&os), has(["old", "old", "old", "old"]));
    assert_eq!(os.bed.machine.boots().len(), 2);
}

#[test]
fn names_that_came_mixed_into_the_etc_of_what_waited_are_put_back_and_read_by_one_more_boot() {
    let os = Os::of(host_of_images(&["rpm-ostree"]), &config("one", OLD, &[]));
    let waits = os.bed.carry_out_as_admin(&config("two", NEW, &[]), &crate::reload());
    assert_eq!(waits.unwrap(), Ended::WaitsForBoot);
    let three = config("three", NEW, &[("set.conf", "old")]);
    let killed = KilledAfter::of("/etc/a.conf");
    os.bed.carry_out_watched(&three, &PLANNED, killed).unwrap_err();
    // A boot in order makes the next /etc of what is there.
    os.bed.reboot();
    assert!(os.booted().starts_with(NEW), "{}", os.booted());
    assert_eq!(os.file(), "three");
    assert_eq!(os.bed.until_it_boots_again(), End::Reboot);
    os.bed.boot();
    let Ended::WentBack { because } = os.bed.go_on().unwrap() else { panic!("not back") };
    assert!(because.contains("came up with some of the new ones"), "{because}");
    // What waited has its boot, and is proved.
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
    assert!(os.booted().starts_with(NEW), "{}", os.booted());
    let set = os.bed.text("/etc/set.conf");
    assert_eq!((os.file().as_str(), set.as_deref()), ("two", Some("new")), "no config sets it");
    assert_eq!(os.bed.machine.boots().len(), 3);
}
