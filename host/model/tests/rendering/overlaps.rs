//! MachineConfigs that say of the same things what only provisioning can set.

use crate::generate::{Json, distinct, machine_config, object, raw, text};
use proptest::collection::vec;
use proptest::prelude::*;

fn entries(
    key: &'static str,
    keys: &'static [&'static str],
    fields: Vec<(&'static str, BoxedStrategy<Json>)>,
) -> BoxedStrategy<Json> {
    let fields = [vec![(key, text(keys))], fields].concat();
    vec(object(fields, 1), 0..3).prop_map(move |list| Json::List(distinct(list, key))).boxed()
}

/// Some MachineConfigs with disks, directories, groups and the like, which overlap.
pub(crate) fn overlapping(names: &'static [&'static str]) -> BoxedStrategy<Json> {
    let owner = || raw(&["{}", r#"{"name":"core"}"#, r#"{"id":0}"#, "null"]);
    let mode = || raw(&["493", "448", "null"]);
    let options = || raw(&["[]", "null", r#"["-a"]"#, r#"["-b","-a"]"#]);
    let flag = || raw(&["true", "false", "null"]);
    let number = || raw(&["1", "2", "null"]);
    let resources = || {
        raw(&[
            "[]",
            r#"[{"source":"https://a.example/x"}]"#,
            r#"[{"source":"https://a.example/x","httpHeaders":[{"name":"A","value":"1"}]}]"#,
            r#"[{"source":"https://a.example/x","httpHeaders":[{"name":"A"}]},{"source":"https://b.example/x"}]"#,
        ])
    };
    let partitions = raw(&[
        "[]",
        r#"[{"number":1,"sizeMiB":1}]"#,
        r#"[{"number":1,"label":"a"},{"label":"b"}]"#,
        r#"[{"number":0,"label":"b","sizeMiB":3},{"number":2}]"#,
    ]);
    let clevis = raw(&[
        "{}",
        r#"{"tpm2":true}"#,
        r#"{"tang":[{"url":"https://t.example","thumbprint":"a"}],"threshold":1}"#,
        r#"{"tang":[{"url":"https://u.example","thumbprint":"b"},{"url":"https://t.example","thumbprint":"c"}]}"#,
    ]);
    let storage = object(
        vec![
            (
                "directories",
                entries("path", &["/a", "/b"], vec![("mode", mode()), ("user", owner())]),
            ),
            (
                "links",
                entries(
                    "path",
                    &["/c", "/d"],
                    vec![("target", text(&["/x", "/y"])), ("hard", flag()), ("group", owner())],
                ),
            ),
            (
                "disks",
                entries(
                    "device",
                    &["/dev/a", "/dev/b"],
                    vec![("wipeTable", flag()), ("partitions", partitions)],
                ),
            ),
            (
                "filesystems",
                entries(
                    "device",
                    &["/dev/a1", "/dev/a2"],
                    vec![
                        ("format", text(&["xfs", "ext4"])),
                        ("options", options()),
                        ("mountOptions", options()),
                        ("path", text(&["/var", ""])),
                    ],
                ),
            ),
            (
                "raid",
                entries(
                    "name",
                    &["md0", "md1"],
                    vec![
                        ("devices", raw(&["[]", r#"["/dev/a"]"#, r#"["/dev/b","/dev/a"]"#])),
                        ("options", options()),
                        ("spares", number()),
                    ],
                ),
            ),
            (
                "luks",
                entries(
                    "name",
                    &["root", "var"],
                    vec![
                        ("clevis", clevis),
                        ("options", options()),
                        ("openOptions", options()),
                        ("discard", flag()),
                    ],
                ),
            ),
        ],
        0,
    );
    let names_of = || raw(&["[]", "null", r#"["wheel"]"#, r#"["wheel","a"]"#, r#"["b","a"]"#]);
    let users = entries(
        "name",
        &["core", "a"],
        vec![
            ("uid", number()),
            ("groups", names_of()),
            ("shell", text(&["/bin/sh", ""])),
            ("noCreateHome", flag()),
            ("shouldExist", flag()),
        ],
    );
    let groups = entries("name", &["a", "b"], vec![("gid", number()), ("system", flag())]);
    let ignition = object(
        vec![
            ("version", text(&["3.2.0", "3.4.0", "3.5.0"])),
            ("config", object(vec![("merge", resources())], 0)),
            (
                "proxy",
                raw(&[
                    "{}",
                    r#"{"noProxy":["a"]}"#,
                    r#"{"noProxy":["b","a"],"httpProxy":"http://a"}"#,
                ]),
            ),
            (
                "security",
                object(vec![("tls", object(vec![("certificateAuthorities", resources())], 0))], 0),
            ),
            (
                "timeouts",
                raw(&["{}", r#"{"httpTotal":1}"#, r#"{"httpTotal":2,"httpResponseHeaders":1}"#]),
            ),
        ],
        1,
    );
    let arguments =
        object(vec![("shouldExist", options()), ("shouldNotExist", raw(&[r#"["-a"]"#]))], 0);
    let config = object(
        vec![
            ("ignition", ignition),
            ("storage", storage),
            ("passwd", object(vec![("users", users), ("groups", groups)], 0)),
            ("kernelArguments", arguments),
        ],
        2,
    );
    machine_config(names, config)
}
