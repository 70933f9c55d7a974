//! A machine that tread served has what it booted with, and the lines of its claim are no drift.

use super::*;
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

#[test]
fn the_lines_of_the_claim_go_with_the_file_and_with_a_new_text_of_it() {
    let bed = boots(&config(&[]), false);
    bed.adopt(config(&[]), Adopt::Ask).unwrap();
    let next =
        documents(&[("/etc/a", "1"), (KUBELET, "kind:%20KubeletConfiguration%0Aa:%201")], "");
    bed.apply(&next, &[]).unwrap();
    assert_eq!(bed.text(KUBELET).as_deref(), Some("kind: KubeletConfiguration\na: 1"));
    assert!(drifted(&bed).is_empty());

    let bed = boots(&config(&[]), false);
    bed.adopt(config(&[]), Adopt::Ask).unwrap();
    bed.apply(&documents(&[("/etc/a", "1")], ""), &[]).unwrap();
    assert_eq!(bed.text(KUBELET), None);
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
