//! What a warning costs that concerns many pools:
//! `cargo bench --profile dist -p tread-cluster --bench preview`.
//!
//! Floor and candidate are measured in turn, in one run: the floor is reading
//! both sides and nothing else.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use serde_json::{Value, json};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tread_cluster::policies::current::Current;
use tread_cluster::pools::Pool;
use tread_cluster::previews::{
    Asked, Bodies, BodyKey, Parsed, Part, Piece, Side, Way, Work, compute,
};
use tread_engine::planner::Answers;
use tread_engine::policy::{Policy, PolicySet, Wishes};
use tread_engine::sandbox::{Options, Sandbox};
use tread_kube::api::disruption_plan::{Cause, CauseEvent};
use tread_model::operator;
use tread_model::read::{self, Input};
use tread_model::verdict::Layer;

const POOLS: usize = 50;
/// How many MachineConfigs each pool is made of, with files of so many bytes.
const CONFIGS: usize = 20;
const FILES: usize = 3;
const FILE: usize = 2048;
/// The number of the config that is new.
const NEW: usize = 99_999;
const ROUNDS: usize = 21;
const POLICIES: usize = 93;

fn path(number: usize, index: usize) -> String {
    match (number, index) {
        (NEW, 0) => "/etc/acts/reload".to_owned(),
        _ => format!("/etc/measured/{number}/{index}"),
    }
}

fn files(number: usize) -> Vec<Value> {
    let file = |index: usize| {
        let text = format!("{number}.{index}.").repeat(FILE / 6);
        json!({"path": path(number, index), "mode": 0o644,
            "overwrite": true, "contents": {"source": format!("data:,{text}")}})
    };
    (0..FILES).map(file).collect()
}

fn config(name: &str, files: &[Value]) -> Arc<[u8]> {
    let object = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": name},
        "spec": {"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": files}}},
    });
    object.to_string().into_bytes().into()
}

fn key(name: &str) -> BodyKey {
    (name.into(), "1".into())
}

/// A pool that is to get one config more than it is made of.
fn work(number: usize, bodies: &mut Bodies) -> Work {
    let mut configs = Vec::new();
    let mut all = Vec::new();
    for source in 0..CONFIGS {
        // Half of them are the worker's, and shared.
        let id = if source < CONFIGS / 2 { source } else { number * CONFIGS + source };
        let name = format!("{id:05}-config");
        let files = files(id);
        bodies.entry(key(&name)).or_insert_with(|| config(&name, &files).into());
        configs.push(Piece::Stored(key(&name)));
        all.extend(files);
    }
    let rendered = format!("rendered-pool-{number}-1");
    bodies.insert(key(&rendered), config(&rendered, &all).into());
    let new = config("99999-new", &files(NEW));
    configs.push(Piece::given("99999-new".to_owned(), Arc::clone(&new)));
    let pool = Pool { name: format!("pool-{number}"), ..Pool::default() };
    let cause = Cause {
        kind: "MachineConfig".to_owned(),
        name: "99999-new".to_owned(),
        event: CauseEvent::Created,
    };
    let body = Some(Piece::given("99999-new".to_owned(), new));
    let way = Way {
        from: Some(Side::rendered(key(&rendered))),
        from_name: rendered,
        nodes: Default::default(),
    };
    Work {
        pool: Arc::new(pool),
        ways: vec![way],
        to: Side { configs, ..Side::default() },
        to_name: String::new(),
        target: None,
        parts: vec![Part { cause, body, mirrors: false }],
        operated: true,
        rollout_paused: false,
        single_replica: false,
        since: String::new(),
        doubt: None,
    }
}

/// Reads both sides.
fn floor(work: &Work, bodies: &Bodies) {
    fn inputs<'b>(side: &'b Side, bodies: &'b Bodies) -> Vec<Input<'b>> {
        let pieces = side.configs.iter();
        pieces
            .map(|piece| Input { name: piece.name(), bytes: piece.bytes(bodies).unwrap() })
            .collect()
    }
    let from = work.ways[0].from.as_ref().unwrap();
    black_box(read::sides(&inputs(from, bodies), &inputs(&work.to, bodies)).unwrap());
}

/// As many policies, each with a module of its own, all of which claim the new file.
fn policies(sandbox: &Sandbox) -> PolicySet {
    let limits = sandbox.limits();
    let policy = |number: usize| {
        let mut component = include_bytes!("../../../tests/contract/1.0.0/acts.wasm").to_vec();
        // A custom section that says nothing.
        component.extend([0, 4, 3]);
        component.extend(format!("{number:03}").bytes());
        let module = sandbox.load(&component, None).unwrap();
        let (layer, wishes) = (Layer::Template, Wishes::default());
        let policy = Policy::new(component.into(), None, layer, wishes, limits);
        let policy = policy.unwrap().with_module(module);
        let claims = policy.claims.clone();
        policy.named(format!("acts-{number}"), String::new(), claims)
    };
    PolicySet::new((0..POLICIES).map(policy).collect()).unwrap()
}

fn main() {
    let mut bodies = Bodies::new();
    let works: Vec<Work> = (0..POOLS).map(|number| work(number, &mut bodies)).collect();
    let sandbox = Sandbox::new(Options { slots: 4, ..Options::default() }).unwrap();
    let silent = Current::new(PolicySet::new(Vec::new()).unwrap(), None, true);
    let asked = Current::new(policies(&sandbox), None, true);
    let rules = operator::Policies::of(None);
    let parsed = Parsed::default();
    let plan = |work: &Work, current: &Current, answers: &Answers| {
        let asked = Asked {
            bodies: &bodies,
            current,
            operator: &rules,
            sandbox: &sandbox,
            answers,
            parsed: &parsed,
            hides_secrets: true,
        };
        compute(work.clone(), &asked)
    };
    let all: [&dyn Fn(); 4] = [
        &|| works.iter().for_each(|work| floor(work, &bodies)),
        &|| {
            let answers = Answers::default().in_short();
            works.iter().for_each(|work| drop(plan(work, &silent, &answers)));
        },
        &|| {
            let answers = Answers::default().in_short();
            works.iter().for_each(|work| drop(plan(work, &asked, &answers)));
        },
        &|| works.iter().for_each(|work| drop(plan(work, &asked, &Answers::default().in_short()))),
    ];
    let mut times = all.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (run, times) in all.iter().zip(&mut times) {
            let begun = Instant::now();
            run();
            times.push(begun.elapsed());
        }
    }
    let [floor, silent, asked, alone] = times.map(|mut times: Vec<Duration>| {
        times.sort_unstable();
        times[ROUNDS / 2]
    });
    println!(
        "previews of {POOLS} pools that get the same change, one core; reading both sides: {floor:?}"
    );
    let row = |what: &str, time: Duration| {
        println!("{what:<40} {time:>10.2?}  {:.2}", time.as_secs_f64() / floor.as_secs_f64());
    };
    row("no policy", silent);
    row(&format!("{POLICIES} policies that claim it"), asked);
    row("each pool by itself", alone);
}
