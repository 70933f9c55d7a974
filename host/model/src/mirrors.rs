//! ImageContentSourcePolicy, ImageDigestMirrorSet and ImageTagMirrorSet,
//! rendered into `/etc/containers/registries.conf` as OpenShift renders them.

mod leaving;
mod order;
mod registries;
mod rerender;
mod scope;
mod sets;

pub use crate::path::REGISTRIES_CONF;
pub use leaving::take_out_what_leaves;
pub use registries::data_url;
pub use rerender::{Rerendered, rerender};

use crate::config::{File, NodeConfig, Origin, Source};
use crate::contents::decode;
use crate::problem::{Problem, Problems};
use crate::read::{self, Input, MirrorObject, Side};
use registries::{BASE, Registries};
use std::borrow::Cow;

/// Reads one side, with its mirrors rendered. `what` names it.
pub fn side<'a>(what: &str, inputs: &[Input<'a>]) -> Result<Side<'a>, Problems> {
    rendered(read::side(what, inputs)?)
}

/// Reads both sides, each with its mirrors rendered.
pub fn sides<'a>(old: &[Input<'a>], new: &[Input<'a>]) -> Result<(Side<'a>, Side<'a>), Problems> {
    let (old, new) = read::sides(old, new)?;
    rendered_sides(old, new)
}

/// Both sides that were read, each with its mirrors rendered. What was rendered from the old objects into
/// a file that both sides hold, and leaves with them, leaves it.
pub fn rendered_sides<'a>(
    old: Side<'a>,
    mut new: Side<'a>,
) -> Result<(Side<'a>, Side<'a>), Problems> {
    take_out_what_leaves(&old, &mut new);
    Ok((rendered(old)?, rendered(new)?))
}

/// A side that was read, with its mirrors rendered.
pub fn rendered(mut side: Side<'_>) -> Result<Side<'_>, Problems> {
    render_side(&mut side)?;
    Ok(side)
}

/// Renders the objects of a side that redirect image pulls into its registries.conf.
pub fn render_side(side: &mut Side<'_>) -> Result<(), Problems> {
    apply(&mut side.config, &side.mirrors)
}

/// Renders the mirrors of one side into its registries.conf, over the one that
/// the config brings or else the one that every node has. Nothing is touched if
/// no object names a mirror.
pub fn apply(config: &mut NodeConfig<'_>, objects: &[MirrorObject]) -> Result<(), Problems> {
    let sets = sets::read(objects)?;
    let Some(first) = objects.first().filter(|_| !sets.is_empty()) else { return Ok(()) };
    let place = config.files.binary_search_by(|file| file.path.as_ref().cmp(REGISTRIES_CONF));
    let file = place.ok().and_then(|index| config.files.get(index));
    let text = render(file.map(|file| &file.contents), &sets).map_err(|message| {
        Problems(vec![Problem {
            file: first.file.clone(),
            document: first.document.clone(),
            message: format!(
                "{} cannot be rendered into the {REGISTRIES_CONF} of this side: {message}",
                first.name
            ),
            ..Problem::default()
        }])
    })?;
    let file = File {
        path: Cow::Borrowed(REGISTRIES_CONF),
        contents: Source { url: Some(Cow::Owned(data_url(&text))), gzip: false },
        // What the side says of the file stays: one that others cannot read is
        // a secret also with more mirrors in it.
        mode: file.and_then(|file| file.mode),
        user: file.map_or(Cow::Borrowed("root"), |file| file.user.clone()),
        group: file.map_or(Cow::Borrowed("root"), |file| file.group.clone()),
        appends: file.is_some_and(|file| file.appends),
        needs_source: false,
        raw: b"",
        origin: file.map_or(Origin::default(), |file| file.origin),
    };
    match place {
        Ok(index) => {
            if let Some(old) = config.files.get_mut(index) {
                *old = file;
            }
        }
        Err(index) => config.files.insert(index, file),
    }
    Ok(())
}

fn render(base: Option<&Source<'_>>, sets: &sets::MirrorSets) -> Result<String, String> {
    let mut registries = match base {
        None => Registries::parse(BASE)?,
        Some(source) => {
            let bytes = decode(source).map_err(|error| error.to_string())?;
            let Some(bytes) = bytes else {
                return Err(
                    "its contents are fetched from elsewhere, and not known here".to_owned()
                );
            };
            let text = std::str::from_utf8(&bytes).map_err(|_| "it is no UTF-8 text".to_owned())?;
            Registries::parse(text)?
        }
    };
    registries.add(sets)?;
    Ok(registries.to_text())
}
