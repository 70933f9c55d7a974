use serde_json::Value;
use std::path::Path;
use tread_model::boot_images::rule::{
    Question, Recorded, Updater, judge, judge_cluster, judge_resource,
};
use tread_model::boot_images::version::in_name;
use tread_model::boot_images::{
    Found, ImageVersion, KnownBy, Limits, Mode, Release, Rhel, Stream, Tighter, operator, rule,
    sources::Sources, version::parse_rhcos,
};
use tread_model::read::{Input, document_values};

pub(crate) fn read(name: &str, least: usize) -> Vec<Value> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/boot-images").join(name);
    let bytes = std::fs::read(path).unwrap();
    let cases = document_values(&Input { name, bytes: &bytes }).unwrap();
    assert!(cases.len() >= least, "{name}: {} cases", cases.len());
    cases.into_iter().map(|case| case.value).collect()
}

fn text(value: &Value) -> Option<&str> {
    value.as_str()
}

#[test]
fn versions_are_read_as_the_cases_say() {
    for case in read("versions.yaml", 30) {
        let found = match (&case["text"], &case["name"]) {
            (Value::String(text), Value::Null) => ImageVersion::parse(text),
            (Value::Null, Value::String(name)) => in_name(name),
            _ => panic!("{case}: expected a text or a name"),
        };
        let openshift = found.as_ref().and_then(|it| it.openshift).map(|it| it.to_string());
        let rhel = found.as_ref().and_then(|it| it.rhel).map(|it| it.to_string());
        assert_eq!(openshift.as_deref(), text(&case["openshift"]), "{case}: {found:?}");
        assert_eq!(rhel.as_deref(), text(&case["rhel"]), "{case}: {found:?}");
        assert!(found.is_none_or(|it| it.openshift.is_some() || it.rhel.is_some()), "{case}");
    }
}

fn asked(case: &Value) -> Vec<Tighter> {
    let asks = case["asks"].as_array().cloned().unwrap_or_default();
    asks.iter()
        .map(|it| Tighter {
            stream: text(&it["stream"]).map(str::to_owned),
            openshift: text(&it["ocpVersion"]).map(|it| Release::parse(it).unwrap()),
            rhel: text(&it["rhelVersion"]).map(|it| Rhel::parse(it).unwrap()),
        })
        .collect()
}

/// The cluster's release and stream, and that of the resource.
fn streams(case: &Value, default: Option<(&str, &str)>) -> (Option<Release>, Stream, Stream) {
    let (release, installed) = match default {
        Some((release, installed)) => (
            text(&case["release"]).unwrap_or(release),
            text(&case["installed"]).unwrap_or(installed),
        ),
        None => {
            (text(&case["release"]).unwrap_or("none"), text(&case["installed"]).unwrap_or("none"))
        }
    };
    let release = (release != "none").then(|| Release::parse(release).unwrap());
    let installed = Release::parse(installed).filter(|_| release.is_some());
    let cluster = Stream::of_cluster(installed);
    let own = Stream::of_resource(text(&case["label"]), &cluster);
    (release, cluster, own)
}

#[test]
fn limits_are_what_the_cases_say() {
    for case in read("limits.yaml", 15) {
        let (release, _, stream) = streams(&case, None);
        let limits = Limits::of(release, &stream, &asked(&case));
        assert_eq!(limits.in_words(), case["limit"], "{case}: {limits:?}");
        let as_of = limits.as_of.map(|(major, minor)| format!("{major}.{minor}"));
        assert_eq!(as_of.as_deref(), text(&case["as of"]), "{case}: {limits:?}");
        let old = ImageVersion::parse("46.82.202001010000-0").unwrap();
        let verdict = judge(&Found::Version(KnownBy::Name, old), &limits, &stream);
        assert_eq!(verdict.outcome.as_str(), case["effect"], "{case}: {verdict:?}");
    }
}

fn sources(case: &Value) -> Sources {
    let version = |text: &Value| parse_rhcos(text.as_str().unwrap()).unwrap();
    let own = |key: &str| text(&case[key]).map(str::to_owned);
    Sources {
        annotation: own("annotation"),
        catalogues: case["catalogue"].as_array().into_iter().flatten().map(version).collect(),
        catalogue_waits: own("waits"),
        names: text(&case["name"]).and_then(in_name).into_iter().collect(),
        updater: own("updater").into_iter().collect(),
        aleph: own("aleph"),
        install: text(&case["install"]).map(|it| Release::parse(it).unwrap()),
        problem: own("problem"),
    }
}

#[test]
fn an_image_is_judged_as_the_cases_say() {
    for case in read("rule.yaml", 30) {
        let (release, _, stream) = streams(&case, Some(("4.22.0", "4.12.0")));
        let found = sources(&case).best();
        let verdict = judge(&found, &Limits::of(release, &stream, &asked(&case)), &stream);
        let expect = &case["expect"];
        assert_eq!(found.by().as_str(), expect["by"], "{case}: {found:?}");
        assert_eq!(verdict.outcome.as_str(), expect["outcome"], "{case}: {verdict:?}");
        assert_eq!(verdict.reason.as_str(), expect["reason"], "{case}: {verdict:?}");
        let says = text(&expect["says"]).unwrap_or_default();
        assert!(verdict.message.contains(says), "{case}: {verdict:?}");
        assert!(!verdict.message.chars().any(tread_model::text::is_unfit), "{case}: {verdict:?}");
    }
}

fn mode(said: &Value) -> Mode {
    match said {
        Value::Null => Mode::Automatic,
        Value::String(word) if word == "Automatic" => Mode::Automatic,
        Value::String(word) if word == "None" => Mode::None,
        other => {
            let manual = &other["Manual"];
            match (text(&manual["ocpVersion"]), text(&manual["rhcosVersion"])) {
                (Some(version), None) => Mode::Manual(Recorded::Openshift(version.to_owned())),
                (None, Some(version)) => Mode::Manual(Recorded::Rhcos(version.to_owned())),
                _ => panic!("{other} is no mode"),
            }
        }
    }
}

#[test]
fn a_resource_is_judged_as_the_cases_of_its_cluster_say() {
    for case in read("resource.yaml", 10) {
        let (release, _, stream) = streams(&case, Some(("4.22.0", "4.12.0")));
        let image = text(&case["image"]).map(str::to_owned);
        let found = Sources { annotation: image, ..Sources::default() }.best();
        let limits = Limits::of(release, &stream, &[]);
        let (mode, nothing) = (mode(&case["mode"]), text(&case["nothing"]));
        let verdict = judge_resource(&mode, nothing, &found, &limits, &stream);
        let expect = &case["expect"];
        assert_eq!(verdict.outcome.as_str(), expect["outcome"], "{case}: {verdict:?}");
        assert_eq!(verdict.reason.as_str(), expect["reason"], "{case}: {verdict:?}");
        let says = text(&expect["says"]).unwrap_or_default();
        assert!(verdict.message.contains(says), "{case}: {verdict:?}");
    }
}

#[test]
fn a_cluster_is_judged_as_the_cases_say() {
    for case in read("cluster.yaml", 15) {
        let (release, stream, _) = streams(&case, Some(("4.22.0", "4.12.0")));
        let updater = match (text(&case["degraded"]), text(&case["progressing"])) {
            (Some(message), _) => Updater::Degraded(message.to_owned()),
            (None, Some(waits)) => Updater::Progressing(waits.to_owned()),
            (None, None) => Updater::Quiet,
        };
        let strings = |value: &Value| -> Vec<String> {
            value
                .as_array()
                .into_iter()
                .flatten()
                .map(|it| it.as_str().unwrap().to_owned())
                .collect()
        };
        let images: Vec<_> = case["images"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, version)| {
                let (name, label) = match name.split_once('@') {
                    Some((name, label)) => (name, Some(label)),
                    None => (name.as_str(), None),
                };
                let version = text(version).filter(|it| *it != "unknown");
                let said = Sources { annotation: version.map(str::to_owned), ..Sources::default() };
                (name.to_owned(), Stream::of_resource(label, &stream), said.best())
            })
            .collect();
        let verdict = judge_cluster(&Question {
            mode: &mode(&case["mode"]),
            nothing: text(&case["nothing"]),
            updater: &updater,
            waits: &strings(&case["waits"]),
            limits: &Limits::of(release, &stream, &asked(&case)),
            stream: &stream,
            images: &images,
        });
        let expect = &case["expect"];
        assert_eq!(verdict.outcome.as_str(), expect["outcome"], "{case}: {verdict:?}");
        assert_eq!(verdict.reason.as_str(), expect["reason"], "{case}: {verdict:?}");
        let says = text(&expect["says"]).unwrap_or_default();
        assert!(verdict.message.contains(says), "{case}: {verdict:?}");
    }
}

#[test]
fn where_openshift_differs_the_difference_is_defended() {
    for case in read("openshift.yaml", 24) {
        let (release, stream, _) = streams(&case, Some(("4.22.0", "4.12.0")));
        // Its tests say what the status is, and not what the updater manages.
        let mut status = case["status"].clone();
        if status["bootImageSkewEnforcementStatus"]["mode"] == "Automatic" {
            status["managedBootImagesStatus"] = serde_json::json!({"machineManagers": [{
                "apiGroup": "machine.openshift.io", "resource": "machinesets",
                "selection": {"mode": "All"},
            }]});
        }
        let object = serde_json::json!({ "status": status });
        let object = case["status"].is_object().then_some(&object);
        let theirs = match operator::check(release, object) {
            None => "no check",
            Some(check) if check.blocks => "blocks",
            Some(_) => "passes",
        };
        assert_eq!(theirs, case["openshift"], "{case}");

        let managed = operator::manages(object, "machinesets", &Default::default());
        let said = Sources {
            updater: if managed { operator::recorded(object) } else { Vec::new() },
            ..Sources::default()
        };
        let verdict = rule::judge_cluster(&Question {
            mode: &mode(&case["tread mode"]),
            nothing: None,
            updater: &operator::updater(object),
            waits: &[],
            limits: &Limits::of(release, &stream, &[]),
            stream: &stream,
            images: &[("a".to_owned(), stream.clone(), said.best())],
        });
        assert_eq!(verdict.outcome.as_str(), case["tread"], "{case}: {verdict:?}");
        let alike = matches!(
            (theirs, verdict.outcome.as_str()),
            ("blocks", "Blocks") | ("passes", "Passes")
        );
        assert_eq!(
            alike,
            case["because"].is_null(),
            "{case}: a difference is defended, and only that"
        );
        // What the other side lets pass, tread may hold back; never the other way round.
        assert!(theirs != "blocks" || verdict.outcome.as_str() == "Blocks", "{case}");
    }
}
