//! The objects of a side as texts, for the reader.

use std::borrow::Cow;
use tread_model::read::Input;

/// What an object is called, and what it holds.
pub(super) type Text<'b> = (String, Cow<'b, [u8]>);

/// Texts as the reader takes them.
pub(super) fn inputs<'t>(texts: &'t [Text<'_>]) -> Vec<Input<'t>> {
    texts.iter().map(|(name, bytes)| Input { name, bytes }).collect()
}

/// Why nothing can be told where an object is gone.
pub(super) fn gone(name: &str) -> String {
    format!(
        "the MachineConfig {name} is gone, so it cannot be told what becomes of these nodes: count \
         on a reboot"
    )
}
