use super::*;
use tread_guest_sdk::{Content, test};

fn pem(body: &str) -> String {
    format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
}

fn logins(auth: &str) -> String {
    format!("{{\"auths\": {{\"quay.io\": {{\"auth\": \"{auth}\"}}}}}}")
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
        (KUBELET_CA, &[]),
        (PULL_SECRET, &[]),
        (PROVIDER_DROPIN, &kubelet),
        ("/etc/kubernetes/credential-providers/acr.yaml", &kubelet),
        ("/etc/iri-registry/certs/tls.crt", &iri),
        (IRI_SCRIPT, &iri),
    ] {
        let [before, after] = match path {
            PULL_SECRET => [logins("YQ=="), logins("Yg==")],
            _ => [pem("YQ=="), pem("Yg==")],
        };
        for change in [
            test::file(path, &before, &after),
            test::file_added(path, &after),
            test::file_removed(path, &before),
        ] {
            if !NEEDED.contains(&path) || !change.after.is_absent() {
                assert_eq!(actions(change), expected, "{path}");
            }
        }
    }
}

/// The CA of the internal release image registry, from which CRI-O pulls.
const IRI_ROOT: &str = "/etc/pki/ca-trust/source/anchors/iri-root-ca.crt";

const NEEDED: [&str; 4] = [
    KUBELET_CA,
    PULL_SECRET,
    "/etc/docker/certs.d/quay.io:443/ca.crt",
    "/etc/containers/certs.d/quay.io/client.key",
];

#[test]
fn a_client_ca_or_pull_secret_that_goes_is_a_reboot_and_a_registrys_certificate_a_drain() {
    for path in NEEDED {
        if ![KUBELET_CA, PULL_SECRET].contains(&path) {
            assert_eq!(actions(test::file_removed(path, "x")), [Action::Drain], "{path}");
            continue;
        }
        assert_eq!(actions(test::file_removed(path, "x")), [Action::Reboot], "{path}");
        assert_eq!(actions(test::file(path, "x", " \n")), [Action::Reboot], "{path}");
        let State::File(mut file) = test::file_state("") else { panic!("no file") };
        file.content = Content::Absent;
        let after = State::File(file);
        let change = Change { id: format!("file:{path}"), before: State::Absent, after };
        assert_eq!(actions(change), [Action::Reboot], "{path}");
    }
}

/// The effect of a file's new text, and why; declared, since the file may be a secret.
#[track_caller]
fn of_text(path: &str, before: &str, after: &[u8]) -> (Option<Effect>, String) {
    let mut change = test::file(path, before, "");
    let State::File(file) = &mut change.after else { panic!("no file") };
    file.content = Content::Bytes(after.to_vec());
    let verdict = test::verdict::<Certificates>(change);
    assert!(Certificates::REASONS.contains(&verdict.reason()), "{}", verdict.reason());
    (verdict.effect(), verdict.reason().to_string())
}

#[test]
fn a_client_ca_without_a_certificate_is_refused() {
    let key = "-----BEGIN PRIVATE KEY-----\nYQ==\n-----END PRIVATE KEY-----\n";
    let trusted = pem("YQ==").replace(" CERTIFICATE", " TRUSTED CERTIFICATE");
    for text in ["x", "{{ .KubeletCA }}\n", key, &trusted, "-----BEGIN CERTIFICATE----\n"] {
        for before in [pem("YQ=="), String::new(), "y".to_string()] {
            let (effect, why) = of_text(KUBELET_CA, &before, text.as_bytes());
            assert_eq!(effect, Some(Effect::Refuse), "{text}: {why}");
            assert!(why.contains("no certificate in PEM") && why.ends_with("Correct it"), "{why}");
        }
    }
    for text in [pem("Yg=="), format!("# the new one\n{}{key}", pem("Yg=="))] {
        let (effect, why) = of_text(KUBELET_CA, &pem("YQ=="), text.as_bytes());
        assert_eq!(effect, Some(Effect::None), "{text}: {why}");
    }
}

#[test]
fn a_pull_secret_that_ends_every_pull_is_refused_and_one_without_logins_is_gone() {
    let (refuse, reboot, none) = (Effect::Refuse, Effect::Reboot, Effect::None);
    for (text, expected) in [
        (&b"x"[..], refuse),
        (b"auths: {quay.io: {auth: YQ==}}", refuse),
        (b"\"auths\"", refuse),
        (b"[]", refuse),
        (b"{\"auths\": {\"quay.io\": {\"auth\": \"YQ==\"}}", refuse),
        (b"{\"auths\": {}} {}", refuse),
        (b"{\"auths\": {},}", refuse),
        (b"{\"auths\": []}", refuse),
        (b"{\"auths\": \"YQ==\"}", refuse),
        (b"{\"auths\": {\"quay.io\": \"YQ==\"}}", refuse),
        (b"\xef\xbb\xbf{\"auths\": {}}", refuse),
        (b"\xff", refuse),
        (b"{}", reboot),
        (b"{\"auth\": {}}", reboot),
        (b"{\"auths\": null}", reboot),
        (b"{\"quay.io\": {\"auth\": \"YQ==\"}}", reboot),
        (b" \n", reboot),
        // Fewer logins are what an admin decides.
        (b"{\"auths\": {}}", none),
        (b" {\"credHelpers\": {}, \"auths\": {\"a\": {\"auth\": \"\"}, \"b\": null}} \n", none),
        (b"{\"Auths\": {\"quay.io\": {\"auth\": \"YQ==\"}}}", none),
        // What the runtime may still read is not refused.
        (b"{\"auths\": {\"quay.io\": {\"auth\": \"\xff\"}}}", none),
        (b"{\"auths\": {}, \"auths\": {}}", none),
    ] {
        let (effect, why) = of_text(PULL_SECRET, &logins("YQ=="), text);
        assert_eq!(effect, Some(expected), "{}: {why}", String::from_utf8_lossy(text));
        if expected == refuse {
            assert!(why.contains("every pull would fail") && why.ends_with("Correct it"), "{why}");
        }
    }
}

#[test]
fn distrust_in_the_clusters_own_anchors_is_a_reboot() {
    let trusted = pem("YQ==").replace(" CERTIFICATE", " TRUSTED CERTIFICATE");
    let own = "[p11-kit-object-v1]\nx-distrusted: true\n";
    for path in [USER_BUNDLE, IRI_ROOT, "/etc/pki/ca-trust/source/anchors/corp.pem"] {
        for text in [trusted.as_str(), own] {
            for change in [
                test::file_added(path, text),
                test::file_removed(path, text),
                test::file(path, &pem("YQ=="), &format!("{}{text}", pem("YQ=="))),
            ] {
                assert_eq!(actions(change), [Action::Reboot], "{path}");
            }
        }
    }
}

#[test]
fn a_drop_in_of_the_kubelet_that_sets_flags_is_a_reboot() {
    let text = "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --cpu-manager-policy=static\n";
    for change in
        [test::file_added(PROVIDER_DROPIN, text), test::file_removed(PROVIDER_DROPIN, text)]
    {
        assert_eq!(actions(change), [Action::Reboot]);
    }
}

#[test]
fn another_anchor_is_gentle_when_trust_is_added_and_reboots_when_it_is_withdrawn() {
    let (a, b) = (pem("YQ=="), pem("Yg=="));
    let both = format!("{a}{b}");
    for path in ["/etc/pki/ca-trust/source/anchors/corp.pem", IRI_ROOT] {
        assert_eq!(actions(test::file_added(path, &a)), trust_and_crio(), "{path}");
        assert_eq!(actions(test::file(path, &a, &both)), trust_and_crio(), "{path}");
        let update_trust = [Action::restart(UPDATE_TRUST)];
        assert_eq!(actions(test::file(path, &both, &format!("{b}{a}"))), update_trust, "{path}");
        assert_eq!(actions(test::file(path, &both, &a)), [Action::Reboot], "{path}");
        assert_eq!(actions(test::file(path, &a, &b)), [Action::Reboot], "{path}");
        assert_eq!(actions(test::file_removed(path, &a)), [Action::Reboot], "{path}");
    }
}

#[test]
fn an_anchor_that_may_not_be_read_reboots() {
    let secret = |digest: &str| {
        let State::File(mut file) = test::file_state("") else { panic!("no file") };
        file.content = Content::Digest(digest.to_string());
        State::File(file)
    };
    let id = "file:/etc/pki/ca-trust/source/anchors/corp.pem".to_string();
    let change = Change { id: id.clone(), before: secret("sha256:a"), after: secret("sha256:b") };
    assert_eq!(actions(change), [Action::Reboot]);
    let change = Change { id, before: State::Absent, after: secret("sha256:b") };
    assert_eq!(actions(change), [Action::Reboot]);
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
    assert_eq!(turned(&unit(false, Some(true)), &unit(false, Some(true))), restart);
    assert_eq!(turned(&unit(true, None), &unit(false, Some(false))), restart);
    // What is left to presets may not run, so that its restart would be skipped.
    assert_eq!(turned(&on, &unit(false, Some(true))), [Action::Reboot]);
    assert_eq!(turned(&unit(false, Some(true)), &on), [Action::Reboot]);
    for off in [unit(true, None), unit(false, Some(false)), State::Absent] {
        assert_eq!(turned(&on, &off), [Action::Reboot], "{off:?}");
        assert_eq!(turned(&off, &on), [Action::Reboot], "{off:?}");
    }
}
