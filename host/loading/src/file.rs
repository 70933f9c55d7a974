//! The file of a policy.

use anyhow::{Result, ensure};
use std::path::Path;
use tread_console::inputs;
use tread_console::print::shown;

/// The bytes of a file that may be a policy.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    no_directory(path)?;
    Ok(inputs::read_file(path)?.bytes)
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
