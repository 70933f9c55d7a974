use super::*;
use tread_guest_sdk::{Content, Entry, test};

const IRI: &str = "iri-registry.service";

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
        (dropin::PATH, &kubelet),
        (PROVIDER, &kubelet),
        ("/etc/iri-registry/certs/tls.crt", &iri),
        ("/etc/iri-registry/auth/htpasswd", &iri),
        (IRI_SCRIPT, &iri),
    ] {
        let [before, after] = match path {
            PULL_SECRET => [logins("YQ=="), logins("Yg==")],
            PROVIDER => [config("a"), config("b")],
            _ => [pem("YQ=="), pem("Yg==")],
        };
        for mut change in [
            test::file(path, &before, &after),
            test::file_added(path, &after),
            test::file_removed(path, &before),
        ] {
            for state in [&mut change.before, &mut change.after] {
                if let State::File(file) = state {
                    file.mode = 0o755;
                }
            }
            if !NEEDED.contains(&path) || !change.after.is_absent() {
                assert_eq!(actions(change), expected, "{path}");
            }
        }
    }
}

/// The CA of the internal release image registry, from which CRI-O pulls.
const IRI_ROOT: &str = "/etc/pki/ca-trust/source/anchors/iri-root-ca.crt";

const PROVIDER: &str = "/etc/kubernetes/credential-providers/acr.yaml";

/// A config of credential providers.
fn config(name: &str) -> String {
    format!(
        "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n\
         - name: {name}\n  matchImages:\n  - \"*.azurecr.io\"\n  defaultCacheDuration: \"10m\"\n"
    )
}

const NEEDED: [&str; 8] = [
    KUBELET_CA,
    PULL_SECRET,
    "/etc/docker/certs.d/quay.io:443/ca.crt",
    "/etc/containers/certs.d/quay.io/client.key",
    PROVIDER,
    "/etc/iri-registry/certs/tls.crt",
    "/etc/iri-registry/auth/htpasswd",
    IRI_SCRIPT,
];

#[test]
fn a_client_ca_or_pull_secret_that_goes_is_a_reboot_and_a_registrys_certificate_a_drain() {
    for path in NEEDED {
        let unit = match path {
            PROVIDER => Some(KUBELET),
            path if path.contains("registr") && !path.contains("certs.d") => Some(IRI),
            _ => None,
        };
        if let Some(unit) = unit {
            let before = if path == PROVIDER { config("a") } else { pem("YQ==") };
            let expected = [Action::Drain, Action::restart(unit)];
            assert_eq!(actions(test::file_removed(path, &before)), expected, "{path}");
            assert_eq!(actions(test::file(path, &before, " \n")), expected, "{path}");
            continue;
        }
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
    // One that was cut off, and ones that stand where Go does not look for them.
    let cut = pem("YQ==").replace("-----END CERTIFICATE-----\n", "");
    let indented = pem("YQ==").replace("-----BEGIN", "  -----BEGIN");
    for text in [
        "x",
        "{{ .KubeletCA }}\n",
        key,
        &trusted,
        "-----BEGIN CERTIFICATE----\n",
        &cut,
        &format!("{key}{cut}{key}"),
        &indented,
        &format!("\u{feff}{}", pem("YQ==")),
    ] {
        for before in [pem("YQ=="), String::new(), "y".to_string()] {
            let (effect, why) = of_text(KUBELET_CA, &before, text.as_bytes());
            assert_eq!(effect, Some(Effect::Refuse), "{text}: {why}");
            assert!(why.contains("no certificate in PEM") && why.ends_with("Correct it"), "{why}");
        }
    }
    for text in [
        pem("Yg=="),
        pem("Yg==").replace('\n', "\r\n"),
        format!("# the new one\n{}{key}", pem("Yg==")),
        format!("{}{cut}", pem("Yg==")),
    ] {
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
    for change in [test::file_added(dropin::PATH, text), test::file_removed(dropin::PATH, text)] {
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
fn an_anchor_in_a_directory_below_is_not_read() {
    let (a, below) = (pem("YQ=="), "/etc/pki/ca-trust/source/anchors/old/corp.pem");
    let corp = "/etc/pki/ca-trust/source/anchors/corp.pem";
    let own = "[p11-kit-object-v1]\nx-distrusted: true\n";
    for change in [
        test::file_added(below, &a),
        test::file_removed(below, &a),
        test::file(below, &a, own),
        test::file(below, "", "x"),
    ] {
        let verdict = test::verdict::<Certificates>(change);
        assert_eq!(verdict.actions(), [Action::restart(UPDATE_TRUST)]);
        assert!(
            verdict.reason().contains("nothing in this file is trusted"),
            "{}",
            verdict.reason()
        );
        assert!(Certificates::REASONS.contains(&verdict.reason()));
    }
    let both = |changes| {
        let verdicts = test::verdicts::<Certificates>(&(), changes, vec![]);
        verdicts.iter().map(|verdict| verdict.actions().to_vec()).collect::<Vec<_>>()
    };
    let moved = vec![test::file_removed(corp, &a), test::file_added(below, &a)];
    assert_eq!(both(moved), [vec![Action::Reboot], vec![Action::restart(UPDATE_TRUST)]]);
    let back = vec![test::file_added(corp, &a), test::file_removed(below, &a)];
    assert_eq!(both(back), [trust_and_crio(), vec![Action::restart(UPDATE_TRUST)]]);
}

/// The drop-in of the kubelet that has it read this.
fn drop_in(config: &str) -> String {
    let flags = format!(
        "--image-credential-provider-config={config} --image-credential-provider-bin-dir=/b"
    );
    format!("[Service]\nEnvironment=\"KUBELET_CRIO_IMAGE_CREDENTIAL_PROVIDER_FLAGS={flags}\"\n")
}

/// What becomes of a config of credential providers, `None` where there is none, beside the kubelet's
/// drop-in after the change.
fn of_config(
    path: &str,
    before: Option<&str>,
    after: Option<&str>,
    dropin: Option<&str>,
) -> Verdict {
    let change = match (before, after) {
        (Some(before), Some(after)) => test::file(path, before, after),
        (None, Some(after)) => test::file_added(path, after),
        (before, None) => test::file_removed(path, before.unwrap_or_default()),
    };
    let unchanged: Vec<Entry> =
        dropin.iter().map(|text| test::unchanged_file(dropin::PATH, text)).collect();
    let verdict = test::verdicts::<Certificates>(&(), vec![change], unchanged).remove(0);
    assert!(Certificates::REASONS.contains(&verdict.reason()), "{}", verdict.reason());
    verdict
}

#[test]
fn a_config_of_credential_providers_that_the_kubelet_would_not_start_with_is_refused() {
    let a = config("a");
    let (list, json) = (
        a.clone() + "# x",
        r#"{"kind": "CredentialProviderConfig",
        "apiVersion": "kubelet.config.k8s.io/v1", "providers": [{"name": "a"}]}"#,
    );
    let (named, all) = (drop_in(PROVIDER), drop_in("/etc/kubernetes/credential-providers"));
    for before in [None, Some(a.as_str()), Some(" ")] {
        for text in [
            "x",
            "{}",
            "# CredentialProviderConfig\n",
            "{{ .Providers }}\n",
            "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n",
            &a.replace("kind: CredentialProviderConfig", "kind: Other # CredentialProviderConfig"),
            &a.replace("kubelet.config.k8s.io", "kubelet.example"),
            "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\n",
            "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders: []\n",
        ] {
            // Of a new one it is not known whether anybody is told to read it.
            let refused = if before == Some(a.as_str()) { None } else { Some(&named) };
            for dropin in [refused, Some(&named), Some(&all)] {
                let verdict = of_config(PROVIDER, before, Some(text), dropin.map(String::as_str));
                assert_eq!(verdict.effect(), Some(Effect::Refuse), "{text} {dropin:?}");
                assert!(verdict.reason().contains("no CredentialProviderConfig"), "{text}");
            }
        }
        for text in [
            list.as_str(),
            json,
            // What is not read here the kubelet may read.
            &a.replace("name: a", "name: &a a"),
            "kind: \"Credential\\x50roviderConfig\"\n",
        ] {
            let verdict = of_config(PROVIDER, before, Some(text), Some(&drop_in(PROVIDER)));
            assert_eq!(
                verdict.actions(),
                [Action::restart(KUBELET)],
                "{text}: {}",
                verdict.reason()
            );
        }
    }
}

#[test]
fn a_file_that_is_no_config_of_credential_providers_is_the_kubelets_only_if_it_is_told_so() {
    let restart = [Action::restart(KUBELET)];
    // What was none before is not read, nor is what is not called like one.
    for (path, before) in [
        (PROVIDER, Some("a: 1\n")),
        ("/etc/kubernetes/credential-providers/README", None),
        ("/etc/kubernetes/credential-providers/more/a.yaml", None),
    ] {
        for dropin in [None, Some(drop_in("/etc/kubernetes/other.yaml"))] {
            let verdict = of_config(path, before, Some("a: 2\n"), dropin.as_deref());
            assert_eq!(verdict.actions(), restart, "{path}: {}", verdict.reason());
        }
        let verdict = of_config(path, before, Some("a: 2\n"), Some(&drop_in(path)));
        assert_eq!(verdict.effect(), Some(Effect::Refuse), "{path}: {}", verdict.reason());
    }
    assert_eq!(of_config(PROVIDER, Some("a: 1\n"), None, None).actions(), restart);
    let all = drop_in("/etc/kubernetes/credential-providers/");
    let effect = |path, text| of_config(path, None, Some(text), Some(&all)).effect();
    assert_eq!(effect(PROVIDER, "a: 1\n"), Some(Effect::Refuse));
    assert_eq!(effect("/etc/kubernetes/credential-providers/README", "a\n"), Some(Effect::Restart));
}

#[test]
fn a_file_beside_a_config_of_credential_providers_is_not_refused_where_the_kubelet_is_told_of_another()
 {
    let (a, restart, drains) = (
        config("a"),
        vec![Action::restart(KUBELET)],
        vec![Action::Drain, Action::restart(KUBELET)],
    );
    let settings = "/etc/kubernetes/credential-providers/plugin.json";
    let more = "/etc/kubernetes/credential-providers/more/config";
    let of = |path, before, after, dropin: Option<&str>| {
        of_config(path, before, Some(after), dropin).actions().to_vec()
    };
    let reset = |text: String| {
        let line = text.replace("[Service]\n", "");
        format!("{}Environment=\n{line}", drop_in(settings))
    };
    let (other, named) = (drop_in(PROVIDER), drop_in(settings));
    let line = other.replace("[Service]\n", "");
    for other in [
        other.clone(),
        other.replace("config=", "config "),
        format!("{named}{line}"),
        reset(other.clone()),
        format!("{other}[Unit]\n{}", named.replace("[Service]\n", "")),
    ] {
        for before in [None, Some(" "), Some("{}")] {
            assert_eq!(of(settings, before, r#"{"a": 1}"#, Some(&other)), restart, "{other}");
        }
        // As one that goes: kubelet.service itself may name it.
        for before in [a.as_str(), "# CredentialProviderConfig\na: &a b\n"] {
            assert_eq!(of(settings, Some(before), r#"{"a": 1}"#, Some(&other)), drains, "{other}");
        }
        assert_eq!(of(settings, None, &a, Some(&other)), restart, "{other}");
    }
    // Where nobody says which file it is, a new one is drained for, and one that was a config is refused.
    for other in [
        None,
        Some("[Service]\nEnvironment=CREDENTIAL_PROVIDER_CONFIG=/etc/x.yaml\n"),
        Some("[Service]\nEnvironment=\"F=--image-credential-provider-bin-dir=/x\"\n"),
        Some("[Service]\nEnvironment=\"F=--image-credential-provider-config=\"\n"),
        Some("[Service]\nExecStart=/bin/kubelet --image-credential-provider-config=/x\n"),
        Some(&other.replace("[Service]", "[Unit]")),
        Some(&named.replace("[Service]", "[Unit]")),
        Some(&format!("{named}UnsetEnvironment=KUBELET\n").replace(settings, "/x.yaml")),
    ] {
        for before in [None, Some("")] {
            let verdict = of_config(settings, before, Some(r#"{"a": 1}"#), other);
            assert_eq!(verdict.actions(), drains, "{other:?}");
            assert!(verdict.reason().contains("no CredentialProviderConfig"));
        }
        assert_eq!(of(settings, Some("{}"), r#"{"a": 1}"#, other), restart, "{other:?}");
        for path in [settings, more] {
            let verdict = of_config(path, Some(&a), Some("{}"), other);
            assert_eq!(verdict.effect(), Some(Effect::Refuse), "{path} {other:?}");
        }
    }
    // A drop-in that may name it counts as one that does, of a new one and of a config.
    for other in [
        other.replace("acr", "%H"),
        other.replace("/acr", "/\\x70lugin"),
        "[Service]\nExecStart=/bin/kubelet $X %E/a\n".to_string(),
    ] {
        for before in [None, Some(""), Some(a.as_str())] {
            let verdict = of_config(settings, before, Some("{}"), Some(&other));
            assert_eq!(verdict.effect(), Some(Effect::Refuse), "{before:?} {other}");
        }
    }
    // The kubelet reads no directory below its own, nor what is not called like a config.
    let all = drop_in("/etc/kubernetes/./credential-providers//");
    assert_eq!(of(more, None, "{}", Some(&all)), restart);
    assert_eq!(of(more, Some(&a), "{}", Some(&all)), drains);
    for path in [
        "/etc/kubernetes/x/../credential-providers/plugin.json",
        "etc/kubernetes//credential-providers/plugin.json",
    ] {
        let verdict = of_config(settings, None, Some("{}"), Some(&drop_in(path)));
        assert_eq!(verdict.effect(), Some(Effect::Refuse), "{path}");
    }
    // It is the drop-in after the change that counts, and one that may not be read may name any file.
    for (before, after, expected) in [
        (&named, &other, Effect::Restart),
        (&other, &named, Effect::Refuse),
        (&other, &String::new(), Effect::Drain),
    ] {
        let changes =
            vec![test::file_added(settings, "{}"), test::file(dropin::PATH, before, after)];
        let verdicts = test::verdicts::<Certificates>(&(), changes, vec![]);
        assert_eq!(verdicts[0].effect(), Some(expected), "{}", verdicts[0].reason());
    }
    let State::File(mut file) = test::file_state("") else { panic!("no file") };
    file.content = Content::Digest("secret:1".into());
    let secret = Change {
        id: format!("file:{}", dropin::PATH),
        before: State::Absent,
        after: State::File(file),
    };
    let changes = vec![test::file_added(settings, "{}"), secret];
    let verdicts = test::verdicts::<Certificates>(&(), changes, vec![]);
    assert_eq!(verdicts[0].effect(), Some(Effect::Refuse), "{}", verdicts[0].reason());
}

#[test]
fn a_config_of_credential_providers_that_goes_is_drained_for_and_refused_where_it_is_named() {
    let a = config("a");
    let drains = [Action::Drain, Action::restart(KUBELET)];
    let (named, other) = (drop_in(PROVIDER), drop_in("/etc/kubernetes/other.yaml"));
    let (all, comment) =
        (drop_in("/etc/kubernetes/credential-providers"), format!("# {PROVIDER}\n"));
    for after in [None, Some("")] {
        let of = |dropin| of_config(PROVIDER, Some(&a), after, dropin);
        for dropin in [None, Some(other.as_str()), Some(&comment)] {
            assert_eq!(of(dropin).actions(), drains, "{dropin:?}");
            assert!(of(dropin).reason().contains("a pull that worked may fail"));
        }
        let verdict = of(Some(&named));
        assert_eq!(verdict.effect(), Some(Effect::Refuse), "{}", verdict.reason());
        assert!(verdict.reason().contains("take its name out"), "{}", verdict.reason());
        // Others may be left in the directory; one that is empty is in it still.
        let expected = if after.is_some() { Effect::Refuse } else { Effect::Drain };
        assert_eq!(of(Some(&all)).effect(), Some(expected));
    }
    // Only the last assignment in [Service] names a file.
    let line = other.replace("[Service]\n", "");
    for text in [
        format!("{named}{line}"),
        named.replace("[Service]", "[Unit]"),
        format!("{named}Environment=\n"),
    ] {
        let verdict = of_config(PROVIDER, Some(&a), None, Some(&text));
        assert_eq!(verdict.actions(), drains, "{text}: {}", verdict.reason());
    }
    // It is the drop-in after the change that counts.
    let goes = || test::file_removed(PROVIDER, &a);
    for (before, after, expected) in
        [(&named, &other, Effect::Drain), (&other, &named, Effect::Refuse)]
    {
        let changes = vec![goes(), test::file(dropin::PATH, before, after)];
        let verdicts = test::verdicts::<Certificates>(&(), changes, vec![]);
        assert_eq!(verdicts[0].effect(), Some(expected), "{}", verdicts[0].reason());
    }
    let changes = vec![goes(), test::file_removed(dropin::PATH, &named)];
    for verdict in test::verdicts::<Certificates>(&(), changes, vec![]) {
        assert_eq!(verdict.actions(), drains, "{}", verdict.reason());
    }
}

#[test]
fn a_drop_in_that_says_less_of_credential_providers_is_drained_for() {
    let (a, b) = (drop_in("/a.yaml"), drop_in("/b.yaml"));
    let more = format!("{a}Environment=CREDENTIAL_PROVIDER_X=y\n");
    let line = |text: &str| text.trim_start_matches("[Service]\n").to_string();
    let in_unit = a.replace("[Service]", "[Unit]");
    for (before, after, drains) in [
        (&a, &b, true),
        (&more, &a, true),
        (&a, &more, false),
        (&a, &format!("# the same\n{a}"), false),
        (&String::new(), &a, false),
        // The last assignment of a variable counts, however it is written.
        (&a, &format!("{a}{}", line(&b)), true),
        (&a, &format!("{b}{}", line(&a)), false),
        (&a, &format!("{a}[Unit]\n{}", line(&b)), false),
        (&a, &format!("{a}[Unit]\n[Service]\n{}", line(&b)), true),
        (&format!("{a}{}", line(&b)), &format!("{b}{}", line(&a)), true),
        (&format!("{a}{}", line(&b)), &b, false),
        (
            &more,
            &more.replace("[Service]\n", "[Service]\nEnvironment=CREDENTIAL_PROVIDER_X=z\n"),
            false,
        ),
        (&a, &a.replace('"', "'"), false),
        // What is in another section, or below a broken line of one, systemd passes over.
        (&a, &in_unit, true),
        (&in_unit, &a, false),
        (&in_unit, &String::new(), false),
        (&a, &line(&a), true),
        (&a, &a.replace("[Service]", "[Service"), true),
        (&a, &a.replace("[Service]", "[service]"), true),
        (&a, &format!("\u{feff}{a}"), false),
        (&a, &a.replace("[Service]", "[Service] \t"), false),
        // A name or a value that systemd does not take changes nothing.
        (&a, &a.replace("KUBELET", "1KUBELET"), true),
        (&a, &a.replace("/b\"", "/b\u{1}\""), true),
        (&format!("{a}{}", line(&b).replace("KUBELET", "1KUBELET")), &a, false),
        // A specifier that is none takes its assignment with it.
        (&format!("{a}{}", line(&b).replace("/b.", "/%Q.")), &b.replace("/b.", "/%Q."), true),
        (&b.replace("/b.", "/%H."), &b.replace("/b.", "/%H."), false),
    ] {
        let verdict = test::verdict::<Certificates>(test::file(dropin::PATH, before, after));
        assert_eq!(verdict.actions().contains(&Action::Drain), drains, "{before} {after}");
        assert!(verdict.actions().contains(&Action::restart(KUBELET)));
        assert!(Certificates::REASONS.contains(&verdict.reason()), "{}", verdict.reason());
    }
    assert_eq!(actions(test::file_added(dropin::PATH, &a)), [Action::restart(KUBELET)]);
    let removed = test::file_removed(dropin::PATH, &a);
    assert_eq!(actions(removed), [Action::Drain, Action::restart(KUBELET)]);
    // A reset takes what kubelet.service sets, too, and a specifier may stand for any name.
    for text in [
        format!("{a}Environment=\n"),
        a.replace("[Service]\n", "[Service]\nEnvironment=\n"),
        "[Service]\nEnvironment=%p=--image-credential-provider-config=/a\n".to_string(),
    ] {
        assert_eq!(actions(test::file(dropin::PATH, &a, &text)), [Action::Reboot], "{text}");
        assert_eq!(actions(test::file(dropin::PATH, &text, &a)), [Action::Reboot], "{text}");
    }
}

#[test]
fn a_file_with_which_the_internal_registry_would_not_start_is_refused() {
    let (certificate, key) = ("/etc/iri-registry/certs/tls.crt", "/etc/iri-registry/certs/tls.key");
    let private = "-----BEGIN PRIVATE KEY-----\nYQ==\n-----END PRIVATE KEY-----\n";
    let cut = |text: &str| text.split_inclusive('\n').take(2).collect::<String>();
    for (path, text, refused) in [
        (certificate, "x", true),
        (certificate, private, true),
        (certificate, &cut(&pem("YQ==")), true),
        (certificate, &format!("{}{}", pem("YQ=="), pem("Yg==")), false),
        (key, "x", true),
        (key, &pem("YQ=="), true),
        (key, &cut(private), true),
        (key, private, false),
        ("/etc/iri-registry/auth/htpasswd", "openshift:x", false),
    ] {
        let (effect, why) = of_text(path, "y", text.as_bytes());
        let expected = if refused { Effect::Refuse } else { Effect::Restart };
        assert_eq!(effect, Some(expected), "{path} {text}: {why}");
    }
    let secret = State::File(tread_guest_sdk::File {
        content: Content::Digest("secret:1".into()),
        mode: 0o600,
        user: "root".into(),
        group: "root".into(),
    });
    let change = Change { id: format!("file:{key}"), before: State::Absent, after: secret };
    assert_eq!(actions(change), [Action::restart(IRI)]);
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
fn a_script_that_nobody_can_run_is_refused() {
    let mode = |mode: u32| {
        let State::File(mut file) = test::file_state("#!/bin/bash\n") else { panic!("no file") };
        file.mode = mode;
        State::File(file)
    };
    let turned = |before: u32, after: u32| {
        let id = format!("file:{IRI_SCRIPT}");
        test::verdict::<Certificates>(Change { id, before: mode(before), after: mode(after) })
    };
    let refused = turned(0o755, 0o644);
    assert_eq!(refused.effect(), Some(Effect::Refuse), "{}", refused.reason());
    assert!(refused.reason().contains("make it executable"), "{}", refused.reason());
    let added = test::verdict::<Certificates>(test::file_added(IRI_SCRIPT, "#!/bin/bash\n"));
    assert_eq!(added.effect(), Some(Effect::Refuse), "{}", added.reason());
    for (before, after) in [(0o755, 0o700), (0o644, 0o755)] {
        assert_eq!(turned(before, after).actions(), [Action::restart(IRI)]);
    }
}

#[test]
fn a_registry_that_openshift_had_disabled_boots_when_it_comes_back() {
    const DISABLED: &str = "[Unit]\nDescription=x\n[Service]\nType=oneshot\nExecStart=/bin/true\n";
    const RUNS: &str =
        "[Service]\nExecStart=/usr/bin/podman run a\n[Install]\nWantedBy=multi-user.target\n";
    let unit = |text: &str| {
        let State::Unit(mut unit) = test::unit_state(text) else { panic!("no unit") };
        unit.enabled = Some(true);
        State::Unit(unit)
    };
    let turned = |before: &str, after: &str| {
        actions(Change { id: format!("unit:{IRI}"), before: unit(before), after: unit(after) })
    };
    assert_eq!(turned(DISABLED, RUNS), [Action::Reboot]);
    assert_eq!(turned(RUNS, DISABLED), [Action::Reboot]);
    let again = DISABLED.replace("oneshot", "oneshot\nType = simple");
    assert_eq!(turned(&again, RUNS), [Action::restart(IRI), Action::DaemonReload]);
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
