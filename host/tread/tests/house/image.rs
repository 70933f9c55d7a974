//! What the image is built of.

use super::{text_of, tree};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Copies a file, or a folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    if from.is_file() {
        fs::copy(from, to).unwrap();
        return;
    }
    for entry in fs::read_dir(from).unwrap() {
        let name = entry.unwrap().file_name();
        copy(&from.join(&name), &to.join(&name));
    }
}

#[test]
fn what_the_image_is_built_of_is_a_workspace_that_cargo_takes() {
    let context = tempfile::tempdir().unwrap();
    let ignored = text_of(&tree().join(".dockerignore"));
    let let_in: Vec<&str> = ignored.lines().filter_map(|line| line.strip_prefix('!')).collect();
    assert!(ignored.lines().any(|line| line == "*") && !let_in.is_empty());
    for path in let_in {
        copy(&tree().join(path), &context.path().join(path));
    }
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .current_dir(context.path())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}
