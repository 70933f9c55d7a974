use super::*;

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
        (file("/run/systemd/system.control/a.service"), "a.service"),
        (file("/var/run/systemd/system/a.service"), "a.service"),
        (file("/run/systemd/generator.early/a.service.d/x.conf"), "a.service"),
        (file("/etc/containers/systemd/a.artifact"), "a-artifact.service"),
        (file("/var/run/containers/systemd/a.container"), "a.service"),
    ] {
        assert!(why(&config, name).is_some(), "{name} {config}");
        assert_eq!(why(&config, "other.mount"), None, "{config}");
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
fn many_links_to_many_files_take_no_longer() {
    let files: Vec<Value> = (0..5000).map(|n| json!({"path": format!("/o/{n}")})).collect();
    let links: Vec<Value> = (0..5000)
        .map(|n| json!({"path": format!("/etc/systemd/system/u{n}.service.d"), "target": "/o"}))
        .collect();
    let config = json!({"storage": {"files": files, "links": links}});
    assert!(why(&config, "a.service").is_some_and(|why| why.contains("than is looked at")));
}

/// What a config has beside a unit that ends the system, written as a file.
fn with_bad_file(path: &str, link: Option<(&str, &str)>) -> Value {
    let bad = "data:,%5BUnit%5D%0ASuccessAction=reboot%0A";
    let links: Vec<Value> =
        link.iter().map(|(path, target)| json!({"path": path, "target": target})).collect();
    json!({"storage": {"files": [{"path": path, "contents": {"source": bad}}], "links": links}})
}

#[test]
fn links_are_followed_from_where_they_stand_and_in_place_of_whole_directories() {
    for (file, path, target) in [
        ("/opt/a.service", "/etc/systemd/system/a.service", "../../../opt/a.service"),
        ("/etc/systemd/b.service", "/etc/systemd/system/a.service", "../b.service"),
        ("/opt/d/x.conf", "/etc/systemd/system/a.service.d", "../../../opt/./d/"),
        ("/opt/units/a.service", "/usr/local/lib/systemd/system", "/opt/units"),
        ("/opt/systemd/system/a.service", "/usr/local/lib/systemd", "../../../opt/systemd"),
        ("/opt/units/a.service.d/x.conf", "/usr/local/lib/systemd/system", "/opt/units"),
        ("/opt/q/a.container", "/etc/containers/systemd", "/opt/q"),
    ] {
        let config = with_bad_file(file, Some((path, target)));
        assert!(why(&config, "a.service").is_some(), "{path} -> {target}");
        assert_eq!(why(&config, "other.service"), None, "{path} -> {target}");
    }
    let chain = json!({"storage": {
    "files": [{"path": "/opt/x/a.service",
               "contents": {"source": "data:,%5BUnit%5D%0ASuccessAction=reboot%0A"}}],
    "links": [
        {"path": "/etc/systemd/system/a.service", "target": "/opt/link/a.service"},
        {"path": "/opt/link", "target": "x"},
        {"path": "/opt/units/b.service.wants/reboot.target", "target": "/x/reboot.target"},
        {"path": "/etc/systemd/system/b.service.wants", "target": "/opt/units/b.service.wants"},
    ]}});
    for unit in ["a.service", "b.service"] {
        assert!(why(&chain, unit).is_some_and(|why| why.contains("the system")), "{unit}");
    }
}

#[test]
fn a_link_to_what_the_configs_do_not_hold_is_more_than_is_looked_at() {
    let link = |path: &str, target: &str| json!({"storage": {"links": [{"path": path, "target": target}]}});
    for (path, target) in [
        ("/etc/systemd/system/a.service", "/opt/a.service"),
        ("/etc/systemd/system/a.service.d", "/opt/d"),
        ("/etc/systemd/system/a.service.wants", "/opt/wants"),
        ("/etc/systemd/system/a.service.d/x.conf", "/opt/x.conf"),
        ("/etc/systemd/system/a.service", "/etc/systemd/system/../a.service"),
    ] {
        let why_a = why(&link(path, target), "a.service").unwrap();
        assert!(why_a.contains("than is looked at"), "{path} -> {target}: {why_a}");
        assert_eq!(why(&link(path, target), "b.service"), None, "{path} -> {target}");
    }
    for (path, target) in [
        (
            "/etc/systemd/system/multi-user.target.wants/a.service",
            "/usr/lib/systemd/system/a.service",
        ),
        ("/etc/systemd/system/multi-user.target.wants/a.service", "../a.service"),
        ("/etc/systemd/system/a.service", "/dev/null"),
    ] {
        assert_eq!(why(&link(path, target), "a.service"), None, "{path} -> {target}");
    }
    let whole = link("/usr/local/lib/systemd/system", "/opt/units");
    assert!(why(&whole, "a.service").is_some_and(|why| why.contains("than is looked at")));
    let circle = link("/etc/systemd/system/a.service", "/etc/systemd/system/a.service");
    assert!(why(&circle, "a.service").is_some());
}

#[test]
fn a_quadlet_counts_wherever_quadlet_looks_and_whatever_it_calls_its_service() {
    for (path, unit) in [
        ("/usr/share/containers/systemd/a.container", "a.service"),
        ("/run/containers/systemd/a.kube", "a.service"),
        ("/etc/containers/systemd/group/deep/a.container", "a.service"),
        ("/etc/containers/systemd/a-.container.d/x.conf", "a-b.service"),
        ("/etc/containers/systemd/container.d/x.conf", "a.service"),
        ("/etc/containers/systemd/a.build", "a-build.service"),
    ] {
        assert!(why(&with_bad_file(path, None), unit).is_some(), "{path}");
    }
    let of_users = with_bad_file("/etc/containers/systemd/users/a.container", None);
    assert_eq!(why(&of_users, "a.service"), None);
    let file = |name: &str, text: &str| {
        let source = format!("data:,{}", text.replace('\n', "%0A").replace(' ', "%20"));
        json!({"path": format!("/etc/containers/systemd/{name}"), "contents": {"source": source}})
    };
    let named = "[Unit]\nSuccessAction=reboot\n[Container]\nServiceName=web\n";
    let config = json!({"storage": {"files": [file("a.container", named)]}});
    assert!(why(&config, "web.service").is_some());
    let bad = "[Unit]\nSuccessAction=reboot\n";
    for (key, other) in [
        ("Network=n.network", "n.network"),
        ("Volume=v.volume:/x", "v.volume"),
        ("Pod=p.pod", "p.pod"),
    ] {
        let text = format!("[Container]\nImage=x\n{key}\n");
        let config = json!({"storage": {"files": [file("a.container", &text), file(other, bad)]}});
        assert!(why(&config, "a.service").is_some(), "{key}");
    }
    let fine = "[Container]\nImage=x\nNetwork=host\nExec=/app\n[Service]\nRestart=always\n";
    let config = json!({"storage": {"files": [file("a.container", fine)]}});
    assert_eq!(why(&config, "a.service"), None);
}

#[test]
fn a_mount_beside_a_table_of_mounts_is_more_than_is_looked_at() {
    let fstab = json!({"storage": {"files": [
        {"path": "/etc/fstab", "contents": {"source": "data:,x"}}]}});
    assert!(why(&fstab, "data.mount").is_some_and(|why| why.contains("than is looked at")));
    assert_eq!(why(&fstab, "a.service"), None);
}

#[test]
fn what_mounts_of_fstab_start_counts() {
    let config = |options: &str| {
        let source = format!("data:,/dev/x%20/data%20ext4%20noauto{options}");
        json!({
            "storage": {"files": [{"path": "/etc/fstab", "contents": {"source": source}}]},
            "systemd": {"units": [
                {"name": "a.service", "contents": "[Unit]\nRequiresMountsFor=/data\n"}]},
        })
    };
    assert!(why(&config(",x-systemd.requires=reboot.target"), "a.service").is_some());
    assert_eq!(why(&config(""), "a.service"), None);
    assert!(why(&config(""), "data.mount").is_some());
}
