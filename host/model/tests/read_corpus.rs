//! Replays the files in `tests/corpus/read`: those named `ok-…` are read, with
//! the notes and refusals that stand in the file of the same name that ends in
//! `.notes`, or without a word where there is none; those named `bad-…` with exactly the problems that stand in
//! the file of the same name that ends in `.problems`.
//!
//! `TREAD_BLESS=1` writes these files anew; read them before you commit them.

// Helpers of tests may fail as tests do.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use tread_model::read::{Input, diagnosed, fast_only, sides};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/read")
}

fn inputs() -> Vec<(String, Vec<u8>)> {
    let mut inputs: Vec<(String, Vec<u8>)> = fs::read_dir(corpus())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension().is_none_or(|extension| extension != "problems" && extension != "notes")
        })
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    inputs.sort();
    assert!(inputs.len() >= 50, "the corpus is gone: {} files", inputs.len());
    inputs
}

#[test]
fn every_file_is_read_as_its_name_says() {
    let bless = std::env::var_os("TREAD_BLESS").is_some();
    for (name, bytes) in inputs() {
        let input = [Input { name: &name, bytes: &bytes }];
        let other = [Input { name: "other.json", bytes: br#"{"ignition":{"version":"3.0.0"}}"# }];
        let found = match sides(&input, &other) {
            Ok((side, _)) => {
                assert!(name.starts_with("ok-"), "{name} was accepted: {side:?}");
                let faults = side.config.faults.iter();
                let faults =
                    faults.map(|it| format!("{} refused: {}: {}\n", it.id, it.field, it.reason));
                let notes = side.config.notes.iter().map(|note| format!("{note}\n"));
                compare(&format!("{name}.notes"), &faults.chain(notes).collect::<String>(), bless);
                continue;
            }
            Err(problems) => format!("{problems}\n"),
        };
        assert!(name.starts_with("bad-"), "{name} was refused: {found}");
        compare(&format!("{name}.problems"), &found, bless);
    }
}

fn compare(name: &str, found: &str, bless: bool) {
    let expected = corpus().join(name);
    if bless && (!found.is_empty() || expected.exists()) {
        fs::write(&expected, found).unwrap();
    }
    let expected = fs::read_to_string(&expected).unwrap_or_default();
    assert_eq!(found, expected, "{name}");
}

#[test]
fn the_fast_reader_never_knows_better_than_the_diagnosing_one() {
    let mut fast_ones = 0;
    for (name, bytes) in inputs() {
        let input = [Input { name: &name, bytes: &bytes }];
        let Some((mut old, mut new)) = fast_only(&input, &input) else { continue };
        fast_ones += 1;
        for side in [&mut old, &mut new] {
            side.config.files.iter_mut().for_each(|file| file.raw = &[]);
            side.config.units.iter_mut().for_each(|unit| unit.raw = &[]);
        }
        let slow = diagnosed(&input, &input);
        assert_eq!(slow.as_ref(), Ok(&(old, new)), "{name}");
    }
    assert!(fast_ones >= 4, "only {fast_ones} files were read fast");
}
