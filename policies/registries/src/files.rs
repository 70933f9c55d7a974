//! The files of both sides, and what they say together.

use crate::config::{Config, Registry, Settings};
use crate::load::{LIST, Loaded, Problem, check, load, registries_of};
use tread_guest_sdk::{Content, Context, State};
use tread_policy_formats::toml::{Document, read};
use tread_policy_formats::{Beside, read_beside};

/// The main file.
pub(crate) const MAIN: &str = "/etc/containers/registries.conf";
/// Where its drop-ins are.
const DROP_INS: &str = "/etc/containers/registries.conf.d/";

/// Drop-ins with short names that the system brings, of one release or another. Where the config has
/// no such file, the system's own counts.
const DELIVERED: [&str; 3] =
    ["000-shortnames.conf", "001-rhel-shortnames.conf", "002-rhel-shortnames-overrides.conf"];

/// A file that takes the place of the system's own, or gives it back.
pub(crate) fn in_place_of_the_systems<'a>(files: &[File<'a>]) -> Option<&'a str> {
    let name = |path: &'a str| path.strip_prefix(DROP_INS);
    let is_delivered = |path: &'a str| name(path).is_some_and(|name| DELIVERED.contains(&name));
    let mut changed = files.iter().filter(|file| file.was_there() != file.is_to_come());
    changed.find(|file| is_delivered(file.path)).map(|file| file.path)
}

/// Whether a file decides where images are looked up.
pub(crate) fn is_lookup(path: &str) -> bool {
    path == MAIN || path.starts_with(DROP_INS)
}

/// Why the files of one side do not say anything.
pub(crate) enum Trouble<'a> {
    /// The runtime would not load this file.
    Broken(&'a str, Problem),
    /// Of this one only a token is known.
    Hidden(&'a str),
}

/// A file on both sides.
pub(crate) struct File<'a> {
    pub(crate) path: &'a str,
    before: Option<&'a Content>,
    pub(crate) after: Option<&'a Content>,
}

impl File<'_> {
    /// Whether there was such a file before the change.
    pub(crate) fn was_there(&self) -> bool {
        self.before.is_some_and(|content| *content != Content::Absent)
    }

    /// Whether there is such a file after the change.
    pub(crate) fn is_to_come(&self) -> bool {
        self.after.is_some_and(|content| *content != Content::Absent)
    }
}

/// The files that are `wanted`, in the order in which the runtime reads them.
pub(crate) fn files<'a>(context: &Context<'a>, wanted: impl Fn(&str) -> bool) -> Vec<File<'a>> {
    let content = |state: &'a State| state.as_file().map(|file| &file.content);
    let unchanged = context.unchanged.iter().map(|entry| {
        let content = content(&entry.state);
        (entry.path(), content, content)
    });
    let changed = context
        .changes
        .iter()
        .map(|change| (change.path(), content(&change.before), content(&change.after)));
    let all = unchanged
        .chain(changed)
        .filter_map(|(path, before, after)| Some(File { path: path?, before, after }))
        .filter(|file| wanted(file.path));
    // The main file's path comes before those of its drop-ins.
    let mut files: Vec<File<'a>> = Vec::new();
    for file in all {
        let at = files.partition_point(|other| other.path <= file.path);
        files.insert(at, file);
    }
    files
}

/// The bytes of a side, if it has any.
pub(crate) fn bytes<'a>(
    path: &'a str,
    side: Option<&'a Content>,
) -> Result<Option<&'a [u8]>, Trouble<'a>> {
    match side {
        None | Some(Content::Absent) => Ok(None),
        Some(Content::Digest(_)) => Err(Trouble::Hidden(path)),
        Some(Content::Bytes(bytes)) => Ok(Some(bytes)),
    }
}

/// What was read of each file up to the first trouble.
pub(crate) struct Read<'a, T> {
    pub(crate) files: Vec<Option<T>>,
    pub(crate) trouble: Option<Trouble<'a>>,
}

impl<'a, T> Read<'a, T> {
    fn each<'f>(
        files: &'f [File<'a>],
        read: impl Fn(usize, &'f File<'a>) -> Result<Option<T>, Trouble<'a>>,
    ) -> Read<'a, T> {
        let mut all = Vec::with_capacity(files.len());
        for (number, file) in files.iter().enumerate() {
            match read(number, file) {
                Ok(read) => all.push(read),
                Err(trouble) => return Read { files: all, trouble: Some(trouble) },
            }
        }
        Read { files: all, trouble: None }
    }
}

/// A file of before, as far as it was read.
pub(crate) enum Old<'a> {
    /// It is as after.
    Same,
    Read(Beside<'a>),
}

/// The documents of after.
pub(crate) fn read_after<'a>(files: &[File<'a>]) -> Read<'a, Document<'a>> {
    Read::each(files, |_, file| match bytes(file.path, file.after)? {
        None => Ok(None),
        Some(bytes) => {
            read(bytes).map(Some).map_err(|error| Trouble::Broken(file.path, error.into()))
        }
    })
}

/// The documents of before; what is as after is not read again.
pub(crate) fn read_before<'a>(
    files: &[File<'a>],
    after: &Read<'a, Document<'a>>,
) -> Read<'a, Old<'a>> {
    Read::each(files, |number, file| {
        let Some(old) = bytes(file.path, file.before)? else { return Ok(None) };
        let new = file.after.and_then(Content::bytes).unwrap_or_default();
        let read = match after.files.get(number) {
            Some(Some(_)) if std::ptr::eq(old, new) => return Ok(Some(Old::Same)),
            Some(Some(document)) => read_beside(old, new, document, LIST),
            _ => read(old).map(Beside::Whole),
        };
        read.map(|read| Some(Old::Read(read)))
            .map_err(|error| Trouble::Broken(file.path, error.into()))
    })
}

/// What a file of before says.
pub(crate) enum Before<'a> {
    /// The same as after.
    Same,
    Whole(Loaded<'a>),
    /// Of the registries of after the first and the last ones, and these
    /// between them.
    Part(usize, Vec<Registry<'a>>, usize),
}

/// What each file of after says.
pub(crate) fn load_after<'a>(
    files: &[File<'a>],
    read: &'a Read<'_, Document<'_>>,
) -> Result<Vec<Option<Loaded<'a>>>, Trouble<'a>> {
    let load = |(file, document): (&File<'a>, &'a Option<Document<'_>>)| match document {
        None => Ok(None),
        Some(document) => {
            load(document, false).map(Some).map_err(|problem| Trouble::Broken(file.path, problem))
        }
    };
    files.iter().zip(&read.files).map(load).collect()
}

/// What each file of before says.
pub(crate) fn load_before<'a>(
    files: &[File<'a>],
    read: &'a Read<'_, Old<'_>>,
) -> Result<Vec<Option<Before<'a>>>, Trouble<'a>> {
    let load = |(file, old): (&File<'a>, &'a Option<Old<'_>>)| {
        let loaded = match old {
            None => return Ok(None),
            Some(Old::Same) => Ok(Before::Same),
            Some(Old::Read(Beside::Whole(document))) => {
                load(document, file.path == MAIN).map(Before::Whole)
            }
            Some(Old::Read(Beside::Part { first, middle, last })) => registries_of(middle)
                .map(|middle| Before::Part(*first, middle, *last))
                .map_err(Problem::from),
        };
        loaded.map(Some).map_err(|problem| Trouble::Broken(file.path, problem))
    };
    files.iter().zip(&read.files).map(load).collect()
}

/// What the files of after say together.
pub(crate) fn config_after<'a>(files: &[File<'_>], after: &'a [Option<Loaded<'a>>]) -> Config<'a> {
    let mut config = Config::base();
    for (file, loaded) in files.iter().zip(after) {
        if let Some(loaded) = loaded {
            add(&mut config, file, loaded.registries.iter().collect(), loaded.settings.clone());
        }
    }
    config
}

/// What the files of before say together.
pub(crate) fn config_before<'a>(
    files: &[File<'a>],
    before: &'a [Option<Before<'a>>],
    after: &'a [Option<Loaded<'a>>],
) -> Result<Config<'a>, Trouble<'a>> {
    let mut config = Config::base();
    for ((file, loaded), after) in files.iter().zip(before).zip(after) {
        let (registries, settings): (Vec<&Registry<'a>>, _) = match (loaded, after) {
            (Some(Before::Whole(loaded)), _) => {
                (loaded.registries.iter().collect(), &loaded.settings)
            }
            (Some(Before::Same), Some(after)) => {
                (after.registries.iter().collect(), &after.settings)
            }
            (Some(Before::Part(first, middle, last)), Some(after)) => {
                let all = &after.registries;
                let start = all.iter().take(*first);
                let end = all.iter().skip(all.len().saturating_sub(*last));
                let registries: Vec<_> = start.chain(middle).chain(end).collect();
                check(&registries).map_err(|what| Trouble::Broken(file.path, what.into()))?;
                (registries, &after.settings)
            }
            _ => continue,
        };
        add(&mut config, file, registries, settings.clone());
    }
    Ok(config)
}

fn add<'a>(
    config: &mut Config<'a>,
    file: &File<'_>,
    registries: Vec<&'a Registry<'a>>,
    settings: Settings<'a>,
) {
    if file.path == MAIN {
        *config = Config::of(registries, settings);
    } else {
        config.merge(registries, settings);
    }
}
