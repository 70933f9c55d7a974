//! What two sides may be made of, and what is asked of their names.

// Helpers of tests may fail as tests do.
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)]

use tread_model::diff::compare;
use tread_model::read::{Input, Makeup, diagnosed, doubts, fast_only, sides};

const MC: &str =
    "\"apiVersion\":\"machineconfiguration.openshift.io/v1\",\"kind\":\"MachineConfig\"";

/// A MachineConfig as JSON.
fn machine_config(name: &str, metadata: &str, config: &str) -> String {
    let name = serde_json::to_string(name).unwrap();
    format!(
        "{{{MC},\"metadata\":{{\"name\":{name}{metadata}}},\"spec\":{{\"config\":\
         {{\"ignition\":{{\"version\":\"3.4.0\"}}{config}}}}}}}"
    )
}

fn role(role: &str) -> String {
    let role = serde_json::to_string(role).unwrap();
    format!(",\"labels\":{{\"machineconfiguration.openshift.io/role\":{role}}}")
}

/// The problems of one side, by both readers.
fn problems(documents: &[String]) -> Vec<String> {
    let text = documents.join("\n");
    let side = [Input { name: "a.json", bytes: text.as_bytes() }];
    let other = machine_config("other", "", "");
    let other = [Input { name: "b.json", bytes: other.as_bytes() }];
    let Err(found) = sides(&side, &other) else { return Vec::new() };
    assert_eq!(diagnosed(&side, &other).unwrap_err(), found);
    assert_eq!(fast_only(&side, &other), None);
    found.0.iter().map(|problem| format!("{}: {}", problem.path, problem.message)).collect()
}

const ODD: [&str; 18] = [
    "a\nb",
    "a\u{1b}[31mb",
    "a\u{202e}b",
    "a\u{2066}b",
    "a\u{7f}b",
    "a\u{200b}b",
    "a\u{61c}b",
    // What nobody sees.
    "a\u{3164}b",
    "a\u{115f}b",
    "a\u{1160}b",
    "a\u{ffa0}b",
    "a\u{2800}b",
    "a\u{34f}b",
    "a\u{fe00}b",
    "a\u{fe0f}b",
    "a\u{e0100}b",
    "a\u{e01ef}b",
    "a\u{17b4}b",
];

#[test]
fn names_that_could_deceive_whoever_reads_them_are_refused_with_their_path() {
    for odd in ODD {
        let text = serde_json::to_string(odd).unwrap();
        let user = format!(",\"passwd\":{{\"users\":[{{\"name\":{text}}}]}}");
        let unit = format!(",\"systemd\":{{\"units\":[{{\"name\":{text}}}]}}");
        let dropin = serde_json::to_string(&format!("{odd}.conf")).unwrap();
        let dropin = format!(
            ",\"systemd\":{{\"units\":[{{\"name\":\"a.service\",\"dropins\":[{{\"name\":{dropin}}}]}}]}}"
        );
        let file =
            |field: &str| format!(",\"storage\":{{\"files\":[{{\"path\":\"/a\",{field}}}]}}");
        let owner = file(&format!("\"user\":{{\"name\":{text}}}"));
        let group = file(&format!("\"group\":{{\"name\":{text}}}"));
        for (document, path) in [
            (machine_config(odd, "", ""), "metadata.name"),
            (machine_config(&format!("rendered-{odd}-1"), "", ""), "metadata.name"),
            (
                machine_config("a", &role(odd), ""),
                "metadata.labels.machineconfiguration[\"openshift\"]",
            ),
            (machine_config("a", "", &user), "spec.config.passwd.users[0].name"),
            (machine_config("a", "", &unit), "spec.config.systemd.units[0].name"),
            (machine_config("a", "", &dropin), "spec.config.systemd.units[0].dropins[0].name"),
            (machine_config("a", "", &owner), "spec.config.storage.files[0].user.name"),
            (machine_config("a", "", &group), "spec.config.storage.files[0].group.name"),
        ] {
            let found = problems(&[document]);
            let [problem] = found.as_slice() else { panic!("{odd:?} {path}: {found:?}") };
            let path = if path.contains("labels") {
                "metadata.labels[\"machineconfiguration.openshift.io/role\"]"
            } else {
                path
            };
            assert!(problem.starts_with(&format!("{path}: ")), "{odd:?} {problem}");
            assert!(!problem.contains(odd), "it repeats the name: {problem:?}");
        }
    }
    for (name, word) in [("a/b", "/ or :"), ("a:b", "/ or :")] {
        let user = format!(",\"passwd\":{{\"users\":[{{\"name\":\"{name}\"}}]}}");
        let found = problems(&[machine_config("a", "", &user)]);
        assert!(found.len() == 1 && found[0].contains(word), "{found:?}");
    }
    let mirror = "{\"apiVersion\":\"config.openshift.io/v1\",\"kind\":\"ImageDigestMirrorSet\",\
                  \"metadata\":{\"name\":\"a\\u001bb\"},\"spec\":{}}";
    let found = problems(&[machine_config("a", "", ""), mirror.to_owned()]);
    assert!(found.len() == 1 && found[0].starts_with("metadata.name: "), "{found:?}");
}

#[test]
fn ordinary_names_of_any_language_are_taken() {
    for name in ["core", "jürgen", "名前", "a.b-c_d", "_x", "a$"] {
        let user = format!(",\"passwd\":{{\"users\":[{{\"name\":\"{name}\"}}]}}");
        assert_eq!(problems(&[machine_config("a", "", &user)]), [""; 0], "{name}");
    }
}

/// A hash, a key or contents without quotes are numbers or truths to YAML.
#[test]
fn a_problem_never_repeats_what_may_be_a_secret() {
    let user = |field: &str| format!(",\"passwd\":{{\"users\":[{{\"name\":\"core\",{field}}}]}}");
    let file = |field: &str| {
        format!(",\"storage\":{{\"files\":[{{\"path\":\"/a\",\"contents\":{field}}}]}}")
    };
    let unit =
        |field: &str| format!(",\"systemd\":{{\"units\":[{{\"name\":\"a.service\",{field}}}]}}");
    for secret in ["123456", "-123456", "1234.56", "true"] {
        for config in [
            user(&format!("\"passwordHash\":{secret}")),
            user(&format!("\"sshAuthorizedKeys\":[{secret}]")),
            user(&format!("\"sshAuthorizedKeys\":{secret}")),
            file(secret),
            file(&format!("{{\"source\":{secret}}}")),
            file(&format!("{{\"source\":\"data:,\",\"httpHeaders\":[{secret}]}}")),
            unit(&format!("\"contents\":{secret}")),
            unit(&format!("\"dropins\":[{{\"name\":\"a.conf\",\"contents\":{secret}}}]")),
        ] {
            let found = problems(&[machine_config("a", "", &config)]);
            let [problem] = found.as_slice() else { panic!("{config}: {found:?}") };
            let what = if secret == "true" { "found true or false" } else { "found a number" };
            assert!(problem.contains(what), "{problem}");
            assert!(secret == "true" || !problem.contains(secret), "{problem}");
        }
    }
    // However large, and in whatever way YAML writes numbers.
    for secret in ["0123456", "0x123456", "123456e400", "99912345600000000000000000", "-.inf"] {
        let text = machine_config("a", "", &user(&format!("\"passwordHash\":{secret}")));
        let text = format!("---\n{text}");
        let input = [Input { name: "a.yaml", bytes: text.as_bytes() }];
        let problem = sides(&input, &input).map(|_| ()).unwrap_err().to_string();
        for part in ["123456", "42798", "1193046", "inf"] {
            assert!(!problem.contains(part), "{problem}");
        }
    }
    let mode = machine_config("a", "", ",\"storage\":{\"files\":[{\"path\":\"/a\",\"mode\":1.5}]}");
    let [problem] = &*problems(&[mode]) else { panic!("one problem is there") };
    assert!(problem.ends_with("expected a whole number, found the number 1.5"), "{problem}");
}

/// Whoever breaks a line of a secret makes fields of it.
#[test]
fn a_field_that_stands_there_twice_is_named_only_where_configs_have_such_a_field() {
    let text = |field: &str, name: &str, twice: &str| {
        format!(
            "{{{MC},\"metadata\":{{\"name\":\"a\"}},\"spec\":{{\"config\":{{\"ignition\":\
             {{\"version\":\"3.4.0\"}},\"{field}\":{{\"{name}\":{twice},\"{name}\":{twice}}}}}}}}}"
        )
    };
    for (field, name, named) in [
        ("passwordHash", "hunter2", false),
        ("source", "123456", false),
        ("x", "passwordHash", true),
        ("x", "sshAuthorizedKeys", true),
        ("x", "wipePartitionEntry", true),
        ("x", "kernelType", true),
        ("x", "apiVersion", true),
    ] {
        for (file, text) in [
            ("a.json", text(field, name, "1")),
            ("a.yaml", text(field, name, "1").replacen('{', "---\n{", 1)),
            ("a.yaml", text(field, name, "&a [b]").replacen('{', "---\n{", 1)),
        ] {
            let input = [Input { name: file, bytes: text.as_bytes() }];
            let problem = sides(&input, &input).unwrap_err().to_string();
            let what = match named {
                true => format!("the field {name:?} stands there twice"),
                false => "a field stands there twice".to_owned(),
            };
            assert!(problem.contains(&what) && problem.contains(", column "), "{problem}");
            assert_eq!(problem.contains(name), named, "{problem}");
        }
    }
}

/// The ids of what differs between two configs with one file each.
fn differences(old: &str, new: &str) -> Vec<String> {
    let text = |fields: &str| {
        let contents = match fields.contains("\"contents\"") {
            true => "",
            false => ",\"contents\":{\"source\":\"\"}",
        };
        let file = format!("{{\"path\":\"/a\"{contents}{fields}}}");
        machine_config("a", "", &format!(",\"storage\":{{\"files\":[{file}]}}"))
    };
    let (old, new) = (text(old), text(new));
    let input = |text| [Input { name: "a.json", bytes: str::as_bytes(text) }];
    let (old, new) = (input(&old), input(&new));
    let by = |(old, new): (tread_model::read::Side<'_>, tread_model::read::Side<'_>)| {
        let compared = compare(&old.config, &new.config).unwrap();
        assert_eq!(compared.changes.is_empty(), compared.from == compared.to);
        compared.changes.iter().map(|change| change.id.clone()).collect::<Vec<_>>()
    };
    let found = by(sides(&old, &new).unwrap_or_else(|problems| panic!("{problems}")));
    assert_eq!(by(diagnosed(&old, &new).unwrap()), found);
    found
}

#[test]
fn what_ignition_tells_apart_is_a_difference_and_what_a_node_does_not_is_none() {
    for (old, new, differ) in [
        ("", ",\"mode\":420", false),
        ("", ",\"mode\":0", true),
        (",\"mode\":0", ",\"mode\":420", true),
        ("", ",\"user\":{\"id\":0}", false),
        ("", ",\"user\":{}", false),
        ("", ",\"user\":{\"name\":\"root\"},\"group\":{\"id\":0}", false),
        ("", ",\"user\":{\"id\":5}", true),
        (",\"user\":{\"id\":5}", ",\"user\":{\"id\":50}", true),
        (",\"user\":{\"id\":5}", ",\"group\":{\"id\":5}", true),
        // The operator writes both, whatever was there before.
        ("", ",\"overwrite\":true", false),
        (",\"overwrite\":false", ",\"overwrite\":true", false),
        // Without a source the operator writes an empty file.
        ("", ",\"contents\":{}", false),
        ("", ",\"contents\":{\"source\":\"\"}", false),
        ("", ",\"contents\":{\"source\":\"data:,\"}", false),
        (",\"contents\":{\"source\":\"data:,\"}", ",\"contents\":{\"source\":\"data:,%20\"}", true),
    ] {
        let expected: &[&str] = if differ { &["file:/a"] } else { &[] };
        assert_eq!(differences(old, new), expected, "{old} {new}");
    }
}

/// A user of the number 5 and one of the name "5" are two, and no policy could
/// tell them apart: no system has users of such names.
#[test]
fn a_number_for_a_name_of_an_owner_is_refused_with_the_field_that_takes_it() {
    for (field, name) in [("user", "5"), ("group", "5"), ("user", "0"), ("group", "005")] {
        let file = format!(
            ",\"storage\":{{\"files\":[{{\"path\":\"/a\",\"{field}\":{{\"name\":\"{name}\"}}}}]}}"
        );
        let found = problems(&[machine_config("a", "", &file)]);
        let [problem] = found.as_slice() else { panic!("{found:?}") };
        let path = format!("spec.config.storage.files[0].{field}.name: ");
        assert!(problem.starts_with(&path) && problem.contains("`id`"), "{problem}");
    }
    let fine = ",\"storage\":{\"files\":[{\"path\":\"/a\",\"user\":{\"name\":\"a5\"}}]}";
    assert_eq!(problems(&[machine_config("a", "", fine)]), [""; 0]);
}

fn owned(pool: &str) -> String {
    format!(
        ",\"ownerReferences\":[{{\"apiVersion\":\"machineconfiguration.openshift.io/v1\",\
         \"kind\":\"MachineConfigPool\",\"name\":\"{pool}\",\"uid\":\"1\"}}]"
    )
}

#[test]
fn a_rendered_config_stands_alone_on_its_side() {
    let hash = "0123456789abcdef0123456789abcdef";
    let worker = machine_config(&format!("rendered-worker-{hash}"), "", "");
    let other = machine_config("rendered-worker-1", "", "");
    let by_owner = machine_config("something", &owned("infra"), "");
    let single = machine_config("99-worker-ssh", &role("worker"), "");
    let ignition = "{\"ignition\":{\"version\":\"3.4.0\"}}".to_owned();
    for (documents, words) in [
        (vec![worker.clone(), other.clone()], &["2 rendered configs", "give one", "oc get"][..]),
        (vec![worker.clone(), by_owner.clone()], &["2 rendered configs", "something"]),
        (vec![worker.clone(), single.clone()], &["give it alone", "99-worker-ssh"]),
        (vec![single.clone(), by_owner.clone()], &["give it alone", "something is"]),
        (vec![worker.clone(), ignition], &["give it alone"]),
        (vec![worker.clone()], &[]),
        (vec![by_owner], &[]),
        (vec![single.clone(), machine_config("98-x", "", "")], &[]),
    ] {
        let found = problems(&documents);
        assert_eq!(found.len(), usize::from(!words.is_empty()), "{found:?}");
        for word in words {
            assert!(found[0].contains(word), "{word}: {found:?}");
        }
    }
    let mirror = "{\"apiVersion\":\"config.openshift.io/v1\",\"kind\":\"ImageDigestMirrorSet\",\
                  \"metadata\":{\"name\":\"a\"},\"spec\":{}}";
    assert_eq!(problems(&[worker, mirror.to_owned()]), [""; 0], "mirrors are rendered into it");
}

#[test]
fn sides_that_are_hardly_two_states_of_one_node_are_doubted() {
    let config = |name: &str, metadata: &str| machine_config(name, metadata, "");
    let rendered = |pool: &str| config(&format!("rendered-{pool}-1"), "");
    let single = |pool: &str| config("a", &role(pool));
    let pool = |pool: &str, number: usize| {
        let all: Vec<_> = (0..number).map(|it| config(&format!("c{it}"), &role(pool))).collect();
        all.join("\n")
    };
    let mirrors = || {
        r#"{"apiVersion":"config.openshift.io/v1","kind":"ImageDigestMirrorSet",
            "metadata":{"name":"m"},"spec":{"imageDigestMirrors":[
            {"source":"quay.io/a","mirrors":["m.example/a"]}]}}"#
            .to_owned()
    };
    let ignition = || "{\"ignition\":{\"version\":\"3.4.0\"}}".to_owned();
    for (old, new, words) in [
        (rendered("worker"), rendered("worker"), &[][..]),
        (rendered("a-b"), rendered("a-b"), &[]),
        (rendered("worker"), rendered("infra"), &["pool worker", "pool infra"]),
        (rendered("worker"), config("x", &owned("infra")), &["pool worker", "pool infra"]),
        (rendered("worker"), config("x", &owned("worker")), &[]),
        (rendered("worker"), single("worker"), &["OLD is a rendered", "removed"]),
        (single("worker"), rendered("worker"), &["NEW is a rendered", "added"]),
        (single("worker"), single("worker"), &[]),
        (single("worker"), single("master"), &["pool worker", "pool master"]),
        (single("worker"), config("a", ""), &[]),
        (single("worker"), single("infra") + "\n" + &config("b", &role("worker")), &["pool infra"]),
        (pool("worker", 7), pool("worker", 6), &[]),
        (pool("worker", 3), pool("worker", 2), &[]),
        (pool("worker", 2), pool("worker", 7), &[]),
        (pool("worker", 2), mirrors() + "\n" + &pool("worker", 2), &[]),
        (
            pool("worker", 7),
            single("worker"),
            &["7 MachineConfigs of OLD are not in NEW (c0, c1, c2, c3, c4 and 2 more)", "-f FILE"],
        ),
        (pool("worker", 7), pool("worker", 1), &["6 MachineConfigs of OLD", "removed"]),
        (pool("worker", 7), mirrors(), &["7 MachineConfigs of OLD", "both sides"]),
        (single("worker"), mirrors(), &["MachineConfig a of OLD is not in NEW, so all that it"]),
        (rendered("worker"), mirrors(), &["MachineConfig rendered-worker-1 of OLD is not in NEW"]),
        (mirrors(), pool("worker", 2), &["2 MachineConfigs of NEW are not in OLD", "added"]),
        (mirrors(), mirrors(), &[]),
        (pool("worker", 2), ignition(), &[]),
        (ignition(), rendered("worker"), &[]),
        (ignition(), single("worker"), &[]),
    ] {
        let input = |text| [Input { name: "a.json", bytes: str::as_bytes(text) }];
        let (old, new) = (input(&old), input(&new));
        let (first, second) = sides(&old, &new).unwrap_or_else(|problems| panic!("{problems}"));
        let found = doubts(&first, &second).join(" ");
        assert_eq!(found.is_empty(), words.is_empty(), "{found}");
        for word in words {
            assert!(found.contains(word), "{word}: {found}");
        }
        let slow = diagnosed(&old, &new).unwrap();
        assert_eq!((&slow.0.makeup, &slow.1.makeup), (&first.makeup, &second.makeup));
    }
}

#[test]
fn a_side_of_one_json_document_is_known_by_the_fast_reader_too() {
    for (metadata, name, makeup) in [
        (role("infra"), "a", Makeup::Single(Some("infra".into()))),
        (String::new(), "a", Makeup::Single(None)),
        (owned("worker"), "rendered-worker-1", Makeup::Rendered("worker".into())),
        (String::new(), "rendered-my-pool-1", Makeup::Rendered("my-pool".into())),
    ] {
        let text = machine_config(name, &metadata, "");
        let input = [Input { name: "a.json", bytes: text.as_bytes() }];
        let (side, _) = fast_only(&input, &input).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(side.makeup, makeup, "{text}");
    }
}

#[test]
fn what_people_take_for_a_config_is_refused_with_what_to_give() {
    for (kind, word) in [
        ("KubeletConfig", "rendered MachineConfig"),
        ("ContainerRuntimeConfig", "rendered MachineConfig"),
        ("ClusterImagePolicy", "rendered MachineConfig"),
        ("Image", "rendered MachineConfig"),
        ("ControllerConfig", "rendered MachineConfig"),
        ("MachineConfigPool", ".spec.configuration.name"),
        ("MachineConfiguration", "--rules"),
        ("DisruptionPolicy", "--rules"),
        ("ConfigMap", "tread policy unpack"),
        ("Secret", "tread reads MachineConfig"),
    ] {
        let object = format!(
            "{{\"apiVersion\":\"x/v1\",\"kind\":\"{kind}\",\"metadata\":{{\"name\":\"a\"}}}}"
        );
        let list = format!("{{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{object}]}}");
        for text in [object, list] {
            // Beside a config that can be read: it is never left out silently.
            let found = problems(&[machine_config("a", "", ""), text]);
            let [problem] = found.as_slice() else { panic!("{kind}: {found:?}") };
            assert!(problem.starts_with("kind: ") && problem.contains(word), "{problem}");
        }
    }
}

fn yaml(fields: &str) -> Result<Vec<(Option<u32>, String)>, String> {
    let text = format!(
        "{{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfig, metadata: {{name: a}}, \
         spec: {{config: {{ignition: {{version: 3.4.0}}, storage: {{files: [{{path: /a, {fields}}}]}}}}}}}}"
    );
    let input = [Input { name: "a.yaml", bytes: text.as_bytes() }];
    let (side, _) = sides(&input, &input).map_err(|problems| problems.to_string())?;
    Ok(side.config.files.iter().map(|f| (f.mode, f.user.to_string())).collect())
}

/// kubectl reads YAML 1.1. What it reads in another way than tread does is
/// refused here, never read as something else.
#[test]
fn numbers_and_truth_in_yaml_are_what_kubectl_sends_or_are_refused() {
    let mut wrong = Vec::new();
    // What kubectl makes a number of, and whether that is to be read.
    for (written, number, is_read) in [
        ("0600", Some(0o600), true),
        ("0o600", Some(0o600), true),
        ("0x180", Some(0o600), true),
        ("384", Some(0o600), true),
        ("0b110000000", Some(0o600), false),
        ("+384", Some(0o600), false),
        ("0_600", Some(0o600), false),
        ("3_84", Some(0o600), false),
        ("0800", Some(800), false),
        ("384.0", Some(0o600), false),
        ("\"0600\"", None, false),
        ("'384'", None, false),
        ("!!str 0600", None, false),
        ("384.5", None, false),
        ("6:24", None, false),
        ("yes", None, false),
        ("-0600", None, false),
    ] {
        match yaml(&format!("mode: {written}")) {
            Ok(read) if number.is_some() && read == [(number, "root".to_owned())] => {}
            Err(error) if !is_read && error.contains("files[0].mode") => {}
            other => wrong.push(format!("mode: {written}: {other:?}")),
        }
    }
    for (written, is_truth, is_read) in [
        ("true", true, true),
        ("True", true, true),
        ("yes", true, true),
        ("On", true, true),
        ("off", true, true),
        ("NO", true, true),
        ("y", true, false),
        ("n", true, false),
        ("\"yes\"", false, false),
        ("1", false, false),
        ("maybe", false, false),
    ] {
        match yaml(&format!("overwrite: {written}")) {
            Ok(_) if is_truth => {}
            Err(error) if !is_read && error.contains("files[0].overwrite") => {}
            other => wrong.push(format!("overwrite: {written}: {other:?}")),
        }
    }
    // What is no string to kubectl is none here.
    for written in ["yes", "on", "n", "y", "5", "0600", "0x5", "1.5", "1e3", "true"] {
        let read = yaml(&format!("user: {{name: {written}}}"));
        if !read.as_ref().is_err_and(|error| error.contains("files[0].user.name")) {
            wrong.push(format!("name: {written}: {read:?}"));
        }
    }
    assert_eq!(wrong, [""; 0]);
    // Keys that kubectl turns into "true" and "false" are no fields either way.
    for key in ["on", "n", "yes", "off", "y"] {
        assert_eq!(yaml(&format!("{key}: 1")), Ok(vec![(None, "root".into())]), "{key}");
    }
    let merged = "user: &u {name: core}, group: {<<: *u}";
    assert_eq!(yaml(merged), Ok(vec![(None, "core".into())]));
}

#[test]
fn a_limit_of_yaml_is_named_with_its_place_and_what_to_do() {
    let head = "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\n\
                metadata:\n  name: a\n  annotations:\n";
    let read = |lines: String| {
        let text = format!("{head}{lines}spec: {{config: {{ignition: {{version: 3.4.0}}}}}}\n");
        let input = [Input { name: "a.yaml", bytes: text.as_bytes() }];
        sides(&input, &input).map(|_| ()).map_err(|problems| problems.to_string())
    };
    let anchors =
        |count: usize| -> String { (0..count).map(|n| format!("    k{n}: &a{n} v\n")).collect() };
    assert_eq!(read(anchors(50_500)), Ok(()));
    let aliases = |count: usize| -> String {
        "    k: &a v\n".to_owned()
            + &(0..count).map(|n| format!("    k{n}: *a\n")).collect::<String>()
    };
    let error = read(anchors(100_500)).unwrap_err();
    for word in ["a.yaml, line 10", "more than 100000 anchors", "convert the file to JSON"] {
        assert!(error.contains(word), "{word}: {error}");
    }
    let error = read(aliases(100_500)).unwrap_err();
    for word in ["a.yaml, line 10", "more than 100000 aliases", "write out"] {
        assert!(error.contains(word), "{word}: {error}");
    }
}
