//! A registries.conf: read, extended with mirrors, and written as the container
//! runtime's own library writes it.

use super::scope::{LONGEST, scopes_around};
use super::sets::{MirrorSets, Sets};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// The file of a node whose config says nothing of it.
pub(super) const BASE: &str =
    "unqualified-search-registries = [\"registry.access.redhat.com\", \"docker.io\"]\n";

/// So many bytes of mirrors are passed on to entries inside of mirrored scopes: ten times as much as a
/// cluster takes of a MachineConfig.
const MOST_INHERITED: usize = 16 << 20;

fn too_many_inherited(source: &str) -> String {
    format!(
        "its entries without mirrors that lie inside of {source:?} and other mirrored scopes would get \
         more than 16 MiB of mirrors, which no MachineConfig holds. Remove entries, or mirrors of these \
         scopes"
    )
}

/// A registries.conf in the form of version 2. What is not about registries is
/// kept as it was.
#[derive(Debug)]
pub(super) struct Registries {
    pub(super) registries: Vec<Registry>,
    /// The first entry of each scope.
    by_scope: BTreeMap<String, usize>,
    rest: Table,
}

/// How to pull what lies in a scope.
#[derive(Debug, Default)]
pub(super) struct Registry {
    prefix: String,
    location: String,
    pub(super) insecure: bool,
    pub(super) blocked: bool,
    pub(super) mirrors: Vec<Mirror>,
    /// Every other key.
    pub(super) rest: Table,
}

/// The text of the library's error quotes the file, which may be a secret.
fn no_toml(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    match before.map(|before| before.matches('\n').count() + 1) {
        Some(line) => format!("it is no TOML (line {line})"),
        None => "it is no TOML".to_owned(),
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Mirror {
    pub(super) location: String,
    /// `digest-only`, `tag-only`; empty for any pull.
    pub(super) pull_from_mirror: String,
    /// Every other key.
    pub(super) rest: Table,
}

impl Registries {
    /// Reads a file; the error says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Registries, String> {
        let mut rest: Table = text.parse().map_err(|error| no_toml(text, &error))?;
        if rest.contains_key("registries") {
            return Err(
                "it is written in the old form ([registries.search]), which cannot hold mirrors: \
                 write [[registry]] tables"
                    .to_owned(),
            );
        }
        let registries = tables(&mut rest, "registry")?.into_iter().map(Registry::parse);
        let registries = registries.collect::<Result<Vec<_>, _>>()?;
        let mut read = Registries { registries, by_scope: BTreeMap::new(), rest };
        read.index();
        Ok(read)
    }

    /// Leaves out entries.
    pub(super) fn retain(&mut self, stays: impl FnMut(&Registry) -> bool) {
        self.registries.retain(stays);
        self.index();
    }

    fn index(&mut self) {
        self.by_scope.clear();
        for (index, registry) in self.registries.iter().enumerate() {
            self.by_scope.entry(registry.scope().to_owned()).or_insert(index);
        }
    }

    /// Adds all mirrors, those for digests first; the error says why OpenShift does not.
    pub(super) fn add(&mut self, sets: &MirrorSets) -> Result<(), String> {
        self.put(sets);
        self.inherit(sets)
    }

    /// The same, without passing mirrors on to entries that lie inside a mirrored
    /// scope.
    pub(super) fn put(&mut self, sets: &MirrorSets) {
        let both = || {
            let digest = sets.digest.iter().map(|(source, set)| (source, set, "digest-only"));
            digest.chain(sets.tag.iter().map(|(source, set)| (source, set, "tag-only")))
        };
        for (source, set, pull) in both() {
            let registry = self.entry(source);
            registry.blocked |= set.blocked;
            registry.add_mirrors(set.mirrors(source), pull);
        }
    }

    /// The entry of a scope, made if there is none.
    pub(super) fn entry(&mut self, scope: &str) -> &mut Registry {
        let found = self.by_scope.get(scope).copied();
        let index = found.unwrap_or(self.registries.len());
        if found.is_none() {
            let scope = scope.to_owned();
            self.by_scope.insert(scope.clone(), index);
            self.registries.push(match scope.starts_with("*.") {
                true => Registry { prefix: scope, ..Registry::default() },
                false => Registry { location: scope, ..Registry::default() },
            });
        }
        // It is there: it was found or pushed.
        #[expect(clippy::indexing_slicing, reason = "the index was found, or pushed just now")]
        &mut self.registries[index]
    }

    /// Gives entries without mirrors that lie inside a mirrored scope that
    /// scope's mirrors: the runtime looks only at the closest entry. Of several
    /// scopes the first one gives them, those for digests before those for tags.
    ///
    /// OpenShift gives an error where that scope is a wildcard.
    pub(super) fn inherit(&mut self, sets: &MirrorSets) -> Result<(), String> {
        let longest = sets.digest.keys().chain(sets.tag.keys()).map(String::len).max();
        let mut room = MOST_INHERITED;
        for index in 0..self.registries.len() {
            let Some(registry) = self.registries.get(index) else { continue };
            if !registry.mirrors.is_empty() {
                continue;
            }
            let first = |sources: &BTreeMap<String, Sets>| {
                let around = scopes_around(registry.scope(), longest.unwrap_or_default());
                let found = around.filter(|(outer, _)| sources.contains_key(&**outer));
                let (source, rest) = found.min_by(|(a, _), (b, _)| a.cmp(b))?;
                Some((source.into_owned(), rest.to_owned()))
            };
            let Some((source, rest)) = first(&sets.digest).or_else(|| first(&sets.tag)) else {
                continue;
            };
            if source.starts_with("*.") {
                let scope = registry.scope();
                return Err(format!(
                    "its entry of {scope:?} has no mirrors and lies inside of {source:?}, which has \
                     some: OpenShift renders no such file. Mirror {scope:?} by an object too, or \
                     name hosts in place of the wildcard"
                ));
            }
            let outer = &self.entry(&source).mirrors;
            let takes = outer.iter().map(|mirror| mirror.bytes() + rest.len()).sum();
            let Some(left) = room.checked_sub(takes) else {
                return Err(too_many_inherited(&source));
            };
            room = left;
            let mirrors: Vec<Mirror> = outer.iter().map(|mirror| mirror.inside(&rest)).collect();
            if let Some(registry) = self.registries.get_mut(index) {
                registry.mirrors = mirrors;
            }
        }
        Ok(())
    }

    /// Clears the mirrors of those `inheriting` entries that lie inside of a scope that `changes`.
    pub(super) fn take_inherited(
        &mut self,
        inheriting: &BTreeSet<String>,
        changes: impl Fn(&str) -> bool,
    ) {
        let longest = self.registries.iter().map(|it| it.scope().len()).max().unwrap_or_default();
        for registry in self.registries.iter_mut().filter(|it| inheriting.contains(it.scope())) {
            let is_within = scopes_around(registry.scope(), longest.min(LONGEST))
                .any(|(outer, _)| changes(&outer));
            if is_within {
                registry.mirrors.clear();
            }
        }
    }

    /// The scopes of those entries whose mirrors are those of a scope around them.
    pub(super) fn inheriting(&self) -> BTreeSet<String> {
        let with_mirrors = || self.registries.iter().filter(|it| !it.mirrors.is_empty());
        let longest = with_mirrors().map(|it| it.scope().len()).max().unwrap_or_default();
        let mut inheriting = BTreeSet::new();
        for registry in with_mirrors() {
            let mut around = scopes_around(registry.scope(), longest.min(LONGEST));
            let is_of = |(outer, rest): (Cow<'_, str>, &str)| {
                let outer =
                    self.by_scope.get(&*outer).and_then(|index| self.registries.get(*index));
                outer.is_some_and(|outer| {
                    outer.mirrors.len() == registry.mirrors.len()
                        && registry
                            .mirrors
                            .iter()
                            .zip(&outer.mirrors)
                            .all(|(it, of)| it.is_inside(of, rest))
                })
            };
            if around.any(is_of) {
                inheriting.insert(registry.scope().to_owned());
            }
        }
        inheriting
    }

    /// The file.
    pub(super) fn to_text(&self) -> String {
        const SEARCH: &str = "unqualified-search-registries";
        let mut out = String::new();
        let is_table = |value: &Value| match value {
            Value::Table(_) => true,
            Value::Array(items) => !items.is_empty() && items.iter().all(Value::is_table),
            _ => false,
        };
        let search = self.rest.get_key_value(SEARCH);
        let others = self.rest.iter().filter(|(key, _)| key.as_str() != SEARCH);
        for (key, value) in search.into_iter().chain(others).filter(|(_, value)| !is_table(value)) {
            line(&mut out, "", key, value);
        }
        for registry in &self.registries {
            registry.write(&mut out);
        }
        let tables = self.rest.iter().filter(|(_, value)| is_table(value));
        let tables: Table = tables.map(|(key, value)| (key.clone(), value.clone())).collect();
        if !tables.is_empty() {
            out.push('\n');
            // A table writes itself as a whole document.
            out.push_str(&tables.to_string());
        }
        out
    }
}

impl Registry {
    fn parse(mut table: Table) -> Result<Registry, String> {
        let mirrors = tables(&mut table, "mirror")?.into_iter().map(Mirror::parse);
        Ok(Registry {
            mirrors: mirrors.collect::<Result<_, _>>()?,
            prefix: string(&mut table, "prefix")?,
            location: string(&mut table, "location")?,
            insecure: flag(&mut table, "insecure")?,
            blocked: flag(&mut table, "blocked")?,
            rest: table,
        })
    }

    /// What it is about.
    pub(super) fn scope(&self) -> &str {
        if self.prefix.is_empty() { &self.location } else { &self.prefix }
    }

    /// Adds mirrors behind the others. One that is there already, because the
    /// objects were rendered into the file before, is not added again.
    fn add_mirrors(&mut self, locations: Vec<&str>, pull: &str) {
        let there = self.mirrors.iter().filter(|mirror| mirror.pull_from_mirror == pull);
        let mut there: BTreeSet<String> = there.map(|mirror| mirror.location.clone()).collect();
        for location in locations {
            if there.insert(location.to_owned()) {
                let (location, pull_from_mirror) = (location.to_owned(), pull.to_owned());
                self.mirrors.push(Mirror { location, pull_from_mirror, rest: Table::new() });
            }
        }
    }

    fn write(&self, out: &mut String) {
        out.push_str("\n[[registry]]\n");
        text_line(out, "  ", "prefix", &self.prefix);
        if !self.location.is_empty() {
            text_line(out, "  ", "location", &self.location);
        }
        if self.insecure {
            line(out, "  ", "insecure", &Value::Boolean(true));
        }
        if self.blocked {
            line(out, "  ", "blocked", &Value::Boolean(true));
        }
        self.rest.iter().for_each(|(key, value)| line(out, "  ", key, value));
        for mirror in &self.mirrors {
            out.push_str("\n  [[registry.mirror]]\n");
            text_line(out, "    ", "location", &mirror.location);
            mirror.rest.iter().for_each(|(key, value)| line(out, "    ", key, value));
            if !mirror.pull_from_mirror.is_empty() {
                text_line(out, "    ", "pull-from-mirror", &mirror.pull_from_mirror);
            }
        }
    }
}

impl Mirror {
    /// The mirror of what lies inside of what this one mirrors, by the rest of its path.
    fn inside(&self, rest: &str) -> Mirror {
        Mirror {
            location: format!("{}{rest}", self.location),
            pull_from_mirror: self.pull_from_mirror.clone(),
            rest: self.rest.clone(),
        }
    }

    /// Whether this is the mirror of what lies inside of what `outer` mirrors.
    fn is_inside(&self, outer: &Mirror, rest: &str) -> bool {
        self.location.strip_prefix(outer.location.as_str()) == Some(rest)
            && self.pull_from_mirror == outer.pull_from_mirror
            && self.rest == outer.rest
    }

    /// About how many bytes it takes to write.
    fn bytes(&self) -> usize {
        let others = if self.rest.is_empty() { 0 } else { self.rest.to_string().len() };
        self.location.len() + others + 64
    }

    fn parse(mut table: Table) -> Result<Mirror, String> {
        Ok(Mirror {
            location: string(&mut table, "location")?,
            pull_from_mirror: string(&mut table, "pull-from-mirror")?,
            rest: table,
        })
    }
}

/// A data URL as the operator writes them.
pub fn data_url(text: &str) -> String {
    let data = base64_simd::STANDARD.encode_to_string(text.as_bytes());
    format!("data:text/plain;charset=utf-8;base64,{data}")
}

fn text_line(out: &mut String, indent: &str, key: &str, text: &str) {
    line(out, indent, key, &Value::String(text.to_owned()));
}

fn line(out: &mut String, indent: &str, key: &str, value: &Value) {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let key = match !key.is_empty() && key.chars().all(bare) {
        true => key.to_owned(),
        false => Value::String(key.to_owned()).to_string(),
    };
    out.push_str(&format!("{indent}{key} = {value}\n"));
}

/// Takes a list of tables out of a table.
fn tables(table: &mut Table, key: &str) -> Result<Vec<Table>, String> {
    let items = match table.remove(key) {
        None => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(other) => return Err(wrong(key, "a list of tables", &other)),
    };
    let item = |item: Value| match item {
        Value::Table(table) => Ok(table),
        other => Err(wrong(key, "a list of tables", &other)),
    };
    items.into_iter().map(item).collect()
}

/// Takes a flag out of a table; false if there is none.
fn flag(table: &mut Table, key: &str) -> Result<bool, String> {
    match table.remove(key) {
        None => Ok(false),
        Some(Value::Boolean(set)) => Ok(set),
        Some(other) => Err(wrong(key, "true or false", &other)),
    }
}

/// Takes a string out of a table; empty if there is none.
fn string(table: &mut Table, key: &str) -> Result<String, String> {
    match table.remove(key) {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(wrong(key, "a string", &other)),
    }
}

fn wrong(key: &str, expected: &str, found: &Value) -> String {
    format!("its `{key}` has to be {expected}, found one of type {}", found.type_str())
}
