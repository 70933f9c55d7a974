//! From a path to a folder, one name at a time.

use super::folder::{Folder, Kind};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;

/// How many links a path may lead through, as the kernel has it.
const MOST_LINKS: usize = 40;

/// Why a path leads nowhere.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// It is no path that tread takes.
    #[error(
        "`{path}` is not an absolute path without `.`, `..` and empty names; correct the config"
    )]
    Unclean {
        /// The path.
        path: String,
    },
    /// Something on the way is not to be gone through.
    #[error(
        "{path}: {at} is {what}, and tread goes through folders and links of root only; put a folder there, or correct the config"
    )]
    NoWay {
        /// The path.
        path: String,
        /// What on the way.
        at: String,
        /// What it is.
        what: &'static str,
    },
    /// The links on the way lead in a circle.
    #[error("{path}: more than {MOST_LINKS} links are on the way; correct the links")]
    Circle {
        /// The path.
        path: String,
    },
    /// The system says no.
    #[error("{path}: {error}")]
    Io {
        /// The path.
        path: String,
        /// Why.
        #[source]
        error: io::Error,
    },
}

impl PathError {
    /// What the system said of a path.
    pub fn io(path: &str, error: io::Error) -> PathError {
        PathError::Io { path: path.to_owned(), error }
    }
}

/// The names of a path.
fn names(path: &str) -> Result<Vec<&str>, PathError> {
    let unclean = || PathError::Unclean { path: path.to_owned() };
    let Some(rest) = path.strip_prefix('/') else { return Err(unclean()) };
    if rest.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<&str> = rest.split('/').collect();
    let fine = |name: &&str| !matches!(*name, "" | "." | "..") && !name.contains('\0');
    match names.iter().all(fine) {
        true => Ok(names),
        false => Err(unclean()),
    }
}

/// The path of the folder, and the name in it.
pub(super) fn split(path: &str) -> Result<(&str, &str), PathError> {
    names(path)?;
    match path.rsplit_once('/') {
        Some(("", name)) if !name.is_empty() => Ok(("/", name)),
        Some((folder, name)) if !name.is_empty() => Ok((folder, name)),
        _ => Err(PathError::Unclean { path: path.to_owned() }),
    }
}

/// How far a path leads.
#[derive(Clone)]
pub struct Reached {
    /// The last folder on the way that is there.
    pub folder: Folder,
    /// The names below it that are not there.
    pub missing: Vec<String>,
}

/// Walks to a folder, as far as there is one; each name on the way is told first.
pub(super) fn reach(
    root: &Folder,
    path: &str,
    told: &mut dyn FnMut(&Folder, &str),
) -> Result<Reached, PathError> {
    let mut ahead: VecDeque<String> = names(path)?.into_iter().map(str::to_owned).collect();
    // The folders from the root to where the walk is: `..` in a link goes back in it.
    let mut way = vec![root.clone()];
    let mut links = 0;
    while let Some(name) = ahead.pop_front() {
        let here = way.last().unwrap_or(root).clone();
        if !matches!(name.as_str(), "" | "." | "..") {
            told(&here, &name);
        }
        match name.as_str() {
            "" | "." => continue,
            ".." => {
                if way.len() > 1 {
                    way.pop();
                }
                continue;
            }
            name => match step(&here, name, path)? {
                Step::Folder(folder) => way.push(folder),
                Step::Missing => {
                    let rest = ahead.into_iter().filter(|name| !matches!(name.as_str(), "" | "."));
                    let missing: Vec<String> =
                        std::iter::once(name.to_owned()).chain(rest).collect();
                    return match missing.iter().any(|name| name == "..") {
                        true => Err(PathError::io(path, io::ErrorKind::NotFound.into())),
                        false => Ok(Reached { folder: here, missing }),
                    };
                }
                Step::Link(target) => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(PathError::Circle { path: path.to_owned() });
                    }
                    if target.starts_with('/') {
                        way.truncate(1);
                    }
                    target.split('/').rev().for_each(|name| ahead.push_front(name.to_owned()));
                }
            },
        }
    }
    Ok(Reached { folder: way.pop().unwrap_or_else(|| root.clone()), missing: Vec::new() })
}

enum Step {
    Folder(Folder),
    Link(String),
    Missing,
}

/// What stands under one name: opened before it is looked at, so that nobody can put
/// something else in its place in between.
fn step(here: &Folder, name: &str, path: &str) -> Result<Step, PathError> {
    let failed = |errno: Errno| PathError::io(path, errno.into());
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = match rustix::fs::openat(here, name, flags, Mode::empty()) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(Step::Missing),
        Err(errno) => return Err(failed(errno)),
    };
    let stat = rustix::fs::fstat(&found).map_err(failed)?;
    let no_way = |what| {
        let at = here.path_of(name);
        Err(PathError::NoWay { path: path.to_owned(), at, what })
    };
    match Kind::of_mode(stat.st_mode) {
        Kind::Folder => Ok(Step::Folder(here.below(name, found))),
        Kind::Link if stat.st_uid == 0 || stat.st_uid == rustix::process::geteuid().as_raw() => {
            let target = rustix::fs::readlinkat(&found, "", Vec::new()).map_err(failed)?;
            match target.into_string() {
                Ok(target) => Ok(Step::Link(target)),
                Err(_) => no_way("a link whose target is not valid text"),
            }
        }
        Kind::Link => no_way("a link that root does not own"),
        Kind::File => no_way("a file"),
        Kind::Other => no_way("neither a folder nor a link"),
    }
}
