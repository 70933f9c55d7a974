//! What holds a machine's image against its limit at the first boot: the script, run by the
//! system's own sh on trees as Ignition would write them.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tread_model::boot_images::rule::judge;
use tread_model::boot_images::{
    Found, ImageVersion, KnownBy, Limits, Reason, Release, Rhel, Stream, Tighter,
};
use tread_model::config::Source;
use tread_model::joining::first_boot::{
    FirstBoot, FirstBootReport, LONGEST, REQUIRED, ReportsTo, SCRIPT, SETTINGS, UNIT, add,
};
use tread_model::read::{Input, side_in_order};

const ISSUE: &str = "/etc/issue.d/50-tread-boot-image.issue";
/// Stands for curl: what it is called with, and what it is given.
const CURL: &str = "#!/bin/sh\nprintf '%s\\n' \"$@\" >\"$TREAD_TEST_SAID\"\ncat >>\"$TREAD_TEST_SAID\"\nexit \"${TREAD_TEST_ENDS:-0}\"\n";

fn own(name: &str) -> Stream {
    Stream { name: name.to_owned(), own: true }
}

fn of_release(release: &str) -> Limits {
    Limits::of(Release::parse(release), &own("rhel-9"), &[])
}

fn first_boot(limits: Limits, passing: Option<&'static str>) -> FirstBoot {
    let reports_to = ReportsTo {
        address: "[fd00::1]:22623".to_owned(),
        authority: "-----BEGIN CERTIFICATE-----\n".to_owned(),
        token: "t0k-_en".to_owned(),
    };
    FirstBoot { limits, passing, pool: "infra".to_owned(), reports_to: Some(reports_to) }
}

/// The root of a machine, with what it was served on its disk.
struct Disk(PathBuf);

impl Disk {
    fn of(name: &str, first_boot: &FirstBoot) -> Disk {
        let root = std::env::temp_dir().join(format!("tread-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        let disk = Disk(root);
        disk.put("/usr/bin/curl", CURL);
        let mut open = std::fs::metadata(disk.at("/usr/bin/curl")).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut open, 0o755);
        std::fs::set_permissions(disk.at("/usr/bin/curl"), open).unwrap();
        disk.put("/proc/cmdline", "BOOT_IMAGE=x quiet\n");
        disk.serve(first_boot);
        disk
    }

    /// Writes what it is served.
    fn serve(&self, first_boot: &FirstBoot) {
        let mut spec = json!({});
        add(&mut spec, first_boot).unwrap();
        for file in spec["config"]["storage"]["files"].as_array().unwrap() {
            let url = file["contents"]["source"].as_str().unwrap().to_owned();
            let source = Source { url: Some(url.into()), gzip: false };
            let bytes = tread_model::contents::decode(&source).unwrap().unwrap();
            self.put(file["path"].as_str().unwrap(), bytes);
        }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    fn put(&self, path: &str, text: impl AsRef<[u8]>) {
        let at = self.at(path);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::fs::write(at, text).unwrap();
    }

    fn text(&self, path: &str) -> Option<String> {
        std::fs::read(self.at(path)).ok().map(|it| String::from_utf8_lossy(&it).into_owned())
    }

    /// Runs the script; what it does by curl is only noted.
    fn run(&self) -> Output {
        self.run_with(&[])
    }

    fn run_with(&self, variables: &[(&str, &str)]) -> Output {
        let path = format!("{}:/usr/bin:/bin", self.at("/usr/bin").display());
        let _ = std::fs::remove_file(self.at("/said"));
        Command::new("/bin/sh")
            .arg(self.at(SCRIPT))
            .arg(&self.0)
            .env_clear()
            .env("PATH", path)
            .env("TREAD_TEST_SAID", self.at("/said"))
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    }

    /// What it reported to the cluster.
    fn report(&self) -> Option<FirstBootReport> {
        let said = self.text("/said")?;
        let body = said.lines().find(|line| line.starts_with('{')).unwrap();
        Some(FirstBootReport::read(body.as_bytes()).unwrap())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What an os-release says of the image.
#[derive(Clone, Copy)]
enum Says {
    Release(u32, u32),
    Rhel(u32, u32),
    Both((u32, u32), (u32, u32)),
    Unreadable,
    Nothing,
}
use Says::{Both, Nothing, Unreadable};

impl Says {
    fn found(self) -> Found {
        let (openshift, rhel) = match self {
            Says::Release(major, minor) => (Some((major, minor)), None),
            Says::Rhel(major, minor) => (None, Some((major, minor))),
            Both(openshift, rhel) => (Some(openshift), Some(rhel)),
            Unreadable => return Found::Unreadable(KnownBy::Aleph, "x".to_owned()),
            Nothing => return Found::Unknown("x".to_owned()),
        };
        let openshift = openshift.map(|(major, minor)| Release::new(major, minor, 0));
        let rhel = rhel.map(|(major, minor)| Rhel { major, minor });
        Found::Version(KnownBy::Aleph, ImageVersion { openshift, rhel, text: "x".to_owned() })
    }
}

const OS_RELEASES: &[(&str, &str, Says)] = &[
    (
        "4.12",
        "NAME=\"Red Hat Enterprise Linux CoreOS\"\nID=\"rhcos\"\nVERSION=\"412.86.202308081056-0\"\n\
         VERSION_ID=\"4.12\"\nOPENSHIFT_VERSION=\"4.12\"\nRHEL_VERSION=\"8.6\"\nOSTREE_VERSION='412.86.202308081056-0'\n",
        Both((4, 12), (8, 6)),
    ),
    (
        "4.13, the limit",
        "ID=rhcos\nOPENSHIFT_VERSION=4.13\nRHEL_VERSION=9.2\n",
        Both((4, 13), (9, 2)),
    ),
    (
        "by the image's version alone",
        "ID=\"rhcos\"\nVERSION=\"416.94.202402051952-0\"\n",
        Both((4, 16), (9, 4)),
    ),
    ("one digit each", "ID=rhcos\nOSTREE_VERSION='46.82.202010091720-0'\n", Both((4, 6), (8, 2))),
    ("two digits of RHEL", "OSTREE_VERSION='417.810.202402051952-0'\n", Both((4, 17), (8, 10))),
    (
        "an image of RHEL",
        "ID=\"rhel\"\nVERSION=\"9.6.20250826-1 (Plow)\"\nVERSION_ID=\"9.6\"\nOSTREE_VERSION='9.6.20250826-1'\n",
        Says::Rhel(9, 6),
    ),
    ("an old image of RHEL", "OSTREE_VERSION='9.0.20230826-1'\n", Says::Rhel(9, 0)),
    ("RHEL 10", "ID=rhel\nVERSION=\"10.0 (Coughlan)\"\nVERSION_ID=10.0\n", Says::Rhel(10, 0)),
    ("an image without a name for it", "ID=rhcos\nVERSION_ID=\"4.12\"\n", Says::Release(4, 12)),
    (
        "a pre-release",
        "OPENSHIFT_VERSION=\"4.13.0-rc.1\"\nRHEL_VERSION=9.2\n",
        Both((4, 13), (9, 2)),
    ),
    ("the last line counts", "RHEL_VERSION=9.6\nRHEL_VERSION=8.6\n", Says::Rhel(8, 6)),
    ("no end of the last line", "RHEL_VERSION='9.2'", Says::Rhel(9, 2)),
    ("carriage returns", "RHEL_VERSION=\"9.2\"\r\nID=\"rhel\"\r\n", Says::Rhel(9, 2)),
    ("nothing", "", Nothing),
    ("another system", "ID=debian\nVERSION=\"12 (bookworm)\"\nVERSION_ID=\"12\"\n", Nothing),
    ("fedora", "ID=fedora\nVERSION_ID=41\nOSTREE_VERSION='41.20250130.3.0'\n", Nothing),
    ("words", "OPENSHIFT_VERSION=\"four\"\nRHEL_VERSION=9.6\n", Unreadable),
    ("no minor", "RHEL_VERSION=9\n", Unreadable),
    ("too large", "OPENSHIFT_VERSION=\"4.99999999999999999999\"\n", Unreadable),
    ("negative", "RHEL_VERSION=\"9.-6\"\n", Unreadable),
    ("a command", "OPENSHIFT_VERSION=\"$(touch /tmp/tread-was-run)4.16\"\n", Unreadable),
    ("back quotes", "RHEL_VERSION=`id`\n", Unreadable),
    ("a pattern", "RHEL_VERSION=*\nOPENSHIFT_VERSION=?\n", Unreadable),
    ("colours", "OPENSHIFT_VERSION=\"4.16\u{1b}[31m\"\n", Unreadable),
    ("another's field", "MY_RHEL_VERSION=9.6\n#RHEL_VERSION=9.6\n RHEL_VERSION=9.6\n", Nothing),
];

#[test]
fn the_script_judges_an_os_release_as_the_rule_says() {
    let other = Stream { name: "rhel-10".to_owned(), own: false };
    let tighter = |openshift: Option<&str>, rhel: Option<&str>| {
        let openshift = openshift.and_then(Release::parse);
        let asked = Tighter { stream: None, openshift, rhel: rhel.and_then(Rhel::parse) };
        Limits::of(None, &own(""), &[asked])
    };
    let limits = [
        of_release("4.22.0"),
        Limits::of(Release::parse("5.1.0"), &own("rhel-10"), &[]),
        Limits::of(Release::parse("5.1.0"), &other, &[]),
        tighter(None, Some("9.4")),
        tighter(Some("4.16.3"), None),
    ];
    let disk = Disk::of("table", &first_boot(of_release("4.22.0"), None));
    let mut seen = std::collections::BTreeSet::new();
    for limits in limits {
        for (what, os_release, says) in OS_RELEASES {
            disk.serve(&first_boot(limits.clone(), None));
            disk.put("/etc/os-release", os_release);
            let expected = judge(&says.found(), &limits, &own("rhel-9"));
            let run = disk.run();
            let what = format!("{what}, {limits:?}: {run:?}, expected {expected:?}");
            seen.insert(expected.reason.as_str());
            let passes = expected.reason == Reason::WithinLimit;
            assert_eq!(run.status.code(), Some(i32::from(!passes)), "{what}");
            assert!(run.stderr.is_empty(), "{what}");
            assert_eq!(
                disk.report().map(|it| it.reason),
                (!passes).then_some(expected.reason),
                "{what}"
            );
            assert_eq!(disk.text(SETTINGS).is_some(), !passes, "{what}");
            let issue = disk.text(ISSUE);
            assert_eq!(issue.is_some(), !passes, "{what}");
            let issue = issue.unwrap_or_default();
            assert!(!issue.contains(['\u{1b}', '\\', '$', '`']), "{what}");
        }
    }
    assert_eq!(seen.len(), 5, "all reasons there are: {seen:?}");
    assert!(!Path::new("/tmp/tread-was-run").exists());
    // And without any, or with what is no text.
    disk.serve(&first_boot(of_release("4.22.0"), None));
    std::fs::remove_file(disk.at("/etc/os-release")).unwrap();
    assert_eq!(disk.run().status.code(), Some(1));
    assert_eq!(disk.report().unwrap().reason, Reason::VersionUnknown);
    let garbage: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    disk.put("/etc/os-release", &garbage);
    assert_eq!(disk.run().status.code(), Some(1));
    assert_eq!(disk.report().unwrap().reason, Reason::VersionUnknown);
    // Where there is only the other file of that kind.
    std::fs::remove_file(disk.at("/etc/os-release")).unwrap();
    disk.put("/usr/lib/os-release", "RHEL_VERSION=9.6\n");
    assert_eq!(disk.run().status.code(), Some(0));
}

const OLD: &str = "ID=\"rhcos\"\nVERSION=\"412.86.202308081056-0\"\n";
const NEW: &str = "ID=\"rhcos\"\nVERSION=\"416.94.202402051952-0\"\n";

#[test]
fn a_machine_that_is_stopped_says_why_and_what_to_do_until_it_may_join() {
    let disk = Disk::of("stopped", &first_boot(of_release("4.22.0"), None));
    disk.put("/etc/os-release", OLD);
    for _ in 0..2 {
        let run = disk.run();
        assert_eq!(run.status.code(), Some(1));
        let issue = disk.text(ISSUE).unwrap();
        for part in [
            "its kubelet does not start",
            "of pool infra",
            "412.86.202308081056-0 (OpenShift 4.12.0, RHEL 8.6)",
            "OpenShift 4.13.0, RHEL 9.2",
            "tread bootimages patch RESOURCE",
            "tread.skew=off",
        ] {
            assert!(issue.contains(part), "{part}: {issue}");
        }
        assert!(String::from_utf8_lossy(&run.stdout).contains(issue.trim()), "on the console too");
        let said = disk.text("/said").unwrap();
        let (arguments, given) = said.split_once("header = ").unwrap();
        assert!(arguments.contains("\nhttps://[fd00::1]:22623/first-boot/infra\n"), "{said}");
        assert!(arguments.contains("\n--max-time\n") && !arguments.contains("t0k"), "{said}");
        assert_eq!(given, "\"Authorization: Bearer t0k-_en\"\n");
        let report = disk.report().unwrap();
        assert!(report.stopped);
        assert_eq!(
            (report.image.as_str(), report.reason),
            ("412.86.202308081056-0", Reason::BelowLimit)
        );
    }
    // Somebody gave it a newer system.
    disk.put("/etc/os-release", NEW);
    assert_eq!(disk.run().status.code(), Some(0));
    assert_eq!((disk.text(ISSUE), disk.text(SETTINGS)), (None, None));
}

#[test]
fn in_none_and_before_4_22_a_machine_is_warned_of_and_joins() {
    let none = Some("spec.mode of BootImages cluster is None");
    let disk = Disk::of("warned", &first_boot(of_release("4.22.0"), none));
    disk.put("/etc/os-release", OLD);
    assert_eq!(disk.run().status.code(), Some(0));
    let issue = disk.text(ISSUE).unwrap();
    assert!(
        issue.contains("joins its cluster all the same, since spec.mode of BootImages"),
        "{issue}"
    );
    assert!(!disk.report().unwrap().stopped);
    assert_eq!(disk.text(SETTINGS), None, "and it is not run again");
    assert!(!of_release("4.21.0").blocks && of_release("4.22.0").blocks);
}

#[test]
fn one_word_on_the_kernel_command_line_passes_it() {
    for (line, passes) in [
        ("quiet tread.skew=off", true),
        ("tread.skew=off\n", true),
        ("a=b tread.skew=off c", true),
        ("tread.skew=offs", false),
        ("xtread.skew=off", false),
        ("tread.skew=on", false),
        ("* tread.skew", false),
    ] {
        let disk = Disk::of("passed", &first_boot(of_release("4.22.0"), None));
        disk.put("/etc/os-release", OLD);
        disk.put(ISSUE, "of the boot before");
        disk.put("/proc/cmdline", line);
        let run = disk.run();
        assert_eq!(run.status.code(), Some(i32::from(!passes)), "{line}: {run:?}");
        assert_eq!(disk.text(SETTINGS).is_none(), passes, "{line}");
        assert_eq!(disk.text(ISSUE).is_none(), passes, "{line}");
        assert_eq!(disk.text("/said").is_none(), passes, "{line}");
    }
}

#[test]
fn where_nobody_can_be_told_the_rest_is_done_all_the_same() {
    let disk = Disk::of("untold", &first_boot(of_release("4.22.0"), None));
    disk.put("/etc/os-release", OLD);
    let run = disk.run_with(&[("TREAD_TEST_ENDS", "22")]);
    assert_eq!(run.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&run.stdout).contains("could not be told"), "{run:?}");
    // Without curl: only what the script itself needs is there.
    std::fs::remove_file(disk.at("/usr/bin/curl")).unwrap();
    for tool in ["cat", "cut", "dd", "mkdir", "rm", "sed", "tail", "tr", "uname"] {
        let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
        let found = found.iter().find(|it| it.exists()).unwrap();
        std::os::unix::fs::symlink(found, disk.at("/usr/bin").join(tool)).unwrap();
    }
    let _ = std::fs::remove_file(disk.at(ISSUE));
    let path = disk.at("/usr/bin").display().to_string();
    let run = disk.run_with(&[("PATH", &path)]);
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    assert!(String::from_utf8_lossy(&run.stdout).contains("curl is missing"), "{run:?}");
    assert!(disk.text(ISSUE).is_some());
    // Nobody to tell at all.
    let nobody = FirstBoot { reports_to: None, ..first_boot(of_release("4.22.0"), None) };
    let disk = Disk::of("nobody", &nobody);
    disk.put("/etc/os-release", OLD);
    assert_eq!(disk.run().status.code(), Some(1));
    assert_eq!(disk.text("/said"), None);
}

#[test]
fn what_is_added_is_taken_by_ignitions_parser_and_changes_nothing_else() {
    let kept = json!({"path": "/etc/a", "contents": {"source": "data:,a"}});
    let mut spec = json!({"config": {"ignition": {"version": "3.0.0"},
        "storage": {"files": [kept]}, "systemd": {"units": [{"name": "a.service"}]}}});
    add(&mut spec, &first_boot(of_release("4.22.0"), None)).unwrap();
    let config = &spec["config"];
    let object = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": "served"}, "spec": spec,
    });
    let text = object.to_string();
    let side = side_in_order("served", &[Input { name: "served", bytes: text.as_bytes() }]);
    assert!(tread_model::refuse::unparsable(&side.unwrap().config).is_empty());
    assert_eq!(config["storage"]["files"][0], kept);
    assert_eq!(config["systemd"]["units"][0], json!({"name": "a.service"}));
    assert_eq!(config["systemd"]["units"][1]["name"], UNIT);
    let modes = |file: &Value| (file["path"].clone(), file["mode"].clone());
    let files: Vec<_> = config["storage"]["files"].as_array().unwrap().iter().map(modes).collect();
    assert!(files.contains(&(json!(SETTINGS), json!(0o600))), "the token is root's: {files:?}");
    assert_eq!(config["storage"]["links"][0]["path"], REQUIRED);
    let shown = format!("{:?}", first_boot(of_release("4.22.0"), None));
    assert!(!shown.contains("t0k"), "{shown}");
    // Somebody has something there.
    for (kind, list) in [("storage", "files"), ("storage", "links"), ("storage", "directories")] {
        let mut spec = json!({"config": {kind: {list: [{"path": SCRIPT}]}}});
        let error = add(&mut spec, &first_boot(of_release("4.22.0"), None)).unwrap_err();
        assert_eq!(error, SCRIPT);
    }
    let mut spec = json!({"config": {"systemd": {"units": [{"name": UNIT}]}}});
    assert!(add(&mut spec, &first_boot(of_release("4.22.0"), None)).is_err());
}

#[test]
fn what_a_machine_says_is_read_within_bounds_and_cleaned() {
    let said = |machine: &str, image: &str, reason: &str| {
        let text = json!({"machine": machine, "image": image, "reason": reason, "stopped": true});
        FirstBootReport::read(text.to_string().as_bytes())
    };
    let report = said("Worker-1.example", "412.86\u{1b}[31m\u{202e}", "BelowLimit").unwrap();
    assert_eq!(
        (report.machine.as_str(), report.image.as_str()),
        ("worker-1.example", "412.86 [31m")
    );
    for (machine, image, reason) in [
        ("a b", "", "BelowLimit"),
        ("", "", "BelowLimit"),
        ("a\n", "", "BelowLimit"),
        (&"a".repeat(300), "", "BelowLimit"),
        ("a", "", "WithinLimit"),
        ("a", "", "ModeNone"),
        ("a", "", ""),
        ("a", &"x".repeat(LONGEST), "BelowLimit"),
    ] {
        assert!(said(machine, image, reason).is_err(), "{machine} {image} {reason}");
    }
    for text in ["", "{}", "[]", "null", "{\"machine\":1}", "\u{0}", "{\"machine\":\"a\"}"] {
        assert!(FirstBootReport::read(text.as_bytes()).is_err(), "{text}");
    }
    assert!(FirstBootReport::read(&[0xff; 10]).is_err());
}
