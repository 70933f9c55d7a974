//! Which files the container runtime loads, and which it does not.

use tread_guest_sdk::{Action, Effect, test};
use tread_policy_registries::Registries;

const MAIN: &str = "/etc/containers/registries.conf";

/// What the runtime does not load is refused, with the place and the reason.
#[test]
fn what_crio_would_not_load_is_refused() {
    for (after, says) in [
        ("[[registry]]\nlocation = 'a.io'\n[", "line 3"),
        ("a = 1\na = 2", "line 2: this key is defined twice"),
        ("[[registry]]", "[[registry]] number 1: it has no location"),
        (
            "[[registry]]\nlocation='a.io'\n[[registry]]\nprefix = 'a.io/b'",
            "number 2: it has no location",
        ),
        ("[[registry]]\nlocation = 'https://a.io'", "without http:// or https://"),
        ("[[registry]]\nlocation = 'a.io'\nprefix = 'http://a.io'", "without http:// or https://"),
        (
            "[[registry]]\nlocation = 'a.io'\n[[registry.mirror]]\ninsecure = true",
            "mirrors has no location",
        ),
        (
            "[[registry]]\nlocation = 'a.io'\n[[registry.mirror]]\nlocation = 'http://b.io'",
            "without http://",
        ),
        (
            "[[registry]]\nlocation = 'a.io'\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = 'b.io'\npull-from-mirror = 'all'",
            "cannot have pull-from-mirror",
        ),
        (
            "[[registry]]\nlocation = 'a.io'\n[[registry.mirror]]\nlocation = 'b.io'\npull-from-mirror = 'never'",
            "must be all, digest-only or tag-only",
        ),
        (
            "[[registry]]\nlocation = 'a.io'\npull-from-mirror = 'all'",
            "not for the registry itself",
        ),
        (
            "[[registry]]\nlocation = 'a.io'\ninsecure = true\n[[registry]]\nlocation = 'a.io'\nprefix = 'b.io'",
            "differ in insecure",
        ),
        (
            "[[registry]]\nlocation = 'a.io'\nblocked = true\n[[registry]]\nlocation = 'a.io'\nprefix = 'b.io'",
            "differ in insecure, blocked",
        ),
        ("[[registry]]\nprefix = '*.a.io/b'\nlocation = 'a.io'", "after the *. of a prefix"),
        ("[[registry]]\nprefix = '*.a.io:5000'", "after the *. of a prefix"),
        ("[[registry]]\nlocation = 'a.io'\nblocked = 'yes'", "must be true or false"),
        ("[[registry]]\nlocation = 1", "must be a text"),
        ("[registry]\nlocation = 'a.io'", "double brackets"),
        ("registry = ['a.io']", "is no table"),
        ("unqualified-search-registries = 'a.io'", "must be a list"),
        ("unqualified-search-registries = ['a.io', 1]", "list of texts"),
        ("unqualified-search-registries = ['a.io/b']", "no HOST[:PORT]"),
        ("unqualified-search-registries = ['']", "no HOST[:PORT]"),
        ("unqualified-search-registries = ['https://a.io']", "without http://"),
        ("short-name-mode = 'sometimes'", "short-name-mode must be"),
        ("[aliases]\n'a.io/b' = 'a.io/b'", "must be a short name"),
        ("[aliases]\nb = 'b'", "REGISTRY/PATH"),
        ("[aliases]\nb = 'a.io/b:latest'", "REGISTRY/PATH"),
        (
            "[registries.search]\nregistries = ['a.io']\n[[registry]]\nlocation = 'a.io'",
            "it mixes version 1",
        ),
        ("[registries]\nsearch = ['a.io']", "must be a table"),
        ("[[registry]]\nlocation = 'a.io'\nproxy = 'ftp://x'", "a proxy is a URL"),
        ("x = 1e999", "line 1: a number is too large"),
        ("x = [-1.8e308]", "a number is too large"),
        ("[[registry]]\nlocation = 'a.io'\n\"bloc\u{212a}ed\" = 1", "must be true or false"),
        ("[[registry]]\nlocation = 'a.io'\n\"in\u{17f}ecure\" = 1", "must be true or false"),
        ("\"\u{17f}hort-name-mode\" = 'sometimes'", "short-name-mode must be"),
        ("[[registry]]\nlocation = 'a.io'\nLocation = 'b.io'", "twice, in upper and lower case"),
        ("[aliases]\n[Aliases]", "twice, in upper and lower case"),
    ] {
        let verdict = test::verdict::<Registries>(test::file(MAIN, "", after));
        assert_eq!(verdict.effect(), Some(Effect::Refuse), "{after}");
        assert!(verdict.reason().contains(says), "{after}: {}", verdict.reason());
        assert!(verdict.reason().starts_with(MAIN), "{}", verdict.reason());
        // The same when it was broken before.
        let verdict = test::verdict::<Registries>(test::file(MAIN, "[", after));
        assert_eq!(verdict.effect(), Some(Effect::Refuse), "{after}");
    }
}

#[test]
fn what_crio_does_load_is_not_refused() {
    for after in [
        "",
        "unknown = 1\n[unknown-table]\nx = 1979-05-27",
        "[[Registry]]\nLOCATION = 'a.io/'\nBlocked = false",
        "[[registry]]\nprefix = '*.a.io'",
        "[[registry]]\nprefix = '*.a.io'\nlocation = 'b.io'",
        "[[registry]]\nlocation = 'a.io'\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = 'b.io'",
        "[[registry]]\nlocation = 'a.io'\n[[registry]]\nlocation = 'a.io'",
        "registry = [{ location = 'a.io' }]",
        "[registries]\n[[registry]]\nlocation = 'a.io'",
        "[registries.search]\nregistries = ['a.io']\n[registries.block]\nregistries = ['b.io']",
        "[aliases]\n'x/y' = ''",
    ] {
        let verdict = test::verdict::<Registries>(test::file(MAIN, "", after));
        assert_ne!(verdict.effect(), Some(Effect::Refuse), "{after}: {}", verdict.reason());
    }
}

#[test]
fn version_1_of_the_format_says_the_same_as_version_2() {
    let one = "[registries.search]\nregistries = ['a.io']\n[registries.insecure]\nregistries = ['b.io']\n[registries.block]\nregistries = ['c.io']";
    let two = "unqualified-search-registries = ['a.io']\n[[registry]]\nlocation = 'b.io'\ninsecure = true\n[[registry]]\nlocation = 'c.io'\nblocked = true";
    let verdict = test::verdict::<Registries>(test::file(MAIN, one, two));
    assert_eq!(verdict.actions(), [Action::reload("crio.service")], "{}", verdict.reason());
    let verdict = test::verdict::<Registries>(test::file_added(
        "/etc/containers/registries.conf.d/a.conf",
        one,
    ));
    assert_eq!(verdict.effect(), Some(Effect::Refuse));
}
