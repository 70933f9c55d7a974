//! Files that are committed so that a change of what the code makes is seen in review.

use anyhow::{Result, ensure};
use std::path::Path;

/// Whether the files are to be written rather than held against what the code makes.
pub fn is_update() -> bool {
    std::env::var_os("TREAD_UPDATE").is_some()
}

/// Holds a file against what the code makes, or writes it.
///
/// # Errors
/// The file is another one, or cannot be written.
pub fn golden(path: &Path, made: &str) -> Result<()> {
    held(path, made, is_update())
}

fn held(path: &Path, made: &str, is_update: bool) -> Result<()> {
    if is_update {
        std::fs::write(path, made)?;
    }
    ensure!(
        std::fs::read_to_string(path).unwrap_or_default() == made,
        "{} is not what the code makes: run the test again with TREAD_UPDATE=1, and look at the \
         difference",
        path.display()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_missing_or_another_one_is_named_until_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("made.yaml");
        let why = |made: &str| held(&path, made, false).map_err(|error| error.to_string());
        assert!(why("one").unwrap_err().contains("made.yaml is not what the code makes"));
        held(&path, "one", true).unwrap();
        assert_eq!(why("one"), Ok(()));
        assert!(why("two").unwrap_err().contains("TREAD_UPDATE=1"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one");
    }
}
