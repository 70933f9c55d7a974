//! Names of registries and repositories, as container tools write them.

/// `host[:port]`, the host a name or an IPv6 address in brackets.
pub(crate) fn is_domain(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let digits = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if !port.is_none_or(digits) {
        return false;
    }
    if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let part = |byte: u8| byte.is_ascii_hexdigit() || byte == b':';
        return !address.is_empty() && address.bytes().all(part);
    }
    host.split('.').all(|label| {
        let part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(part)
    })
}

/// A repository's path within its registry: lower-case words joined by `.`,
/// `_`, `__` or dashes, and `/`.
pub(crate) fn is_path(text: &str) -> bool {
    text.split('/').all(|component| {
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let joins = |join: &str| {
            matches!(join, "" | "." | "_" | "__") || join.bytes().all(|byte| byte == b'-')
        };
        component.bytes().next().is_some_and(is_word)
            && component.bytes().next_back().is_some_and(is_word)
            && component.split(|c: char| c.is_ascii() && is_word(c as u8)).all(joins)
    })
}

/// Whether the first component of a name is a registry and not a part of a path.
fn is_registry(first: &str) -> bool {
    first.contains(['.', ':']) || first == "localhost"
}

/// A complete name of a repository, in the one form that tools write it in:
/// what an image is looked up by.
pub(crate) fn is_canonical(name: &str) -> bool {
    let Some((domain, path)) = name.split_once('/') else { return false };
    is_registry(domain)
        && is_domain(domain)
        && is_path(path)
        && domain != "index.docker.io"
        && (domain != "docker.io" || path.contains('/'))
}

/// The complete name of `path` in `registry`: Docker's own images have a
/// hidden `library/`.
pub(crate) fn complete(registry: &str, path: &str) -> String {
    let docker = registry == "docker.io" || registry == "index.docker.io";
    match (docker, path.contains('/')) {
        (true, false) => ["docker.io/library/", path].concat(),
        (true, true) => ["docker.io/", path].concat(),
        (false, _) => [registry, "/", path].concat(),
    }
}

/// The complete name that an alias stands for, if it may stand for one.
pub(crate) fn alias_target(value: &str) -> Option<String> {
    let (domain, path) = value.split_once('/')?;
    let fine = is_registry(domain) && is_domain(domain) && is_path(path);
    fine.then(|| complete(domain, path))
}

/// A name without registry, tag and digest.
pub(crate) fn is_short(name: &str) -> bool {
    match name.split_once('/') {
        Some((first, rest)) => !is_registry(first) && is_domain(first) && is_path(rest),
        None => is_path(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_paths_and_names() {
        for domain in
            ["quay.io", "a", "localhost:5000", "A-b.c", "[fd00::1]:80", "[::1]", "1.2.3.4"]
        {
            assert!(is_domain(domain), "{domain}");
        }
        for domain in
            ["", "a..b", "-a", "a-", "a_b", "a:", "a:x", "a/b", "[]", "[g]", "*.a", "a:1:2"]
        {
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
        assert_eq!(alias_target("docker.io/alpine").unwrap(), "docker.io/library/alpine");
        assert_eq!(alias_target("host/alpine"), None);
        assert_eq!(alias_target("quay.io/alpine:3"), None);
    }

    #[test]
    fn a_short_name_has_no_registry() {
        for (name, short) in [
            ("ubi9", true),
            ("org/app", true),
            ("quay.io/a", false),
            ("a:1", false),
            ("localhost/a", false),
        ] {
            assert_eq!(is_short(name), short, "{name}");
        }
    }
}
