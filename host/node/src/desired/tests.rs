#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use super::*;
use tread_model::read::{Input, sides};

/// A host that knows root and core, and enables units for multi-user.target.
struct Known;

impl Host for Known {
    fn user(&self, path: &str, name: &str) -> Result<u32, String> {
        match name {
            "root" => Ok(0),
            "core" => Ok(1000),
            name => Err(format!("{path}: no user {name}")),
        }
    }

    fn group(&self, path: &str, name: &str) -> Result<u32, String> {
        self.user(path, name)
    }

    fn enablement(
        &self,
        config: &NodeConfig<'_>,
        _: &Desired<'_>,
        _: &[Target<'_>],
    ) -> BTreeMap<String, Result<Vec<Enabling>, String>> {
        let links = |unit: &Unit<'_>| {
            let path = format!("{UNITS}/multi-user.target.wants/{}", unit.name);
            let target = unit.enabled?.then(|| format!("{UNITS}/{}", unit.name));
            Some((unit.name.to_string(), Ok(vec![Enabling { path, target }])))
        };
        config.units.iter().filter_map(links).collect()
    }

    fn left_open(
        &self,
        _: &[Target<'_>],
        _: &[crate::desired::LeftOpen],
    ) -> Vec<(String, Enabling)> {
        Vec::new()
    }

    fn is_empty(&self, path: &str) -> bool {
        path.ends_with("/empty.conf")
    }

    fn keys(&self, user: &str) -> Result<Keys, String> {
        let uid = self.user("keys", user)?;
        let owner = Owner { uid, gid: uid, mode: 0 };
        Ok(Keys { path: format!("/home/{user}/.ssh/authorized_keys"), owner })
    }

    fn password(&self, user: &str) -> Result<(), String> {
        match user {
            "core" => Ok(()),
            user => Err(format!("no user {user}")),
        }
    }
}

/// What an Ignition config puts where: `644 0 text`, `-> target`, `-`, or why it cannot.
fn put(config: &str) -> Result<Vec<String>, Vec<String>> {
    let text = format!(r#"{{"ignition": {{"version": "3.4.0"}}, {config}}}"#);
    let input = [Input { name: "a.ign", bytes: text.as_bytes() }];
    let (side, _) = sides(&input, &input).unwrap();
    let desired = desired(&side.config, &Known);
    let desired = desired.map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let says = |(path, piece): (&String, &Piece<'_>)| match &piece.wanted {
        None => format!("{path} ?"),
        Some(Wanted::Password { user, .. }) => format!("{path} password of {user}"),
        Some(Wanted::Absent) => format!("{path} -"),
        Some(Wanted::Link { target }) => format!("{path} -> {target}"),
        Some(Wanted::File { bytes, owner }) => {
            let text = String::from_utf8_lossy(bytes).replace('\n', "|");
            format!("{path} {:o} {} {text}", owner.mode, owner.uid)
        }
    };
    Ok(desired.pieces.iter().map(says).collect())
}

#[test]
fn each_part_of_a_config_has_its_place_owner_and_mode() {
    for (config, expected) in [
        (
            r#""storage": {"files": [{"path": "/etc/a", "mode": 384, "user": {"name": "core"},
                "contents": {"source": "data:,a"}}]}"#,
            &["/etc/a 600 1000 a"][..],
        ),
        (
            r#""storage": {"files": [{"path": "/etc/a",
                "contents": {"source": "https://example.com/a"}}]}"#,
            &["/etc/a ?"],
        ),
        (
            r#""systemd": {"units": [{"name": "a.service", "contents": "[Unit]",
                "dropins": [{"name": "1.conf", "contents": "[Service]"}]}]}"#,
            &[
                "/etc/systemd/system/a.service 644 0 [Unit]",
                "/etc/systemd/system/a.service.d/1.conf 644 0 [Service]",
            ],
        ),
        (
            r#""storage": {"files": [{"path": "/etc/systemd/system/a.service.d/3.conf",
                "contents": {"source": "data:,a"}}]},
                "systemd": {"units": [{"name": "a.service", "dropins": [{"name": "1.conf",
                "contents": ""}, {"name": "2.conf"}, {"name": "3.conf"}, {"name": "empty.conf"}]}]}"#,
            &[
                "/etc/systemd/system/a.service.d/1.conf -",
                "/etc/systemd/system/a.service.d/2.conf -",
                "/etc/systemd/system/a.service.d/3.conf 644 0 a",
            ],
        ),
        (
            r#""systemd": {"units": [{"name": "a.service", "mask": true, "enabled": true,
                "contents": "[Unit]"}]}"#,
            &["/etc/systemd/system/a.service -> /dev/null"],
        ),
        (
            r#""systemd": {"units": [{"name": "a.service", "enabled": true},
                {"name": "b.service", "enabled": false}]}"#,
            &[
                "/etc/systemd/system/multi-user.target.wants/a.service -> /etc/systemd/system/a.service",
                "/etc/systemd/system/multi-user.target.wants/b.service -",
            ],
        ),
        (
            r#""passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["two", "one"]}]}"#,
            &["/home/core/.ssh/authorized_keys 600 1000 one|two|"],
        ),
        (
            r#""passwd": {"users": [{"name": "core", "passwordHash": "$6$a$b"}]}"#,
            &["/etc/shadow:core password of core"],
        ),
        (r#""passwd": {"users": [{"name": "core", "passwordHash": ""}]}"#, &[]),
    ] {
        assert_eq!(put(config).unwrap(), expected, "{config}");
    }
}

#[test]
fn a_config_that_would_change_treads_own_units_is_refused() {
    let file = |path: &str| {
        format!(
            r#""storage": {{"files": [{{"path": "{path}", "contents": {{"source": "data:,a"}}}}]}}"#
        )
    };
    let unit = |name: &str, more: &str| {
        format!(r#""systemd": {{"units": [{{"name": "{name}", {more}}}]}}"#)
    };
    for config in [
        file("/etc/systemd/system/tread-settle.service"),
        file("/etc/systemd/system/tread-settle.service.d/1.conf"),
        file("/etc/systemd/system/tread-.service.d/1.conf"),
        file("/etc/systemd/system/tread-.service.requires/a.service"),
        file("/usr/lib/systemd/system/tread-watch.service"),
        file("/etc/systemd/system/kubelet.service.requires/tread-settle.service"),
        unit("tread-resume.service", r#""mask": true"#),
        unit("tread-operation.service", r#""contents": "[Unit]""#),
        unit("tread-settle.service", r#""dropins": [{"name": "1.conf", "contents": "[Unit]"}]"#),
        unit("tread-settle.service", r#""enabled": false"#),
        unit("tread-.service", r#""dropins": [{"name": "1.conf", "contents": "[Unit]"}]"#),
    ] {
        let all = put(&config).unwrap_err();
        assert!(all[0].contains("tread's own tread-"), "{config}: {all:?}");
    }
    for config in [
        file("/etc/tread-settle.service"),
        // Of all services, whosever they are.
        file("/etc/systemd/system/service.d/1.conf"),
        file("/home/core/.config/systemd/user/tread-watch.service"),
        unit("my-tread-settle.service", r#""mask": true"#),
    ] {
        assert!(put(&config).is_ok(), "{config}");
    }
}

#[test]
fn a_hash_that_spoils_other_lines_or_a_file_over_all_passwords_is_refused_without_the_hash() {
    for config in [
        r#""passwd": {"users": [{"name": "core", "passwordHash": "$6$a:0"}]}"#,
        r#""passwd": {"users": [{"name": "core", "passwordHash": "$6$a\nroot::0::::::"}]}"#,
        r#""passwd": {"users": [{"name": "core", "passwordHash": "$6$a$b"}]},
           "storage": {"files": [{"path": "/etc/shadow", "contents": {"source": "data:,a"}}]}"#,
    ] {
        let all = put(config).unwrap_err();
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].starts_with("password:core: ") && !all[0].contains("$6$"), "{all:?}");
    }
}

#[test]
fn everything_that_cannot_be_put_is_told_together_with_what_it_is_about() {
    let config = r#""storage": {"files": [
        {"path": "/etc/a", "user": {"name": "nobody-here"}, "contents": {"source": "data:,a"}},
        {"path": "/etc/systemd/system/b.service", "contents": {"source": "data:,other"}}]},
        "systemd": {"units": [{"name": "b.service", "contents": "[Unit]"}]}"#;
    let all = put(config).unwrap_err();
    assert_eq!(
        all,
        [
            "file:/etc/a: /etc/a: no user nobody-here",
            "unit:b.service: file:/etc/systemd/system/b.service puts something else under \
             /etc/systemd/system/b.service; remove one",
        ]
    );
}

#[test]
fn the_units_that_tread_brings_are_named_by_no_plan() {
    for unit in OWN_UNITS {
        assert!(tread_model::touch::touch(unit).is_err(), "{unit}");
    }
}
