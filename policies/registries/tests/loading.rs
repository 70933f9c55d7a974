//! Which files the container runtime loads, and which it does not.

use tread_guest_sdk::{Action, Effect, test};
use tread_policy_registries::{Registries, Settings};

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
            "differ in insecure or blocked",
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
        ("unqualified-search-registries = ['[fd00::1]:5000']", "an IPv6 address is none"),
        ("[registries.search]\nregistries = ['a.io']", "version 1 of the format"),
        (
            "[registries.search]\nregistries = []\n[[registry]]\nlocation = 'a.io'",
            "version 1 of the format",
        ),
        ("[registries]\nsearch = ['a.io']", "must be a table"),
        ("[[registry]]\nlocation = 'a.io'\nnamespace-proxy = 1", "must be a text"),
        (
            "[[registry]]\nlocation = 'a.io'\n[[registry.mirror]]\nlocation = 'b.io'\nnamespace-proxy = []",
            "must be a text",
        ),
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
        "[aliases]\n'x/y' = ''",
        "[aliases]\n'a.b_c/d' = 'a.io/d'",
        // No release knows this key.
        "[[registry]]\nlocation = 'a.io'\nproxy = 1",
        // Two prefixes of one location may be asked for different registries.
        "[[registry]]\nlocation = 'a.io'\n[[registry]]\nprefix = 'b.io'\nlocation = 'a.io'\nnamespace-proxy = 'b.io'",
    ] {
        let verdict = test::verdict::<Registries>(test::file(MAIN, "", after));
        assert_ne!(verdict.effect(), Some(Effect::Refuse), "{after}: {}", verdict.reason());
    }
}

/// Releases before 5.41 of the runtime's library load it, later ones do not.
#[test]
fn version_1_of_the_format_is_read_where_it_is_and_refused_where_it_is_to_come() {
    let one = "[registries.search]\nregistries = ['a.io']\n[registries.insecure]\nregistries = ['b.io']\n[registries.block]\nregistries = ['c.io']";
    let two = "unqualified-search-registries = ['a.io']\n[[registry]]\nlocation = 'b.io'\ninsecure = true\n[[registry]]\nlocation = 'c.io'\nblocked = true";
    let drop_in = "/etc/containers/registries.conf.d/a.conf";
    let verdict = test::verdict::<Registries>(test::file(MAIN, one, two));
    assert_eq!(verdict.actions(), [Action::reload("crio.service")], "{}", verdict.reason());
    let fewer = test::file(MAIN, one, "unqualified-search-registries = ['a.io']");
    assert!(test::verdict::<Registries>(fewer).actions().contains(&Action::Drain));
    for change in [test::file(MAIN, two, one), test::file_added(drop_in, one)] {
        let verdict = test::verdict::<Registries>(change);
        assert_eq!(verdict.effect(), Some(Effect::Refuse));
        assert!(verdict.reason().contains("write it in version 2"), "{}", verdict.reason());
    }
    // The main file counts where only a drop-in changes.
    let unchanged = vec![test::unchanged_file(MAIN, one)];
    let changes = vec![test::file_added(drop_in, two)];
    let verdicts = test::verdicts::<Registries>(&Settings::default(), changes, unchanged);
    assert_eq!(verdicts[0].effect(), Some(Effect::Refuse));
    assert!(verdicts[0].reason().starts_with(MAIN), "{}", verdicts[0].reason());
}

/// The runtime makes no name of it, and asks nobody else.
#[test]
fn a_mirror_at_an_ipv6_address_fails_every_pull_that_reaches_it() {
    let conf = |pull: &str| {
        format!(
            "[[registry]]\nlocation = 'a.io'\n[[registry.mirror]]\nlocation = '[fd00::1]:5000'\npull-from-mirror = '{pull}'"
        )
    };
    for (pull, what) in [("digest-only", "digests of a.io"), ("tag-only", "tags of a.io")] {
        let verdict = test::verdict::<Registries>(test::file(MAIN, "", &conf(pull)));
        assert_eq!(verdict.actions(), [Action::Drain, Action::reload("crio.service")]);
        let reason = verdict.reason();
        assert!(reason.contains(&format!("{what} can no longer be pulled")), "{reason}");
        let verdict = test::verdict::<Registries>(test::file(MAIN, &conf(pull), ""));
        assert_eq!(verdict.actions(), [Action::reload("crio.service")], "{}", verdict.reason());
    }
}

/// Newer releases ask a mirror for the images of the registry that it names.
#[test]
fn another_namespace_proxy_is_another_place() {
    let conf = |namespace: &str| {
        format!(
            "[[registry]]\nlocation = 'a.io'\n[[registry.mirror]]\nlocation = 'm.io'\nnamespace-proxy = '{namespace}'"
        )
    };
    let verdict = test::verdict::<Registries>(test::file(MAIN, &conf("a.io"), &conf("b.io")));
    assert!(verdict.actions().contains(&Action::Drain), "{}", verdict.reason());
    let verdict = test::verdict::<Registries>(test::file(MAIN, &conf("a.io"), &conf("a.io")));
    assert_eq!(verdict.actions(), [Action::reload("crio.service")]);
}
