use crate::cases::read as cases;
use serde_json::{Value, json};
use std::path::Path;
use tread_model::boot_images::patch::{Resource, remedy};
use tread_model::boot_images::{Catalogue, ImageVersion, Release, Stream, provider, template};

fn stream() -> String {
    let path = "../../tests/cases/boot-images/stream.json";
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

fn catalogue() -> Catalogue {
    Catalogue::parse(&stream(), Release::new(4, 21, 9)).unwrap()
}

const PATH: &str = "/spec/template/spec/providerSpec/value";

fn resource(path: &str) -> Resource {
    Resource {
        kind: "machineset.machine.openshift.io".to_owned(),
        namespace: "openshift-machine-api".to_owned(),
        name: "worker-a".to_owned(),
        path: path.to_owned(),
        owner: None,
    }
}

fn said(version: &ImageVersion) -> Value {
    let mut said = serde_json::Map::new();
    if let Some(release) = version.openshift {
        said.insert("openshift".to_owned(), json!(release.to_string()));
    }
    if let Some(rhel) = version.rhel {
        said.insert("rhel".to_owned(), json!(rhel.to_string()));
    }
    Value::Object(said)
}

#[test]
fn what_resources_boot_is_read_and_remedied_as_the_cases_say() {
    let catalogue = catalogue();
    for case in cases("provider.yaml", 30) {
        let kind = case["template"].as_str();
        let read = match kind {
            Some(kind) => template::read(kind, &case["provider"]),
            None => provider::read(&case["provider"]),
        };
        let boots = match read {
            Err(problem) => {
                let expected =
                    case["problem"].as_str().unwrap_or_else(|| panic!("{case}: {problem}"));
                assert!(problem.contains(expected), "{case}: {problem}");
                continue;
            }
            Ok(boots) => boots,
        };
        assert!(case["problem"].is_null(), "{case}: {boots:?}");
        let images: Vec<&str> = boots.images.iter().map(|image| image.id.as_str()).collect();
        assert_eq!(json!(images), case["images"], "{case}");
        assert_eq!(json!(boots.user_data), case["user data"], "{case}");
        let found = catalogue.find(&boots).as_ref().map_or(Value::Null, said);
        assert_eq!(found, case["found"], "{case}");
        let named: Vec<String> = boots.versions().into_iter().map(|version| version.text).collect();
        let expected = case["named"].as_array().cloned().unwrap_or_default();
        assert_eq!(json!(named), json!(expected), "{case}");

        let resource = resource(if kind.is_some() { "" } else { PATH });
        let all = std::slice::from_ref(&catalogue);
        let remedy = remedy(&resource, Ok(&boots), case["arch"].as_str(), Ok(all), &own());
        match case["steps"].as_str() {
            Some(steps) => {
                assert_eq!((&remedy.command, &remedy.patch), (&None, &None), "{case}");
                assert!(remedy.steps.join("\n").contains(steps), "{case}: {remedy:?}");
            }
            None => {
                let patch = remedy.patch.clone().unwrap_or_else(|| panic!("{case}: {remedy:?}"));
                let replaced: Vec<Value> = patch
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter(|it| it["op"] == "replace")
                    .map(|it| {
                        let field = it["path"].as_str().unwrap().strip_prefix(PATH).unwrap();
                        json!({"field": field, "value": it["value"]})
                    })
                    .collect();
                assert_eq!(json!(replaced), case["patch"], "{case}");
                // What it replaces is asked for first, so that it fits nothing else.
                let tests = patch.as_array().unwrap().iter().filter(|it| it["op"] == "test");
                for (test, image) in tests.zip(&boots.images) {
                    assert_eq!(test["value"], image.value, "{case}");
                }
            }
        }
    }
}

/// The stream of a cluster that was installed with 4.12.
fn own() -> Stream {
    Stream::of_cluster(Some(Release::new(4, 12, 0)))
}

#[test]
fn a_patch_names_an_image_of_the_resources_own_stream() {
    let of = |version: &str, ami: &str| {
        let image = json!({"release": version, "image": ami});
        let images = json!({"aws": {"regions": {"eu-west-1": image}}});
        let text = json!({"architectures": {"x86_64": {"images": images}}}).to_string();
        Catalogue::parse(&text, Release::new(5, 1, 0)).unwrap()
    };
    let (eight, nine, ten) = (
        of("412.86.202308081056-0", "ami-8"),
        of("9.8.20260428-0", "ami-9"),
        of("10.2.20260428-0", "ami-10"),
    );
    let label = |name: &str| Stream::of_resource(Some(name), &own());
    let boots = provider::read(&json!({
        "kind": "AWSMachineProviderConfig", "ami": {"id": "ami-1"}, "placement": {"region": "eu-west-1"},
    }))
    .unwrap();
    for (all, stream, ami) in [
        (vec![&ten, &nine], own(), Some("ami-9")),
        (vec![&nine, &ten], own(), Some("ami-9")),
        (vec![&nine, &ten], label("rhel-10"), Some("ami-10")),
        (vec![&ten], own(), None),
        (vec![&nine], label("rhel-10"), None),
        (vec![&nine, &ten], label("custom"), None),
        // A release whose own images are of an older RHEL.
        (vec![&eight], own(), Some("ami-8")),
        (vec![&eight, &nine], own(), Some("ami-9")),
        (vec![&eight], label("rhel-10"), None),
    ] {
        let all: Vec<Catalogue> = all.into_iter().cloned().collect();
        let remedy = remedy(&resource(PATH), Ok(&boots), None, Ok(&all), &stream);
        let offered = remedy.patch.as_ref().map(|it| it[1]["value"]["id"].as_str().unwrap());
        assert_eq!(offered, ami, "{stream:?}: {remedy:?}");
        if ami.is_none() {
            let steps = remedy.steps.join("\n");
            assert!(steps.contains(&format!("none of the stream {}", stream.name)), "{steps}");
        }
    }
}

#[test]
fn a_patch_is_one_command_that_a_shell_takes_as_it_is() {
    let hostile = json!({
        "kind": "AWSMachineProviderConfig", "ami": {"id": "ami-'; rm -rf $HOME \u{1b}[31m"},
        "placement": {"region": "eu-west-1"},
    });
    let boots = provider::read(&hostile).unwrap();
    let remedy = remedy(&resource(PATH), Ok(&boots), None, Ok(&[catalogue()]), &own());
    let command = remedy.command.unwrap();
    assert!(!command.chars().any(tread_model::text::is_unfit), "{command:?}");
    let script = format!("kubectl() {{ printf '%s\\n' \"$@\"; }}\n{command}");
    let ran = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    let lines = String::from_utf8(ran.stdout).unwrap();
    let patch = lines.lines().last().unwrap();
    assert_eq!(serde_json::from_str::<Value>(patch).unwrap(), remedy.patch.unwrap());
    assert_eq!(lines.lines().count(), 9, "{lines}");
}

#[test]
fn the_remedy_of_what_another_one_makes_names_the_other_one() {
    let owned = Resource { owner: Some("MachineDeployment/a".to_owned()), ..resource(PATH) };
    let boots = provider::read(&json!({
        "kind": "AWSMachineProviderConfig", "ami": {"id": "ami-1"}, "placement": {"region": "eu-west-1"},
    }));
    let boots = boots.as_ref().map_err(String::as_str);
    let remedy = remedy(&owned, boots, None, Ok(&[catalogue()]), &own());
    assert_eq!(remedy.command, None);
    assert!(remedy.steps.join(" ").contains("MachineDeployment/a"), "{remedy:?}");
}

#[test]
fn stream_metadata_that_is_none_says_so() {
    let release = Release::new(4, 21, 9);
    for (text, says) in [
        ("", "is no JSON"),
        ("{", "is no JSON"),
        ("[]", "has no architectures"),
        ("{\"architectures\": []}", "has no architectures"),
        (&" ".repeat(2 * 1024 * 1024), "is larger than"),
    ] {
        let error = Catalogue::parse(text, release).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
    let odd = r#"{"architectures": {"x86_64": {"images": {"aws": [], "gcp": {"name": 3}}, "artifacts": 7}}}"#;
    assert!(Catalogue::parse(odd, release).unwrap().is_empty());
}

#[test]
fn an_image_of_azures_marketplace_becomes_the_one_of_its_plan() {
    let image = |sku: &str, publisher: &str, offer: &str| json!({"offer": offer, "publisher": publisher, "sku": sku, "version": "9.6.20250826"});
    let text = json!({"architectures": {"x86_64": {"rhel-coreos-extensions": {"marketplace": {"azure": {
        "no-purchase-plan": {
            "hyperVGen1": image("aro_420", "azureopenshift", "aro4"),
            "hyperVGen2": image("420-v2", "azureopenshift", "aro4"),
        },
        "ocp": {
            "hyperVGen1": image("rh-ocp-worker-gen1", "redhat", "rh-ocp-worker"),
            "hyperVGen2": image("rh-ocp-worker", "redhat", "rh-ocp-worker"),
        },
    }}}}}});
    let catalogue = Catalogue::parse(&text.to_string(), Release::new(4, 20, 0)).unwrap();
    for (old, sku, kind) in [
        (
            json!({"publisher": "azureopenshift", "offer": "aro4", "sku": "aro_413", "version": "413.92.2023101700"}),
            "aro_420",
            "MarketplaceNoPlan",
        ),
        (
            json!({"publisher": "azureopenshift", "offer": "aro4", "sku": "413-v2", "version": "413.92.2023101700"}),
            "420-v2",
            "MarketplaceNoPlan",
        ),
        (
            json!({"publisher": "redhat", "offer": "rh-ocp-worker", "sku": "rh-ocp-worker", "version": "4.8.2021122100"}),
            "rh-ocp-worker",
            "MarketplaceWithPlan",
        ),
        (
            json!({"publisher": "redhat", "offer": "rh-ocp-worker", "sku": "rh-ocp-worker-gen1", "version": "4.8.2021122100"}),
            "rh-ocp-worker-gen1",
            "MarketplaceWithPlan",
        ),
        (
            json!({"resourceID": "/a/images/i-gen2/versions/412.86.20230808"}),
            "420-v2",
            "MarketplaceNoPlan",
        ),
        (
            json!({"resourceID": "/a/images/i/versions/412.86.20230808"}),
            "aro_420",
            "MarketplaceNoPlan",
        ),
    ] {
        let boots =
            provider::read(&json!({"kind": "AzureMachineProviderSpec", "image": old})).unwrap();
        let offered = catalogue.replacement(&boots, "x86_64").unwrap();
        assert_eq!(
            (&offered.value["sku"], &offered.value["type"]),
            (&json!(sku), &json!(kind)),
            "{old}"
        );
    }
}
