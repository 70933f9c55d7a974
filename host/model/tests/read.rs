//! What node configs come out of what files.

// Helpers of tests may fail as tests do.
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)]

use tread_model::config::{KernelType, NodeConfig};
use tread_model::problem::Problems;
use tread_model::read::{Input, MirrorKind, Side, document_values, sides};

fn read(files: &[&str]) -> Result<Side<'static>, Problems> {
    let names = ["one.yaml", "two.yaml", "three.yaml"];
    let inputs: Vec<Input<'_>> = (names.iter().zip(files))
        .map(|(name, text)| Input { name, bytes: text.as_bytes() })
        .collect();
    let other = [Input { name: "other", bytes: b"ignition: {version: 3.0.0}" }];
    // Two documents or YAML: all of it is read by the diagnosing reader.
    tread_model::read::diagnosed(&inputs, &other).map(|(side, _)| side)
}

fn config(files: &[&str]) -> NodeConfig<'static> {
    read(files).unwrap_or_else(|problems| panic!("{problems}")).config
}

/// A MachineConfig; `spec` and `config` are YAML in braces.
fn machine_config(name: &str, role: &str, spec: &str, config: &str) -> String {
    format!(
        "---\napiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata:\n  \
         name: {name}\n  labels: {{machineconfiguration.openshift.io/role: {role}}}\nspec:\n  \
         {spec}\n  config:\n    ignition: {{version: 3.4.0}}\n    {config}\n"
    )
}

#[test]
fn configs_are_merged_by_name_and_those_of_the_custom_role_last() {
    let arguments = |name: &str, role: &str| {
        machine_config(name, role, &format!("kernelArguments: [{name}]"), "")
    };
    let infra = arguments("00-i", "infra");
    let workers = arguments("99-w", "worker") + &arguments("50-w", "worker");
    let node = config(&[&infra, &workers]);
    assert_eq!(node.kernel_arguments, ["50-w", "99-w", "00-i"]);
    assert_eq!(node.name, "50-w+99-w+00-i");
}

/// OpenShift's operator merges all that is not of the role `worker` by name, on top.
#[test]
fn configs_that_are_not_of_the_role_worker_are_merged_last_and_by_name() {
    const ROLE: &str = "machineconfiguration.openshift.io/role";
    let config_of = |name: &str, labels: &str| {
        let spec = format!("kernelArguments: [{name}]");
        let file =
            format!("storage: {{files: [{{path: /etc/a, contents: {{source: 'data:,{name}'}}}}]}}");
        machine_config(name, "worker", &spec, &file)
            .replace(&format!("{{{ROLE}: worker}}"), &format!("{{{labels}}}"))
    };
    let role = |role: &str| format!("{ROLE}: {role}");
    for (configs, order) in [
        ([("99-worker", role("worker")), ("00-none", "my/pool: x".into())], "99-worker+00-none"),
        ([("99-worker", role("worker")), ("00-none", String::new())], "99-worker+00-none"),
        ([("99-worker", role("worker")), ("00-none", role("''"))], "99-worker+00-none"),
        ([("99-worker", role("worker")), ("00-c", role("c"))], "99-worker+00-c"),
        ([("99-master", role("master")), ("00-c", role("c"))], "00-c+99-master"),
        ([("99-c", role("c")), ("00-none", String::new())], "00-none+99-c"),
    ] {
        let texts = configs.map(|(name, labels)| config_of(name, &labels));
        let node = config(&[&texts[0], &texts[1]]);
        assert_eq!((&*node.name, node.kernel_arguments.join("+")), (order, order.to_owned()));
        let (_, last) = order.split_once('+').unwrap();
        let url = format!("data:,{last}");
        assert_eq!(node.files[0].contents.url.as_deref(), Some(&*url), "{order}");
    }
}

#[test]
fn an_ignition_config_is_merged_on_top_of_the_role_worker_by_the_name_of_its_file() {
    let ignition = "ignition: {version: 3.4.0}\n";
    let worker = machine_config("zz", "worker", "", "");
    let infra = machine_config("p", "infra", "", "");
    let node = config(&[ignition, &worker, &infra]);
    assert_eq!(node.name, "zz+one.yaml+p");
}

#[test]
fn a_master_or_a_single_custom_pool_is_a_pool_too() {
    for roles in [&["master", "master"][..], &["infra", "infra"], &["master", "infra"], &[""]] {
        let configs: Vec<String> = (roles.iter().zip(["a", "b"]))
            .map(|(role, name)| machine_config(name, &format!("{role:?}"), "", ""))
            .collect();
        assert!(read(&[&configs.concat()]).is_ok(), "{roles:?}");
    }
    for roles in [["master", "worker"], ["infra", "gpu"]] {
        let configs: Vec<String> = (roles.iter().zip(["a", "b"]))
            .map(|(role, name)| machine_config(name, role, "", ""))
            .collect();
        let problems = read(&[&configs[0], &configs[1]]).unwrap_err().to_string();
        assert!(problems.contains("one.yaml") && problems.contains("two.yaml"), "{problems}");
        assert!(problems.contains("give those of one pool"), "{problems}");
    }
}

#[test]
fn a_later_file_replaces_what_it_sets() {
    const OLD: &str = "data:;base64,H4sIAAAAAAACA8vPSQEA5dRdPwMAAAA=";
    let below = &format!(
        "storage: {{files: [{{path: /a, mode: 0600, user: {{name: core}}, group: {{id: 5}}, \
         contents: {{source: '{OLD}', compression: gzip}}}}]}}"
    );
    for (above, url, gzip, mode, user, group) in [
        ("", OLD, true, Some(0o600), "core", "5"),
        ("mode: 0755", OLD, true, Some(0o755), "core", "5"),
        ("mode: 0644", OLD, true, None, "core", "5"),
        ("user: {id: 0}, group: {name: ''}", OLD, true, Some(0o600), "root", "5"),
        ("contents: {source: 'data:,new'}", "data:,new", false, Some(0o600), "core", "5"),
        ("contents: {compression: ''}", OLD, false, Some(0o600), "core", "5"),
    ] {
        let above = format!("storage: {{files: [{{path: //a/, {above}}}]}}");
        let both =
            machine_config("a", "worker", "", below) + &machine_config("b", "worker", "", &above);
        let node = config(&[&both]);
        let [file] = node.files.as_slice() else { panic!("{:?}", node.files) };
        assert_eq!(
            (file.contents.url.as_deref(), file.contents.gzip),
            (Some(url), gzip),
            "{above}"
        );
        assert_eq!((file.mode, &*file.user, &*file.group), (mode, user, group), "{above}");
        assert_eq!(file.origin.document, 1);
    }
}

#[test]
fn a_later_empty_source_empties_the_file() {
    let file = |source: &str| format!("storage: {{files: [{{path: /a, contents: {source}}}]}}");
    let both = machine_config("a", "worker", "", &file("{source: 'data:,x', compression: gzip}"))
        + &machine_config("b", "worker", "", &file("{source: ''}"));
    let node = config(&[&both]);
    assert_eq!((node.files[0].contents.url.as_deref(), node.files[0].contents.gzip), (None, false));
}

#[test]
fn a_later_unit_replaces_what_it_sets_and_adds_its_dropins() {
    let below = "systemd: {units: [{name: a.service, contents: old, enabled: true, mask: true, \
                 dropins: [{name: b.conf, contents: old}, {name: c.conf, contents: old}]}]}";
    let above = "systemd: {units: [{name: a.service, mask: false, \
                 dropins: [{name: b.conf, contents: new}, {name: a.conf}]}]}";
    let both = machine_config("a", "worker", "", below) + &machine_config("b", "worker", "", above);
    let node = config(&[&both]);
    let [unit] = node.units.as_slice() else { panic!("{:?}", node.units) };
    assert_eq!(
        (unit.contents.as_deref(), unit.enabled, unit.mask),
        (Some("old"), Some(true), Some(false))
    );
    let dropins: Vec<_> =
        unit.dropins.iter().map(|dropin| (&*dropin.name, dropin.contents.as_deref())).collect();
    assert_eq!(dropins, [("a.conf", None), ("b.conf", Some("new")), ("c.conf", Some("old"))]);
}

#[test]
fn the_keys_of_a_user_are_united_and_the_rest_is_replaced() {
    let below = "passwd: {users: [{name: core, sshAuthorizedKeys: [b, ' a'], passwordHash: x, \
                 uid: 5, groups: [wheel], system: false, shouldExist: true}]}";
    let above = "passwd: {users: [{name: core, sshAuthorizedKeys: [c, 'b '], uid: 6, \
                 groups: [sudo, wheel]}]}";
    let both = machine_config("a", "worker", "", below) + &machine_config("b", "worker", "", above);
    let node = config(&[&both]);
    let [user] = node.users.as_slice() else { panic!("{:?}", node.users) };
    assert_eq!(user.ssh_keys, ["a", "b", "c"]);
    assert_eq!(user.password_hash.as_deref(), Some("x"));
    assert_eq!(user.rest, r#"{"groups":["wheel","sudo"],"uid":6}"#);
}

#[test]
fn a_kernel_that_is_not_the_default_is_not_taken_back_by_a_later_config() {
    for (specs, want) in [
        (["{kernelType: realtime}", "{kernelType: default}"], KernelType::Realtime),
        (["{kernelType: default}", "{kernelType: realtime}"], KernelType::Realtime),
        (["{kernelType: realtime}", "{}"], KernelType::Realtime),
        (["{kernelType: default}", "{kernelType: default}"], KernelType::Default),
    ] {
        let configs = specs.iter().zip(["a", "b"]).map(|(spec, name)| {
            format!(
                "---\napiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\n\
                 metadata: {{name: {name}}}\nspec: {spec}\n"
            )
        });
        assert_eq!(config(&[&configs.collect::<String>()]).kernel_type, want, "{specs:?}");
    }
}

#[test]
fn the_last_kernel_type_and_image_that_are_set_count_and_fips_if_any() {
    let specs = [
        "{kernelType: realtime, osImageURL: a, fips: true, extensions: [usbguard, ipsec]}",
        "{kernelType: '', osImageURL: b, extensions: [ipsec]}",
        "{fips: false, osImageURL: ''}",
    ];
    let configs = specs.iter().zip(["a", "b", "c"]).map(|(spec, name)| {
        format!(
            "---\napiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\n\
             metadata: {{name: {name}}}\nspec: {spec}\n"
        )
    });
    let node = config(&[&configs.collect::<String>()]);
    assert_eq!(node.kernel_type, KernelType::Realtime);
    assert_eq!((&*node.os_image, node.fips), ("b", true));
    assert_eq!(node.extensions, ["ipsec", "usbguard"]);
}

#[test]
fn what_only_provisioning_sets_is_kept_as_canonical_json() {
    let fixed = |config: &str| {
        let node = config_of(config);
        node.fixed.into_iter().map(|fixed| (fixed.id, fixed.field, fixed.value)).collect::<Vec<_>>()
    };
    let owned = |list: &[(&str, &str, &str)]| {
        let owned = |(a, b, c): &(&str, &str, &str)| (a.to_string(), b.to_string(), c.to_string());
        list.iter().map(owned).collect::<Vec<_>>()
    };
    assert_eq!(fixed("storage: {disks: [], luks: null}"), []);
    assert_eq!(
        fixed(
            "{kernelArguments: {shouldExist: [a]}, passwd: {groups: [{name: g}]}, storage: \
             {disks: [{wipeTable: true, device: /b, partitions: []}, {device: /a, partitions: [{}]}], \
             links: [{path: /l, unknown: [{a: b}]}]}}"
        ),
        owned(&[
            (
                "ignition:kernel-arguments",
                "spec.config.kernelArguments",
                r#"{"shouldExist":["a"]}"#
            ),
            ("users:groups", "spec.config.passwd.groups", r#"[{"name":"g"}]"#),
            (
                "storage:disks",
                "spec.config.storage.disks",
                r#"[{"device":"/a","partitions":[null]},{"device":"/b","wipeTable":true}]"#
            ),
            ("storage:links", "spec.config.storage.links", r#"[{"path":"/l"}]"#),
        ])
    );
}

fn config_of(text: &str) -> NodeConfig<'static> {
    let text = match text.strip_prefix('{') {
        Some(rest) => format!("{{ignition: {{version: 3.4.0}}, {rest}"),
        None => format!("ignition: {{version: 3.4.0}}\n{text}\n"),
    };
    config(&[&text])
}

#[test]
fn fixed_entries_of_one_key_are_merged_as_ignition_merges_them() {
    let disk = |said| format!("storage: {{disks: [{{device: /a, {said}}}]}}");
    let of = |name, said| machine_config(name, "worker", "", &disk(said));
    let below = of("a", "wipeTable: false, partitions: [{number: 1, label: x}]");
    let node =
        config(&[&(below + &of("b", "wipeTable: true, partitions: [{number: 1, sizeMiB: 9}]"))]);
    let one = of("b", "wipeTable: true, partitions: [{number: 1, label: x, sizeMiB: 9}]");
    assert_eq!(node.fixed, config(&[&one]).fixed);
    assert_ne!(node.fixed, config(&[&of("b", "wipeTable: true")]).fixed);
}

#[test]
fn yaml_is_read_as_kubectl_reads_it() {
    let node = config_of(
        "storage: {files: [{path: /a, mode: 0600, overwrite: yes}, {path: /b, mode: 0o755}]}\n\
         systemd: {units: [{name: a.service, enabled: on, mask: no, contents: \"off\"}]}",
    );
    let modes: Vec<_> = node.files.iter().map(|file| file.mode).collect();
    assert_eq!(modes, [Some(0o600), Some(0o755)]);
    let unit = &node.units[0];
    assert_eq!(
        (unit.enabled, unit.mask, unit.contents.as_deref()),
        (Some(true), Some(false), Some("off"))
    );
}

#[test]
fn quotes_of_kernel_arguments_keep_space_together() {
    let spec = r#"kernelArguments: ['a=1  b="x y"', "", '"c d=e"']"#;
    let node = config(&[&machine_config("a", "worker", spec, "")]);
    assert_eq!(node.kernel_arguments, ["a=1", "b=x y", "c d=e"]);
}

#[test]
fn mirror_objects_are_collected_as_they_are() {
    let text = "apiVersion: config.openshift.io/v1\nkind: ImageTagMirrorSet\nmetadata: {name: t}\n\
                ---\napiVersion: operator.openshift.io/v1alpha1\n\
                kind: ImageContentSourcePolicy\nmetadata: {name: i}\nspec: {x: 1}\n";
    let side = read(&[text]).unwrap();
    let kinds: Vec<_> =
        side.mirrors.iter().map(|object| (object.kind, &*object.name, &*object.document)).collect();
    assert_eq!(kinds, [(MirrorKind::Itms, "t", "1"), (MirrorKind::Icsp, "i", "2")]);
    assert_eq!(side.mirrors[1].value["spec"]["x"], 1);
    assert_eq!(side.config.name, "t+i");
}

#[test]
fn an_entry_knows_the_document_that_it_was_written_in() {
    let first = machine_config("b", "worker", "", "storage: {files: [{path: /x}, {path: /b}]}");
    let second = machine_config("a", "worker", "", "storage: {files: [{path: /a}]}");
    let third = "ignition: {version: 3.0.0}\nstorage: {files: [{path: /c}]}";
    let side = read(&[&first, &(first.replace("name: b", "name: c") + &second), third]).unwrap();
    let places: Vec<_> = side
        .config
        .files
        .iter()
        .map(|file| {
            let place = side.config.place(file.origin).unwrap();
            (place.to_string(), place.config, file.origin.index)
        })
        .collect();
    assert_eq!(
        places,
        [
            ("two.yaml, document 2".to_owned(), "spec.config", 0),
            ("two.yaml, document 1".to_owned(), "spec.config", 1),
            ("three.yaml".to_owned(), "", 0),
            ("two.yaml, document 1".to_owned(), "spec.config", 0),
        ]
    );
}

#[test]
fn every_item_of_a_list_is_a_document() {
    let text = br#"{"kind":"List","apiVersion":"v1","items":[{"a":1},
        {"kind":"FooList","apiVersion":"foo/v1","items":[{"b":2},{"kind":"Bar"}]}]}"#;
    let documents = document_values(&Input { name: "x", bytes: text }).unwrap();
    let seen: Vec<_> =
        documents.iter().map(|document| (&*document.label, document.value.to_string())).collect();
    assert_eq!(
        seen,
        [
            ("1, item 1", r#"{"a":1}"#.to_owned()),
            ("1, item 2, item 1", r#"{"apiVersion":"foo/v1","b":2,"kind":"Foo"}"#.to_owned()),
            ("1, item 2, item 2", r#"{"apiVersion":"foo/v1","kind":"Bar"}"#.to_owned()),
        ]
    );
}

#[test]
fn the_problems_of_all_files_of_both_sides_come_together() {
    let bad = |name| Input { name, bytes: b"kind: Pod\napiVersion: v1" };
    let broken = Input { name: "broken", bytes: b"a: [" };
    let problems = sides(&[bad("a"), broken], &[bad("b")]).unwrap_err();
    let files: Vec<_> = problems.0.iter().map(|problem| problem.file.as_str()).collect();
    assert_eq!(files, ["a", "broken", "b"]);
}

#[test]
fn a_side_without_files_is_a_problem() {
    let problems = sides(&[], &[]).unwrap_err().to_string();
    assert!(problems.starts_with("the old side has no file"), "{problems}");
    assert!(problems.contains("\nthe new side has no file"), "{problems}");
}

#[test]
fn many_problems_are_cut_with_a_count() {
    let files: Vec<_> = (0..300).map(|index| format!("{{path: x{index}}}")).collect();
    let text = format!("ignition: {{version: 3.0.0}}\nstorage: {{files: [{}]}}", files.join(","));
    let problems = read(&[&text]).unwrap_err();
    assert_eq!(problems.0.len(), 101);
    assert!(problems.to_string().contains("200 more problems"), "{problems}");
}

#[test]
fn entries_that_are_written_alike_share_their_text() {
    let side = |paths: &[&str]| {
        let files: Vec<_> = paths
            .iter()
            .map(|path| format!(r#"{{"path":"{path}","contents":{{"source":"data:,x"}}}}"#))
            .collect();
        format!(
            r#"{{"ignition":{{"version":"3.2.0"}},"storage":{{"files":[{}]}}}}"#,
            files.join(", ")
        )
    };
    let old = side(&["/a", "/removed", "/b", "/was", "/c", "/d"]);
    let new = side(&["/a", "/b", "/changed", "/c", "/added", "/d"]);
    let (old, new) = sides(
        &[Input { name: "old", bytes: old.as_bytes() }],
        &[Input { name: "new", bytes: new.as_bytes() }],
    )
    .unwrap();
    let shared: Vec<_> = new
        .config
        .files
        .iter()
        .filter(|file| old.config.files.iter().any(|old| std::ptr::eq(old.raw, file.raw)))
        .map(|file| (&*file.path, file.origin.index))
        .collect();
    assert_eq!(shared, [("/a", 0), ("/b", 1), ("/c", 3), ("/d", 5)]);
    assert!(new.config.files.iter().all(|file| file.raw.starts_with(b"{\"path\":")));
}

#[test]
fn yaml_of_any_size_is_read_and_anchors_may_be_used_often() {
    let text = format!("list: [{}]\n", vec!["1"; 260_000].join(","));
    assert!(document_values(&Input { name: "x", bytes: text.as_bytes() }).is_ok());
    let text = format!("a: &a x\nlist: [{}]\n", vec!["*a"; 400].join(","));
    assert!(document_values(&Input { name: "x", bytes: text.as_bytes() }).is_ok());
}
