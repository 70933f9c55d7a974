//! Node configs for tests, in a few words.

use std::borrow::Cow;
use tread_model::config::{Dropin, File, NodeConfig, Origin, Source, Unit, User};

/// A file with plain text in it.
pub(crate) fn file(path: &str, text: &str) -> File<'static> {
    File {
        path: Cow::Owned(path.to_owned()),
        contents: url(&format!("data:,{text}")),
        mode: None,
        user: "root".into(),
        group: "root".into(),
        appends: false,
        needs_source: false,
        raw: b"",
        origin: Origin::default(),
    }
}

/// A source that is not compressed.
pub(crate) fn url(url: &str) -> Source<'static> {
    Source { url: Some(Cow::Owned(url.to_owned())), gzip: false }
}

/// A unit; an empty text is none.
pub(crate) fn unit(name: &str, contents: &str, enabled: Option<bool>) -> Unit<'static> {
    Unit {
        name: Cow::Owned(name.to_owned()),
        contents: (!contents.is_empty()).then(|| Cow::Owned(contents.to_owned())),
        enabled,
        mask: None,
        dropins: Vec::new(),
        raw: b"",
        origin: Origin::default(),
    }
}

/// A drop-in.
pub(crate) fn dropin(name: &str, contents: Option<&str>) -> Dropin<'static> {
    Dropin {
        name: Cow::Owned(name.to_owned()),
        contents: contents.map(|text| Cow::Owned(text.to_owned())),
    }
}

/// A user with keys.
pub(crate) fn user(name: &str, keys: &[&str]) -> User<'static> {
    User { name: Cow::Owned(name.to_owned()), ssh_keys: list(keys), ..User::default() }
}

/// Owned words.
pub(crate) fn list(words: &[&str]) -> Vec<Cow<'static, str>> {
    words.iter().map(|word| Cow::Owned(word.to_string())).collect()
}

/// A config with these files, in order of path.
pub(crate) fn files(files: impl IntoIterator<Item = File<'static>>) -> NodeConfig<'static> {
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    for (index, file) in files.iter_mut().enumerate() {
        file.origin.index = index as u32;
    }
    NodeConfig { name: "worker".into(), files, ..NodeConfig::default() }
}

/// A config with these units, in order of name.
pub(crate) fn units(units: impl IntoIterator<Item = Unit<'static>>) -> NodeConfig<'static> {
    let mut units: Vec<_> = units.into_iter().collect();
    units.sort_by(|a, b| a.name.cmp(&b.name));
    NodeConfig { units, ..NodeConfig::default() }
}

/// A config with these users, in order of name.
pub(crate) fn users(users: impl IntoIterator<Item = User<'static>>) -> NodeConfig<'static> {
    NodeConfig { users: users.into_iter().collect(), ..NodeConfig::default() }
}
