//! What strangers wrote in documents: found by its path, and shown as one line.

use crate::text::one_line;
use serde_json::Value;

/// What stands at a path of a document; null where there is nothing.
pub(super) fn field_at<'v>(value: &'v Value, path: &str) -> &'v Value {
    value.pointer(path).unwrap_or(&Value::Null)
}

/// No name of an image that is shown is longer, in characters.
const LONGEST: usize = 256;

/// A text of a stranger as one line that a terminal can take.
pub fn shown(text: &str) -> String {
    let line = one_line(text);
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
