//! Which differences count, and which a running node cannot take.

use crate::build::{dropin, file, files, list, unit, units, url, user, users};
use std::borrow::Cow;
use tread_model::change::{Change, Content, Edit, FileState, State, UnitState};
use tread_model::config::{File, Fixed, KernelType, NodeConfig, Place, Source, Unit, User};
use tread_model::config_digest::{digests, digests_of_pair};
use tread_model::diff::{Comparison, compare, unchanged};
use tread_model::refuse::Refusal;

const IMAGE: &str = "@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// Compares, and checks what holds for any two configs.
fn comparison(old: &NodeConfig<'static>, new: &NodeConfig<'static>) -> Comparison<'static> {
    let found = compare(old, new).unwrap();
    let (from, to) = digests_of_pair(old, new).unwrap();
    let alone = (digests(old).unwrap().config, digests(new).unwrap().config);
    assert_eq!(alone, (from.config, to.config));
    assert_eq!((found.from, found.to), (from.config, to.config));
    let ids = |all: &[Change]| all.iter().map(|change| change.id.clone()).collect::<Vec<_>>();
    assert!(ids(&found.changes).is_sorted());
    assert!(found.refusals.is_sorted_by_key(|refusal| &refusal.id));
    if found.from == found.to {
        assert_eq!(found.changes, []);
    } else {
        let counts = (found.changes.len(), found.refusals.len(), found.settled.len());
        assert_ne!(counts, (0, 0, 0));
    }
    found
}

/// The ids of changes (`!` in front: of refusals), with what was done.
fn ids(old: &NodeConfig<'static>, new: &NodeConfig<'static>) -> Vec<String> {
    let found = comparison(old, new);
    let change = |change: &Change| format!("{} {:?}", change.id, change.edit());
    let refusal = |refusal: &Refusal| format!("!{} {:?}", refusal.id, refusal.edit);
    found.changes.iter().map(change).chain(found.refusals.iter().map(refusal)).collect()
}

fn only_refusal(old: &NodeConfig<'static>, new: &NodeConfig<'static>) -> Refusal {
    let found = comparison(old, new);
    assert_eq!(found.changes, []);
    let [refusal] = found.refusals.as_slice() else { panic!("{:?}", found.refusals) };
    refusal.clone()
}

fn with(change: impl FnOnce(&mut File<'static>)) -> NodeConfig<'static> {
    let mut one = file("/etc/a", "text");
    change(&mut one);
    files([one])
}

#[test]
fn files_come_change_and_go() {
    let old = files([file("/etc/changed", "1"), file("/etc/gone", "1"), file("/etc/same", "1")]);
    let new = files([file("/etc/changed", "2"), file("/etc/new", "1"), file("/etc/same", "1")]);
    let expected = ["file:/etc/changed Changed", "file:/etc/gone Removed", "file:/etc/new Added"];
    assert_eq!(ids(&old, &new), expected);
    assert_eq!(ids(&old, &old), Vec::<String>::new());
}

#[test]
fn how_a_file_is_written_is_no_difference() {
    let gzip = {
        use std::io::Write as _;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(b"text").unwrap();
        base64_simd::STANDARD.encode_to_string(encoder.finish().unwrap())
    };
    let plain = with(|_| ());
    for other in [
        with(|f| f.contents = url("data:;base64,dGV4dA==")),
        with(|f| f.contents = url("data:text/plain;charset=utf-8,te%78t")),
        with(|f| {
            f.contents = Source { gzip: true, ..url(&format!("data:;base64,{gzip}")) };
        }),
        with(|f| f.mode = Some(0o644)),
        with(|f| f.raw = b"{ }"),
        with(|f| f.origin.document = 7),
    ] {
        assert_eq!(ids(&plain, &other), Vec::<String>::new(), "{other:?}");
    }
    let none = with(|f| f.contents = Source::default());
    assert_eq!(ids(&none, &with(|f| f.contents = url("data:,"))), Vec::<String>::new());
}

#[test]
fn bytes_mode_and_owner_of_a_file_are_differences() {
    for other in [
        with(|f| f.contents = url("data:,text%0A")),
        with(|f| f.contents = Source::default()),
        with(|f| f.mode = Some(0o600)),
        with(|f| f.mode = Some(0)),
        with(|f| f.user = "core".into()),
        with(|f| f.group = "core".into()),
    ] {
        assert_eq!(ids(&with(|_| ()), &other), ["file:/etc/a Changed"], "{other:?}");
    }
}

#[test]
fn entries_with_the_same_text_are_not_looked_into() {
    // Not what a reader would give, but it shows that the text decides.
    let (old, new) = (with(|f| f.raw = b"{1}"), with(|f| f.raw = b"{1}"));
    let new = NodeConfig { files: vec![File { mode: Some(0), ..new.files[0].clone() }], ..new };
    assert_eq!(compare(&old, &new).unwrap().changes, []);
}

#[test]
fn a_change_shows_both_sides_decoded_with_defaults_filled_in() {
    let new = with(|f| {
        f.contents = url("data:;base64,bmV3");
        f.mode = Some(0o600);
    });
    let state = |bytes: &'static [u8], mode| {
        let content = Content::Bytes(Cow::Borrowed(bytes));
        State::File(FileState { content, mode, user: "root".into(), group: "root".into() })
    };
    let found = comparison(&with(|_| ()), &new);
    assert_eq!(found.changes[0].before, state(b"text", 0o644));
    assert_eq!(found.changes[0].after, state(b"new", 0o600));
}

#[test]
fn plain_text_of_a_borrowed_config_stays_borrowed() {
    let mut new = files([file("/etc/a", "")]);
    new.files[0].contents.url = Some(Cow::Borrowed("data:,text"));
    let found = comparison(&NodeConfig::default(), &new);
    let State::File(state) = &found.changes[0].after else { panic!("{found:?}") };
    assert!(matches!(state.content, Content::Bytes(Cow::Borrowed(b"text"))));
}

#[test]
fn what_counts_of_a_unit() {
    let plain = || unit("a.service", "[Service]\n", None);
    let installable = || unit("a.service", "[Service]\n[Install]\n", None);
    let foreign = || unit("a.service", "", None);
    let set = |mut unit: Unit<'static>, enabled, mask: Option<bool>| {
        unit.enabled = enabled;
        unit.mask = mask;
        unit
    };
    let dropping = |contents: &[Option<&str>]| {
        let mut unit = foreign();
        unit.dropins = contents.iter().map(|contents| dropin("a.conf", *contents)).collect();
        unit
    };
    let empty = Unit { contents: Some("".into()), ..foreign() };
    for (old, new, differ) in [
        (plain(), plain(), false),
        (plain(), installable(), true),
        (plain(), foreign(), true),
        (foreign(), empty, false),
        (plain(), set(plain(), Some(false), None), true),
        (plain(), set(plain(), Some(true), None), true),
        (installable(), set(installable(), Some(false), None), true),
        (foreign(), set(foreign(), Some(false), None), true),
        (plain(), set(plain(), None, Some(true)), true),
        (plain(), set(plain(), None, Some(false)), false),
        (foreign(), set(foreign(), None, Some(false)), true),
        (set(foreign(), None, Some(true)), set(foreign(), None, Some(false)), true),
        (set(foreign(), None, Some(true)), set(foreign(), Some(true), Some(true)), false),
        (set(plain(), None, Some(true)), set(installable(), None, Some(true)), true),
        (dropping(&[]), dropping(&[Some("[Service]")]), true),
        (dropping(&[Some("a")]), dropping(&[Some("b")]), true),
        (dropping(&[Some("")]), dropping(&[None]), false),
        (dropping(&[]), dropping(&[None]), true),
    ] {
        let expected: &[&str] = if differ { &["unit:a.service Changed"] } else { &[] };
        assert_eq!(ids(&units([old.clone()]), &units([new.clone()])), expected, "{old:?} {new:?}");
        assert_eq!(ids(&units([new]), &units([old])), expected);
    }
}

#[test]
fn a_unit_is_shown_in_the_form_in_which_it_is_compared() {
    let mut new = unit("a.service", "[Service]\n", Some(false));
    new.dropins = vec![dropin("a.conf", Some("x")), dropin("b.conf", Some(""))];
    let found = comparison(&NodeConfig::default(), &units([new]));
    let State::Unit(UnitState { contents, enabled, masked, dropins }) = &found.changes[0].after
    else {
        panic!("{found:?}")
    };
    assert_eq!(*contents, Content::Bytes(Cow::Borrowed(b"[Service]\n")));
    assert_eq!((*enabled, *masked), (Some(false), None));
    assert_eq!(dropins[0].contents, Content::Bytes(Cow::Borrowed(b"x")));
    assert_eq!(dropins[1].contents, Content::Absent);
}

#[test]
fn keys_and_password_of_core_are_changes() {
    let core = |keys: &[&str], password: Option<&'static str>| {
        let password_hash = password.map(Cow::Borrowed);
        users([User { password_hash, ..user("core", keys) }])
    };
    let none = NodeConfig::default();
    for (old, new, expected) in [
        (core(&["a"], None), core(&["a"], None), &[][..]),
        (core(&["a"], None), core(&["a", "b"], None), &["ssh-keys:core Changed"]),
        (none.clone(), core(&["a"], None), &["ssh-keys:core Added"]),
        (
            core(&["a"], Some("$6$a")),
            none.clone(),
            &["password:core Removed", "ssh-keys:core Removed"],
        ),
        (core(&[], Some("$6$a")), core(&[], Some("$6$b")), &["password:core Changed"]),
        (core(&[], None), core(&[], Some("$6$b")), &["password:core Added"]),
        (none.clone(), core(&[], None), &[]),
        (none.clone(), core(&[], Some("")), &[]),
    ] {
        assert_eq!(ids(&old, &new), expected, "{:?} {:?}", old.users, new.users);
    }
}

#[test]
fn other_users_and_other_fields_are_refused() {
    let other = |keys: &[&str]| users([user("admin", keys)]);
    let rest = |rest: &str| users([User { rest: rest.to_owned(), ..user("core", &["a"]) }]);
    let none = NodeConfig::default();
    for (old, new, expected) in [
        (none.clone(), other(&[]), &["!users:admin Added"][..]),
        (other(&[]), none.clone(), &["!users:admin Removed"]),
        (other(&["a"]), other(&["b"]), &["!users:admin Changed"]),
        (other(&["a"]), other(&["a"]), &[]),
        (rest(""), rest("{\"uid\":1}"), &["!users:core Changed"]),
        (rest("{\"uid\":1}"), rest("{\"uid\":1}"), &[]),
        (rest("{\"uid\":1}"), none, &["ssh-keys:core Removed", "!users:core Removed"]),
    ] {
        assert_eq!(ids(&old, &new), expected, "{:?} {:?}", old.users, new.users);
    }
    let refusal = only_refusal(&rest(""), &rest("{\"uid\":1}"));
    assert_eq!(refusal.field, "spec.config.passwd.users[0]");
}

#[test]
fn what_is_set_once_is_compared_by_its_meaning() {
    let none = NodeConfig::default;
    let arguments = |words: &[&str]| NodeConfig { kernel_arguments: list(words), ..none() };
    let extensions = |words: &[&str]| NodeConfig { extensions: list(words), ..none() };
    let image = |image: &str| NodeConfig { os_image: Cow::Owned(image.to_owned()), ..none() };
    let kernel = |kernel_type| NodeConfig { kernel_type, ..none() };
    let (quay, mirror) = (format!("quay.io/os{IMAGE}"), format!("mirror/os:tag{IMAGE}"));
    for (old, new, expected) in [
        (none(), arguments(&["a"]), &["kernel-arguments Added"][..]),
        (arguments(&["a", "b"]), arguments(&["b", "a"]), &["kernel-arguments Changed"]),
        (arguments(&["a"]), arguments(&["a", "a"]), &["kernel-arguments Changed"]),
        (arguments(&["a b"]), arguments(&["a", "b"]), &["kernel-arguments Changed"]),
        (none(), kernel(KernelType::Realtime), &["kernel-type Changed"]),
        (image(&quay), image(&mirror), &[]),
        (image(&quay), image("quay.io/os:tag"), &["os-image Changed"]),
        (image("a:tag"), image("b:tag"), &["os-image Changed"]),
        (image(""), image(&quay), &["os-image Added"]),
        (extensions(&["ipsec"]), extensions(&["ipsec", "usbguard"]), &["extensions Changed"]),
        (extensions(&["ipsec"]), none(), &["extensions Removed"]),
    ] {
        assert_eq!(ids(&old, &new), expected, "{old:?} {new:?}");
    }
}

#[test]
fn kernel_devel_beside_another_kernel_than_the_default_is_refused() {
    let node = |kernel_type, words: &[&str]| NodeConfig {
        kernel_type,
        extensions: list(words),
        ..NodeConfig::default()
    };
    let none = NodeConfig::default();
    let default = |words| node(KernelType::Default, words);
    let devel = ["kernel-devel", "usbguard"];
    for kernel in [KernelType::Realtime, KernelType::Pages64k] {
        let both = node(kernel, &devel);
        let changed = ["kernel-type Changed", "!extensions Changed"];
        assert_eq!(ids(&none, &both), ["kernel-type Changed", "!extensions Added"]);
        assert_eq!(ids(&default(&["usbguard"]), &both), changed);
        assert_eq!(ids(&default(&devel), &both), changed);
        assert_eq!(ids(&both, &both), ["!extensions Changed"]);
        assert_eq!(ids(&both, &node(kernel, &["usbguard"])), ["extensions Changed"]);
        assert_eq!(ids(&both, &default(&devel)), ["kernel-type Changed"]);
        let refusal = only_refusal(&node(kernel, &[]), &both);
        assert_eq!(refusal.field, "spec.extensions");
        for word in ["kernel-devel", kernel.as_str(), "Take one of both out"] {
            assert!(refusal.reason.contains(word), "{refusal:?}");
        }
    }
    assert_eq!(ids(&none, &default(&devel)), ["extensions Added"]);
}

#[test]
fn fips_and_what_only_provisioning_sets_are_refused() {
    let fixed = |id: &str, value: &str| NodeConfig {
        fixed: vec![Fixed {
            id: id.to_owned(),
            field: "spec.config.x".to_owned(),
            value: value.to_owned(),
        }],
        ..NodeConfig::default()
    };
    let none = NodeConfig::default();
    for (id, way_out) in [
        ("storage:disks", "provision the nodes anew"),
        ("storage:filesystems", "provision the nodes anew"),
        ("storage:raid", "provision the nodes anew"),
        ("storage:luks", "provision the nodes anew"),
        ("storage:directories", "/etc/tmpfiles.d"),
        ("storage:links", "/etc/tmpfiles.d"),
        ("users:groups", "provision the nodes anew"),
        ("ignition:kernel-arguments", "spec.kernelArguments"),
        ("ignition:proxy", "provision the nodes anew"),
    ] {
        for (old, new, edit) in [
            (none.clone(), fixed(id, "1"), Edit::Added),
            (fixed(id, "1"), fixed(id, "2"), Edit::Changed),
            (fixed(id, "1"), none.clone(), Edit::Removed),
        ] {
            if (id, edit) == ("storage:links", Edit::Removed) {
                assert_eq!(comparison(&old, &new).settled[0].edit, Edit::Removed);
                continue;
            }
            let refusal = only_refusal(&old, &new);
            assert_eq!((refusal.id.as_str(), refusal.edit), (id, edit));
            assert_eq!(refusal.field, "spec.config.x");
            assert!(refusal.reason.contains(way_out), "{refusal:?}");
        }
        assert_eq!(ids(&fixed(id, "1"), &fixed(id, "1")), Vec::<String>::new());
    }
    let fips = NodeConfig { fips: true, ..NodeConfig::default() };
    assert_eq!(ids(&none, &fips), ["!fips Changed"]);
    assert_eq!(ids(&fips, &none), ["!fips Changed"]);
    assert_eq!(only_refusal(&none, &fips).field, "spec.fips");
}

#[test]
fn a_file_that_cannot_be_applied_is_refused_added_changed_or_unchanged() {
    let good = with(|_| ());
    for (bad, field, way_out) in [
        (with(|f| f.appends = true), "append", "Write the whole file"),
        (with(|f| f.mode = Some(0o4755)), "mode", "setuid"),
        (with(|f| f.mode = Some(644)), "mode", "that is 420"),
        (with(|f| f.contents = url("https://a/b?token=x")), "contents.source", "data URL"),
        (with(|f| f.contents = url("file:///etc/b")), "contents.source", "data URL"),
    ] {
        for (old, edit) in [
            (NodeConfig::default(), Edit::Added),
            (good.clone(), Edit::Changed),
            (bad.clone(), Edit::Changed),
        ] {
            let refusal = only_refusal(&old, &bad);
            assert_eq!((refusal.id.as_str(), refusal.edit), ("file:/etc/a", edit));
            assert_eq!(refusal.field, format!("spec.config.storage.files[0].{field}"));
            assert!(refusal.reason.contains(way_out), "{refusal:?}");
            assert!(!refusal.reason.contains("token"), "{refusal:?}");
        }
        assert_eq!(ids(&bad, &good), ["file:/etc/a Changed"], "the way out is open");
        assert_eq!(ids(&bad, &NodeConfig::default()), ["file:/etc/a Removed"]);
    }
}

#[test]
fn the_file_that_forces_the_operator_is_refused() {
    let force = files([file("/run/machine-config-daemon-force", "")]);
    let refusal = only_refusal(&NodeConfig::default(), &force);
    assert_eq!(refusal.field, "spec.config.storage.files[0].path");
}

#[test]
fn all_that_is_wrong_with_a_file_is_one_refusal() {
    let bad = with(|f| {
        f.appends = true;
        f.mode = Some(0o1644);
    });
    let refusal = only_refusal(&NodeConfig::default(), &bad);
    assert_eq!(refusal.field, "spec.config.storage.files[0].append");
    assert!(refusal.reason.contains("append"), "{refusal:?}");
    assert!(refusal.reason.contains("0777"), "{refusal:?}");
}

#[test]
fn a_file_below_another_file_is_refused_also_when_others_stand_between() {
    let of = |paths: &[&str]| files(paths.iter().map(|path| file(path, "x")));
    for (paths, refused) in [
        (&["/etc/a", "/etc/a-b", "/etc/a/b"][..], &["!file:/etc/a/b Changed"][..]),
        (
            &["/etc/a", "/etc/a/b", "/etc/a/b/c"],
            &["!file:/etc/a/b Changed", "!file:/etc/a/b/c Changed"],
        ),
        (
            &["/etc/a", "/etc/a-b", "/etc/a-b/c", "/etc/a.b", "/etc/a/b/c"],
            &["!file:/etc/a-b/c Changed", "!file:/etc/a/b/c Changed"],
        ),
        (&["/etc/a", "/etc/ab", "/etc/ab.d/c"], &[]),
        (&["/etc/a.d/b", "/etc/a.d/b.c", "/etc/a.d/c"], &[]),
    ] {
        assert_eq!(ids(&of(paths), &of(paths)), refused, "{paths:?}");
    }
    // What was wrong before is no reason to refuse what is right now.
    let expected = ["file:/etc/a Removed"];
    assert_eq!(ids(&of(&["/etc/a", "/etc/a/b"]), &of(&["/etc/a/b"])), expected);
}

#[test]
fn contents_that_cannot_be_decoded_are_all_reported_with_side_file_and_field() {
    let mut old = files([file("/etc/a", "x"), file("/etc/b", "%zz")]);
    let mut new = files([file("/etc/b", "%zz"), file("/etc/c", "%")]);
    old.name = "before".into();
    new.name = "after".into();
    new.files[1].origin.document = 2;
    let place = |document: &str, config| Place {
        file: "after.yaml".into(),
        document: document.into(),
        config,
    };
    new.places = vec![place("1", "spec.config"), place("2", "spec.config"), place("3", "")];
    let problems = compare(&old, &new).unwrap_err().0;
    let at: Vec<_> = problems.iter().map(|problem| (&*problem.file, &*problem.path)).collect();
    assert_eq!(
        at,
        [
            ("before", "spec.config.storage.files[1] (/etc/b).contents.source"),
            ("after.yaml", "spec.config.storage.files[0] (/etc/b).contents.source"),
            ("after.yaml", "storage.files[1] (/etc/c).contents.source"),
        ]
    );
    assert_eq!(problems[2].document, "3");
    assert!(problems[0].message.contains("character 1"), "{}", problems[0].message);
    assert_eq!(digests(&old).unwrap_err().0, problems[..1]);
}

#[test]
fn unchanged_gives_what_matches_and_is_equal_on_both_sides() {
    let config = |text: &str, url_of_b: &str| NodeConfig {
        units: vec![unit("a.service", "[Service]\n", None), unit("b.service", text, None)],
        users: vec![user("core", &["key"])],
        kernel_arguments: list(&["quiet"]),
        os_image: Cow::Owned(format!("quay.io/{text}{IMAGE}")),
        ..files([file("/etc/a", text), File { contents: url(url_of_b), ..file("/etc/b", "") }])
    };
    let (old, new) = (config("1", "data:,b"), config("2", "data:;base64,Yg=="));
    let found = |matches: &dyn Fn(&str) -> bool| {
        let entries = unchanged(&old, &new, matches).unwrap();
        entries.into_iter().map(|entry| entry.id).collect::<Vec<_>>()
    };
    assert_eq!(
        found(&|_| true),
        [
            "file:/etc/b",
            "kernel-arguments",
            "kernel-type",
            "os-image",
            "ssh-keys:core",
            "unit:a.service"
        ]
    );
    assert_eq!(found(&|id| id.starts_with("file:")), ["file:/etc/b"]);
    assert_eq!(found(&|id| id == "unit:b.service"), Vec::<String>::new());
    let entries = unchanged(&old, &new, |id| id == "file:/etc/b").unwrap();
    let State::File(state) = &entries[0].state else { panic!("{entries:?}") };
    assert_eq!(state.content, Content::Bytes(Cow::Borrowed(b"b")));
}

#[test]
fn unchanged_decodes_only_what_matches() {
    let config = files([file("/etc/a", "ok"), file("/etc/broken", "%")]);
    assert_eq!(unchanged(&config, &config, |id| id == "file:/etc/a").unwrap().len(), 1);
    assert_eq!(unchanged(&config, &config, |_| true).unwrap_err().0.len(), 1);
}
