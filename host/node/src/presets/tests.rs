#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::tree::Tree;
use crate::view::Overlay;
use proptest::prelude::*;

fn of(presets: &Presets, name: &str) -> Preset {
    presets.of(UnitName::of(name).unwrap())
}

fn presets(text: &str) -> Presets {
    let mut presets = Presets::default();
    presets.add(text);
    presets
}

#[test]
fn the_first_line_that_matches_decides() {
    let presets = presets(
        "# a comment\n; another\n\nenable crio.service\ndisable cri*\n ignore  zincati.* \nenable a b.service\nfoo bar.service\nenable\nenable getty@.service tty1 tty2\ndisable getty@*\nenable kubelet.[!s]*\nenable vm[0-9].service\ndisable x?.[[:lower:]]ocket\nenable *.target\ndisable *\n",
    );
    let made = vec!["getty@tty1.service".to_owned(), "getty@tty2.service".to_owned()];
    let cases = [
        ("crio.service", Preset::Enable),
        ("crio-wipe.service", Preset::Disable),
        ("zincati.service", Preset::Ignore),
        ("b.service", Preset::Disable),
        ("bar.service", Preset::Disable),
        ("getty@.service", Preset::EnableInstances(made)),
        ("getty@tty1.service", Preset::Enable),
        ("getty@tty3.service", Preset::Disable),
        ("kubelet.timer", Preset::Enable),
        ("kubelet.socket", Preset::Disable),
        ("vm7.service", Preset::Enable),
        ("vmx.service", Preset::Disable),
        ("x1.socket", Preset::Disable),
        ("kubelet-dependencies.target", Preset::Enable),
    ];
    for (name, expected) in cases {
        assert_eq!(of(&presets, name), expected, "{name}");
    }
}

#[test]
fn what_no_line_matches_is_enabled_as_systemd_has_it() {
    assert_eq!(of(&Presets::default(), "a.service"), Preset::Enable);
    assert_eq!(of(&presets("disable b.*"), "a.service"), Preset::Enable);
}

#[test]
fn a_file_hides_one_of_its_name_in_a_later_folder_and_names_give_the_order() {
    let dir = tempfile::tempdir().unwrap();
    let tree = Tree::open(dir.path()).unwrap();
    let mut view = Overlay::new(&tree);
    let mut set = |path: &str, text: &str| view.set(path, Entry::File(Some(text.to_owned())));
    set("/usr/lib/systemd/system-preset/90-default.preset", "disable *");
    set("/usr/lib/systemd/system-preset/80-a.preset", "enable a.*\nenable b.*");
    set("/etc/systemd/system-preset/80-a.preset", "enable b.*");
    set("/usr/local/lib/systemd/system-preset/10-c.preset", "disable c.*");
    set("/run/systemd/system-preset/20-c.preset", "enable c.*\nenable d.*\nenable e.*");
    set("/usr/lib/systemd/system-preset/15-e.preset", "disable e.*");
    set("/usr/lib/systemd/system-preset/01-f.conf", "enable f.*");
    set("/data/presets", "enable g.*");
    view.set("/etc/systemd/system-preset/15-e.preset", Entry::Link("/dev/null".to_owned()));
    let linked = Entry::Link("/data/presets".to_owned());
    view.set("/etc/systemd/system-preset/30-g.preset", linked);
    let presets = Presets::read(&view).unwrap();
    let cases = [
        ("a.service", Preset::Disable),
        ("b.service", Preset::Enable),
        ("c.service", Preset::Disable),
        ("d.service", Preset::Enable),
        ("e.service", Preset::Enable),
        ("f.service", Preset::Disable),
        ("g.service", Preset::Enable),
    ];
    for (name, expected) in cases {
        assert_eq!(of(&presets, name), expected, "{name}");
    }
}

proptest! {
    #[test]
    fn no_preset_makes_it_panic(text in "((enable|disable|ignore) [\\[\\]!^*?:a-c@.-]{0,12}( [a-b]){0,2}\n|\\PC){0,6}") {
        of(&presets(&text), "a@b.service");
    }

    /// A pattern without anything special matches itself and nothing else.
    #[test]
    fn plain_patterns_match_themselves(pattern in "[a-c.@]{0,6}", name in "[a-c.@]{0,6}") {
        prop_assert!(glob::matches(&pattern, &pattern));
        prop_assert_eq!(glob::matches(&pattern, &name), pattern == name);
        let (wide, around) = (format!("*{name}*"), format!("{pattern}{name}{pattern}"));
        prop_assert!(glob::matches(&wide, &around));
    }
}
