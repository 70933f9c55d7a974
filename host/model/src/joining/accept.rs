//! Which version of Ignition configs a machine reads, by the header `Accept`.

/// The newest version that tread writes: 3.5.
pub const NEWEST: u8 = 5;

const MEDIA_TYPE: &str = "application/vnd.coreos.ignition+json";
/// More entries than these are not looked at: Ignition sends up to four.
const MOST: usize = 16;

/// Which version is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Whoever asks reads 3.X: the newest that both sides know.
    Three(u8),
    /// Whoever asks does not say: it may have what there is.
    Any,
    /// Whoever asks reads version 2 or 1 alone.
    Older,
}

/// Reads the header.
pub fn asked(accept: &str) -> Asked {
    let mut older = false;
    let mut newest = None;
    for entry in accept.split(',').take(MOST) {
        let mut parts = entry.split(';').map(str::trim);
        if !parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case(MEDIA_TYPE)) {
            continue;
        }
        let version = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("version").then(|| value.trim().trim_matches('"'))
        });
        let Some(version) = version else { continue };
        let mut numbers = version.split('.');
        match (numbers.next(), numbers.next().and_then(|minor| minor.parse::<u8>().ok())) {
            (Some("3"), Some(minor)) => newest = newest.max(Some(minor.min(NEWEST))),
            (Some("1" | "2"), _) => older = true,
            _ => {}
        }
    }
    match newest {
        Some(minor) => Asked::Three(minor),
        None if older => Asked::Older,
        None => Asked::Any,
    }
}
