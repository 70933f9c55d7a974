use super::*;
use tread_guest_sdk::{Content, test};

fn pem(body: &str) -> String {
    format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
}

fn actions(change: Change) -> Vec<Action> {
    test::verdict::<Certificates>(change).actions().to_vec()
}

fn trust_and_crio() -> Vec<Action> {
    vec![Action::restart(UPDATE_TRUST), Action::restart(CRIO)]
}

#[test]
fn each_known_file_costs_what_admins_know() {
    let iri = [Action::restart(IRI)];
    let kubelet = [Action::restart(KUBELET)];
    for (path, expected) in [
        (USER_BUNDLE, &trust_and_crio()[..]),
        (IRI_ROOT, &[Action::restart(UPDATE_TRUST)]),
        (KUBELET_CA, &[]),
        (PULL_SECRET, &[]),
        (PROVIDER_DROPIN, &kubelet),
        ("/etc/kubernetes/credential-providers/acr.yaml", &kubelet),
        ("/etc/iri-registry/certs/tls.crt", &iri),
        (IRI_SCRIPT, &iri),
        ("/etc/docker/certs.d/quay.io:443/ca.crt", &[]),
        ("/etc/containers/certs.d/quay.io/client.key", &[]),
    ] {
        for change in [
            test::file(path, &pem("YQ=="), &pem("Yg==")),
            test::file_added(path, &pem("Yg==")),
            test::file_removed(path, &pem("YQ==")),
        ] {
            assert_eq!(actions(change), expected, "{path}");
        }
    }
}

#[test]
fn another_anchor_is_gentle_when_trust_is_added_and_reboots_when_it_is_withdrawn() {
    let path = "/etc/pki/ca-trust/source/anchors/corp.pem";
    let (a, b) = (pem("YQ=="), pem("Yg=="));
    let both = format!("{a}{b}");
    assert_eq!(actions(test::file_added(path, &a)), trust_and_crio());
    assert_eq!(actions(test::file(path, &a, &both)), trust_and_crio());
    assert_eq!(
        actions(test::file(path, &both, &format!("{b}{a}"))),
        [Action::restart(UPDATE_TRUST)]
    );
    assert_eq!(actions(test::file(path, &both, &a)), [Action::Reboot]);
    assert_eq!(actions(test::file(path, &a, &b)), [Action::Reboot]);
    assert_eq!(actions(test::file_removed(path, &a)), [Action::Reboot]);
}

#[test]
fn an_anchor_that_may_not_be_read_reboots_unless_it_is_new() {
    let secret = |digest: &str| {
        let State::File(mut file) = test::file_state("") else { panic!("no file") };
        file.content = Content::Digest(digest.to_string());
        State::File(file)
    };
    let id = "file:/etc/pki/ca-trust/source/anchors/corp.pem".to_string();
    let change = Change { id: id.clone(), before: secret("sha256:a"), after: secret("sha256:b") };
    assert_eq!(actions(change), [Action::Reboot]);
    let change = Change { id, before: State::Absent, after: secret("sha256:b") };
    assert_eq!(actions(change), trust_and_crio());
}

#[test]
fn the_registrys_unit_restarts_and_reboots_when_it_is_turned_on_or_off() {
    let restart = [Action::restart(IRI), Action::DaemonReload];
    assert_eq!(actions(test::unit(IRI, "[Service]", "[Unit]")), restart);
    let unit = |masked, enabled| {
        let State::Unit(mut unit) = test::unit_state("[Service]") else { panic!("no unit") };
        (unit.masked, unit.enabled) = (masked, enabled);
        State::Unit(unit)
    };
    let on = unit(false, None);
    let turned = |before: &State, after: &State| {
        let id = format!("unit:{IRI}");
        actions(Change { id, before: before.clone(), after: after.clone() })
    };
    assert_eq!(turned(&on, &unit(false, Some(true))), restart);
    assert_eq!(turned(&unit(true, None), &unit(false, Some(false))), restart);
    for off in [unit(true, None), unit(false, Some(false)), State::Absent] {
        assert_eq!(turned(&on, &off), [Action::Reboot], "{off:?}");
        assert_eq!(turned(&off, &on), [Action::Reboot], "{off:?}");
    }
}
