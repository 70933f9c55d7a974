//! Plans that are made together, of configs that are held once and with what was answered
//! before, are those that each pool would get by itself.

// Helpers of tests may fail as tests do.
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};
use tread_cluster::policies::current::Current;
use tread_cluster::pools::Pool;
use tread_cluster::previews::{
    Asked, Bodies, BodyKey, Generated, Parsed, Part, Piece, Preview, Side, Way, Work, compute,
};
use tread_engine::planner::{Answers, Remembered};
use tread_engine::policy::{Policy, PolicySet, Wishes};
use tread_engine::sandbox::{Options, Sandbox};
use tread_kube::api::disruption_plan::{Cause, CauseEvent};
use tread_model::operator;
use tread_model::plan::Plan;
use tread_model::verdict::Layer;

const ACTS: &[u8] = include_bytes!("../../../tests/contract/1.0.0/acts.wasm");
const ABSTAINS: &[u8] = include_bytes!("../../../tests/contract/1.0.0/abstains.wasm");
const REGISTRIES: &[u8] = include_bytes!("../../../policies/prebuilt/registries.wasm");

/// The name of the config that is new.
const NEW: &str = "60-new";

static SANDBOX: LazyLock<Sandbox> =
    LazyLock::new(|| Sandbox::new(Options { slots: 4, ..Options::default() }).unwrap());

static CURRENT: LazyLock<Current> = LazyLock::new(|| {
    let policy = |component: &'static [u8], layer| {
        let (wishes, limits) = (Wishes::default(), SANDBOX.limits());
        Policy::new(component.into(), None, layer, wishes, limits).unwrap()
    };
    let all = vec![
        policy(ACTS, Layer::Template),
        policy(ABSTAINS, Layer::Template),
        policy(REGISTRIES, Layer::Builtin),
    ];
    Current::new(PolicySet::new(all).unwrap(), None, true)
});

fn file() -> impl Strategy<Value = Value> {
    let mirrors = |mirror: &str| {
        format!(
            "[[registry]]\nlocation = \"quay.example\"\n[[registry.mirror]]\nlocation = \"{mirror}\"\n"
        )
    };
    let paths = [
        "/etc/a",
        "/etc/acts/reload",
        "/etc/acts/reload",
        "/etc/acts/restart",
        "/etc/containers/registries.conf",
        "/etc/containers/registries.conf.d/a.conf",
        "/etc/systemd/system/a.service.d/b.conf",
    ];
    let texts = [
        "a.service".to_owned(),
        "b.service".to_owned(),
        mirrors("one.example"),
        mirrors("two.example"),
        "[Service]\nExecStop=/usr/bin/systemctl reboot\n".to_owned(),
        "[Service]\nNice=5\n".to_owned(),
    ];
    let modes = [json!(0o644), json!(0o644), json!(0o600), Value::Null];
    (select(paths.to_vec()), select(texts.to_vec()), select(modes.to_vec())).prop_map(
        |(path, text, mode)| {
            let source = format!("data:,{}", text.replace(' ', "%20").replace('\n', "%0A"));
            json!({"path": path, "mode": mode, "contents": {"source": source}})
        },
    )
}

fn unit() -> impl Strategy<Value = Value> {
    let texts = [
        "[Service]\nExecStart=/bin/true\n",
        "[Unit]\nBindsTo=kubelet.service\n[Service]\nExecStart=/bin/true\n",
        "[Service]\nExecStart=/usr/bin/systemctl reboot\n",
    ];
    (select(vec!["a.service", "b.service"]), select(texts.to_vec()))
        .prop_map(|(name, text)| json!({"name": name, "contents": text}))
}

/// What one MachineConfig says.
fn spec() -> impl Strategy<Value = Value> {
    let distinct = |list: Vec<Value>, key: &str| {
        let mut names = Vec::new();
        let first = list.into_iter().filter(|it| {
            let is_new = !names.contains(&it[key]);
            names.push(it[key].clone());
            is_new
        });
        first.collect::<Vec<Value>>()
    };
    let rest = select(vec![
        json!({}),
        json!({}),
        json!({"kernelArguments": ["a"]}),
        json!({"osImageURL": "quay.example/os:1"}),
        json!({"config": {"passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["ssh a"]}]}}}),
        json!({"config": {"passwd": {"users": [{"name": "core", "passwordHash": "$6$a"}]}}}),
        json!({"config": {"storage": {"links": [{"path": "/etc/systemd/system/c.service",
            "target": "/etc/a"}]}}}),
    ]);
    (vec(file(), 0..4), vec(unit(), 0..2), rest).prop_map(move |(files, units, mut spec)| {
        let config = spec.as_object_mut().unwrap().entry("config").or_insert_with(|| json!({}));
        config["ignition"] = json!({"version": "3.4.0"});
        config["systemd"] = json!({"units": distinct(units, "name")});
        if config["storage"].is_null() {
            config["storage"] = json!({});
        }
        config["storage"]["files"] = json!(distinct(files, "path"));
        spec
    })
}

fn config(name: &str, spec: &Value) -> Arc<[u8]> {
    let object = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": name}, "spec": spec,
    });
    object.to_string().into_bytes().into()
}

fn mirror_set(mirror: &str) -> Arc<[u8]> {
    let object = json!({
        "apiVersion": "config.openshift.io/v1", "kind": "ImageDigestMirrorSet",
        "metadata": {"name": "quay"}, "spec": {"imageDigestMirrors": [
            {"source": "quay.example/a", "mirrors": [mirror]}]},
    });
    object.to_string().into_bytes().into()
}

/// How the nodes of a pool come by what they get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mirrors {
    None,
    /// The operator renders them into a config.
    Generated(&'static str),
    /// They are objects, since nobody renders.
    Objects(&'static str),
}

/// A pool: what its nodes have, and what it is made of, by number.
#[derive(Debug, Clone)]
struct Made {
    /// None: just what it is made of.
    from: Option<usize>,
    of: Vec<usize>,
    mirrors: Mirrors,
    has_image: bool,
}

#[derive(Debug, Clone)]
struct Cluster {
    specs: Vec<Value>,
    new: Value,
    pools: Vec<Made>,
}

const SPECS: usize = 5;

fn cluster() -> impl Strategy<Value = Cluster> {
    let mirrors = select(vec![
        Mirrors::None,
        Mirrors::None,
        Mirrors::Generated("one.example"),
        Mirrors::Generated("two.example"),
        Mirrors::Objects("one.example"),
    ]);
    // Few enough that several pools are often made of the same.
    let numbers: Vec<usize> = (0..SPECS).collect();
    let pool = (
        select(vec![None, None, None, Some(0), Some(1)]),
        subsequence(numbers, 0..=2),
        mirrors,
        any::<bool>(),
    )
        .prop_map(|(from, of, mirrors, has_image)| Made { from, of, mirrors, has_image });
    (vec(spec(), SPECS), spec(), vec(pool, 1..3), vec(0..3_usize, 1..6)).prop_map(
        |(specs, new, kinds, pools)| {
            let pools = pools.iter().map(|kind| kinds[kind % kinds.len()].clone()).collect();
            Cluster { specs, new, pools }
        },
    )
}

fn key(name: String) -> BodyKey {
    (name.into(), "1".into())
}

impl Cluster {
    fn bodies(&self) -> Bodies {
        let all = self.specs.iter().enumerate().flat_map(|(number, spec)| {
            [format!("{number:02}-config"), format!("rendered-a-{number}")]
                .map(|name| (key(name.clone()), config(&name, spec).into()))
        });
        all.collect()
    }

    /// What has to be compared for each pool, with a config that all of them get.
    fn works(&self) -> Vec<Work> {
        let new = Piece::given(NEW.to_owned(), config(NEW, &self.new));
        self.pools.iter().enumerate().map(|(number, pool)| work(number, pool, &new)).collect()
    }
}

fn work(number: usize, made: &Made, new: &Piece) -> Work {
    let mut configs: Vec<Piece> =
        made.of.iter().map(|of| Piece::Stored(key(format!("{of:02}-config")))).collect();
    configs.push(new.clone());
    let mirrors = |mirror: &str| {
        let name = "ImageDigestMirrorSet/quay".to_owned();
        vec![Piece::given(name, mirror_set(mirror))]
    };
    let rendered = key(format!("rendered-a-{}", made.from.unwrap_or_default()));
    let from = match made.from {
        Some(_) => Side::rendered(rendered.clone()),
        None => {
            let configs = configs.iter().filter(|it| it.name() != NEW).cloned().collect();
            Side { configs, ..Side::default() }
        }
    };
    let mut to = Side { configs, ..Side::default() };
    match made.mirrors {
        Mirrors::None => {}
        Mirrors::Objects(mirror) => to.mirrors = mirrors(mirror),
        Mirrors::Generated(mirror) => to.configs.push(Piece::Generated(Box::new(Generated {
            name: format!("99-pool-{number}-generated-registries"),
            before: None,
            templates: Vec::new(),
            mirrors: mirrors(mirror),
        }))),
    }
    to.os_image_of = made.has_image.then(|| rendered.clone());
    let cause = Cause {
        kind: "MachineConfig".to_owned(),
        name: NEW.to_owned(),
        event: CauseEvent::Created,
    };
    let way =
        Way { from: Some(from), from_name: rendered.0.to_string(), nodes: Default::default() };
    Work {
        pool: Arc::new(Pool { name: format!("pool-{number}"), ..Pool::default() }),
        ways: vec![way],
        to,
        to_name: String::new(),
        target: None,
        parts: vec![Part { cause, body: Some(new.clone()), mirrors: false }],
        operated: !matches!(made.mirrors, Mirrors::Objects(_)),
        rollout_paused: false,
        single_replica: false,
        since: String::new(),
        doubt: None,
    }
}

fn preview(
    work: Work,
    (bodies, parsed): (&Bodies, &Parsed),
    answers: &Answers,
    hides_secrets: bool,
) -> Preview {
    let asked = Asked {
        bodies,
        current: &CURRENT,
        operator: &operator::Policies::of(None),
        sandbox: &SANDBOX,
        answers,
        parsed,
        hides_secrets,
    };
    compute(work, &asked)
}

/// All that is shown of a preview.
fn all_of(preview: &Preview) -> impl PartialEq + std::fmt::Debug + use<> {
    let ways = preview.ways.iter().map(|way| {
        let way = way.plan.as_ref().map_err(Clone::clone);
        way.map(|way| (Plan::clone(&way.plan), way.operator.clone()))
    });
    let ways: Vec<_> = ways.collect();
    (ways, preview.ids.clone(), preview.secrets.clone(), preview.offered_secrets)
}

/// The same without digests of configs, which short plans do not have.
fn undigested(mut preview: Preview) -> Preview {
    for way in preview.ways.iter_mut().filter_map(|way| way.plan.as_mut().ok()) {
        let none = tread_model::digest::Digest::of(b"");
        let plan = Arc::make_mut(&mut way.plan);
        (plan.digest, plan.from, plan.to) = (none, none, none);
    }
    preview
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_pools_share_is_what_each_of_them_would_get_by_itself(
        cluster in cluster(), hides_secrets in any::<bool>(),
    ) {
        // Each pool with all read and asked anew.
        let alone = |work: usize, answers: &Answers| {
            let (bodies, work) = (cluster.bodies(), cluster.works().swap_remove(work));
            preview(work, (&bodies, &Parsed::default()), answers, hides_secrets)
        };
        let parsed = Parsed::default();
        let remembered = Arc::new(Remembered::default());
        let mut shared = 0;
        // The second time all of it is known already.
        for _ in 0..2 {
            let bodies = cluster.bodies();
            let answers = Answers::default().in_short().remembering(Arc::clone(&remembered));
            let works = cluster.works();
            let mut plans: Vec<Arc<Plan>> = Vec::new();
            for (number, work) in works.into_iter().enumerate() {
                let fast = preview(work, (&bodies, &parsed), &answers, hides_secrets);
                let slow = alone(number, &Answers::default().in_short());
                prop_assert_eq!(all_of(&fast), all_of(&slow), "pool {}", number);
                let whole = undigested(alone(number, &Answers::default()));
                prop_assert_eq!(all_of(&undigested(fast.clone())), all_of(&whole), "pool {}", number);
                for way in fast.ways.iter().filter_map(|way| way.plan.as_ref().ok()) {
                    shared += usize::from(plans.iter().any(|it| Arc::ptr_eq(it, &way.plan)));
                    plans.push(Arc::clone(&way.plan));
                }
            }
        }
        let same = cluster.pools.windows(2).any(|two| {
            two[0].from == two[1].from && two[0].of == two[1].of && two[0].mirrors == Mirrors::None
                && two[1].mirrors == Mirrors::None && two[0].has_image == two[1].has_image
        });
        let has_links = cluster.specs.iter().chain([&cluster.new]).any(|spec| {
            !spec["config"]["storage"]["links"].is_null()
        });
        prop_assert!(shared > 0 || !same || has_links, "nothing is shared");
    }
}

fn with_file(path: &str, text: &str) -> Value {
    let source = format!("data:,{}", text.replace(' ', "%20").replace('\n', "%0A"));
    json!({"config": {"ignition": {"version": "3.4.0"},
        "storage": {"files": [{"path": path, "contents": {"source": source}}]}}})
}

fn with_unit(text: &str) -> Value {
    json!({"config": {"ignition": {"version": "3.4.0"},
        "systemd": {"units": [{"name": "a.service", "contents": text}]}}})
}

#[test]
fn pools_share_a_plan_only_where_all_that_it_follows_from_is_the_same() {
    const CONF: &str = "/etc/containers/registries.conf";
    let reloads = with_file("/etc/acts/reload", "a.service");
    let gentle = with_unit("[Service]\nExecStart=/bin/true\n");
    let registry = "[[registry]]\nlocation = \"quay.example\"\n";
    let in_directory = |text: &str| with_file(&format!("{CONF}.d/a.conf"), text);
    let drop_in = |text: &str| with_file("/etc/systemd/system/a.service.d/b.conf", text);
    for (what, new, one, other, shares) in [
        ("files that nobody asks for", &reloads, with_file("/etc/a", "a"), json!({}), true),
        ("the same units", &reloads, gentle.clone(), gentle.clone(), true),
        (
            "a unit that does harm",
            &reloads,
            gentle.clone(),
            with_unit("[Service]\nExecReload=/usr/bin/systemctl reboot\n"),
            false,
        ),
        ("a drop-in that is a file", &reloads, drop_in("[Service]\nNice=5\n"), json!({}), false),
        (
            "what did not change",
            &with_file(CONF, registry),
            in_directory(registry),
            in_directory(""),
            false,
        ),
        ("nothing", &with_file(CONF, registry), in_directory(""), in_directory(""), true),
    ] {
        let pool =
            |of: usize| Made { from: None, of: vec![of], mirrors: Mirrors::None, has_image: false };
        let cluster =
            Cluster { specs: vec![one, other], new: new.clone(), pools: vec![pool(0), pool(1)] };
        let (bodies, parsed) = (cluster.bodies(), Parsed::default());
        let answers = Answers::default().in_short();
        let made = cluster.works().into_iter().map(|work| {
            let fast = preview(work, (&bodies, &parsed), &answers, true);
            Arc::clone(&fast.ways[0].plan.as_ref().unwrap().plan)
        });
        let [one, other] = made.collect::<Vec<_>>().try_into().unwrap();
        assert_eq!(Arc::ptr_eq(&one, &other), shares, "{what}");
        let path = &new["config"]["storage"]["files"][0]["path"];
        let id = format!("file:{}", path.as_str().unwrap());
        assert!(one.changes.iter().any(|change| change.id == id), "{what}: {one:?}");
    }
}
