//! What Ignition's parser takes, rejects and leaves out: 2.26, which OpenShift's
//! operator reads every config with. What it rejects degrades a pool, and no
//! machine that is given it boots.

mod data_url;
mod fields;
mod hash;
mod merge;
mod unit_text;

pub(crate) use data_url::is_taken as takes_url;
pub(crate) use fields::{CONFIG, Field, Shape, shape_at};
pub(crate) use hash::fault as hash_fault;
pub(crate) use merge::merge;
pub(crate) use unit_text::fault as unit_fault;

/// What to say of a path that is not written in its shortest form.
pub(crate) fn why_dirty(clean: &str) -> String {
    format!(
        "Ignition takes a path only in its shortest form, without `//`, `/./` and a `/` at its end. Write {clean}."
    )
}

/// What to say of a URL that [`takes_url`] does not take.
pub(crate) const URL: &str = "Ignition rejects this data URL: all but letters, digits and \
    `-_.!~*'();/?:@&=+$,` has to be escaped as %XX (a space as %20, a line break as %0A), and the \
    part before the comma has to be `[TYPE/SUBTYPE][;NAME=VALUE][;base64]`. Write the contents with \
    `;base64`, or let Butane write them.";

/// What to say of a file that is to be written over, with nothing.
pub(crate) const OVERWRITE: &str = "`overwrite` needs `contents.source`: Ignition rejects a file \
    that is to replace another and has no contents. Write `\"source\": \"data:,\"` for an empty file.";

/// What to say of a file without contents.
pub(crate) const NO_SOURCE: &str = "OpenShift's operator writes `overwrite: true` into each file that says \
    nothing of it, and Ignition then rejects a file without `contents.source`. Write \
    `\"source\": \"data:,\"` for an empty file, or `overwrite: false`.";

/// What to say of an SSH key that stands in a user's list twice.
pub(crate) const KEY_TWICE: &str =
    "Ignition rejects a list in which the same SSH key stands twice. Remove one of them.";

/// What to say of a hash where there is nothing that could have it.
pub(crate) const HASH_OF_NOTHING: &str = "Ignition rejects a hash without `contents.source`. Remove \
    `verification`, or write the contents.";

/// What to say of HTTP headers for contents that nothing is fetched for.
pub(crate) const HEADERS: &str = "Ignition rejects HTTP headers for contents that are not fetched \
    over HTTP. Remove `httpHeaders`.";
