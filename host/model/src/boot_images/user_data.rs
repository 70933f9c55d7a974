//! Whether a new image would boot with the user data that a resource has. What
//! is in it is never shown.

use super::document::field_at;
use base64_simd::STANDARD;
use serde_json::Value;

/// What is wrong with user data, and what to do, as one sentence; none: it is
/// fine as far as tread can see.
pub fn problem(user_data: &[u8], authorities: &str) -> Option<String> {
    let Ok(stub) = serde_json::from_slice::<Value>(user_data) else {
        return Some(
            "the user data is no JSON: a node gets no Ignition config from it; make the Secret \
             again from the one that the installer made"
                .to_owned(),
        );
    };
    let version = field_at(&stub, "/ignition/version").as_str().unwrap_or_default();
    if !version.starts_with("3.") {
        return Some(
            "the user data is a stub of Ignition 2 or of no version that is known, and a newer \
             image reads version 3 only: convert it before you change the image, or use the Secret \
             that ends in -user-data-managed"
                .to_owned(),
        );
    }
    let trusted = field_at(&stub, "/ignition/security/tls/certificateAuthorities").as_array();
    let sources = trusted.into_iter().flatten().filter_map(|it| field_at(it, "/source").as_str());
    let inline: Vec<String> = sources.filter_map(contents).collect();
    if inline.is_empty() || authorities.trim().is_empty() {
        return None;
    }
    let known = certificates(authorities);
    let trusts = inline.iter().flat_map(|text| certificates(text)).any(|it| known.contains(&it));
    if trusts {
        return None;
    }
    Some(
        "the user data trusts a CA that the machine config server no longer has: a new machine \
         would not get its config; put the current CA into the Secret before you change the image"
            .to_owned(),
    )
}

/// What a data URL holds.
fn contents(url: &str) -> Option<String> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(',')?;
    let bytes = if kind.ends_with(";base64") {
        STANDARD.decode_to_vec(data.as_bytes()).ok()?
    } else {
        percent_decoded(data)
    };
    String::from_utf8(bytes).ok()
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let escaped = more.get(..2).filter(|_| *first == b'%');
        let byte = escaped
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { more.get(2..).unwrap_or_default() } else { more };
    }
    out
}

/// The certificates of a bundle, each without the white space in it.
fn certificates(bundle: &str) -> Vec<String> {
    let parts = bundle.split("-----BEGIN CERTIFICATE-----").skip(1);
    let bodies = parts.filter_map(|part| part.split("-----END CERTIFICATE-----").next());
    bodies.map(|body| body.split_whitespace().collect()).collect()
}
