//! Scopes: what a registry entry or a mirror is about, such as `quay.io`,
//! `quay.io/team/app` or `*.example.com`.

use std::borrow::Cow;
use std::collections::BTreeSet;

/// No scope is longer, in bytes.
pub(super) const LONGEST: usize = 1024;

/// All scopes of at most `longest` bytes that `inner` lies inside of, each with
/// what has to be appended to its mirrors.
pub(super) fn scopes_around(
    inner: &str,
    longest: usize,
) -> impl Iterator<Item = (Cow<'_, str>, &str)> {
    let path = inner.find('/').unwrap_or(inner.len());
    let (host, behind) = inner.split_at_checked(path).unwrap_or((inner, ""));
    let name = host.split(':').next().unwrap_or(host);
    let slashes = inner.match_indices('/').take_while(move |(at, _)| *at <= longest);
    let above = slashes.filter_map(|(at, _)| inner.split_at_checked(at));
    let dots = name.match_indices('.').filter(move |(at, _)| name.len() - at < longest);
    let wildcards = dots.filter_map(|(at, _)| Some(format!("*{}", name.get(at..)?)));
    let wildcards = wildcards.filter(move |wildcard| wildcard != inner);
    let above = above.map(|(outer, rest)| (Cow::Borrowed(outer), rest));
    above.chain(wildcards.map(move |wildcard| (Cow::Owned(wildcard), behind)))
}

/// Scopes, of which it is asked whether another one lies inside of one of them.
pub(super) struct Scopes<'s> {
    all: BTreeSet<&'s str>,
    longest: usize,
}

impl<'s> Scopes<'s> {
    pub(super) fn of(all: impl IntoIterator<Item = &'s str>) -> Scopes<'s> {
        let all: BTreeSet<&str> = all.into_iter().collect();
        let longest = all.iter().map(|scope| scope.len()).max().unwrap_or_default();
        Scopes { all, longest: longest.min(LONGEST) }
    }

    /// Whether this is one of them.
    pub(super) fn has(&self, scope: &str) -> bool {
        self.all.contains(scope)
    }

    /// Whether this lies inside of one of them, and is not that one.
    pub(super) fn has_around(&self, inner: &str) -> bool {
        scopes_around(inner, self.longest).any(|(outer, _)| self.has(&outer))
    }
}

/// Checks the source of a set of mirrors; the error says what is expected.
pub(super) fn check_source(scope: &str) -> Result<(), String> {
    match scope.strip_prefix("*.") {
        Some(rest) if rest.split('.').all(is_label) => Ok(()),
        Some(_) => Err(format!(
            "{scope:?}: after *. stands the name of a host and nothing else, as in *.example.com"
        )),
        None => check(scope),
    }
}

/// Checks a mirror.
pub(super) fn check_mirror(scope: &str) -> Result<(), String> {
    if scope.starts_with('*') {
        return Err(format!("{scope:?}: a mirror takes no wildcard: name the registry"));
    }
    check(scope)
}

fn check(scope: &str) -> Result<(), String> {
    let (host, path) = match scope.split_once('/') {
        Some((host, path)) => (host, Some(path)),
        None => (scope, None),
    };
    let (name, port) = match host.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (host, None),
    };
    let last = path.and_then(|path| path.rsplit('/').next());
    let why = if scope.is_empty() {
        "is empty"
    } else if scope.len() > LONGEST {
        return Err(format!("is longer than {LONGEST} bytes: no registry or repository is"));
    } else if scope.contains("://") {
        "has a scheme: leave it out"
    } else if scope.contains('@') {
        "has a digest: leave it out, a scope names repositories"
    } else if scope.contains('*') {
        "has a wildcard: only *. at its start is one, and only before the name of a host"
    } else if last.is_some_and(|last| last.contains(':')) {
        "has a tag: leave it out, a scope names repositories"
    } else if scope.ends_with('/') {
        "ends in a slash: leave it out"
    } else if !name.split('.').all(is_label)
        || port.is_some_and(|port| port.is_empty() || !port.bytes().all(|b| b.is_ascii_digit()))
    {
        "does not begin with the name of a host, which may have a port"
    } else if path.is_some_and(|path| !path.split('/').all(is_component)) {
        "has a path that no repository has: lower-case letters, digits, and . _ - between them"
    } else {
        return Ok(());
    };
    Err(format!("{scope:?} {why}; expected a registry or repository such as quay.io/team/app"))
}

/// Whether this is a part of the name of a host.
fn is_label(label: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !label.is_empty() && label.bytes().all(fine) && !label.starts_with('-') && !label.ends_with('-')
}

/// Whether this is a part of the name of a repository.
fn is_component(component: &str) -> bool {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    // Between words stand one dot, one or two underscores, or any number of dashes.
    let separators = component.split(word).filter(|part| !part.is_empty());
    component.starts_with(word)
        && component.ends_with(word)
        && separators
            .into_iter()
            .all(|part| matches!(part, "." | "_" | "__") || part.bytes().all(|b| b == b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What has to be appended to a mirror of `outer`, so that it mirrors `inner`.
    /// None if `inner` is not inside, or is all of `outer`.
    fn rest_inside<'s>(inner: &'s str, outer: &str) -> Option<&'s str> {
        if inner == outer {
            return None;
        }
        if let Some(rest) = inner.strip_prefix(outer).filter(|rest| rest.starts_with('/')) {
            return Some(rest);
        }
        // Of a wildcard only the names of hosts can be inside; a port counts nothing.
        let suffix = outer.strip_prefix('*').filter(|suffix| suffix.starts_with('.'))?;
        let path = inner.find('/').unwrap_or(inner.len());
        let (host, rest) = inner.split_at_checked(path)?;
        let name = host.split_once(':').map_or(host, |(name, _)| name);
        name.ends_with(suffix).then_some(rest)
    }

    #[test]
    fn a_scope_lies_inside_another_by_whole_components_and_whole_labels() {
        for (inner, outer, rest) in [
            ("a.io/b", "a.io", Some("/b")),
            ("a.io/b/c", "a.io/b", Some("/c")),
            ("a.io/bc", "a.io/b", None),
            ("a.io", "a.io", None),
            ("a.io", "a.io/b", None),
            ("a.io:5000/b", "a.io", None),
            ("x.a.io", "*.a.io", Some("")),
            ("x.a.io/b", "*.a.io", Some("/b")),
            ("x.a.io:5000/b", "*.a.io", Some("/b")),
            ("*.x.a.io", "*.a.io", Some("")),
            ("a.io", "*.a.io", None),
            ("xa.io", "*.a.io", None),
            ("quay.io/x.a.io", "*.a.io", None),
            ("quay.io/x.a.io:1", "*.a.io", None),
        ] {
            assert_eq!(rest_inside(inner, outer), rest, "{inner} {outer}");
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config {
            failure_persistence: None,
            ..Default::default()
        })]

        #[test]
        fn the_scopes_around_another_are_those_that_it_lies_inside_of(
            inner in r"(\*\.)?[ab](\.[ab]){0,3}(:1)?(/[ab]){0,3}",
            outer in r"(\*\.)?[ab](\.[ab]){0,2}(:1)?(/[ab]){0,2}",
        ) {
            let found = scopes_around(&inner, 1024).find(|(scope, _)| *scope == outer);
            let found = found.map(|(_, rest)| rest);
            proptest::prop_assert_eq!(found, rest_inside(&inner, &outer));
            let mut near = scopes_around(&inner, outer.len());
            proptest::prop_assert_eq!(near.any(|(s, _)| s == outer), found.is_some());
            let scopes = Scopes::of([outer.as_str(), "c"]);
            proptest::prop_assert_eq!(scopes.has_around(&inner), found.is_some());
        }
    }

    #[test]
    fn scopes_are_hosts_and_repositories() {
        for scope in [
            "quay.io",
            "localhost",
            "localhost:5000",
            "registry.example.com:5000/team/app",
            "QUAY.io/team",
            "quay.io/a.b/c_d/e__f/g-h/i---j/0",
        ] {
            assert_eq!(check_source(scope), Ok(()), "{scope}");
            assert_eq!(check_mirror(scope), Ok(()), "{scope}");
        }
        assert_eq!(check_source("*.example.com"), Ok(()));
    }

    #[test]
    fn what_is_no_scope_says_why() {
        for (scope, word) in [
            ("", "is empty"),
            ("https://quay.io", "scheme"),
            ("quay.io/app@sha256:abc", "digest"),
            ("quay.io/app:latest", "tag"),
            ("quay.io/", "slash"),
            ("quay.io/*", "wildcard"),
            ("*", "wildcard"),
            ("a.*.io", "wildcard"),
            ("*.example.com/team", "nothing else"),
            ("*.example.com:5000", "nothing else"),
            ("*.*.com", "nothing else"),
            ("*.", "nothing else"),
            ("-a.io", "name of a host"),
            ("a..io", "name of a host"),
            ("a.io:", "name of a host"),
            ("a.io:x/b", "name of a host"),
            ("/a", "name of a host"),
            ("a.io/B", "no repository"),
            ("a.io/a//b", "no repository"),
            ("a.io/.a", "no repository"),
            ("a.io/a___b", "no repository"),
            ("a.io/a..b", "no repository"),
            (&format!("a.io/{}", "a".repeat(1024)), "longer than"),
        ] {
            let error = check_source(scope).expect_err(scope);
            assert!(error.contains(word), "{scope}: {error}");
        }
        assert!(check_mirror("*.example.com").expect_err("wildcard").contains("no wildcard"));
    }
}
