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
    let found = OwnUnits::of(&old.config, &new.config).why_not_gentle(name);
    let back = OwnUnits::of(&new.config, &old.config).why_not_gentle(name);
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
        assert_eq!(why(&config, "other.timer"), None, "{config}");
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
