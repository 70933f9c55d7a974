//! Mirror objects, rendered by tread and by OpenShift's own library: what the
//! container runtime's own library reads of both files has to be the same, and
//! where there is no file on one side, there has to be none on the other.
//!
//! Run by tests/oracle/run, which builds the program that asks these libraries.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may panic: that is how it fails"
)]

mod compare;
mod objects;
mod program;

use compare::{Tally, anew, over};
use program::Program;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use std::cell::RefCell;

struct Arguments {
    sets: u32,
    seed: u64,
    program: String,
}

fn arguments() -> Arguments {
    let mut found = Arguments { sets: 300, seed: 1, program: String::new() };
    let mut all = std::env::args().skip(1);
    while let Some(name) = all.next() {
        let value = all.next().unwrap_or_default();
        match name.as_str() {
            "--sets" => found.sets = value.parse().expect("a number of sets"),
            "--seed" => found.seed = value.parse().expect("a number as the seed"),
            "--program" => found.program = value,
            _ => panic!("what is {name}?"),
        }
    }
    assert!(!found.program.is_empty(), "there is no library to ask: see tests/oracle/run");
    found
}

fn main() {
    let Arguments { sets, seed, program } = arguments();
    let config = Config { cases: sets, failure_persistence: None, ..Config::default() };
    let mut bytes = [0; 32];
    for (place, byte) in bytes.iter_mut().zip(seed.to_le_bytes()) {
        *place = byte;
    }
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let asked = RefCell::new((Program::start(&program), Tally::default()));
    let result = runner.run(&objects::cases(), |case| {
        let (program, tally) = &mut *asked.borrow_mut();
        over(program, &case, tally)
            .and_then(|()| anew(program, &case, tally))
            .map_err(TestCaseError::fail)
    });
    let (program, tally) = asked.into_inner();
    // It removes what it wrote.
    drop(program);
    println!("{tally}");
    let failed = usize::from(result.is_err());
    assert!(failed > 0 || sets < 100 || tally.is_varied(), "these sets show little");
    println!(
        "test result: {}. {} passed; {failed} failed; 0 ignored",
        if failed == 0 { "ok" } else { "FAILED" },
        1 - failed
    );
    if let Err(why) = result {
        println!("with the seed {seed}: {why}");
        std::process::exit(1);
    }
}
