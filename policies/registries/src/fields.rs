//! Keys as Go's reader of TOML finds them.

use crate::load::Result;
use tread_policy_formats::{Item, Section, words};

/// What a table says of each of `names`. A key that differs from a name by its
/// case only is meant too, in the sense of Unicode's simple case folding. Keys
/// that are not known say nothing.
pub(crate) fn fields<'a, 't, const N: usize>(
    table: &'a Section<'t>,
    names: [&str; N],
) -> Result<[Option<&'a Item<'t>>; N]> {
    let mut found = [None; N];
    for (key, item) in table.iter() {
        let exact = names.iter().position(|name| words::equal(name, key));
        let Some(at) = exact.or_else(|| names.iter().position(|name| is_folded(key, name))) else {
            continue;
        };
        let Some(slot) = found.get_mut(at) else { continue };
        if slot.replace(item).is_some() {
            // Go takes either of them, now this one, now that one.
            return Err("a key is there twice, in upper and lower case; keep one of them");
        }
    }
    Ok(found)
}

/// Whether `key` is `name`, which is in lower case and ASCII, but for the case.
fn is_folded(key: &str, name: &str) -> bool {
    key.len() >= name.len() && key.chars().map(fold).eq(name.chars())
}

/// The one ASCII letter in lower case that Go folds a character to; another
/// character stays what it is.
fn fold(character: char) -> char {
    match character {
        '\u{212a}' => 'k',
        '\u{17f}' => 's',
        other => other.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_policy_formats::toml;

    #[test]
    fn no_other_character_has_an_ascii_letter_as_its_other_case() {
        for character in '\u{80}'..=char::MAX {
            let other = |mut cases: Box<dyn Iterator<Item = char>>| {
                let first = cases.next();
                first.filter(|c| c.is_ascii() && cases.next().is_none())
            };
            let ascii = other(Box::new(character.to_lowercase()))
                .or_else(|| other(Box::new(character.to_uppercase())))
                .map(|c| c.to_ascii_lowercase());
            // Upper case of the dotless i is I, but folding knows nothing of it.
            if character != '\u{131}' {
                assert_eq!(ascii.unwrap_or(character), fold(character), "{character:?}");
            }
        }
    }

    #[test]
    fn keys_are_found_as_go_finds_them() {
        for (text, found) in [
            ("blocked = 1", Ok(true)),
            ("BLOCKED = 1", Ok(true)),
            ("\"bloc\u{212a}ed\" = 1", Ok(true)),
            ("block = 1", Ok(false)),
            ("\"blocked \" = 1", Ok(false)),
            ("Blocked = 1\nblocked = 1", Err(())),
            ("Blocked = 1\nBLOCKED = 1", Err(())),
            ("\"in\u{17f}ecure\" = 1", Ok(false)),
        ] {
            let document = toml::read(text.as_bytes()).unwrap();
            let fields = fields(&document.root, ["blocked"]);
            assert_eq!(fields.map(|[field]| field.is_some()).map_err(|_| ()), found, "{text}");
        }
        let document = toml::read("\"in\u{17f}ecure\" = 1".as_bytes()).unwrap();
        assert!(fields(&document.root, ["insecure"]).unwrap()[0].is_some());
    }
}
