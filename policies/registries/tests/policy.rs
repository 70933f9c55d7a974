//! What the policy answers, case by case.

#![expect(clippy::unwrap_used, reason = "a helper of tests may panic: that is how they fail")]

use tread_guest_sdk::{Action, Change, Content, Effect, File, Policy, State, Verdict, test};
use tread_policy_registries::{Drain, Registries, Settings, ShortNames};

const MAIN: &str = "/etc/containers/registries.conf";

fn drop_in(name: &str) -> String {
    format!("/etc/containers/registries.conf.d/{name}")
}

fn reload() -> Vec<Action> {
    vec![Action::reload("crio.service")]
}

fn drain() -> Vec<Action> {
    vec![Action::Drain, Action::reload("crio.service")]
}

/// `location source [mirror[=pull]]…` per line, flags with a `!` in front.
fn conf(text: &str) -> String {
    let mut toml = String::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut words = line.split_whitespace();
        toml += &format!("[[registry]]\nprefix = {:?}\n", words.next().unwrap());
        let (flags, rest): (Vec<_>, Vec<_>) = words.partition(|word| word.starts_with('!'));
        let (location, mirrors) = rest.split_first().unwrap();
        toml += &format!("location = {location:?}\n");
        for flag in flags {
            toml += &format!("{} = true\n", flag.trim_start_matches('!'));
        }
        for mirror in mirrors {
            let (location, pull) = mirror.split_once('=').unwrap_or((mirror, "digest-only"));
            toml += &format!("[[registry.mirror]]\nlocation = {location:?}\n");
            toml += &format!("pull-from-mirror = {pull:?}\n");
        }
    }
    toml
}

#[test]
fn a_node_is_drained_only_if_a_pull_that_worked_may_suffer() {
    for (why, before, after, drains, says) in [
        (
            "a digest mirror is new",
            "",
            "quay.io/app quay.io/app m.io/app",
            false,
            "digests of quay.io/app are now looked up at m.io/app too",
        ),
        ("a digest mirror more", "a.io a.io m.io/x", "a.io a.io n.io/x m.io/x", false, "n.io/x"),
        (
            "digest mirrors change places",
            "a.io a.io m.io/x n.io/x",
            "a.io a.io n.io/x m.io/x",
            false,
            "same places",
        ),
        (
            "a tag mirror is new",
            "",
            "quay.io/app quay.io/app m.io/app=tag-only",
            true,
            "tags of quay.io/app are now looked up at m.io/app before quay.io/app",
        ),
        (
            "tag mirrors change places",
            "a.io a.io m.io/x=tag-only n.io/x=tag-only",
            "a.io a.io n.io/x=tag-only m.io/x=tag-only",
            true,
            "n.io/x before m.io/x",
        ),
        ("a mirror for all", "", "a.io a.io m.io/x=all", true, "tags of a.io"),
        (
            "a mirror for all becomes digest-only",
            "a.io a.io m.io/x=all",
            "a.io a.io m.io/x",
            true,
            "tags of a.io are no longer looked up at m.io/x",
        ),
        (
            "a mirror goes",
            "a.io a.io m.io/x",
            "a.io a.io",
            true,
            "digests of a.io are no longer looked up at m.io/x",
        ),
        ("the entry goes", "a.io a.io m.io/x", "", true, "no longer looked up at m.io/x"),
        ("an entry that says nothing goes", "a.io a.io", "", false, "as before"),
        (
            "a new scope is blocked",
            "",
            "a.io a.io !blocked",
            true,
            "tags of a.io can no longer be pulled",
        ),
        (
            "a scope is blocked",
            "a.io a.io m.io/x",
            "a.io a.io m.io/x !blocked",
            true,
            "tags of a.io can no longer be pulled",
        ),
        (
            "a mirror's registry is blocked",
            "a.io a.io m.io/x",
            "a.io a.io m.io/x\nm.io m.io !blocked",
            true,
            "digests of a.io are no longer looked up at m.io/x",
        ),
        (
            "a scope is unblocked",
            "a.io a.io !blocked",
            "a.io a.io",
            false,
            "tags of a.io can be pulled now",
        ),
        (
            "TLS is wanted now",
            "a.io a.io !insecure",
            "a.io a.io",
            true,
            "a.io must now have a valid certificate",
        ),
        ("TLS is not wanted any more", "a.io a.io", "a.io a.io !insecure", false, "same places"),
        (
            "a narrower entry hides a mirror",
            "a.io a.io m.io/x",
            "a.io a.io m.io/x\na.io/p a.io/p",
            true,
            "digests of a.io/p are no longer looked up at m.io/x/p",
        ),
        (
            "a narrower entry inherits it",
            "a.io a.io m.io/x",
            "a.io a.io m.io/x\na.io/p a.io/p m.io/x/p",
            false,
            "as before",
        ),
        (
            "the images of a wildcard are taken elsewhere",
            "",
            "*.a.io b.io",
            true,
            "tags of *.a.io are no longer looked up at *.a.io",
        ),
        ("images are taken elsewhere", "", "a.io/p b.io/p", true, "no longer looked up at a.io/p"),
    ] {
        let verdict = test::verdict::<Registries>(test::file(MAIN, &conf(before), &conf(after)));
        let expected = if drains { drain() } else { reload() };
        assert_eq!(verdict.actions(), expected, "{why}: {}", verdict.reason());
        assert!(verdict.reason().contains(says), "{why}: {}", verdict.reason());
    }
}

#[test]
fn short_names_count() {
    for (why, before, after, drains) in [
        (
            "a search registry is appended",
            "unqualified-search-registries = ['a.io', 'b.io']",
            "unqualified-search-registries = ['a.io', 'b.io', 'c.io']",
            false,
        ),
        (
            "one is appended to the only one, and CRI-O may pull no short name then",
            "unqualified-search-registries = ['a.io']",
            "unqualified-search-registries = ['a.io', 'b.io']",
            true,
        ),
        (
            "one is put in front",
            "unqualified-search-registries = ['a.io']",
            "unqualified-search-registries = ['b.io', 'a.io']",
            true,
        ),
        (
            "one goes",
            "unqualified-search-registries = ['a.io', 'b.io']",
            "unqualified-search-registries = ['a.io']",
            true,
        ),
        ("the list is no longer set", "unqualified-search-registries = ['a.io']", "", true),
        (
            "CRI-O does not take the mode from here",
            "unqualified-search-registries = ['a.io', 'b.io']",
            "unqualified-search-registries = ['a.io', 'b.io']\nshort-name-mode = 'enforcing'",
            false,
        ),
        (
            "so that a list that is swapped counts beside it too",
            "unqualified-search-registries = ['a.io', 'b.io']\nshort-name-mode = 'enforcing'",
            "unqualified-search-registries = ['b.io', 'a.io']\nshort-name-mode = 'enforcing'",
            true,
        ),
        (
            "and one that is cut",
            "unqualified-search-registries = ['a.io', 'b.io']\nshort-name-mode = 'enforcing'",
            "unqualified-search-registries = ['a.io']\nshort-name-mode = 'enforcing'",
            true,
        ),
        (
            "a registry without a dot is a part of a path of Docker's",
            "unqualified-search-registries = ['team']\n[[registry]]\nlocation = 'docker.io/team'",
            "unqualified-search-registries = ['team']\n[[registry]]\nlocation = 'docker.io/team'\nblocked = true",
            true,
        ),
        (
            "permissive is as disabled without a terminal",
            "short-name-mode = 'permissive'",
            "short-name-mode = 'disabled'",
            false,
        ),
        ("an alias changes", "[aliases]\nubi = 'a.io/ubi'", "[aliases]\nubi = 'b.io/ubi'", true),
        ("an alias goes", "[aliases]\nubi = 'a.io/ubi'", "", true),
        (
            "an alias is new for a name that was not found",
            "unqualified-search-registries = []",
            "unqualified-search-registries = []\n[aliases]\nubi = 'a.io/ubi'",
            false,
        ),
        (
            "an alias is new for a name that was found elsewhere",
            "unqualified-search-registries = ['a.io']",
            "unqualified-search-registries = ['a.io']\n[aliases]\nubi = 'b.io/ubi'",
            true,
        ),
        (
            "an alias says what the search said",
            "unqualified-search-registries = ['docker.io']",
            "unqualified-search-registries = ['docker.io']\n[aliases]\nalpine = 'docker.io/library/alpine'",
            false,
        ),
        (
            "an earlier registry is unblocked",
            "unqualified-search-registries = ['a.io', 'b.io']\n[[registry]]\nlocation = 'a.io'\nblocked = true",
            "unqualified-search-registries = ['a.io', 'b.io']\n[[registry]]\nlocation = 'a.io'",
            true,
        ),
        ("credential helpers change", "", "credential-helpers = ['pass']", true),
        (
            "credential helpers say the default",
            "",
            "credential-helpers = ['containers-auth.json']",
            false,
        ),
    ] {
        let verdict = test::verdict::<Registries>(test::file(MAIN, before, after));
        let expected = if drains { drain() } else { reload() };
        assert_eq!(verdict.actions(), expected, "{why}: {}", verdict.reason());
    }
}

/// What a change of the search list costs if CRI-O takes short names so, and why.
fn of_mode(short_names: ShortNames, before: &str, after: &str) -> (bool, String) {
    let settings = Settings { short_names, ..Settings::default() };
    let changes = vec![test::file(MAIN, before, after)];
    let verdict = test::verdicts::<Registries>(&settings, changes, vec![]).remove(0);
    (verdict.actions() == drain(), verdict.reason().to_string())
}

#[test]
fn with_several_search_registries_an_enforcing_crio_pulls_no_short_name() {
    use ShortNames::{Disabled, Enforcing, Unknown};
    let search = |list: &str| format!("unqualified-search-registries = [{list}]\n");
    let (one, two, swapped) =
        (search("'a.io'"), search("'a.io', 'b.io'"), search("'b.io', 'a.io'"));
    let ubi = "[aliases]\nubi = 'a.io/ubi'\n";
    let blocked = "[[registry]]\nlocation = 'a.io'\nblocked = true\n";
    let part = "[[registry]]\nlocation = 'a.io/team'\n";
    for (why, before, after, [unknown, enforcing, disabled]) in [
        ("one more than one", one.clone(), two.clone(), [true, true, false]),
        ("the same twice", one.clone(), search("'a.io', 'a.io'"), [true, true, false]),
        ("from none", search(""), two.clone(), [false, false, false]),
        ("one less", two.clone(), one.clone(), [true, false, true]),
        ("swapped", two.clone(), swapped.clone(), [true, false, true]),
        ("none left", two.clone(), search(""), [true, false, true]),
        ("another one", one.clone(), search("'b.io'"), [true, true, true]),
        ("an alias goes", two.clone() + ubi, two.clone(), [true, true, false]),
        ("an alias comes", two.clone(), two.clone() + ubi, [true, false, true]),
        ("an alias stays", one.clone() + ubi, two.clone() + ubi, [true, true, false]),
        (
            "only a part of a registry is there",
            one.clone() + blocked + part,
            two.clone() + blocked + part,
            [true, true, false],
        ),
        (
            "nothing of a registry is there",
            one.clone() + blocked,
            two.clone() + blocked,
            [false; 3],
        ),
        ("the first one is unblocked", two.clone() + blocked, two.clone(), [true, false, true]),
    ] {
        for (mode, drains) in [(Unknown, unknown), (Enforcing, enforcing), (Disabled, disabled)] {
            let (drained, reason) = of_mode(mode, &before, &after);
            assert_eq!(drained, drains, "{why}, {mode:?}: {reason}");
        }
    }
}

#[test]
fn the_reason_names_what_is_taken_as_given_of_short_names() {
    use ShortNames::{Disabled, Enforcing, Unknown};
    let search = |list: &str| format!("unqualified-search-registries = [{list}]\n");
    let (one, two, swapped) =
        (search("'a.io'"), search("'a.io', 'b.io'"), search("'b.io', 'a.io'"));
    for (mode, before, after, says) in [
        (
            Unknown,
            &one,
            &two,
            "default since 1.34, CRI-O pulls none of them (the setting short-names: unknown)",
        ),
        (
            Enforcing,
            &one,
            &two,
            "so that CRI-O pulls none of them (the setting short-names: enforcing)",
        ),
        (Disabled, &one, &two, "still can, if CRI-O asks all registries in turn that are searched"),
        (Disabled, &one, &two, "(the setting short-names: disabled); tags of short names are now"),
        (Enforcing, &two, &swapped, "as before, if CRI-O pulls no short name for which several"),
        (Enforcing, &two, &swapped, "(the setting short-names: enforcing)"),
    ] {
        let (_, reason) = of_mode(mode, before, after);
        assert!(reason.contains(says), "{mode:?}: {reason}");
    }
    // Where it does not matter it is not said.
    let longer = search("'a.io', 'b.io', 'c.io'");
    for mode in [Unknown, Enforcing, Disabled] {
        let (drained, reason) = of_mode(mode, &two, &longer);
        assert!(!drained && !reason.contains("short-names"), "{mode:?}: {reason}");
    }
}

fn settings(drain: Drain) -> Settings {
    Settings { drain, ..Settings::default() }
}

fn both(changes: Vec<Change>, unchanged: Vec<tread_guest_sdk::Entry>) -> Vec<Verdict> {
    test::verdicts::<Registries>(&Settings::default(), changes, unchanged)
}

#[test]
fn a_drop_in_is_seen_with_the_files_that_did_not_change() {
    let main = conf("a.io a.io m.io/x");
    let hides = conf("a.io a.io");
    let adds = conf("a.io a.io n.io/x m.io/x");
    let unchanged = || vec![test::unchanged_file(MAIN, &main)];
    for (text, actions) in [(&hides, drain()), (&adds, reload())] {
        let verdicts = both(vec![test::file_added(&drop_in("50-a.conf"), text)], unchanged());
        assert_eq!(verdicts[0].actions(), actions, "{}", verdicts[0].reason());
    }
    // A later drop-in decides.
    let mut files = unchanged();
    files.push(test::unchanged_file(&drop_in("90-last.conf"), &main));
    let verdicts = both(vec![test::file_added(&drop_in("50-a.conf"), &hides)], files);
    assert_eq!(verdicts[0].actions(), reload(), "{}", verdicts[0].reason());
}

#[test]
fn an_entry_that_moves_between_files_changes_nothing() {
    let entry = conf("a.io a.io m.io/x");
    let verdicts = both(
        vec![test::file(MAIN, &entry, ""), test::file_added(&drop_in("a.conf"), &entry)],
        vec![],
    );
    assert_eq!(verdicts.len(), 2);
    for verdict in verdicts {
        assert_eq!(verdict.actions(), reload());
        assert!(verdict.reason().contains("as before"), "{}", verdict.reason());
    }
}

#[test]
fn a_broken_file_that_did_not_change_is_refused_by_its_name() {
    let verdicts = both(
        vec![test::file(MAIN, "", &conf("a.io a.io"))],
        vec![test::unchanged_file(&drop_in("broken.conf"), "x")],
    );
    assert_eq!(verdicts[0].effect(), Some(Effect::Refuse));
    assert!(verdicts[0].reason().starts_with(&drop_in("broken.conf")), "{}", verdicts[0].reason());
}

#[test]
fn a_broken_file_that_is_mended_is_drained_for_since_nobody_knows_what_crio_has_loaded() {
    let verdict = test::verdict::<Registries>(test::file(MAIN, "x", ""));
    assert_eq!(verdict.actions(), drain());
    assert!(verdict.reason().contains("not known"), "{}", verdict.reason());
}

#[test]
fn a_side_without_the_file_has_the_one_of_the_system() {
    let base = "unqualified-search-registries = ['registry.access.redhat.com', 'docker.io']";
    for change in [test::file_added(MAIN, base), test::file_removed(MAIN, base)] {
        let verdict = test::verdict::<Registries>(change);
        assert_eq!(verdict.actions(), reload(), "{}", verdict.reason());
    }
    // An empty file is not none: short names are not found any more.
    assert_eq!(test::verdict::<Registries>(test::file_added(MAIN, "")).actions(), drain());
}

fn secret(path: &str, before: &str, after: &str) -> Change {
    let side = |digest: &str| {
        State::File(File {
            content: Content::Digest(digest.to_string()),
            mode: 0o600,
            user: "root".to_string(),
            group: "root".to_string(),
        })
    };
    Change { id: format!("file:{path}"), before: side(before), after: side(after) }
}

#[test]
fn a_file_that_cannot_be_read_is_drained_for() {
    let verdict = test::verdict::<Registries>(secret(MAIN, "sha256:1", "sha256:2"));
    assert_eq!(verdict.actions(), drain());
    assert!(verdict.reason().contains("cannot be read here"), "{}", verdict.reason());
}

#[test]
fn the_setting_overrules_the_need_to_drain_but_not_the_refusal() {
    let harmless = || vec![test::file(MAIN, "", "# new\n")];
    let harmful = || vec![test::file(MAIN, "", &conf("a.io a.io !blocked"))];
    let broken = || vec![test::file(MAIN, "", "x")];
    for (drain_when, first, second) in [
        (Drain::WhenNeeded, reload(), drain()),
        (Drain::Always, drain(), drain()),
        (Drain::Never, reload(), reload()),
    ] {
        let settings = settings(drain_when);
        let of = |changes| test::verdicts::<Registries>(&settings, changes, vec![]).remove(0);
        assert_eq!(of(harmless()).actions(), first);
        assert_eq!(of(harmful()).actions(), second);
        assert_eq!(of(broken()).effect(), Some(Effect::Refuse));
    }
    let never = test::verdicts::<Registries>(&settings(Drain::Never), harmful(), vec![]).remove(0);
    assert!(never.reason().contains("drain: never"), "{}", never.reason());
}

#[test]
fn settings_are_written_as_admins_write_them() {
    for (json, drain) in [
        ("{}", Drain::WhenNeeded),
        ("{\"drain\":\"always\"}", Drain::Always),
        ("{\"drain\":\"never\"}", Drain::Never),
    ] {
        assert_eq!(test::settings::<Registries>(json).unwrap().drain, drain);
    }
    assert!(test::settings::<Registries>("{\"drain\":\"sometimes\"}").is_err());
    for (json, short_names) in [
        ("{}", ShortNames::Unknown),
        ("{\"short-names\":\"enforcing\"}", ShortNames::Enforcing),
        ("{\"short-names\":\"disabled\"}", ShortNames::Disabled),
    ] {
        assert_eq!(test::settings::<Registries>(json).unwrap().short_names, short_names);
    }
    assert!(test::settings::<Registries>("{\"short-names\":\"permissive\"}").is_err());
    let schema: serde_json::Value = serde_json::from_str(&Registries::schema().unwrap()).unwrap();
    assert_eq!(schema["properties"]["drain"]["default"], "when-needed");
    assert_eq!(schema["properties"]["short-names"]["default"], "unknown");
}

#[test]
fn signature_policies_keys_and_stores_reload() {
    let fine = r#"{"default":[{"type":"insecureAcceptAnything"}]}"#;
    for (path, text, effect) in [
        ("/etc/containers/policy.json", fine, Effect::Reload),
        ("/etc/containers/policy.json", "{}", Effect::Refuse),
        ("/etc/containers/policy.json", "not json", Effect::Refuse),
        ("/etc/crio/policies/ns.json", fine, Effect::Reload),
        ("/etc/crio/policies/ns.json", "{", Effect::Refuse),
        ("/etc/containers/registries.d/a.yaml", "docker: {}", Effect::Reload),
        ("/etc/containers/registries.d/a.yml", "docker: {}", Effect::None),
        ("/etc/containers/registries.d/more/a.yaml", "docker: {}", Effect::None),
        ("/etc/machine-config-daemon/no-reboot/containers-gpg.pub", "key", Effect::Reload),
    ] {
        let verdict = test::verdict::<Registries>(test::file(path, "old", text));
        assert_eq!(verdict.effect(), Some(effect), "{path} {text}: {}", verdict.reason());
        if effect != Effect::Refuse {
            let removed = test::verdict::<Registries>(test::file_removed(path, text));
            assert_eq!(removed.effect(), Some(effect), "{path}");
        }
    }
    let hidden = secret("/etc/containers/policy.json", "sha256:1", "sha256:2");
    assert_eq!(test::verdict::<Registries>(hidden).effect(), Some(Effect::Reload));
}

#[test]
fn reasons_stay_short_whatever_the_names() {
    let name = "x".repeat(100);
    let (before, after) = (
        conf(&format!("{name}.io/{name} {name}.io/{name} m.io/{name}=all")),
        conf(&format!("{name}.io/{name} {name}.io/{name} n.io/{name}=all m.io/{name}=all")),
    );
    let verdict = test::verdict::<Registries>(test::file(MAIN, &before, &after));
    assert_eq!(verdict.actions(), drain());
}

/// A mirror for each of many repositories, as large clusters have them.
#[test]
fn a_thousand_entries_are_compared() {
    let line =
        |n: usize| format!("quay.io/org{n}/app quay.io/org{n}/app m.io/org{n}/app n.io/{n}\n");
    let all: String = (0..1000).map(line).collect();
    let more = all.clone() + "quay.io/new quay.io/new m.io/new";
    let grown = test::verdict::<Registries>(test::file(MAIN, &conf(&all), &conf(&more)));
    assert_eq!(grown.actions(), reload(), "{}", grown.reason());
    let shrunk = test::verdict::<Registries>(test::file(MAIN, &conf(&more), &conf(&all)));
    assert_eq!(shrunk.actions(), drain());
}
