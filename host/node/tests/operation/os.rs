//! The operating system's image, kernel, arguments and extensions, by tools that stand in
//! for rpm-ostree and bootc and keep their state over real boots.

mod by_itself;
mod defaults;
mod failures;

use crate::carrying::NoWrite;
use crate::node::{Bed, config_with_spec, unit_with};
use std::time::Duration;
use tread_model::digest::Digest;
use tread_model::joining::{BOOTED, Booted};
use tread_model::plan::Step;
use tread_node::change::Adopt;
use tread_node::documents::Documents;
use tread_node::operation::{Ended, OperationError};
use tread_node::progress::Phase;
use tread_test_machine::{Builder, End, Machine};

const STAND_IN: &str = include_str!("os/stand-in.sh");

const BOOT: &str = "[Unit]\nDefaultDependencies=no\nBefore=sysinit.target\n\
    [Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/libexec/stand-in boot\n";
const FINALIZE: &str = "[Unit]\nAfter=stand-in-boot.service\n\
    [Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n\
    ExecStop=/usr/libexec/stand-in finalize\n";

/// It does not come up where the file says so, not even for a moment.
const CRIO: &str = "[Service]\nType=notify\nNotifyAccess=all\n\
    ExecStart=/bin/sh -c 'grep -q bad /etc/a.conf && exit 1; systemd-notify --ready; exec sleep infinity'\n";

const OLD: &str = "a.example/os@sha256:old";
const NEW: &str = "a.example/os@sha256:new";

/// A host that one of them runs.
fn host(programs: &[&str]) -> Builder {
    let deployment = "/var/lib/stand-in/deployments/os-0.0";
    let mut host = Machine::build()
        .lifetime(Duration::from_secs(900))
        .file_with_mode("/usr/libexec/stand-in", STAND_IN, 0o755)
        .unit_at_boot("stand-in-boot.service", BOOT)
        .unit_at_boot("stand-in-finalize.service", FINALIZE)
        .unit_at_boot("crio.service", CRIO)
        .file(format!("{deployment}/image"), format!("{OLD}\n"))
        .file(format!("{deployment}/arguments"), "root=UUID=1 ro quiet\n")
        .file("/var/lib/stand-in/fetched", "")
        .file("/var/lib/stand-in/order", "os-0.0\n");
    for program in programs {
        host = host.link(format!("/usr/bin/{program}"), "/usr/libexec/stand-in");
    }
    host
}

/// The same with a third deployment, which somebody pinned.
fn with_a_pinned_one(host: Builder) -> Builder {
    let deployment = "/var/lib/stand-in/deployments/os-pinned.0";
    host.file(format!("{deployment}/image"), "a.example/os@sha256:pinned\n")
        .file(format!("{deployment}/arguments"), "root=UUID=1 ro\n")
        .file("/var/lib/stand-in/pinned", "os-pinned.0\n")
        .file("/var/lib/stand-in/order", "os-0.0\nos-pinned.0\n")
}

fn config(word: &str, image: &str, arguments: &[&str]) -> Documents {
    let arguments: Vec<String> = arguments.iter().map(|it| format!("{it:?}")).collect();
    let image =
        if image.is_empty() { String::new() } else { format!(r#", "osImageURL": "{image}""#) };
    config_with_spec(word, &format!(r#"{image}, "kernelArguments": [{}]"#, arguments.join(", ")))
}

const PLANNED: [Step; 4] = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];

/// A host that has this config, and what is asked of it.
struct Os {
    bed: Bed,
}

impl Os {
    fn with(programs: &[&str], config: &Documents) -> Os {
        Os::of(host(programs), config)
    }

    fn of(host: Builder, config: &Documents) -> Os {
        Os { bed: Bed::of(host, "one", &unit_with("/bin/true"), config) }
    }

    fn fault(&self, words: &str) {
        let path = self.bed.machine.root().unwrap().join("var/lib/stand-in/fault");
        std::fs::write(path, words).unwrap();
    }

    /// The commands that the tools got, but for what only looks.
    fn commands(&self) -> Vec<String> {
        let log = self.bed.text("/var/lib/stand-in/log").unwrap_or_default();
        let looks = |line: &&str| line.contains(" status ") || line.ends_with(" kargs");
        log.lines().filter(|line| !looks(line)).map(str::to_owned).collect()
    }

    /// Has a machine that is off boot these, as somebody does who chooses one in the boot loader;
    /// their usual order.
    fn boots_first(&self, ids: &str) -> String {
        let order = self.bed.machine.disk().join("var/lib/stand-in/order");
        let usual = std::fs::read_to_string(&order).unwrap();
        std::fs::write(order, ids).unwrap();
        usual
    }

    fn is_staged(&self) -> bool {
        self.bed.text("/run/ostree/staged-deployment").is_some()
    }

    /// What the machine is booted with.
    fn booted(&self) -> String {
        let id = self.bed.text("/run/stand-in/booted").unwrap();
        let of =
            |what| self.bed.text(&format!("/var/lib/stand-in/deployments/{}/{what}", id.trim()));
        let (image, line) = (of("image").unwrap(), self.bed.text("/proc/cmdline").unwrap());
        format!("{} {}", image.trim(), line.trim().trim_start_matches("BOOT_IMAGE=/vmlinuz "))
    }

    fn file(&self) -> String {
        self.bed.text("/etc/a.conf").unwrap()
    }
}

#[test]
fn an_argument_takes_effect_with_the_planned_boot_and_is_proved_by_what_the_kernel_says() {
    let os = Os::with(&["rpm-ostree"], &config("one", "", &[]));
    let next = config("two", "", &["nosmt", "dyndbg=\"file a.c +p\""]);
    assert_eq!(os.bed.until_it_boots(&next, &PLANNED), End::Reboot);
    os.bed.boot();
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
    assert_eq!(os.booted(), format!("{OLD} root=UUID=1 ro quiet nosmt dyndbg=\"file a.c +p\""));
    assert_eq!((os.file().as_str(), os.bed.machine.boots().len()), ("two", 2));
    // The other way round, from what is there now.
    assert_eq!(os.bed.until_it_boots(&config("two", "", &["quiet"]), &PLANNED), End::Reboot);
    os.bed.boot();
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
    assert_eq!(os.booted(), format!("{OLD} root=UUID=1 ro quiet quiet"));
}

#[test]
fn an_image_is_fetched_before_the_first_write_and_staged_after_it() {
    for programs in [&["rpm-ostree"][..], &["bootc", "ostree"]] {
        let os = Os::with(programs, &config("one", OLD, &[]));
        let next = config("two", NEW, &[]);
        os.bed.fetch(&next).unwrap();
        assert!(!os.is_staged(), "{:?}", os.commands());
        let fetched = os.commands();
        assert_eq!(os.bed.until_it_boots(&next, &PLANNED), End::Reboot);
        os.bed.boot();
        assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
        assert_eq!((os.booted(), os.file()), (format!("{NEW} root=UUID=1 ro quiet"), "two".into()));
        assert!(os.commands().len() > fetched.len(), "{:?}", os.commands());
    }
}

#[test]
fn a_new_image_with_which_the_node_is_not_well_goes_back_with_its_files_by_one_more_boot() {
    for programs in [&["rpm-ostree"][..], &["bootc", "ostree"]] {
        let mut os = Os::with(programs, &config("one", OLD, &[]));
        // The unit of this config does not come up: long enough to see that the old one does.
        os.bed.terms.proof = 20;
        let ended = os.bed.until_it_boots(&config("bad", NEW, &[]), &PLANNED);
        assert_eq!(ended, End::Reboot);
        os.bed.boot();
        assert!(os.booted().starts_with(NEW));
        assert_eq!(os.bed.until_it_boots_again(), End::Reboot);
        os.bed.boot();
        let Ended::WentBack { because } = os.bed.go_on().unwrap() else { panic!("not back") };
        assert!(because.contains("crio.service was well before"), "{because}");
        assert_eq!((os.booted(), os.file()), (format!("{OLD} root=UUID=1 ro quiet"), "one".into()));
        assert_eq!(os.bed.machine.boots().len(), 3);
    }
}

#[test]
fn what_an_admins_rule_keeps_from_booting_waits_for_a_boot_that_somebody_else_causes() {
    let os = Os::with(&["rpm-ostree"], &config("one", OLD, &[]));
    let two = config("two", OLD, &["nosmt"]);
    let reload = crate::reload();
    assert_eq!(os.bed.carry_out_as_admin(&two, &reload).unwrap(), Ended::WaitsForBoot);
    assert_eq!(os.bed.progress().phase, Phase::WaitsForBoot);
    assert_eq!(os.bed.log(), ["start one", "reload two"]);
    assert!(os.is_staged());
    // It still does when somebody looks again.
    assert_eq!(os.bed.go_on().unwrap(), Ended::WaitsForBoot);
    // An order in between takes it along, and what that has no more is not staged any more.
    let three = config("three", OLD, &["mitigations=off"]);
    assert_eq!(os.bed.carry_out_as_admin(&three, &reload).unwrap(), Ended::WaitsForBoot);
    assert_eq!(os.bed.log(), ["start one", "reload two", "reload three"]);
    // What is staged is lost with the power, and staged again.
    os.bed.machine.cut_power().unwrap();
    os.bed.boot();
    assert_eq!(os.bed.go_on().unwrap(), Ended::WaitsForBoot);
    assert!(os.is_staged());
    os.bed.reboot();
    assert_eq!(os.booted(), format!("{OLD} root=UUID=1 ro quiet mitigations=off"));
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
    assert_eq!(os.bed.progress().phase, Phase::Done);
    assert_eq!(os.bed.go_on().unwrap(), Ended::Nothing);
}

#[test]
fn what_waits_for_a_boot_stands_where_the_next_order_is_not_permitted() {
    let os = Os::with(&["rpm-ostree"], &config("one", OLD, &[]));
    let two = config("two", OLD, &["nosmt"]);
    assert_eq!(os.bed.carry_out_as_admin(&two, &crate::reload()).unwrap(), Ended::WaitsForBoot);
    let three = config("three", OLD, &["mitigations=off"]);
    let refused = os.bed.carry_out_with(&NoWrite, &three, &PLANNED);
    assert!(matches!(refused, Err(OperationError::Forbidden(_))), "{refused:?}");
    assert_eq!(os.bed.progress().phase, Phase::WaitsForBoot);
    assert_eq!((os.is_staged(), os.file().as_str()), (true, "two"));
    // The boot that somebody else causes is proved.
    os.bed.reboot();
    assert_eq!(os.booted(), format!("{OLD} root=UUID=1 ro quiet nosmt"));
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
}

#[test]
fn what_waits_for_a_boot_stands_where_the_next_order_cannot_be_staged() {
    let os = Os::with(&["rpm-ostree"], &config("one", OLD, &[]));
    let two = config("two", OLD, &["nosmt"]);
    assert_eq!(os.bed.carry_out_as_admin(&two, &crate::reload()).unwrap(), Ended::WaitsForBoot);
    // No room is where the next one writes.
    let small = "mkdir /var/small && mount -t tmpfs -o size=16k none /var/small";
    os.bed.machine.run_well(["sh", "-c", small]).unwrap();
    let large = "x".repeat(256 << 10);
    let file = format!(
        r#""files": [{{"path": "/var/small/a", "contents": {{"source": "data:,{large}"}}}},"#
    );
    let mut three = config("three", OLD, &["mitigations=off"]);
    for document in &mut three.0 {
        document.text = document.text.replace(r#""files": ["#, &file);
    }
    // Also where the status is that of what was fetched meanwhile.
    for is_fetched in [false, true] {
        if is_fetched {
            os.bed.fetch(&three).unwrap();
            assert_eq!(os.bed.progress().phase, Phase::Fetched);
        }
        let failed = os.bed.carry_out(&three, &PLANNED).unwrap_err().to_string();
        assert!(failed.contains("No space left on device"), "{failed}");
        let told = os.bed.progress();
        assert_eq!((told.operation.as_str(), told.phase), ("1", Phase::WaitsForBoot));
        assert!(told.message.contains("boot the node when it suits"), "{told:?}");
        assert_eq!((os.is_staged(), os.file().as_str()), (true, "two"));
    }
    assert_eq!(os.bed.go_on().unwrap(), Ended::WaitsForBoot);
    // The boot that somebody else causes is proved.
    os.bed.reboot();
    assert_eq!(os.booted(), format!("{OLD} root=UUID=1 ro quiet nosmt"));
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
}

#[test]
fn what_bootc_has_staged_waits_on_while_another_image_is_fetched_or_cannot_be() {
    let os = Os::with(&["bootc", "ostree"], &config("one", OLD, &[]));
    let reload = crate::reload();
    let two = config("two", NEW, &[]);
    assert_eq!(os.bed.carry_out_as_admin(&two, &reload).unwrap(), Ended::WaitsForBoot);
    let third = config("three", "a.example/os@sha256:third", &[]);
    os.fault("third");
    assert!(os.bed.carry_out_as_admin(&third, &reload).is_err());
    assert!(os.is_staged());
    os.fault("");
    os.bed.fetch(&third).unwrap();
    os.bed.reboot();
    assert_eq!((os.booted(), os.file()), (format!("{NEW} root=UUID=1 ro quiet"), "two".into()));
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
}

#[test]
fn an_order_that_takes_back_what_waits_leaves_nothing_to_wait_for() {
    let os = Os::with(&["rpm-ostree"], &config("one", OLD, &[]));
    let reload = crate::reload();
    let two = config("two", OLD, &["nosmt"]);
    assert_eq!(os.bed.carry_out_as_admin(&two, &reload).unwrap(), Ended::WaitsForBoot);
    let three = config("three", OLD, &[]);
    assert_eq!(os.bed.carry_out_as_admin(&three, &reload).unwrap(), Ended::Done);
    assert!(!os.is_staged());
}

#[test]
fn kernel_and_extensions_are_packages_that_come_and_go() {
    let os = Os::with(&["rpm-ostree"], &config("one", OLD, &[]));
    let with = |spec: &str| config_with_spec("one", &format!(r#", "osImageURL": "{OLD}"{spec}"#));
    let next = with(r#", "kernelType": "realtime", "extensions": ["usbguard", "kerberos"]"#);
    assert_eq!(os.bed.until_it_boots(&next, &PLANNED), End::Reboot);
    os.bed.boot();
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
    let packages = |os: &Os| {
        let id = os.bed.text("/run/stand-in/booted").unwrap();
        let of = |what| format!("/var/lib/stand-in/deployments/{}/{what}", id.trim());
        let text = |what| os.bed.text(&of(what)).unwrap_or_default();
        format!("{}{}", text("packages"), text("removed"))
    };
    for package in ["kernel-rt-core", "usbguard", "krb5-workstation", "libkadm5", "kernel-core"] {
        assert!(packages(&os).lines().any(|it| it == package), "{}", packages(&os));
    }
    assert_eq!(os.bed.until_it_boots(&with(""), &PLANNED), End::Reboot);
    os.bed.boot();
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
    assert_eq!(packages(&os), "");
}

#[test]
fn what_this_host_cannot_do_is_refused_before_the_first_write() {
    let one = || config_with_spec("one", "");
    for (programs, spec, says) in [
        (
            &[][..],
            r#", "kernelArguments": ["nosmt"]"#,
            "kernel-arguments cannot be changed on this host: it is run by neither",
        ),
        (&[], r#", "osImageURL": "a.example/os:1""#, "os-image cannot be changed"),
        (&["bootc", "ostree"], r#", "kernelArguments": ["nosmt"]"#, "bootc has no command for it"),
        (&["bootc", "ostree"], r#", "extensions": ["usbguard"]"#, "bootc has no command for it"),
        (&["rpm-ostree"], r#", "kernelType": "64k-pages""#, "for aarch64 only"),
        (&["rpm-ostree"], r#", "extensions": ["games"]"#, "games is none that tread knows"),
    ] {
        let os = Os::with(programs, &one());
        let next = config_with_spec("two", spec);
        let error = os.bed.carry_out(&next, &PLANNED).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        assert_eq!((os.file().as_str(), os.commands()), ("one", vec![]), "{error}");
        assert_eq!(os.bed.go_on().unwrap(), Ended::Nothing);
    }
}

#[test]
fn arguments_that_are_not_those_of_the_config_last_applied_stop_an_order() {
    let os = Os::with(&["rpm-ostree"], &config("one", OLD, &["ro", "quiet"]));
    let carry_out = || os.bed.carry_out(&config("two", OLD, &["ro", "quiet"]), &crate::reload());
    os.bed.machine.run_well(["rpm-ostree", "kargs", "--append=debug"]).unwrap();
    let error = carry_out().unwrap_err().to_string();
    assert!(error.contains("somebody staged another deployment"), "{error}");
    os.bed.machine.run_well(["rpm-ostree", "cleanup", "--pending"]).unwrap();
    os.bed.machine.run_well(["rpm-ostree", "kargs", "--delete-if-present=quiet"]).unwrap();
    os.bed.reboot();
    let error = carry_out().unwrap_err().to_string();
    assert!(error.contains("kernel-arguments (this node was not booted with all"), "{error}");
    assert_eq!(os.file(), "one");
    // What an admin accepts stays accepted, until a config says something else of it.
    let accepted = ["kernel-arguments".to_owned()];
    let same = |word: &str| config(word, OLD, &["ro", "quiet"]);
    let ended = os.bed.carry_out_accepting(&same("two"), &crate::reload(), &accepted);
    assert_eq!(ended.unwrap(), Ended::Done);
    assert_eq!(os.bed.carry_out(&same("three"), &crate::reload()).unwrap(), Ended::Done);
    let next = config("three", OLD, &["quiet", "ro"]);
    assert_eq!(os.bed.until_it_boots(&next, &PLANNED), End::Reboot);
    os.bed.boot();
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
    assert_eq!(os.booted(), format!("{OLD} root=UUID=1 quiet ro"));
}

#[test]
fn a_rollback_that_somebody_queued_is_drift_and_stops_an_order_until_it_is_undone() {
    let set_default = &["ostree", "admin", "set-default", "1"][..];
    for (tool, is_alone, undo) in [
        ("rpm-ostree", true, &["rpm-ostree", "rollback"][..]),
        ("rpm-ostree", false, set_default),
        ("bootc", true, &["bootc", "rollback"]),
        ("bootc", false, &["bootc", "rollback"]),
    ] {
        let host = host(&[tool, "ostree"]);
        let host = if is_alone { host } else { with_a_pinned_one(host) };
        let os = Os::of(host, &config("one", OLD, &[]));
        assert_eq!(os.bed.until_it_boots(&config("two", NEW, &[]), &PLANNED), End::Reboot);
        os.bed.boot();
        assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
        os.bed.machine.run_well([tool, "rollback"]).unwrap();
        let three = config("three", NEW, &[]);
        let stopped = |ended: Result<Ended, OperationError>| {
            let error = ended.unwrap_err().to_string();
            assert!(
                error.contains("os-image (the next boot brings a.example/os@sha256:old"),
                "{error}"
            );
            assert!(error.contains(&format!("come next again: {}", undo.join(" "))), "{error}");
            assert_eq!(os.file(), "two");
        };
        // By a boot, by a reload, and where the config takes the place of what differs.
        stopped(os.bed.carry_out(&three, &PLANNED));
        stopped(os.bed.carry_out(&three, &crate::reload()));
        stopped(os.bed.adopt(&three, Adopt::Overwrite));
        stopped(os.bed.adopt(&config("two", NEW, &[]), Adopt::Ask));
        os.bed.machine.run_well(undo).unwrap();
        assert_eq!(os.bed.until_it_boots(&three, &PLANNED), End::Reboot);
        os.bed.boot();
        assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
        assert_eq!(
            (os.booted(), os.file()),
            (format!("{NEW} root=UUID=1 ro quiet"), "three".into())
        );
    }
}

#[test]
fn a_node_is_adopted_with_the_system_that_its_config_wants_or_gets_it_by_a_boot() {
    let os = Os::with(&["rpm-ostree"], &config("one", OLD, &[]));
    let other = config("one", NEW, &["quiet", "nosmt"]);
    let error = os.bed.adopt(&other, Adopt::Ask).unwrap_err().to_string();
    assert!(error.contains("kernel-arguments (") && error.contains("os-image (it is"), "{error}");
    assert_eq!(os.commands(), Vec::<String>::new());
    assert_eq!(os.bed.until_it_is_overwritten(&other), End::Reboot);
    os.bed.boot();
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
    assert_eq!(os.booted(), format!("{NEW} root=UUID=1 ro quiet nosmt"));
    assert_eq!(os.bed.adopt(&other, Adopt::Ask).unwrap(), Ended::Done);
}

#[test]
fn what_waits_for_a_boot_stands_where_an_adoption_is_refused_and_goes_with_one_that_is_not() {
    let os = Os::with(&["rpm-ostree"], &config("one", OLD, &["quiet"]));
    let two = config("two", OLD, &["quiet", "nosmt"]);
    assert_eq!(os.bed.carry_out_as_admin(&two, &crate::reload()).unwrap(), Ended::WaitsForBoot);
    let three = config("three", OLD, &[]);
    let refused = os.bed.adopt_undrained(&three, Adopt::Overwrite);
    assert!(matches!(refused, Err(OperationError::Drain)), "{refused:?}");
    // Where all that differs is the operating system's, too.
    let refused = os.bed.adopt_undrained(&config("two", OLD, &["x"]), Adopt::Overwrite);
    assert!(matches!(refused, Err(OperationError::Drain)), "{refused:?}");
    assert_eq!((os.is_staged(), os.file().as_str()), (true, "two"));
    assert_eq!(os.bed.progress().phase, Phase::WaitsForBoot);
    assert_eq!(os.bed.go_on().unwrap(), Ended::WaitsForBoot);
    // What was staged goes, and so does what is booted and no config has any more.
    assert_eq!(os.bed.until_it_is_overwritten(&three), End::Reboot);
    os.bed.boot();
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
    assert_eq!((os.booted(), os.file()), (format!("{OLD} root=UUID=1 ro"), "three".into()));
}

#[test]
fn what_the_config_before_had_of_the_system_goes_where_another_one_is_adopted() {
    let os = Os::with(&["rpm-ostree"], &config("one", "", &[]));
    let with = r#", "kernelArguments": ["nosmt", "quiet"], "extensions": ["usbguard"]"#;
    assert_eq!(os.bed.until_it_boots(&config_with_spec("one", with), &PLANNED), End::Reboot);
    os.bed.boot();
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
    assert_eq!(os.booted(), format!("{OLD} root=UUID=1 ro quiet nosmt quiet"));
    let nothing = config_with_spec("one", "");
    assert_eq!(os.bed.until_it_is_overwritten(&nothing), End::Reboot);
    os.bed.boot();
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
    assert_eq!(os.booted(), format!("{OLD} root=UUID=1 ro quiet"));
    let id = os.bed.text("/run/stand-in/booted").unwrap();
    let packages = format!("/var/lib/stand-in/deployments/{}/packages", id.trim());
    assert_eq!(os.bed.text(&packages).as_deref(), Some(""));
    let commands = os.commands();
    assert_eq!(os.bed.adopt(&nothing, Adopt::Overwrite).unwrap(), Ended::Done);
    assert_eq!(os.commands(), commands);
}

/// A machine that booted with a config of this digest, as far as it could.
fn booted_with(digest: Digest) -> Os {
    let os = Os::with(&["rpm-ostree"], &config("one", OLD, &[]));
    let root = os.bed.machine.root().unwrap();
    std::fs::remove_file(root.join("var/lib/tread/node/applied")).unwrap();
    let booted = Booted::with("infra", "rendered-infra", digest);
    std::fs::create_dir_all(root.join("etc/tread")).unwrap();
    let path = root.join(BOOTED.trim_start_matches('/'));
    std::fs::write(path, serde_json::to_vec(&booted).unwrap()).unwrap();
    os
}

#[test]
fn a_machine_that_an_older_tread_served_gets_what_it_could_not_boot_with_before_it_joins() {
    let mut served = config("one", NEW, &["nosmt"]);
    let os = booted_with(Digest([7; 32]));
    let differs = os.bed.adopt(&served, Adopt::Ask);
    assert!(differs.is_err(), "by hand: {differs:?}");
    for document in &mut served.0 {
        document.name = "rendered-infra.json".to_owned();
    }
    assert_eq!(os.bed.until_it_boots_to_join(&served), End::Reboot);
    os.bed.boot();
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
    assert_eq!(os.booted(), format!("{NEW} root=UUID=1 ro quiet nosmt"));
    assert_eq!(os.bed.machine.boots().len(), 2);
}

#[test]
fn a_machine_gets_by_one_boot_what_it_could_not_boot_with_before_it_joins() {
    let served = config("one", NEW, &["quiet", "nosmt"]);
    let os = booted_with(tread_node::documents::digest(&served.config().unwrap()).unwrap());
    assert_eq!(os.bed.until_it_boots_to_join(&served), End::Reboot);
    os.bed.boot();
    assert_eq!(os.bed.go_on().unwrap(), Ended::Done);
    assert_eq!(os.booted(), format!("{NEW} root=UUID=1 ro quiet nosmt"));
    let commands = os.commands();
    // Its agent, which was started anew, asks again: nothing is left to do.
    assert_eq!(os.bed.adopt(&served, Adopt::Ask).unwrap(), Ended::Done);
    assert_eq!(os.commands(), commands);
    assert_eq!(os.bed.machine.boots().len(), 2);
}

#[test]
fn an_image_is_pulled_with_the_kubelets_secret_where_the_host_has_no_other() {
    let os = Os::with(&["rpm-ostree"], &config("one", OLD, &[]));
    let root = os.bed.machine.root().unwrap();
    std::fs::create_dir_all(root.join("var/lib/kubelet")).unwrap();
    std::fs::write(root.join("var/lib/kubelet/config.json"), "{}").unwrap();
    os.bed.fetch(&config("two", NEW, &[])).unwrap();
    let link = std::fs::read_link(root.join("run/ostree/auth.json")).unwrap();
    assert_eq!(link.to_str(), Some("/var/lib/kubelet/config.json"));
}
