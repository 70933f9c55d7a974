//! registries.d: which files the container runtime loads, all together.

use tread_guest_sdk::{Action, Change, Content, Effect, Entry, State, Verdict, test};
use tread_policy_registries::{Registries, Settings};

fn path(name: &str) -> String {
    format!("/etc/containers/registries.d/{name}")
}

fn added(name: &str, text: &str) -> Change {
    test::file_added(&path(name), text)
}

fn verdicts(changes: Vec<Change>, unchanged: Vec<Entry>) -> Vec<Verdict> {
    test::verdicts::<Registries>(&Settings::default(), changes, unchanged)
}

#[test]
fn a_file_that_crio_does_not_load_is_refused() {
    for (text, says) in [
        ("docker:\n\ta.io: {}", "line 2 is not plain YAML: a tab"),
        ("docker:\n  a.io:\n lookaside: https://a.io", "line 3 is not plain YAML"),
        ("docker: {\n", "line 1 is not plain YAML"),
        ("text", "line 1 is not plain YAML"),
        ("- docker", "line 1 is not plain YAML: the whole is no mapping"),
        ("default-docker: &a {}", "line 1 is not plain YAML: a value that"),
        ("docker:\n  a.io: {}\n  a.io: {}", "line 3 is not plain YAML: this key is there twice"),
        ("docker: {}\ndocker: {}", "line 2 is not plain YAML: this key is there twice"),
        ("docker: [a.io]", "docker is no mapping"),
        ("docker: a.io", "docker is no mapping"),
        ("default-docker: https://a.io", "default-docker is no mapping"),
        ("docker: {a.io: https://a.io}", "namespace a.io: it is no mapping"),
        ("docker: {a.io: {lookaside: [x]}}", "namespace a.io: lookaside is no URL"),
        ("docker: {a.io: {sigstore: /var/lib/x}}", "namespace a.io: sigstore is no URL"),
        ("default-docker: {lookaside: 'https://[::1'}", "default-docker: lookaside is no URL"),
        ("default-docker: {lookaside-staging: {}}", "lookaside-staging is no text"),
        ("docker: {a.io: {use-sigstore-attachments: 1}}", "neither true nor false"),
        ("\u{feff}docker: {}", "line 1 is not plain YAML: a character"),
    ] {
        let verdict = &verdicts(vec![added("a.yaml", text)], vec![])[0];
        assert_eq!(verdict.effect(), Some(Effect::Refuse), "{text}: {}", verdict.reason());
        let reason = verdict.reason();
        assert!(reason.starts_with(&path("a.yaml")) && reason.contains(says), "{text}: {reason}");
    }
}

#[test]
fn a_file_below_a_directory_that_is_read_as_a_file_is_refused() {
    let secret = || {
        let mut change = added("a.yaml/b/x", "");
        let State::File(file) = &mut change.after else { panic!("no file") };
        file.content = Content::Digest("secret:1".to_string());
        change
    };
    for change in
        [added("foo.yaml/x", ""), added(".yaml/x", ""), added("a.yaml/b.yaml", ""), secret()]
    {
        let path = change.path().unwrap().to_string();
        let verdict = &verdicts(vec![change], vec![])[0];
        assert_eq!(verdict.effect(), Some(Effect::Refuse), "{path}: {}", verdict.reason());
        let reason = verdict.reason();
        assert!(
            reason.starts_with(&path) && reason.contains(".yaml becomes a directory"),
            "{reason}"
        );
    }
    // Also where it is there already, and something else changes.
    let there = test::unchanged_file(&path("foo.yaml/x"), "");
    let verdict = &verdicts(vec![added("b.yaml", "docker: {}")], vec![there])[0];
    assert_eq!(verdict.effect(), Some(Effect::Refuse));
    assert!(verdict.reason().starts_with(&path("foo.yaml/x")), "{}", verdict.reason());
    // One that goes breaks nothing, and directories with other names are passed over.
    let verdict = &verdicts(vec![test::file_removed(&path("foo.yaml/x"), "")], vec![])[0];
    assert_eq!(verdict.effect(), Some(Effect::Reload), "{}", verdict.reason());
    for name in ["team/x.yaml", "foo.yaml.d/x", "foo/bar.yaml/x"] {
        assert_eq!(
            verdicts(vec![added(name, "")], vec![])[0].effect(),
            Some(Effect::None),
            "{name}"
        );
    }
}

#[test]
fn a_directory_in_place_of_a_namespaces_signature_policy_is_refused() {
    for (name, expected) in
        [("a.json/x", Effect::Refuse), ("a.json/b/x", Effect::Refuse), ("keys/x", Effect::Reload)]
    {
        let path = format!("/etc/crio/policies/{name}");
        let verdict = &verdicts(vec![test::file_added(&path, "")], vec![])[0];
        assert_eq!(verdict.effect(), Some(expected), "{name}: {}", verdict.reason());
        let verdict = &verdicts(vec![test::file_removed(&path, "")], vec![])[0];
        assert_eq!(verdict.effect(), Some(Effect::Reload), "{name}: {}", verdict.reason());
    }
}

#[test]
fn a_file_that_crio_does_load_is_reloaded() {
    for (name, text) in [
        ("a.yaml", ""),
        ("a.yaml", "# nothing\n"),
        ("a.yaml", "# first\n---\ndocker:\n"),
        ("a.yaml", "default-docker:\n#  lookaside: file:///var\n"),
        (
            "registry.redhat.io.yaml",
            "docker:\n     registry.redhat.io:\n         sigstore: https://registry.redhat.io/containers/sigstore\n",
        ),
        (
            "a.yaml",
            "docker:\n  a.io:5000/team: {use-sigstore-attachments: yes}\n  10.0.0.1:5000:\n  10.0.0.2: {}\n",
        ),
        ("a.yaml", "docker: {localhost:5000: {lookaside: http://localhost:8080/x}}"),
        ("default.yaml", "other: [1, {a: b}]\ndefault-docker: {lookaside-staging: 1, unknown: {}}"),
        ("a.yaml", "{\"docker\": {\"a.io\": {\"use-sigstore-attachments\": true}}}"),
    ] {
        let verdict = &verdicts(vec![added(name, text)], vec![])[0];
        let reload = [Action::reload("crio.service")];
        assert_eq!(verdict.actions(), reload, "{text}: {}", verdict.reason());
    }
}

/// With one namespace in two files every pull of the node fails.
#[test]
fn all_files_count_together() {
    let a = "docker:\n  a.io: {use-sigstore-attachments: true}\n";
    let default = "default-docker: {lookaside: https://a.io}\n";
    // In place of what the operating system comes with.
    let replaced = || test::unchanged_file(&path("default.yaml"), "docker: {}");
    for (one, two, says) in [
        (a, a, Some("b.yaml: it has the namespace a.io, and so does a.yaml")),
        (a, "docker: {\"a.io\": }", Some("not plain YAML")),
        (a, "docker:\n  a.io:\n", Some("the namespace a.io")),
        (default, default, Some("b.yaml: it sets default-docker, and so does a.yaml")),
        (default, "default-docker: {}", Some("default-docker")),
        (default, "default-docker:\n", None),
        (a, default, None),
        (a, "docker:\n  a.io/b: {}\n", None),
    ] {
        let unchanged = vec![test::unchanged_file(&path("b.yaml"), two), replaced()];
        for (changes, unchanged) in [
            (vec![added("a.yaml", one), added("b.yaml", two)], vec![replaced()]),
            (vec![added("a.yaml", one)], unchanged),
        ] {
            for verdict in verdicts(changes, unchanged) {
                let refused = verdict.effect() == Some(Effect::Refuse);
                assert_eq!(refused, says.is_some(), "{one}{two}{}", verdict.reason());
                assert!(
                    verdict.reason().contains(says.unwrap_or_default()),
                    "{}",
                    verdict.reason()
                );
            }
        }
        // What goes in the same change says nothing any more.
        let moved = vec![test::file_removed(&path("a.yaml"), one), added("c.yaml", one)];
        for verdict in verdicts(moved, vec![replaced()]) {
            assert_eq!(verdict.actions(), [Action::reload("crio.service")]);
        }
    }
}

/// RHCOS comes with three files, which stay beside those of the config.
#[test]
fn the_files_of_the_operating_system_count_too() {
    let default = "default-docker: {lookaside: https://a.io}\n";
    let redhat = "docker: {registry.redhat.io: {use-sigstore-attachments: true}}\n";
    let access = "docker: {registry.access.redhat.com: {use-sigstore-attachments: true}}\n";
    for (text, delivered, says) in [
        (default, "default.yaml", "default-docker, and so does default.yaml"),
        (redhat, "registry.redhat.io.yaml", "registry.redhat.io, and so does registry.redhat.io"),
        (access, "registry.access.redhat.com.yaml", "and so does registry.access.redhat.com.yaml"),
    ] {
        let is_refused = |changes, unchanged| {
            let verdicts = verdicts(changes, unchanged);
            let refused = verdicts.iter().all(|it| it.effect() == Some(Effect::Refuse));
            let is_explained = verdicts.iter().all(|verdict| {
                let reason = verdict.reason();
                reason.contains(says)
                    && reason.contains("taken to be there, since RHCOS comes with it")
                    && reason.contains("a file of that name replaces it")
            });
            assert!(is_explained || !refused, "{text}: {}", verdicts[0].reason());
            refused
        };
        assert!(is_refused(vec![added("a.yaml", text)], vec![]), "{text}");
        assert!(!is_refused(vec![added(delivered, text)], vec![]), "{text}");
        let replaced = || test::unchanged_file(&path(delivered), "docker: {a.io: {}}");
        assert!(!is_refused(vec![added("a.yaml", text)], vec![replaced()]), "{text}");
        // What replaced it goes: it is there again.
        let gone = test::file_removed(&path(delivered), "docker: {a.io: {}}");
        assert!(
            is_refused(vec![gone], vec![test::unchanged_file(&path("a.yaml"), text)]),
            "{text}"
        );
        let below = added("b.yaml", "docker: {registry.redhat.io/ubi9: {}}\n");
        assert!(!is_refused(vec![below], vec![]));
    }
}

#[test]
fn what_is_not_read_there_is_not_refused() {
    for name in ["a.yml", "README", "more/a.yaml", "a.yaml.bak"] {
        let verdict = &verdicts(vec![added(name, "[")], vec![])[0];
        assert_eq!(verdict.effect(), Some(Effect::None), "{name}");
    }
    let both = verdicts(vec![added("a.yaml", "docker: {}"), added("a.yml", "[")], vec![]);
    assert_eq!(both[0].actions(), [Action::reload("crio.service")]);
    assert_eq!(both[1].actions(), []);
}
