//! certs.d: what the runtime's library reads of it, and what pulls come to.

use tread_guest_sdk::{Change, Content, Effect, Entry, State, Verdict, test};
use tread_policy_certificates::Certificates;

const HERE: &str = "/etc/containers/certs.d/r.example:5000";
const THERE: &str = "/etc/docker/certs.d/r.example:5000";
const A: &str = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n";
const B: &str = "-----BEGIN CERTIFICATE-----\nREVG\n-----END CERTIFICATE-----\n";
const KEY: &str = "-----BEGIN PRIVATE KEY-----\nQUJD\n-----END PRIVATE KEY-----\n";

fn verdicts(changes: Vec<Change>, unchanged: &[(&str, &str)]) -> Vec<Verdict> {
    let unchanged: Vec<Entry> =
        unchanged.iter().map(|(path, text)| test::unchanged_file(path, text)).collect();
    test::verdicts::<Certificates>(&(), changes, unchanged)
}

/// What all changes of a host come to, which is the same for each.
fn verdict(changes: Vec<Change>, unchanged: &[(&str, &str)]) -> Verdict {
    let mut all = verdicts(changes, unchanged);
    let first = all.swap_remove(0);
    for other in &all {
        assert_eq!(other.actions(), first.actions(), "{} / {}", first.reason(), other.reason());
    }
    first
}

fn added(directory: &str, name: &str, text: &str) -> Change {
    test::file_added(&format!("{directory}/{name}"), text)
}

fn changed(directory: &str, name: &str, before: &str, after: &str) -> Change {
    test::file(&format!("{directory}/{name}"), before, after)
}

fn removed(directory: &str, name: &str, text: &str) -> Change {
    test::file_removed(&format!("{directory}/{name}"), text)
}

#[test]
fn what_ends_every_pull_from_a_registry_is_refused() {
    for (name, text, says) in [
        (
            "client.cert",
            A,
            "client.cert: the key of this client certificate, client.key, is missing",
        ),
        (
            "client.key",
            KEY,
            "client.key: the client certificate of this key, client.cert, is missing",
        ),
        (".cert", A, ".key, is missing"),
        ("ca.crt/x", "", "ca.crt becomes a directory"),
        ("client.cert/x/y", "", "client.cert becomes a directory"),
        ("client.key/x", "", "client.key becomes a directory"),
    ] {
        for directory in [HERE, THERE] {
            let verdict = verdict(vec![added(directory, name, text)], &[]);
            assert_eq!(
                verdict.effect(),
                Some(Effect::Refuse),
                "{directory} {name}: {}",
                verdict.reason()
            );
            assert!(verdict.reason().contains(says), "{}", verdict.reason());
        }
    }
    // Its partner goes.
    let (cert, key) = ([HERE, "/client.cert"].concat(), [HERE, "/client.key"].concat());
    let changes = vec![removed(HERE, "client.key", KEY)];
    assert_eq!(verdict(changes, &[(&cert, A)]).effect(), Some(Effect::Refuse));
    let changes = vec![removed(HERE, "client.cert", A)];
    assert_eq!(verdict(changes, &[(&key, KEY)]).effect(), Some(Effect::Refuse));
    // Neither is what its name says.
    for (cert, key) in [("", KEY), (A, ""), (KEY, KEY), (A, A)] {
        let changes = vec![added(HERE, "client.cert", cert), added(HERE, "client.key", key)];
        assert_eq!(verdict(changes, &[]).effect(), Some(Effect::Refuse), "{cert}{key}");
    }
    // A file in place of the directory.
    for host in ["r.example:5000", "r.example", "localhost", "[::1]:5000"] {
        for place in ["containers", "docker"] {
            let change = test::file_added(&format!("/etc/{place}/certs.d/{host}"), "");
            assert_eq!(verdict(vec![change], &[]).effect(), Some(Effect::Refuse), "{host}");
        }
    }
}

#[test]
fn a_partner_that_something_else_may_have_brought_is_not_asked_for_again() {
    let cert = [THERE, "/client.cert"].concat();
    let verdict = verdict(vec![added(THERE, "ca.crt", A)], &[(&cert, A)]);
    assert_eq!(verdict.effect(), Some(Effect::None), "{}", verdict.reason());
}

#[test]
fn other_client_certificates_are_drained_for() {
    let (cert, key) = ([HERE, "/client.cert"].concat(), [HERE, "/client.key"].concat());
    let pair = |cert, key| vec![added(HERE, "client.cert", cert), added(HERE, "client.key", key)];
    let gone = vec![removed(HERE, "client.cert", A), removed(HERE, "client.key", KEY)];
    for (changes, unchanged) in [
        (pair(A, KEY), vec![]),
        (gone, vec![]),
        (vec![changed(HERE, "client.cert", A, B)], vec![(key.as_str(), KEY)]),
        (
            vec![changed(HERE, "client.key", KEY, &KEY.replace("QUJD", "REVG"))],
            vec![(cert.as_str(), A)],
        ),
    ] {
        let verdict = verdict(changes, &unchanged);
        assert_eq!(verdict.effect(), Some(Effect::Drain), "{}", verdict.reason());
        assert!(verdict.reason().contains("client certificates"), "{}", verdict.reason());
    }
}

#[test]
fn a_directory_that_hides_another_is_drained_for_unless_it_has_all_of_it() {
    let there = [THERE, "/ca.crt"].concat();
    for name in ["ca.crt", "README", "sub/x"] {
        let verdict = verdict(vec![added(HERE, name, B)], &[(&there, A)]);
        assert_eq!(verdict.effect(), Some(Effect::Drain), "{name}: {}", verdict.reason());
    }
    // OpenShift may have written a CA there that no config has.
    let verdict_of_new = verdict(vec![added(HERE, "ca.crt", A)], &[]);
    assert_eq!(verdict_of_new.effect(), Some(Effect::Drain));
    assert!(verdict_of_new.reason().contains("OpenShift"), "{}", verdict_of_new.reason());
    let both = format!("{B}{A}");
    for changes in [
        vec![added(HERE, "all.crt", &both)],
        vec![added(HERE, "all.crt", &both), removed(THERE, "more.crt", B)],
        vec![added(HERE, "a.crt", A), added(HERE, "b.crt", B)],
    ] {
        let verdict = verdict(changes, &[(&there, A)]);
        assert_eq!(verdict.effect(), Some(Effect::None), "{}", verdict.reason());
    }
    // What is hidden may change; what no longer hides may stay behind without files.
    let here = [HERE, "/ca.crt"].concat();
    let changes = vec![changed(THERE, "ca.crt", A, B), added(THERE, "client.cert", A)];
    assert_eq!(verdict(changes, &[(&here, A)]).effect(), Some(Effect::None));
    let changes = vec![removed(HERE, "ca.crt", A)];
    assert_eq!(verdict(changes, &[(&there, A)]).effect(), Some(Effect::Drain));
}

#[test]
fn all_that_was_trusted_for_a_registry_has_to_stay() {
    let both = format!("{A}{B}");
    let secret = || {
        let mut change = added(THERE, "ca.crt", "");
        let State::File(file) = &mut change.after else { panic!("no file") };
        file.content = Content::Digest("secret:1".to_string());
        change.before = test::file_state(A);
        change
    };
    for (changes, expected) in [
        (vec![added(THERE, "ca.crt", A)], Effect::None),
        (vec![changed(THERE, "ca.crt", A, &both)], Effect::None),
        (vec![changed(THERE, "ca.crt", &both, &format!("# note\n{B}{A}{A}"))], Effect::None),
        (vec![removed(THERE, "ca.crt", A), added(THERE, "other.crt", &both)], Effect::None),
        (vec![changed(THERE, "ca.crt", "", A)], Effect::None),
        (vec![changed(THERE, "note.txt", "a", "b")], Effect::None),
        (vec![changed(THERE, "ca.crt", A, B)], Effect::Drain),
        (vec![changed(THERE, "ca.crt", &both, B)], Effect::Drain),
        (vec![changed(THERE, "ca.crt", A, "")], Effect::Drain),
        (vec![removed(THERE, "ca.crt", A)], Effect::Drain),
        (vec![removed(THERE, "ca.crt", A), added(THERE, "ca.pem", A)], Effect::Drain),
        (vec![secret()], Effect::Drain),
        // The library finds no block whose first line is indented, or has a header.
        (vec![changed(THERE, "ca.crt", A, &format!(" {A}"))], Effect::Drain),
        (vec![changed(THERE, "ca.crt", A, &A.replace("\nQ", "\nA: b\n\nQ"))], Effect::Drain),
        (vec![changed(THERE, "ca.crt", A, &A.replace("--\nQ", "-- x\nQ"))], Effect::Drain),
    ] {
        let verdict = verdict(changes.clone(), &[]);
        assert_eq!(verdict.effect(), Some(expected), "{changes:?}: {}", verdict.reason());
    }
}

#[test]
fn each_registry_is_judged_by_itself() {
    let all = verdicts(
        vec![
            changed("/etc/docker/certs.d/a.io", "ca.crt", A, B),
            added("/etc/docker/certs.d/b.io", "ca.crt", A),
            added("/etc/docker/certs.d/c.io", "client.key", KEY),
            test::file_added("/etc/docker/certs.d/.create", ""),
        ],
        &[],
    );
    let effects: Vec<_> = all.iter().filter_map(Verdict::effect).collect();
    assert_eq!(effects, [Effect::None, Effect::Drain, Effect::None, Effect::Refuse]);
}

#[test]
fn a_file_in_place_of_a_registrys_directory_is_refused_in_either_place() {
    let there = ["/ca.crt", "/note.txt"].map(|name| [HERE, name].concat());
    for directory in [HERE, THERE] {
        let file = || test::file_added(directory, A);
        for unchanged in [&[][..], &[(there[0].as_str(), A)], &[(there[1].as_str(), A)]] {
            // Nothing can be below a file in the same place: the host refuses that.
            if directory == HERE && !unchanged.is_empty() {
                continue;
            }
            let verdict = verdict(vec![file()], unchanged);
            assert_eq!(verdict.effect(), Some(Effect::Refuse), "{directory} {unchanged:?}");
            assert!(verdict.reason().contains("a file stands where"), "{}", verdict.reason());
        }
        // One that was there before is nobody's doing.
        let changed = test::file(directory, A, B);
        assert_ne!(verdict(vec![changed], &[]).effect(), Some(Effect::Refuse), "{directory}");
    }
}

#[test]
fn a_client_key_that_moves_is_drained_for_since_nobody_is_told_that_it_is_the_same() {
    let key = |directory: &str, token: &str, is_added: bool| {
        let mut change = match is_added {
            true => added(directory, "client.key", ""),
            false => removed(directory, "client.key", ""),
        };
        let state = if is_added { &mut change.after } else { &mut change.before };
        let State::File(file) = state else { panic!("no file") };
        file.content = Content::Digest(token.to_string());
        change
    };
    let changes = vec![
        removed(THERE, "client.cert", A),
        key(THERE, "secret:1", false),
        added(HERE, "client.cert", A),
        key(HERE, "secret:2", true),
    ];
    assert_eq!(verdict(changes, &[]).effect(), Some(Effect::Drain));
}
