//! What holds for any two node configs.

use crate::build::{dropin, file, list, unit, user};
use proptest::prelude::*;
use std::borrow::Cow;
use std::io::Write as _;
use tread_model::change::Change;
use tread_model::config::{File, Fixed, KernelType, NodeConfig, Source, Unit, User};
use tread_model::config_digest::{digests, digests_of_pair};
use tread_model::contents::{Decoder, decode};
use tread_model::diff::{compare, unchanged};
use tread_model::refuse::Refusal;
use tread_model::secrets::{Tokens, is_secret};

/// How the bytes of a file can be written.
#[derive(Debug, Clone, Copy)]
enum Writing {
    Percent,
    Base64,
    Gzip,
}

impl Writing {
    fn source(self, bytes: &[u8]) -> Source<'static> {
        let base64 = |bytes: &[u8]| {
            format!("data:;base64,{}", base64_simd::STANDARD.encode_to_string(bytes))
        };
        let url = match self {
            Writing::Percent => {
                let escaped = |byte: &u8| match byte.is_ascii_alphanumeric() {
                    true => char::from(*byte).to_string(),
                    false => format!("%{byte:02x}"),
                };
                format!("data:,{}", bytes.iter().map(escaped).collect::<String>())
            }
            Writing::Base64 => base64(bytes),
            Writing::Gzip => {
                let fast = flate2::Compression::fast();
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), fast);
                encoder.write_all(bytes).unwrap();
                base64(&encoder.finish().unwrap())
            }
        };
        Source { url: Some(Cow::Owned(url)), gzip: matches!(self, Writing::Gzip) }
    }
}

fn writing() -> impl Strategy<Value = Writing> {
    prop_oneof![Just(Writing::Percent), Just(Writing::Base64), Just(Writing::Gzip)]
}

/// A file without its path: bytes, mode, owner, and whether it appends.
#[derive(Debug, Clone, PartialEq)]
struct Body {
    bytes: Vec<u8>,
    mode: Option<u32>,
    user: &'static str,
    appends: bool,
}

fn body(applicable: bool) -> impl Strategy<Value = Body> {
    let bytes = prop_oneof![
        Just(b"".to_vec()),
        Just(b"one".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..40)
    ];
    let mode = prop_oneof![
        Just(None),
        Just(Some(0o644)),
        Just(Some(0o600)),
        Just(Some(if applicable { 0o755 } else { 0o4755 }))
    ];
    let user = prop_oneof![Just("root"), Just("core")];
    let appends = prop::bool::weighted(if applicable { 0.0 } else { 0.2 });
    (bytes, mode, user, appends).prop_map(|(bytes, mode, user, appends)| Body {
        bytes,
        mode,
        user,
        appends,
    })
}

impl Body {
    fn file(&self, path: &str, writing: Writing) -> File<'static> {
        File {
            contents: writing.source(&self.bytes),
            mode: self.mode,
            user: self.user.into(),
            appends: self.appends,
            ..file(path, "")
        }
    }
}

const PATHS: [&str; 4] = ["/etc/a", "/etc/a-b", "/etc/ab/c", "/etc/d"];

fn a_file(applicable: bool) -> impl Strategy<Value = Option<(Body, Writing)>> {
    prop::option::weighted(0.8, (body(applicable), writing()))
}

fn a_unit() -> impl Strategy<Value = Option<Unit<'static>>> {
    let contents = prop_oneof![Just(""), Just("[Service]\n"), Just("[Service]\n[Install]\n")];
    let dropins = prop_oneof![Just(None), Just(Some("")), Just(Some("[Install]\n"))];
    let dropins = proptest::collection::vec(dropins, 0..2);
    let parts = (contents, any::<Option<bool>>(), any::<Option<bool>>(), dropins);
    prop::option::of(parts.prop_map(|(contents, enabled, mask, dropins)| {
        let dropins = dropins.into_iter().map(|contents| dropin("10.conf", contents)).collect();
        Unit { mask, dropins, ..unit("", contents, enabled) }
    }))
}

fn a_user() -> impl Strategy<Value = Option<User<'static>>> {
    let keys = prop_oneof![Just(&[][..]), Just(&["a"][..]), Just(&["a", "b"][..])];
    let password = prop_oneof![Just(None), Just(Some("")), Just(Some("$6$MARKER"))];
    let rest = prop_oneof![3 => Just(""), 1 => Just("{\"uid\":7}")];
    prop::option::of((keys, password, rest).prop_map(|(keys, password, rest)| User {
        password_hash: password.map(Cow::Borrowed),
        rest: rest.to_owned(),
        ..user("", keys)
    }))
}

fn the_rest() -> impl Strategy<Value = NodeConfig<'static>> {
    let a = format!("a@sha256:{}", "0".repeat(64));
    let b = format!("b@sha256:{}", "0".repeat(64));
    let image = prop_oneof![Just(String::new()), Just(a), Just(b), Just("a:tag".to_owned())];
    let words = || prop_oneof![Just(&[][..]), Just(&["a"][..]), Just(&["a", "b"][..])];
    let kernel = prop_oneof![Just(KernelType::Default), Just(KernelType::Realtime)];
    let fixed = prop_oneof![3 => Just(None), 1 => Just(Some("1")), 1 => Just(Some("2"))];
    (image, words(), words(), kernel, prop::bool::weighted(0.1), fixed).prop_map(
        |(image, arguments, extensions, kernel_type, fips, fixed)| NodeConfig {
            os_image: Cow::Owned(image),
            kernel_arguments: list(arguments),
            extensions: list(extensions),
            kernel_type,
            fips,
            fixed: fixed
                .map(|value| Fixed {
                    id: "storage:disks".to_owned(),
                    field: "spec.config.storage.disks".to_owned(),
                    value: value.to_owned(),
                })
                .into_iter()
                .collect(),
            ..NodeConfig::default()
        },
    )
}

fn config(applicable: bool) -> impl Strategy<Value = NodeConfig<'static>> {
    let files = proptest::collection::vec(a_file(applicable), PATHS.len());
    let units = proptest::collection::vec(a_unit(), 2);
    let users = proptest::collection::vec(a_user(), 2);
    (files, units, users, the_rest()).prop_map(|(files, units, users, rest)| NodeConfig {
        files: files
            .into_iter()
            .zip(PATHS)
            .filter_map(|(file, path)| file.map(|(body, writing)| body.file(path, writing)))
            .collect(),
        units: units
            .into_iter()
            .zip(["a.service", "b.service"])
            .filter_map(|(unit, name)| unit.map(|unit| Unit { name: name.into(), ..unit }))
            .collect(),
        users: users
            .into_iter()
            .zip(["admin", "core"])
            .filter_map(|(user, name)| user.map(|user| User { name: name.into(), ..user }))
            .collect(),
        ..rest
    })
}

/// Two configs that are often equal in most parts.
fn pair(applicable: bool) -> impl Strategy<Value = (NodeConfig<'static>, NodeConfig<'static>)> {
    let parts = proptest::collection::vec(prop::bool::weighted(0.2), 7);
    (config(applicable), config(applicable), parts).prop_map(|(old, other, parts)| {
        let mut new = old.clone();
        let mut parts = parts.into_iter();
        let mut differs = || parts.next().unwrap();
        if differs() {
            new.files.clone_from(&other.files);
        }
        if differs() {
            new.units.clone_from(&other.units);
        }
        if differs() {
            new.users.clone_from(&other.users);
        }
        if differs() {
            new.kernel_arguments.clone_from(&other.kernel_arguments);
            new.kernel_type = other.kernel_type;
        }
        if differs() {
            new.os_image.clone_from(&other.os_image);
        }
        if differs() {
            new.extensions.clone_from(&other.extensions);
        }
        if differs() {
            new.fips = other.fips;
            new.fixed = other.fixed;
        }
        (old, new)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn configs_have_the_same_digest_exactly_when_nothing_differs((old, new) in pair(true)) {
        let found = compare(&old, &new).unwrap();
        let nothing = found.changes.is_empty() && found.refusals.is_empty();
        prop_assert_eq!(nothing, found.from == found.to, "{:?}", found);
        prop_assert_eq!(found.from, digests(&old).unwrap().config);
        prop_assert_eq!(found.to, digests(&new).unwrap().config);
    }

    #[test]
    fn what_cannot_be_applied_is_refused_and_hides_no_difference((old, new) in pair(false)) {
        let found = compare(&old, &new).unwrap();
        if found.from == found.to {
            prop_assert_eq!(&found.changes, &[]);
            prop_assert!(found.refusals.iter().all(|refusal| refusal.id.starts_with("file:")));
        } else {
            prop_assert!(!found.changes.is_empty() || !found.refusals.is_empty());
        }
        let bad = |file: &&File| file.appends || file.mode == Some(0o4755);
        let bad: Vec<_> = new.files.iter().filter(bad).map(|f| format!("file:{}", f.path)).collect();
        let refused: Vec<_> = found.refusals.iter().map(|refusal| refusal.id.clone()).collect();
        let refused: Vec<_> = refused.into_iter().filter(|id| id.starts_with("file:")).collect();
        prop_assert_eq!(&bad, &refused);
        prop_assert!(!found.changes.iter().any(|change| bad.contains(&change.id)));
    }

    #[test]
    fn a_config_does_not_differ_from_itself(config in config(true)) {
        let found = compare(&config, &config).unwrap();
        prop_assert_eq!(found.changes, []);
        prop_assert_eq!(found.refusals, []);
        prop_assert_eq!(found.from, found.to);
    }

    #[test]
    fn the_way_back_is_the_same_changes_turned_around((old, new) in pair(true)) {
        let there = compare(&old, &new).unwrap();
        let back = compare(&new, &old).unwrap();
        let turned = |change: Change<'static>| Change {
            before: change.after,
            after: change.before,
            ..change
        };
        let turned: Vec<_> = back.changes.into_iter().map(turned).collect();
        prop_assert_eq!(there.changes, turned);
        let ids = |refusals: Vec<Refusal>| {
            refusals.into_iter().map(|refusal| refusal.id).collect::<Vec<_>>()
        };
        prop_assert_eq!(ids(there.refusals), ids(back.refusals));
        prop_assert_eq!((there.from, there.to), (back.to, back.from));
    }

    #[test]
    fn each_entry_is_either_changed_or_unchanged((old, new) in pair(true)) {
        let found = compare(&old, &new).unwrap();
        let same = unchanged(&old, &new, |_| true).unwrap();
        prop_assert!(same.is_sorted_by(|a, b| a.id < b.id));
        prop_assert!(found.changes.is_sorted_by(|a, b| a.id < b.id));
        let mut ids: Vec<_> = found.changes.iter().map(|change| &change.id).collect();
        ids.extend(same.iter().map(|entry| &entry.id));
        ids.sort_unstable();
        prop_assert!(ids.is_sorted_by(|a, b| a < b), "{:?}", ids);
        for file in &new.files {
            let id = format!("file:{}", file.path);
            prop_assert!(ids.contains(&&id), "{}", id);
        }
        for unit in &new.units {
            let id = format!("unit:{}", unit.name);
            prop_assert!(ids.contains(&&id), "{}", id);
        }
    }

    #[test]
    fn files_change_exactly_when_what_stands_on_the_node_does(
        (old, old_writing) in (body(true), writing()),
        (new, new_writing) in (body(true), writing()),
    ) {
        let of = |body: &Body, writing| NodeConfig {
            files: vec![body.file("/etc/a", writing)],
            ..NodeConfig::default()
        };
        let found = compare(&of(&old, old_writing), &of(&new, new_writing)).unwrap();
        let on_node = |body: &Body| (body.bytes.clone(), body.mode.unwrap_or(0o644), body.user);
        prop_assert_eq!(found.changes.is_empty(), on_node(&old) == on_node(&new));
        let again = compare(&of(&old, old_writing), &of(&old, new_writing)).unwrap();
        prop_assert_eq!(again.changes, []);
        prop_assert_eq!(again.from, again.to);
    }

    #[test]
    fn secrets_are_never_shown(
        modes in proptest::collection::vec(0..=0o777_u32, 2),
        texts in proptest::collection::vec("[a-z]{0,4}", 2),
        writing in writing(),
    ) {
        let of = |mode: u32, text: &str| NodeConfig {
            files: vec![Body {
                bytes: format!("{text}MARKER{text}").into_bytes(),
                mode: Some(mode),
                user: "root",
                appends: false,
            }
            .file("/etc/a", writing)],
            users: vec![User {
                password_hash: Some(Cow::Owned(format!("{text}MARKER"))),
                ..user("core", &[])
            }],
            ..NodeConfig::default()
        };
        let shown = |thing: &dyn std::fmt::Debug| {
            let text = format!("{thing:?}");
            text.contains("MARKER") || text.contains("77, 65, 82, 75, 69, 82")
        };
        let secret = modes.iter().any(|mode| mode & 0o004 == 0);
        let (old, new) = (of(modes[0], &texts[0]), of(modes[1], &texts[1]));
        for change in compare(&old, &new).unwrap().changes {
            prop_assert!(shown(&change));
            let open = change.id == "file:/etc/a" && !secret;
            prop_assert_eq!(is_secret(&change), !open);
            let redacted = Tokens::default().redact(&change).into_owned();
            prop_assert_eq!(shown(&redacted), open, "{:?}", redacted);
            prop_assert_ne!(&redacted.before, &redacted.after);
        }
        for entry in unchanged(&old, &old, |_| true).unwrap() {
            let open = entry.id == "file:/etc/a" && modes[0] & 0o004 != 0;
            prop_assert_eq!(shown(&Tokens::default().redact_entry(&entry)), open);
        }
    }

    #[test]
    fn the_digests_of_a_pair_are_those_of_each((old, new) in pair(false)) {
        let (from, to) = digests_of_pair(&old, &new).unwrap();
        prop_assert_eq!(from.config, digests(&old).unwrap().config);
        prop_assert_eq!(to.config, digests(&new).unwrap().config);
    }

    #[test]
    fn decoding_gives_back_what_was_written(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        writing in writing(),
    ) {
        let source = writing.source(&bytes);
        let decoded = decode(&source).unwrap();
        prop_assert_eq!(decoded.as_deref(), Some(bytes.as_slice()));
    }

    #[test]
    fn no_url_makes_decoding_panic(
        url in prop_oneof!["\\PC{0,40}", "data:\\PC{0,40}", "data:[;a/=\"\\\\base64]{0,12},[A-Za-z0-9+/=%]{0,20}"],
        gzip: bool,
    ) {
        let source = Source { url: Some(Cow::Borrowed(&url)), gzip };
        let mut decoder = Decoder::default();
        let (one, other) = (decode(&source), decoder.decode(&source));
        prop_assert_eq!(one.as_ref().map(Option::as_deref), other.as_ref().copied());
    }

    #[test]
    fn no_bytes_make_unpacking_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60), magic: bool) {
        let bytes = if magic { [&[0x1f, 0x8b, 8][..], &bytes].concat() } else { bytes };
        let source = Source { gzip: true, ..Writing::Base64.source(&bytes) };
        let _ = decode(&source);
    }
}
