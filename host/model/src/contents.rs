//! The bytes of a file, out of its data URL: base64 or percent-encoding, and
//! gzip.
//!
//! The accepted form is `data:[TYPE/SUBTYPE][;NAME=VALUE]…[;base64],DATA`
//! (RFC 2397), as strict about base64 as Ignition is: the standard alphabet,
//! padded, nothing between the characters. Plain data is taken as it stands,
//! `%XX` resolved; Ignition wants more characters escaped there, but no reading
//! of them differs.

use crate::config::Source;
use flate2::bufread::MultiGzDecoder;
use std::borrow::Cow;
use std::io::Read as _;

/// What gzip may unpack to, for one file.
pub const MAX_UNPACKED: usize = 32 << 20;

/// As much is unpacked of all files that are compared together: a few small
/// files must not fill the memory.
pub const MAX_UNPACKED_TOGETHER: usize = 256 << 20;

/// Why a data URL has no bytes. No message quotes what the URL holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Nothing separates header and data.
    #[error("this data URL has no comma; write `data:,TEXT` or `data:;base64,DATA`")]
    NoComma,
    /// What stands before the comma.
    #[error(
        "what stands between `data:` and the comma cannot be read; \
         write `data:[TYPE/SUBTYPE][;NAME=VALUE][;base64],DATA`, with `;base64` last"
    )]
    Header,
    /// A character that base64 does not have.
    #[error(
        "character {0} of the data is not base64; \
         use the standard alphabet (A-Z a-z 0-9 + /) without line breaks"
    )]
    NotBase64(usize),
    /// The length shows that characters are missing.
    #[error(
        "the base64 data has {0} characters, which is no multiple of four; \
         it was cut, or its padding (`=`) is missing"
    )]
    Padding(usize),
    /// A `%` without its two digits.
    #[error(
        "the `%` at character {0} of the data is not followed by two hexadecimal digits; \
         write `%25` for the character itself"
    )]
    Percent(usize),
    /// Marked as gzip, but it is not.
    #[error(
        "`compression` is gzip, but the data is not gzip; compress it, or remove `compression`"
    )]
    NotGzip,
    /// It starts as gzip, but does not end so.
    #[error("the gzip data is damaged or cut short, or something follows it; compress it again")]
    BrokenGzip,
    /// More than [`MAX_UNPACKED_TOGETHER`].
    #[error(
        "with this file, the gzip data of all files unpacks to more than {} MiB; make the files smaller",
        MAX_UNPACKED_TOGETHER >> 20
    )]
    TooMuch,
    /// Larger than [`MAX_UNPACKED`].
    #[error("the gzip data unpacks to more than {} MiB; make the file smaller", MAX_UNPACKED >> 20)]
    TooLarge,
}

/// Whether the config itself holds the bytes: they are given as a data URL, or
/// there are none. Other URLs (`https:`, `s3:`, …) are fetched by Ignition when
/// a node is provisioned.
pub fn is_inline(source: &Source<'_>) -> bool {
    url(source).is_none_or(|url| url.starts_with(PREFIX))
}

/// The bytes of a source, borrowed where nothing had to be decoded; `None`
/// where the config does not hold them (see [`is_inline`]).
pub fn decode<'a>(source: &Source<'a>) -> Result<Option<Cow<'a, [u8]>>, DecodeError> {
    if let (Some(Cow::Borrowed(url)), false) = (&source.url, source.gzip)
        && let Some((Encoding::Percent, data)) = split(url)?
        && memchr::memchr(b'%', data).is_none()
    {
        return Ok(Some(Cow::Borrowed(data)));
    }
    let mut decoder = Decoder::default();
    Ok(decoder.decode(source)?.map(|bytes| Cow::Owned(bytes.to_vec())))
}

/// Decodes many sources, one after another, with one set of buffers.
#[derive(Debug, Default)]
pub struct Decoder {
    decoded: Vec<u8>,
    unpacked: Vec<u8>,
    /// How much was unpacked of all sources so far.
    unpacked_together: usize,
}

impl Decoder {
    /// How many bytes gzip unpacked to so far.
    pub(crate) fn unpacked(&self) -> usize {
        self.unpacked_together
    }

    /// As the function [`decode`].
    pub fn decode<'d>(
        &'d mut self,
        source: &'d Source<'_>,
    ) -> Result<Option<&'d [u8]>, DecodeError> {
        let Some(url) = url(source) else { return Ok(Some(&[])) };
        let Some((encoding, data)) = split(url)? else { return Ok(None) };
        let bytes = match encoding {
            Encoding::Base64 => {
                base64(data, &mut self.decoded)?;
                self.decoded.as_slice()
            }
            Encoding::Percent => match memchr::memchr(b'%', data) {
                None => data,
                Some(_) => {
                    percent(data, &mut self.decoded)?;
                    self.decoded.as_slice()
                }
            },
        };
        if !source.gzip {
            return Ok(Some(bytes));
        }
        gunzip(bytes, &mut self.unpacked)?;
        self.unpacked_together = self.unpacked_together.saturating_add(self.unpacked.len());
        if self.unpacked_together > MAX_UNPACKED_TOGETHER {
            return Err(DecodeError::TooMuch);
        }
        Ok(Some(self.unpacked.as_slice()))
    }
}

const PREFIX: &str = "data:";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Base64,
    Percent,
}

/// The URL, if there is one: Ignition takes an empty one for none.
fn url<'s>(source: &'s Source<'_>) -> Option<&'s str> {
    source.url.as_deref().filter(|url| !url.is_empty())
}

/// The encoding and the data; `None` for other URLs.
fn split(url: &str) -> Result<Option<(Encoding, &[u8])>, DecodeError> {
    let Some(rest) = url.strip_prefix(PREFIX) else { return Ok(None) };
    let comma = memchr::memchr2(b',', b'"', rest.as_bytes()).ok_or(DecodeError::NoComma)?;
    let (header, data) = match rest.split_at_checked(comma) {
        Some((header, data)) if data.starts_with(',') => (header, data),
        _ => split_quoted(rest)?,
    };
    Ok(Some((encoding(header)?, data.as_bytes().strip_prefix(b",").unwrap_or_default())))
}

/// As the caller, for a header in which a quoted value may hide a comma.
fn split_quoted(rest: &str) -> Result<(&str, &str), DecodeError> {
    let (mut quoted, mut escaped) = (false, false);
    let comma = rest.find(|c| {
        let found = c == ',' && !quoted;
        quoted ^= c == '"' && !escaped;
        escaped = c == '\\' && quoted && !escaped;
        found
    });
    comma.and_then(|comma| rest.split_at_checked(comma)).ok_or(DecodeError::NoComma)
}

fn encoding(header: &str) -> Result<Encoding, DecodeError> {
    let (media, encoding) = match header.strip_suffix(";base64") {
        Some(media) => (media, Encoding::Base64),
        None => (header, Encoding::Percent),
    };
    if media.is_empty() {
        return Ok(encoding);
    }
    let (kind, parameters) = media.split_once(';').map_or((media, None), |(k, p)| (k, Some(p)));
    let kind_is_fine = kind.is_empty() || kind.contains('/');
    // A quoted value may hold anything, and none of it matters.
    let parameters_are_fine = parameters
        .is_none_or(|all| all.contains('"') || all.split(';').all(|one| one.contains('=')));
    match kind_is_fine && parameters_are_fine {
        true => Ok(encoding),
        false => Err(DecodeError::Header),
    }
}

fn base64(data: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
    out.clear();
    // The library reserves exactly; growing in steps saves most allocations.
    out.reserve(data.len());
    if base64_simd::STANDARD.decode_append(data, out).is_ok() {
        return Ok(());
    }
    // It says only that something is wrong.
    if !data.len().is_multiple_of(4) {
        return Err(DecodeError::Padding(data.len()));
    }
    let unpadded = data.strip_suffix(b"==").or_else(|| data.strip_suffix(b"=")).unwrap_or(data);
    let known = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/');
    if let Some(position) = unpadded.iter().position(|c| !known(c)) {
        return Err(DecodeError::NotBase64(position + 1));
    }
    // What is left are bits in the last character that no byte uses. The
    // library wants them to be zero, Ignition does not care.
    *out = base64_simd::forgiving_decode_to_vec(data)
        .map_err(|_| DecodeError::NotBase64(unpadded.len()))?;
    Ok(())
}

fn percent(data: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
    out.clear();
    out.reserve(data.len() + PLAIN);
    let mut rest = data;
    while !rest.is_empty() {
        rest = plain(rest, out);
        // Escapes often stand side by side.
        while let [b'%', escape @ ..] = rest {
            let byte = escape.first_chunk().and_then(|digits| byte_of(*digits));
            let wrong = DecodeError::Percent(data.len() - rest.len() + 1);
            out.push(byte.ok_or(wrong)?);
            rest = escape.get(2..).unwrap_or_default();
        }
    }
    Ok(())
}

/// How many bytes are looked at together.
const PLAIN: usize = 8;

/// Copies what stands before the next percent sign, and returns the rest.
fn plain<'d>(mut bytes: &'d [u8], out: &mut Vec<u8>) -> &'d [u8] {
    const LOW: u64 = u64::MAX / 255;
    while let Some((chunk, rest)) = bytes.split_first_chunk::<PLAIN>() {
        // A byte is zero where the sign stands, and the lowest zero byte is the first one whose
        // highest bit this sets.
        let signs = u64::from_le_bytes(*chunk) ^ (LOW * u64::from(b'%'));
        let found = signs.wrapping_sub(LOW) & !signs & (LOW << 7);
        out.extend_from_slice(chunk);
        if found != 0 {
            let plain = (found.trailing_zeros() / 8) as usize;
            out.truncate(out.len() - (PLAIN - plain));
            return bytes.get(plain..).unwrap_or_default();
        }
        bytes = rest;
    }
    let end = bytes.iter().position(|byte| *byte == b'%').unwrap_or(bytes.len());
    let (plain, rest) = bytes.split_at_checked(end).unwrap_or((bytes, &[]));
    out.extend_from_slice(plain);
    rest
}

/// The byte that two hexadecimal digits stand for.
fn byte_of(digits: [u8; 2]) -> Option<u8> {
    // Without a branch: no processor can guess which of them are letters.
    let [high, low] = digits.map(|digit| {
        let (number, letter) = (digit.wrapping_sub(b'0'), (digit | 0x20).wrapping_sub(b'a'));
        let letter = if letter < 6 { letter + 10 } else { u8::MAX };
        if number < 10 { number } else { letter }
    });
    ((high | low) < 16).then_some(high << 4 | low)
}

fn gunzip(data: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
    if !data.starts_with(&[0x1f, 0x8b]) {
        return Err(DecodeError::NotGzip);
    }
    out.clear();
    let mut unpacked = MultiGzDecoder::new(data).take(MAX_UNPACKED as u64 + 1);
    unpacked.read_to_end(out).map_err(|_| DecodeError::BrokenGzip)?;
    match out.len() > MAX_UNPACKED {
        true => Err(DecodeError::TooLarge),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;
    use std::io::Write as _;

    fn source(url: &str, gzip: bool) -> Source<'_> {
        Source { url: Some(Cow::Borrowed(url)), gzip }
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn base64_url(bytes: &[u8]) -> String {
        format!("data:;base64,{}", base64_simd::STANDARD.encode_to_string(bytes))
    }

    #[test]
    fn every_way_of_writing_it_gives_the_same_bytes() {
        for url in [
            "data:,a+b%20c",
            "data:,a%2Bb%20c",
            "data:,a%2bb c",
            "data:;base64,YStiIGM=",
            // The last character has bits to spare.
            "data:;base64,YStiIGN=",
            "data:text/plain;base64,YStiIGM=",
            "data:text/plain;charset=utf-8;base64,YStiIGM=",
            "data:;charset=utf-8,a+b%20c",
            "data:text/plain;x=\"a,b;c\\\",d\",a+b%20c",
            "data:text/plain;x=\"a,b\";base64,YStiIGM=",
        ] {
            assert_eq!(
                decode(&source(url, false)).unwrap().as_deref(),
                Some(&b"a+b c"[..]),
                "{url}"
            );
        }
    }

    #[test]
    fn no_contents_and_empty_contents_are_no_bytes() {
        for url in ["", "data:,", "data:;base64,", "data:text/plain;charset=utf-8,"] {
            assert_eq!(decode(&source(url, false)).unwrap().as_deref(), Some(&b""[..]), "{url}");
        }
        assert_eq!(decode(&Source::default()).unwrap().as_deref(), Some(&b""[..]));
        assert_eq!(decode(&Source { url: None, gzip: true }).unwrap().as_deref(), Some(&b""[..]));
    }

    #[test]
    fn plain_text_is_borrowed() {
        assert!(matches!(decode(&source("data:,plain", false)), Ok(Some(Cow::Borrowed(b"plain")))));
    }

    #[test]
    fn what_is_wrong_with_a_data_url_is_named() {
        for (url, error) in [
            ("data:", DecodeError::NoComma),
            ("data:text/plain", DecodeError::NoComma),
            ("data:text/plain;x=\"a,b", DecodeError::NoComma),
            ("data:base64,YQ==", DecodeError::Header),
            ("data:;base64;charset=utf-8,YQ==", DecodeError::Header),
            ("data:;BASE64,YQ==", DecodeError::Header),
            ("data:;,YQ==", DecodeError::Header),
            ("data:;base64,YQ", DecodeError::Padding(2)),
            ("data:;base64,=", DecodeError::Padding(1)),
            ("data:;base64,Y===", DecodeError::NotBase64(2)),
            ("data:;base64,====", DecodeError::NotBase64(1)),
            ("data:;base64,YQ==YQ==", DecodeError::NotBase64(3)),
            ("data:;base64,ab-_", DecodeError::NotBase64(3)),
            ("data:;base64,YWFh\nYQ==", DecodeError::Padding(9)),
            ("data:;base64,YQ%3D", DecodeError::Padding(5)),
            ("data:,a%", DecodeError::Percent(2)),
            ("data:,ab%2", DecodeError::Percent(3)),
            ("data:,%20%zz", DecodeError::Percent(4)),
            ("data:,%é", DecodeError::Percent(1)),
        ] {
            assert_eq!(decode(&source(url, false)), Err(error), "{url}");
        }
    }

    #[test]
    fn other_urls_are_not_held_by_the_config() {
        for url in ["https://example.com/a", "s3://bucket/a", "file:///etc/a", "DATA:,a", "a"] {
            assert_eq!(decode(&source(url, false)), Ok(None), "{url}");
            assert!(!is_inline(&source(url, false)), "{url}");
        }
        assert!(is_inline(&source("data:,", false)));
        assert!(is_inline(&Source::default()));
    }

    #[test]
    fn gzip_is_unpacked_also_in_several_members() {
        let (one, two) = (gzip(b"one "), gzip(b"two"));
        let both = base64_url(&[one, two].concat());
        assert_eq!(decode(&source(&both, true)).unwrap().as_deref(), Some(&b"one two"[..]));
    }

    #[test]
    fn gzip_that_is_none_or_broken_is_an_error() {
        let whole = gzip(&b"some text to compress".repeat(20));
        let cut = base64_url(&whole[..whole.len() - 4]);
        let mut followed = whole.clone();
        followed.extend_from_slice(b"garbage");
        let mut padded = whole.clone();
        padded.extend_from_slice(&[0; 16]);
        let mut damaged = whole.clone();
        let check = damaged.len() - 8;
        damaged[check] ^= 1;
        for (url, error) in [
            ("data:,".to_owned(), DecodeError::NotGzip),
            ("data:,plain".to_owned(), DecodeError::NotGzip),
            (cut, DecodeError::BrokenGzip),
            (base64_url(&followed), DecodeError::BrokenGzip),
            (base64_url(&padded), DecodeError::BrokenGzip),
            (base64_url(&damaged), DecodeError::BrokenGzip),
        ] {
            assert_eq!(decode(&source(&url, true)), Err(error), "{url}");
        }
    }

    #[test]
    fn gzip_unpacks_to_the_limit_and_no_further() {
        let most = base64_url(&gzip(&vec![0; MAX_UNPACKED]));
        assert_eq!(decode(&source(&most, true)).unwrap().unwrap().len(), MAX_UNPACKED);
        let more = base64_url(&gzip(&vec![0; MAX_UNPACKED + 1]));
        assert_eq!(decode(&source(&more, true)), Err(DecodeError::TooLarge));
    }

    #[test]
    fn a_decoder_forgets_what_it_decoded_before() {
        let (long, short) = (base64_url(&[7; 1000]), base64_url(b"x"));
        let packed = base64_url(&gzip(&[8; 1000]));
        let mut decoder = Decoder::default();
        decoder.decode(&source(&long, false)).unwrap();
        decoder.decode(&source(&packed, true)).unwrap();
        assert_eq!(decoder.decode(&source(&short, false)), Ok(Some(&b"x"[..])));
        let tiny = base64_url(&gzip(b"y"));
        assert_eq!(decoder.decode(&source(&tiny, true)), Ok(Some(&b"y"[..])));
    }

    /// Percent-encoding byte by byte.
    fn slowly(mut data: &[u8]) -> Result<Vec<u8>, usize> {
        let (mut out, whole) = (Vec::new(), data.len());
        while let [first, rest @ ..] = data {
            data = match (first, rest) {
                (b'%', [high, low, rest @ ..]) => {
                    let digit = |byte: &u8| char::from(*byte).to_digit(16);
                    let both = digit(high).zip(digit(low)).ok_or(whole - data.len() + 1)?;
                    out.push(u8::try_from(both.0 * 16 + both.1).unwrap());
                    rest
                }
                (b'%', _) => return Err(whole - data.len() + 1),
                _ => {
                    out.push(*first);
                    rest
                }
            };
        }
        Ok(out)
    }

    proptest! {
        #[test]
        fn escapes_are_read_wherever_they_stand(
            parts in vec(select(vec!["%", "%4", "%4a", "%C3%bF", "plain text", "g", "\n", "é"]), 0..12),
        ) {
            let data = parts.concat();
            let mut out = vec![7; 3];
            let read = percent(data.as_bytes(), &mut out).map(|()| out);
            prop_assert_eq!(read, slowly(data.as_bytes()).map_err(DecodeError::Percent));
        }
    }
}
