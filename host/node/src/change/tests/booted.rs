//! A machine that tread served has what it booted with, and the lines of its claim are no drift.

use super::*;
use crate::tree::cut::Cut;
use std::sync::Arc;
use tread_model::joining::{BOOTED, BOOTSTRAP, Booted, KUBELET, with_claim};

const CLAIM: &str = "1AAAAt";
const KUBELETS: &str = "kind: KubeletConfiguration\n";

/// A machine that booted with this config, as Ignition leaves its disk.
fn boots(config: &Documents, bootstrap: bool) -> Bed {
    let bed = Bed(tempfile::tempdir().unwrap());
    let digest = crate::documents::digest(&config.config().unwrap()).unwrap();
    let booted = Booted::with("infra", "rendered-infra", digest).joins(KUBELET, bootstrap);
    bed.file(BOOTED, &serde_json::to_string(&booted).unwrap());
    bed.file("/etc/a", "1");
    bed.file(KUBELET, &with_claim(KUBELETS, CLAIM).unwrap());
    bed
}

/// What is served to it besides the file.
fn config(more: &[(&str, &str)]) -> Documents {
    documents(
        &[&[("/etc/a", "1"), (KUBELET, "kind:%20KubeletConfiguration%0A")], more].concat(),
        "",
    )
}

fn drifted(bed: &Bed) -> Vec<String> {
    let applied = Applied::read(&bed.tree()).unwrap().unwrap();
    let config = applied.documents.config().unwrap();
    let desired = wanted(&config, &Own).unwrap();
    let found = drift(&bed.tree(), &desired, &applied.accepted).unwrap();
    found.into_iter().map(|it| it.path).collect()
}

#[test]
fn a_machine_has_what_it_booted_with_and_what_was_changed_since_is_drift() {
    let bed = boots(&config(&[]), false);
    assert_eq!(bed.adopt(config(&[]), Adopt::Ask).unwrap(), []);
    assert!(drifted(&bed).is_empty(), "its claim is no drift");
    bed.apply(&config(&[("/etc/b", "1")]), &[]).unwrap();
    assert!(bed.text(KUBELET).unwrap().contains(CLAIM), "nobody has to touch it");

    let bed = boots(&config(&[]), false);
    bed.file("/etc/a", "by hand");
    let found = bed.adopt(config(&[]), Adopt::Ask).unwrap();
    assert_eq!(found.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(), ["/etc/a"]);
    assert_eq!(drifted(&bed), ["/etc/a"]);
    let error = bed.apply(&config(&[("/etc/b", "1")]), &[]).unwrap_err().to_string();
    assert!(error.contains("/etc/a (its contents differ)"), "{error}");
    assert_eq!(bed.text("/etc/a").as_deref(), Some("by hand"));
}

#[test]
fn what_a_machine_did_not_boot_with_is_adopted_as_always() {
    let other = config(&[("/etc/b", "1")]);
    let bed = boots(&config(&[]), false);
    let error = bed.adopt(other.clone(), Adopt::Ask).unwrap_err().to_string();
    assert!(error.contains("/etc/b (it is missing)") && !error.contains(KUBELET), "{error}");
    assert_eq!(Applied::read(&bed.tree()).unwrap(), None);
    // Nor what it booted with once, and has had others since.
    bed.adopt(config(&[]), Adopt::Ask).unwrap();
    bed.apply(&other, &[]).unwrap();
    std::fs::remove_file(bed.path("/etc/a")).unwrap();
    let error = bed.adopt(config(&[]), Adopt::Ask).unwrap_err().to_string();
    assert!(error.contains("/etc/a (it is missing)"), "{error}");
    // To say so once more is the same.
    let bed = boots(&config(&[]), false);
    bed.file("/etc/a", "by hand");
    for _ in 0..2 {
        assert_eq!(bed.adopt(config(&[]), Adopt::Ask).unwrap().len(), 1);
    }
    // Without what was served, or with something else there, its lines are drift.
    for said in ["{}", "no JSON"] {
        let bed = boots(&config(&[]), false);
        bed.file(BOOTED, said);
        let error = bed.adopt(config(&[]), Adopt::Ask).unwrap_err().to_string();
        assert!(error.contains(&format!("{KUBELET} (its contents differ)")), "{error}");
    }
}

#[test]
fn a_machine_has_what_it_booted_with_also_where_an_older_tread_made_the_digest() {
    let adopts = |name: &str| {
        let mut config = config(&[]);
        let bed = boots(&config, false);
        let older = Booted::with("infra", "rendered-infra", Digest([7; 32])).joins(KUBELET, false);
        bed.file(BOOTED, &serde_json::to_string(&older).unwrap());
        bed.file("/etc/a", "by hand");
        config.0[0].name = name.to_owned();
        let found = bed.adopt(config, Adopt::Ask);
        found.map(|found| (found.len(), drifted(&bed))).map_err(|error| error.to_string())
    };
    assert_eq!(adopts("rendered-infra.json"), Ok((1, vec!["/etc/a".to_owned()])));
    // A file that somebody names is no config of a name, and another config is another one.
    for name in ["config.yaml", "rendered-infra.yaml", "/tmp/rendered-infra.json", "other.json"] {
        let error = adopts(name).unwrap_err();
        assert!(error.contains("/etc/a (its contents differ)"), "{name}: {error}");
    }
}

#[test]
fn only_the_lines_of_the_claim_are_no_drift() {
    let served = with_claim(KUBELETS, CLAIM).unwrap();
    for changed in [
        served.replace("NoSchedule", "NoExecute"),
        format!("{served}maxPods: 1\n"),
        served.replace(KUBELETS, "kind: KubeletConfiguration\nmaxPods: 1\n"),
        String::new(),
    ] {
        let bed = boots(&config(&[]), false);
        bed.file(KUBELET, &changed);
        bed.adopt(config(&[]), Adopt::Ask).unwrap();
        assert_eq!(drifted(&bed), [KUBELET], "{changed}");
    }
    let bed = boots(&config(&[]), false);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(bed.path(KUBELET), mode).unwrap();
    bed.adopt(config(&[]), Adopt::Ask).unwrap();
    assert_eq!(drifted(&bed), [KUBELET]);
    // What is changed once it has joined is drift.
    let bed = boots(&config(&[]), false);
    bed.adopt(config(&[]), Adopt::Ask).unwrap();
    bed.file(KUBELET, &format!("{served}maxPods: 1\n"));
    assert_eq!(drifted(&bed), [KUBELET]);
}

/// A second and a third text of the kubelet's configuration, and one with taints of its own.
const TEXTS: [&str; 3] = [
    "kind: KubeletConfiguration\na: 1\n",
    "{\"kind\": \"KubeletConfiguration\", \"a\": 2}",
    "kind: KubeletConfiguration\nregisterWithTaints: []\n",
];

/// A config with this text.
fn with_text(text: &str) -> Documents {
    with(Some(text), &[])
}

/// A config with this text, where there is one, and with these files.
fn with(text: Option<&str>, files: &[(&str, &str)]) -> Documents {
    let text = text.map(|text| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>());
    let kubelet = text.as_ref().map(|text| (KUBELET, text.as_str()));
    let all: Vec<_> =
        [("/etc/a", "1")].into_iter().chain(kubelet).chain(files.iter().copied()).collect();
    documents(&all, "")
}

#[test]
fn a_new_text_of_the_file_keeps_the_claim_where_it_has_room_for_it() {
    let bed = boots(&config(&[]), false);
    bed.adopt(config(&[]), Adopt::Ask).unwrap();
    for text in &TEXTS[..2] {
        bed.apply(&with_text(text), &[]).unwrap();
        assert_eq!(bed.text(KUBELET), Some(with_claim(text, CLAIM).unwrap()));
        assert!(drifted(&bed).is_empty(), "{text}");
    }
    // Nor is anything else taken for a claim.
    let bed = boots(&config(&[]), false);
    bed.file(KUBELET, &with_claim(KUBELETS, CLAIM).unwrap().replace("NoSchedule", "NoExecute"));
    bed.adopt(config(&[]), Adopt::Keep).unwrap();
    bed.apply(&with_text(TEXTS[0]), &[]).unwrap();
    assert_eq!(bed.text(KUBELET).as_deref(), Some(TEXTS[0]));
}

#[test]
fn a_claim_that_a_config_has_no_room_for_stands_there_again_with_the_next_one_that_has() {
    let kept = |bed: &Bed| Applied::read(&bed.tree()).unwrap().unwrap().claim;
    let without = with(None, &[]);
    for lacks in [&[None][..], &[Some(TEXTS[2])], &[None, Some(TEXTS[2])]] {
        let bed = boots(&config(&[]), false);
        bed.adopt(config(&[]), Adopt::Ask).unwrap();
        // The last one also with something that does not touch the file.
        let more = [(*lacks.last().unwrap(), &[("/etc/c", "1")][..])];
        for (text, files) in lacks.iter().map(|text| (*text, &[][..])).chain(more) {
            bed.apply(&with(text, files), &[]).unwrap();
            assert_eq!(bed.text(KUBELET).as_deref(), text, "it has no room");
            assert_eq!(kept(&bed).as_deref(), Some(CLAIM));
            assert!(drifted(&bed).is_empty());
        }
        bed.apply(&with_text(TEXTS[0]), &[]).unwrap();
        assert_eq!(bed.text(KUBELET), Some(with_claim(TEXTS[0], CLAIM).unwrap()));
        assert_eq!(kept(&bed), None, "it stands in the file");
        assert!(drifted(&bed).is_empty());
    }
    // So it is where a config takes the place of what differs.
    let bed = boots(&config(&[]), false);
    bed.adopt(with_text(TEXTS[2]), Adopt::Overwrite).unwrap();
    assert_eq!(
        (bed.text(KUBELET).as_deref(), kept(&bed).as_deref()),
        (Some(TEXTS[2]), Some(CLAIM))
    );
    bed.adopt(with_text(TEXTS[0]), Adopt::Overwrite).unwrap();
    assert_eq!(bed.text(KUBELET), Some(with_claim(TEXTS[0], CLAIM).unwrap()));
    assert_eq!(kept(&bed), None);
    // A machine that tread did not serve has none.
    let bed = Bed(tempfile::tempdir().unwrap());
    bed.file("/etc/a", "1");
    bed.file(KUBELET, &with_claim(KUBELETS, CLAIM).unwrap());
    bed.adopt(config(&[]), Adopt::Keep).unwrap();
    bed.apply(&without, &[]).unwrap();
    assert_eq!(kept(&bed), None);
}

#[test]
fn a_config_that_takes_the_place_of_what_differs_keeps_the_claim() {
    let bed = boots(&config(&[]), false);
    let other = with_text(TEXTS[0]);
    assert_eq!(bed.adopt(other, Adopt::Overwrite).unwrap().len(), 1);
    assert_eq!(bed.text(KUBELET), Some(with_claim(TEXTS[0], CLAIM).unwrap()));
    assert!(drifted(&bed).is_empty());
}

#[test]
fn killed_at_any_moment_of_a_new_text_the_claim_stays() {
    let texts = [KUBELETS, TEXTS[0]].map(|text| with_claim(text, CLAIM).unwrap());
    let begin = || {
        let bed = boots(&config(&[]), false);
        bed.adopt(config(&[]), Adopt::Ask).unwrap();
        let to = with_text(TEXTS[0]);
        let order = Order {
            id: "1".to_owned(),
            plan: plan(&config(&[]), &to, &[]),
            documents: to,
            accept: Vec::new(),
            others: Vec::new(),
        };
        let ready = change(&bed.tree(), &Own, &no_label, &order).unwrap().ready;
        (bed, ready)
    };
    let write = |cut: Arc<Cut>| {
        let (bed, ready) = begin();
        let tree = Tree::witnessed(bed.0.path(), cut).unwrap();
        let written = Journal::open(&tree).and_then(|it| it.write(&ready.record, &ready.new));
        (bed, written.is_ok())
    };
    let whole = Cut::never();
    assert!(write(Arc::clone(&whole)).1);
    let mut ends = [0, 0];
    for at in 0..whole.seen() {
        let (bed, _) = write(Cut::at(at));
        let journal = Journal::open(&bed.tree()).unwrap();
        journal.settle().unwrap();
        journal.finish().unwrap();
        let found = bed.text(KUBELET).unwrap();
        let end = texts.iter().position(|text| *text == found);
        ends[end.unwrap_or_else(|| panic!("at {at}: {found}"))] += 1;
        assert!(drifted(&bed).is_empty(), "at {at}");
    }
    assert!(ends.iter().all(|times| *times > 0), "{ends:?}");
}

#[test]
fn a_kubeconfig_that_was_served_in_place_of_the_configs_is_no_drift() {
    let with = config(&[(BOOTSTRAP, "of-the-config")]);
    for (bootstrap, mode, drifts) in
        [(true, 0o600, false), (false, 0o600, true), (true, 0o644, true)]
    {
        let bed = boots(&with, bootstrap);
        bed.file(BOOTSTRAP, "of the Secret");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(bed.path(BOOTSTRAP), mode).unwrap();
        bed.adopt(with.clone(), Adopt::Ask).unwrap();
        assert_eq!(!drifted(&bed).is_empty(), drifts, "{bootstrap}");
    }
}
