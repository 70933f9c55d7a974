//! What registries.conf and its drop-ins say together.

use tread_policy_formats::Map;

/// Where images of a scope may also be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mirror {
    pub(crate) location: String,
    pub(crate) insecure: bool,
    pub(crate) proxy: String,
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
pub(crate) struct Registry {
    /// Empty for a wildcard prefix whose images are where their name says.
    pub(crate) location: String,
    pub(crate) insecure: bool,
    pub(crate) proxy: String,
    pub(crate) blocked: bool,
    pub(crate) mirror_by_digest_only: bool,
    pub(crate) mirrors: Vec<Mirror>,
}

/// What is done about a short name that several registries may know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShortNames {
    /// All are asked in turn: `disabled`, and `permissive` without a terminal.
    Ask,
    /// `enforcing`: without a terminal, the pull fails.
    Fail,
}

/// A file, or all of them together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Config {
    /// By prefix.
    pub(crate) registries: Map<Registry>,
    /// `unqualified-search-registries`; a file that does not set it leaves it
    /// as it is.
    pub(crate) search: Option<Vec<String>>,
    pub(crate) short_names: Option<ShortNames>,
    /// A short name's complete one; `None` takes back what an earlier file set.
    pub(crate) aliases: Map<Option<String>>,
    pub(crate) credential_helpers: Option<Vec<String>>,
    pub(crate) layer_store_helper: String,
}

impl Config {
    /// What a node has that gets no registries.conf.
    pub(crate) fn base() -> Config {
        let search = ["registry.access.redhat.com", "docker.io"].map(str::to_string);
        Config { search: Some(search.into()), ..Config::default() }
    }

    /// Adds a drop-in, which wins.
    pub(crate) fn merge(&mut self, later: Config) {
        for (prefix, registry) in later.registries.into_entries() {
            self.registries.insert(prefix, registry);
        }
        for (short, name) in later.aliases.into_entries() {
            self.aliases.insert(short, name);
        }
        self.search = later.search.or(self.search.take());
        self.short_names = later.short_names.or(self.short_names);
        self.credential_helpers = later.credential_helpers.or(self.credential_helpers.take());
        if !later.layer_store_helper.is_empty() {
            self.layer_store_helper = later.layer_store_helper;
        }
    }

    /// The registries that are asked for a short name without an alias.
    pub(crate) fn search(&self) -> &[String] {
        match self.search.as_deref() {
            Some([_, _, ..]) if self.short_names == Some(ShortNames::Fail) => &[],
            Some(search) => search,
            None => &[],
        }
    }

    /// The names that a short name may stand for, in order.
    pub(crate) fn candidates(&self, short: &str) -> Vec<String> {
        if let Some(Some(name)) = self.aliases.get(short) {
            return vec![name.clone()];
        }
        self.search().iter().map(|registry| crate::name::complete(registry, short)).collect()
    }

    /// Who is asked for credentials: the runtime's own files, unless set.
    pub(crate) fn credential_helpers(&self) -> &[String] {
        let helpers = self.credential_helpers.as_deref().unwrap_or_default();
        if helpers == ["containers-auth.json"] { &[] } else { helpers }
    }
}
