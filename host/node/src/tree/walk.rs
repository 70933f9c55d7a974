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
        /// What the system said.
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

/// Walks to a folder, as far as there is one; each name on the way is visited first.
pub(super) fn reach(
    root: &Folder,
    path: &str,
    visit: &mut dyn FnMut(&Folder, &str),
) -> Result<Reached, PathError> {
    let names: Vec<&str> = names(path)?;
    let mut walk = Walk::from(root, path);
    let missing = walk.along(&names, visit)?;
    Ok(Reached { folder: walk.here(), missing })
}

/// The folder in which a path ends and its name there, once the links of root are followed that
/// stand under the last name; nothing if it is not there. As in a link, `..` goes back.
pub(super) fn place_followed(
    root: &Folder,
    path: &str,
) -> Result<Option<(Folder, String)>, PathError> {
    let is_name = |name: &str| !matches!(name, "" | "." | "..");
    let (folder, name) = match path.rsplit_once('/') {
        Some((folder, name)) if path.starts_with('/') && is_name(name) => (folder, name),
        _ => return Err(PathError::Unclean { path: path.to_owned() }),
    };
    let mut walk = Walk::from(root, path);
    let (mut folder, mut name) = (folder.to_owned(), name.to_owned());
    loop {
        let names: Vec<&str> = folder.split('/').collect();
        if !walk.along(&names, &mut |_, _| {})?.is_empty() {
            return Ok(None);
        }
        let here = walk.here();
        match under(&here, &name, path)? {
            Under::Missing => return Ok(None),
            Under::Folder(_) | Under::Else(_) => return Ok(Some((here, name))),
            Under::Link(target) => {
                walk.link(&target)?;
                let (before, last) = target.rsplit_once('/').unwrap_or(("", &target));
                if !is_name(last) {
                    return Err(no_way(&here, &name, path, "a link to a folder"));
                }
                (folder, name) = (before.to_owned(), last.to_owned());
            }
        }
    }
}

/// A walk from the root.
struct Walk<'w> {
    root: &'w Folder,
    /// The folders from the root to where the walk is: `..` in a link goes back in it.
    way: Vec<Folder>,
    links: usize,
    /// What is walked to, for an error.
    path: &'w str,
}

impl<'w> Walk<'w> {
    fn from(root: &'w Folder, path: &'w str) -> Walk<'w> {
        Walk { root, way: vec![root.clone()], links: 0, path }
    }

    /// Where it is.
    fn here(&self) -> Folder {
        self.way.last().unwrap_or(self.root).clone()
    }

    /// A link is followed.
    fn link(&mut self, target: &str) -> Result<(), PathError> {
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(PathError::Circle { path: self.path.to_owned() });
        }
        if target.starts_with('/') {
            self.way.truncate(1);
        }
        Ok(())
    }

    /// Goes on through folders, and through what links among them say, as far as they are
    /// there; returns the names that are not.
    fn along(
        &mut self,
        names: &[&str],
        visit: &mut dyn FnMut(&Folder, &str),
    ) -> Result<Vec<String>, PathError> {
        let mut ahead: VecDeque<String> = names.iter().map(|name| (*name).to_owned()).collect();
        while let Some(name) = ahead.pop_front() {
            let here = self.here();
            if !matches!(name.as_str(), "" | "." | "..") {
                visit(&here, &name);
            }
            match name.as_str() {
                "" | "." => continue,
                ".." => {
                    if self.way.len() > 1 {
                        self.way.pop();
                    }
                    continue;
                }
                name => match under(&here, name, self.path)? {
                    Under::Folder(folder) => self.way.push(folder),
                    Under::Missing => {
                        let rest =
                            ahead.into_iter().filter(|name| !matches!(name.as_str(), "" | "."));
                        let missing: Vec<String> =
                            std::iter::once(name.to_owned()).chain(rest).collect();
                        return match missing.iter().any(|name| name == "..") {
                            true => Err(PathError::io(self.path, io::ErrorKind::NotFound.into())),
                            false => Ok(missing),
                        };
                    }
                    Under::Link(target) => {
                        self.link(&target)?;
                        target.split('/').rev().for_each(|name| ahead.push_front(name.to_owned()));
                    }
                    Under::Else(what) => return Err(no_way(&here, name, self.path, what)),
                },
            }
        }
        Ok(Vec::new())
    }
}

fn no_way(here: &Folder, name: &str, path: &str, what: &'static str) -> PathError {
    PathError::NoWay { path: path.to_owned(), at: here.path_of(name), what }
}

enum Under {
    Folder(Folder),
    Link(String),
    Missing,
    Else(&'static str),
}

/// What stands under one name: opened before it is looked at, so that nobody can put
/// something else in its place in between.
fn under(here: &Folder, name: &str, path: &str) -> Result<Under, PathError> {
    let failed = |errno: Errno| PathError::io(path, errno.into());
    if here.automounts {
        // The kernel mounts what is mounted once somebody looks only for who opens a folder.
        match here.folder(name) {
            Ok(folder) => return Ok(Under::Folder(folder)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Under::Missing),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
            Err(error) => return Err(PathError::io(path, error)),
        }
    }
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = match rustix::fs::openat(here, name, flags, Mode::empty()) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(Under::Missing),
        Err(errno) => return Err(failed(errno)),
    };
    let stat = rustix::fs::fstat(&found).map_err(failed)?;
    match Kind::of_mode(stat.st_mode) {
        Kind::Folder => Ok(Under::Folder(here.below(name, found))),
        Kind::Link if stat.st_uid == 0 || stat.st_uid == rustix::process::geteuid().as_raw() => {
            let target = rustix::fs::readlinkat(&found, "", Vec::new()).map_err(failed)?;
            match target.into_string() {
                Ok(target) => Ok(Under::Link(target)),
                Err(_) => Err(no_way(here, name, path, "a link whose target is not valid text")),
            }
        }
        Kind::Link => Err(no_way(here, name, path, "a link that root does not own")),
        Kind::File => Ok(Under::Else("a file")),
        Kind::Other => Ok(Under::Else("neither a folder nor a link")),
    }
}
