//! Boot images: which version a machine resource boots, whether that is too old
//! for the cluster, and why, in words.
//!
//! The data runs one way: what a resource says (`provider`, `template`) and what
//! is known besides (`catalogue`) are `sources`; the best of them gives a
//! version, and `rule` holds it against the `limits` of a release.

pub mod catalogue;
pub mod limits;
pub mod operator;
pub mod patch;
pub mod provider;
pub mod rule;
pub mod sources;
pub mod template;
pub mod user_data;
pub mod version;

pub use catalogue::Catalogue;
pub use limits::{Limits, Stream, Tighter};
pub use provider::{Boots, Platform};
pub use rule::{Mode, Outcome, Reason, Verdict};
pub use sources::{Found, KnownBy};
pub use version::{ImageVersion, Release, Rhel};

use crate::read::is_unfit;
use serde_json::Value;

/// What stands at a path of a document; null where there is nothing.
fn field_at<'v>(value: &'v Value, path: &str) -> &'v Value {
    value.pointer(path).unwrap_or(&Value::Null)
}

/// No name of an image that is shown is longer, in characters.
const LONGEST: usize = 256;

/// A text of a stranger as one line that a terminal can take.
pub fn shown(text: &str) -> String {
    let visible: String = text.chars().map(|c| if is_unfit(c) { ' ' } else { c }).collect();
    let line = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST {
        return line;
    }
    let kept: String = line.chars().take(LONGEST - 1).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn what_a_stranger_wrote_is_one_short_line_that_a_terminal_can_take() {
        assert_eq!(shown("ami-1"), "ami-1");
        assert_eq!(shown("a\u{1b}[31mb\r\n\u{202e}c"), "a [31mb c");
        assert_eq!(shown(&"ä".repeat(1000)).chars().count(), 256);
    }
}
