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
        "[X]\nAlias=reboot.target\n",
    ] {
        assert_eq!(why(&unit(text), "a.service"), None, "{text}");
    }
}

#[test]
fn every_place_in_which_systemd_finds_a_unit_counts() {
    let text = "[Unit]\nFailureAction=reboot\n";
    let file = |path: &str| {
        let source = format!("data:,{}", text.replace('\n', "%0A"));
        json!({"storage": {"files": [{"path": path, "contents": {"source": source}}]}})
    };
    let dropin = |name: &str| {
        json!({"systemd": {"units": [
            {"name": name, "dropins": [{"name": "a.conf", "contents": text}]}]}})
    };
    for (config, name) in [
        (dropin("a-b.service"), "a-b.service"),
        (dropin("a@.service"), "a@1.service"),
        (file("/etc/systemd/system/a.service"), "a.service"),
        (file("/etc/systemd/system/a.service.d/x.conf"), "a.service"),
        (file("/usr/local/lib/systemd/system/a@.service.d/x.conf"), "a@b.service"),
        (file("/etc/systemd/system/a-.service.d/x.conf"), "a-b.service"),
        (file("/etc/systemd/system/service.d/x.conf"), "a.service"),
    ] {
        assert!(why(&config, name).is_some(), "{name} {config}");
        assert_eq!(why(&config, "other.mount"), None, "{config}");
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
        ("/etc/systemd/system/a.service", "../b.service", "a.service", true),
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
fn what_starts_and_stops_with_a_unit_counts_too() {
    let ends = ("evil.service", "[Unit]\nSuccessAction=reboot\n");
    for (others, touched) in [
        (("app.service", "[Unit]\nRequires=evil.service\n"), "app.service"),
        (("app.path", "[Path]\nUnit=evil.service\n"), "app.path"),
        (("app.service", "[Unit]\nUpholds=b.service evil.service\n"), "app.service"),
        (("other.service", "[Unit]\nRequires=evil.service\nPartOf=app.service\n"), "app.service"),
    ] {
        assert!(why(&units(&[ends, others]), touched).is_some(), "{others:?}");
    }
    for kind in ["path", "timer", "socket"] {
        let touched = format!("evil.{kind}");
        assert!(why(&units(&[ends]), &touched).is_some(), "{touched}");
    }
    for text in [
        "[Unit]\nConflicts=kubepods.slice\n",
        "[Unit]\nPropagatesStopTo=kubepods.slice multi-user.target\n",
        "[Unit]\nConflicts=crio.service kubelet.service\n",
    ] {
        assert!(why(&units(&[("app.service", text)]), "app.service").is_some(), "{text}");
    }
    for text in ["[Unit]\nPartOf=app.service\n", "[Unit]\nBindsTo=app.service\n"] {
        assert!(why(&units(&[("kubepods.slice", text)]), "app.service").is_some(), "{text}");
    }
    let friends = [("app.service", "[Unit]\nRequires=b.service\n"), ("b.service", "[Unit]\n")];
    assert_eq!(why(&units(&friends), "app.service"), None);
}

#[test]
fn a_command_that_ends_the_system_is_found_behind_wrappers_and_in_shells() {
    for command in [
        "rpm-ostree upgrade -r",
        "rpm-ostree rebase --reboot x",
        "bootc upgrade --apply",
        "kexec -e",
        "systemctl --job-mode=isolate start multi-user.target",
        "systemctl -t service reboot",
        "systemctl stop kubelet crio kubepods.slice",
        "systemd-run systemctl reboot",
        "nice -n 5 reboot",
        "chroot / reboot",
        "nsenter -t 1 -m reboot",
        "sudo -u root reboot",
        "env -u X reboot",
        "timeout 10s systemctl reboot",
        "bash -c 'if true; then systemctl reboot; fi'",
        "sh -c '{ reboot; }'",
        "sh -c '! reboot'",
        "sh -c 'while :; do reboot; done'",
        "busctl call org.freedesktop.login1 /org Manager Reboot b true",
        "sh -c 'echo b > /proc/sysrq-trigger'",
        "kill -RTMIN+5 1",
        "sh -c reboot",
        "bash -ec reboot now",
        "kill 1",
        "kill -KILL -1",
        "pkill systemd",
        "systemctl stop 'crio*'",
        "systemctl start systemd-reboot",
        "systemctl disable --now kubelet",
        "systemctl $VERB",
        "$CMD",
        "busctl call org.freedesktop.systemd1 /o M StartUnit ss reboot.target replace",
        "sh -c '>/dev/null reboot'",
        "sh -c 'trap reboot EXIT'",
        "taskset 1 reboot",
        "find / -exec reboot",
    ] {
        let text = format!("[Service]\nExecStart=/usr/bin/{command}\n");
        assert!(why(&unit(&text), "a.service").is_some(), "{command}");
    }
    for command in [
        "systemctl stop chronyd.service",
        "systemctl restart crio",
        "nice app --on-shutdown=reboot",
        "rpm-ostree status",
        "sh -c 'if true; then echo b; fi'",
        "sh -c 'echo $HOME > /run/x'",
        "kill -HUP $MAINPID",
        "kill -1 $MAINPID",
        "kill -s 1 $MAINPID",
        "sysctl kernel.sysrq=0",
        "chronyd $OPTIONS",
    ] {
        let text = format!("[Service]\nExecStart=/usr/bin/{command}\n");
        assert_eq!(why(&unit(&text), "a.service"), None, "{command}");
    }
}

#[test]
fn lines_are_those_that_systemd_reads() {
    for text in [
        "[Unit]\nDescription=c \\ \nSuccessAction=reboot\n",
        "[Unit]\nDescription=c \\\\\nSuccessAction=reboot\n",
        "[Unit]\nDescription=c \\\u{a0}\nSuccessAction=reboot\n",
        "[Unit]\n# c\rSuccessAction=reboot\n",
        "[Unit]\n# c\0SuccessAction=reboot\n",
        "[Unit]\nOnSuccess=re\"boot\".target\n",
        "[Unit]\nOnFailure=b.service\nOnFailureJobMode=isolate\n",
        "[Service]\nStandardOutput=file:/proc/sysrq-trigger\n",
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
fn drop_ins_and_links_count_wherever_systemd_looks_for_them() {
    let bad = "data:,%5BUnit%5D%0ASuccessAction=reboot%0A";
    for directory in ["foo-@.service.d", "foo-@1.service.d", "foo-bar@.service.d", "service.d"] {
        let path = format!("/etc/systemd/system/{directory}/x.conf");
        let files = json!({"storage": {"files": [{"path": path, "contents": {"source": bad}}]}});
        assert!(why(&files, "foo-bar@1.service").is_some(), "{directory}");
        assert_eq!(why(&files, "other@1.service").is_some(), directory == "service.d");
    }
    for directory in ["foo@.service.wants", "foo@1.service.requires", "service.upholds"] {
        let path = format!("/etc/systemd/system/{directory}/reboot.target");
        let target = "/usr/lib/systemd/system/reboot.target";
        let links = json!({"storage": {"links": [{"path": path, "target": target}]}});
        assert!(why(&links, "foo@1.service").is_some(), "{directory}");
    }
    for (path, target, file) in [
        ("a.service", "/opt/x/foo.service", "/opt/x/foo.service"),
        ("a.service.d", "/opt/dropins", "/opt/dropins/x.conf"),
        ("a.service.d/x.conf", "/opt//x.conf/", "/opt/x.conf"),
    ] {
        let config = json!({"storage": {
            "links": [{"path": format!("/etc/systemd/system/{path}"), "target": target}],
            "files": [{"path": file, "contents": {"source": bad}}]}});
        assert!(why(&config, "a.service").is_some(), "{path}");
        assert_eq!(why(&config, "b.service"), None, "{path}");
    }
    for (file, unit) in [
        ("a.container", "a.service"),
        ("a.container.d/x.conf", "a.service"),
        ("a.pod", "a-pod.service"),
    ] {
        let path = format!("/etc/containers/systemd/{file}");
        let config = json!({"storage": {"files": [{"path": path, "contents": {"source": bad}}]}});
        assert!(why(&config, unit).is_some(), "{file}");
    }
    let evil = "[Unit]\nSuccessAction=reboot\n[Install]\nWantedBy=a.service\n";
    assert!(why(&units(&[("evil.service", evil)]), "a.service").is_some());
    assert_eq!(why(&units(&[("evil.service", evil)]), "b.service"), None);
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
fn what_only_systemd_can_tell_of_one_unit_says_nothing_of_others() {
    let template = "[Unit]\nBindsTo=sys-subsystem-net-devices-%i.device\nPartOf=x@%i.service\n\
                    [Install]\nWantedBy=y@%i.target\n";
    let all = units(&[("t@.service", template), ("a.service", "[Unit]\nDescription=No sysrq\n")]);
    assert_eq!(why(&all, "a.service"), None);
}

#[test]
fn many_links_to_many_files_take_no_longer() {
    let files: Vec<Value> = (0..5000).map(|n| json!({"path": format!("/o/{n}")})).collect();
    let links: Vec<Value> = (0..5000)
        .map(|n| json!({"path": format!("/etc/systemd/system/u{n}.service.d"), "target": "/o"}))
        .collect();
    let config = json!({"storage": {"files": files, "links": links}});
    assert!(why(&config, "a.service").is_some_and(|why| why.contains("than is looked at")));
}

#[test]
fn what_is_looked_at_is_bounded_and_what_is_not_looked_at_is_not_gentle() {
    // Each wrapper could be followed by each other one.
    let nested = format!("[Service]\nExecStart={} true\n", "nice ".repeat(400));
    assert_eq!(why(&unit(&nested), "a.service"), None);
    let longer = format!("[Service]\nExecStart={} true\n", "nice ".repeat(600));
    assert!(why(&unit(&longer), "a.service").is_some());
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
