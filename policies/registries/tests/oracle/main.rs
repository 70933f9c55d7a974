//! The policy against the container runtime's own library, in several
//! releases: what a release does not load has to be refused, and where a pull
//! that worked can fail or give another image, the node has to be drained.
//!
//! Run by tests/oracle/run, which builds the programs that ask the library.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a test may panic: that is how it fails"
)]

mod chance;
mod component;
mod judge;
mod lookaside;
mod lookups;
mod node;
mod runtime;
mod signatures;

use chance::Chance;
use judge::{Answer, Needed, Tally};
use node::Pair;
use runtime::Runtime;
use std::path::PathBuf;

/// One pair of this many is planned by the binary too.
const PLANNED: usize = 50;
/// More differences than this are counted only.
const SHOWN: usize = 20;

struct Arguments {
    pairs: usize,
    seed: u64,
    tread: Option<PathBuf>,
    /// Whether an answer that is harsher than needed counts as a difference.
    counts_harsher: bool,
    runtimes: Vec<Runtime>,
}

fn arguments() -> Arguments {
    let mut found =
        Arguments { pairs: 300, seed: 1, tread: None, counts_harsher: false, runtimes: Vec::new() };
    let mut all = std::env::args().skip(1);
    while let Some(name) = all.next() {
        if name == "--harsher" {
            found.counts_harsher = true;
            continue;
        }
        let value = all.next().unwrap_or_default();
        match name.as_str() {
            "--pairs" => found.pairs = value.parse().unwrap(),
            "--seed" => found.seed = value.parse().unwrap(),
            "--tread" => found.tread = Some(value.into()),
            "--runtime" => found.runtimes.push(Runtime::start(&value)),
            _ => panic!("what is {name}?"),
        }
    }
    assert!(!found.runtimes.is_empty(), "there is no runtime to ask: see tests/oracle/run");
    found
}

fn main() {
    let Arguments { pairs, seed, tread, counts_harsher, mut runtimes } = arguments();
    let mut tally = Tally::default();
    let mut differences = 0;
    for number in 0..pairs {
        // Each pair by itself, so that a single one can be looked at again.
        let mut chance = Chance::new(seed, number);
        let pair = match number % 5 {
            0..=2 => lookups::pair(&mut chance),
            3 => lookaside::pair(&mut chance),
            _ => signatures::pair(&mut chance),
        };
        let needed: Vec<Needed> = runtimes.iter_mut().map(|runtime| runtime.judge(&pair)).collect();
        let verdicts = pair.verdicts();
        let answer = Answer::of(&verdicts);
        let mut wrong = tally.add(&needed, answer, counts_harsher);
        if let Some(tread) = tread.as_ref().filter(|_| number % PLANNED == 0) {
            wrong = wrong.or_else(|| component::differs(tread, &pair, &verdicts));
            tally.planned += 1;
        }
        if let Some(wrong) = wrong {
            differences += 1;
            if differences <= SHOWN {
                show(seed, number, &wrong, &pair, &verdicts);
            }
        }
    }
    // They remove what they wrote.
    drop(runtimes);
    println!("{tally}");
    assert!(pairs < 100 || tally.is_varied(), "these pairs show little");
    let passed = usize::from(differences == 0);
    println!(
        "test result: {}. {passed} passed; {} failed; 0 ignored",
        ["FAILED", "ok"][passed],
        1 - passed
    );
    if differences > 0 {
        println!("{differences} of {pairs} pairs differ, with the seed {seed}");
        std::process::exit(1);
    }
}

fn show(seed: u64, number: usize, wrong: &str, pair: &Pair, verdicts: &[node::Judged]) {
    println!("==== pair {number} of the seed {seed}: {wrong}");
    for judged in verdicts {
        println!("{}: {:?}: {}", judged.id, judged.verdict.effect(), judged.verdict.reason());
    }
    println!("---- names of {} characters at most", pair.settings.longest_name);
    println!("---- before\n{}---- after\n{}", pair.before, pair.after);
}
