//! What registries.conf and its drop-ins say together.

use crate::name::complete;
use crate::names::Names;
use std::borrow::Cow;

/// Where images of a scope may also be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mirror<'a> {
    pub(crate) location: &'a str,
    pub(crate) insecure: bool,
    /// `namespace-proxy`: for which registry this one answers. Older releases
    /// pass it over.
    pub(crate) proxy: &'a str,
    pub(crate) pull: Pull,
}

/// What a mirror is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pull {
    All,
    DigestOnly,
    TagOnly,
}

/// One `[[registry]]`: how images of a scope are looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Registry<'a> {
    pub(crate) prefix: &'a str,
    /// Empty for a wildcard prefix whose images are where their name says.
    pub(crate) location: &'a str,
    pub(crate) insecure: bool,
    pub(crate) proxy: &'a str,
    pub(crate) blocked: bool,
    pub(crate) mirror_by_digest_only: bool,
    pub(crate) mirrors: Vec<Mirror<'a>>,
}

/// All but the registries that a file sets. `short-name-mode` is not among them:
/// CRI-O does what its own configuration says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Settings<'a> {
    /// `unqualified-search-registries`; a file that does not set it leaves it
    /// as it is.
    pub(crate) search: Option<Vec<&'a str>>,
    /// A short name's complete one; `None` takes back what an earlier file set.
    pub(crate) aliases: Names<'a, Option<Cow<'a, str>>>,
    pub(crate) credential_helpers: Option<Vec<&'a str>>,
    pub(crate) layer_store_helper: &'a str,
}

/// All files together.
#[derive(Debug)]
pub(crate) struct Config<'a> {
    /// By prefix.
    pub(crate) registries: Names<'a, &'a Registry<'a>>,
    pub(crate) settings: Settings<'a>,
    /// Whether any file has a registry that is blocked…
    pub(crate) blocks: bool,
    /// … and one whose prefix has a wildcard.
    pub(crate) wildcards: bool,
}

impl<'a> Config<'a> {
    /// What a node has that gets no registries.conf.
    pub(crate) fn base() -> Config<'a> {
        let search = Some(vec!["registry.access.redhat.com", "docker.io"]);
        Config::of(Vec::new(), Settings { search, ..Settings::default() })
    }

    /// What the main file says.
    pub(crate) fn of(registries: Vec<&'a Registry<'a>>, settings: Settings<'a>) -> Config<'a> {
        let mut config =
            Config { registries: Names::default(), settings, blocks: false, wildcards: false };
        config.add(registries);
        config
    }

    /// Adds a drop-in, which wins.
    pub(crate) fn merge(&mut self, registries: Vec<&'a Registry<'a>>, later: Settings<'a>) {
        self.add(registries);
        let settings = &mut self.settings;
        for (short, name) in later.aliases.into_entries() {
            settings.aliases.put(short, name);
        }
        settings.search = later.search.or(settings.search.take());
        settings.credential_helpers =
            later.credential_helpers.or(settings.credential_helpers.take());
        if !later.layer_store_helper.is_empty() {
            settings.layer_store_helper = later.layer_store_helper;
        }
    }

    /// Adds what one file says. Of several entries with the same prefix the first
    /// one counts.
    fn add(&mut self, registries: Vec<&'a Registry<'a>>) {
        self.blocks |= registries.iter().any(|registry| registry.blocked);
        self.wildcards |= registries.iter().any(|registry| registry.prefix.starts_with("*."));
        let entries = registries.into_iter().map(|registry| (registry.prefix, registry)).collect();
        self.registries.merge(Names::first_of_each(entries));
    }

    /// The registries that are asked for a short name without an alias.
    pub(crate) fn search(&self) -> &[&'a str] {
        self.settings.search.as_deref().unwrap_or_default()
    }

    /// The names that a short name may stand for, in order. A pull succeeds only if
    /// all of them are names.
    pub(crate) fn candidates(&self, short: &str) -> Vec<String> {
        match self.settings.aliases.get(short) {
            Some(Some(name)) => vec![name.to_string()],
            _ => self.search().iter().map(|registry| complete(registry, short)).collect(),
        }
    }

    /// Calls `each` with whatever is written of names.
    pub(crate) fn each_name<'s>(&'s self, mut each: impl FnMut(&'s str)) {
        for registry in self.registries.values() {
            each(registry.prefix);
            if !std::ptr::eq(registry.prefix, registry.location) {
                each(registry.location);
            }
            registry.mirrors.iter().for_each(|mirror| each(mirror.location));
        }
        self.search().iter().for_each(|registry| each(registry));
        for (short, target) in self.settings.aliases.iter() {
            each(short);
            target.iter().for_each(|target| each(target));
        }
    }

    /// Who is asked for credentials: the runtime's own files, unless set.
    pub(crate) fn credential_helpers(&self) -> &[&'a str] {
        let helpers = self.settings.credential_helpers.as_deref().unwrap_or_default();
        if helpers == ["containers-auth.json"] { &[] } else { helpers }
    }
}

/// What the names start with that a registry of the search list makes of short
/// ones. Docker's own images have a `library/` behind it.
pub(crate) fn searched(registry: &str) -> String {
    let mut start = complete(registry, "/");
    start.pop();
    start
}
