use super::*;

const ENDS: (&str, &str) = ("evil.service", "[Unit]\nSuccessAction=reboot\n");

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
fn what_only_systemd_can_tell_of_one_unit_says_nothing_of_others() {
    let template = "[Unit]\nBindsTo=sys-subsystem-net-devices-%i.device\nPartOf=x@%i.service\n\
                    [Install]\nWantedBy=y@%i.target\n";
    let all = units(&[("t@.service", template), ("a.service", "[Unit]\nDescription=No sysrq\n")]);
    assert_eq!(why(&all, "a.service"), None);
}

#[test]
fn whatever_belongs_to_a_unit_by_a_directive_counts_with_it() {
    let evil = "[Unit]\nSuccessAction=reboot\n";
    let stops = "[Service]\nExecStop=/usr/bin/systemctl reboot\n";
    let reloads = "[Service]\nExecReload=/usr/bin/systemctl reboot\n";
    for (name, text, other, said, touched) in [
        ("app.service", "[Service]\nSlice=evil.slice\n", "evil.slice", evil, "app.service"),
        ("app.service", "[Service]\nSlice=evil-x.slice\n", "evil.slice", evil, "app.service"),
        ("app@.service", "", "system-app.slice", evil, "app@1.service"),
        ("app.service", "[Service]\nSockets=evil.socket\n", "evil.socket", evil, "app.service"),
        ("app.socket", "[Socket]\nAccept=yes\n", "app@.service", evil, "app.socket"),
        ("app.service", "[Unit]\nRequires=x.automount\n", "x.mount", evil, "app.service"),
        (
            "app.service",
            "[Unit]\nRequiresMountsFor=/data/a-b/c\n",
            "data-a\\x2db.mount",
            evil,
            "app.service",
        ),
        ("app.service", "[Service]\nWorkingDirectory=/data/x\n", "data.mount", evil, "app.service"),
        (
            "app.service",
            "[Service]\nStateDirectory=app\n",
            "var-lib-app.mount",
            evil,
            "app.service",
        ),
        (
            "app.service",
            "[Unit]\nPropagatesReloadTo=b.service\n",
            "b.service",
            reloads,
            "app.service",
        ),
        (
            "b.service",
            reloads,
            "app.service",
            "[Unit]\nPropagateReloadTo=b.service\n",
            "app.service",
        ),
        (
            "app.service",
            "",
            "b.service",
            "[Unit]\nReloadPropagatedFrom=app.service\n[Service]\nExecReload=/usr/bin/systemctl reboot\n",
            "app.service",
        ),
        ("app.service", "[Unit]\nPropagatesStopTo=b.service\n", "b.service", stops, "app.service"),
        ("app.service", "[Unit]\nConflicts=b.service\n", "b.service", stops, "app.service"),
        (
            "app.service",
            "",
            "b.service",
            "[Unit]\nRequisite=app.service\n[Service]\nExecStopPost=/usr/sbin/reboot\n",
            "app.service",
        ),
        ("app.service", "[Unit]\nBindTo=evil.service\n", "evil.service", evil, "app.service"),
        (
            "data.mount",
            "",
            "b.service",
            "[Unit]\nRequiresMountsFor=/data/x\nFailureAction=reboot\n",
            "data.mount",
        ),
    ] {
        let config = units(&[(name, text), (other, said)]);
        assert!(why(&config, touched).is_some(), "{name} {text:?} {other} {said:?}");
        assert_eq!(why(&config, "else.service"), None, "{name} {text:?}");
        // What belongs to it and does no harm is no reason.
        let harmless = units(&[(name, text), (other, "[Unit]\nDescription=b\n")]);
        if name == touched && text != reloads {
            assert_eq!(why(&harmless, touched), None, "{name} {text:?}");
        }
    }
}

#[test]
fn a_unit_that_another_one_conflicts_with_stops_that_one() {
    let dropin = |unit: &str, text: &str| json!({"systemd": {"units": [{"name": unit, "dropins": [{"name": "a.conf", "contents": text}]}]}});
    let conflicts = "[Unit]\nConflicts=app.service\n";
    let why_app = why(&dropin("kubelet.service", conflicts), "app.service").unwrap();
    assert!(why_app.contains("kubelet.service stops where it starts"), "{why_app}");
    assert_eq!(why(&dropin("b.service", conflicts), "app.service"), None);
    let usual = "[Unit]\nConflicts=shutdown.target rescue.service emergency.service\n";
    assert_eq!(why(&units(&[("a.service", usual), ("b.service", usual)]), "a.service"), None);
}

#[test]
fn a_target_that_requires_a_unit_stops_with_it_unless_the_configs_say_what_stands_on_it() {
    let requires = "[Install]\nRequiredBy=own.target\n";
    let link = |directory: &str| {
        json!({"storage": {"links": [{"path": format!("/etc/systemd/system/{directory}/a.service"),
               "target": "/etc/systemd/system/a.service"}]}})
    };
    for config in [
        units(&[("a.service", requires)]),
        units(&[("a.service", "[Install]\nRequiredBy=multi-user.target\n")]),
        units(&[
            ("a.service", "[Install]\nRequiredBy=multi-user.target\n"),
            ("multi-user.target", "[Unit]\n"),
        ]),
        link("local-fs.target.requires"),
        link("multi-user.target.requires"),
    ] {
        assert!(why(&config, "a.service").is_some(), "{config}");
    }
    let own = |stands: &str| {
        units(&[("a.service", requires), ("own.target", "[Unit]\n"), ("kubelet.service", stands)])
    };
    assert_eq!(why(&own("[Unit]\nRequires=own.target\n"), "a.service"), None);
    let evil = own("[Unit]\nRequires=own.target\n[Service]\nExecStopPost=/usr/sbin/reboot\n");
    assert!(why(&evil, "a.service").is_some());
    assert_eq!(why(&link("multi-user.target.wants"), "a.service"), None);
}

#[test]
fn an_instance_that_a_specifier_means_counts_and_no_other_one() {
    let text = |what: &str| format!("[Unit]\n{what}\nSuccessAction=reboot\n");
    for (name, said, touched, other) in [
        ("t@.service", "PartOf=%i.service", "app.service", "app.socket"),
        ("t@.service", "PartOf=x@%i.service", "x@1.service", "y@1.service"),
        ("t@.service", "PartOf=app.service", "app.service", "b.service"),
        ("t.service", "BindsTo=x@%H.service", "x@node.service", "x.service"),
        ("t-.service", "PartOf=app.service", "app.service", "b.service"),
    ] {
        let config = units(&[(name, &text(said))]);
        assert!(why(&config, touched).is_some(), "{name} {said}");
        assert_eq!(why(&config, other), None, "{name} {said} {other}");
        // An instance that does no harm, with a device of its own.
        let fine = format!("[Unit]\n{said}\nBindsTo=dev-%i.device\n");
        let is_many = name.contains("-.");
        let found = why(&units(&[(name, &fine)]), touched);
        assert_eq!(found.is_some(), is_many, "{name} {said}: {found:?}");
    }
}

#[test]
fn units_that_begin_alike_and_stop_with_a_unit_are_much_of_a_node() {
    for directory in ["foo-.service.d", "service.d", "slice.d"] {
        let files = json!({"storage": {"files": [{
            "path": format!("/etc/systemd/system/{directory}/x.conf"),
            "contents": {"source": "data:,%5BUnit%5D%0APartOf=app.service%0A"}}]}});
        let why = why(&files, "app.service").unwrap();
        assert!(why.contains("stand") && why.contains("stop"), "{directory}: {why}");
    }
    // Those of a template are looked at one by one.
    let all = [("t@.service", "[Unit]\nPartOf=app.service\n"), ("t@1.service", ENDS.1)];
    assert!(why(&units(&all), "app.service").is_some());
    assert_eq!(why(&units(&all[..1]), "app.service"), None);
}

#[test]
fn what_only_starts_with_a_unit_takes_none_with_it_that_stops() {
    // Who stands on crio.service does not stop because somebody else needs it.
    let all = [
        ("app.service", "[Unit]\nRequires=crio.service\nWants=network-online.target\n"),
        ("b.slice", "[Unit]\nPartOf=crio.service\n"),
    ];
    assert_eq!(why(&units(&all), "app.service"), None);
    assert!(why(&units(&all), "crio.service").is_some());
}

#[test]
fn lines_that_are_not_read_for_the_units_that_they_name_name_none() {
    use crate::touch::own::{lines, relations};
    let words = include_str!("../relations.rs").split(|it: char| !it.is_ascii_alphanumeric());
    let words = words.chain(include_str!("../directives.txt").split_whitespace());
    let mut found = 0;
    for key in words.filter(|word| !word.is_empty()) {
        for section in ["", "Unit", "Service", "Container"] {
            let text = format!("[{section}]\n{key}=/a b.service\n");
            let names = lines::settings(&text).any(|it| relations::of(&it, "x.service").is_some());
            assert!(!names || relations::may_name(section, key.as_bytes()[0]), "{section} {key}");
            found += usize::from(names && section == "Unit");
        }
    }
    assert!(found > 40, "{found}");
}
