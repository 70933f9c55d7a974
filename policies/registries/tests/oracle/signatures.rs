//! Pairs that differ in policy.json.

use crate::chance::Chance;
use crate::node::{Node, Pair};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use tread_policy_registries::Settings;

const TYPES: &[&str] =
    &["insecureAcceptAnything", "reject", "signedBy", "signedBaseLayer", "sigstoreSigned"];
const IDENTITIES: &[&str] = &[
    "matchExact",
    "matchRepoDigestOrExact",
    "matchRepository",
    "exactReference",
    "exactRepository",
    "remapIdentity",
];
const NAMES: &[&str] = &[
    "a.io/p",
    "a.io/p:1",
    "a.io:5000/p/q:1",
    "app",
    "app:1",
    "org/app",
    "Org/app",
    "Org/app:1",
    "a.io/Up",
    "a_b.io/p",
    "a_b.io/p:1",
    "[fd00::1]:5000/p",
    "[fd00::1]:5000/p:1",
    "[fd00::1]",
    "a.io",
    "a.io:5000",
    "localhost",
    "localhost/p:1",
    "a.io/p@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "a.io/p@sha256:0123",
    "a.io/p:1@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "",
    "a.io//p",
    "*.a.io",
];
const TRANSPORTS: &[&str] = &[
    "docker",
    "docker",
    "docker",
    "atomic",
    "dir",
    "oci",
    "oci-archive",
    "sif",
    "docker-archive",
    "docker-daemon",
    "tarball",
    "containers-storage",
    "unknown",
];
const SCOPES: &[&str] = &[
    "",
    "a.io",
    "a.io:5000/p",
    "*.a.io",
    "[fd00::1]:5000/p",
    "a.io/p:1",
    "a.io/p/q/r",
    "a.io/p:1/q",
    "/",
    "/var/lib/images",
    "/var//lib",
    "/var/../lib",
    "var",
    "/a:b",
    "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "[overlay@/var/lib/containers/storage]",
];
const FIELDS: &[&str] = &[
    "keyType",
    "keyPath",
    "keyPaths",
    "keyData",
    "keyDatas",
    "signedIdentity",
    "baseLayerIdentity",
    "fulcio",
    "pki",
    "rekorPublicKeyPath",
    "rekorPublicKeyPaths",
    "rekorPublicKeyData",
    "rekorPublicKeyDatas",
    "type",
    "Type",
    "other",
];
const PIECES: &[&str] = &["{", "}", "[]", ",", "null", "\"default\": []", "x", " ", "\"a\": 1,"];

fn identity(chance: &mut Chance) -> Value {
    let kind = chance.of(IDENTITIES);
    let mut fields = json!({ "type": kind });
    match kind {
        "exactReference" => fields["dockerReference"] = chance.of(NAMES).into(),
        "exactRepository" => fields["dockerRepository"] = chance.of(NAMES).into(),
        "remapIdentity" => {
            fields["prefix"] = chance.of(NAMES).into();
            fields["signedPrefix"] = chance.of(NAMES).into();
        }
        _ => {}
    }
    if chance.percent(5) {
        fields[chance.of(&["prefix", "other", "dockerReference"])] = odd(chance);
    }
    fields
}

fn odd(chance: &mut Chance) -> Value {
    chance.of(&[
        json!(null),
        json!(1),
        json!(""),
        json!("x"),
        json!([]),
        json!({}),
        json!(["Zm9v"]),
    ])
}

fn field(chance: &mut Chance, name: &str) -> Value {
    if chance.percent(6) {
        return odd(chance);
    }
    match name {
        "keyType" => chance.of(&["GPGKeys", "GPGKeys", "X509Certificates", "gpg"]).into(),
        "signedIdentity" | "baseLayerIdentity" => identity(chance),
        "fulcio" => json!({ "caPath": "/ca", "oidcIssuer": "i", "subjectEmail": "e" }),
        "pki" => json!({ "caRootsPath": "/ca", "subjectEmail": "e" }),
        name if name.ends_with("Paths") => json!(["/key", "/other"]),
        name if name.ends_with("Datas") => json!(["Zm9v", "YmE="]),
        name if name.ends_with("Data") => {
            chance.of(&["Zm9v", "Zm9v", "Zm9", "Zm9v\n", "YmE=", "", "*"]).into()
        }
        _ => "/key".into(),
    }
}

fn requirement(chance: &mut Chance) -> Value {
    let kind = chance.of(TYPES);
    let mut fields = Map::new();
    fields.insert("type".into(), kind.into());
    let mut wanted: Vec<&str> = match kind {
        "signedBy" => vec!["keyType", chance.of(&["keyPath", "keyPaths", "keyData"])],
        "signedBaseLayer" => vec!["baseLayerIdentity"],
        "sigstoreSigned" => match chance.below(4) {
            0 => vec!["fulcio", chance.of(&["rekorPublicKeyPath", "rekorPublicKeyDatas"])],
            1 => vec!["pki"],
            _ => vec![chance.of(&["keyPath", "keyPaths", "keyData", "keyDatas"])],
        },
        _ => vec![],
    };
    if matches!(kind, "signedBy" | "sigstoreSigned") && chance.percent(60) {
        wanted.push("signedIdentity");
    }
    if chance.percent(8) {
        wanted.push(chance.of(FIELDS));
    }
    for name in wanted {
        fields.insert(name.to_string(), field(chance, name));
    }
    if chance.percent(4) {
        let name = chance.of(FIELDS);
        fields.remove(name);
    }
    Value::Object(fields)
}

fn requirements(chance: &mut Chance) -> Value {
    let count = if chance.percent(3) { 0 } else { 1 + chance.below(2) };
    (0..count).map(|_| requirement(chance)).collect()
}

fn policy(chance: &mut Chance) -> String {
    let mut policy = json!({});
    if chance.percent(97) {
        let simple = json!([{ "type": "insecureAcceptAnything" }]);
        policy["default"] = if chance.percent(60) { simple } else { requirements(chance) };
    }
    for _ in 0..chance.below(3) {
        let (transport, scope) = (chance.of(TRANSPORTS), chance.of(SCOPES));
        policy["transports"][transport][scope] = requirements(chance);
    }
    if chance.percent(3) {
        policy[chance.of(&["other", "transports", "Default"])] = odd(chance);
    }
    let text = serde_json::to_string_pretty(&policy).unwrap();
    if chance.percent(10) { chance.spoiled(&text, PIECES) } else { text }
}

pub(crate) fn pair(chance: &mut Chance) -> Pair {
    let (mut before, mut after) = (Node::default(), Node::default());
    before.set_policy("{\"default\": [{\"type\": \"insecureAcceptAnything\"}]}".to_string());
    after.set_policy(policy(chance));
    Pair { before, after, names: BTreeSet::new(), settings: Settings::default() }
}
