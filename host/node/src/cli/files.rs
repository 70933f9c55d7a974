//! The files that an admin names on the command line.

use crate::documents::{Document, Documents};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// More than any config or plan has.
const MOST: u64 = 64 << 20;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// It is too large.
    #[error("{path}: it has more than {} MiB, and no config or plan has", MOST >> 20)]
    TooLarge {
        /// The file.
        path: String,
    },
    /// It is no text.
    #[error("{path}: it is not UTF-8 text; name a file with MachineConfigs")]
    NoText {
        /// The file.
        path: String,
    },
}

/// What is in a file; `-` is standard input.
pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, FileError> {
    let name = || path.display().to_string();
    let failed = |error| FileError::Io { path: name(), error };
    let mut bytes = Vec::new();
    let read = match path.to_str() {
        Some("-") => io::stdin().take(MOST + 1).read_to_end(&mut bytes),
        _ => File::open(path).and_then(|file| file.take(MOST + 1).read_to_end(&mut bytes)),
    };
    read.map_err(failed)?;
    match bytes.len() as u64 > MOST {
        true => Err(FileError::TooLarge { path: name() }),
        false => Ok(bytes),
    }
}

/// The texts of several files.
pub(super) fn documents(paths: &[PathBuf]) -> Result<Documents, FileError> {
    let document = |path: &PathBuf| {
        let name = path.display().to_string();
        let text = String::from_utf8(bytes(path)?);
        let text = text.map_err(|_| FileError::NoText { path: name.clone() })?;
        Ok(Document { name, text })
    };
    paths.iter().map(document).collect::<Result<_, _>>().map(Documents)
}

/// The lines of a file that say something.
pub(super) fn lines(path: &Path) -> Result<Vec<String>, FileError> {
    let name = || path.display().to_string();
    let text = String::from_utf8(bytes(path)?);
    let text = text.map_err(|_| FileError::NoText { path: name() })?;
    let lines =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.map(str::to_owned).collect())
}

/// The program that runs.
pub(super) const OWN_EXECUTABLE: &str = "/proc/self/exe";

/// All of it.
pub(super) fn own_executable() -> Result<Vec<u8>, FileError> {
    let path = OWN_EXECUTABLE;
    std::fs::read(path).map_err(|error| FileError::Io { path: path.to_owned(), error })
}

/// What an operation is called: no two of a node have the same.
pub(super) fn operation_id() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", since.as_millis(), std::process::id())
}
