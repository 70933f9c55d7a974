//! Names of registries and repositories, as container tools write them.

use std::borrow::Cow;

/// The runtime takes no longer name, without tag and digest.
pub(crate) const LONGEST: usize = 255;

/// `host[:port]`, the host a name or an IPv4 address. The runtime's grammar of
/// names has no IPv6 addresses.
pub(crate) fn is_domain(text: &str) -> bool {
    let (host, port) = match text.bytes().rposition(|byte| byte == b':') {
        Some(colon) => text.split_at_checked(colon).unwrap_or((text, "")),
        None => (text, ":0"),
    };
    if port.len() < 2 || !port.bytes().skip(1).all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    // Labels of letters, digits and dashes, with no dash at an end.
    let mut before = b'.';
    for byte in host.bytes() {
        let fine = match byte {
            b'.' => before != b'.' && before != b'-',
            b'-' => before != b'.',
            byte => byte.is_ascii_alphanumeric(),
        };
        if !fine {
            return false;
        }
        before = byte;
    }
    before != b'.' && before != b'-'
}

/// A repository's path within its registry: lower-case words joined by `.`,
/// `_`, `__` or dashes, and `/`.
pub(crate) fn is_path(text: &str) -> bool {
    let mut bytes = text.bytes();
    let is_word = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut next = bytes.next();
    loop {
        // A word.
        if !next.as_ref().is_some_and(is_word) {
            return false;
        }
        while next.as_ref().is_some_and(is_word) {
            next = bytes.next();
        }
        // What joins it to the next one.
        match next {
            None => return true,
            Some(b'/' | b'.') => next = bytes.next(),
            Some(b'_') => {
                next = bytes.next();
                if next == Some(b'_') {
                    next = bytes.next();
                }
            }
            Some(b'-') => {
                while next == Some(b'-') {
                    next = bytes.next();
                }
            }
            Some(_) => return false,
        }
    }
}

/// Whether the first component of a name is a registry and not a part of a path.
fn is_registry(first: &str) -> bool {
    first.bytes().any(|byte| matches!(byte, b'.' | b':')) || first == "localhost"
}

/// A complete name of a repository, in the one form that tools write it in:
/// what an image is looked up by.
pub(crate) fn is_canonical(name: &str) -> bool {
    let slash = name.bytes().position(|byte| byte == b'/').unwrap_or(name.len());
    let Some((domain, path)) = name.split_at_checked(slash) else { return false };
    let Some(path) = path.strip_prefix('/') else { return false };
    is_registry(domain)
        && is_domain(domain)
        && is_path(path)
        && domain != "index.docker.io"
        && (domain != "docker.io" || path.contains('/'))
}

/// The complete name of `path` in `registry`: Docker's own images have a
/// hidden `library/`, and what cannot be a registry is a part of a path there.
pub(crate) fn complete(registry: &str, path: &str) -> String {
    match registry {
        "docker.io" | "index.docker.io" if path.contains('/') => ["docker.io/", path].concat(),
        "docker.io" | "index.docker.io" => ["docker.io/library/", path].concat(),
        host if is_registry(host) => [host, "/", path].concat(),
        part => ["docker.io/", part, "/", path].concat(),
    }
}

/// The complete name that an alias stands for, if it may stand for one.
pub(crate) fn alias_target(value: &str) -> Option<Cow<'_, str>> {
    let (domain, path) = value.split_once('/')?;
    let fine = is_registry(domain) && is_domain(domain) && is_path(path) && value.len() <= LONGEST;
    let name = fine.then(|| complete(domain, path))?;
    (name.len() <= LONGEST).then(|| name.into())
}

/// A name without registry, tag and digest.
pub(crate) fn is_short(name: &str) -> bool {
    let is_name = match name.split_once('/') {
        Some((first, rest)) if is_domain(first) && is_path(rest) => !is_registry(first),
        _ => is_path(name),
    };
    is_name && name.len() <= LONGEST
}

/// Whether an image can be named so; a registry that is left out is Docker's.
pub(crate) fn is_reference(text: &str) -> bool {
    tagged(text).is_some()
}

/// As [`is_reference`], with a tag or a digest.
pub(crate) fn is_tagged(text: &str) -> bool {
    tagged(text) == Some(true)
}

/// `ALGORITHM:HEX`, with an algorithm that is known.
pub(crate) fn is_digest(digest: &str) -> bool {
    let (algorithm, hex) = digest.split_once(':').unwrap_or_default();
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    hex.len() == length && hex.bytes().all(is_lower_hex)
}

pub(crate) fn is_tag(tag: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.len() <= 128
        && tag.bytes().next().is_some_and(word)
        && tag.bytes().all(|byte| word(byte) || matches!(byte, b'.' | b'-'))
}

fn is_lower_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// Whether a reference has a tag or a digest; none for what is no reference.
fn tagged(text: &str) -> Option<bool> {
    if text.len() == 64 && text.bytes().all(is_lower_hex) {
        return None;
    }
    let (domain, rest) = match text.split_once('/') {
        Some((first, rest)) if is_registry(first) => (first, rest),
        _ => ("docker.io", text),
    };
    let (rest, digest) = rest.split_once('@').map_or((rest, None), |(rest, d)| (rest, Some(d)));
    let (path, tag) = rest.split_once(':').map_or((rest, None), |(path, tag)| (path, Some(tag)));
    let name = match domain {
        "docker.io" | "index.docker.io" => complete(domain, path).len(),
        _ => domain.len() + 1 + path.len(),
    };
    let fine = is_domain(domain)
        && is_path(path)
        && name <= LONGEST
        && digest.is_none_or(is_digest)
        && tag.is_none_or(is_tag);
    fine.then_some(digest.is_some() || tag.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_paths_and_names() {
        for domain in ["quay.io", "a", "localhost:5000", "A-b.c", "1.2.3.4", "1.2.3.4:80"] {
            assert!(is_domain(domain), "{domain}");
        }
        for domain in [
            "", "a..b", "-a", "a-", "a_b", "a:", "a:x", "a/b", "*.a", "a:1:2", "[::1]", "[::1]:80",
            "::1",
        ] {
            assert!(!is_domain(domain), "{domain}");
        }
        for path in ["a", "a/b", "a.b", "a_b", "a__b", "a---b", "0/1"] {
            assert!(is_path(path), "{path}");
        }
        for path in ["", "A", "a//b", "/a", "a/", "a..b", "a___b", "a._b", "-a", "a:b", "é"] {
            assert!(!is_path(path), "{path}");
        }
        for name in ["quay.io/a", "localhost/a", "host:5000/a/b", "docker.io/library/a"] {
            assert!(is_canonical(name), "{name}");
        }
        for name in ["a", "quay.io", "host/a", "docker.io/a", "quay.io:5000", "index.docker.io/a/b"]
        {
            assert!(!is_canonical(name), "{name}");
        }
    }

    #[test]
    fn dockers_own_images_have_a_hidden_part() {
        assert_eq!(complete("docker.io", "alpine"), "docker.io/library/alpine");
        assert_eq!(complete("quay.io", "alpine"), "quay.io/alpine");
        assert_eq!(complete("host", "alpine"), "docker.io/host/alpine");
        assert_eq!(alias_target("docker.io/alpine").unwrap(), "docker.io/library/alpine");
        assert_eq!(alias_target("host/alpine"), None);
        assert_eq!(alias_target("quay.io/alpine:3"), None);
    }

    #[test]
    fn a_name_without_a_registry_is_in_lower_case() {
        for (name, fine) in
            [("app", true), ("org/app:1", true), ("Org/app", false), ("a.io/app", true)]
        {
            assert_eq!(is_reference(name), fine, "{name}");
        }
    }

    #[test]
    fn a_short_name_has_no_registry() {
        for (name, short) in [
            ("ubi9", true),
            ("org/app", true),
            ("quay.io/a", false),
            ("a:1", false),
            ("localhost/a", false),
            ("Org/app", true),
            ("a_b/c", true),
            ("a.b_c/d", true),
            ("a_B/c", false),
        ] {
            assert_eq!(is_short(name), short, "{name}");
        }
    }
}
