//! The files of one side, and what they say together.

use crate::config::Config;
use crate::load::{Problem, load};
use tread_guest_sdk::{Content, Context, State};
use tread_policy_formats::Map;

/// The main file.
pub(crate) const MAIN: &str = "/etc/containers/registries.conf";
/// Where its drop-ins are.
const DROP_INS: &str = "/etc/containers/registries.conf.d/";

/// Whether a file decides where images are looked up.
pub(crate) fn is_lookup(path: &str) -> bool {
    path == MAIN || path.starts_with(DROP_INS)
}

/// The files of one side, in the order in which the runtime reads them.
#[derive(Default)]
pub(crate) struct Files<'a> {
    by_path: Map<(&'a str, &'a Content)>,
}

/// Why the files of one side do not say anything.
pub(crate) enum Trouble<'a> {
    /// The runtime would not load this file.
    Broken(&'a str, Problem),
    /// Only the digest of this one is known.
    Hidden(&'a str),
}

/// The files before and after.
pub(crate) fn sides<'a>(context: &Context<'a>) -> (Files<'a>, Files<'a>) {
    let (mut before, mut after) = (Files::default(), Files::default());
    for entry in context.unchanged {
        before.add(entry.path(), &entry.state);
        after.add(entry.path(), &entry.state);
    }
    for change in context.changes {
        before.add(change.path(), &change.before);
        after.add(change.path(), &change.after);
    }
    (before, after)
}

impl<'a> Files<'a> {
    fn add(&mut self, path: Option<&'a str>, state: &'a State) {
        if let (Some(path), State::File(file)) = (path, state)
            && is_lookup(path)
        {
            self.by_path.insert(path.to_string(), (path, &file.content));
        }
    }

    /// What the files say. A node that gets no main file has its system's own.
    pub(crate) fn read(&self) -> Result<Config, Trouble<'a>> {
        let mut config = Config::base();
        // The main file's path comes before those of its drop-ins.
        for (path, content) in self.by_path.values() {
            let bytes = match content {
                Content::Absent => continue,
                Content::Digest(_) => return Err(Trouble::Hidden(path)),
                Content::Bytes(bytes) => bytes,
            };
            let is_main = *path == MAIN;
            let loaded = load(bytes, !is_main).map_err(|problem| Trouble::Broken(path, problem))?;
            if is_main {
                config = loaded;
            } else {
                config.merge(loaded);
            }
        }
        Ok(config)
    }
}
