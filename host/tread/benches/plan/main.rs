//! What a plan costs: `cargo bench --profile dist -p tread --bench plan`.
//!
//! Everything is measured in one run, floor and candidate in turn, because the
//! floor drifts when the machine is busy. `TREAD_PAIRS` names a folder with
//! pairs `*/old.json` and `*/new.json` to measure instead of generated ones.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::indexing_slicing, clippy::expect_used)]

mod pairs;

use pairs::Differs;
use std::borrow::Cow;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tread_engine::limits::Limits;
use tread_engine::planner;
use tread_engine::policy::{PolicySet, Wishes};
use tread_engine::sandbox::{Call, Options, Sandbox, Speaker};
use tread_loading::builtins;
use tread_model::change::{Change, Content, FileState, State};
use tread_model::config_digest::digests_of_pair;
use tread_model::digest::Sha256;
use tread_model::read::{self, Input};
use tread_model::verdict::Layer;

fn main() {
    let cache = std::env::temp_dir().join(format!("tread-bench-{}", std::process::id()));
    let options = Options { cache_dir: Some(cache.clone()), ..Options::default() };
    let sandbox = Sandbox::new(options).unwrap();
    let policies = builtins::load(&Limits::default(), |_| Wishes::default()).unwrap();
    let policies = PolicySet::new(policies).unwrap();

    println!("{}", processor());
    let digested = Sha256::digested();
    let pairs = pairs();
    println!("pair                bytes    floor  bytes→plan  ratio  parsed→plan");
    for (name, old, new) in &pairs {
        measure_pair(&sandbox, &policies, name, old, new);
    }
    println!();
    measure_calls(&sandbox, &policies);
    // Only instructions of the processor make sha256 fast: the figures above hold
    // with and without them.
    println!("digested by sha256 for all of it: {} bytes", Sha256::digested() - digested);
    println!();
    if let Some((_, old, new)) =
        pairs.iter().rfind(|(name, ..)| name == "typical" || name == "typical, a mirror")
    {
        measure_process(old, new, &cache);
    }
    std::fs::remove_dir_all(&cache).ok();
}

/// Which instructions for hashing the processor has.
fn processor() -> String {
    #[cfg(target_arch = "x86_64")]
    let known = [
        ("sha", std::is_x86_feature_detected!("sha")),
        ("avx2", std::is_x86_feature_detected!("avx2")),
        ("avx512f", std::is_x86_feature_detected!("avx512f")),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let known: [(&str, bool); 0] = [];
    let has = known.iter().filter(|(_, has)| *has).map(|(name, _)| *name).collect::<Vec<_>>();
    format!("processor: {} with {}", std::env::consts::ARCH, has.join(", "))
}

/// Generated pairs, or those of the folder that `TREAD_PAIRS` names.
fn pairs() -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let Some(folder) = std::env::var_os("TREAD_PAIRS").map(PathBuf::from) else {
        let what = [(Differs::File, ""), (Differs::Mirror, ", a mirror")];
        return what
            .into_iter()
            .flat_map(|(differs, named)| {
                pairs::SIZES.map(|size| {
                    let (old, new) = pairs::pair(size, differs);
                    (format!("{}{named}", size.name()), old, new)
                })
            })
            .collect();
    };
    let mut pairs: Vec<_> = std::fs::read_dir(&folder)
        .expect("TREAD_PAIRS names a folder")
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let old = std::fs::read(path.join("old.json")).ok()?;
            let new = std::fs::read(path.join("new.json")).ok()?;
            Some((path.file_name()?.to_string_lossy().into_owned(), old, new))
        })
        .collect();
    pairs.sort();
    assert!(!pairs.is_empty(), "{} has no */old.json with */new.json", folder.display());
    pairs
}

fn measure_pair(sandbox: &Sandbox, policies: &PolicySet, name: &str, old: &[u8], new: &[u8]) {
    let input = |name, bytes| [Input { name, bytes }];
    let (old_input, new_input) = (input("old.json", old), input("new.json", new));
    let floor = || {
        let old: serde_json::Value = serde_json::from_slice(black_box(old)).unwrap();
        let new: serde_json::Value = serde_json::from_slice(black_box(new)).unwrap();
        black_box((old, new));
    };
    let whole = || {
        let (old, new) = read::sides(black_box(&old_input), black_box(&new_input)).unwrap();
        let plan = planner::plan(sandbox, policies, &old.config, &new.config, Vec::new()).unwrap();
        black_box(plan.plan.digest);
    };
    let (parsed_old, parsed_new) = read::sides(&old_input, &new_input).unwrap();
    // A config is digested once, when it is read: a service that holds both
    // sides pays only the rest for each plan.
    let (from, to) = digests_of_pair(&parsed_old.config, &parsed_new.config).unwrap();
    let parsed = || {
        let (old, new) = ((&parsed_old.config, &from), (&parsed_new.config, &to));
        let plan = planner::plan_digested(sandbox, policies, old, new, Vec::new()).unwrap();
        black_box(plan.plan.digest);
    };
    let runs = if old.len() > 4_000_000 { 60 } else { 300 };
    let [floor, whole, parsed] = interleaved(runs, [&floor, &whole, &parsed]);
    println!(
        "{name:<16} {:>8} {:>8} {:>11} {:>6.2} {:>12}",
        old.len() + new.len(),
        ms(floor),
        ms(whole),
        whole.as_secs_f64() / floor.as_secs_f64(),
        us(parsed),
    );
}

/// A fresh instance with 1 to 1,000 changes of 4 KB + 4 KB.
fn measure_calls(sandbox: &Sandbox, policies: &PolicySet) {
    println!("a fresh call    1        10       100      1000   each further");
    for name in ["network", "certificates"] {
        let prebuilt = builtins::BUILTINS.iter().find(|it| it.name == name).unwrap();
        let policy =
            policies.policies().iter().find(|policy| policy.identity.policy == name).unwrap();
        let module = sandbox.load_own(prebuilt.component, policy.identity.digest).unwrap();
        let directory = match name {
            "network" => "/etc/NetworkManager",
            _ => "/etc/docker/certs.d",
        };
        let mut medians = Vec::new();
        for count in [1usize, 10, 100, 1000] {
            let changes: Vec<Change<'_>> = (0..count).map(|n| change(directory, n)).collect();
            let changes: Vec<&Change<'_>> = changes.iter().collect();
            let call = Call {
                settings: &policy.settings,
                changes: &changes,
                unchanged: &[],
                claims: &policy.claims,
                layer: Layer::Builtin,
                speaker: Speaker::Policy,
                words: policy.words(),
            };
            let run = || {
                black_box(sandbox.classify(&module, black_box(&call)).unwrap());
            };
            let [median] = interleaved(if count > 100 { 200 } else { 2000 }, [&run]);
            medians.push(median);
        }
        let further = (medians[2].saturating_sub(medians[0])) / 99;
        let cells: Vec<String> =
            medians.iter().map(|median| format!("{:>8}", us(*median))).collect();
        println!("{name:<13} {} {:>9}", cells.join(" "), us(further));
    }
}

fn change(directory: &str, n: usize) -> Change<'static> {
    let state = |fill: u8| {
        State::File(FileState {
            content: Content::Bytes(Cow::Owned(vec![fill; 4096])),
            mode: 0o644,
            user: Cow::Borrowed("root"),
            group: Cow::Borrowed("root"),
        })
    };
    Change {
        id: format!("file:{directory}/host{n:04}/ca.crt"),
        before: state(b'a'),
        after: state(b'b'),
    }
}

/// The whole process, beside one that does nothing.
fn measure_process(old: &[u8], new: &[u8], cache: &Path) {
    let dir = cache.join("process");
    std::fs::create_dir_all(&dir).unwrap();
    let (old_path, new_path) = (dir.join("old.json"), dir.join("new.json"));
    std::fs::write(&old_path, old).unwrap();
    std::fs::write(&new_path, new).unwrap();
    let tread = env!("CARGO_BIN_EXE_tread");
    let plan = |cache: &Path| {
        let mut command = Command::new(tread);
        command.arg("plan").arg(&old_path).arg(&new_path).env("TREAD_CACHE_DIR", cache);
        run(&mut command)
    };
    let warm_cache = dir.join("warm");
    plan(&warm_cache);
    let warm = || {
        plan(&warm_cache);
    };
    let empty = || {
        run(&mut Command::new("/bin/true"));
    };
    let [warm, empty] = interleaved(100, [&warm, &empty]);
    let first: Vec<Duration> = (0..5)
        .map(|n| {
            let cold = dir.join(format!("cold-{n}"));
            let start = Instant::now();
            plan(&cold);
            start.elapsed()
        })
        .collect();
    println!(
        "the process on typical   warm {}   empty process {}   difference {}   first time {}",
        ms(warm),
        ms(empty),
        ms(warm.saturating_sub(empty)),
        ms(median(first))
    );
}

fn run(command: &mut Command) {
    let status = command.stdout(Stdio::null()).stdin(Stdio::null()).status().unwrap();
    assert!(status.success(), "{status}");
}

/// Runs each in turn, and gives the median of each.
fn interleaved<const N: usize>(runs: usize, all: [&dyn Fn(); N]) -> [Duration; N] {
    let mut times: [Vec<Duration>; N] = std::array::from_fn(|_| Vec::with_capacity(runs));
    for round in 0..runs + runs / 10 + 1 {
        for (run, times) in all.iter().zip(&mut times) {
            // The allocator puts off tidying up after thousands of small frees
            // until the next large allocation: not on the next one's bill.
            drop(black_box(Vec::<u8>::with_capacity(1 << 16)));
            let start = Instant::now();
            run();
            let took = start.elapsed();
            // The first tenth warms caches up.
            if round > runs / 10 {
                times.push(took);
            }
        }
    }
    times.map(median)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ms(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

fn us(time: Duration) -> String {
    format!("{:.2} µs", time.as_secs_f64() * 1e6)
}
