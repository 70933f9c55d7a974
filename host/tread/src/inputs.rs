//! From what the user names (files, directories, standard input) to bytes.

use anyhow::{Context as _, Result, bail, ensure};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// A file as the user named it, with its bytes.
#[derive(Debug)]
pub struct NamedBytes {
    /// The name for messages; `-` is standard input.
    pub name: String,
    /// The whole of it.
    pub bytes: Vec<u8>,
}

/// More than any cluster holds; it bounds what a mistyped name can cost.
const MAX_BYTES: u64 = 256 << 20;

const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// Reads everything that `path` names: a file, all YAML and JSON files of a
/// directory and the directories in it, or standard input for `-`.
pub fn read(path: &Path) -> Result<Vec<NamedBytes>> {
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        let limited = &mut std::io::stdin().lock().take(MAX_BYTES + 1);
        limited.read_to_end(&mut bytes).context("cannot read standard input")?;
        check_size("standard input", bytes.len() as u64)?;
        return Ok(vec![NamedBytes { name: "-".to_owned(), bytes }]);
    }
    let cannot_read = || format!("cannot read {}", path.display());
    if !fs::metadata(path).with_context(cannot_read)?.is_dir() {
        return Ok(vec![read_file(path)?]);
    }
    let mut files = Vec::new();
    list(path, &mut files)?;
    ensure!(
        !files.is_empty(),
        "{} has no file that ends in .yaml, .yml or .json: name the files that hold the configs",
        path.display()
    );
    files.sort();
    files.iter().map(|file| read_file(file)).collect()
}

/// Reads one file, whole.
pub fn read_file(path: &Path) -> Result<NamedBytes> {
    let name = path.display().to_string();
    let file = fs::File::open(path).with_context(|| format!("cannot read {name}"))?;
    let size = file.metadata().with_context(|| format!("cannot read {name}"))?.len();
    check_size(&name, size)?;
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0).saturating_add(1));
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {name}"))?;
    check_size(&name, bytes.len() as u64)?;
    Ok(NamedBytes { name, bytes })
}

fn check_size(name: &str, size: u64) -> Result<()> {
    if size > MAX_BYTES {
        bail!("{name} is larger than {} MiB: no node config is", MAX_BYTES >> 20);
    }
    Ok(())
}

fn list(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let cannot_read = || format!("cannot read the directory {}", directory.display());
    for entry in fs::read_dir(directory).with_context(cannot_read)? {
        let entry = entry.with_context(cannot_read)?;
        let path = entry.path();
        // A link to a directory is not followed, so that no loop can be.
        if entry.file_type().with_context(cannot_read)?.is_dir() {
            list(&path, files)?;
        } else if path.extension().is_some_and(|ext| EXTENSIONS.iter().any(|known| ext == *known)) {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_gives_its_yaml_and_json_files_in_order_of_name() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.yaml", "a.json", "notes.txt", "sub/c.yml"] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        let read: Vec<_> = read(dir.path()).unwrap().into_iter().map(|file| file.bytes).collect();
        assert_eq!(read, [b"a.json".to_vec(), b"b.yaml".to_vec(), b"sub/c.yml".to_vec()]);
    }

    #[test]
    fn a_directory_without_configs_and_a_missing_file_say_so_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let empty = read(dir.path()).unwrap_err().to_string();
        assert!(empty.contains(dir.path().to_str().unwrap()) && empty.contains(".yaml"), "{empty}");
        let missing = read(&dir.path().join("nope.yaml")).unwrap_err().to_string();
        assert!(missing.contains("nope.yaml"), "{missing}");
    }
}
