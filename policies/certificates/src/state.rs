//! What is on one side of a change.

use tread_guest_sdk::{Content, State};

/// The bytes of a file, as far as they may be read.
pub(crate) fn bytes(state: &State) -> Option<&[u8]> {
    state.as_file()?.content.bytes()
}

/// Whether nothing is left of a file.
pub(crate) fn is_gone(state: &State) -> bool {
    match state {
        State::File(file) => match &file.content {
            Content::Bytes(bytes) => bytes.trim_ascii().is_empty(),
            Content::Absent => true,
            Content::Digest(_) => false,
        },
        _ => true,
    }
}
