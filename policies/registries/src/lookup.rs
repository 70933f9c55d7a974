//! Where the container runtime looks for an image.

use crate::config::{Config, Pull, Registry};
use crate::name::{LONGEST, is_canonical, is_domain, is_path, is_tag};
use crate::names::Names;
use std::borrow::Cow;
use tread_policy_formats::words;

/// Whether an image is named by its digest: the same bytes wherever they come
/// from; or by a tag: whatever the first source that answers has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Tag,
    Digest,
}

/// A name that is looked up, for itself or for others that are alike.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'n> {
    pub(crate) name: &'n str,
    /// By how much the paths are longer that its path stands for.
    pub(crate) longer: isize,
    pub(crate) by: By,
}

/// Why no pull can succeed, whatever sources there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spoiler<'a> {
    /// The location that makes no name of what is asked for…
    pub(crate) location: &'a str,
    /// … because that would be by so much too long, unless zero.
    pub(crate) too_long: usize,
}

/// A place where an image is looked for.
#[derive(Debug, Clone)]
pub(crate) struct Source<'a> {
    /// The name that the image has there.
    pub(crate) name: Cow<'a, str>,
    /// Without TLS, or with any certificate.
    pub(crate) insecure: bool,
    pub(crate) proxy: &'a str,
}

impl Source<'_> {
    /// Whether it is the same place, however far it is trusted.
    pub(crate) fn is_at(&self, other: &Source<'_>) -> bool {
        words::equal(&self.name, &other.name) && words::equal(self.proxy, other.proxy)
    }
}

impl PartialEq for Source<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.insecure == other.insecure && self.is_at(other)
    }
}

/// The entry for a name, and how much of the name its prefix matches.
pub(crate) type Match<'a> = Option<(usize, &'a Registry<'a>)>;

/// What a location makes of a name.
enum Made {
    /// The name that the image has there.
    Name(String),
    /// A name that is never found: the next source is tried.
    Unusable,
    /// No name: the whole pull fails, whatever other sources there are.
    NoName,
}

/// A configuration, ready to look names up.
pub(crate) struct Side<'s, 'a> {
    pub(crate) config: &'s Config<'a>,
    /// The entries that decide what is blocked: those that are, those in the scope
    /// of one that is, and those with a wildcard.
    pub(crate) zones: Names<'a, &'a Registry<'a>>,
}

impl<'s, 'a> Side<'s, 'a> {
    pub(crate) fn of(config: &'s Config<'a>) -> Side<'s, 'a> {
        Side { config, zones: zones(config) }
    }

    /// The places where what is asked for, which `found` was found for, is looked
    /// for, in order.
    pub(crate) fn sources<'n>(
        &self,
        asked: Asked<'n>,
        found: Match<'a>,
    ) -> Result<Vec<Source<'n>>, Spoiler<'a>>
    where
        'a: 'n,
    {
        let Some((matched, registry)) = found else { return Ok(vec![as_named(asked.name)]) };
        let rest = asked.name.get(matched..).unwrap_or_default();
        let mut sources = Vec::with_capacity(registry.mirrors.len() + 1);
        for (location, insecure, proxy) in places(registry, asked.by) {
            match make(asked, location, rest) {
                Made::Name(name) => {
                    sources.push(Source { name: Cow::Owned(name), insecure, proxy });
                }
                Made::Unusable => {}
                Made::NoName => {
                    let made = [location, rest].concat();
                    return Err(Spoiler { location, too_long: too_long(&made, asked.longer) });
                }
            }
        }
        Ok(self.without_blocked(asked.name, registry, sources))
    }

    /// As [`Side::sources`], for all names of a scope at once: what is behind the
    /// scope is behind each place. Only if [`is_alike`] says so.
    pub(crate) fn sources_of_all<'n>(
        &self,
        scope: Asked<'n>,
        found: Match<'a>,
    ) -> Result<Vec<Source<'n>>, Spoiler<'a>>
    where
        'a: 'n,
    {
        let Asked { name: scope, by, .. } = scope;
        let Some((matched, registry)) = found else { return Ok(vec![as_named(scope)]) };
        let rest = scope.get(matched..).unwrap_or_default();
        let mut sources = Vec::with_capacity(registry.mirrors.len() + 1);
        for (location, insecure, proxy) in places(registry, by) {
            let name = match (location, rest) {
                ("", _) => Cow::Borrowed(scope),
                (location, "") => Cow::Borrowed(location),
                (location, rest) => Cow::Owned([location, rest].concat()),
            };
            sources.push(Source { name, insecure, proxy });
        }
        Ok(self.without_blocked(scope, registry, sources))
    }

    /// Blocked is what the place's own name falls under, be it a mirror or not.
    fn without_blocked<'n>(
        &self,
        name: &str,
        registry: &Registry<'_>,
        mut sources: Vec<Source<'n>>,
    ) -> Vec<Source<'n>> {
        let is_blocked = |place: &str| {
            if words::equal(place, name) {
                return registry.blocked;
            }
            let found = find(&self.zones, self.config.wildcards, place);
            found.is_some_and(|(_, registry)| registry.blocked)
        };
        if self.config.blocks {
            sources.retain(|source| !is_blocked(&source.name));
        }
        sources
    }

    /// The entry for `name`.
    pub(crate) fn find(&self, name: &str) -> Match<'a> {
        find(&self.config.registries, self.config.wildcards, name)
    }
}

fn as_named(name: &str) -> Source<'_> {
    Source { name: Cow::Borrowed(name), insecure: false, proxy: "" }
}

/// The locations that are used, in order, whether they may be insecure, and
/// their proxies.
fn places<'a>(
    registry: &'a Registry<'a>,
    by: By,
) -> impl Iterator<Item = (&'a str, bool, &'a str)> {
    let mirrors = registry.mirrors.iter().filter(move |it| is_used(registry, it.pull, by));
    mirrors.map(|mirror| (mirror.location, mirror.insecure, mirror.proxy)).chain([(
        registry.location,
        registry.insecure,
        registry.proxy,
    )])
}

/// Whether the entry that was found for a scope makes names alike of all names in
/// it, of the scope's own too, if that is one. The longest names are by `most`
/// longer than the scope.
pub(crate) fn is_alike(scope: &str, found: Match<'_>, most: isize) -> bool {
    let Some((matched, registry)) = found else { return true };
    let rest = scope.get(matched..).unwrap_or_default();
    room(scope, found).all(|room| most <= room)
        && locations(registry).all(|location| {
            location.is_empty()
                || words::equal(location, registry.prefix)
                || match rest {
                    "" if !scope.contains('/') && !location.contains('/') => {
                        is_canonical(&[location, "/any"].concat())
                    }
                    "" => is_canonical(location),
                    rest => is_canonical(&[location, rest].concat()),
                }
        })
}

/// By how much the path of a name may be longer so that each place still makes a
/// name of it.
pub(crate) fn room(name: &str, found: Match<'_>) -> impl Iterator<Item = isize> {
    let (matched, locations) = match found {
        Some((matched, registry)) => (matched, Some(locations(registry))),
        None => (0, None),
    };
    let rest = name.len().saturating_sub(matched);
    let locations = locations.into_iter().flatten().filter(|location| !location.is_empty());
    locations.map(move |location| room_behind(location.len() + rest))
}

/// By how much a name of this length may be longer.
pub(crate) fn room_behind(length: usize) -> isize {
    0_isize.saturating_add_unsigned(LONGEST).saturating_sub_unsigned(length)
}

fn locations<'a>(registry: &Registry<'a>) -> impl Iterator<Item = &'a str> {
    registry.mirrors.iter().map(|mirror| mirror.location).chain([registry.location])
}

/// The entry for `name`. The longest prefix counts, of two alike the one with the
/// wildcard.
fn find<'a>(registries: &Names<'a, &'a Registry<'a>>, wildcards: bool, name: &str) -> Match<'a> {
    let registry = |prefix: &str| registries.get(prefix).copied();
    let bytes = name.as_bytes();
    let plain = (1..=name.len()).rev().find_map(|end| match bytes.get(end) {
        None | Some(b'/' | b':' | b'@') => Some((end, end, registry(name.get(..end)?)?)),
        Some(_) => None,
    });
    let wildcard = if wildcards { find_wildcard(registries, name) } else { None };
    match (plain, wildcard) {
        (Some(plain), Some(wildcard)) if plain.0 > wildcard.0 => Some(plain),
        (plain, wildcard) => wildcard.or(plain),
    }
    .map(|(_, end, registry)| (end, registry))
}

/// The longest `*.` prefix: its length, the end of the host, the entry.
fn find_wildcard<'a>(
    registries: &Names<'a, &'a Registry<'a>>,
    name: &str,
) -> Option<(usize, usize, &'a Registry<'a>)> {
    let host = host_of(name);
    let last = host.len().saturating_sub(1);
    suffixes(host).find_map(|suffix| {
        // The runtime looks at the first place only where the suffix stands.
        if host.get(..last).is_some_and(|start| words::contains(start, suffix)) {
            return None;
        }
        let prefix = ["*", suffix].concat();
        Some((prefix.len(), host.len(), registries.get(&prefix).copied()?))
    })
}

/// What stands before the port and the path.
fn host_of(name: &str) -> &str {
    let end = name.bytes().position(|byte| matches!(byte, b'/' | b':' | b'@'));
    end.and_then(|end| name.get(..end)).unwrap_or(name)
}

/// The ends of a host that begin with a dot, from the longest.
fn suffixes(host: &str) -> impl Iterator<Item = &str> {
    let dots = host.bytes().enumerate().filter(|(_, byte)| *byte == b'.');
    dots.filter_map(|(at, _)| host.get(at..))
}

/// The entries that decide what is blocked on a side.
fn zones<'a>(config: &Config<'a>) -> Names<'a, &'a Registry<'a>> {
    if !config.blocks {
        return Names::default();
    }
    // The blocked ones that the prefix begins with: texts that begin alike follow each other.
    let mut open: Vec<&str> = Vec::new();
    let mut zones = Vec::new();
    let blocked = config.registries.values().filter(|it| it.blocked && config.wildcards);
    let wildcards = blocked.map(|it| it.prefix).filter(|prefix| prefix.starts_with('*'));
    let wildcards = Names::of(wildcards.collect());
    for (prefix, registry) in config.registries.iter() {
        while open.last().is_some_and(|start| !words::starts_with(prefix, start)) {
            open.pop();
        }
        let is_blocked = |wildcard: String| wildcards.get(&wildcard).is_some();
        let inside =
            !open.is_empty() || (!wildcards.is_empty() && wildcards_of(prefix).any(is_blocked));
        if registry.blocked {
            open.push(prefix);
        }
        if registry.blocked || inside || prefix.starts_with('*') {
            zones.push((prefix, *registry));
        }
    }
    Names::first_of_each(zones)
}

/// The wildcards that match the host of a name.
pub(crate) fn wildcards_of(name: &str) -> impl Iterator<Item = String> {
    suffixes(host_of(name)).map(|suffix| ["*", suffix].concat())
}

fn is_used(registry: &Registry<'_>, pull: Pull, by: By) -> bool {
    match (by, pull) {
        (By::Tag, _) if registry.mirror_by_digest_only => false,
        (By::Tag, Pull::DigestOnly) | (By::Digest, Pull::TagOnly) => false,
        _ => true,
    }
}

/// What `location` makes of what is asked for, of which `rest` is not matched by
/// the prefix.
fn make(asked: Asked<'_>, location: &str, rest: &str) -> Made {
    if location.is_empty() {
        return Made::Name(asked.name.to_string());
    }
    let made = [location, rest].concat();
    let is_name = |name: &str| fits(name, asked.longer) && is_canonical(name);
    if is_name(&made) {
        return Made::Name(made);
    }
    let mut name = made.as_str();
    if asked.by == By::Digest
        && rest.is_empty()
        && let Some((repository, tag)) = made.rsplit_once(':')
        && is_tag(tag)
    {
        // With a digest behind it the location is a reference, but one that the
        // runtime's transport does not take.
        if is_name(repository) {
            return Made::Unusable;
        }
        name = repository;
    }
    let is_unusable = fits(name, asked.longer) && is_without_host(name);
    if is_unusable { Made::Unusable } else { Made::NoName }
}

/// Whether the runtime takes names that are by so much longer.
pub(crate) fn fits(name: &str, longer: isize) -> bool {
    longer <= room_behind(name.len())
}

/// By how much names that are by so much longer are too long for the runtime, as
/// far as that is all that is wrong with them.
pub(crate) fn too_long(name: &str, longer: isize) -> usize {
    let beyond = longer.saturating_sub(room_behind(name.len()));
    if is_canonical(name) { usize::try_from(beyond).unwrap_or_default() } else { 0 }
}

/// Whether this is a name whose first component looks like a host and is none,
/// such as `a_b.io`: it parses, and there is nobody to ask.
fn is_without_host(name: &str) -> bool {
    let Some((first, _)) = name.split_once('/') else { return false };
    first.contains('.') && !is_domain(first) && is_path(name)
}
