//! From what the user names (files, directories, standard input) to bytes.

use crate::print::shown;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use tread_model::text::and_more;

/// A file as the user named it, with its bytes.
#[derive(Debug)]
pub struct NamedBytes {
    /// The name for messages, in one line; `-` is standard input.
    pub name: String,
    /// The whole of it.
    pub bytes: Vec<u8>,
}

/// More than any cluster holds, and than any policy is; it bounds what a mistyped name can cost.
const MAX_BYTES: u64 = 256 << 20;

const EXTENSIONS: [&str; 4] = ["yaml", "yml", "json", "ign"];

/// What a path names, read.
#[derive(Debug, Default)]
pub struct Found {
    /// The files, each whole.
    pub files: Vec<NamedBytes>,
    /// Whether the path is a directory.
    pub is_directory: bool,
    /// What looks like a config in it, and was not read: hidden files, what
    /// editors leave behind, links to directories.
    pub left_out: Vec<PathBuf>,
}

/// Reads everything that `path` names: a file, all YAML, JSON and Ignition
/// files of a directory and the directories in it, or standard input for `-`.
///
/// Of a directory, what is hidden (its name begins with a dot) is left out.
pub fn read(path: &Path) -> Result<Found> {
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        let limited = &mut std::io::stdin().lock().take(MAX_BYTES + 1);
        limited.read_to_end(&mut bytes).context("cannot read standard input")?;
        check_size("standard input", bytes.len() as u64)?;
        let files = vec![NamedBytes { name: "-".to_owned(), bytes }];
        return Ok(Found { files, ..Found::default() });
    }
    let cannot_read = || format!("cannot read {}", shown(path));
    if !fs::metadata(path).with_context(cannot_read)?.is_dir() {
        return Ok(Found { files: vec![read_file(path)?], ..Found::default() });
    }
    let mut listing = Listing::default();
    listing.list(path)?;
    let Listing { mut files, mut left_out } = listing;
    left_out.sort();
    if files.is_empty() {
        let name = shown(path);
        let hint = match left_out.as_slice() {
            [] => String::new(),
            some => format!(" (not read: {})", named(some)),
        };
        bail!(
            "{name} has no file that ends in .yaml, .yml, .json or .ign{hint}: name the files that \
             hold the configs"
        );
    }
    files.sort();
    let files = files.iter().map(|file| read_found(file)).collect::<Result<_>>()?;
    Ok(Found { files, is_directory: true, left_out })
}

/// What was left out, in a sentence for somebody who may miss it.
pub fn left_out(path: &Path, left_out: &[PathBuf]) -> Option<String> {
    if left_out.is_empty() {
        return None;
    }
    Some(format!(
        "{}: not read: {}; hidden files, what editors leave behind and linked directories are left \
         out: name such a file itself if it is to count",
        shown(path),
        named(left_out)
    ))
}

fn named(paths: &[PathBuf]) -> String {
    const MOST: usize = 5;
    let first: Vec<String> = paths.iter().take(MOST).map(|path| shown(path)).collect();
    format!("{}{}", first.join(", "), and_more(paths.len(), MOST))
}

/// Whether something that nobody named, but that was found in a directory or
/// stands in another file, is a file. A pipe has no end until somebody writes
/// into it, and a device perhaps none at all.
pub fn check_is_file(path: &Path) -> Result<()> {
    let name = shown(path);
    let found = fs::metadata(path).with_context(|| format!("cannot read {name}"))?.file_type();
    let what = if found.is_file() {
        return Ok(());
    } else if found.is_dir() {
        "a directory"
    } else if found.is_fifo() {
        "a pipe"
    } else if found.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    bail!("{name} is {what}, and no file: take it away, or name the files that are meant")
}

/// Reads a file that nobody named, whole.
pub fn read_found(path: &Path) -> Result<NamedBytes> {
    check_is_file(path)?;
    // Should a pipe have taken its place meanwhile, opening it does not wait.
    let mut options = fs::OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_NONBLOCK).open(path);
    read_open(path, file)
}

/// Reads one file, whole. It was named: a pipe is read to its end.
pub fn read_file(path: &Path) -> Result<NamedBytes> {
    read_open(path, fs::File::open(path))
}

fn read_open(path: &Path, file: io::Result<fs::File>) -> Result<NamedBytes> {
    let name = shown(path);
    let file = file.with_context(|| format!("cannot read {name}"))?;
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
        bail!("{name} is larger than {} MiB, and nothing that tread reads is", MAX_BYTES >> 20);
    }
    Ok(())
}

/// What is in a directory and the directories in it.
#[derive(Default)]
struct Listing {
    files: Vec<PathBuf>,
    left_out: Vec<PathBuf>,
}

impl Listing {
    fn list(&mut self, directory: &Path) -> Result<()> {
        let cannot_read = || format!("cannot read the directory {}", shown(directory));
        for entry in fs::read_dir(directory).with_context(cannot_read)? {
            let entry = entry.with_context(cannot_read)?;
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().to_lowercase();
            let file_type = entry.file_type().with_context(cannot_read)?;
            if file_type.is_dir() {
                // What tools keep there (.git, the ..data of a mounted
                // ConfigMap) is not missed.
                if !name.starts_with('.') {
                    self.list(&path)?;
                }
            } else if !name.starts_with('.') && is_config(&name) {
                self.files.push(path);
            } else if looks_like_config(&name)
                // A link to a directory is not followed, so that no loop can be.
                || (file_type.is_symlink() && path.is_dir() && !name.starts_with('.'))
            {
                self.left_out.push(path);
            }
        }
        Ok(())
    }
}

/// Whether a file of this name, in lower case, is read where a directory is named.
fn is_config(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, end)| EXTENSIONS.contains(&end))
}

/// `.a.yaml.swp`, `#a.yaml#`, `a.yaml~`, `a.yaml.orig`, `.a.yaml`, …
fn looks_like_config(name: &str) -> bool {
    name.split(|c: char| !c.is_ascii_alphanumeric()).skip(1).any(|part| EXTENSIONS.contains(&part))
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
        let read = read(dir.path()).unwrap();
        assert!(read.is_directory);
        assert_eq!(read.left_out, Vec::<PathBuf>::new());
        let read: Vec<_> = read.files.into_iter().map(|file| file.bytes).collect();
        assert_eq!(read, [b"a.json".to_vec(), b"b.yaml".to_vec(), b"sub/c.yml".to_vec()]);
    }

    #[test]
    fn hidden_files_and_what_editors_leave_behind_are_left_out_and_told() {
        let dir = tempfile::tempdir().unwrap();
        let left_out = [
            "#a.yaml#",
            ".#a.yaml",
            ".a.yaml.swp",
            ".hidden.json",
            "a.ign~",
            "a.yaml.bak",
            "a.yaml.orig",
            "a.yaml~",
            "sub/.b.yml.swp",
        ];
        let ignored =
            ["Makefile", ".gitignore", ".git/a.yaml", "..2026/a.yaml", "yaml", "notes.txt"];
        for name in left_out.iter().chain(&ignored).chain(&["a.yaml", "B.YAML", "c.ign"]) {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        let read = read(dir.path()).unwrap();
        let names = |paths: &[PathBuf]| -> Vec<String> {
            let inside = paths.iter().map(|path| path.strip_prefix(dir.path()).unwrap());
            inside.map(|path| path.display().to_string()).collect()
        };
        assert_eq!(names(&read.left_out), left_out);
        let files: Vec<_> = read.files.into_iter().map(|file| file.bytes).collect();
        assert_eq!(files, [b"B.YAML".to_vec(), b"a.yaml".to_vec(), b"c.ign".to_vec()]);
        let says = super::left_out(dir.path(), &read.left_out).unwrap();
        assert!(says.contains("#a.yaml#") && says.contains("and 4 more"), "{says}");
        assert_eq!(super::left_out(dir.path(), &[]), None);
    }

    #[test]
    fn no_name_of_a_file_passes_for_a_line_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a\nwarning: forged.yaml", ".b\nwarning: forged.yaml"] {
            fs::write(dir.path().join(name), "a").unwrap();
        }
        let read = read(dir.path()).unwrap();
        let says = super::left_out(dir.path(), &read.left_out).unwrap();
        assert!(says.contains(".b\u{fffd}warning: forged.yaml"), "{says}");
        assert!(read.files[0].name.ends_with("a\u{fffd}warning: forged.yaml"), "{:?}", read.files);
        let missing = read_file(Path::new("a\nb")).unwrap_err();
        assert!(!format!("{missing:#}").contains('\n'), "{missing:#}");
    }

    #[test]
    fn what_is_no_file_is_an_error_where_nobody_named_it() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.yaml"), "a").unwrap();
        let odd = dir.path().join("b.yaml");
        let _listening = std::os::unix::net::UnixListener::bind(&odd).unwrap();
        let error = read(dir.path()).unwrap_err().to_string();
        assert!(error.contains("b.yaml is a socket, and no file"), "{error}");
        fs::remove_file(&odd).unwrap();
        for (to, what) in [("/dev/null", "a device"), (".", "a directory")] {
            std::os::unix::fs::symlink(to, &odd).unwrap();
            let error = check_is_file(&odd).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
            fs::remove_file(&odd).unwrap();
        }
        std::os::unix::fs::symlink("a.yaml", &odd).unwrap();
        assert_eq!(read(dir.path()).unwrap().files.len(), 2);
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
