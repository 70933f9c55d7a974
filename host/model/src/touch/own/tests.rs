mod commands;
mod directives;
mod long;
mod places;
mod relations;
mod secrets;

use super::*;
use crate::read::{self, Input};
use serde_json::{Value, json};

/// Why a unit of a config is not touched gently, if that stands on the new side.
fn why(ignition: &Value, name: &str) -> Option<String> {
    let config = |ignition: &Value| {
        let mut config = ignition.clone();
        config["ignition"] = json!({"version": "3.4.0"});
        config.to_string()
    };
    let (old, new) = (config(&json!({})), config(ignition));
    let input = |text| [Input { name: "a", bytes: str::as_bytes(text) }];
    let (old, new) = (input(&old), input(&new));
    let (old, new) = read::sides(&old, &new).unwrap();
    let (mut room, mut room_back) = (ROOM, ROOM);
    let found = OwnUnits::of(&old.config, &new.config).why_not_gentle(name, &mut room);
    let back = OwnUnits::of(&new.config, &old.config).why_not_gentle(name, &mut room_back);
    assert_eq!(found, back, "either side counts");
    found
}

fn unit(text: &str) -> Value {
    json!({"systemd": {"units": [{"name": "a.service", "contents": text}]}})
}

#[test]
fn a_unit_that_ends_the_system_by_what_it_says_is_not_touched_gently() {
    for text in [
        "[Unit]\nSuccessAction=reboot\n",
        "[Unit]\nFailureAction = poweroff-force\n",
        "[Unit]\nJobTimeoutAction=reboot-immediate\n",
        "[Unit]\nStartLimitAction=exit\n",
        "[Unit]\nFailureAction=\\\n# why\n  kexec\n",
        "[Unit]\nOnSuccess=reboot.target\n",
        "[Unit]\nOnFailure=a.service emergency.target\n",
        "[Unit]\nWants=systemd-poweroff.service\n",
        "[Unit]\nConflicts=multi-user.target\n",
        "[Unit]\nConflicts=reboot.target\n",
        "[Service]\nExecStart=/usr/bin/systemctl reboot\n",
        "[Service]\nExecStart=-/usr/sbin/shutdown -r now\n",
        "[Service]\nExecStartPost=/bin/sh -c \"sleep 1; exec systemctl --no-block isolate rescue.target\"\n",
        "[Service]\nExecStop=/usr/bin/systemctl start poweroff.target\n",
        "[Service]\nExecReload=/bin/bash -c 'timeout -k 1 5 reboot'\n",
        "[Install]\nRequiredBy=local-fs.target\n",
        "[Install]\nAlias=b.service reboot.target\n",
        "[Install]\nAlias=dbus.service\n",
    ] {
        let why = why(&unit(text), "a.service").unwrap_or_else(|| panic!("{text}"));
        assert!(why.starts_with("would not be touched gently: "), "{why}");
        assert!(!why.contains("multi-user") && !why.contains("poweroff"), "{why} quotes {text}");
    }
}

#[test]
fn a_unit_that_says_nothing_of_the_system_is_touched_gently() {
    for text in [
        "[Unit]\nFailureAction=none\nSuccessAction=\n",
        "[Unit]\n# FailureAction=reboot\n;SuccessAction=reboot\n",
        "[Unit]\nConflicts=shutdown.target b.service\nBefore=shutdown.target reboot.target\n",
        "[Unit]\nAfter=rescue.service\nWants=network-online.target\nRequires=crio.service\n",
        "[Service]\nExecStart=/usr/bin/logger reboot\nExecStartPre=/bin/sh -c 'echo shutdown'\n",
        "[Service]\nExecStart=/usr/bin/systemctl restart crio.service\n",
        "[Service]\nExecStart=/usr/bin/reboot-notifier --init\nRestart=always\n",
        "[Install]\nWantedBy=multi-user.target\nAlias=b.service\n",
        "[X-App]\nAlias=reboot.target\n",
    ] {
        assert_eq!(why(&unit(text), "a.service"), None, "{text}");
    }
}

#[test]
fn whatever_name_a_unit_is_called_by_it_is_the_same() {
    let text = "[Unit]\nSuccessAction=reboot\n[Install]\nAlias=b.service\n";
    let why_b = why(&unit(text), "b.service").unwrap();
    assert!(why_b.contains("a.service, which has it as an alias, has SuccessAction="), "{why_b}");
    let link = |path: &str, target: &str| json!({"storage": {"links": [{"path": path, "target": target}]}});
    for (path, target, name, gentle) in [
        (
            "/etc/systemd/system/a.service",
            "/usr/lib/systemd/system/reboot.target",
            "a.service",
            false,
        ),
        ("/etc/systemd/system/a.service", "b.service", "a.service", true),
        (
            "/etc/systemd/system/a.service",
            "../../../lib/systemd/system/b.service",
            "a.service",
            true,
        ),
        (
            "/etc/systemd/system/a.service.wants/reboot.target",
            "/x/reboot.target",
            "a.service",
            false,
        ),
        ("/etc/systemd/system/a.service.wants/b.service", "/x/b.service", "a.service", true),
        ("/etc/systemd/system/dbus.service", "/x/a.service", "a.service", false),
        ("/etc/other/a.service", "/x/reboot.target", "a.service", true),
    ] {
        assert_eq!(why(&link(path, target), name).is_none(), gentle, "{path} {target}");
    }
}

/// Units of a config, by name and text.
fn units(all: &[(&str, &str)]) -> Value {
    let units: Vec<Value> =
        all.iter().map(|(name, text)| json!({"name": name, "contents": text})).collect();
    json!({"systemd": {"units": units}})
}

#[test]
fn what_systemd_makes_of_a_name_or_a_value_is_what_counts() {
    let ends = "[Unit]\nSuccessAction=reboot\n[Install]\n";
    for (name, text, touched) in [
        ("a.service", format!("{ends}Alias=\"q.service\"\n"), "q.service"),
        ("bar.service", format!("{ends}Alias=app-%p.service\n"), "app-bar.service"),
        ("bar.service", format!("{ends}Alias=app-%H.service\n"), "app-x.service"),
        ("foo@.service", format!("{ends}Alias=tmpl@.service\n"), "tmpl@b.service"),
        ("a.service", format!("\u{feff}{ends}"), "a.service"),
        ("x@.service", "[Unit]\nOnSuccess=%i.target\n".to_owned(), "x@reboot.service"),
        (
            "x@.service",
            "[Service]\nExecStart=/usr/bin/systemctl %i\n".to_owned(),
            "x@reboot.service",
        ),
        (
            "x@.service",
            "[Service]\nExecStart=systemctl start %I.target\n".to_owned(),
            "x@poweroff.service",
        ),
        ("x@.service", "[Unit]\nRequires=%H.service\n".to_owned(), "x@a.service"),
        ("x@.service", "[Unit]\nOnSuccess=%I.target\n".to_owned(), "x@re\\x62oot.service"),
        ("x.service", "[Service]\nExecStart=/usr/bin/%H\n".to_owned(), "x.service"),
        (
            "x.service",
            "[Service]\nExecStart=/usr/bin/systemctl r\\x65boot\n".to_owned(),
            "x.service",
        ),
    ] {
        assert!(why(&units(&[(name, &text)]), touched).is_some(), "{touched}: {text}");
    }
    let fine = "[Service]\nExecStart=/usr/bin/app --config /etc/%i.conf --host %H\n";
    assert_eq!(why(&units(&[("x@.service", fine)]), "x@a.service"), None);
}

#[test]
fn lines_are_those_that_systemd_reads() {
    for text in [
        "[Unit]\nDescription=c \\ \nSuccessAction=reboot\n",
        "[Unit]\nDescription=c \\\\\nSuccessAction=reboot\n",
        "[Unit]\nDescription=c \\\u{a0}\nSuccessAction=reboot\n",
        "[Unit]\n# c\rSuccessAction=reboot\n",
        "[Unit]\n# c\0SuccessAction=reboot\n",
        "[Service]\nExecStart=/usr/bin/systemctl \\\r\nreboot\n",
        "[Service]\nExecStart=/usr/bin/systemctl \\\n\0reboot\n",
        "[Service]\nExecStart=/usr/bin/systemctl\rreboot\n",
        "[Unit]\r\nOnFailure=\\\r\n# c\r\n  reboot.target\r\n",
        "[Unit]\nOnSuccess=re\"boot\".target\n",
        "[Unit]\nOnFailure=b.service\nOnFailureJobMode=isolate\n",
        "[Service]\nStandardOutput=file:/proc/sysrq-trigger\n",
        "[Service]\nExecStart=/bin/sh\nStandardInput=data\nStandardInputText=systemctl reboot\n",
        "[Service]\nExecStart=/bin/sh\nStandardInput=data\nStandardInputData=cmVib290Cg==\n",
        "[Container]\nEntrypoint=/usr/sbin/reboot\n",
        "[Container]\nHealthCmd=nsenter -t 1 -m systemctl reboot\n",
        "[Unit]\nConflicts=NetworkManager.service\n",
        "[Unit]\nConflicts=cri-o.service\n",
        "[Unit]\nConflicts=systemd-journald.service\n",
    ] {
        assert!(why(&unit(text), "a.service").is_some(), "{text:?}");
    }
    for text in [
        "[Unit]\nDescription=c \\\nSuccessAction=reboot\n",
        "[Unit]\nDescription=c \\\n# c\nSuccessAction=reboot\n",
        "[Unit]\n#SuccessAction=reboot\n",
    ] {
        assert_eq!(why(&unit(text), "a.service"), None, "{text:?}");
    }
}

#[test]
fn lines_without_end_and_names_without_number_take_no_longer_and_no_more() {
    let long = format!("[Unit]\nRequires=b.service\nDescription=x{}\n", "\\\n".repeat(900_000));
    assert_eq!(why(&unit(&long), "a.service"), None);
    for text in [
        format!("[Unit]\nPartOf={}\n", "b ".repeat(3_000_000)),
        format!("[Unit]\n{}", "PartOf=b c d e f g\n".repeat(200_000)),
        format!("[Unit]\n{}", "# more\n".repeat(2_000_000)),
    ] {
        let why = why(&unit(&text), "a.service").unwrap();
        assert!(why.contains("than is looked at"), "{why}");
    }
}

#[test]
fn what_is_looked_at_is_bounded_and_what_is_not_looked_at_is_not_gentle() {
    // Each wrapper could be followed by each other one.
    let nested = format!("[Service]\nExecStart={} true\n", "nice ".repeat(400));
    assert_eq!(why(&unit(&nested), "a.service"), None);
    let longer = format!("[Service]\nExecStart={} true\n", "nice ".repeat(600));
    assert!(why(&unit(&longer), "a.service").is_some());
    // Each of these could be the one that decides.
    let verbs = format!("[Service]\nExecStart=env {} true\n", "systemctl ".repeat(400));
    assert!(why(&unit(&verbs), "a.service").is_some());
    let commands = "env systemctl status a; ".repeat(20);
    let commands = format!("[Service]\nExecStart=/bin/sh -c '{commands}'\n");
    assert!(why(&unit(&commands), "a.service").is_some());
    // Units that start each other, without end and with much to say.
    let text = |n: usize| {
        let comment = format!("# {}\n", "x".repeat(2000)).repeat(10);
        format!("{comment}[Unit]\nRequires=u{}.service u0.service\n", n + 1)
    };
    let all: Vec<(String, String)> =
        (0..1000).map(|n| (format!("u{n}.service"), text(n))).collect();
    let all: Vec<(&str, &str)> = all.iter().map(|(name, text)| (&**name, &**text)).collect();
    assert_eq!(why(&units(&all[..50]), "u0.service"), None);
    let why = why(&units(&all), "u0.service").unwrap();
    assert!(why.contains("than is looked at"), "{why}");
}
