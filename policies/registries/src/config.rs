//! What registries.conf and its drop-ins say together.

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

/// What is done about a short name that several registries may know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShortNames {
    /// All are asked in turn: `disabled`, and `permissive` without a terminal.
    Ask,
    /// `enforcing`: without a terminal, the pull fails.
    Fail,
}

/// All but the registries that a file sets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Settings<'a> {
    /// `unqualified-search-registries`; a file that does not set it leaves it
    /// as it is.
    pub(crate) search: Option<Vec<&'a str>>,
    pub(crate) short_names: Option<ShortNames>,
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
    /// Whether there is a registry that is blocked…
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
        let registries = first_of_each(registries);
        let mut config = Config { registries, settings, blocks: false, wildcards: false };
        config.look_over();
        config
    }

    /// Adds a drop-in, which wins.
    pub(crate) fn merge(&mut self, registries: Vec<&'a Registry<'a>>, later: Settings<'a>) {
        for (prefix, registry) in first_of_each(registries).into_entries() {
            self.registries.put(prefix, registry);
        }
        let settings = &mut self.settings;
        for (short, name) in later.aliases.into_entries() {
            settings.aliases.put(short, name);
        }
        settings.search = later.search.or(settings.search.take());
        settings.short_names = later.short_names.or(settings.short_names);
        settings.credential_helpers =
            later.credential_helpers.or(settings.credential_helpers.take());
        if !later.layer_store_helper.is_empty() {
            settings.layer_store_helper = later.layer_store_helper;
        }
        self.look_over();
    }

    fn look_over(&mut self) {
        self.blocks = self.registries.values().any(|registry| registry.blocked);
        self.wildcards = self.registries.values().any(|registry| registry.prefix.starts_with("*."));
    }

    /// The registries that are asked for a short name without an alias.
    pub(crate) fn search(&self) -> &[&'a str] {
        match self.settings.search.as_deref() {
            Some([_, _, ..]) if self.settings.short_names == Some(ShortNames::Fail) => &[],
            Some(search) => search,
            None => &[],
        }
    }

    /// The names that a short name may stand for, in order.
    pub(crate) fn candidates(&self, short: &str) -> Vec<String> {
        if let Some(Some(name)) = self.settings.aliases.get(short) {
            return vec![name.to_string()];
        }
        self.search().iter().map(|registry| crate::name::complete(registry, short)).collect()
    }

    /// Who is asked for credentials: the runtime's own files, unless set.
    pub(crate) fn credential_helpers(&self) -> &[&'a str] {
        let helpers = self.settings.credential_helpers.as_deref().unwrap_or_default();
        if helpers == ["containers-auth.json"] { &[] } else { helpers }
    }
}

/// The first of several with the same prefix counts.
fn first_of_each<'a>(registries: Vec<&'a Registry<'a>>) -> Names<'a, &'a Registry<'a>> {
    let mut names = Names::with_capacity(registries.len());
    for registry in registries {
        names.first(registry.prefix, registry);
    }
    names
}
