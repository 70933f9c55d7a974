//! Mirror objects into registries.conf: the cases in `tests/cases/mirrors`, and
//! what holds for all objects.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails the test"
)]

use proptest::prelude::*;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use tread_model::config::{File, NodeConfig, Source};
use tread_model::contents::decode;
use tread_model::mirrors::{REGISTRIES_CONF, Rerendered, apply, rerender};
use tread_model::problem::Problems;
use tread_model::read::{Input, MirrorKind, MirrorObject, document_values};

fn object(value: &Value) -> MirrorObject {
    let kind = match value["kind"].as_str() {
        Some("ImageContentSourcePolicy") => MirrorKind::Icsp,
        Some("ImageDigestMirrorSet") => MirrorKind::Idms,
        Some("ImageTagMirrorSet") => MirrorKind::Itms,
        other => panic!("{other:?} is no kind of mirrors"),
    };
    MirrorObject {
        kind,
        name: value["metadata"]["name"].as_str().expect("a name").to_owned(),
        value: value.clone(),
        file: "mirrors.yaml".to_owned(),
        document: String::new(),
    }
}

fn file(path: &str, text: &str) -> File<'static> {
    File {
        path: Cow::Owned(path.to_owned()),
        contents: Source { url: Some(Cow::Owned(format!("data:,{}", escape(text)))), gzip: false },
        mode: Some(0o600),
        user: Cow::Borrowed("root"),
        group: Cow::Borrowed("root"),
        appends: false,
        needs_source: false,
        raw: b"",
        origin: Default::default(),
    }
}

fn escape(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The registries.conf that a side ends up with.
fn render(base: Option<&str>, objects: &[MirrorObject]) -> Result<Option<String>, Problems> {
    let files = vec![file("/etc/chrony.conf", ""), file("/etc/zzz", "")];
    let mut config = NodeConfig { files, ..NodeConfig::default() };
    if let Some(base) = base {
        config.files.insert(1, file(REGISTRIES_CONF, base));
    }
    apply(&mut config, objects)?;
    assert!(config.files.is_sorted_by(|a, b| a.path < b.path), "files stay sorted");
    let found = config.files.iter().find(|file| file.path == REGISTRIES_CONF);
    Ok(found.map(|file| {
        let bytes = decode(&file.contents).expect("a data URL").expect("inline");
        String::from_utf8(bytes.into_owned()).expect("text")
    }))
}

/// The cases that render over what a side has, or else anew.
fn cases(anew: bool) -> Vec<(PathBuf, Value)> {
    let mut cases = all_cases();
    cases.retain(|(_, case)| case.get("before").is_some() == anew);
    cases
}

fn all_cases() -> Vec<(PathBuf, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/mirrors");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("cases")
        .map(|entry| entry.expect("a case").path())
        .collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let bytes = std::fs::read(&path).expect("a case");
            let name = path.display().to_string();
            let mut documents =
                document_values(&Input { name: &name, bytes: &bytes }).expect("YAML");
            assert_eq!(documents.len(), 1, "{name}");
            (path, documents.remove(0).value)
        })
        .collect()
}

#[test]
fn objects_are_rendered_as_the_cases_say() {
    let cases = cases(false);
    assert!(cases.len() >= 16, "{} cases", cases.len());
    for (path, case) in cases {
        let name = path.display();
        let objects: Vec<_> =
            case["objects"].as_array().expect("objects").iter().map(object).collect();
        let rendered = render(case["base"].as_str(), &objects);
        let Some(errors) = case.get("errors") else {
            let text = rendered.unwrap_or_else(|problems| panic!("{name}: {problems}"));
            assert_eq!(text.as_deref(), case.get("expect").and_then(Value::as_str), "{name}");
            continue;
        };
        let problems = rendered.expect_err("errors").0;
        let errors = errors.as_array().expect("errors");
        assert_eq!(problems.len(), errors.len(), "{name}: {problems:?}");
        for (problem, error) in problems.iter().zip(errors) {
            let (field, word) =
                error.as_str().and_then(|e| e.split_once(": ")).expect("FIELD: WORDS");
            assert_eq!(problem.path, field, "{name}: {problem}");
            assert!(problem.message.contains(word), "{name}: {problem}");
            assert_eq!(problem.file, "mirrors.yaml", "{name}");
        }
    }
}

fn objects_of(case: &Value) -> Vec<MirrorObject> {
    case["objects"].as_array().expect("objects").iter().map(object).collect()
}

#[test]
fn mirrors_are_rendered_anew_as_the_cases_say() {
    let cases = cases(true);
    assert!(cases.len() >= 4, "{} cases", cases.len());
    for (path, case) in cases {
        let name = path.display();
        let rejected: Vec<&str> =
            case["rejected"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let is_rejected = |scope: &str| rejected.contains(&scope);
        let render = |before: Option<&str>| {
            rerender(before, case["template"].as_str(), is_rejected, &objects_of(&case))
                .unwrap_or_else(|problems| panic!("{name}: {problems}"))
        };
        let rendered = render(case["before"].as_str());
        assert_eq!(rendered.text.as_deref(), case.get("expect").and_then(Value::as_str), "{name}");
        let doubts = case["doubts"].as_array().expect("doubts");
        assert_eq!(rendered.doubts.len(), doubts.len(), "{name}: {:?}", rendered.doubts);
        for (doubt, scope) in rendered.doubts.iter().zip(doubts) {
            assert!(doubt.contains(scope.as_str().expect("a scope")), "{name}: {doubt}");
        }
        if let Some(once) = &rendered.text {
            let again = render(Some(once));
            assert_eq!(
                again,
                Rerendered { text: Some(once.clone()), doubts: Vec::new() },
                "{name}"
            );
        }
    }
}

#[test]
fn more_mirrors_than_a_file_holds_are_passed_on_to_no_entry() {
    let set = |count: usize| {
        let mirrors: Vec<String> = (0..count).map(|n| format!("m{n}.io/team")).collect();
        object(&json!({
            "kind": "ImageDigestMirrorSet", "metadata": {"name": "all"},
            "spec": {"imageDigestMirrors": [{"source": "a.io", "mirrors": mirrors}]},
        }))
    };
    let base = |count: usize| -> String {
        (0..count).map(|n| format!("[[registry]]\nlocation = \"a.io/b{n}\"\n")).collect()
    };
    assert!(render(Some(&base(100)), &[set(1_000)]).is_ok());
    for (base, set) in [
        (base(1_000), set(1_000)),
        (format!("[[registry]]\nlocation = \"a.io{}\"\n", "/b".repeat(100_000)), set(1_000)),
    ] {
        let problems = render(Some(&base), &[set]).expect_err("too many").to_string();
        assert!(problems.contains("more than 16 MiB of mirrors"), "{problems}");
        assert!(problems.len() < 1_000, "{problems}");
    }
}

#[test]
fn rendering_again_changes_nothing() {
    for (path, case) in cases(false) {
        let objects: Vec<_> =
            case["objects"].as_array().expect("objects").iter().map(object).collect();
        let Ok(Some(once)) = render(case["base"].as_str(), &objects) else { continue };
        let again = render(Some(&once), &objects).expect("rendered before");
        assert_eq!(again.as_deref(), Some(once.as_str()), "{}", path.display());
    }
}

#[test]
fn the_file_is_written_with_its_defaults() {
    let objects = [object(&json!({
        "kind": "ImageDigestMirrorSet",
        "metadata": {"name": "a"},
        "spec": {"imageDigestMirrors": [{"source": "quay.io/app", "mirrors": ["m.io/app"]}]},
    }))];
    let mut config = NodeConfig::default();
    apply(&mut config, &objects).expect("rendered");
    let [file] = config.files.as_slice() else { panic!("{:?}", config.files) };
    assert_eq!((file.mode, file.user.as_ref(), file.group.as_ref()), (None, "root", "root"));
    assert_eq!((file.raw, file.appends), (b"".as_slice(), false));
}

#[test]
fn what_only_the_base_says_survives_in_meaning() {
    let base = "unqualified-search-registries = []\ncredential-helpers = [\"a\"]\n\"odd key\" = 'x\"y'\n\
                [[registry]]\nlocation = \"a.io\"\nodd = { x = 1 }\n[odder]\n[[odder.list]]\ny = 2\n";
    let objects = [object(&json!({
        "kind": "ImageTagMirrorSet",
        "metadata": {"name": "a"},
        "spec": {"imageTagMirrors": [{"source": "b.io", "mirrors": ["m.io"]}]},
    }))];
    let text = render(Some(base), &objects).expect("rendered").expect("a file");
    let expected: toml::Table = base.parse().expect("TOML");
    let mut found: toml::Table = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    let registries =
        found.get_mut("registry").and_then(toml::Value::as_array_mut).expect("registries");
    let added = registries.pop().expect("the new one");
    assert_eq!(added["location"].as_str(), Some("b.io"));
    registries[0].as_table_mut().expect("a table").remove("prefix");
    assert_eq!(found, expected, "{text}");
}

#[test]
fn a_base_that_cannot_be_extended_says_why() {
    let objects = [object(&json!({
        "kind": "ImageTagMirrorSet",
        "metadata": {"name": "a"},
        "spec": {"imageTagMirrors": [{"source": "b.io", "mirrors": ["m.io"]}]},
    }))];
    for (base, words) in [
        ("registry = 1", "its `registry` has to be a list of tables"),
        ("registry = [1]", "its `registry` has to be a list of tables"),
        ("[[registry]]\nlocation = 1", "its `location` has to be a string"),
        ("[[registry]]\nblocked = \"yes\"", "its `blocked` has to be true or false"),
        ("[[registry]]\nmirror = {}", "its `mirror` has to be a list of tables"),
        ("not toml", "it is no TOML"),
    ] {
        let problems = render(Some(base), &objects).expect_err(base);
        assert!(problems.to_string().contains(words), "{base}: {problems}");
    }
}

fn set() -> impl Strategy<Value = Value> {
    let mirror = prop::sample::select(vec!["s.io/a", "m.io/a", "n.io/a", "o.io", "p.io/b"]);
    let source = prop::sample::select(vec!["s.io/a", "s.io", "*.x.io", "t.io/b"]);
    (source, prop::collection::vec(mirror, 0..4))
        .prop_map(|(source, mirrors)| json!({"source": source, "mirrors": mirrors}))
}

fn any_object() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec![
        ("ImageContentSourcePolicy", "repositoryDigestMirrors"),
        ("ImageDigestMirrorSet", "imageDigestMirrors"),
        ("ImageTagMirrorSet", "imageTagMirrors"),
    ]);
    (kind, "[a-c]", prop::collection::vec(set(), 0..4)).prop_map(|((kind, list), name, sets)| {
        json!({"kind": kind, "metadata": {"name": name}, "spec": {list: sets}})
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_the_objects_does_not_matter(
        (objects, shuffled) in prop::collection::vec(any_object(), 0..5)
            .prop_flat_map(|objects| (Just(objects.clone()), Just(objects).prop_shuffle()))
    ) {
        let render = |objects: &[Value]| {
            let objects: Vec<_> = objects.iter().map(object).collect();
            render(Some("[[registry]]\nlocation = \"s.io/a/b\"\n"), &objects)
        };
        prop_assert_eq!(render(&objects), render(&shuffled));
    }

    /// Whatever stands in an object or in the base, it is rendered or refused.
    #[test]
    fn nothing_panics(base in "\\PC{0,60}", source in "\\PC{0,20}", mirror in "\\PC{0,20}") {
        let value = json!({
            "kind": "ImageDigestMirrorSet",
            "metadata": {"name": "a"},
            "spec": {"imageDigestMirrors": [{"source": source, "mirrors": [mirror]}]},
        });
        let _ = render(Some(&base), &[object(&value)]);
    }
}
