//! The cases that an admin can read.

use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tread_model::digest::Digest;
use tread_model::joining::{
    Asked, Boots, Claim, Determined, Facts, Id, KUBELET, Key, Known, Labels, Mark, PoolFacts,
    Requirement, Settled, Shown, asked, determined, in_version, served, settle, with_claim,
    without_claim,
};

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Case {
    Accept {
        #[serde(default, rename = "title")]
        _title: String,
        accept: String,
        served: String,
    },
    Version {
        title: String,
        config: Value,
        asked: Option<u8>,
        served: Option<Value>,
        #[serde(default)]
        lacks: Vec<String>,
    },
    Kubelet {
        #[serde(default)]
        title: String,
        kubelet: String,
        written: Option<String>,
        refused: Option<String>,
    },
    Kubelets {
        title: String,
        files: BTreeMap<String, String>,
        #[serde(default)]
        unit: String,
        serves: Option<bool>,
        #[serde(default)]
        says: Vec<String>,
    },
    Node(Box<Node>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Node {
    node: String,
    claim: Option<String>,
    #[serde(default = "infra")]
    pool: String,
    #[serde(default)]
    issued: u64,
    #[serde(default)]
    registered: u64,
    by: Option<String>,
    last: Option<String>,
    #[serde(default, rename = "labels given")]
    given: Labels,
    joins: Option<String>,
    #[serde(default)]
    labels: Labels,
    held: Option<String>,
    #[serde(default)]
    binds: bool,
    #[serde(default)]
    unreadable: Vec<String>,
    #[serde(default)]
    says: Vec<String>,
}

fn infra() -> String {
    "infra".to_owned()
}

fn cases() -> Vec<Case> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/joining.yaml");
    let cases = std::fs::read_to_string(path).unwrap();
    let cases: Vec<Case> = serde_saphyr::from_multiple(&cases).unwrap();
    assert!(cases.len() >= 40, "{}", cases.len());
    cases
}

#[test]
fn a_machine_is_served_the_newest_version_that_both_sides_know() {
    for case in cases() {
        let Case::Accept { accept, served, .. } = case else { continue };
        let word = match asked(&accept) {
            Asked::Three(minor) => format!("3.{minor}"),
            Asked::Any => "any".to_owned(),
            Asked::Older => "older".to_owned(),
        };
        assert_eq!(word, served, "{accept}");
    }
}

#[test]
fn a_config_says_the_same_in_the_version_that_is_asked_for_or_names_what_that_lacks() {
    for case in cases() {
        let Case::Version { title, mut config, asked, served, lacks } = case else { continue };
        match in_version(&mut config, asked) {
            Ok(_) => assert_eq!(Some(config), served, "{title}"),
            Err(error) => {
                assert_eq!(error.fields, lacks, "{title}");
                assert!(error.to_string().contains(&lacks[0]), "{title}: {error}");
            }
        }
    }
}

#[test]
fn a_claim_is_written_into_a_kubelets_configuration_and_nothing_else_changes() {
    for case in cases() {
        let Case::Kubelet { title, kubelet, written, refused } = case else { continue };
        match with_claim(&kubelet, "CLAIM") {
            Ok(text) => {
                assert_eq!(Some(&text), written.as_ref(), "{title}");
                assert_eq!(without_claim(&text), Some(kubelet.clone()), "{title}");
                assert_eq!(without_claim(&kubelet), None, "{title}");
            }
            Err(why) => {
                let refused = refused.unwrap_or_else(|| panic!("{title}: {why}"));
                assert!(why.to_string().contains(&refused), "{title}: {why}");
            }
        }
    }
}

#[test]
fn what_beats_a_claim_in_the_kubelets_configuration_keeps_machines_from_being_served() {
    for case in cases() {
        let Case::Kubelets { title, mut files, unit, serves, says } = case else { continue };
        files.insert(KUBELET.to_owned(), "kind: KubeletConfiguration\n".to_owned());
        let file = |(path, text): (&String, &String)| {
            let text: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
            json!({"path": path, "contents": {"source": format!("data:,{text}")}})
        };
        let files: Vec<Value> = files.iter().map(file).collect();
        let mut config = json!({"ignition": {"version": "3.4.0"}, "storage": {"files": files}});
        if !unit.is_empty() {
            config["systemd"] = json!({"units": [{"name": "kubelet.service", "contents": unit}]});
        }
        let spec = json!({"config": config});
        let boots = Boots {
            pool: "infra",
            config: "rendered-infra-1",
            digest: Digest::of(b""),
            spec: &spec,
            kubelet: KUBELET,
            bootstrap: None,
        };
        match served(&boots, None) {
            Ok(_) => assert_eq!(serves, Some(true), "{title}"),
            Err(why) => {
                let why = why.to_string();
                assert!(serves.is_none() && !says.is_empty(), "{title}: {why}");
                assert!(says.iter().all(|says| why.contains(says)), "{title}: {why}");
            }
        }
    }
}

/// An hour, in seconds; all times of the cases are after one of long ago.
const HOUR: u64 = 3600;
const BEGIN: u64 = 1_700_000_000;

fn pools() -> BTreeMap<String, PoolFacts> {
    let role = |name: &str| format!("node-role.kubernetes.io/{name}");
    let by_role = |name: &str| determined([(role(name).as_str(), "")], []);
    let values = ["a".to_owned(), "b".to_owned()];
    let a100 = ["a100".to_owned()];
    let expression = |key, operator, values| Requirement { key, operator, values };
    let gpu = [expression("accelerator", "In", &a100[..]), expression("gpu", "Exists", &[])];
    let all = [
        ("infra", by_role("infra")),
        ("worker", by_role("worker")),
        ("gpu", determined([], gpu)),
        ("edge", determined([], [expression("site", "In", &values[..])])),
    ];
    let facts =
        |(name, labels): (&str, _)| (name.to_owned(), PoolFacts { name: name.to_owned(), labels });
    all.map(facts).into()
}

/// Where a node belongs: one pool of its own name beats worker.
fn place(pools: &BTreeMap<String, PoolFacts>, labels: &Labels) -> Vec<String> {
    let has = |wanted: &Determined| {
        wanted.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && wanted.any_value.iter().all(|key| labels.contains_key(key))
    };
    let all = pools.values().filter(|pool| pool.labels.as_ref().is_ok_and(has));
    let mut all: Vec<String> = all.map(|pool| pool.name.clone()).collect();
    if all.len() > 1 {
        all.retain(|name| name != "worker");
    }
    all
}

#[test]
fn a_node_joins_by_its_claim_once_or_is_held_as_the_cases_say() {
    let [newest, former, foreign] = [1, 2, 3].map(|it| Key::of([it; 32]));
    let keys = [newest.clone(), former.clone()];
    let pools = pools();
    for case in cases() {
        let Case::Node(case) = case else { continue };
        let mark = |pool: &str| Mark::of_pool(&format!("uid-of-{pool}"));
        let claim = Claim {
            pool: mark(&case.pool),
            config: Mark::of_config("rendered-infra-1"),
            issued: BEGIN + case.issued * HOUR,
            id: Id([7; 8]),
        };
        let text = match case.claim.as_deref() {
            None => claim.signed(&newest),
            Some("former") => claim.signed(&former),
            Some("foreign") => claim.signed(&foreign),
            Some("altered") => Claim { issued: claim.issued + 1, ..claim }
                .signed(&newest)
                .chars()
                .zip(claim.signed(&newest).chars())
                .enumerate()
                .map(|(at, (one, other))| if at < 40 { one } else { other })
                .collect(),
            Some(other) => other.to_owned(),
        };
        let facts = Facts {
            node: "a",
            registered: BEGIN + case.registered * HOUR,
            claim: &text,
            labels: &case.given,
        };
        let named = |mark: Mark| {
            let is_it = |name: &&String| Mark::of_pool(&format!("uid-of-{name}")) == mark;
            pools.get(pools.keys().find(is_it)?).cloned()
        };
        let by = |id: Id| {
            assert_eq!(id, claim.id);
            let known = |node: &String| Known {
                node: node.clone(),
                pool: case.last.as_deref().map(mark),
                config: Some(claim.config),
            };
            case.by.as_ref().map(known)
        };
        let lasts = Duration::from_secs(24 * HOUR);
        let place = |labels: &Labels| match case.unreadable.as_slice() {
            [] => Ok(place(&pools, labels)),
            all => Err(all.to_vec()),
        };
        match settle(&facts, &keys, lasts, by, named, place) {
            Settled::Joins(joins) => {
                assert_eq!(joins.mark, mark(&joins.pool), "{}", case.node);
                assert_eq!(Some(joins.pool), case.joins, "{}", case.node);
                assert_eq!(joins.labels, case.labels, "{}", case.node);
                assert_eq!(joins.claim, claim.id);
            }
            Settled::Held(held, shown) => {
                let pool = mark(case.last.as_ref().unwrap_or(&case.pool));
                let bound = Shown { claim: claim.id, config: claim.config, pool };
                assert_eq!(shown, case.binds.then_some(bound), "{}: {held}", case.node);
                assert_eq!(Some(held.word()), case.held.as_deref(), "{}: {held}", case.node);
                let says = held.says("a");
                assert!(says.contains("tread pools admit a --pool"), "{says}");
                for words in &case.says {
                    assert!(says.contains(words), "{}: {says}", case.node);
                }
            }
        }
    }
}
