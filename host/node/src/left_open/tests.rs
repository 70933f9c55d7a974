#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use crate::applied::Applied;
use crate::change::{Adopt, Order, OrderError, adopt, change};
use crate::documents::{Document, Documents, digest};
use crate::host::ThisHost;
use crate::journal::Journal;
use crate::tree::Tree;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use tread_model::plan::VerifiablePlan;

const WANTS: &str = "/etc/systemd/system/multi-user.target.wants";
const TEXT: &str = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n";

struct Bed(tempfile::TempDir);

/// A config with these units, as they stand in Ignition.
fn config(units: &str) -> Documents {
    let text = format!(
        r#"{{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {{"name": "rendered-worker-1",
                          "labels": {{"machineconfiguration.openshift.io/role": "worker"}}}},
            "spec": {{"config": {{"ignition": {{"version": "3.4.0"}},
                      "systemd": {{"units": [{units}]}}}}}}}}"#
    );
    Documents(vec![Document { name: "config".to_owned(), text }])
}

/// A unit `a.service` with a file, and what else is said of it.
fn own(rest: &str) -> String {
    let text = TEXT.replace('\n', "\\n");
    format!(r#"{{"name": "a.service", "contents": "{text}"{rest}}}"#)
}

impl Bed {
    /// A host with this preset, where a config without units was adopted.
    fn with(preset: &str) -> Bed {
        let bed = Bed(tempfile::tempdir().unwrap());
        bed.file("/usr/lib/systemd/system-preset/90.preset", preset);
        fs::create_dir_all(bed.path("/etc/systemd/system")).unwrap();
        let tree = bed.tree();
        let host = ThisHost::read(&tree, false).unwrap();
        let label = |path: &str, kind| host.label(path, kind);
        let adoption =
            adopt(&tree, &host, &label, ("adopt", config(""), Adopt::Ask), Vec::new()).unwrap();
        let journal = Journal::open(&tree).unwrap();
        journal.write(&adoption.ready.record, &adoption.ready.new).unwrap();
        journal.finish().unwrap();
        bed
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path.trim_start_matches('/'))
    }

    fn tree(&self) -> Tree {
        Tree::open(self.0.path()).unwrap()
    }

    fn file(&self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
    }

    fn link(&self, path: &str, target: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        symlink(target, self.path(path)).unwrap();
    }

    fn apply(&self, units: &str) {
        self.try_to_apply(units).unwrap();
    }

    fn try_to_apply(&self, units: &str) -> Result<(), OrderError> {
        let (tree, to) = (self.tree(), config(units));
        let from = Applied::read(&tree).unwrap().unwrap().documents;
        let digest = |documents: &Documents| digest(&documents.config().unwrap()).unwrap();
        let plan = VerifiablePlan::always_allowed(digest(&from), digest(&to));
        let order = Order {
            id: "1".to_owned(),
            documents: to,
            plan,
            accept: Vec::new(),
            others: Vec::new(),
        };
        let host = ThisHost::read(&tree, false).unwrap();
        let label = |path: &str, kind| host.label(path, kind);
        let change = change(&tree, &host, &label, &order)?;
        let journal = Journal::open(&tree).unwrap();
        journal.write(&change.ready.record, &change.ready.new).unwrap();
        journal.finish().unwrap();
        Ok(())
    }

    /// Where the link leads that enables a unit.
    fn enabled(&self, unit: &str) -> Option<String> {
        let target = fs::read_link(self.path(&format!("{WANTS}/{unit}"))).ok()?;
        Some(target.to_str().unwrap().to_owned())
    }
}

const OWN: Option<&str> = Some("/etc/systemd/system/a.service");
const SHIPPED: Option<&str> = Some("/usr/lib/systemd/system/a.service");

#[test]
fn a_unit_that_is_new_on_the_host_is_enabled_as_its_presets_say() {
    for (preset, expected) in [
        ("enable a.service\ndisable *\n", OWN),
        ("disable *\n", None),
        ("ignore a.service\n", None),
        ("", OWN),
    ] {
        let bed = Bed::with(preset);
        bed.apply(&own(""));
        assert_eq!(bed.enabled("a.service").as_deref(), expected, "{preset:?}");
        // What an admin does by hand afterwards stays, as long as no config says otherwise.
        let _ = fs::remove_file(bed.path(&format!("{WANTS}/a.service")));
        bed.apply(&own(r#", "dropins": [{"name": "1.conf", "contents": "[Unit]\n"}]"#));
        assert_eq!(bed.enabled("a.service"), None, "{preset:?}");
        bed.apply("");
        assert_eq!(bed.enabled("a.service"), None, "{preset:?}");
    }
}

#[test]
fn a_unit_of_which_no_config_says_it_any_more_becomes_what_presets_say() {
    for (preset, expected) in
        [("enable a.service\n", OWN), ("disable *\n", None), ("ignore *\n", None)]
    {
        for before in [r#", "enabled": true"#, r#", "enabled": false"#] {
            let bed = Bed::with(preset);
            bed.apply(&own(before));
            bed.apply(&own(""));
            assert_eq!(bed.enabled("a.service").as_deref(), expected, "{preset:?} {before}");
        }
    }
}

#[test]
fn a_shipped_unit_that_goes_from_the_config_becomes_what_presets_say() {
    for (preset, expected) in
        [("enable a.service\n", SHIPPED), ("disable *\n", None), ("ignore *\n", None)]
    {
        let bed = Bed::with(preset);
        bed.file("/usr/lib/systemd/system/a.service", TEXT);
        bed.apply(r#"{"name": "a.service", "enabled": true}"#);
        assert_eq!(bed.enabled("a.service").as_deref(), SHIPPED);
        bed.apply("");
        assert_eq!(bed.enabled("a.service").as_deref(), expected, "{preset:?}");
    }
}

#[test]
fn what_was_enabled_before_tread_is_so_again_whatever_presets_say() {
    for before in ["true", "false"] {
        let bed = Bed::with("disable *\n");
        bed.file("/usr/lib/systemd/system/a.service", TEXT);
        bed.link(&format!("{WANTS}/a.service"), "../../../../usr/lib/systemd/system/a.service");
        bed.apply(&format!(r#"{{"name": "a.service", "enabled": {before}}}"#));
        assert_eq!(bed.enabled("a.service").is_some(), before == "true");
        bed.apply("");
        let target = bed.enabled("a.service");
        let expected = Some("../../../../usr/lib/systemd/system/a.service");
        assert_eq!(target.as_deref(), expected, "enabled: {before}");
        assert!(Applied::read(&bed.tree()).unwrap().unwrap().originals.is_empty());
    }
}

#[test]
fn a_unit_that_the_host_has_and_of_which_nothing_was_ever_said_is_left_as_it_is() {
    let bed = Bed::with("disable *\n");
    bed.file("/usr/lib/systemd/system/a.service", TEXT);
    bed.link(&format!("{WANTS}/a.service"), "/usr/lib/systemd/system/a.service");
    let dropin = r#""dropins": [{"name": "1.conf", "contents": "[Unit]\n"}]"#;
    bed.apply(&format!(r#"{{"name": "a.service", {dropin}}}"#));
    assert_eq!(bed.enabled("a.service").as_deref(), SHIPPED);
    bed.apply(&own(""));
    assert_eq!(bed.enabled("a.service").as_deref(), SHIPPED);
    bed.apply("");
    assert_eq!(bed.enabled("a.service").as_deref(), SHIPPED);
}

#[test]
fn a_unit_that_the_image_enabled_is_disabled_though_the_configs_text_has_no_install_section() {
    let bed = Bed::with("enable *\n");
    bed.file("/usr/lib/systemd/system/a.service", TEXT);
    bed.link(&format!("{WANTS}/a.service"), "/usr/lib/systemd/system/a.service");
    let unit = |rest: &str| {
        let text = "[Service]\\nExecStart=/bin/true\\n";
        format!(r#"{{"name": "a.service", "contents": "{text}"{rest}}}"#)
    };
    bed.apply(&unit(""));
    assert_eq!(bed.enabled("a.service").as_deref(), SHIPPED, "it is left as it is");
    bed.apply(&unit(r#", "enabled": false"#));
    assert_eq!(bed.enabled("a.service"), None);
    bed.apply("");
    assert_eq!(bed.enabled("a.service").as_deref(), SHIPPED);
}

#[test]
fn a_unit_that_goes_takes_the_links_with_it_that_presets_made() {
    let bed = Bed::with("enable a.service\n");
    bed.apply(&own(""));
    assert_eq!(bed.enabled("a.service").as_deref(), OWN);
    bed.apply("");
    assert_eq!(bed.enabled("a.service"), None);
    assert!(fs::symlink_metadata(bed.path(OWN.unwrap())).is_err());
}

#[test]
fn presets_that_the_config_itself_brings_are_read() {
    let bed = Bed::with("disable *\n");
    let file = r#"{"path": "/etc/systemd/system-preset/10.preset",
                   "contents": {"source": "data:,enable%20a.service%0A"}}"#;
    let mut to = config(&own(""));
    to.0[0].text = to.0[0]
        .text
        .replace(r#""systemd": {"#, &format!(r#""storage": {{"files": [{file}]}}, "systemd": {{"#));
    let tree = bed.tree();
    let from = Applied::read(&tree).unwrap().unwrap().documents;
    let digest = |documents: &Documents| digest(&documents.config().unwrap()).unwrap();
    let plan = VerifiablePlan::always_allowed(digest(&from), digest(&to));
    let order =
        Order { id: "1".to_owned(), documents: to, plan, accept: Vec::new(), others: Vec::new() };
    let host = ThisHost::read(&tree, false).unwrap();
    let label = |path: &str, kind| host.label(path, kind);
    let change = change(&tree, &host, &label, &order).unwrap();
    let paths: Vec<&str> = change.ready.record.entries.iter().map(|it| it.path.as_str()).collect();
    assert!(paths.contains(&&*format!("{WANTS}/a.service")), "{paths:?}");
}

#[test]
fn no_preset_makes_a_unit_of_a_config_one_of_treads_own() {
    let alias = "tread-operation.service";
    for (install, path, own) in [
        (format!("Alias={alias}"), format!("/etc/systemd/system/{alias}"), alias),
        (
            "RequiredBy=tread-settle.service".to_owned(),
            "/etc/systemd/system/tread-settle.service.requires/a.service".to_owned(),
            "tread-settle.service",
        ),
    ] {
        let text = format!("[Service]\\nExecStart=/bin/true\\n[Install]\\n{install}\\n");
        let unit = |rest: &str| format!(r#"{{"name": "a.service", "contents": "{text}"{rest}}}"#);
        let bed = Bed::with("enable *\n");
        for rest in ["", r#", "enabled": true"#] {
            let why = bed.try_to_apply(&unit(rest)).unwrap_err().to_string();
            let said = format!("unit:a.service: {path} would change tread's own {own}");
            assert!(why.contains(&said), "{rest}: {why}");
            assert!(fs::symlink_metadata(bed.path(&path)).is_err(), "nothing was written");
        }
        // One that is there already goes with its unit.
        let bed = Bed::with("disable *\n");
        bed.apply(&unit(""));
        bed.link(&path, "/etc/systemd/system/a.service");
        bed.apply("");
        assert!(fs::symlink_metadata(bed.path(&path)).is_err(), "it is gone");
    }
}

#[test]
fn a_unit_that_goes_takes_no_link_with_it_that_enables_one_of_treads_own() {
    let link = "/etc/systemd/system/sysinit.target.wants/tread-settle.service";
    let settle = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=sysinit.target\n";
    let text = "[Service]\\nExecStart=/bin/true\\n[Install]\\nAlso=tread-settle.service\\n";
    let bed = Bed::with("disable *\n");
    bed.file("/etc/systemd/system/tread-settle.service", settle);
    bed.link(link, "/etc/systemd/system/tread-settle.service");
    bed.apply(&format!(r#"{{"name": "a.service", "contents": "{text}"}}"#));
    bed.apply("");
    assert!(fs::symlink_metadata(bed.path(link)).is_ok(), "it settles at the next boot");
}
