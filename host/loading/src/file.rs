//! The file of a policy.

use anyhow::{Context as _, Result, ensure};
use std::path::Path;
use std::sync::OnceLock;
use tread_console::exit::UsageError;
use tread_console::inputs::{self, NamedBytes};
use tread_console::print::shown;

/// The bytes of a file that may be a policy.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    no_directory(path)?;
    Ok(one(path)?.bytes)
}

/// One file, or standard input for `-`.
pub fn one(path: &Path) -> Result<NamedBytes> {
    // It can be read once, and a plan is made twice where an admin's rules overrule others.
    static STANDARD_INPUT: OnceLock<Vec<u8>> = OnceLock::new();
    if !is_standard_input(path) {
        return inputs::read_file(path);
    }
    if STANDARD_INPUT.get().is_none() {
        let read = inputs::read(path)?.files.pop().context("cannot read standard input")?;
        let _ = STANDARD_INPUT.set(read.bytes);
    }
    let bytes = STANDARD_INPUT.get().cloned().unwrap_or_default();
    Ok(NamedBytes { name: "-".to_owned(), bytes })
}

/// Of all that a command reads at most one is standard input.
pub fn check_standard_input<'p>(
    paths: impl IntoIterator<Item = &'p Path>,
) -> Result<(), UsageError> {
    match paths.into_iter().filter(|path| is_standard_input(path)).count() {
        0 | 1 => Ok(()),
        _ => Err(UsageError(
            "there is one standard input, and more than one - to read from it: name files for \
             the others"
                .to_owned(),
        )),
    }
}

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A crate is no policy yet.
pub fn no_directory(path: &Path) -> Result<()> {
    let dir = shown(path);
    ensure!(
        !path.is_dir(),
        "{dir} is a directory: build the crate in it with `tread policy build {dir}`, and name the \
         .wasm file"
    );
    Ok(())
}
