//! Whether a pull that worked still works, and gives the same image.
//!
//! A pull tries its sources in order until one answers. Which ones are up is
//! not known here, so the answer must hold for any of them being up or down:
//!
//! - **By digest** the bytes are the same wherever they come from. Safe if
//!   every source of before is still one, in whatever order. But the first
//!   source that has the manifest has to have the layers and signatures too: no
//!   other one is asked for them. So that holds of mirrors that are trusted to
//!   have whole images; of others only what holds by tag is safe.
//! - **By tag** each source may have another image under the tag. Safe if the
//!   sources of before are still the first ones, in their order: then the
//!   first that answers is the same one.
//! - A source that no longer may be insecure can fail where it worked; one that
//!   newly may be can answer where it failed, which matters to tags when
//!   another source would have been next.
//!
//! | what changes | by digest | by tag |
//! | --- | --- | --- |
//! | a mirror is added in front of the source | safe if trusted | drain |
//! | a mirror is taken away | drain | drain |
//! | mirrors change places | safe if trusted | drain |
//! | a scope is blocked that could be pulled | drain | drain |
//! | a scope is unblocked | safe | safe |
//! | `insecure` is taken back | drain | drain |
//! | `insecure` is given to the only source | safe | safe |
//! | `insecure` is given to a source with others behind it | safe if trusted | drain |
//! | a narrower entry hides the mirrors of a broader one | drain | drain |
//! | a location of which no name can be made is added | drain | drain |
//! | a location behind which some names become too long is added | drain | drain |
//! | a search registry is added at the end of several | safe | safe |
//! | a search registry is added behind the only one | safe if all are asked | safe if all are asked |
//! | the search registries change otherwise | drain | drain |
//!
//! The sources of short names are those of all the names that they may stand
//! for, one after the other. But with its `short_name_mode` enforcing CRI-O asks
//! none if there are several: see [`crate::ShortNames`].

use crate::Mirrors;
use crate::lookup::{By, Source};

/// The first thing about a pull that may go wrong.
#[derive(Debug, PartialEq)]
pub(crate) enum Harm<'a> {
    /// No source is left.
    Nowhere,
    /// This one is not asked any more.
    Gone(&'a Source<'a>),
    /// The first one is asked now where the second was.
    Instead(&'a Source<'a>, &'a Source<'a>),
    /// This one must now prove by TLS who it is.
    Secured(&'a Source<'a>),
    /// This one may answer now where it was not trusted.
    Trusted(&'a Source<'a>),
}

/// Compares the sources of one name. `None`: whatever worked works as before.
pub(crate) fn harm<'a>(
    by: By,
    mirrors: Mirrors,
    before: &'a [Source<'a>],
    after: &'a [Source<'a>],
) -> Option<Harm<'a>> {
    if after.is_empty() && !before.is_empty() {
        return Some(Harm::Nowhere);
    }
    match (by, mirrors) {
        (By::Digest, Mirrors::Trusted) => before.iter().find_map(|source| lost(source, after)),
        (By::Digest, Mirrors::Untrusted) | (By::Tag, _) => {
            reordered(&distinct(before), &distinct(after))
        }
    }
}

fn lost<'a>(source: &'a Source<'a>, after: &'a [Source<'a>]) -> Option<Harm<'a>> {
    let mut found = after.iter().filter(|other| source.is_at(other)).peekable();
    if found.peek().is_none() {
        return Some(Harm::Gone(source));
    }
    let fails = source.insecure && !found.any(|other| other.insecure);
    fails.then_some(Harm::Secured(source))
}

fn reordered<'a>(before: &[&'a Source<'a>], after: &[&'a Source<'a>]) -> Option<Harm<'a>> {
    for (position, source) in before.iter().enumerate() {
        let Some(now) = after.get(position) else { return Some(Harm::Gone(source)) };
        if !source.is_at(now) {
            let stays = after.iter().any(|other| source.is_at(other));
            return Some(if stays { Harm::Instead(now, source) } else { Harm::Gone(source) });
        }
        if source.insecure && !now.insecure {
            return Some(Harm::Secured(source));
        }
        if now.insecure && !source.insecure && position + 1 < before.len() {
            return Some(Harm::Trusted(now));
        }
    }
    None
}

/// The sources that can make a difference: a place that failed fails again,
/// unless it is trusted further than before.
fn distinct<'a>(sources: &'a [Source<'a>]) -> Vec<&'a Source<'a>> {
    let mut kept: Vec<&Source<'_>> = Vec::new();
    for source in sources {
        let tried =
            |other: &&Source<'_>| other.is_at(source) && (other.insecure || !source.insecure);
        if kept.iter().any(tried) {
            continue;
        }
        // The same place twice in a row counts as its more trusting try.
        if kept.last().is_some_and(|last| last.is_at(source)) {
            kept.pop();
        }
        kept.push(source);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `m!` is insecure.
    fn sources(names: &str) -> Vec<Source<'static>> {
        let source = |name: &str| Source {
            name: name.trim_end_matches('!').to_string().into(),
            insecure: name.ends_with('!'),
            proxy: "",
        };
        names.split_whitespace().map(source).collect()
    }

    #[test]
    fn the_table_of_the_law() {
        for (before, after, digest_safe, tag_safe) in [
            ("s", "s", true, true),
            ("s", "m s", true, false),
            ("m s", "s", false, false),
            ("m s", "m", false, false),
            ("m n s", "n m s", true, false),
            ("s", "", false, false),
            ("", "s", true, true),
            ("", "", true, true),
            ("s!", "s", false, false),
            ("s", "s!", true, true),
            ("m s", "m! s", true, false),
            ("m s", "m s!", true, true),
            ("m! s", "m s", false, false),
            ("a", "a b", true, true),
            ("a b", "b a", true, false),
            ("a b", "a c b", true, false),
            ("a a b", "a b", true, true),
            ("a a! b", "a! b", true, true),
            ("a b a!", "a b", false, false),
        ] {
            let (before, after) = (sources(before), sources(after));
            let safe = |by, mirrors| harm(by, mirrors, &before, &after).is_none();
            assert_eq!(
                (safe(By::Digest, Mirrors::Trusted), safe(By::Tag, Mirrors::Trusted)),
                (digest_safe, tag_safe),
                "{before:?} {after:?}"
            );
            for by in [By::Digest, By::Tag] {
                assert_eq!(safe(by, Mirrors::Untrusted), tag_safe, "{before:?} {after:?}");
            }
        }
    }

    #[test]
    fn the_harm_is_named() {
        let (before, after) = (sources("m n s"), sources("x m n s"));
        let (m, x) = (&before[0], &after[0]);
        assert_eq!(harm(By::Tag, Mirrors::Trusted, &before, &after), Some(Harm::Instead(x, m)));
        assert_eq!(harm(By::Tag, Mirrors::Trusted, &before, &after[2..]), Some(Harm::Gone(m)));
        assert_eq!(harm(By::Digest, Mirrors::Trusted, &before, &[]), Some(Harm::Nowhere));
    }
}
