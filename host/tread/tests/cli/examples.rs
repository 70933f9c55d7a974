//! Each example answers as its README says.

use crate::schema::checked;
use crate::support::{Bench, tree};
use std::path::PathBuf;

/// The directories of all examples.
fn examples() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(tree().join("examples")).unwrap();
    let mut dirs: Vec<PathBuf> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    // Those are policies, which the suite `examples` builds and tests, and pages:
    // the install page, which the test `readme` reads, and those on boot images and pools.
    let pages = ["policies", "install", "bootimages", "pools"];
    dirs.retain(|path| !pages.iter().any(|page| path.ends_with(page)));
    dirs.sort();
    assert!(dirs.len() >= 6, "{dirs:?}");
    dirs
}

#[test]
fn each_example_begins_its_answer_as_its_readme_says_and_keeps_the_schema() {
    let bench = Bench::new();
    for dir in examples() {
        let readme = std::fs::read_to_string(dir.join("README.md")).unwrap();
        let mut code = readme.lines().filter_map(|line| line.strip_prefix("    "));
        let command = code.next().and_then(|line| line.strip_prefix("cargo run --release -- "));
        let first_line = code.next().unwrap();
        let args =
            command.unwrap().split_whitespace().map(|word| match word.starts_with("examples/") {
                true => tree().join(word).display().to_string(),
                false => word.to_owned(),
            });
        let args: Vec<String> = args.collect();
        let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
        let ran = bench.tread(&args);
        assert_eq!(ran.first_line(), first_line, "{}: {}", dir.display(), ran.err());
        args.extend(["-o", "json"]);
        assert_eq!(checked(&bench.tread(&args))["summary"], first_line);
        let refused = first_line.starts_with("refused");
        assert_eq!(ran.code(), if refused { 4 } else { 0 }, "{}", dir.display());
    }
}

#[test]
fn the_list_of_examples_is_complete() {
    let list = std::fs::read_to_string(tree().join("examples/README.md")).unwrap();
    for dir in examples() {
        let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(list.contains(&format!("[{name}]({name})")), "{name} is not listed");
    }
}

#[test]
fn the_list_of_example_policies_is_complete() {
    let list = std::fs::read_to_string(tree().join("examples/README.md")).unwrap();
    let entries = std::fs::read_dir(tree().join("examples/policies")).unwrap();
    let names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.len() >= 3, "{names:?}");
    for name in names {
        assert!(list.contains(&format!("[{name}](policies/{name})")), "{name} is not listed");
        for file in ["Cargo.toml", "Cargo.lock", "README.md", "src/lib.rs", "cases", ".gitignore"] {
            let path = tree().join("examples/policies").join(&name).join(file);
            assert!(path.exists(), "{} is not there", path.display());
        }
    }
}
