//! Why a node is drained, or not, in words.

use tread_guest_sdk::{Action, test};
use tread_policy_registries::{Registries, Settings, ShortNames};

/// Whether the node is drained, and why.
fn judged(before: &str, after: &str, settings: Settings) -> (bool, String) {
    let change = test::file("/etc/containers/registries.conf", before, after);
    let verdict = test::verdicts::<Registries>(&settings, vec![change], vec![]).remove(0);
    (verdict.actions().contains(&Action::Drain), verdict.reason().to_string())
}

/// An entry for a.io with these lines, and with mirrors of these.
fn entry(lines: &str, mirrors: &[&str]) -> String {
    let mut text = format!("[[registry]]\nlocation = 'a.io'\n{lines}\n");
    for mirror in mirrors {
        text += &format!("[[registry.mirror]]\n{mirror}\n");
    }
    text
}

#[test]
fn a_host_that_is_blocked_is_no_fault_of_its_name() {
    for wildcard in ["", "[[registry]]\nprefix = '*.a.io'\nblocked = true\n"] {
        let (drains, reason) =
            judged("", &(entry("blocked = true", &[]) + wildcard), Settings::default());
        assert!(drains && reason.contains("can no longer be pulled;"), "{reason}");
    }
}

#[test]
fn a_mirror_that_is_a_proxy_is_told_apart_from_itself() {
    let (plain, b) = ("location = 'm.io/x'", "location = 'm.io/x'\nnamespace-proxy = 'b.io'");
    let c = "location = 'm.io/x'\nnamespace-proxy = 'c.io'";
    let digests = "mirror-by-digest-only = true";
    for (lines, before, after, drains, says) in [
        ("", vec![plain], vec![b, plain], true, "at m.io/x as a proxy of b.io before m.io/x;"),
        ("", vec![b], vec![plain, b], true, "at m.io/x before m.io/x as a proxy of b.io;"),
        ("", vec![plain], vec![b], true, "at m.io/x as a proxy of b.io in place of m.io/x;"),
        ("", vec![b], vec![], true, "no longer looked up at m.io/x as a proxy of b.io;"),
        (
            digests,
            vec![b],
            vec![c],
            true,
            "at m.io/x as a proxy of c.io in place of m.io/x as a proxy of b.io;",
        ),
        (digests, vec![plain], vec![plain, b], false, "at m.io/x as a proxy of b.io too"),
    ] {
        let (drained, reason) =
            judged(&entry(lines, &before), &entry(lines, &after), Settings::default());
        assert_eq!(drained, drains, "{reason}");
        assert!(
            reason.replace(" more scope changes", "").contains(says.trim_end_matches(';')),
            "{reason}"
        );
    }
}

#[test]
fn names_that_become_too_long_are_told_by_their_length() {
    let location = |length: usize| format!("m.io/{}", "k".repeat(length - 5));
    let with = |longest_name| Settings { longest_name, ..Settings::default() };
    let digests = "prefix = 'a.io/team'\nmirror-by-digest-only = true";
    for (length, longest, says) in [
        (136, 128, None),
        (137, 128, Some("names have more than 127 characters: behind m.io/kk")),
        (200, 128, Some("names have more than 64 characters")),
        (64, 200, None),
        (65, 200, Some("names have more than 199 characters")),
        (9, 255, None),
        (10, 255, Some("names have more than 254 characters")),
        (60, 150, None),
    ] {
        let mirror = format!("location = {:?}", location(length));
        let (drains, reason) =
            judged(&entry(digests, &[]), &entry(digests, &[&mirror]), with(longest));
        assert_eq!(drains, says.is_some(), "{length} {longest}: {reason}");
        assert!(reason.contains(says.unwrap_or_default()), "{length} {longest}: {reason}");
        // Longer and longer: between the two there are names that worked.
        let (one, two) = (format!("location = {:?}", location(150)), mirror);
        let (drains, reason) =
            judged(&entry(digests, &[&one]), &entry(digests, &[&one, &two]), with(longest));
        let expected = length > 150;
        assert_eq!(drains, expected, "{length} {longest}: {reason}");
    }
    let search = |registries: &str| format!("unqualified-search-registries = [{registries}]\n");
    let long = format!("s.{}", "l".repeat(200));
    let asks_all = Settings { short_names: ShortNames::Disabled, ..Settings::default() };
    let (drains, reason) =
        judged(&search("'a.io'"), &search(&format!("'a.io', '{long}'")), asks_all);
    assert!(drains, "{reason}");
    assert!(reason.contains("short names can no longer be pulled where names have"), "{reason}");
}

#[test]
fn a_policy_of_a_namespace_says_that_containers_that_restart_follow_it() {
    for (path, says) in [
        ("/etc/crio/policies/team.json", "also in pods that run and of images that are here"),
        ("/etc/containers/policy.json", "new pulls follow the new rules"),
    ] {
        let rejects = r#"{"default": [{"type": "reject"}]}"#;
        let change =
            test::file(path, r#"{"default": [{"type": "insecureAcceptAnything"}]}"#, rejects);
        let verdict = test::verdicts::<Registries>(&Settings::default(), vec![change], vec![]);
        assert_eq!(verdict[0].actions(), [Action::reload("crio.service")]);
        assert!(verdict[0].reason().contains(says), "{}", verdict[0].reason());
    }
}
