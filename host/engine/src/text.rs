//! Text from a stranger, made fit to be shown.

use tread_model::read::is_unfit;

/// One line: control characters and those that change the direction of what
/// follows become spaces, spaces are not repeated, and the whole is cut at
/// `limit` bytes, with `…` in the place of what is missing.
pub(crate) fn clean(text: &str, limit: usize) -> String {
    clean_and_tell(text, limit).0
}

/// As [`clean`], and whether it was cut.
pub(crate) fn clean_and_tell(text: &str, limit: usize) -> (String, bool) {
    let mut out = String::with_capacity(text.len().min(limit));
    let mut space = false;
    for c in text.chars() {
        if c.is_whitespace() || is_unfit(c) {
            space = !out.is_empty();
            continue;
        }
        let needed = c.len_utf8() + usize::from(space);
        if out.len() + needed > limit {
            cut(&mut out, limit);
            return (out, true);
        }
        if space {
            out.push(' ');
            space = false;
        }
        out.push(c);
    }
    (out, false)
}

fn cut(out: &mut String, limit: usize) {
    while out.len() + '…'.len_utf8() > limit && out.pop().is_some() {}
    if out.len() + '…'.len_utf8() <= limit {
        out.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_one_clean_line() {
        for (text, expected) in [
            ("", ""),
            ("  plain text \n", "plain text"),
            ("two\r\nlines\tand\u{0}more", "two lines and more"),
            ("\u{1b}[31mred\u{1b}[0m", "[31mred [0m"),
            ("user \u{202e}txt.exe\u{202c} end", "user txt.exe end"),
            ("zero\u{200b}width \u{2066}iso\u{2069}", "zero width iso"),
            ("größe …", "größe …"),
        ] {
            assert_eq!(clean(text, 512), expected, "{text:?}");
        }
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(clean("abcdef", 6), "abcdef");
        assert_eq!(clean("abcdefg", 6), "abc…");
        assert_eq!(clean("äöüäöü", 8), "äö…");
        assert_eq!(clean("abc", 2), "");
        for limit in 0..20 {
            assert!(clean("aä€😀 b ä€😀", limit).len() <= limit);
        }
    }
}
