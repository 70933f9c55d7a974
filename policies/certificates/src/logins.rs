//! What the runtime reads of a pull secret, with Go's reader of JSON: a field in any case, and the last
//! one of those that are there twice.

use tread_guest_sdk::json;

/// What becomes of pulls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Logins {
    /// As far as can be told, they find their logins.
    Found,
    /// None finds one.
    None,
    /// All of them fail, since the file cannot be read.
    Broken,
}

pub(crate) fn read(bytes: &[u8]) -> Logins {
    if !is_object(bytes) {
        return Logins::Broken;
    }
    // Go takes other bytes inside of strings, too.
    let Ok(text) = std::str::from_utf8(bytes) else { return Logins::Found };
    if json::check(text).is_err() {
        return Logins::Broken;
    }
    let Ok(fields) = json::fields(text) else { return Logins::Found };
    match fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("auths")) {
        None | Some((_, &"null")) => Logins::None,
        Some((_, auths)) if is_of_objects(auths) => Logins::Found,
        Some(_) => Logins::Broken,
    }
}

fn is_object(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"{")
}

fn is_of_objects(auths: &str) -> bool {
    let is_one = |auth: &&str| *auth == "null" || is_object(auth.as_bytes());
    is_object(auths.as_bytes())
        && json::fields(auths).map_or(true, |auths| auths.values().all(is_one))
}
