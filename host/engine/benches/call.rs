//! A fresh instance for each call: medians for 1 to 1,000 changes of 4 KB +
//! 4 KB, of a policy that answers with constants, and of the component that
//! `TREAD_GUEST` names (several are separated by `:`), with what it costs to
//! load it from the cache. Beside them stands the least that wasmtime can do with the
//! same bytes in the same run, and the ratio to it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, missing_docs)]

#[path = "call/floor.rs"]
mod floor;
#[path = "../tests/support/mod.rs"]
mod support;

use floor::Floor;
use std::hint::black_box;
use std::time::{Duration, Instant};
use support::{Guest, changes, claim};
use tread_engine::sandbox::{Call, Module, Options, Sandbox, Speaker, Words};
use tread_model::change::Change;
use tread_model::effect::Effect;
use tread_model::verdict::Layer;

fn main() {
    let dir = std::env::temp_dir().join(format!("tread-bench-call-{}", std::process::id()));
    let options = || Options { cache_dir: Some(dir.clone()), ..Options::default() };
    let sandbox = Sandbox::new(options()).unwrap();
    println!("{:<16}        1       10      100     1000  each further (µs)", "a fresh call");
    measure(&sandbox, "constants", &Guest::default().component());
    if let Some(paths) = std::env::var_os("TREAD_GUEST") {
        for path in std::env::split_paths(&paths) {
            let component = std::fs::read(&path).unwrap();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            measure(&sandbox, &name, &component);
            measure_start(&component, options);
        }
    }
    std::fs::remove_dir_all(&dir).ok();
}

const COUNTS: [usize; 4] = [1, 10, 100, 1000];

/// Medians by how many changes there are.
type Medians = [Duration; COUNTS.len()];

/// What each change costs behind the first, up to 100.
fn further(medians: &Medians) -> f64 {
    us(medians[2].saturating_sub(medians[0])) / 99.0
}

fn print(name: &str, medians: &Medians) {
    let cells: Vec<String> = medians.iter().map(|it| format!("{:>8.2}", us(*it))).collect();
    println!("{name:<16} {} {:>8.2}", cells.join(" "), further(medians));
}

/// A policy, and both floors in turns with it: the speed of a machine changes within a run.
fn measure(sandbox: &Sandbox, name: &str, component: &[u8]) {
    let module = sandbox.load(component, None).unwrap();
    let claims = [claim("file:/**", Effect::None, Effect::Refuse)];
    let medians = COUNTS.map(|count| {
        let changes = changes(count, 4096);
        let changes: Vec<&Change<'_>> = changes.iter().collect();
        let texts = floor::texts(&changes);
        let made_for = Floor::made_for(&texts);
        let growing = Floor::growing();
        let all: [&dyn Fn(); 3] =
            [&|| ask(sandbox, &module, &changes, &claims), &|| made_for.call(&texts), &|| {
                growing.call(&texts)
            }];
        medians(if count > 100 { 200 } else { 4000 }, all)
    });
    let [policy, made_for, growing] = [0, 1, 2].map(|at| medians.map(|it| it[at]));
    print(name, &policy);
    for (name, floor) in [("… made for them", made_for), ("… that grows", growing)] {
        print(name, &floor);
        let ratios = policy.iter().zip(&floor).map(|(it, floor)| us(*it) / us(*floor));
        let cells: Vec<String> = ratios.map(|ratio| format!("{ratio:>8.2}")).collect();
        let further = further(&policy) / further(&floor);
        println!("{:<16} {} {further:>8.2}", "  ratio to it", cells.join(" "));
    }
}

fn ask(
    sandbox: &Sandbox,
    module: &Module,
    changes: &[&Change<'_>],
    claims: &[tread_model::description::Claim],
) {
    let call = Call {
        settings: "{}",
        changes,
        unchanged: &[],
        claims,
        layer: Layer::Builtin,
        speaker: Speaker::Policy,
        words: &Words::default(),
    };
    let _ = black_box(sandbox.classify(module, black_box(&call)));
}

/// From nothing to the first answer, the compiled component in the cache.
fn measure_start(component: &[u8], options: impl Fn() -> Options) {
    let claims = [claim("file:/**", Effect::None, Effect::Refuse)];
    let changes = changes(1, 4096);
    let changes: Vec<&Change<'_>> = changes.iter().collect();
    let start = median(50, || {
        let sandbox = Sandbox::new(options()).unwrap();
        let module = sandbox.load(component, None).unwrap();
        ask(&sandbox, &module, &changes, &claims);
    });
    let fresh = Sandbox::new(options()).unwrap();
    fresh.load(component, None).unwrap();
    let load = median(200, || {
        black_box(fresh.load(component, None).unwrap());
    });
    println!("{:<16} {:>8.2} (sandbox, load, call) {:>8.2} (load)", "", us(start), us(load));
}

fn median(runs: usize, run: impl Fn()) -> Duration {
    let [median] = medians(runs, [&run]);
    median
}

/// The median of each, of so many rounds in which each has its turn.
fn medians<const N: usize>(rounds: usize, all: [&dyn Fn(); N]) -> [Duration; N] {
    let mut times: [Vec<Duration>; N] = std::array::from_fn(|_| Vec::with_capacity(rounds));
    for round in 0..rounds + rounds / 10 {
        for (run, times) in all.iter().zip(&mut times) {
            let start = Instant::now();
            run();
            let took = start.elapsed();
            // The first rounds warm caches up.
            if round >= rounds / 10 {
                times.push(took);
            }
        }
    }
    times.map(|mut times| {
        times.sort();
        times[times.len() / 2]
    })
}

fn us(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
