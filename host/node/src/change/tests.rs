#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod booted;
mod orders;
mod passwords;
mod units;

use super::*;
use crate::desired::{Enabling, Keys};
use crate::journal::Journal;
use crate::tree::{Attribute, Kind, Owner};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tread_model::config::{NodeConfig, Unit};
use tread_model::digest::Digest;

/// A host whose root is whoever runs the tests.
struct Own;

impl Host for Own {
    fn user(&self, path: &str, name: &str) -> Result<u32, String> {
        match name {
            "root" => Ok(rustix::process::geteuid().as_raw()),
            name => Err(format!("{path} is to belong to {name}, and no such user is there")),
        }
    }

    fn group(&self, _: &str, _: &str) -> Result<u32, String> {
        Ok(rustix::process::getegid().as_raw())
    }

    fn enablement(
        &self,
        config: &NodeConfig<'_>,
        _: &Desired<'_>,
        _: &[Target<'_>],
    ) -> BTreeMap<String, Result<Vec<Enabling>, String>> {
        let links = |unit: &Unit<'_>| {
            let enabled = unit.enabled?;
            let at = format!("/etc/systemd/system/{}", unit.name);
            let path = at.replace("system/", "system/multi-user.target.wants/");
            let link = Enabling { path, target: enabled.then_some(at) };
            Some((unit.name.to_string(), Ok(vec![link])))
        };
        config.units.iter().filter_map(links).collect()
    }

    fn left_open(
        &self,
        _: &[Target<'_>],
        _: &[crate::desired::LeftOpen],
    ) -> Vec<(String, Enabling)> {
        Vec::new()
    }

    fn is_empty(&self, _: &str) -> bool {
        false
    }

    fn keys(&self, user: &str) -> Result<Keys, String> {
        let owner = Owner { uid: 1000, gid: 1000, mode: 0 };
        Ok(Keys { path: format!("/home/{user}/.ssh/authorized_keys"), owner })
    }

    fn password(&self, user: &str) -> Result<(), String> {
        match user {
            "core" => Ok(()),
            user => Err(format!("no user {user}")),
        }
    }
}

struct Bed(tempfile::TempDir);

impl Bed {
    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path.trim_start_matches('/'))
    }

    fn tree(&self) -> Tree {
        Tree::open(self.0.path()).unwrap()
    }

    fn file(&self, path: &str, text: &str) {
        std::fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        std::fs::write(self.path(path), text).unwrap();
    }

    fn text(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.path(path)).ok()
    }

    /// A node that has this config, to the byte.
    fn with(config: &Documents) -> Bed {
        let bed = Bed(tempfile::tempdir().unwrap());
        let nothing = documents(&[], "");
        bed.adopt(nothing.clone(), Adopt::Ask).unwrap();
        bed.apply(config, &[]).unwrap();
        bed
    }

    fn adopt(&self, documents: Documents, what: Adopt) -> Result<Vec<Drift>, OrderError> {
        let tree = self.tree();
        let journal = Journal::open(&tree).unwrap();
        let adoption = adopt(&tree, &Own, &no_label, ("adopt", documents, what), Vec::new())?;
        journal.write(&adoption.ready.record, &adoption.ready.new).unwrap();
        journal.finish().unwrap();
        assert_eq!(adoption.plan.is_some(), what == Adopt::Overwrite && !adoption.found.is_empty());
        Ok(adoption.found)
    }

    /// Carries a plan of these steps out, as far as files are concerned.
    fn apply(
        &self,
        to: &Documents,
        steps: &[tread_model::plan::Step],
    ) -> Result<Vec<String>, OrderError> {
        self.apply_by(&Own, to, steps)
    }

    fn apply_by(
        &self,
        host: &dyn Host,
        to: &Documents,
        steps: &[tread_model::plan::Step],
    ) -> Result<Vec<String>, OrderError> {
        let tree = self.tree();
        let from = Applied::read(&tree).unwrap().unwrap().documents;
        let plan = plan(&from, to, steps);
        let order = Order {
            id: "1".to_owned(),
            documents: to.clone(),
            plan,
            accept: Vec::new(),
            others: Vec::new(),
        };
        let change = change(&tree, host, &no_label, &order)?;
        let journal = Journal::open(&tree)?;
        journal.write(&change.ready.record, &change.ready.new)?;
        journal.finish()?;
        Ok(change.differs)
    }
}

fn no_label(_: &str, _: Kind) -> Result<Option<Attribute>, String> {
    Ok(None)
}

/// A MachineConfig with these files, and with what else its Ignition config has.
fn documents(files: &[(&str, &str)], rest: &str) -> Documents {
    let file = |(path, text): &(&str, &str)| {
        let source = format!("data:,{}", text.replace(' ', "%20"));
        format!(r#"{{"path": "{path}", "contents": {{"source": "{source}"}}}}"#)
    };
    let files: Vec<String> = files.iter().map(file).collect();
    let text = format!(
        r#"{{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {{"name": "rendered-worker-1",
                          "labels": {{"machineconfiguration.openshift.io/role": "worker"}}}},
            "spec": {{"config": {{"ignition": {{"version": "3.4.0"}},
                                  "storage": {{"files": [{}]}}{rest}}}}}}}"#,
        files.join(", ")
    );
    Documents(vec![crate::documents::Document { name: "config.yaml".to_owned(), text }])
}

/// A plan between two configs; without steps it is the one that is always allowed.
fn plan(from: &Documents, to: &Documents, steps: &[tread_model::plan::Step]) -> VerifiablePlan {
    let digest =
        |documents: &Documents| crate::documents::digest(&documents.config().unwrap()).unwrap();
    let mut plan = VerifiablePlan::always_allowed(digest(from), digest(to));
    if !steps.is_empty() {
        plan.steps = steps.to_vec();
        plan.digest = plan.computed_digest();
    }
    plan
}

#[test]
fn a_config_is_applied_and_the_next_one_begins_at_it() {
    let first = documents(&[("/etc/a", "one"), ("/etc/b", "stays")], "");
    let bed = Bed::with(&first);
    assert_eq!(bed.text("/etc/a").as_deref(), Some("one"));
    let second = documents(&[("/etc/a", "two"), ("/etc/b", "stays")], "");
    let differs = bed.apply(&second, &[tread_model::plan::Step::Write]).unwrap();
    assert_eq!(differs, ["file:/etc/a"]);
    assert_eq!(bed.text("/etc/a").as_deref(), Some("two"));
    let applied = Applied::read(&bed.tree()).unwrap().unwrap();
    assert_eq!(applied.documents, second);
}

#[test]
fn what_a_config_no_longer_has_becomes_what_it_was_before_or_what_the_system_ships_or_goes() {
    let bed = Bed::with(&documents(&[], ""));
    bed.file("/etc/before", "the host's own");
    bed.file("/usr/etc/shipped", "by the image");
    let all = [("/etc/before", "x"), ("/etc/shipped", "x"), ("/etc/new", "x")];
    bed.apply(&documents(&all, ""), &[]).unwrap();
    for (path, _) in all {
        assert_eq!(bed.text(path).as_deref(), Some("x"));
    }
    bed.apply(&documents(&[], ""), &[]).unwrap();
    assert_eq!(bed.text("/etc/before").as_deref(), Some("the host's own"));
    assert_eq!(bed.text("/etc/shipped").as_deref(), Some("by the image"));
    assert_eq!(bed.text("/etc/new"), None);
    let kept = std::fs::read_dir(bed.path("/var/lib/tread/node/originals")).unwrap().count();
    assert_eq!(kept, 0, "a copy is kept only as long as it is needed");
}

#[test]
fn a_plan_for_another_config_or_another_beginning_touches_nothing() {
    let (first, second) = (documents(&[("/etc/a", "1")], ""), documents(&[("/etc/a", "2")], ""));
    let bed = Bed::with(&first);
    for (from, to) in [(&second, &second), (&first, &first)] {
        let order = Order {
            id: "1".to_owned(),
            documents: second.clone(),
            plan: plan(from, to, &[]),
            accept: Vec::new(),
            others: Vec::new(),
        };
        let error = change(&bed.tree(), &Own, &no_label, &order).unwrap_err();
        assert!(matches!(error, OrderError::Plan(_)), "{error}");
    }
    let order = Order {
        id: "1".to_owned(),
        documents: second.clone(),
        plan: plan(&first, &second, &[]),
        accept: Vec::new(),
        others: Vec::new(),
    };
    assert!(change(&bed.tree(), &Own, &no_label, &order).is_ok());
}

#[test]
fn a_plan_too_gentle_for_a_unit_or_an_argument_is_refused() {
    let bed = Bed::with(&documents(&[], ""));
    let unit = r#", "systemd": {"units": [{"name": "a.service", "contents": "[Service]"}]}"#;
    let error = bed.apply(&documents(&[], unit), &[tread_model::plan::Step::Write]).unwrap_err();
    assert!(
        error.to_string().contains("no daemon-reload, and unit:a.service needs one"),
        "{error}"
    );
}

#[test]
fn a_file_that_drifted_stops_the_update_with_what_differs() {
    let first = documents(&[("/etc/a", "1"), ("/etc/b", "1"), ("/etc/c", "1")], "");
    let bed = Bed::with(&first);
    bed.file("/etc/a", "by hand");
    std::fs::remove_file(bed.path("/etc/b")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(bed.path("/etc/c"), mode).unwrap();
    let second = documents(&[("/etc/d", "1")], "");
    let error = bed.apply(&second, &[]).unwrap_err().to_string();
    for expected in [
        "/etc/a (its contents differ)",
        "/etc/b (it is missing)",
        "/etc/c (its mode is 0600, and should be 0644)",
        "restore it, or let it stay: tread node adopt --config CONFIG --keep, with that config",
        "by --accept-drift FILE",
    ] {
        assert!(error.contains(expected), "{error}");
    }
    assert!(!error.contains("by hand"), "{error}");
    assert_eq!(bed.text("/etc/d"), None);
}

#[test]
fn what_was_accepted_stays_until_a_config_has_something_new_for_it() {
    let bed = Bed(tempfile::tempdir().unwrap());
    bed.file("/etc/a", "by hand");
    let first = documents(&[("/etc/a", "1")], "");
    let error = bed.adopt(first.clone(), Adopt::Ask).unwrap_err().to_string();
    for expected in [
        "/etc/a (its contents differ)",
        "tread node adopt --config CONFIG --keep",
        "tread node adopt --config CONFIG --overwrite",
    ] {
        assert!(error.contains(expected), "{error}");
    }
    let kept = bed.adopt(first, Adopt::Keep).unwrap();
    assert_eq!(kept.len(), 1);
    bed.apply(&documents(&[("/etc/a", "1"), ("/etc/b", "1")], ""), &[]).unwrap();
    assert_eq!(bed.text("/etc/a").as_deref(), Some("by hand"));
    assert_eq!(bed.text("/etc/b").as_deref(), Some("1"));
    bed.apply(&documents(&[("/etc/a", "2"), ("/etc/b", "1")], ""), &[]).unwrap();
    assert_eq!(bed.text("/etc/a").as_deref(), Some("2"));
}

#[test]
fn what_is_overwritten_at_adoption_comes_back_when_no_config_has_it_any_more() {
    let bed = Bed(tempfile::tempdir().unwrap());
    bed.file("/etc/a", "by hand");
    let found = bed.adopt(documents(&[("/etc/a", "1")], ""), Adopt::Overwrite).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(bed.text("/etc/a").as_deref(), Some("1"));
    bed.apply(&documents(&[], ""), &[]).unwrap();
    assert_eq!(bed.text("/etc/a").as_deref(), Some("by hand"));
}

#[test]
fn what_an_admin_accepts_with_an_order_is_remembered_with_it() {
    let first = documents(&[("/etc/a", "1")], "");
    let bed = Bed::with(&first);
    bed.file("/etc/a", "by hand");
    let second = documents(&[("/etc/a", "1"), ("/etc/b", "1")], "");
    let accept = vec!["/etc/a".to_owned()];
    let plan = plan(&first, &second, &[]);
    let order = Order { id: "1".to_owned(), documents: second, plan, accept, others: Vec::new() };
    let change = change(&bed.tree(), &Own, &no_label, &order).unwrap();
    let journal = Journal::open(&bed.tree()).unwrap();
    journal.write(&change.ready.record, &change.ready.new).unwrap();
    journal.finish().unwrap();
    assert_eq!(bed.text("/etc/a").as_deref(), Some("by hand"));
    let applied = Applied::read(&bed.tree()).unwrap().unwrap();
    assert_eq!(applied.accepted.keys().collect::<Vec<_>>(), ["/etc/a"]);
}

#[test]
fn a_node_that_tread_never_managed_is_not_changed() {
    let bed = Bed(tempfile::tempdir().unwrap());
    let config = documents(&[("/etc/a", "1")], "");
    let plan = VerifiablePlan::always_allowed(Digest::of(b"a"), Digest::of(b"b"));
    let order = Order {
        id: "1".to_owned(),
        documents: config,
        plan,
        accept: Vec::new(),
        others: Vec::new(),
    };
    let error = change(&bed.tree(), &Own, &no_label, &order).unwrap_err();
    assert!(error.to_string().contains("tread node adopt --config"), "{error}");
}

#[test]
fn a_file_of_a_user_that_the_host_does_not_have_is_an_error_before_anything_is_written() {
    let bed = Bed::with(&documents(&[], ""));
    let mut config = documents(&[("/etc/a", "1")], "");
    config.0[0].text =
        config.0[0].text.replace(r#""path": "#, r#""user": {"name": "nobody-here"}, "path": "#);
    let error = bed.apply(&config, &[]).unwrap_err().to_string();
    assert!(error.contains("file:/etc/a") && error.contains("nobody-here"), "{error}");
}

#[test]
fn units_their_dropins_masks_and_links_are_put_where_systemd_looks() {
    let bed = Bed::with(&documents(&[], ""));
    let units = r#", "systemd": {"units": [
        {"name": "a.service", "enabled": true, "contents": "[Install]\nWantedBy=multi-user.target",
         "dropins": [{"name": "10-x.conf", "contents": "[Service]"}]},
        {"name": "b.service", "mask": true}]}"#;
    bed.apply(&documents(&[], units), &[]).unwrap();
    let at = "/etc/systemd/system";
    assert!(bed.text(&format!("{at}/a.service")).unwrap().starts_with("[Install]"));
    assert_eq!(bed.text(&format!("{at}/a.service.d/10-x.conf")).as_deref(), Some("[Service]"));
    let link = |path: &str| std::fs::read_link(bed.path(path)).unwrap().display().to_string();
    assert_eq!(link(&format!("{at}/b.service")), "/dev/null");
    let wants = format!("{at}/multi-user.target.wants/a.service");
    assert_eq!(link(&wants), "/etc/systemd/system/a.service");
    bed.apply(&documents(&[], ""), &[]).unwrap();
    assert!(bed.path(&wants).symlink_metadata().is_err());
    assert!(bed.path(&format!("{at}/b.service")).symlink_metadata().is_err());
}

#[test]
fn no_config_has_a_path_in_treads_own_folder() {
    let bed = Bed::with(&documents(&[], ""));
    for path in ["/var/lib/tread", "/var/lib/tread/node/lock", "/var/lib/tread/bin/x"] {
        let error = bed.apply(&documents(&[(path, "1")], ""), &[]).unwrap_err();
        assert!(matches!(error, OrderError::Impossible(_)), "{path}: {error}");
        assert!(error.to_string().contains("keeps what it knows of the node"), "{error}");
    }
}

#[test]
fn what_somebody_changes_after_the_disk_was_compared_is_not_overwritten() {
    let bed = Bed::with(&documents(&[("/etc/b", "1")], ""));
    let to = documents(&[("/etc/a", "1"), ("/etc/b", "2")], "");
    let from = Applied::read(&bed.tree()).unwrap().unwrap().documents;
    let order = Order {
        id: "1".to_owned(),
        documents: to.clone(),
        plan: plan(&from, &to, &[]),
        accept: Vec::new(),
        others: Vec::new(),
    };
    // The label of a new file is asked for after the disk was compared.
    let meddles = |path: &str, _: Kind| {
        if path == "/etc/a" {
            bed.file("/etc/b", "by hand");
        }
        Ok(None)
    };
    let error = change(&bed.tree(), &Own, &meddles, &order).unwrap_err().to_string();
    assert!(error.contains("/etc/b was changed by somebody else"), "{error}");
}

#[test]
fn to_adopt_once_more_does_not_forget_what_was_there_before_tread() {
    let bed = Bed::with(&documents(&[], ""));
    bed.file("/etc/before", "the host's own");
    let config = documents(&[("/etc/before", "x")], "");
    bed.apply(&config, &[]).unwrap();
    bed.adopt(config, Adopt::Ask).unwrap();
    bed.apply(&documents(&[], ""), &[]).unwrap();
    assert_eq!(bed.text("/etc/before").as_deref(), Some("the host's own"));
}

#[test]
fn what_was_changed_by_hand_and_is_overwritten_does_not_count_as_there_before_tread() {
    let bed = Bed::with(&documents(&[], ""));
    bed.file("/etc/before", "the host's own");
    let config = documents(&[("/etc/before", "x"), ("/etc/new", "x")], "");
    bed.apply(&config, &[]).unwrap();
    for path in ["/etc/before", "/etc/new"] {
        bed.file(path, "by hand");
    }
    assert_eq!(bed.adopt(config, Adopt::Overwrite).unwrap().len(), 2);
    bed.apply(&documents(&[], ""), &[]).unwrap();
    assert_eq!(bed.text("/etc/before").as_deref(), Some("the host's own"));
    assert_eq!(bed.text("/etc/new"), None);
}

#[test]
fn what_the_config_before_had_and_the_one_that_is_adopted_has_not_is_overwritten_too() {
    let bed = Bed::with(&documents(&[], ""));
    bed.file("/etc/before", "the host's own");
    let units = r#", "systemd": {"units": [
        {"name": "a.service", "enabled": true, "contents": "[Install]\nWantedBy=multi-user.target",
         "dropins": [{"name": "10-x.conf", "contents": "[Service]"}]},
        {"name": "b.service", "mask": true}]},
        "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA"]}]}"#;
    let all = [("/etc/a", "1"), ("/etc/before", "1"), ("/etc/extra", "1"), ("/etc/deep/er", "1")];
    bed.apply(&documents(&all, units), &[]).unwrap();
    let at = "/etc/systemd/system";
    let extras = [
        "/etc/extra".to_owned(),
        "/etc/deep/er".to_owned(),
        "/home/core/.ssh/authorized_keys".to_owned(),
        format!("{at}/a.service"),
        format!("{at}/a.service.d/10-x.conf"),
        format!("{at}/b.service"),
        format!("{at}/multi-user.target.wants/a.service"),
    ];
    let is_there = |path: &String| bed.path(path).symlink_metadata().is_ok();
    assert!(extras.iter().all(is_there));
    bed.file("/etc/a", "by hand");
    // Somebody has put a file in the place of a folder: nothing of the config is left below it.
    std::fs::remove_dir_all(bed.path("/etc/deep")).unwrap();
    bed.file("/etc/deep", "by hand");

    let next = documents(&[("/etc/a", "1")], "");
    let found = bed.adopt(next.clone(), Adopt::Overwrite).unwrap();
    let told = |path: &str| found.iter().find(|it| it.path == path).map(|it| it.differs.clone());
    assert_eq!(told("/etc/a").as_deref(), Some("its contents differ"));
    let of_before = "it is of the config applied before, and not of this one";
    assert_eq!(told("/etc/extra").as_deref(), Some(of_before));
    assert_eq!(told("/etc/before").as_deref(), Some(of_before));
    assert_eq!(found.len(), extras.len() + 1, "{found:?}");
    assert_eq!(extras.iter().find(|path| is_there(path)), None);
    assert_eq!(bed.text("/etc/before").as_deref(), Some("the host's own"));
    assert_eq!(bed.text("/etc/deep").as_deref(), Some("by hand"));
    let kept = std::fs::read_dir(bed.path("/var/lib/tread/node/originals")).unwrap().count();
    assert_eq!(kept, 0, "no copy is left behind");
    assert_eq!(bed.adopt(next, Adopt::Overwrite).unwrap(), []);
}

#[test]
fn what_was_accepted_of_the_config_before_stays_where_another_one_is_adopted() {
    let bed = Bed::with(&documents(&[], ""));
    bed.file("/etc/b", "by hand");
    bed.adopt(documents(&[("/etc/b", "1")], ""), Adopt::Keep).unwrap();
    assert_eq!(bed.adopt(documents(&[], ""), Adopt::Overwrite).unwrap(), []);
    assert_eq!(bed.text("/etc/b").as_deref(), Some("by hand"));
}

#[test]
fn what_was_accepted_stays_when_no_config_has_it_any_more_and_no_copy_is_left_behind() {
    let bed = Bed::with(&documents(&[], ""));
    bed.file("/etc/before", "the host's own");
    let config = documents(&[("/etc/before", "x")], "");
    bed.apply(&config, &[]).unwrap();
    bed.file("/etc/before", "by hand");
    bed.adopt(config, Adopt::Keep).unwrap();
    bed.apply(&documents(&[], ""), &[]).unwrap();
    assert_eq!(bed.text("/etc/before").as_deref(), Some("by hand"));
    let kept = std::fs::read_dir(bed.path("/var/lib/tread/node/originals")).unwrap().count();
    assert_eq!(kept, 0);
}

#[test]
fn a_folder_that_became_a_file_is_told_like_any_other_difference() {
    let config = documents(&[("/etc/a", "1"), ("/etc/deep/b", "1")], "");
    let bed = Bed::with(&config);
    bed.file("/etc/a", "by hand");
    std::fs::remove_dir_all(bed.path("/etc/deep")).unwrap();
    bed.file("/etc/deep", "by hand");
    let error = bed.apply(&documents(&[], ""), &[]).unwrap_err();
    assert!(matches!(error, OrderError::Drifted(_)), "{error}");
    let error = error.to_string();
    for expected in ["/etc/a (its contents differ)", "/etc/deep/b (/etc/deep is a file)"] {
        assert!(error.contains(expected), "{error}");
    }
}
