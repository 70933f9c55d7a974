//! Renders a registries.conf again, with other mirrors in place of those that were
//! rendered into it before.
//!
//! OpenShift's operator renders the file of its template, the mirror objects, and the
//! scopes that the cluster's image configuration blocks or calls insecure. What is
//! rendered tells these apart: mirrors of objects are for digests or for tags only,
//! and every scope of the image configuration is an entry.

use super::registries::{BASE, Mirror, Registries};
use super::scope::Scopes;
use super::sets;
use crate::path::REGISTRIES_CONF;
use crate::problem::{Problem, Problems};
use crate::read::MirrorObject;
use std::collections::BTreeSet;
use toml::Value;

const BY_DIGEST: &str = "mirror-by-digest-only";

/// A registries.conf that was rendered again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rerendered {
    /// The file; None: there is nothing to render, and the template's file counts.
    pub text: Option<String>,
    /// What could not be found out from the file, in sentences.
    pub doubts: Vec<String>,
}

/// Renders mirrors in place of those that the operator rendered before.
///
/// `before` is the file that it rendered, `template` the one that it renders
/// over where there is none. `is_rejected` says which scopes the node's signature
/// policy rejects: of an entry with mirrors, that alone tells whether the image
/// configuration blocks it or a mirror object does. Where neither can be told, it
/// counts as not blocked, which is at least as disruptive.
pub fn rerender(
    before: Option<&str>,
    template: Option<&str>,
    is_rejected: impl Fn(&str) -> bool,
    objects: &[MirrorObject],
) -> Result<Rerendered, Problems> {
    let sets = sets::read(objects)?;
    let text = before.or(template).unwrap_or(BASE);
    let cannot = |why: String| {
        let message = format!("what is rendered for mirrors cannot be rendered anew: {why}");
        Problems(vec![Problem { file: REGISTRIES_CONF.to_owned(), message, ..Problem::default() }])
    };
    let mut file = Registries::parse(text).map_err(cannot)?;
    let (image, mut doubts) = match before {
        Some(_) => strip(&mut file, is_rejected),
        None => (Image::default(), Vec::new()),
    };
    if sets.is_empty() && image.blocked.is_empty() && image.insecure.is_empty() {
        doubts.clear();
        return Ok(Rerendered { text: None, doubts });
    }
    file.put(&sets);
    image.put(&mut file);
    file.inherit(&sets).map_err(cannot)?;
    let blocked = Scopes::of(file.registries.iter().filter(|it| it.blocked).map(|it| it.scope()));
    doubts.retain(|scope| !blocked.has(scope));
    let doubts = doubts.into_iter().map(|scope| {
        format!(
            "{} blocks {scope}, and it cannot be told whether mirror objects say so or the \
             cluster's image configuration does: here it counts as not blocked any more",
            REGISTRIES_CONF
        )
    });
    Ok(Rerendered { doubts: doubts.collect(), text: Some(file.to_text()) })
}

/// The scopes that the cluster's image configuration names.
#[derive(Debug, Default)]
struct Image {
    blocked: Vec<String>,
    insecure: Vec<String>,
}

impl Image {
    /// An entry for each scope; what lies inside is alike.
    fn put(&self, file: &mut Registries) {
        for scope in &self.blocked {
            file.entry(scope).blocked = true;
        }
        for scope in &self.insecure {
            file.entry(scope).insecure = true;
        }
        let [blocked, insecure] = [&self.blocked, &self.insecure]
            .map(|scopes| Scopes::of(scopes.iter().map(String::as_str)));
        for registry in &mut file.registries {
            registry.blocked |= blocked.has_around(registry.scope());
            registry.insecure |= insecure.has_around(registry.scope());
            for mirror in &mut registry.mirrors {
                if insecure.has(&mirror.location) || insecure.has_around(&mirror.location) {
                    mirror.rest.insert("insecure".to_owned(), Value::Boolean(true));
                }
            }
        }
    }
}

/// Takes out what the operator rendered over its template, and says what of it
/// came of the image configuration, and of which blocked scopes that is not known.
fn strip(file: &mut Registries, is_rejected: impl Fn(&str) -> bool) -> (Image, Vec<String>) {
    let mut image = Image::default();
    let mut in_doubt = Vec::new();
    let mut mirrored = BTreeSet::new();
    let inheriting = file.inheriting();
    for registry in &mut file.registries {
        let scope = registry.scope().to_owned();
        let by_digest = registry.rest.get(BY_DIGEST) == Some(&Value::Boolean(true));
        let count = registry.mirrors.len();
        registry.mirrors.retain(|mirror| !(by_digest || is_of_an_object(mirror)));
        let had = registry.mirrors.len() < count;
        if had {
            registry.rest.remove(BY_DIGEST);
            mirrored.insert(scope.clone());
        }
        if std::mem::take(&mut registry.insecure) {
            image.insecure.push(scope.clone());
        }
        if std::mem::take(&mut registry.blocked) {
            match !had || is_rejected(&scope) {
                true => image.blocked.push(scope),
                false => in_doubt.push(scope),
            }
        }
    }
    // What lies inside of another scope and had mirrors of its own is there for them. One
    // that had the other's is no source of mirrors: the image configuration names it.
    let [blocked, insecure] =
        [&image.blocked, &image.insecure].map(|all| Scopes::of(all.iter().map(String::as_str)));
    let is_for_mirrors = |it: &&String| {
        mirrored.contains(*it) && !inheriting.contains(*it) && insecure.has_around(it)
    };
    let of_image =
        |scope: &str| insecure.has(scope) || blocked.has(scope) || mirrored.contains(scope);
    in_doubt.retain(|scope| !(blocked.has(scope) || blocked.has_around(scope)));
    let insecure = image.insecure.iter().filter(|it| !is_for_mirrors(it)).cloned().collect();
    // Entries of the image configuration are added again later, behind the mirrors.
    file.retain(|it| !(it.mirrors.is_empty() && it.rest.is_empty() && of_image(it.scope())));
    (Image { insecure, ..image }, in_doubt)
}

fn is_of_an_object(mirror: &Mirror) -> bool {
    !mirror.pull_from_mirror.is_empty()
}
