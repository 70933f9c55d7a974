//! Whether Ignition takes a data URL, which is stricter than reading one.

/// Whether Ignition takes a URL. One that is no data URL, or no URL at all, counts as
/// taken: other checks are about those.
pub(crate) fn is_taken(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("data:") else { return true };
    match header(rest.as_bytes()) {
        // Wrong base64 is reported, with its place, by whoever decodes it.
        Some((true, data)) => !has_control(data),
        Some((false, data)) => has_only_url_characters(data),
        None => false,
    }
}

/// Whether the data is base64, and the data.
fn header(bytes: &[u8]) -> Option<(bool, &[u8])> {
    let mut rest = bytes;
    if !matches!(rest.first()?, b';' | b',') {
        rest = media_type(rest)?;
    }
    loop {
        match rest.split_first()? {
            (b',', data) => return Some((false, data)),
            (b';', after) => {
                let (name, after) = token(after);
                if name.is_empty() {
                    return None;
                }
                rest = match after.split_first()? {
                    (b',', data) => return (name == b"base64").then_some((true, data)),
                    (b'=', after) => value(after)?,
                    _ => return None,
                };
            }
            _ => return None,
        }
    }
}

/// What follows `TYPE/SUBTYPE`.
fn media_type(bytes: &[u8]) -> Option<&[u8]> {
    const TYPES: [&str; 7] =
        ["text", "image", "audio", "video", "application", "message", "multipart"];
    let (kind, rest) = token(bytes);
    let rest = rest.strip_prefix(b"/")?;
    let own = kind.starts_with(b"x-") || kind.starts_with(b"X-");
    if !own && !TYPES.iter().any(|known| kind.starts_with(known.as_bytes())) {
        return None;
    }
    Some(token(rest).1)
}

/// What follows the value of a parameter.
fn value(bytes: &[u8]) -> Option<&[u8]> {
    let Some(quoted) = bytes.strip_prefix(b"\"") else {
        let (value, rest) = token(bytes);
        return (!value.is_empty() && is_escaped(value)).then_some(rest);
    };
    let mut rest = quoted;
    loop {
        rest = match rest.split_first()? {
            (b'"', rest) => return Some(rest),
            // As in a string of Go, where only this much may be escaped.
            (b'\\', rest) => match rest.split_first()? {
                (b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'\\' | b'"', rest) => rest,
                _ => return None,
            },
            (byte, rest) if byte.is_ascii() && !byte.is_ascii_control() => rest,
            _ => return None,
        };
    }
}

/// Whether each `%` has its two digits.
fn is_escaped(bytes: &[u8]) -> bool {
    let mut parts = bytes.split(|byte| *byte == b'%');
    parts.next();
    parts.all(|part| {
        matches!(part, [high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
    })
}

/// A token of RFC 2045, and what follows it.
fn token(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| !is_token(*byte)).unwrap_or(bytes.len());
    bytes.split_at_checked(end).unwrap_or((bytes, &[]))
}

/// What may stand in a token: all that is printed, but for blanks and `()<>@,;:\"/[]?=`.
const fn is_token(byte: u8) -> bool {
    matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'0'..=b'9' | b'A'..=b'Z' | b'^'..=b'~')
}

fn has_control(bytes: &[u8]) -> bool {
    bytes.iter().fold(false, |found, byte| found | (*byte < b' ') | (*byte == 0x7f))
}

/// Whether all is ASCII that a URL may have unescaped. All of a chunk is looked at, with no way
/// out in the middle, so that the compiler can look at many bytes at once: this is run over all
/// that is compared.
fn has_only_url_characters(bytes: &[u8]) -> bool {
    const CHUNK: usize = 4096;
    !bytes.chunks(CHUNK).any(|chunk| chunk.iter().fold(false, |found, byte| found | is_odd(*byte)))
}

/// Whether a byte has to be escaped: a blank or control character, none of ASCII, or one of
/// `"#<>[\]^`{|}`. Two characters that differ in one bit are told by one comparison.
fn is_odd(byte: u8) -> bool {
    (byte <= b' ')
        | (byte >= b'{') & (byte != b'~')
        | (byte.wrapping_sub(b'[') < 4)
        | (byte == b'`')
        | (byte & !1 == b'"')
        | (byte & !2 == b'<')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_all_bytes_those_are_odd_that_a_url_has_to_escape() {
        for byte in 0..=u8::MAX {
            let listed = b"<>#\"{}|\\^[]`".contains(&byte);
            let odd = byte <= b' ' || byte >= 0x7f || listed;
            assert_eq!(!has_only_url_characters(&[b'a', byte, b'a']), odd, "{byte:#x}");
        }
    }

    #[test]
    fn of_all_bytes_those_make_a_token_that_the_rfc_does_not_use_otherwise() {
        for byte in 0..=u8::MAX {
            let special = b"()<>@,;:\\\"/[]?=".contains(&byte);
            assert_eq!(is_token(byte), byte.is_ascii_graphic() && !special, "{byte:#x}");
        }
    }

    #[test]
    fn a_data_url_is_taken_as_ignition_takes_it() {
        for url in [
            "",
            "https://a b",
            "data:,",
            "data:,a%20b+c",
            "data:,it's(~*)!;/?:@&=$,",
            // It is decoded, and told where it is wrong, elsewhere.
            "data:,a%zz",
            "data:;base64,YQ=",
            "data:;charset=utf-8,a",
            "data:text/plain;charset=utf-8;base64,YQ==",
            "data:text/,a",
            "data:textile/x,a",
            "data:x-my/type,a",
            "data:text/plain;a=\"x,\\\"y\",b",
            "data:text/plain;a=%41,b",
        ] {
            assert!(is_taken(url), "{url}");
        }
        for url in [
            "data:",
            "data:a",
            "data:,a b",
            "data:,a\nb",
            "data:,ä",
            "data:,a#b",
            "data:,\"a\"",
            "data:,{}",
            "data:,[a]",
            "data:,a|b",
            "data:,a\\b",
            "data:,a^b",
            "data:,a`b",
            "data:,a<b>",
            "data:,\x7f",
            "data:;base64,YQ\n==",
            "data:;BASE64,YQ==",
            "data:base64,YQ==",
            "data:;base64;a=b,YQ==",
            "data:font/woff,a",
            "data:text,a",
            "data:text/plain; charset=utf-8,a",
            "data:text/plain;charset=,a",
            "data:text/plain;,a",
            "data:text/plain;a=\"x,b",
            "data:text/plain;a=\"x\\q\",b",
            "data:text/plain;a=%4,b",
        ] {
            assert!(!is_taken(url), "{url}");
        }
    }
}
