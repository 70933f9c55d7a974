//! The links of units against those that systemctl makes and removes in a tree.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};
use tread_node::install::{self, Facts};
use tread_node::presets::Presets;
use tread_node::tree::Tree;
use tread_node::view::real;

const LINKS: &str = "etc/systemd/system";

/// What is done to a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Enable,
    Disable,
    Preset,
}

impl Verb {
    fn as_str(self) -> &'static str {
        match self {
            Verb::Enable => "enable",
            Verb::Disable => "disable",
            Verb::Preset => "preset",
        }
    }
}

fn systemctl(root: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("systemctl");
    command.arg(format!("--root={}", root.display())).args(arguments);
    match command.output() {
        Ok(output) => output,
        Err(error) => panic!("systemctl cannot be run ({error}): install systemd's package"),
    }
}

/// All links below the folder of links, and where each leads.
fn links(root: &Path) -> BTreeMap<String, String> {
    fn add(folder: &Path, root: &Path, links: &mut BTreeMap<String, String>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_symlink() {
                let name = format!("/{}", path.strip_prefix(root).unwrap().display());
                links.insert(name, fs::read_link(&path).unwrap().display().to_string());
            } else if path.is_dir() {
                add(&path, root, links);
            }
        }
    }
    let mut found = BTreeMap::new();
    add(&root.join(LINKS), root, &mut found);
    found
}

fn facts(tree: &Tree) -> Facts {
    Facts::of_files(tree).unwrap().with_kernel()
}

/// The links that there will be; or why there will be none.
fn foretold(root: &Path, verb: Verb, unit: &str) -> Result<BTreeMap<String, String>, String> {
    let tree = Tree::open(root).unwrap();
    let facts = facts(&tree);
    let in_words = |error: install::InstallError| error.to_string();
    let change = match verb {
        Verb::Enable => {
            let links = install::enable(&tree, &facts, unit).map_err(in_words)?;
            install::PresetLinks { links, ..install::PresetLinks::default() }
        }
        Verb::Disable => {
            let removed = install::disable(&tree, &facts, unit).map_err(in_words)?;
            install::PresetLinks { removed, ..install::PresetLinks::default() }
        }
        Verb::Preset => {
            let presets = Presets::read(&tree).unwrap();
            install::preset(&tree, &facts, &presets, unit).map_err(in_words)?
        }
    };
    let mut links = links(root);
    for removed in change.removed {
        assert!(links.remove(&removed).is_some(), "{removed} is not there");
    }
    links.extend(change.links.into_iter().map(|link| (link.path, link.target)));
    Ok(links)
}

/// Does it by systemctl, and says how that differs from what was foretold. Nothing more
/// can be compared once it failed: then some links may be made and others not.
fn differs(root: &Path, verb: Verb, unit: &str) -> (bool, Option<String>) {
    let foretold = foretold(root, verb, unit);
    let output = systemctl(root, &[verb.as_str(), unit]);
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let went = format!("{} {unit}: {said}", verb.as_str());
    // Where one of several lists is wrong, it says so and ends well nevertheless.
    // Links that are left of a unit that is none are removed, whatever it says.
    let fine = match verb {
        // Over what it cannot read, some releases stop, and others go on.
        Verb::Disable if said.contains("Failed to ") && !said.contains("does not exist") => {
            return (false, None);
        }
        Verb::Disable => true,
        Verb::Enable | Verb::Preset => {
            let failed = |line: &str| line.starts_with("Failed to ") && !line.contains("auxiliary");
            output.status.success() && !said.lines().any(failed)
        }
    };
    let differs = match foretold {
        Ok(expected) if fine => {
            let made = links(root);
            (made != expected).then(|| format!("{went}\nmade {made:#?}\nand not {expected:#?}"))
        }
        Ok(_) => Some(format!("{went}\nfailed, and should not")),
        Err(error) if fine => Some(format!("{went}\nwent well, and not: {error}")),
        Err(_) => None,
    };
    (fine, differs)
}

/// How the state that systemctl tells differs from ours.
fn state_differs(root: &Path, unit: &str) -> Option<String> {
    let tree = Tree::open(root).unwrap();
    let state = install::state(&tree, &facts(&tree), unit);
    let output = systemctl(root, &["is-enabled", unit]);
    let theirs = String::from_utf8_lossy(&output.stdout).trim().replace("not-found", "");
    let theirs = theirs.replace("bad", "");
    let ours = state.as_ref().map_or("", |state| state.as_str());
    (ours != theirs).then(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("is-enabled {unit}: {theirs:?} and not {ours:?} ({:?}): {said}", state.err())
    })
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs::remove_file(&path);
    fs::write(path, text).unwrap();
}

/// A tree with the units of this machine.
fn machine() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["usr/lib/systemd/system", "usr/lib/systemd/system-preset"] {
        let to = dir.path().join(folder);
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(Path::new("/").join(folder)).into_iter().flatten() {
            let from = entry.unwrap().path();
            let to = to.join(from.file_name().unwrap());
            if from.is_symlink() {
                symlink(fs::read_link(&from).unwrap(), to).unwrap();
            } else if from.is_file() {
                fs::copy(&from, to).unwrap();
            }
        }
    }
    fs::create_dir_all(dir.path().join("etc")).unwrap();
    dir
}

#[test]
fn every_unit_of_this_machine_is_enabled_and_disabled_as_systemctl_does() {
    let dir = machine();
    let root = dir.path();
    let mut units: Vec<String> = Vec::new();
    for entry in fs::read_dir(root.join("usr/lib/systemd/system")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some((template, kind)) = name.split_once("@.") {
            units.push(format!("{template}@tty1.{kind}"));
        }
        units.push(name);
    }
    units.sort();
    assert!(units.len() > 100, "{} units are too few: install systemd's package", units.len());
    let mut wrong = Vec::new();
    for unit in &units {
        let text = fs::read_to_string(root.join("usr/lib/systemd/system").join(unit));
        // Of a unit without the section nothing is made that could be removed.
        let verbs: &[Verb] = match text {
            Ok(text) if !text.contains("[Install]") => &[Verb::Enable],
            _ => &[Verb::Enable, Verb::Disable, Verb::Preset],
        };
        for verb in verbs.iter().copied() {
            wrong.extend(differs(root, verb, unit).1);
            wrong.extend(state_differs(root, unit).filter(|_| verb != Verb::Disable));
        }
        let _ = fs::remove_dir_all(root.join("etc/systemd"));
    }
    assert!(wrong.is_empty(), "{} differ: {}", wrong.len(), wrong.join("\n\n"));
}

/// Something in the folders of units: its path below the root, and what it is.
#[derive(Debug, Clone)]
enum Put {
    Unit(&'static str, &'static str, String),
    DropIn(&'static str, &'static str, &'static str, String),
    Link(&'static str, String, String),
}

/// Where units are put: more often where they mostly are.
const FOLDERS: [&str; 9] = [
    LINKS,
    LINKS,
    "run/systemd/system",
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
    "usr/lib/systemd/system",
    "run/systemd/generator",
    "run/systemd/generator.late",
    "run/systemd/transient",
];

const UNITS: [&str; 9] = [
    "a.service",
    "b.service",
    "a.socket",
    "t@.service",
    "t@x.service",
    "t@y.service",
    "b-c@.timer",
    "m.mount",
    "z.target",
];

fn folder() -> impl Strategy<Value = &'static str> {
    prop::sample::select(FOLDERS.to_vec())
}

fn unit() -> impl Strategy<Value = &'static str> {
    prop::sample::select(UNITS.to_vec())
}

/// The release of this machine's systemctl.
fn version() -> u32 {
    let output = Command::new("systemctl").arg("--version").output();
    let output = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let version = output.unwrap_or_default();
    version.split_whitespace().nth(1).and_then(|it| it.parse().ok()).unwrap_or_default()
}

/// What most lists hold, and what makes some of them wrong.
const TARGETS: [&str; 9] = [
    "z.target",
    "z.target multi-user.target",
    "n@%i.target",
    "%p.target",
    "%N-%j.target",
    "%H.target",
    "\"z.target\" q.target",
    "z.target \\\n  # a comment\n  y.target",
    "",
];
const ALIASES: [&str; 6] =
    ["b.service", "other.service", "u@.service", "u@x.service", "other.socket", "%p.service"];
const ALSO: [&str; 6] =
    ["a.socket", "b.service", "t@x.service", "b-c@%i.timer", "no.service", "z.target m.mount"];
const ODD: [&str; 12] = [
    "x",
    "nonsense",
    "%m.service",
    "%Z",
    "m.mount",
    "t@.service",
    "../a.target.wants/a.service",
    "z.target.wants/a.service",
    "n@.target.requires/t@.service",
    "a.service.wants/t@x.service",
    "\"z.target",
    "a.service",
];

/// Keys that this machine's systemctl knows.
fn line() -> impl Strategy<Value = String> {
    let newer = if version() < 254 { "WantedBy" } else { "UpheldBy" };
    let of = |key: &'static str, values: &[&'static str]| {
        let value = prop::sample::select(values.to_vec());
        value.prop_map(move |value| format!("{key}={value}\n"))
    };
    let keys = ["WantedBy", "RequiredBy", "Alias", "Also", "DefaultInstance"];
    let odd = (prop::sample::select(keys.to_vec()), prop::sample::select(ODD.to_vec()));
    prop_oneof![
        6 => of("WantedBy", &TARGETS),
        2 => of(newer, &TARGETS),
        3 => of("RequiredBy", &TARGETS),
        4 => of("Alias", &ALIASES),
        4 => of("Also", &ALSO),
        3 => of("DefaultInstance", &["x", "y", "%p"]),
        2 => odd.prop_map(|(key, value)| format!("{key}={value}\n")),
    ]
}

fn text() -> impl Strategy<Value = String> {
    let lines = prop::collection::vec(line(), 0..4).prop_map(|lines| lines.concat());
    prop_oneof![
        30 => lines.prop_map(|lines| format!("[Unit]\nDescription=x\n[Install]\n{lines}")),
        3 => Just("[Unit]\n".to_owned()),
        1 => Just(String::new()),
        1 => Just("[Install\n".to_owned()),
    ]
}

fn put() -> impl Strategy<Value = Put> {
    let targets = prop::sample::select(vec![
        "/dev/null",
        "/opt/a.service",
        "/opt/t@.service",
        "a.service",
        "../system/b.service",
        "/usr/lib/systemd/system/a.service",
        "/usr/lib/systemd/system/t@.service",
        "t@.service",
    ]);
    let link = (folder(), unit(), targets.clone())
        .prop_map(|(folder, name, target)| Put::Link(folder, name.to_owned(), target.to_owned()));
    let names = ["z.target.wants", "z.target.requires", "a.service.d"];
    let wants = (folder(), prop::sample::select(names.to_vec()), unit(), targets).prop_map(
        |(folder, by, name, target)| Put::Link(folder, format!("{by}/{name}"), target.to_owned()),
    );
    let other = (
        folder(),
        prop::sample::select(vec!["u@.service", "other.service", "u@x.service"]),
        unit(),
    )
        .prop_map(|(folder, name, target)| {
            Put::Link(folder, name.to_owned(), format!("/usr/lib/systemd/system/{target}"))
        });
    let drop_in = prop::sample::select(vec!["10-a.conf", "20-b.conf", "30-c.txt"]);
    prop_oneof![
        6 => (folder(), unit(), text()).prop_map(|(folder, unit, text)| Put::Unit(folder, unit, text)),
        1 => (folder(), unit(), drop_in, text())
            .prop_map(|(folder, unit, name, text)| Put::DropIn(folder, unit, name, text)),
        1 => link,
        1 => wants,
        1 => other,
    ]
}

fn preset() -> impl Strategy<Value = String> {
    let lines = [
        "enable a.*",
        "disable a.*",
        "enable t@.service x y",
        "disable t@*",
        "enable b?c@.timer d",
        "enable [!a]*",
        "disable *",
        "enable *.service",
        "enable a.service x",
        "# nothing",
    ];
    let line = prop::sample::select(lines.to_vec());
    prop::collection::vec(line, 0..3).prop_map(|lines| lines.join("\n"))
}

fn done() -> impl Strategy<Value = (Verb, &'static str)> {
    let verbs = vec![Verb::Enable, Verb::Enable, Verb::Disable, Verb::Preset];
    let names =
        [&UNITS[..], &["u@x.service", "other.service", "t@y.service", "no.service"]].concat();
    (prop::sample::select(verbs), prop::sample::select(names))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn units_of_every_kind_are_enabled_and_disabled_as_systemctl_does(
        first in text(),
        second in text(),
        third in text(),
        puts in prop::collection::vec(put(), 0..7),
        presets in (preset(), preset()),
        verbs in prop::collection::vec(done(), 1..4),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(root, "usr/lib/systemd/system/a.service", &first);
        write(root, "usr/lib/systemd/system/t@.service", &second);
        for unit in ["b.service", "a.socket", "b-c@.timer", "m.mount", "other.socket"] {
            write(root, &format!("usr/lib/systemd/system/{unit}"), &third);
        }
        write(root, "usr/lib/systemd/system/z.target", "[Unit]\n");
        write(root, "opt/a.service", &first);
        write(root, "opt/t@.service", &second);
        write(root, "etc/systemd/system-preset/20-a.preset", &presets.0);
        write(root, "usr/lib/systemd/system-preset/10-b.preset", &presets.1);
        for put in &puts {
            match put {
                Put::Unit(folder, unit, text) => write(root, &format!("{folder}/{unit}"), text),
                Put::DropIn(folder, unit, name, text) => {
                    // A link may stand where the folder would be.
                    write(root, &format!("{folder}/{unit}.d/{name}"), text);
                }
                Put::Link(folder, name, target) => {
                    let path = root.join(folder).join(name);
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    let _ = fs::remove_file(&path);
                    symlink(target, path).unwrap();
                }
            }
        }
        remove_circles(root);
        let mut wrong = Vec::new();
        for (verb, unit) in verbs {
            let (fine, differs) = differs(root, verb, unit);
            wrong.extend(differs);
            if !fine {
                break;
            }
            wrong.extend(state_differs(root, unit));
        }
        prop_assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    }
}

/// systemctl fails over any link that leads in a circle, whatever it is asked to do.
fn remove_circles(root: &Path) {
    let tree = Tree::open(root).unwrap();
    for link in links(root).into_keys() {
        if real(&tree, &link, true).unwrap().is_none() {
            fs::remove_file(root.join(link.trim_start_matches('/'))).unwrap();
        }
    }
}

/// How many trees are tried: more in a longer run.
fn cases() -> u32 {
    std::env::var("TREAD_INSTALL_CASES").ok().and_then(|it| it.parse().ok()).unwrap_or(64)
}
