//! Sets of mirror objects as an admin would write them, and as nobody should.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

/// What is rendered.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// The file that is rendered over, unless it is the one that each node has.
    pub(crate) template: Option<String>,
    pub(crate) objects: Vec<Value>,
    /// The objects that there were before, over a template without entries.
    pub(crate) earlier: Vec<Value>,
    /// Scopes of the cluster's image configuration.
    pub(crate) insecure: Vec<String>,
    pub(crate) blocked: Vec<String>,
}

/// Scopes that lie inside one another, or only look like it.
const SCOPES: [&str; 16] = [
    "example.com",
    "a.example.com",
    "a.example.com/team",
    "a.example.com/team/app",
    "a.example.com/team/app/web",
    "a.example.com/teams",
    "a.example.com:5000",
    "a.example.com:5000/team",
    "b.a.example.com/team",
    "c.b.a.example.com",
    "notexample.com/team",
    "quay.io",
    "quay.io/team/app",
    "quay.io/a.example.com",
    "localhost:5000/x__y/z-z.z",
    "mirror",
];

const WILDCARDS: [&str; 4] = ["*.example.com", "*.a.example.com", "*.com", "*.b.a.example.com"];

/// Places that mirror others.
const MIRRORS: [&str; 7] = [
    "m.io",
    "m.io/cache",
    "m.io:8443/cache/team",
    "n.io/cache",
    "mirror.example.com/a",
    "o.io/a",
    "MIRROR.local",
];

/// What is no scope, or hardly one.
const HOSTILE: [&str; 28] = [
    "",
    "*",
    "*.",
    "*.*.com",
    "a.*.com",
    "*.example.com/team",
    "*.example.com:5000",
    "*example.com",
    "https://quay.io",
    "quay.io/",
    "quay.io//app",
    "quay.io/App",
    "quay.io/app:v1",
    "quay.io:443/app",
    "quay.io:/app",
    "quay.io:x",
    "quay.io/app@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "quay.io/a___b",
    "quay.io/a..b",
    "quay.io/a--b",
    "quay.io/-a",
    "-a.io",
    "a-.io/b",
    "a..io",
    "[::1]:5000/app",
    " quay.io",
    "quay.io\n/app",
    "qu\u{e4}y.io",
];

fn source() -> impl Strategy<Value = String> {
    prop_oneof![
        80 => select(&SCOPES[..]),
        15 => select(&WILDCARDS[..]),
        1 => select(&HOSTILE[..]),
    ]
    .prop_map(str::to_owned)
}

fn mirror() -> impl Strategy<Value = String> {
    prop_oneof![
        80 => select(&MIRRORS[..]),
        20 => select(&SCOPES[..]),
        1 => select(&HOSTILE[..]),
        1 => select(&WILDCARDS[..]),
    ]
    .prop_map(str::to_owned)
}

/// One set of an object. `odd` is how its policy is written, or that it is another one
/// than elsewhere.
#[derive(Debug, Clone)]
struct Set {
    source: String,
    mirrors: Vec<String>,
    repeats_source: bool,
    odd: u8,
}

fn set() -> impl Strategy<Value = Set> {
    let repeats = prop::bool::weighted(0.1);
    (source(), vec(mirror(), 0..5), repeats, 0_u8..100).prop_map(
        |(source, mirrors, repeats_source, odd)| Set { source, mirrors, repeats_source, odd },
    )
}

#[derive(Debug, Clone)]
struct Object {
    kind: usize,
    name: String,
    sets: Vec<Set>,
}

const KINDS: [(&str, &str, &str); 3] = [
    ("operator.openshift.io/v1alpha1", "ImageContentSourcePolicy", "repositoryDigestMirrors"),
    ("config.openshift.io/v1", "ImageDigestMirrorSet", "imageDigestMirrors"),
    ("config.openshift.io/v1", "ImageTagMirrorSet", "imageTagMirrors"),
];

fn object() -> impl Strategy<Value = Object> {
    (0..KINDS.len(), "[a-d]{1,2}", vec(set(), 0..4)).prop_map(|(kind, name, sets)| Object {
        kind,
        name,
        sets,
    })
}

/// The object as it is written. `never` are the sources that are never contacted, in
/// whatever object they are named.
fn written(object: &Object, never: &[String]) -> Value {
    let (api, kind, list) = KINDS.get(object.kind).expect("a kind");
    let set = |set: &Set| {
        let mut fields = Map::new();
        let is_never = never.contains(&set.source) && *kind != "ImageContentSourcePolicy";
        let policy = match set.odd {
            // A source that is contacted here, and not elsewhere.
            0 | 1 => Some(if is_never { "AllowContactingSource" } else { "NeverContactSource" }),
            2 => Some("Never"),
            _ if is_never => Some("NeverContactSource"),
            3..=30 => Some("AllowContactingSource"),
            31..=35 => Some(""),
            _ => None,
        };
        if let Some(policy) = policy.filter(|_| *kind != "ImageContentSourcePolicy") {
            fields.insert("mirrorSourcePolicy".to_owned(), json!(policy));
        }
        let mut mirrors = set.mirrors.clone();
        if policy == Some("NeverContactSource") && set.odd < 90 {
            mirrors.retain(|mirror| *mirror != set.source);
        } else if set.repeats_source {
            mirrors.insert(usize::from(set.odd) % (mirrors.len() + 1), set.source.clone());
        }
        fields.insert("source".to_owned(), json!(set.source));
        fields.insert("mirrors".to_owned(), json!(mirrors));
        Value::Object(fields)
    };
    let sets: Vec<Value> = object.sets.iter().map(set).collect();
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": object.name}, "spec": {*list: sets}})
}

/// An entry of a file that is rendered over.
fn entry() -> impl Strategy<Value = toml::Table> {
    let pull = select(vec![None, None, Some("all"), Some("digest-only"), Some("tag-only")]);
    let mirror =
        (mirror(), pull, prop::bool::weighted(0.1)).prop_map(|(location, pull, insecure)| {
            let mut table = toml::Table::new();
            table.insert("location".to_owned(), location.into());
            if let Some(pull) = pull {
                table.insert("pull-from-mirror".to_owned(), pull.into());
            }
            if insecure {
                table.insert("insecure".to_owned(), true.into());
            }
            table
        });
    let flags = (
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.05),
        prop::bool::weighted(0.2),
    );
    let mirrors = prop_oneof![2 => Just(Vec::new()), 1 => vec(mirror, 1..3)];
    (source(), mirrors, flags).prop_map(|(scope, mirrors, (blocked, insecure, digest, both))| {
        let mut table = toml::Table::new();
        let wild = scope.starts_with("*.");
        if wild || both {
            table.insert("prefix".to_owned(), scope.clone().into());
        }
        if !wild {
            table.insert("location".to_owned(), scope.into());
        }
        for (key, flag) in
            [("blocked", blocked), ("insecure", insecure), ("mirror-by-digest-only", digest)]
        {
            if flag {
                table.insert(key.to_owned(), true.into());
            }
        }
        if !mirrors.is_empty() {
            table.insert("mirror".to_owned(), mirrors.into());
        }
        table
    })
}

fn template() -> impl Strategy<Value = Option<String>> {
    let search = select(vec![None, Some(vec![]), Some(vec!["quay.io", "a.example.com:5000"])]);
    let file = (search, vec(entry(), 0..4)).prop_map(|(search, entries)| {
        let mut file = toml::Table::new();
        if let Some(search) = search {
            file.insert("unqualified-search-registries".to_owned(), search.into());
        }
        if !entries.is_empty() {
            file.insert("registry".to_owned(), entries.into());
        }
        Some(file.to_string())
    });
    prop_oneof![1 => Just(None), 2 => file]
}

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    let scopes = || {
        let scope = prop_oneof![8 => select(&SCOPES[..]), 1 => select(&WILDCARDS[..]), 2 => select(&MIRRORS[..])];
        prop_oneof![1 => Just(Vec::new()), 1 => vec(scope.prop_map(str::to_owned), 1..4)]
    };
    let never = vec(source(), 0..4);
    let objects = || vec(object(), 0..5);
    (template(), objects(), objects(), never, scopes(), scopes()).prop_map(
        |(template, objects, earlier, never, insecure, blocked)| {
            let write = |all: &[Object]| all.iter().map(|object| written(object, &never)).collect();
            Case { template, objects: write(&objects), earlier: write(&earlier), insecure, blocked }
        },
    )
}

/// Names of images that the scopes of a case say something of.
pub(crate) fn names() -> Vec<String> {
    let digest = format!("sha256:{}", "0".repeat(64));
    let repositories = SCOPES.iter().chain(&MIRRORS).filter(|scope| scope.contains('.'));
    let all = repositories.flat_map(|scope| [format!("{scope}/web"), format!("{scope}/web/ui")]);
    all.flat_map(|name| [format!("{name}:1"), format!("{name}@{digest}")]).collect()
}
