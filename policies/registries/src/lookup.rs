//! Where the container runtime looks for an image.

use crate::config::{Config, Mirror, Pull, Registry};
use crate::name::is_canonical;

/// Whether an image is named by its digest: the same bytes wherever they come
/// from; or by a tag: whatever the first source that answers has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Tag,
    Digest,
}

/// A place where an image is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source<'a> {
    /// The name that the image has there.
    pub(crate) name: String,
    /// Without TLS, or with any certificate.
    pub(crate) insecure: bool,
    pub(crate) proxy: &'a str,
}

impl<'a> Config<'a> {
    /// The places where the repository `name` is looked for, in order. None if
    /// no pull can succeed.
    pub(crate) fn sources(&self, name: &str, by: By) -> Vec<Source<'a>> {
        let Some((matched, registry)) = self.find(name) else {
            return vec![Source { name: name.to_string(), insecure: false, proxy: "" }];
        };
        let (_, rest) = name.split_at_checked(matched).unwrap_or((name, ""));
        let place = |location: &str, insecure, proxy: &'a str| {
            let name =
                if location.is_empty() { name.to_string() } else { [location, rest].concat() };
            // One location that makes no name of it fails the whole pull.
            is_canonical(&name).then_some(Source { name, insecure, proxy })
        };
        let used = |mirror: &&Mirror<'_>| match (by, mirror.pull) {
            (By::Tag, _) if registry.mirror_by_digest_only => false,
            (By::Tag, Pull::DigestOnly) | (By::Digest, Pull::TagOnly) => false,
            _ => true,
        };
        let mirrors = registry.mirrors.iter().filter(used);
        let sources: Option<Vec<Source<'_>>> = mirrors
            .map(|mirror| place(mirror.location, mirror.insecure, mirror.proxy))
            .chain([place(registry.location, registry.insecure, registry.proxy)])
            .collect();
        let mut sources = sources.unwrap_or_default();
        if self.blocks {
            // Blocked is what the place's own name falls under, be it a mirror or not.
            sources
                .retain(|source| !self.find(&source.name).is_some_and(|(_, found)| found.blocked));
        }
        sources
    }

    /// The entry for `name`, and how much of the name its prefix matches. The
    /// longest prefix counts, of two alike the one with the wildcard.
    pub(crate) fn find(&self, name: &str) -> Option<(usize, &'a Registry<'a>)> {
        let registry = |prefix: &str| self.registries.get(prefix).copied();
        let bytes = name.as_bytes();
        let plain = (1..=name.len()).rev().find_map(|end| match bytes.get(end) {
            None | Some(b'/' | b':' | b'@') => Some((end, end, registry(name.get(..end)?)?)),
            Some(_) => None,
        });
        let wildcard = if self.wildcards { self.find_wildcard(name) } else { None };
        match (plain, wildcard) {
            (Some(plain), Some(wildcard)) if plain.0 > wildcard.0 => Some(plain),
            (plain, wildcard) => wildcard.or(plain),
        }
        .map(|(_, end, registry)| (end, registry))
    }

    /// The longest `*.` prefix: its length, the end of the host, the entry.
    fn find_wildcard(&self, name: &str) -> Option<(usize, usize, &'a Registry<'a>)> {
        let end = name.find(['/', ':', '@']).unwrap_or(name.len());
        let host = name.get(..end)?;
        host.match_indices('.').find_map(|(at, _)| {
            let suffix = host.get(at..)?;
            // The runtime looks at the first place only where the suffix stands.
            if host.find(suffix) != Some(at) {
                return None;
            }
            let prefix = ["*", suffix].concat();
            Some((prefix.len(), end, self.registries.get(&prefix).copied()?))
        })
    }
}
