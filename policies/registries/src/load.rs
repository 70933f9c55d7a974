//! From the text of one file to what it says, as strict as the container
//! runtime: what is refused here would keep CRI-O from starting. Where its
//! releases differ, the strictest counts.
//!
//! As there, keys are found whatever their case, keys that are not known are
//! passed over, and a value of another type is an error.

use crate::config::{Mirror, Pull, Registry, Settings};
use crate::fields::fields;
use crate::name::{alias_target, is_domain, is_short};
use crate::names::{self, Names};
use std::borrow::Cow;
use tread_policy_formats::toml::{Document, Error};
use tread_policy_formats::{Item, Section, words};

/// The list that most of a file is.
pub(crate) const LIST: &str = "registry";

/// Why the runtime would not load a file. It quotes nothing but keys.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Where, if that is known: `line 3`, `[[registry]] number 2`.
    pub(crate) at: Option<String>,
    pub(crate) what: &'static str,
}

impl From<&'static str> for Problem {
    fn from(what: &'static str) -> Problem {
        Problem { at: None, what }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        let at = ["line ", &error.line.to_string()].concat();
        Problem { at: Some(at), what: error.what }
    }
}

pub(crate) type Result<T, E = &'static str> = std::result::Result<T, E>;

/// What a file says.
#[derive(Debug)]
pub(crate) struct Loaded<'a> {
    /// In the order of the file.
    pub(crate) registries: Vec<Registry<'a>>,
    pub(crate) settings: Settings<'a>,
}

/// Loads registries.conf, or one of its drop-ins. Version 1 of the format is
/// loaded by older releases only, and never in a drop-in.
pub(crate) fn load<'a>(
    document: &'a Document<'_>,
    takes_version_1: bool,
) -> Result<Loaded<'a>, Problem> {
    let [list, search, helpers, mode, store, aliases, old] = fields(
        &document.root,
        [
            LIST,
            "unqualified-search-registries",
            "credential-helpers",
            "short-name-mode",
            "additional-layer-store-auth-helper",
            "aliases",
            "registries",
        ],
    )?;
    let version_1 = version_1(old)?;
    let mut registries = self::registries(list)?;
    check(&registries.iter().collect::<Vec<_>>())?;
    check_short_name_mode(text(mode)?)?;
    let mut settings = Settings {
        search: self::search(search)?,
        aliases: self::aliases(aliases)?,
        credential_helpers: texts(helpers)?,
        layer_store_helper: text(store)?,
    };
    check_wildcards(&registries)?;
    if let Some(lists) = version_1 {
        if !takes_version_1 {
            return Err(VERSION_1.into());
        }
        let says = |item: Option<&Item<'_>>| text(item).is_ok_and(|text| !text.is_empty());
        let sets = [list, search, helpers, aliases].iter().any(Option::is_some);
        if sets || says(mode) || says(store) {
            return Err("it mixes version 1 ([registries.…]) and 2 of the format".into());
        }
        (registries, settings) = convert(lists)?;
    }
    Ok(Loaded { registries, settings })
}

const VERSION_1: &str = "it is written in version 1 of the format ([registries.search] and the like), \
    which newer releases refuse; write it in version 2";

/// The registries of a list, each by itself.
pub(crate) fn registries<'a>(list: Option<&'a Item<'_>>) -> Result<Vec<Registry<'a>>, Problem> {
    let mut registries = Vec::new();
    each_table(list, |number, table| {
        registries.push(registry(table).map_err(|what| Problem {
            at: Some(["[[registry]] number ", &(number + 1).to_string()].concat()),
            what,
        })?);
        Ok::<_, Problem>(())
    })?;
    Ok(registries)
}

/// As [`registries`], of tables that were read by themselves.
pub(crate) fn registries_of<'a>(tables: &'a [Section<'_>]) -> Result<Vec<Registry<'a>>> {
    let registries = tables.iter().map(registry).collect::<Result<Vec<_>>>()?;
    check_wildcards(&registries)?;
    Ok(registries)
}

fn check_wildcards(registries: &[Registry<'_>]) -> Result<()> {
    let wrong = |registry: &Registry<'_>| {
        registry.prefix.starts_with("*.") && registry.prefix.contains(['/', '@', ':'])
    };
    if registries.iter().any(wrong) {
        return Err("after the *. of a prefix there may be a host only, without a port");
    }
    Ok(())
}

/// The same location twice must be blocked and insecure alike.
pub(crate) fn check<'a>(registries: &[&'a Registry<'a>]) -> Result<()> {
    let place = |registry: &Registry<'a>| match registry.location {
        "" => registry.prefix,
        location => location,
    };
    let mut by_place: Vec<_> =
        registries.iter().map(|registry| (place(registry), *registry)).collect();
    names::sort(&mut by_place);
    let flags = |registry: &Registry<'a>| (registry.insecure, registry.blocked);
    let differ = |pair: &[(&str, &Registry<'a>)]| match pair {
        [(a, first), (b, second)] => flags(first) != flags(second) && words::equal(a, b),
        _ => false,
    };
    if by_place.windows(2).any(differ) {
        return Err("two entries for one location differ in insecure or blocked");
    }
    Ok(())
}

fn search<'a>(item: Option<&'a Item<'_>>) -> Result<Option<Vec<&'a str>>> {
    let mut search = texts(item)?;
    for entry in search.iter_mut().flatten() {
        *entry = location(entry)?;
        if !is_domain(entry) {
            return Err("an entry of unqualified-search-registries is no HOST[:PORT]; \
                        an IPv6 address is none either");
        }
    }
    Ok(search)
}

fn check_short_name_mode(mode: &str) -> Result<()> {
    match mode {
        "" | "permissive" | "disabled" | "enforcing" => Ok(()),
        _ => Err("short-name-mode must be enforcing, permissive or disabled"),
    }
}

fn aliases<'a>(item: Option<&'a Item<'_>>) -> Result<Names<'a, Option<Cow<'a, str>>>> {
    const TARGET: &str = "an alias must stand for REGISTRY/PATH, without tag and digest";
    let mut aliases = Names::default();
    for (short, target) in table(item)?.into_iter().flat_map(Section::iter) {
        if !is_short(short) {
            return Err(
                "the name of an alias must be a short name, without registry, tag and digest",
            );
        }
        let target = match target.as_text().ok_or("an alias must be a text")? {
            "" => None,
            target => Some(alias_target(target).ok_or(TARGET)?),
        };
        aliases.put(short, target);
    }
    Ok(aliases)
}

fn registry<'a>(table: &'a Section<'_>) -> Result<Registry<'a>> {
    let [place, prefix, by_digest, pull, insecure, proxy, blocked, mirrors] = fields(
        table,
        [
            "location",
            "prefix",
            "mirror-by-digest-only",
            "pull-from-mirror",
            "insecure",
            "namespace-proxy",
            "blocked",
            "mirror",
        ],
    )?;
    let place = location(text(place)?)?;
    let prefix = match text(prefix)? {
        "" => place,
        prefix => location(prefix)?,
    };
    if place.is_empty() && !prefix.starts_with("*.") {
        return Err("it has no location; only a prefix that starts with *. can do without");
    }
    let mirror_by_digest_only = boolean(by_digest)?;
    if !text(pull)?.is_empty() {
        return Err("pull-from-mirror is for mirrors, not for the registry itself");
    }
    let (insecure, proxy, blocked) = (boolean(insecure)?, text(proxy)?, boolean(blocked)?);
    let mut all = Vec::new();
    let mut restricted = false;
    each_table(mirrors, |_, table| {
        let (mirror, restricts) = mirror(table)?;
        all.push(mirror);
        restricted |= restricts;
        Ok::<_, &str>(())
    })?;
    if mirror_by_digest_only && restricted {
        return Err("it has mirror-by-digest-only, so its mirrors cannot have pull-from-mirror");
    }
    Ok(Registry {
        prefix,
        location: place,
        insecure,
        proxy,
        blocked,
        mirror_by_digest_only,
        mirrors: all,
    })
}

/// A mirror, and whether it says itself what it is used for.
fn mirror<'a>(table: &'a Section<'_>) -> Result<(Mirror<'a>, bool)> {
    let [place, pull, insecure, proxy] =
        fields(table, ["location", "pull-from-mirror", "insecure", "namespace-proxy"])?;
    let location = location(text(place)?)?;
    if location.is_empty() {
        return Err("one of its mirrors has no location");
    }
    let written = text(pull)?;
    let pull = match written {
        "" | "all" => Pull::All,
        "digest-only" => Pull::DigestOnly,
        "tag-only" => Pull::TagOnly,
        _ => return Err("pull-from-mirror must be all, digest-only or tag-only"),
    };
    let mirror = Mirror { location, insecure: boolean(insecure)?, proxy: text(proxy)?, pull };
    Ok((mirror, !written.is_empty()))
}

/// A location or prefix without the slashes at its end.
fn location(text: &str) -> Result<&str> {
    let text = text.trim_end_matches('/');
    if words::starts_with(text, "http://") || words::starts_with(text, "https://") {
        return Err("a location is written without http:// or https://");
    }
    Ok(text)
}

/// The lists of version 1 of the format: to search, insecure and blocked.
type Version1<'a> = [Option<Vec<&'a str>>; 3];

/// The file in version 1 of the format, if it says anything in it.
fn version_1<'a>(item: Option<&'a Item<'_>>) -> Result<Option<Version1<'a>>> {
    let Some(lists) = table(item)? else { return Ok(None) };
    let list = |item| match table(item)? {
        Some(table) => {
            let [list] = fields(table, ["registries"])?;
            texts(list)
        }
        None => Ok(None),
    };
    let [search, insecure, block] = fields(lists, ["search", "insecure", "block"])?;
    let lists = [list(search)?, list(insecure)?, list(block)?];
    Ok(lists.iter().any(Option::is_some).then_some(lists))
}

fn convert(
    [mut search, insecure, block]: Version1<'_>,
) -> Result<(Vec<Registry<'_>>, Settings<'_>)> {
    let mut by_place = Names::default();
    let blocked = block.into_iter().flatten().map(|place| (place, true));
    let insecure = insecure.into_iter().flatten().map(|place| (place, false));
    for (place, is_blocked) in blocked.chain(insecure) {
        let place = location(place)?;
        if place.is_empty() {
            return Err("an entry of a list of registries is empty");
        }
        let new = Registry {
            prefix: place,
            location: place,
            insecure: false,
            proxy: "",
            blocked: false,
            mirror_by_digest_only: false,
            mirrors: Vec::new(),
        };
        let Some(registry) = by_place.first(place, new) else { continue };
        registry.blocked |= is_blocked;
        registry.insecure |= !is_blocked;
    }
    for entry in search.iter_mut().flatten() {
        *entry = location(entry)?;
        if !is_domain(entry) {
            return Err("an entry of registries.search is no HOST[:PORT]");
        }
    }
    let registries = by_place.into_entries().into_iter().map(|(_, registry)| registry).collect();
    Ok((registries, Settings { search, ..Settings::default() }))
}

fn text<'a>(item: Option<&'a Item<'_>>) -> Result<&'a str> {
    match item {
        None => Ok(""),
        Some(item) => item.as_text().ok_or("a value that must be a text is none"),
    }
}

fn boolean(item: Option<&Item<'_>>) -> Result<bool> {
    match item {
        None => Ok(false),
        Some(Item::Bool(truth)) => Ok(*truth),
        Some(_) => Err("a value that must be true or false is neither"),
    }
}

fn texts<'a>(item: Option<&'a Item<'_>>) -> Result<Option<Vec<&'a str>>> {
    let items = match item {
        None => return Ok(None),
        Some(Item::List(items)) => items,
        Some(Item::Tables(_)) => return Err("a list of texts holds another value"),
        Some(_) => return Err("a value that must be a list is none"),
    };
    let texts: Option<Vec<&str>> = items.iter().map(Item::as_text).collect();
    texts.map(Some).ok_or("a list of texts holds another value")
}

fn table<'a, 't>(item: Option<&'a Item<'t>>) -> Result<Option<&'a Section<'t>>> {
    match item {
        None => Ok(None),
        Some(item) => item.as_table().map(Some).ok_or("a value that must be a table is none"),
    }
}

/// Calls `each` for every table of a list, with its number from 0.
fn each_table<'a, 't, E: From<&'static str>>(
    item: Option<&'a Item<'t>>,
    mut each: impl FnMut(usize, &'a Section<'t>) -> Result<(), E>,
) -> Result<(), E> {
    match item {
        None => Ok(()),
        Some(Item::Tables(tables)) => {
            tables.iter().enumerate().try_for_each(|(number, table)| each(number, table))
        }
        Some(Item::List(items)) => {
            if items.iter().any(|item| item.as_table().is_none()) {
                return Err("an entry of [[registry]] or [[registry.mirror]] is no table".into());
            }
            let tables = items.iter().filter_map(Item::as_table);
            tables.enumerate().try_for_each(|(number, table)| each(number, table))
        }
        Some(_) => {
            Err("registries and mirrors are written in double brackets, as [[registry]]".into())
        }
    }
}
