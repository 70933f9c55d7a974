//! What Ignition's parser rejects is refused with its field, what it leaves out
//! is left out with a warning, and what OpenShift's operator renders reads as
//! what it was rendered from.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by these")]

use serde_json::{Value, json};
use std::path::Path;
use tread_model::diff::{Comparison, compare};
use tread_model::effect::Effect;
use tread_model::operator::{Policies, Rendered, Topology, forecast, unparsable};
use tread_model::read::{Input, side_in_order, sides};
use tread_model::refuse;

fn machine_config(name: &str, config: Value) -> Vec<u8> {
    let mut config = config;
    if config.get("ignition").is_none() {
        config["ignition"] = json!({"version": "3.5.0"});
    }
    let object = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": name}, "spec": {"config": config},
    });
    object.to_string().into_bytes()
}

/// What becomes of a node that goes from one config to the other.
fn compared(old: Value, new: Value) -> Comparison<'static> {
    let [old, new] = [old, new].map(|config| machine_config("50-a", config));
    let [old, new] = [&old, &new].map(|bytes| Input { name: "a.json", bytes });
    let (old, new) = sides(&[old], &[new]).unwrap();
    let found = compare(&old.config, &new.config).unwrap();
    let owned = Comparison { changes: Vec::new(), ..found };
    assert!(owned.refusals.is_sorted_by(|a, b| a.id < b.id), "{:?}", owned.refusals);
    owned
}

fn file(fields: Value) -> Value {
    let mut file = json!({"path": "/etc/a", "contents": {"source": "data:,a"}});
    file.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({"storage": {"files": [file]}})
}

fn unit(contents: &str) -> Value {
    json!({"systemd": {"units": [{"name": "a.service", "contents": contents}]}})
}

#[test]
fn what_ignition_rejects_is_refused_with_the_field_whatever_was_there_before() {
    let hash = |hash: &str| {
        file(json!({"contents": {"source": "data:,a", "verification": {"hash": hash}}}))
    };
    let right = "sha256-ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
    let source = |source: &str| file(json!({"contents": {"source": source}}));
    let in_files = "spec.config.storage.files[0]";
    let in_units = "spec.config.systemd.units[0]";
    for (config, id, field, why) in [
        (source("data:,a b"), "file:/etc/a", "contents.source", "a space as %20"),
        (source("data:,a\nb"), "file:/etc/a", "contents.source", "a line break as %0A"),
        (source("data:font/x,a"), "file:/etc/a", "contents.source", "data URL"),
        (source("data:text/plain; x=y,a"), "file:/etc/a", "contents.source", "data URL"),
        (hash("sha256-00"), "file:/etc/a", "contents.verification.hash", "needs 64"),
        (hash("md5-00"), "file:/etc/a", "contents.verification.hash", "no such hash"),
        (hash("00"), "file:/etc/a", "contents.verification.hash", "of this form"),
        (
            hash(&right.replace("ca97", "ca98")),
            "file:/etc/a",
            "contents.verification.hash",
            "do not have",
        ),
        (
            file(json!({"contents": {"verification": {"hash": right}}})),
            "file:/etc/a",
            "contents.verification.hash",
            "without `contents.source`",
        ),
        (
            file(
                json!({"contents": {"source": "data:,a", "httpHeaders": [{"name": "a", "value": "b"}]}}),
            ),
            "file:/etc/a",
            "contents.httpHeaders",
            "HTTP",
        ),
        (file(json!({"path": "/etc//a"})), "file:/etc/a", "path", "Write /etc/a."),
        (file(json!({"path": "/etc/./a/"})), "file:/etc/a", "path", "Write /etc/a."),
        (
            file(json!({"overwrite": true, "contents": {}})),
            "file:/etc/a",
            "overwrite",
            "needs `contents.source`",
        ),
    ] {
        for old in [json!({}), config.clone()] {
            let found = compared(old, config.clone());
            let [refusal] = found.refusals.as_slice() else { panic!("{config}: {found:?}") };
            assert_eq!(refusal.id, id, "{config}");
            assert_eq!(refusal.field, format!("{in_files}.{field}"), "{config}");
            assert!(refusal.reason.contains(why), "{config}: {}", refusal.reason);
        }
    }
    let long = format!("[Service]\nExecStart=/bin/a {}\n", "x".repeat(2048));
    for (text, why) in [
        ("[Service]\nExecStart", "neither `NAME=VALUE`"),
        ("[Service] x\n", "behind the section's name"),
        ("[Service", "has no `]`"),
        (&long, "2048 bytes or more"),
    ] {
        let found = compared(json!({}), unit(text));
        let [refusal] = found.refusals.as_slice() else { panic!("{text}: {found:?}") };
        assert_eq!(
            (refusal.id.as_str(), &refusal.field),
            ("unit:a.service", &format!("{in_units}.contents"))
        );
        assert!(refusal.reason.contains(why), "{text}: {}", refusal.reason);
        let dropin = json!({"systemd": {"units": [{"name": "a.service",
            "dropins": [{"name": "a.conf", "contents": text}]}]}});
        let found = compared(json!({}), dropin);
        assert_eq!(found.refusals[0].field, format!("{in_units}.dropins[0].contents"));
    }
    for config in [
        hash(right),
        source("data:,a%20b%0A"),
        source(""),
        file(json!({"overwrite": true, "contents": {"source": ""}})),
        file(json!({"overwrite": false, "contents": {}})),
        unit("[Service]\nExecStart=/bin/a \\\n  b\n"),
    ] {
        assert_eq!(compared(json!({}), config.clone()).refusals, [], "{config}");
    }
}

#[test]
fn an_ssh_key_twice_in_one_config_is_refused_and_in_two_configs_it_is_one() {
    let keys =
        |keys: &[&str]| json!({"passwd": {"users": [{"name": "core", "sshAuthorizedKeys": keys}]}});
    let found = compared(json!({}), keys(&["ssh-rsa a", "ssh-rsa b", "ssh-rsa a"]));
    assert_eq!(found.refusals[0].id, "ssh-keys:core");
    assert_eq!(found.refusals[0].field, "spec.config.passwd.users[0].sshAuthorizedKeys[2]");
    let one = machine_config("50-a", keys(&["ssh-rsa a"]));
    let two = machine_config("60-a", keys(&["ssh-rsa a"]));
    let inputs = [Input { name: "a", bytes: &one }, Input { name: "b", bytes: &two }];
    let (side, _) = sides(&inputs, &inputs).unwrap();
    assert_eq!((side.config.faults.as_slice(), side.config.users[0].ssh_keys.len()), (&[][..], 1));
}

#[test]
fn a_file_where_the_same_config_writes_a_unit_or_has_a_link_is_refused() {
    let with = |path: &str, unit: Value| {
        let mut config = file(json!({"path": path}));
        config["systemd"] = json!({"units": [unit]});
        config
    };
    let text = "[Service]\nExecStart=/bin/a\n";
    let whole = json!({"name": "a.service", "contents": text});
    let dropin = |text: &str| json!({"name": "a.service", "dropins": [{"name": "b.conf", "contents": text}]});
    let unit_path = "/etc/systemd/system/a.service";
    let dropin_path = "/etc/systemd/system/a.service.d/b.conf";
    for (config, refused) in [
        (with(unit_path, whole.clone()), true),
        (with(dropin_path, dropin("[Service]\n")), true),
        (with(unit_path, json!({"name": "a.service", "enabled": true})), false),
        (with(unit_path, json!({"name": "a.service", "contents": ""})), false),
        (with(dropin_path, dropin("")), false),
        (with(dropin_path, whole), false),
        (with("/usr/lib/systemd/system/a.service", dropin("[Service]\n")), false),
    ] {
        let found = compared(json!({}), config.clone());
        assert_eq!(found.refusals.len(), usize::from(refused), "{config}");
        if let [refusal] = found.refusals.as_slice() {
            assert!(refusal.field.ends_with("storage.files[0].path"), "{}", refusal.field);
            assert!(refusal.reason.contains("a.service"), "{}", refusal.reason);
        }
    }
    let links = json!({"storage": {"links": [{"path": "/etc/l", "target": "/etc/t"}]}});
    let mut below = file(json!({"path": "/etc/l/a"}));
    below["storage"]["links"] = links["storage"]["links"].clone();
    let found = compared(links.clone(), below);
    assert!(found.refusals[0].reason.contains("/etc/l is a link"), "{:?}", found.refusals);
}

#[test]
fn the_operator_rejects_whatever_its_parser_rejects() {
    let bad = machine_config("50-a", unit("[Service"));
    let input = [Input { name: "a.json", bytes: &bad }];
    let (side, _) = sides(&input, &input).unwrap();
    let forecast = unparsable(&refuse::unparsable(&side.config)).unwrap();
    assert_eq!(forecast.effect, Effect::Refuse);
    assert_eq!(forecast.because[0].id, "unit:a.service");
    assert!(forecast.because[0].rule.contains("has no `]`"), "{:?}", forecast.because);
    let good = machine_config("50-a", unit("[Service]"));
    let input = [Input { name: "a.json", bytes: &good }];
    let (side, _) = sides(&input, &input).unwrap();
    assert_eq!(unparsable(&refuse::unparsable(&side.config)), None);
}

#[test]
fn links_that_are_removed_cost_nothing_and_stay_and_others_are_refused() {
    let links = |paths: &[&str]| {
        let links: Vec<Value> =
            paths.iter().map(|path| json!({"path": path, "target": "/x"})).collect();
        json!({"storage": {"links": links}})
    };
    let gone = compared(links(&["/a", "/b"]), links(&[]));
    assert_eq!(gone.refusals, []);
    let [settled] = gone.settled.as_slice() else { panic!("{gone:?}") };
    assert_eq!(settled.id, "storage:links");
    assert!(settled.reason.contains("keep the links (/a, /b)"), "{}", settled.reason);
    for (old, new) in [(&["/a"][..], &["/a", "/b"][..]), (&[], &["/a"]), (&["/a", "/b"], &["/a"])] {
        let found = compared(links(old), links(new));
        assert_eq!((found.settled.len(), found.refusals.len()), (0, 1), "{old:?} {new:?}");
        // So does the operator.
        let rendered = [links(old), links(new)]
            .map(|config| Rendered::of([json!({"spec": {"config": config}})]));
        let [old, new] = rendered;
        let said = forecast(&old, &new, &Policies::of(None), Topology::HighlyAvailable);
        assert_eq!(said.effect, Effect::Refuse);
    }
}

#[test]
fn nothing_is_written_through_a_link_that_is_removed_and_that_nodes_keep() {
    let old =
        json!({"storage": {"links": [{"path": "/etc/l", "target": "/etc/crio/crio.conf.d"}]}});
    let file =
        |path: &str| json!({"storage": {"files": [{"path": path, "contents": {"source": ""}}]}});
    let unit = json!({"systemd": {"units": [{"name": "a.service", "contents": "[Unit]\n"}]}});
    let linked = json!({"storage": {"links": [
        {"path": "/etc/systemd/system/a.service", "target": "/etc/b.service"}]}});
    for (old, new, id) in [
        (&old, file("/etc/l/50-x"), "file:/etc/l/50-x"),
        (&old, file("/etc/l"), "file:/etc/l"),
        (&linked, unit, "unit:a.service"),
    ] {
        let found = compared(old.clone(), new);
        let refused: Vec<&str> = found.refusals.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(refused, [id]);
        assert!(found.refusals[0].reason.contains("nodes that run keep it"), "{found:?}");
        assert_eq!(found.changes, [], "nobody is asked");
    }
    assert_eq!(compared(old, file("/etc/l2")).refusals, []);
}

/// Two keys as ssh-keygen writes them.
const KEYS: [&str; 2] = [
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB8uAPZ5Wscn5cEJ0T1mAj4cV3ZkR1mYj0nGq3vXq1ae alice@example.com",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1oYxNfYDkRVc6dpWmAnY2DqVrK8u0nE1nqz7JvF0Qb bob@example.com",
];

#[test]
fn who_is_locked_out_of_a_node_is_told_beside_the_operators_refusal() {
    let core = |keys: &[&str], hash: Option<&str>| json!({"passwd": {"users": [{"name": "core", "sshAuthorizedKeys": keys, "passwordHash": hash}]}});
    let good = format!("$6$salt${}", "x".repeat(86));
    let good = good.as_str();
    let [a, b] = KEYS;
    let key = Some("loses its last SSH key and has no password");
    let password = Some("loses its password and has no SSH key");
    let both = Some("loses its last SSH key and its password");
    let noted = format!("# note\n{a}");
    let without_kind = a.trim_start_matches("ssh-ed25519 ");
    for (old, new, lost, rejected) in [
        (core(&[a], None), core(&[], None), key, true),
        (core(&[a], None), json!({}), key, false),
        (core(&[], Some(good)), core(&[], Some("")), password, false),
        (core(&[], Some(good)), json!({}), password, false),
        (core(&[a], None), core(&[], Some(good)), None, false),
        (core(&[a], None), core(&[], Some("!")), key, false),
        (core(&[a], Some(good)), core(&[], Some("*")), both, false),
        (core(&[a], Some(good)), core(&["garbage"], Some("*")), both, false),
        (core(&[], Some(good)), core(&[], Some(&format!("!{good}"))), password, false),
        (core(&["garbage"], Some(good)), core(&["garbage"], Some("!")), password, false),
        (core(&[], Some("*")), core(&[], Some("!")), None, false),
        (core(&[a], None), core(&[b], None), None, false),
        (core(&[a], None), core(&[&noted], None), None, false),
        (core(&[a], None), core(&["garbage", b], None), None, false),
        (core(&[a], None), core(&[&format!("# {a}")], None), key, false),
        (core(&[a], None), core(&["garbage"], None), key, false),
        (core(&[a], None), core(&["<your key here>"], None), key, false),
        (core(&[a], None), core(&[without_kind], None), key, false),
        (core(&["hello world"], None), core(&[], None), None, true),
        (core(&[], None), json!({}), None, false),
        (json!({}), core(&[a], None), None, false),
    ] {
        let found = compared(old.clone(), new.clone());
        let said = found.warnings.iter().find(|it| it.starts_with(refuse::LOCK_OUT));
        assert_eq!(said.is_some(), lost.is_some(), "{old} {new}: {:?}", found.warnings);
        if let (Some(said), Some(lost)) = (said, lost) {
            assert!(said.contains(lost), "{old} {new}: {said}");
            let lines = new.pointer("/passwd/users/0/sshAuthorizedKeys");
            let has_lines = lines.and_then(Value::as_array).is_some_and(|it| !it.is_empty());
            assert_eq!(said.contains("is a key that sshd reads"), has_lines, "{said}");
        }
        assert_eq!(found.refusals, [], "{old} {new}");
        let [old, new] =
            [old, new].map(|config| Rendered::of([json!({"spec": {"config": config}})]));
        let said = forecast(&old, &new, &Policies::of(None), Topology::HighlyAvailable);
        assert_eq!(said.effect == Effect::Refuse, rejected, "{said:?}");
    }
}

#[test]
fn links_and_directories_are_held_against_every_other_entry() {
    let link = |path: &str| json!({"path": path, "target": "/x"});
    let unit = json!([{"name": "a.service", "contents": "[Unit]\n",
        "dropins": [{"name": "b.conf", "contents": "[Unit]\n"}]}]);
    for (storage, id, words) in [
        (
            json!({"links": [link("/etc/systemd/system/a.service")]}),
            "storage:links",
            "unit a.service",
        ),
        (
            json!({"links": [link("/etc/systemd/system/a.service.d/b.conf")]}),
            "storage:links",
            "unit a.service",
        ),
        (
            json!({"directories": [{"path": "/etc/systemd/system/a.service"}]}),
            "storage:directories",
            "rejects a directory there",
        ),
        (json!({"links": [link("/etc/a"), link("/etc/a/b")]}), "storage:links", "/etc/a is a link"),
        (
            json!({"links": [link("/etc/a")], "directories": [{"path": "/etc/a/b"}]}),
            "storage:directories",
            "the directory /etc/a/b below it",
        ),
        (json!({"links": [{"path": "/etc/a"}]}), "storage:links", "no `target`"),
        (
            json!({"links": [{"path": "/b", "target": "/a", "hard": true}], "directories": [{"path": "/a"}]}),
            "storage:links",
            "hard link",
        ),
    ] {
        let config = json!({"storage": storage, "systemd": {"units": unit}});
        // Also where it stood there before.
        for old in [config.clone(), json!({"storage": {"files": []}, "systemd": {"units": unit}})] {
            let found = compared(old, config.clone());
            let refusal = found.refusals.iter().find(|it| it.id == id);
            let refusal = refusal.unwrap_or_else(|| panic!("{config}: {:?}", found.refusals));
            assert!(refusal.reason.contains(words), "{}", refusal.reason);
            assert_eq!(refusal.field, format!("spec.config.{}", id.replace(':', ".")));
        }
        let input = machine_config("50-a", config.clone());
        let side = side_in_order("new", &[Input { name: "a", bytes: &input }]).unwrap();
        let faults = refuse::unparsable(&side.config);
        assert!(faults.iter().any(|it| it.id == id && it.reason.contains(words)), "{faults:?}");
    }
}

#[test]
fn a_file_stands_above_no_other_entry_of_its_config() {
    let files = |path: &str| json!([{"path": path, "contents": {"source": "data:,x"}}]);
    for (path, more, words) in [
        (
            "/etc/a",
            json!({"links": [{"path": "/etc/a/b/c", "target": "/x"}]}),
            "the link /etc/a/b/c",
        ),
        ("/etc/a", json!({"directories": [{"path": "/etc/a/b"}]}), "the directory /etc/a/b"),
        ("/etc", json!({}), "the unit a.service"),
        ("/etc/systemd/system", json!({}), "the unit a.service"),
        ("/etc/systemd/system/a.service.d", json!({}), "the unit a.service"),
        ("/etc/systemd/system/a.service/x", json!({}), "is a file above it"),
    ] {
        let mut storage = more.clone();
        storage["files"] = files(path);
        let unit = json!([{"name": "a.service", "contents": "[Unit]\n",
            "dropins": [{"name": "b.conf", "contents": "[Unit]\n"}]}]);
        let config = json!({"storage": storage, "systemd": {"units": unit}});
        let found = compared(config.clone(), config);
        let [refusal] = found.refusals.as_slice() else { panic!("{path}: {:?}", found.refusals) };
        assert_eq!(refusal.id, format!("file:{path}"));
        assert_eq!(refusal.field, "spec.config.storage.files[0].path");
        assert!(refusal.reason.contains(words), "{}", refusal.reason);
    }
    // What only looks like it.
    for path in ["/etc/a-b", "/etc/systemd/systemx", "/etc/systemd/system/b.service.d"] {
        let config = json!({
            "storage": {"files": files(path), "links": [{"path": "/etc/a/b", "target": "/x"}]},
            "systemd": {"units": [{"name": "a.service", "contents": "[Unit]\n"}]},
        });
        assert_eq!(compared(config.clone(), config).refusals, [], "{path}");
    }
}

#[test]
fn what_ignition_leaves_out_is_left_out_and_told_of_the_new_config() {
    let old =
        json!({"ignition": {"version": "3.2.0"}, "networkd": {"units": [{"name": "a.network"}]}});
    let mut new = file(json!({"filesystem": "root"}));
    new["ignition"] = json!({"version": "3.2.0"});
    new["kernelArguments"] = json!({"shouldExist": ["a"]});
    let found = compared(old.clone(), new);
    assert_eq!(found.refusals, []);
    let [files, arguments] = found.warnings.as_slice() else { panic!("{:?}", found.warnings) };
    assert!(
        files.starts_with("50-a, spec.config.storage.files[0].filesystem: is left out")
            || arguments.starts_with("50-a, spec.config.storage.files[0].filesystem: is left out"),
        "{:?}",
        found.warnings
    );
    assert_eq!(compared(old, json!({})).warnings, [""; 0]);
}

#[test]
fn the_name_of_a_field_that_is_left_out_is_cut_where_it_is_long() {
    let mut new = json!({"ignition": {"version": "3.2.0"}});
    for letter in ["ä", "b", "c"] {
        new[letter.repeat(90_000)] = json!(1);
    }
    let found = compared(json!({}), new);
    assert_eq!(found.warnings.len(), 3, "{:?}", found.warnings);
    assert!(found.warnings.iter().all(|it| it.chars().count() < 300), "{:?}", found.warnings);
}

fn corpus(name: &str) -> Vec<u8> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/openshift");
    std::fs::read(dir.join(name)).unwrap()
}

#[test]
fn a_rendered_config_of_openshift_is_what_it_was_rendered_from() {
    for pool in ["worker", "master"] {
        let rendered = corpus(&format!("rendered-{pool}.json"));
        let single = corpus(&format!("{pool}.json"));
        let old = [Input { name: "rendered.json", bytes: &rendered }];
        let new = [Input { name: "single.json", bytes: &single }];
        let (old, new) = (side_in_order("old", &old).unwrap(), side_in_order("new", &new).unwrap());
        let found = compare(&old.config, &new.config).unwrap();
        let ids: Vec<&str> = found.changes.iter().map(|change| change.id.as_str()).collect();
        assert_eq!((ids.as_slice(), found.refusals.as_slice()), (&[][..], &[][..]), "{pool}");
        assert_eq!(found.warnings.len(), 1, "{:?}", found.warnings);

        let list: Value = serde_json::from_slice(&single).unwrap();
        let single = Rendered::of(list["items"].as_array().unwrap().clone());
        let rendered = Rendered::of([serde_json::from_slice(&rendered).unwrap()]);
        let said = forecast(&rendered, &single, &Policies::of(None), Topology::HighlyAvailable);
        assert_eq!((said.effect, said.because.as_slice()), (Effect::None, &[][..]), "{pool}");
    }
}

#[test]
fn configs_of_one_pool_with_several_roles_are_merged_in_the_order_given() {
    let of = |name: &str, role: &str, text: &str| {
        let mut config: Value = serde_json::from_slice(&machine_config(
            name,
            file(json!({"contents": {"source": format!("data:,{text}")}})),
        ))
        .unwrap();
        config["metadata"]["labels"] = json!({"machineconfiguration.openshift.io/role": role});
        config.to_string().into_bytes()
    };
    let all = [of("z", "worker", "z"), of("b", "gpu", "b"), of("a", "gpu-a100", "a")];
    let inputs: Vec<Input<'_>> = all.iter().map(|bytes| Input { name: "x", bytes }).collect();
    assert!(sides(&inputs, &inputs).is_err(), "who gives files names one pool");
    let side = side_in_order("new", &inputs).unwrap();
    assert_eq!(side.config.files[0].contents.url.as_deref(), Some("data:,a"));
}

#[test]
fn what_several_configs_say_of_a_file_is_merged_field_by_field_and_then_held_to_the_parser() {
    let merged = |below: Value, above: Value| {
        let config = |name: &str, file: Value| {
            let mut file = file;
            file["path"] = json!("/etc/a");
            json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
                "metadata": {"name": name, "labels": {
                    "machineconfiguration.openshift.io/role": "worker"}},
                "spec": {"config": {"ignition": {"version": "3.4.0"},
                    "storage": {"files": [file]}}}})
            .to_string()
        };
        let (below, above) = (config("50-a", below), config("60-b", above));
        let both = [&below, &above].map(|text| Input { name: "a", bytes: text.as_bytes() });
        let (_, new) = sides(&both, &both).unwrap();
        let found = refuse::unparsable(&new.config);
        found.into_iter().map(|it| format!("{}: {}", it.field, it.reason)).collect::<Vec<_>>()
    };
    let gzip = "data:;base64,H4sIAAAAAAAAA6sAAIPc3IwBAAAA";
    let hash = "sha256-2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    let held = |source: &str| json!({"contents": {"source": source}});
    let with = |source: &str, field: &str, value: Value| {
        let mut file = held(source);
        file["contents"][field] = value;
        file
    };
    for (below, above, said) in [
        (with(gzip, "compression", json!("gzip")), held("data:,plain"), "contents.compression"),
        // Releases of the operator differ in what becomes of these.
        (with(gzip, "compression", json!("gzip")), held(gzip), "contents.compression"),
        (with(gzip, "compression", json!("gzip")), json!({"mode": 384}), "contents.compression"),
        (held("data:,x"), json!({"contents": {"compression": "gzip"}}), "contents.compression"),
        (
            with("data:,x", "verification", json!({"hash": hash})),
            held("data:,y"),
            "contents.verification.hash",
        ),
        (json!({"user": {"name": "core"}}), json!({"user": {"id": 0}}), "user"),
        (json!({"user": {"id": 0, "name": ""}}), json!({"user": {"name": "core"}}), "user"),
        (json!({"group": {"id": 5}}), json!({"group": {"name": "core"}}), "group"),
    ] {
        let found = merged(below.clone(), above.clone());
        assert!(found.iter().any(|it| it.contains(said)), "{below} {above}: {found:?}");
    }
    for (below, above) in [
        (with(gzip, "compression", json!("gzip")), with("data:,y", "compression", json!(""))),
        (held("data:,x"), held("data:,y")),
        (json!({"user": {"name": "core"}}), json!({"user": {"name": "root"}})),
        // An empty name takes back what stands below it, and a number stays.
        (json!({"user": {"name": "core"}}), json!({"user": {"id": 5, "name": ""}})),
        (json!({"user": {"id": 5}}), json!({"user": {"name": ""}})),
        (with("data:,x", "verification", json!({"hash": hash})), json!({"mode": 384})),
    ] {
        assert_eq!(merged(below.clone(), above.clone()), [""; 0], "{below} {above}");
    }
}

/// A side of several MachineConfigs, each with its name and its Ignition config.
fn side_of(configs: &[(&str, Value)]) -> tread_model::read::Side<'static> {
    let texts: Vec<Vec<u8>> =
        configs.iter().map(|(name, config)| machine_config(name, config.clone())).collect();
    let inputs: Vec<Input<'_>> =
        texts.iter().map(|bytes| Input { name: "a.json", bytes }).collect();
    tread_model::read::diagnosed(&inputs, &inputs).unwrap().0
}

#[test]
fn what_a_later_config_has_at_a_path_stands_in_place_of_another_kind() {
    let file = || json!({"files": [{"path": "/etc/a", "contents": {"source": "data:,a"}}]});
    let link = || json!({"links": [{"path": "/etc/a", "target": "/etc/t"}]});
    let directory = || json!({"directories": [{"path": "/etc/a", "mode": 448}]});
    let names = ["10-a", "20-b", "30-c"];
    for (storages, has_file, fixed) in [
        (vec![file(), link()], false, &["storage:links"][..]),
        (vec![file(), directory()], false, &["storage:directories"]),
        (vec![link(), file()], true, &[]),
        (vec![directory(), file()], true, &[]),
        (vec![directory(), link()], false, &["storage:links"]),
        (vec![link(), directory()], false, &["storage:directories"]),
        (vec![file(), link(), file()], true, &[]),
        (vec![link(), file(), link()], false, &["storage:links"]),
    ] {
        let configs: Vec<(&str, Value)> = names
            .into_iter()
            .zip(&storages)
            .map(|(name, storage)| (name, json!({"storage": storage})))
            .collect();
        let side = side_of(&configs);
        let ids: Vec<&str> = side.config.fixed.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(
            (side.config.files.len() == 1, ids.as_slice()),
            (has_file, fixed),
            "{storages:?}"
        );
        assert_eq!(refuse::unparsable(&side.config), [], "{storages:?}");
        // The operator counts no difference between that and the last one alone.
        let of = |storages: &[Value]| {
            Rendered::of(storages.iter().map(|it| json!({"spec": {"config": {"storage": it}}})))
        };
        let last = &storages[storages.len() - 1..];
        let said =
            forecast(&of(last), &of(&storages), &Policies::of(None), Topology::HighlyAvailable);
        assert_eq!(said.because, [], "{storages:?}");
    }
    // What an earlier config says of the same kind does not come back.
    let text = |text: &str| json!({"files": [{"path": "/etc/a", "mode": 384, "contents": {"source": text}}]});
    let last = json!({"files": [{"path": "/etc/a", "contents": {"source": "data:,b"}}]});
    let all = [("10-a", text("data:,a")), ("20-b", link()), ("30-c", last)];
    let all = all.map(|(name, storage)| (name, json!({"storage": storage})));
    assert_eq!(side_of(&all).config.files[0].mode, None);
}

#[test]
fn a_file_that_says_nothing_of_its_contents_is_refused_as_the_operator_does() {
    let file = |fields: Value| {
        let mut file = fields;
        file["path"] = json!("/etc/a");
        json!({"storage": {"files": [file]}})
    };
    for (fields, refused) in [
        (json!({}), true),
        (json!({"mode": 384}), true),
        (json!({"contents": {"source": ""}}), false),
        (json!({"contents": {"source": "data:,"}}), false),
        (json!({"overwrite": false}), false),
    ] {
        let found = compared(json!({}), file(fields.clone()));
        assert_eq!(found.refusals.len(), usize::from(refused), "{fields}");
        if refused {
            assert!(found.refusals[0].field.ends_with("storage.files[0].contents.source"));
            assert!(found.refusals[0].reason.contains("overwrite: true"), "{fields}");
        }
        // So says the operator of what it renders.
        let rendered = |config: Value| Rendered::of([json!({"spec": {"config": config}})]);
        let (old, new) = (rendered(json!({})), rendered(file(fields.clone())));
        let said = forecast(&old, &new, &Policies::of(None), Topology::HighlyAvailable);
        assert_eq!(said.effect == Effect::Refuse, refused, "{fields}");
        // Nothing is refused where it goes.
        assert_eq!(compared(file(fields.clone()), json!({})).refusals, [], "{fields}");
    }
    // What a config below says of the contents counts.
    let both = [
        ("10-a", file(json!({"contents": {"source": "data:,a"}}))),
        ("20-b", file(json!({"mode": 384}))),
    ];
    let side = side_of(&both);
    assert_eq!(compare(&side.config, &side.config).unwrap().refusals, []);
}

#[test]
fn what_releases_differ_in_is_refused_and_not_told_as_the_parsers() {
    let gzip = "data:;base64,H4sIAAAAAAAAA6sAAIPc3IwBAAAA";
    let file =
        |contents: Value| json!({"storage": {"files": [{"path": "/etc/a", "contents": contents}]}});
    let below = file(json!({"source": gzip, "compression": "gzip"}));
    let side = side_of(&[("10-a", below), ("20-b", file(json!({"source": "data:,plain"})))]);
    assert_eq!(compare(&side.config, &side.config).unwrap().refusals.len(), 1);
    let faults = refuse::unparsable(&side.config);
    assert_eq!(faults.len(), 1);
    assert_eq!(unparsable(&faults), None, "{faults:?}");
}

/// A MachineConfig with an image, that the operator made or an admin.
fn with_image(name: &str, image: &str, is_generated: bool) -> Value {
    let version = if is_generated { "4.18" } else { "" };
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {
            "name": name,
            "labels": {"machineconfiguration.openshift.io/role": "worker"},
            "annotations": {"machineconfiguration.openshift.io/generated-by-controller-version": version},
        },
        "spec": {"osImageURL": image, "config": {"ignition": {"version": "3.4.0"}}},
    })
}

#[test]
fn the_image_of_an_admin_counts_before_that_of_the_operators_own_configs() {
    for (all, image) in [
        (vec![with_image("00-worker", "base", true)], "base"),
        (
            vec![with_image("00-a", "admins", false), with_image("00-worker", "base", true)],
            "admins",
        ),
        (
            vec![with_image("00-worker", "base", true), with_image("99-a", "admins", false)],
            "admins",
        ),
        (vec![with_image("50-a", "first", false), with_image("60-b", "second", false)], "second"),
    ] {
        let texts: Vec<String> = all.iter().map(Value::to_string).collect();
        let inputs: Vec<Input<'_>> =
            texts.iter().map(|text| Input { name: "a.json", bytes: text.as_bytes() }).collect();
        let (side, _) = sides(&inputs, &inputs).unwrap();
        assert_eq!(side.config.os_image, image, "{all:?}");
        let (one, other) =
            (Rendered::of(all.clone()), Rendered::of([with_image("a", image, false)]));
        let said = forecast(&one, &other, &Policies::of(None), Topology::HighlyAvailable);
        assert_eq!(said.because, [], "{all:?}");
    }
}

#[test]
fn a_config_with_a_role_is_one_of_several_whatever_owns_it() {
    let mut owned = with_image("50-a", "", false);
    owned["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
        "name": "worker", "uid": "1"}]);
    let texts = [owned.to_string(), with_image("60-b", "", false).to_string()];
    let inputs =
        [&texts[0], &texts[1]].map(|text| Input { name: "a.json", bytes: text.as_bytes() });
    let (side, _) = sides(&inputs, &inputs).unwrap();
    assert_eq!(side.config.name, "50-a+60-b");
}
