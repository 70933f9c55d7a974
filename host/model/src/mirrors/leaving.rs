//! A registries.conf that both sides hold may have been rendered from the old side's mirror objects
//! already: that of a rendered config, or of `99-worker-generated-registries`. Mirrors that the new
//! side's objects no longer name are taken out of it.

use super::registries::{Registries, data_url};
use super::scope::Scopes;
use super::sets::{self, MirrorSets, Sets};
use crate::config::{File, NodeConfig, Source};
use crate::contents::decode;
use crate::path::REGISTRIES_CONF;
use crate::read::{MirrorObject, Side};
use std::collections::{BTreeMap, BTreeSet};

/// Takes out of the new side's registries.conf the mirrors of the old side's objects, as far as the new
/// side's objects say something else. Nothing is touched where the file is not the same on both sides, or
/// was not rendered from the old side's objects.
pub fn take_out_what_leaves(old: &Side<'_>, new: &mut Side<'_>) {
    if old.mirrors.is_empty() || says_the_same(&old.mirrors, &new.mirrors) {
        return;
    }
    // What is wrong with the objects is reported where they are rendered.
    let (Ok(before), Ok(after)) = (sets::read(&old.mirrors), sets::read(&new.mirrors)) else {
        return;
    };
    let Some(text) = same_text(&old.config, &new.config) else { return };
    let Some(text) = left_of(&text, &before, &after) else { return };
    let place = place(&new.config);
    if let Some(file) = place.and_then(|index| new.config.files.get_mut(index)) {
        file.contents = Source { url: Some(data_url(&text).into()), gzip: false };
        file.raw = b"";
    }
}

fn says_the_same(old: &[MirrorObject], new: &[MirrorObject]) -> bool {
    let is_same = |it: &MirrorObject, other: &MirrorObject| {
        it.kind == other.kind && it.name == other.name && it.value == other.value
    };
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| is_same(old, new))
}

fn place(config: &NodeConfig<'_>) -> Option<usize> {
    config.files.binary_search_by(|file| file.path.as_ref().cmp(REGISTRIES_CONF)).ok()
}

/// The text of the file, if both sides have the same.
fn same_text(old: &NodeConfig<'_>, new: &NodeConfig<'_>) -> Option<String> {
    let text = |config: &NodeConfig<'_>| {
        let file: &File<'_> = config.files.get(place(config)?)?;
        let bytes = decode(&file.contents).ok()??;
        String::from_utf8(bytes.into_owned()).ok()
    };
    let old = text(old)?;
    (text(new)? == old).then_some(old)
}

/// What is left of a file that was rendered from `before`; None: it was not, or all of that stays.
fn left_of(text: &str, before: &MirrorSets, after: &MirrorSets) -> Option<String> {
    let mut file = Registries::parse(text).ok()?;
    let written = file.to_text();
    file.add(before).ok()?;
    if before.is_empty() || file.to_text() != written {
        return None;
    }
    let inheriting = file.inheriting();
    let digest = leaving(&before.digest, &after.digest, "digest-only");
    let leaving: Vec<Leaving<'_>> =
        digest.chain(leaving(&before.tag, &after.tag, "tag-only")).collect();
    for Leaving { source, mirrors, pull, blocked } in &leaving {
        let registry = file.entry(source);
        registry.mirrors.retain(|mirror| {
            mirror.pull_from_mirror != *pull || !mirrors.contains(mirror.location.as_str())
        });
        registry.blocked &= !blocked;
    }
    // An entry inside of a scope has that one's mirrors where it has none of its own.
    let sources = Scopes::of(leaving.iter().map(|it| it.source));
    file.take_inherited(&inheriting, |outer| sources.has(outer));
    file.retain(|it| {
        let is_empty = it.mirrors.is_empty() && it.rest.is_empty() && !it.insecure && !it.blocked;
        !(is_empty && sources.has(it.scope()))
    });
    (!leaving.is_empty()).then(|| file.to_text())
}

/// What was said of a source, and is not any more, or is said in another way.
struct Leaving<'s> {
    source: &'s str,
    mirrors: BTreeSet<&'s str>,
    pull: &'static str,
    blocked: bool,
}

fn leaving<'s>(
    before: &'s BTreeMap<String, Sets>,
    after: &'s BTreeMap<String, Sets>,
    pull: &'static str,
) -> impl Iterator<Item = Leaving<'s>> {
    before.iter().filter_map(move |(source, set)| {
        let mirrors = set.mirrors(source);
        let stays = after
            .get(source)
            .is_some_and(|now| now.mirrors(source) == mirrors && now.blocked == set.blocked);
        let mirrors = mirrors.into_iter().collect();
        (!stays).then_some(Leaving { source, mirrors, pull, blocked: set.blocked })
    })
}
