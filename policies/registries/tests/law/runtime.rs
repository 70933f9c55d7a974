//! The runtime, once more: where it looks for an image.

use crate::world::{Registry, Side};
use std::collections::BTreeSet;

/// How much of the name a prefix matches.
pub(crate) fn matches(name: &str, prefix: &str) -> Option<usize> {
    let end = if let Some(suffix) = prefix.strip_prefix('*') {
        let at = name.find(suffix)?;
        if name[..at].contains('/') {
            return None;
        }
        at + suffix.len()
    } else {
        name.starts_with(prefix).then_some(prefix.len())?
    };
    (end == name.len() || name[end..].starts_with([':', '/', '@'])).then_some(end)
}

pub(crate) fn find<'a>(side: &'a Side, name: &str) -> Option<(usize, &'a Registry)> {
    let mut best: Option<(usize, usize, &Registry)> = None;
    for (prefix, registry) in &side.registries {
        if let Some(end) = matches(name, prefix)
            && best.is_none_or(|best| prefix.len() > best.0)
        {
            best = Some((prefix.len(), end, registry));
        }
    }
    best.map(|(_, end, registry)| (end, registry))
}

/// `HOST[:PORT]`, as `reference.DomainRegexp` has it.
pub(crate) fn is_domain(text: &str) -> bool {
    let (host, port) = text.split_once(':').unwrap_or((text, "0"));
    let is_label = |label: &str| {
        let fine = |c: char| c.is_ascii_alphanumeric() || c == '-';
        !label.is_empty()
            && label.chars().all(fine)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.split('.').all(is_label) && !port.is_empty() && port.chars().all(|c| c.is_ascii_digit())
}

/// A component of a path: letters and digits, joined by `.`, `_`, `__` or dashes.
pub(crate) fn is_component(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(is_word)
        && text.ends_with(is_word)
        && text
            .split(is_word)
            .all(|s| matches!(s, "" | "." | "_" | "__") || s.trim_matches('-').is_empty())
}

/// A reference that was read: its registry, its name, and what it ends with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Named {
    pub(crate) domain: String,
    pub(crate) name: String,
    pub(crate) tag: Option<String>,
    pub(crate) digest: Option<String>,
}

/// `reference.Parse`
pub(crate) fn parse(text: &str) -> Option<Named> {
    let (rest, digest) = text.split_once('@').map_or((text, None), |(rest, d)| (rest, Some(d)));
    let last = rest.rfind('/').map_or(0, |at| at + 1);
    let (name, tag) = match rest[last..].split_once(':') {
        Some((component, tag)) => (&rest[..last + component.len()], Some(tag)),
        None => (rest, None),
    };
    let is_tag = |tag: &str| !tag.is_empty() && tag.len() <= 128 && !tag.contains(':');
    let domain = name.split_once('/').map_or("", |(first, _)| first);
    let domain = if is_domain(domain) { domain } else { "" };
    let path = if domain.is_empty() { name } else { &name[domain.len() + 1..] };
    (path.split('/').all(is_component) && name.len() <= 255 && tag.is_none_or(is_tag)).then(|| {
        Named {
            domain: domain.to_string(),
            name: name.to_string(),
            tag: tag.map(ToString::to_string),
            digest: digest.map(ToString::to_string),
        }
    })
}

/// `reference.ParseNormalizedNamed`
pub(crate) fn normalized(text: &str) -> Option<Named> {
    let (mut domain, mut rest) = match text.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => {
            (first, rest.to_string())
        }
        _ => ("docker.io", text.to_string()),
    };
    if domain == "index.docker.io" {
        domain = "docker.io";
    }
    if domain == "docker.io" && !rest.contains('/') {
        rest = format!("library/{rest}");
    }
    parse(&format!("{domain}/{rest}"))
}

/// `reference.ParseNamed`: as it is, or not at all.
pub(crate) fn parsed(text: &str) -> Option<Named> {
    let named = normalized(text)?;
    let end = |mark: char, end: &Option<String>| {
        end.as_ref().map_or(String::new(), |end| format!("{mark}{end}"))
    };
    let again = format!("{}{}{}", named.name, end(':', &named.tag), end('@', &named.digest));
    (again == text).then_some(named)
}

pub(crate) type Source = (String, bool);

pub(crate) const DIGEST: &str =
    "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// `Registry.PullSourcesFromReference`, and then what each source is worth.
pub(crate) fn sources(side: &Side, name: &str, digest: bool) -> Vec<Source> {
    let Some((end, registry)) = find(side, name) else { return vec![(name.to_string(), false)] };
    let reference = format!("{name}{}", if digest { DIGEST } else { ":tag" });
    let mut places = Vec::new();
    for mirror in &registry.mirrors {
        let used = if registry.by_digest_only {
            digest
        } else {
            match mirror.pull {
                "digest-only" => digest,
                "tag-only" => !digest,
                _ => true,
            }
        };
        if used {
            places.push(mirror);
        }
    }
    places.push(&registry.own);
    let mut found = Vec::new();
    for place in places {
        let rewritten = if place.location.is_empty() {
            reference.clone()
        } else {
            format!("{}{}", place.location, &reference[end..])
        };
        // One that is no reference fails the pull before any source is tried.
        let Some(named) = parsed(&rewritten) else { return Vec::new() };
        // The transport takes no tag beside a digest, and there is no host to ask.
        let fails = named.tag.is_some() && named.digest.is_some() || named.domain.is_empty();
        if !fails && !find(side, &named.name).is_some_and(|(_, found)| found.blocked) {
            found.push((named.name, place.insecure));
        }
    }
    found
}

/// `shortnames.Resolve`, without regard to `short-name-mode`: CRI-O has one of
/// its own. If that is enforcing, nothing may stand for several names.
pub(crate) fn short_sources(
    side: &Side,
    short: &str,
    digest: bool,
    enforcing: bool,
) -> Vec<Source> {
    let names: Option<Vec<String>> = match side.aliases.get(short) {
        Some(target) if !target.is_empty() => Some(vec![target.to_string()]),
        _ => side
            .search
            .iter()
            .map(|registry| normalized(&format!("{registry}/{short}")).map(|named| named.name))
            .collect(),
    };
    // One that is no name fails the pull before any is tried.
    let names = names.unwrap_or_default();
    if enforcing && names.len() > 1 {
        return Vec::new();
    }
    names.iter().flat_map(|name| sources(side, name, digest)).collect()
}

/// Whether a pull goes on as before, whatever is down (0), up without a valid
/// certificate (1), or up (2). Of a mirror that is not trusted it may be that it
/// has the manifest only: then the pull fails, and no other source is tried.
pub(crate) fn goes_on(before: &[Source], after: &[Source], digest: bool, trusted: bool) -> bool {
    let places: Vec<&str> = before
        .iter()
        .chain(after)
        .map(|s| s.0.as_str())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    assert!(places.len() <= 14, "too many worlds to try all of them");
    let bare: Vec<Option<&str>> = if digest && !trusted {
        [None].into_iter().chain(places.iter().copied().map(Some)).collect()
    } else {
        vec![None]
    };
    (0..3_u32.pow(places.len() as u32)).all(|world| {
        let state = |name: &str| {
            let at = places.iter().position(|place| *place == name).unwrap();
            world / 3_u32.pow(at as u32) % 3
        };
        let first = |sources: &[Source]| {
            let answers = |source: &&Source| state(&source.0) + u32::from(source.1) >= 2;
            sources.iter().find(answers).map(|source| source.0.clone())
        };
        let (was, is) = (first(before), first(after));
        bare.iter().all(|bare| {
            let whole =
                |place: &Option<String>| place.clone().filter(|it| Some(it.as_str()) != *bare);
            match (whole(&was), whole(&is)) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(was), Some(is)) => digest || was == is,
            }
        })
    })
}
