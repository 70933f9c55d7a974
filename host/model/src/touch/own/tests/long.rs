use super::*;

/// A config with a file, and a link.
fn config(files: &[(&str, &str)], links: &[(&str, &str)]) -> Value {
    let escaped = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let files: Vec<Value> = files
        .iter()
        .map(|(path, text)| json!({"path": path, "contents": {"source": format!("data:,{}", escaped(text))}}))
        .collect();
    let links: Vec<Value> =
        links.iter().map(|(path, target)| json!({"path": path, "target": target})).collect();
    json!({"storage": {"files": files, "links": links}})
}

fn file(path: &str, text: &str) -> Value {
    config(&[(path, text)], &[])
}

#[track_caller]
fn is_more_than_is_looked_at(config: &Value) {
    let why = why(config, "a.service").unwrap();
    assert!(why.contains("than is looked at") || why.contains("than are looked at"), "{why}");
}

const DROPIN: &str = "/etc/systemd/system/a.service.d/x.conf";

#[test]
fn a_name_that_is_longer_than_any_units_is_more_than_is_looked_at() {
    let name = |length: usize| format!("{}.service", "b".repeat(length - ".service".len()));
    let (long, longer) = (name(255), name(256));
    for (is_fine, name) in [(true, &long), (false, &longer)] {
        for said in [
            format!("[Unit]\nWants={name}\n"),
            format!("[Unit]\nPartOf={name}\n"),
            format!("[Unit]\nPartOf={}\n", name.replacen("bb", "%H", 1)),
            format!("[Service]\nExecStart=/usr/bin/systemctl start {name}\n"),
        ] {
            let why = why(&file(DROPIN, &said), "a.service");
            assert_eq!(why.is_none(), is_fine, "{said}: {why:?}");
        }
        let shorter = name.replacen("bb", "", 1);
        for config in [
            file(&format!("/etc/systemd/system/{name}"), "[Unit]\n"),
            file(&format!("/etc/systemd/system/{name}.d/x.conf"), "[Unit]\n"),
            config(&[], &[(&format!("/etc/systemd/system/{name}"), "c.service")]),
            config(&[], &[("/etc/systemd/system/c.service", name)]),
            config(
                &[],
                &[(&format!("/etc/systemd/system/c.service.wants/{name}"), "../c.service")],
            ),
            config(
                &[("/opt/x.conf", "[Unit]\n")],
                &[(&format!("/etc/systemd/system/{shorter}.d"), "/opt")],
            ),
        ] {
            let why = why(&config, "a.service");
            let is_said = why.as_ref().is_none_or(|why| why.contains("than is looked at"));
            assert!(why.is_none() == is_fine && is_said, "{config}: {why:?}");
        }
    }
}

#[test]
fn what_names_grow_to_is_bounded() {
    let dashes = format!("{}b.service", "a-".repeat(40_000));
    let specifiers = "%n".repeat(2_000);
    let odd = format!("/etc/systemd/system/{}.service", "%N%p%P%j%J".repeat(20));
    for config in [
        // All that begin alike, of a name with many dashes.
        file(DROPIN, &format!("[Unit]\nWants={dashes}\n")),
        file(DROPIN, &format!("[Service]\nExecStart=/usr/bin/systemctl start {dashes}\n")),
        // Each could be as long as the name.
        file(
            &format!("/etc/systemd/system/{}.service", "c".repeat(4_000)),
            &format!("[Unit]\nRequires={specifiers}\n"),
        ),
        file(DROPIN, &format!("[Unit]\nRequires={specifiers}\n")),
        // A link to what it stands in.
        config(&[], &[("/etc/systemd/system/x", "/opt"), ("/opt/a", "/opt")]),
        config(&[], &[("/etc/systemd/system/x", &"/o".repeat(100_000))]),
    ] {
        is_more_than_is_looked_at(&config);
    }
    // A name in which specifiers stand is read once.
    assert_eq!(why(&file(&odd, "[Unit]\nDescription=%n\nRequires=b.service\n"), "a.service"), None);
    assert_eq!(names::resolved("%n %N", "%N%n.service").unwrap(), "%N%n.service %N%n");
    assert_eq!(names::resolved("%%n 100% %", "a@b.service").unwrap(), "%a@b.service 100% %");
}

#[test]
fn what_a_value_is_made_of_is_taken_from_the_room_of_the_whole_look() {
    let name = format!("{}.service", "c".repeat(200));
    let path = format!("/etc/systemd/system/{name}.d/x.conf");
    let line = |count: usize| format!("ExecStart=/bin/app {}\n", "%n,".repeat(count));
    let why_it = |text: &str| why(&file(&path, &format!("[Service]\n{text}")), &name);
    // One value is as long as systemd reads lines, and no longer.
    assert_eq!(why_it(&line(5_000)), None);
    let long = why_it(&line(6_000)).unwrap();
    assert!(long.contains("ExecStart= in [Service], which is more than is looked at"), "{long}");
    // Many are as long as there is room.
    assert_eq!(why_it(&line(4_000).repeat(2)), None);
    assert!(why_it(&line(4_000).repeat(6)).unwrap().contains("than is looked at"));
    // What ends the system is told all the same.
    let ends = why_it(&format!("{}ExecStop=/usr/sbin/reboot\n", line(6_000))).unwrap();
    assert!(ends.contains("runs what ends the system, by ExecStop="), "{ends}");
    for key in ["StandardOutput=file:/%n", "LogNamespace=%n", "WorkingDirectory=/%n", "PartOf=%n"] {
        let text = format!("{key}{}\n", "%n".repeat(6_000));
        assert!(why_it(&text).is_some(), "{key}");
    }
}

#[test]
fn units_and_what_comes_of_them_are_followed_as_far_as_there_is_room() {
    // More units than there is room for, of one unit.
    let wants: String = (0..20)
        .map(|n| format!("Wants={}\n", (0..4_000).map(|m| format!("{n}x{m} ")).collect::<String>()))
        .collect();
    is_more_than_is_looked_at(&file(DROPIN, &format!("[Unit]\n{wants}")));
    // Each of many units has much coming of it.
    let part_of = format!("PartOf={}\n", "service ".repeat(4_000)).repeat(20);
    let wants: String = (0..4_000).map(|n| format!("u{n}.service ")).collect();
    let config = config(
        &[
            ("/etc/systemd/system/p.service", &format!("[Unit]\n{part_of}")),
            (DROPIN, &format!("[Unit]\nWants={wants}\n")),
        ],
        &[],
    );
    is_more_than_is_looked_at(&config);
}
