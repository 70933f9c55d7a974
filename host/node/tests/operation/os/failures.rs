//! What fails, hangs, is killed or loses its power on the way to another operating system.

use super::defaults::host_of_images;
use super::{NEW, OLD, Os, PLANNED, config, host, with_a_pinned_one};
use crate::away::KilledAfter;
use crate::crashes::Runs;
use crate::cut::Cut;
use std::time::Duration;
use tread_node::operation::{Ended, OperationError};
use tread_test_machine::End;

#[test]
fn what_cannot_be_fetched_stages_and_writes_nothing() {
    for programs in [&["rpm-ostree"][..], &["bootc", "ostree"]] {
        let os = Os::with(programs, &config("one", OLD, &[]));
        os.fault("fetch");
        let error = os.bed.carry_out(&config("two", NEW, &[]), &PLANNED).unwrap_err().to_string();
        assert!(
            error.contains("exit status 1") && error.contains("nothing was written"),
            "{error}"
        );
        assert_eq!((os.is_staged(), os.file().as_str()), (false, "one"));
        assert_eq!(os.bed.go_on().unwrap(), Ended::Nothing);
    }
}

#[test]
fn what_cannot_be_staged_goes_back_without_a_boot_and_without_telling_any_unit() {
    let os = Os::with(&["rpm-ostree"], &config("one", OLD, &[]));
    // By a command in the middle; and by one after which the tool says nothing any more.
    for (fault, image) in [("kargs\n", NEW), ("kargs-and-all\n", OLD)] {
        os.fault(fault);
        let ended = os.bed.carry_out(&config("two", image, &["nosmt"]), &PLANNED).unwrap();
        let Ended::WentBack { because } = ended else { panic!("{ended:?}") };
        assert!(because.contains("exit status 1"), "{because}");
        assert_eq!((os.is_staged(), os.file().as_str()), (false, "one"));
        assert_eq!((os.bed.log(), os.bed.machine.boots().len()), (vec!["start one".to_owned()], 1));
    }
    // What went back is where the next plan begins.
    os.fault("");
    assert_eq!(os.bed.until_it_boots(&config("two", NEW, &["nosmt"]), &PLANNED), End::Reboot);
}

#[test]
fn a_tool_that_ends_well_and_does_nothing_is_named_without_the_value_of_an_argument() {
    let os = Os::with(&["rpm-ostree"], &config("one", OLD, &[]));
    os.fault("idle");
    let ended = os.bed.carry_out(&config("two", OLD, &["key=secret"]), &PLANNED).unwrap();
    let Ended::WentBack { because } = ended else { panic!("{ended:?}") };
    assert!(because.contains("rpm-ostree kargs` ended well"), "{because}");
    assert!(!because.contains("secret"), "{because}");
}

#[test]
fn a_power_cut_between_staging_and_the_boot_costs_one_boot_more_and_ends_in_the_new_config() {
    let os = Os::with(&["rpm-ostree"], &config("one", OLD, &[]));
    let next = config("two", NEW, &["nosmt"]);
    os.bed.until_staged(&next, &PLANNED);
    os.bed.machine.cut_power().unwrap();
    os.bed.boot();
    assert_eq!((os.booted(), os.file()), (format!("{OLD} root=UUID=1 ro quiet"), "two".into()));
    assert_eq!(os.bed.until_it_boots_again(), End::Reboot);
    os.bed.boot();
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
    assert_eq!(os.booted(), format!("{NEW} root=UUID=1 ro quiet nosmt"));
}

#[test]
fn a_power_cut_while_the_boot_was_on_its_way_goes_back_with_two_boots_at_most() {
    let os = Os::with(&["rpm-ostree"], &config("one", OLD, &[]));
    assert_eq!(os.bed.until_it_boots(&config("two", NEW, &[]), &PLANNED), End::Reboot);
    // As where the power was cut before what was staged became bootable.
    os.boots_first("os-0.0\n");
    os.bed.boot();
    assert_eq!(os.bed.until_it_boots_again(), End::Reboot);
    os.bed.boot();
    let Ended::WentBack { because } = os.bed.go_on().unwrap() else { panic!("not back") };
    assert!(because.contains("os-image: it is"), "{because}");
    assert_eq!((os.booted(), os.file()), (format!("{OLD} root=UUID=1 ro quiet"), "one".into()));
    assert_eq!(os.bed.machine.boots().len(), 3);
}

#[test]
fn a_tool_that_hangs_or_says_what_nobody_can_read_changes_nothing() {
    let mut os = Os::with(&["rpm-ostree"], &config("one", OLD, &[]));
    for (fault, says) in [
        ("invalid", "said what cannot be read"),
        ("huge", "it said more than 16 MiB"),
        ("broken", "exit status 1"),
        ("hang", "it was not done within 2 s"),
    ] {
        os.fault(fault);
        if fault == "hang" {
            os.bed.patience.os.look = Duration::from_secs(2);
        }
        let error = os.bed.carry_out(&config("two", NEW, &[]), &PLANNED).unwrap_err().to_string();
        assert!(error.contains(says), "{fault}: {error}");
        assert_eq!((os.is_staged(), os.file().as_str()), (false, "one"));
    }
}

#[test]
fn a_command_that_hangs_is_ended_and_the_files_go_back() {
    let mut os = Os::with(&["rpm-ostree"], &config("one", OLD, &[]));
    os.bed.patience.os.stage = Duration::from_secs(1);
    os.fault("slow");
    let ended = os.bed.carry_out(&config("two", NEW, &[]), &PLANNED).unwrap();
    let Ended::WentBack { because } = ended else { panic!("{ended:?}") };
    assert!(because.contains("it was not done within 1 s"), "{because}");
    assert_eq!((os.is_staged(), os.file().as_str()), (false, "one"));
    assert_eq!(os.bed.machine.boots().len(), 1);
}

#[test]
fn a_tool_that_says_nothing_after_the_boot_leaves_the_node_degraded_until_it_does() {
    let os = Os::with(&["rpm-ostree"], &config("one", OLD, &[]));
    assert_eq!(os.bed.until_it_boots(&config("two", NEW, &[]), &PLANNED), End::Reboot);
    os.bed.boot();
    os.fault("broken");
    let Ended::Degraded { because } = os.bed.go_on().unwrap() else { panic!("taken for well") };
    assert!(because.contains("os-status"), "{because}");
    assert_eq!(os.file(), "two", "who cannot look does not know that it is not there");
    os.fault("");
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
    assert_eq!((os.booted(), os.file()), (format!("{NEW} root=UUID=1 ro quiet"), "two".into()));
    assert_eq!(os.bed.machine.boots().len(), 2);
}

#[test]
fn a_command_of_the_tool_outlives_whoever_started_it_and_is_not_begun_twice() {
    let os = Os::with(&["rpm-ostree"], &config("one", OLD, &[]));
    os.fault("slow");
    os.bed.until(&config("two", NEW, &[]), &PLANNED, || {
        os.commands().iter().any(|line| line.starts_with("rpm-ostree rebase --experimental ostree"))
    });
    assert!(!os.is_staged());
    let release = std::thread::spawn({
        let go = os.bed.machine.root().unwrap().join("run/go");
        move || {
            std::thread::sleep(Duration::from_secs(1));
            std::fs::write(go, "").unwrap();
        }
    });
    assert_eq!(os.bed.until_it_boots_again(), End::Reboot);
    release.join().unwrap();
    os.bed.boot();
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
    assert!(os.booted().starts_with(NEW));
    let rebases = os.commands().into_iter().filter(|line| !line.contains("--download-only"));
    assert_eq!(rebases.filter(|line| line.contains("rebase")).count(), 1, "{:?}", os.commands());
}

#[test]
fn what_bootc_staged_of_an_image_that_was_being_fetched_does_not_stop_the_order_it_was_for() {
    let os = Os::with(&["bootc", "ostree"], &config("one", OLD, &[]));
    os.fault("slow");
    let two = config("two", NEW, &[]);
    os.bed.until(&two, &PLANNED, || os.commands().iter().any(|line| line.contains("switch")));
    std::fs::write(os.bed.machine.root().unwrap().join("run/go"), "").unwrap();
    os.bed.machine.wait_for("the image to be staged", || os.is_staged()).unwrap();
    assert_eq!(os.bed.until_it_boots(&two, &PLANNED), End::Reboot);
    os.bed.boot();
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
    assert_eq!((os.booted(), os.file()), (format!("{NEW} root=UUID=1 ro quiet"), "two".into()));
}

#[test]
fn a_node_that_boots_into_another_deployment_says_so_and_goes_on_once_it_is_back() {
    let os = Os::with(&["rpm-ostree"], &config("one", OLD, &[]));
    assert_eq!(os.bed.until_it_boots(&config("two", NEW, &[]), &PLANNED), End::Reboot);
    os.bed.boot();
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
    assert_eq!(os.bed.until_it_boots(&config("three", NEW, &[]), &PLANNED), End::Reboot);
    // As somebody chooses it in the boot loader: the older image, with an /etc of its own.
    let usual = os.boots_first("os-0.0\n");
    os.bed.boot();
    let other = "cp -a /etc /run/etc && echo -n two >/run/etc/a.conf && mount --bind /run/etc /etc";
    os.bed.machine.run_well(["sh", "-c", other]).unwrap();
    assert!(os.booted().starts_with(OLD));
    let Ended::Degraded { because } = os.bed.go_on().unwrap() else { panic!("not told") };
    assert!(because.contains("booted into another deployment"), "{because}");
    assert!(because.contains(&format!("os-image: it is {OLD}, and not {NEW}")), "{because}");
    assert!(because.contains("rpm-ostree rollback"), "{because}");
    assert_eq!(os.file(), "two", "nothing is written there");
    assert_eq!(os.bed.machine.boots().len(), 3, "no boot was asked for");

    os.bed.machine.cut_power().unwrap();
    os.boots_first(&usual);
    os.bed.boot();
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
    assert_eq!((os.booted(), os.file()), (format!("{NEW} root=UUID=1 ro quiet"), "three".into()));
}

#[test]
fn a_node_that_boots_into_an_older_deployment_of_the_same_image_is_told_so() {
    // By arguments alone it is another one, also where configs name no image.
    for image in [OLD, ""] {
        let os = Os::of(host_of_images(&["rpm-ostree"]), &config("one", image, &[]));
        let boots = |word: &str| os.bed.until_it_boots(&config(word, image, &["nosmt"]), &PLANNED);
        assert_eq!(boots("one"), End::Reboot);
        os.bed.boot();
        assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
        assert_eq!(boots("two"), End::Reboot);
        let usual = os.boots_first("os-0.0\n");
        os.bed.boot();
        let Ended::Degraded { because } = os.bed.go_on().unwrap() else { panic!("not told") };
        assert!(because.contains("booted into another deployment"), "{because}");
        assert!(because.contains("/etc/.tread-1 is not there; boot into that one"), "{because}");
        assert!(!because.contains("mount") && !because.contains("--give-up"), "{because}");
        assert_eq!(os.file(), "one", "nothing is written there");
        assert_eq!(os.bed.machine.boots().len(), 3, "no boot was asked for");

        os.bed.machine.cut_power().unwrap();
        os.boots_first(&usual);
        os.bed.boot();
        assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
        assert_eq!(os.file(), "two");
        assert_eq!(os.booted(), format!("{OLD} root=UUID=1 ro quiet nosmt"));
    }
}

#[test]
fn a_write_that_was_cut_short_in_another_deployment_is_told_so_and_settled_once_that_is_back() {
    let os = Os::of(host_of_images(&["rpm-ostree"]), &config("one", OLD, &[]));
    let with = |word: &str| config(word, OLD, &["nosmt"]);
    assert_eq!(os.bed.until_it_boots(&with("one"), &PLANNED), End::Reboot);
    os.bed.boot();
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
    // In both deployments the file is as it was before.
    let killed = KilledAfter::of("/etc/a.conf");
    os.bed.carry_out_watched(&with("two"), &PLANNED, killed).unwrap_err();
    assert_eq!(os.file(), "two");
    os.bed.machine.cut_power().unwrap();
    let usual = os.boots_first("os-0.0\n");
    os.bed.boot();
    let Ended::Degraded { because } = os.bed.go_on().unwrap() else { panic!("not told") };
    assert!(because.contains("booted into another deployment"), "{because}");
    assert!(because.contains("/etc/.tread-1 is not there; boot into that one"), "{because}");
    assert!(!because.contains("mount"), "{because}");
    assert_eq!(os.file(), "one", "nothing is written there");

    os.bed.machine.cut_power().unwrap();
    os.boots_first(&usual);
    os.bed.boot();
    // It has read the new file.
    assert_eq!(os.bed.until_it_boots_again(), End::Reboot);
    os.bed.boot();
    assert!(matches!(os.bed.go_on().unwrap(), Ended::WentBack { .. }));
    assert_eq!(os.file(), "one");
    assert_eq!(os.booted(), format!("{OLD} root=UUID=1 ro quiet nosmt"));
}

#[test]
fn a_node_whose_old_deployment_somebody_chose_in_the_boot_menu_goes_back_to_it_for_good() {
    for (tool, has_arguments, is_alone) in [
        ("rpm-ostree", false, true),
        ("rpm-ostree", true, true),
        ("rpm-ostree", true, false),
        ("bootc", false, true),
        ("bootc", false, false),
    ] {
        let host = host(&[tool, "ostree"]);
        let host = if is_alone { host } else { with_a_pinned_one(host) };
        let of = |word: &'static str| if has_arguments { vec![word] } else { Vec::new() };
        let os = Os::of(host, &config("one", OLD, &of("quiet")));
        let two = config("two", NEW, &of("nosmt"));
        assert_eq!(os.bed.until_it_boots(&two, &PLANNED), End::Reboot);
        let usual = os.boots_first("os-0.0\n");
        os.bed.boot();
        // It was chosen for this boot alone.
        let order = os.bed.machine.root().unwrap().join("var/lib/stand-in/order");
        std::fs::write(order, usual).unwrap();
        assert!(os.booted().starts_with(OLD), "{}", os.booted());
        assert_eq!(os.bed.until_it_boots_again(), End::Reboot);
        os.bed.boot();
        let Ended::WentBack { because } = os.bed.go_on().unwrap() else { panic!("not back") };
        assert!(because.contains("os-image: it is"), "{because}");
        assert_eq!((os.booted(), os.file()), (format!("{OLD} root=UUID=1 ro quiet"), "one".into()));
        let order = os.bed.text("/var/lib/stand-in/order").unwrap();
        assert_eq!(order.lines().next(), Some("os-0.0"), "{:?}", os.commands());
        assert_eq!(order.contains("os-pinned.0"), !is_alone, "{order}");
        assert_eq!(os.bed.machine.boots().len(), 3);
    }
}

#[test]
fn killed_at_any_moment_before_the_boot_what_is_staged_belongs_to_what_is_on_the_disk() {
    let runs = Runs::usually(20);
    let host = host(&["rpm-ostree"]).lifetime(runs.lifetime());
    let os = Os::of(host, &config("one", OLD, &[]));
    let whole = Cut::never();
    let argument = |word: &str| config(word, OLD, &[if word == "two" { "x=two" } else { "x=one" }]);
    let ended = os.bed.carry_out_as_admin_watched(&argument("two"), whole.clone());
    assert_eq!(ended.unwrap(), Ended::WaitsForBoot);
    let moments = whole.seen();
    let (mut there, mut next) = ("two", "one");
    for at in runs.spread(moments) {
        let killed = os.bed.carry_out_as_admin_watched(&argument(next), Cut::at(at));
        assert!(!matches!(killed, Err(OperationError::Order(_))), "killed at {at}: {killed:?}");
        let mut ended = os.bed.go_on().unwrap();
        if matches!(ended, Ended::WentBack { .. }) {
            // What waited for its boot before does so again.
            ended = os.bed.go_on().unwrap();
        }
        assert_eq!(ended, Ended::WaitsForBoot, "killed at {at}");
        let has = os.file();
        assert!(has == there || has == next, "killed at {at}: {has}");
        if has == next {
            (there, next) = (next, there);
        }
        let line = os.bed.machine.run_well(["rpm-ostree", "kargs"]).unwrap();
        let staged = line.trim().strip_prefix("root=UUID=1 ro quiet x=");
        assert_eq!(staged, Some(has.as_str()), "killed at {at}: {ended:?}");
    }
    // Wherever it was killed, the next order takes along what waits.
    let ended = os.bed.carry_out_as_admin_watched(&argument(next), Cut::never());
    assert_eq!(ended.unwrap(), Ended::WaitsForBoot);
    assert_eq!((os.file().as_str(), os.bed.machine.boots().len()), (next, 1));
}
