//! From the text of one file to what it says, as strict as the container
//! runtime: what is refused here would keep CRI-O from starting.
//!
//! As there, keys are found whatever their case, keys that are not known are
//! passed over, and a value of another type is an error.

use crate::config::{Config, Mirror, Pull, Registry, ShortNames};
use crate::name::{alias_target, is_domain, is_short};
use tread_policy_formats::{Map, Table, Value, toml};

/// Why the runtime would not load a file. It quotes nothing but keys.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Where, if that is known: `line 3`, `[[registry]] number 2`.
    pub(crate) at: Option<String>,
    pub(crate) what: &'static str,
}

type Result<T, E = &'static str> = std::result::Result<T, E>;

/// Reads registries.conf, or one of its drop-ins.
pub(crate) fn load(bytes: &[u8], drop_in: bool) -> Result<Config, Problem> {
    let root = toml::parse(bytes).map_err(|error| Problem {
        at: Some(["line ", &error.line.to_string()].concat()),
        what: error.what,
    })?;
    let general = |what| Problem { at: None, what };
    let version_1 = version_1(&root).map_err(general)?;
    let mut config = version_2(&root)?;
    if let Some(converted) = version_1 {
        if drop_in {
            return Err(general("a drop-in cannot be written in version 1 of the format"));
        }
        if has_version_2(&root) {
            return Err(general("it mixes version 1 ([registries.…]) and 2 of the format"));
        }
        config = converted.map_err(general)?;
    }
    Ok(config)
}

fn version_2(root: &Table) -> Result<Config, Problem> {
    let general = |what| Problem { at: None, what };
    let tables = tables(root, "registry").map_err(general)?;
    let mut registries = Vec::new();
    for (number, table) in tables.into_iter().enumerate() {
        registries.push(registry(table).map_err(|what| Problem {
            at: Some(["[[registry]] number ", &(number + 1).to_string()].concat()),
            what,
        })?);
    }
    conflicts(&registries).map_err(general)?;
    let mut config = settings(root).map_err(general)?;
    for (prefix, registry) in registries {
        // The first of several with the same prefix counts.
        config.registries.add(prefix, registry);
    }
    if config.registries.keys_with("*.").any(|key| key.contains(['/', '@', ':'])) {
        return Err(general("after the *. of a prefix there may be a host only, without a port"));
    }
    Ok(config)
}

fn settings(root: &Table) -> Result<Config> {
    let mut search = texts(root, "unqualified-search-registries")?;
    for entry in search.iter_mut().flatten() {
        *entry = location(entry)?;
        if !is_domain(entry) {
            return Err("an entry of unqualified-search-registries is no HOST[:PORT]");
        }
    }
    let short_names = match text(root, "short-name-mode")? {
        "" => None,
        "permissive" | "disabled" => Some(ShortNames::Ask),
        "enforcing" => Some(ShortNames::Fail),
        _ => return Err("short-name-mode must be enforcing, permissive or disabled"),
    };
    Ok(Config {
        registries: Map::new(),
        search,
        short_names,
        aliases: aliases(root)?,
        credential_helpers: texts(root, "credential-helpers")?,
        layer_store_helper: text(root, "additional-layer-store-auth-helper")?.to_string(),
    })
}

fn aliases(root: &Table) -> Result<Map<Option<String>>> {
    const TARGET: &str = "an alias must stand for REGISTRY/PATH, without tag and digest";
    let mut aliases = Map::new();
    for (short, target) in table(root, "aliases")?.into_iter().flat_map(Table::iter) {
        if !is_short(short) {
            return Err(
                "the name of an alias must be a short name, without registry, tag and digest",
            );
        }
        let target = match target.as_text().ok_or("an alias must be a text")? {
            "" => None,
            target => Some(alias_target(target).ok_or(TARGET)?),
        };
        aliases.insert(short.to_string(), target);
    }
    Ok(aliases)
}

/// An entry and its prefix.
fn registry(table: &Table) -> Result<(String, Registry)> {
    let place = location(text(table, "location")?)?;
    let prefix = match location(text(table, "prefix")?)? {
        prefix if prefix.is_empty() && text(table, "prefix")?.is_empty() => place.clone(),
        prefix => prefix,
    };
    if place.is_empty() && !prefix.starts_with("*.") {
        return Err("it has no location; only a prefix that starts with *. can do without");
    }
    let mirror_by_digest_only = boolean(table, "mirror-by-digest-only")?;
    if !text(table, "pull-from-mirror")?.is_empty() {
        return Err("pull-from-mirror is for mirrors, not for the registry itself");
    }
    let registry = Registry {
        location: place,
        insecure: boolean(table, "insecure")?,
        proxy: proxy(table)?,
        blocked: boolean(table, "blocked")?,
        mirror_by_digest_only,
        mirrors: tables(table, "mirror")?.into_iter().map(mirror).collect::<Result<_>>()?,
    };
    let restricted = |table: &Table| text(table, "pull-from-mirror").is_ok_and(|p| !p.is_empty());
    if mirror_by_digest_only && tables(table, "mirror")?.into_iter().any(restricted) {
        return Err("it has mirror-by-digest-only, so its mirrors cannot have pull-from-mirror");
    }
    Ok((prefix, registry))
}

fn mirror(table: &Table) -> Result<Mirror> {
    let location = location(text(table, "location")?)?;
    if location.is_empty() {
        return Err("one of its mirrors has no location");
    }
    let pull = match text(table, "pull-from-mirror")? {
        "" | "all" => Pull::All,
        "digest-only" => Pull::DigestOnly,
        "tag-only" => Pull::TagOnly,
        _ => return Err("pull-from-mirror must be all, digest-only or tag-only"),
    };
    Ok(Mirror { location, insecure: boolean(table, "insecure")?, proxy: proxy(table)?, pull })
}

/// The same location twice must be blocked and insecure alike.
fn conflicts(registries: &[(String, Registry)]) -> Result<()> {
    let mut by_place: Map<&Registry> = Map::new();
    for (prefix, registry) in registries {
        let place = if registry.location.is_empty() { prefix } else { &registry.location };
        let Some(first) = by_place.get_or_add(place.clone(), || registry) else { continue };
        let flags = |registry: &Registry| (registry.insecure, registry.blocked);
        if flags(first) != flags(registry) || first.proxy != registry.proxy {
            return Err("two entries for one location differ in insecure, blocked or proxy");
        }
    }
    Ok(())
}

/// A location or prefix without the slashes at its end.
fn location(text: &str) -> Result<String> {
    let text = text.trim_end_matches('/');
    if text.starts_with("http://") || text.starts_with("https://") {
        return Err("a location is written without http:// or https://");
    }
    Ok(text.to_string())
}

fn proxy(table: &Table) -> Result<String> {
    let proxy = text(table, "proxy")?;
    let known = ["http://", "https://", "socks5://", "socks5h://"];
    if !proxy.is_empty() && !known.iter().any(|scheme| proxy.starts_with(scheme)) {
        return Err("a proxy is a URL with http, https, socks5 or socks5h");
    }
    Ok(proxy.to_string())
}

/// The file in version 1 of the format, if it says anything in it.
fn version_1(root: &Table) -> Result<Option<Result<Config>>> {
    let Some(lists) = table(root, "registries")? else { return Ok(None) };
    let list = |name| match table(lists, name)? {
        Some(table) => texts(table, "registries"),
        None => Ok(None),
    };
    let (search, insecure, block) = (list("search")?, list("insecure")?, list("block")?);
    if search.is_none() && insecure.is_none() && block.is_none() {
        return Ok(None);
    }
    Ok(Some(convert(search, &insecure.unwrap_or_default(), &block.unwrap_or_default())))
}

fn convert(
    mut search: Option<Vec<String>>,
    insecure: &[String],
    block: &[String],
) -> Result<Config> {
    let mut registries = Map::new();
    for (place, is_blocked) in
        block.iter().map(|place| (place, true)).chain(insecure.iter().map(|place| (place, false)))
    {
        let place = location(place)?;
        if place.is_empty() {
            return Err("an entry of a list of registries is empty");
        }
        let new = || Registry {
            location: place.clone(),
            insecure: false,
            proxy: String::new(),
            blocked: false,
            mirror_by_digest_only: false,
            mirrors: Vec::new(),
        };
        let Some(registry) = registries.get_or_add(place.clone(), new) else { continue };
        registry.blocked |= is_blocked;
        registry.insecure |= !is_blocked;
    }
    for entry in search.iter_mut().flatten() {
        *entry = location(entry)?;
        if !is_domain(entry) {
            return Err("an entry of registries.search is no HOST[:PORT]");
        }
    }
    Ok(Config { registries, search, ..Config::default() })
}

/// Whether the file sets anything in version 2 of the format.
fn has_version_2(root: &Table) -> bool {
    let lists = ["registry", "unqualified-search-registries", "credential-helpers", "aliases"];
    let texts = ["short-name-mode", "additional-layer-store-auth-helper"];
    lists.iter().any(|key| get(root, key).is_some())
        || texts.iter().any(|key| text(root, key).is_ok_and(|text| !text.is_empty()))
}

fn get<'a>(table: &'a Table, key: &str) -> Option<&'a Value> {
    let folded = || table.iter().find(|(other, _)| other.eq_ignore_ascii_case(key));
    table.get(key).or_else(|| Some(folded()?.1))
}

fn text<'a>(table: &'a Table, key: &str) -> Result<&'a str> {
    match get(table, key) {
        None => Ok(""),
        Some(value) => value.as_text().ok_or("a value that must be a text is none"),
    }
}

fn boolean(table: &Table, key: &str) -> Result<bool> {
    match get(table, key) {
        None => Ok(false),
        Some(Value::Bool(truth)) => Ok(*truth),
        Some(_) => Err("a value that must be true or false is neither"),
    }
}

fn texts(table: &Table, key: &str) -> Result<Option<Vec<String>>> {
    let Some(value) = get(table, key) else { return Ok(None) };
    let Value::List(items) = value else { return Err("a value that must be a list is none") };
    let text = |item: &Value| item.as_text().map(str::to_string);
    items
        .iter()
        .map(text)
        .collect::<Option<_>>()
        .map(Some)
        .ok_or("a list of texts holds another value")
}

fn table<'a>(table: &'a Table, key: &str) -> Result<Option<&'a Table>> {
    match get(table, key) {
        None => Ok(None),
        Some(value) => value.as_table().map(Some).ok_or("a value that must be a table is none"),
    }
}

fn tables<'a>(table: &'a Table, key: &str) -> Result<Vec<&'a Table>> {
    match get(table, key) {
        None => Ok(Vec::new()),
        Some(Value::List(items)) => items
            .iter()
            .map(Value::as_table)
            .collect::<Option<_>>()
            .ok_or("an entry of [[registry]] or [[registry.mirror]] is no table"),
        Some(_) => Err("registries and mirrors are written in double brackets, as [[registry]]"),
    }
}
