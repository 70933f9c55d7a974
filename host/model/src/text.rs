//! Texts that are shown to people: nothing in them drives a terminal, and none is
//! longer than somebody reads.

/// What nobody sees, or what turns what stands around it: all that Unicode says is not to be shown
/// (`Default_Ignorable_Code_Point`, Unicode 16), line breaks, marks of annotations, and the Braille sign
/// without dots.
const UNSEEN: [(char, char); 18] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{3164}', '\u{3164}'),
    // Which shape or colour the character before them has.
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    // Tags, and more shapes.
    ('\u{e0000}', '\u{e0fff}'),
];

/// Whether a character could drive whatever shows it, a terminal or a log, or
/// hides or reorders what stands around it.
pub fn is_unfit(c: char) -> bool {
    c.is_control() || !c.is_ascii() && is_unseen(c)
}

/// Whether a character has no place in a sentence that somebody writes: it drives what shows it, or hides or
/// turns more than a sign. Others that are unfit pass there, since keyboards write some of them (as U+FE0F
/// behind ⚠): they are cleaned where the sentence is shown. None comes to these later: what loaded once goes
/// on to load.
pub fn is_barred_from_sentences(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// The first character of a text that is barred from sentences, as people write it down: `U+202E`.
pub fn barred_from_sentence(text: &str) -> Option<String> {
    let found = text.chars().find(|c| is_barred_from_sentences(*c))?;
    Some(format!("U+{:04X}", u32::from(found)))
}

fn is_unseen(c: char) -> bool {
    let next = UNSEEN.partition_point(|(_, last)| *last < c);
    UNSEEN.get(next).is_some_and(|(first, _)| *first <= c)
}

/// A text in quotes, in which everything unfit is written as its number.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    for c in format!("{text:?}").chars() {
        match is_unfit(c) {
            true => out.extend(c.escape_unicode()),
            false => out.push(c),
        }
    }
    out
}

/// One line: what is unfit becomes a space, and spaces are not repeated.
pub fn one_line(text: &str) -> String {
    one_line_within(text, usize::MAX).0
}

/// As [`one_line`], cut at `limit` bytes with `…` in the place of what is missing;
/// and whether it was cut.
pub fn one_line_within(text: &str, limit: usize) -> (String, bool) {
    if text.len() <= limit && is_plain_line(text) {
        return (text.to_owned(), false);
    }
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

/// Whether a text is printable ASCII with single spaces between words. Most texts are, which is
/// found out by bytes, without a look at each character.
fn is_plain_line(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_printable = bytes.iter().fold(true, |all, byte| all & matches!(byte, b' '..=b'~'));
    let neighbours = bytes.iter().zip(bytes.iter().skip(1));
    is_printable
        && !neighbours.fold(false, |any, two| any | (two == (&b' ', &b' ')))
        && bytes.first() != Some(&b' ')
        && bytes.last() != Some(&b' ')
}

fn cut(out: &mut String, limit: usize) {
    while out.len() + '…'.len_utf8() > limit && out.pop().is_some() {}
    if out.len() + '…'.len_utf8() <= limit {
        out.push('…');
    }
}

/// The first `most` characters; `…` stands for the others.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The first `most` names, and how many more there are: `a, b and 3 more`.
pub fn listed<N: AsRef<str>>(names: &[N], most: usize) -> String {
    let shown: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    format!("{}{}", shown.join(", "), and_more(names.len(), most))
}

/// What follows the first `most` of so many names: ` and 3 more`, or nothing.
pub fn and_more(count: usize, most: usize) -> String {
    match count.saturating_sub(most) {
        0 => String::new(),
        more => format!(" and {more} more"),
    }
}

/// As [`and_more`], with what they are: ` and 3 more changes`, or nothing.
pub fn and_more_of(count: usize, most: usize, what: &str) -> String {
    match count.saturating_sub(most) {
        0 => String::new(),
        more => format!(" and {more} more {what}"),
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
            assert_eq!(one_line(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_nobody_sees_is_unfit_and_what_people_write_is_not() {
        for invisible in "\u{ad}\u{34f}\u{61c}\u{115f}\u{1160}\u{17b4}\u{17b5}\u{180b}\u{180e}\u{180f}\u{200b}\u{200d}\
                          \u{200f}\u{2028}\u{202e}\u{2060}\u{2065}\u{206f}\u{2800}\u{3164}\u{fe00}\u{fe0e}\u{fe0f}\u{feff}\
                          \u{ffa0}\u{fff0}\u{fffb}\u{1bca0}\u{1bca3}\u{1d173}\u{1d17a}\u{e0000}\u{e0001}\u{e007f}\
                          \u{e0080}\u{e0100}\u{e01ef}\u{e0fff}\0\u{1b}\u{7f}\u{85}"
            .chars()
        {
            assert!(is_unfit(invisible), "{invisible:?}");
            assert_eq!(one_line(&format!("a{invisible}b")), "a b", "{invisible:?}");
        }
        for shown in
            "a ~ä…ß中가가\u{300}\u{2801}\u{27ff}\u{3163}\u{3165}\u{fdff}\u{fe10}\u{fffc}⚠😀".chars()
        {
            assert!(!is_unfit(shown), "{shown:?}");
        }
        // Of a sign that is to be shown in colours the sign stays.
        assert_eq!(one_line("⚠\u{fe0f} look: ⚠\u{fe0f}"), "⚠ look: ⚠");
    }

    #[test]
    fn what_is_barred_from_sentences_is_unfit_and_what_keyboards_write_is_not_barred() {
        let all = ('\0'..=char::MAX).filter(|c| is_barred_from_sentences(*c));
        assert_eq!(all.clone().find(|c| !is_unfit(*c)), None);
        // C0, C1 and DEL, and what was barred before the list of what nobody sees.
        assert_eq!(all.count(), 65 + 3 + 5 + 7 + 16 + 1 + 3 + 128);
        for passing in
            "\u{34f}\u{180b}\u{180d}\u{180f}\u{2800}\u{3164}\u{fe0e}\u{fe0f}\u{e0100}\u{e01ef}"
                .chars()
        {
            assert!(is_unfit(passing), "{passing:?}");
            assert_eq!(barred_from_sentence(&format!("⚠{passing} look")), None);
        }
        assert_eq!(barred_from_sentence("⚠\u{fe0f} a\u{202e}\u{200b}"), Some("U+202E".into()));
        assert_eq!(barred_from_sentence("a\nb"), Some("U+000A".into()));
    }

    #[test]
    fn in_quotes_nothing_is_unfit() {
        for (text, expected) in [
            ("a\u{3164}b\u{fe0f}", r#""a\u{3164}b\u{fe0f}""#),
            ("a\n\u{1b}\u{200b}", r#""a\n\u{1b}\u{200b}""#),
            ("größe \"x\"", r#""größe \"x\"""#),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }

    #[test]
    fn what_is_unfit_is_listed_in_order() {
        assert!(UNSEEN.iter().all(|(first, last)| first <= last));
        assert!(UNSEEN.is_sorted_by(|(_, last), (next, _)| last < next));
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        let clean = |text: &str, limit| one_line_within(text, limit).0;
        assert_eq!(clean("abcdef", 6), "abcdef");
        assert_eq!(clean("abcdefg", 6), "abc…");
        assert_eq!(clean("äöüäöü", 8), "äö…");
        assert_eq!(clean("abc", 2), "");
        for limit in 0..20 {
            assert!(clean("aä€😀 b ä€😀", limit).len() <= limit);
        }
    }

    /// A text with `ä` in front is looked at character by character, one with `a` by bytes.
    #[test]
    fn a_plain_line_is_what_one_looked_at_by_character_is() {
        let parts = ["", " ", "  ", "a", "~", "\u{7f}", "\n", "a b", "b  c"];
        for text in parts.iter().flat_map(|one| parts.map(|other| format!("{one}{other}"))) {
            for limit in 3..8 {
                let (slow, is_cut) = one_line_within(&format!("ä{text}"), limit + 2);
                let fast = one_line_within(&format!("a{text}"), limit + 1);
                assert_eq!(fast, (slow.replacen('ä', "a", 1), is_cut), "{text:?} {limit}");
            }
        }
    }

    #[test]
    fn of_many_names_the_first_few_stand_with_a_count() {
        for (most, expected) in
            [(0, " and 3 more"), (1, "a and 2 more"), (2, "a, b and 1 more"), (3, "a, b, c")]
        {
            assert_eq!(listed(&["a", "b", "c"], most), expected);
        }
        assert_eq!(listed::<&str>(&[], 5), "");
        assert_eq!(and_more_of(5, 2, "changes"), " and 3 more changes");
        assert_eq!(and_more_of(2, 2, "changes"), "");
        assert_eq!((shortened("äöü", 3), shortened("äöü", 2)), ("äöü".into(), "äö…".into()));
    }
}
