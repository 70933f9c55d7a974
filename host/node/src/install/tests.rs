#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::tree::Tree;
use crate::view::Overlay;
use proptest::prelude::*;

const USR: &str = "/usr/lib/systemd/system";
const ETC: &str = "/etc/systemd/system";

/// Paths, and the text or the target of each.
type Entries = &'static [(&'static str, &'static str)];

/// A host with some units: `(path, text)`, and links: `(path, -> target)`.
fn view<'t>(tree: &'t Tree, entries: &[(&str, &str)]) -> Overlay<'t> {
    let mut view = Overlay::new(tree);
    for (path, text) in entries {
        let path = path.replacen("usr:", &format!("{USR}/"), 1);
        let path = path.replacen("etc:", &format!("{ETC}/"), 1);
        let entry = match text.strip_prefix("-> ") {
            Some(target) => Entry::Link(target.to_owned()),
            None => Entry::File(Some((*text).to_owned())),
        };
        view.set(&path, entry);
    }
    view
}

fn empty() -> (tempfile::TempDir, Tree) {
    let dir = tempfile::tempdir().unwrap();
    let tree = Tree::open(dir.path()).unwrap();
    (dir, tree)
}

/// Short: without the folder of links, and `usr:` for the folder of the image.
fn short(path: &str) -> String {
    let path = path.strip_prefix(&format!("{ETC}/")).unwrap_or(path);
    path.replace(&format!("{USR}/"), "usr:")
}

fn enabled(entries: &[(&str, &str)], unit: &str) -> Result<Vec<String>, String> {
    let (_dir, tree) = empty();
    let mut facts = Facts::default();
    facts.set('m', "0123");
    let links = enable(&view(&tree, entries), &facts, unit).map_err(|error| error.to_string())?;
    Ok(links.iter().map(|it| format!("{} -> {}", short(&it.path), short(&it.target))).collect())
}

const CRIO: (&str, &str) = (
    "usr:crio.service",
    "[Install]\nWantedBy=multi-user.target\nRequiredBy=kubelet.service\nUpheldBy=a.target\nAlias=cri-o.service\nAlso=crio.socket\n",
);
const GETTY: (&str, &str) =
    ("usr:getty@.service", "[Install]\nWantedBy=getty.target\nDefaultInstance=tty1\n");

#[test]
fn enabling_makes_the_links_that_the_unit_asks_for() {
    let socket = ("usr:crio.socket", "[Install]\nWantedBy=sockets.target\n");
    let all = [
        "cri-o.service -> usr:crio.service",
        "multi-user.target.wants/crio.service -> usr:crio.service",
        "kubelet.service.requires/crio.service -> usr:crio.service",
        "a.target.upholds/crio.service -> usr:crio.service",
    ];
    assert_eq!(enabled(&[CRIO], "crio.service").unwrap(), all);
    let with_socket = enabled(&[CRIO, socket], "crio.service").unwrap();
    assert_eq!(with_socket.last().unwrap(), "sockets.target.wants/crio.socket -> usr:crio.socket");
    let cases: [(Entries, &str, &[&str]); 8] = [
        (
            &[GETTY],
            "getty@.service",
            &["getty.target.wants/getty@tty1.service -> usr:getty@.service"],
        ),
        (
            &[GETTY],
            "getty@tty7.service",
            &["getty.target.wants/getty@tty7.service -> usr:getty@.service"],
        ),
        // The admin's file hides the image's, and a drop-in adds to both.
        (
            &[
                ("usr:a.service", "[Install]\nWantedBy=x.target\n"),
                ("etc:a.service", "[Install]\nWantedBy=y.target\n"),
            ],
            "a.service",
            &["y.target.wants/a.service -> a.service"],
        ),
        (
            &[
                ("usr:a.service", "[Install]\nWantedBy=x.target\n"),
                ("etc:a.service.d/10.conf", "[Install]\nWantedBy=y.target\n"),
            ],
            "a.service",
            &[
                "x.target.wants/a.service -> usr:a.service",
                "y.target.wants/a.service -> usr:a.service",
            ],
        ),
        // A link that leads to the same unit in another way stays.
        (
            &[
                ("usr:a.service", "[Install]\nWantedBy=x.target\n"),
                ("etc:x.target.wants/a.service", "-> ../a.service"),
            ],
            "a.service",
            &["x.target.wants/a.service -> ../a.service"],
        ),
        (&[("usr:a.service", "[Service]\n")], "a.service", &[]),
        (
            &[("usr:a.service", "[Install]\nWantedBy=%m-%p.target\n")],
            "a.service",
            &["0123-a.target.wants/a.service -> usr:a.service"],
        ),
        (
            &[
                ("/opt/a.service", "[Install]\nWantedBy=x.target\n"),
                ("etc:a.service", "-> /opt/a.service"),
            ],
            "a.service",
            &["a.service -> /opt/a.service", "x.target.wants/a.service -> /opt/a.service"],
        ),
    ];
    for (entries, unit, expected) in cases {
        assert_eq!(enabled(entries, unit).unwrap(), expected, "{unit} of {entries:?}");
    }
}

#[test]
fn what_systemctl_refuses_is_an_error_with_the_way_out() {
    let cases: [(Entries, &str, &str); 12] = [
        (&[], "a.service", "there is no such unit"),
        (&[], "../a.service", "no name that a unit can have"),
        (
            &[("etc:a.service", "-> /dev/null")],
            "a.service",
            "/etc/systemd/system/a.service masks it; unmask it first",
        ),
        (
            &[("usr:a.service", "x"), ("etc:b.service", "-> /usr/lib/systemd/system/a.service")],
            "b.service",
            "another name of a unit; name the unit itself",
        ),
        (&[("/run/systemd/generator/a.service", "x")], "a.service", "made by a generator"),
        (
            &[("usr:a.service", "[Install]\nAlias=a.socket\n")],
            "a.service",
            "cannot have the other name `a.socket`",
        ),
        (
            &[("usr:a.service", "[Install]\nWantedBy=x\n")],
            "a.service",
            "`x` in its [Install] section is no name of a unit",
        ),
        (
            &[("usr:a@.service", "[Install]\nWantedBy=x.target\n")],
            "a@.service",
            "name an instance, or set DefaultInstance=",
        ),
        (
            &[("usr:a.service", "[Install]\nWantedBy=%H.target\n")],
            "a.service",
            "`%H.target` in its [Install] section has the specifier `%H`",
        ),
        (
            &[("usr:a.service", "[Install]\nAlias=b.service\n"), ("etc:b.service", "mine")],
            "a.service",
            "/etc/systemd/system/b.service is there already",
        ),
        (
            &[("usr:a.service", "[Install\n")],
            "a.service",
            "/usr/lib/systemd/system/a.service: line 1 has a `[` without its `]`",
        ),
        (&[("etc:a.service", "-> b.service")], "a.service", "its link leads to b.service"),
    ];
    for (entries, unit, expected) in cases {
        let error = enabled(entries, unit).unwrap_err();
        assert!(error.contains(expected), "{unit}: {error}");
    }
}

#[test]
fn disabling_removes_the_links_to_a_unit_under_all_names() {
    let (_dir, tree) = empty();
    let view = view(
        &tree,
        &[
            CRIO,
            ("etc:cri-o.service", "-> /usr/lib/systemd/system/crio.service"),
            ("etc:c.service", "-> cri-o.service"),
            ("etc:multi-user.target.wants/crio.service", "-> ../crio.service"),
            (
                "etc:multi-user.target.wants/other.service",
                "-> /usr/lib/systemd/system/other.service",
            ),
            ("etc:gone.target.wants/gone@x.service", "-> /usr/lib/systemd/system/gone@.service"),
        ],
    );
    let facts = Facts::default();
    let removed = |unit| {
        let removed = disable(&view, &facts, unit).unwrap();
        removed.iter().map(|it| short(it)).collect::<Vec<String>>()
    };
    assert_eq!(
        removed("crio.service"),
        ["c.service", "cri-o.service", "multi-user.target.wants/crio.service"]
    );
    assert_eq!(removed("gone@.service"), ["gone.target.wants/gone@x.service"]);
    assert_eq!(removed("nothing.service"), [""; 0]);
}

#[test]
fn what_a_config_says_of_a_unit_holds_if_no_link_is_lacking_or_left() {
    let (_dir, tree) = empty();
    let facts = Facts::default();
    let mut view = view(&tree, &[("usr:a.service", "[Install]\nWantedBy=x.target\n")]);
    let link = format!("{ETC}/x.target.wants/a.service");
    let of = |view: &Overlay<'_>, enabled| lacks(view, &facts, "a.service", enabled).unwrap();
    assert_eq!((of(&view, true), of(&view, false)), (vec![link.clone()], vec![]));
    assert_eq!(state(&view, &facts, "a.service").unwrap(), State::Disabled);
    for made in enable(&view, &facts, "a.service").unwrap() {
        view.set(&made.path, Entry::Link(made.target));
    }
    assert_eq!((of(&view, true), of(&view, false)), (vec![], vec![link]));
    assert_eq!(state(&view, &facts, "a.service").unwrap(), State::Enabled);
}

#[test]
fn presets_enable_disable_or_leave_a_unit() {
    let (_dir, tree) = empty();
    let entries = [
        CRIO,
        GETTY,
        ("etc:multi-user.target.wants/crio.service", "-> /usr/lib/systemd/system/crio.service"),
    ];
    let facts = Facts::default();
    let of = |preset_line: &str, unit: &str| {
        let mut view = view(&tree, &entries);
        let file = "/usr/lib/systemd/system-preset/90.preset";
        view.set(file, Entry::File(Some(preset_line.to_owned())));
        let change = preset(&view, &facts, &Presets::read(&view).unwrap(), unit).unwrap();
        let links: Vec<String> = change.links.iter().map(|it| short(&it.path)).collect();
        (change.removed.len(), links)
    };
    assert_eq!(of("disable *", "crio.service"), (1, vec![]));
    assert_eq!(of("ignore crio.*", "crio.service"), (0, vec![]));
    assert_eq!(of("enable *", "crio.service").1.len(), 4);
    let made = ["getty.target.wants/getty@a.service", "getty.target.wants/getty@b.service"];
    assert_eq!(of("enable getty@.service a b", "getty@.service").1, made);
}

/// Texts of units that a stranger wrote.
fn hostile() -> impl Strategy<Value = String> {
    let line = "(WantedBy|RequiredBy|UpheldBy|Alias|Also|DefaultInstance)=(\\.\\./|/|%[a-zA-Z%]|[ab]|@|\\.|service|target|wants| |\\\\|\"|\\PC){0,8}\n";
    prop::collection::vec(line, 0..5).prop_map(|lines| format!("[Install]\n{}", lines.concat()))
}

proptest! {
    #[test]
    fn links_stay_below_the_folder_of_links_whatever_a_unit_says(
        first in hostile(),
        second in "\\PC{0,40}",
        target in "(/|\\.\\./|[ab]\\.service|b@\\.service){0,4}",
        unit in prop::sample::select(vec!["a.service", "b@x.service", "b@.service"]),
    ) {
        let (_dir, tree) = empty();
        let view = view(&tree, &[
            ("usr:a.service", &first),
            ("etc:b@.service", &first),
            ("etc:a.service.d/a.conf", &second),
            ("etc:b.service", &format!("-> {target}")),
            ("etc:x.wants/a.service", &format!("-> {target}")),
        ]);
        let mut facts = Facts::default();
        facts.set('H', "../host");
        let below = |path: &str| {
            let rest = path.strip_prefix("/etc/systemd/system/").unwrap_or("..");
            rest.split('/').all(|name| !matches!(name, "" | "." | "..")) && rest.split('/').count() <= 2
        };
        for link in enable(&view, &facts, unit).unwrap_or_default() {
            prop_assert!(below(&link.path), "{link:?}");
        }
        for path in disable(&view, &facts, unit).unwrap_or_default() {
            prop_assert!(below(&path), "{path}");
        }
        let _ = state(&view, &facts, unit);
        let _ = state(&view, &facts, "b.service");
        for link in preset(&view, &facts, &Presets::default(), unit).unwrap_or_default().links {
            prop_assert!(below(&link.path), "{link:?}");
        }
    }
}
