//! Configs that often say something of the same files.

use crate::generate::{Json, distinct, machine_config, object, raw, text, unit, user};
use proptest::collection::vec;
use proptest::prelude::*;

/// Some MachineConfigs that often say something of the same files: with and without
/// contents, gzip and hashes, by the operator or an admin, and beside directories and
/// links at the same paths.
pub(super) fn layered(names: &'static [&'static str]) -> BoxedStrategy<Json> {
    let path = || text(&["/etc/a", "/etc/b", "/etc/c"]);
    let source = text(&[
        "",
        "data:,a",
        "data:,b",
        "data:;base64,H4sIAAAAAAAC/0sEAEO+t+gBAAAA",
        "data:;base64,aGk=",
    ]);
    let hash = raw(&["{}", "null", r#"{"hash":null}"#, SHA_OF_A]);
    let contents = object(
        vec![
            ("source", prop_oneof![8 => source, 1 => raw(&["null"])].boxed()),
            ("compression", prop_oneof![text(&["", "gzip"]), raw(&["null"])].boxed()),
            ("verification", prop_oneof![4 => raw(&["{}"]), 1 => hash].boxed()),
        ],
        0,
    );
    let owner = || raw(&["{}", r#"{"name":"core"}"#, r#"{"id":0}"#, r#"{"id":7}"#, "null"]);
    let file = object(
        vec![
            ("path", path()),
            ("contents", contents),
            ("mode", raw(&["420", "384", "null"])),
            ("overwrite", prop_oneof![6 => raw(&["null"]), 1 => raw(&["true", "false"])].boxed()),
            ("user", owner()),
            ("group", owner()),
        ],
        1,
    );
    let directory =
        object(vec![("path", path()), ("mode", raw(&["493", "null"])), ("user", owner())], 1);
    let link = object(
        vec![
            ("path", path()),
            ("target", text(&["/etc/x", "b"])),
            ("hard", raw(&["true", "false", "null"])),
        ],
        2,
    );
    let storage = (vec(file, 0..4), vec(directory, 0..3), vec(link, 0..3), 0..6_u8).prop_map(
        |(files, directories, links, kinds)| {
            let mut all = distinct([files, directories, links].concat(), "path");
            let (mut files, mut directories, mut links) = (Vec::new(), Vec::new(), Vec::new());
            for entry in all.drain(..) {
                let Json::Object(fields) = &entry else { panic!("{entry:?} is no object") };
                let has = |name: &str| fields.iter().any(|(field, _)| *field == name);
                let is_file = ["contents", "overwrite", "group"].into_iter().any(has);
                match (has("target"), is_file || !has("user")) {
                    (true, _) => links.push(entry),
                    (false, true) => files.push(entry),
                    (false, false) => directories.push(entry),
                }
            }
            let mut storage = vec![("files", Json::List(files))];
            // Most have files alone.
            if kinds == 0 {
                storage.push(("directories", Json::List(directories)));
                storage.push(("links", Json::List(links)));
            }
            Json::Object(storage)
        },
    );
    let units = vec(unit(), 0..3).prop_map(|list| Json::List(distinct(list, "name")));
    let users = vec(user(), 0..2).prop_map(|list| Json::List(distinct(list, "name")));
    let config = object(
        vec![
            ("ignition", raw(&[r#"{"version":"3.4.0"}"#])),
            ("storage", storage.boxed()),
            ("systemd", object(vec![("units", units.boxed())], 0)),
            ("passwd", object(vec![("users", users.boxed())], 0)),
        ],
        2,
    );
    (machine_config(names, config), raw(ANNOTATIONS))
        .prop_map(|(mut json, annotations)| {
            if let Json::Object(fields) = &mut json {
                for (name, value) in fields {
                    if let (&mut "metadata", Json::Object(metadata)) = (name, value) {
                        metadata.retain(|(name, _)| *name != "annotations");
                        metadata.push(("annotations", annotations.clone()));
                    }
                }
            }
            json
        })
        .boxed()
}

const SHA_OF_A: &str =
    r#"{"hash":"sha256-ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"}"#;

const ANNOTATIONS: &[&str] = &[
    "{}",
    "null",
    r#"{"machineconfiguration.openshift.io/generated-by-controller-version":"1"}"#,
    r#"{"machineconfiguration.openshift.io/generated-by-controller-version":""}"#,
    r#"{"machineconfiguration.openshift.io/generated-by-controller-version":null}"#,
];
