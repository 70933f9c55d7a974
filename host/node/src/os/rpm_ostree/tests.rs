use super::super::Wish;
use super::*;
use crate::os::arguments::split;

const BOOTED: &str = include_str!("booted.json");
const DIGEST: &str = "sha256:90780b08939d913d9cfc5565eecdd12055dd57301b2109985e149830a92ed6b1";

fn texts(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn wish(image: &str, arguments: &str, kernel: &str, extensions: &str) -> Wish {
    Wish {
        image: image.to_owned(),
        arguments: split(arguments),
        kernel: kernel.to_owned(),
        extensions: texts(extensions),
    }
}

#[test]
fn what_a_host_of_openshift_says_is_read() {
    let read = read(BOOTED.as_bytes()).unwrap();
    assert_eq!((read.next.as_ref(), read.order.len()), (None, 1));
    let booted = read.at_next_boot();
    assert!(booted.image.starts_with("quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:"));
    assert!(booted.has_image(&format!("mirror.example/art-dev@{DIGEST}")));
    assert!(!booted.has_image("quay.io/openshift-release-dev/ocp-v4.0-art-dev:latest"));
    assert_eq!(booted.kernel(), KernelType::Default);
}

#[test]
fn what_stands_before_the_booted_one_is_what_the_next_boot_brings() {
    let one = |id: &str, booted: bool| format!(r#"{{"id": "{id}", "booted": {booted}}}"#);
    let status = |all: &[String]| format!(r#"{{"deployments": [{}]}}"#, all.join(", "));
    for (all, next, order) in [
        (vec![one("a", true)], "a", "a"),
        (vec![one("b", false), one("a", true)], "b", "b a"),
        (vec![one("a", true), one("old", false)], "a", "a old"),
        (vec![one("b", false), one("a", true), one("old", false)], "b", "b a old"),
    ] {
        let read = read(status(&all).as_bytes()).unwrap();
        assert_eq!((read.at_next_boot().id.as_str(), read.order.clone()), (next, texts(order)));
        assert_eq!(read.booted.id, "a");
    }
}

#[test]
fn what_is_no_state_of_a_host_is_an_error() {
    for said in [
        "",
        "null",
        "{}",
        "error: no such file",
        r#"{"deployments": []}"#,
        r#"{"deployments": [{}]}"#,
    ] {
        assert!(read(said.as_bytes()).is_err(), "{said:?}");
    }
}

#[test]
fn rpm_ostree_is_told_one_thing_after_the_other_until_all_is_as_it_is_to_be() {
    let new = format!("a.example/os@{DIGEST}");
    let rebase = format!("rebase --experimental ostree-unverified-registry:{new}");
    let real = "kernel-rt-core kernel-rt-modules kernel-rt-modules-extra";
    let all = "kernel kernel-core kernel-modules kernel-modules-core kernel-modules-extra";
    let install = "--install=kernel-rt-core --install=kernel-rt-modules \
                   --install=kernel-rt-modules-extra";
    let uninstall = "--uninstall=kernel-rt-core --uninstall=kernel-rt-modules \
                     --uninstall=kernel-rt-modules-extra";
    let none = || wish("", "", "default", "");
    // From, to, the packages that are there, those that were taken away, whether the image
    // is the new one; what is told.
    for (from, to, packages, removed, is_new, expected) in [
        (none(), none(), "", "", false, String::new()),
        (none(), wish(&new, "", "default", ""), "", "", false, rebase.clone()),
        (none(), wish(&new, "", "default", ""), "", "", true, String::new()),
        (none(), wish(&new, "a", "default", ""), "", "", true, "kargs --append=a".to_owned()),
        (
            none(),
            wish("", "", "realtime", ""),
            "",
            "",
            false,
            format!("override remove {all} {install}"),
        ),
        (
            wish("", "", "realtime", ""),
            wish(&new, "", "realtime", ""),
            real,
            all,
            false,
            format!("override reset {all} {uninstall}"),
        ),
        (
            wish("", "", "realtime", ""),
            none(),
            real,
            "kernel firefox",
            false,
            format!("override reset kernel {uninstall}"),
        ),
        (
            wish("", "", "default", "usbguard ipsec"),
            wish("", "", "default", "usbguard sysstat"),
            "usbguard libreswan NetworkManager-libreswan vim",
            "",
            false,
            "install sysstat --uninstall=NetworkManager-libreswan --uninstall=libreswan".to_owned(),
        ),
        // What an admin asked for besides is nobody else's.
        (
            wish("", "", "default", "usbguard"),
            none(),
            "usbguard vim",
            "",
            false,
            "uninstall usbguard".to_owned(),
        ),
    ] {
        let due = Due {
            to,
            from,
            passed: Vec::new(),
            deployment: "a".to_owned(),
            arguments: split("root=UUID=1 ro"),
        };
        let there = Deployment {
            digest: if is_new { DIGEST.to_owned() } else { String::new() },
            packages: texts(packages),
            removed: texts(removed),
            ..Deployment::default()
        };
        let next = next(&due, &there, "root=UUID=1 ro").unwrap_or_default();
        assert_eq!(next.join(" "), expected, "{due:?}");
        // What a proof asks for is what the tool is told to do.
        let is_done = due.missing(&there).is_none();
        assert_eq!(is_done, expected.is_empty() || expected.starts_with("kargs"), "{due:?}");
    }
}

#[test]
fn to_fetch_an_image_stages_nothing() {
    let args = fetch("a.example/os:1").join(" ");
    assert_eq!(
        args,
        "rebase --experimental --download-only ostree-unverified-registry:a.example/os:1"
    );
}
