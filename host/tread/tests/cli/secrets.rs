//! Law 10: contents appear on a local terminal only, and secrets never.

use crate::configs::{config, core_user, file, files, machine_config};
use crate::guests::{claim, classifying};
use crate::support::{Bench, Ran};
use serde_json::{Value, json};
use tread_model::effect::Effect;

/// Stands wherever contents stand; must not come out.
const MARKER: &str = "xyzzyMARKER";

fn policy_json(text: &str) -> String {
    let key = json!([{"type": "signedBy", "keyType": "GPGKeys", "keyPath": format!("/{text}")}]);
    json!({"default": key}).to_string()
}

fn everything(ran: &Ran) -> String {
    format!("{}{}", ran.out(), ran.err())
}

/// Without the line breaks that wrapping makes.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn assert_silent(ran: &Ran, what: &str) {
    let all = everything(ran);
    assert!(!all.contains(MARKER), "{what}: {all}");
}

fn certificate(body: &str) -> String {
    format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
}

/// A pull secret.
fn logins(registry: &str) -> String {
    json!({"auths": {registry: {"auth": ""}}}).to_string()
}

/// Files of which some policies know the form, and some nobody knows.
fn spec(side: &str) -> Value {
    let it = format!("{MARKER}{side}");
    let public = [
        ("/etc/unknown", it.clone()),
        ("/etc/NetworkManager/a.conf", it.clone()),
        ("/etc/crio/crio.conf.d/a", format!("[crio.runtime]\nconmon_env = [\"{it}\"]\n")),
        ("/etc/crio/crio.conf.d/broken", format!("[{it}\n")),
        (
            "/etc/kubernetes/kubelet.conf",
            format!("{{\"kind\": \"KubeletConfiguration\", \"x\": \"{it}\"}}"),
        ),
        ("/etc/kubernetes/kubelet-ca.crt", certificate(&it)),
        ("/etc/containers/storage.conf", format!("[storage]\ngraphroot = \"/{it}\"\n")),
        ("/etc/containers/policy.json", policy_json(&it)),
        ("/etc/containers/registries.d/a.yaml", format!("x: {it}\n")),
        ("/etc/pki/ca-trust/source/anchors/a.crt", it.clone()),
        ("/etc/systemd/system/a.service.d/b.conf", it.clone()),
    ];
    let mut list: Vec<Value> = public.iter().map(|(path, text)| file(path, text, 0o644)).collect();
    list.push(file("/etc/secret", &format!("secret-{it}"), 0o600));
    list.push(file("/var/lib/kubelet/config.json", &logins(&format!("secret-{it}")), 0o600));
    let mut spec = config(json!({
        "storage": {"files": list},
        "systemd": {"units": [{
            "name": "a.service", "contents": format!("[Unit]\n# {it}\n"),
            "dropins": [{"name": "c.conf", "contents": format!("# {it}\n")}],
        }]},
    }));
    let key = format!("ssh-ed25519 {it}");
    let user = core_user(&[&key], Some(&format!("$6$secret-{it}")));
    spec["config"]["passwd"] = user["config"]["passwd"].clone();
    spec
}

#[test]
fn nothing_that_is_piped_holds_contents_in_any_format() {
    let bench = Bench::new();
    let claims = vec![claim("file:/etc/unknown", Effect::None, Effect::Restart)];
    bench.write("broken.wasm", classifying("broken", claims, "unreachable").component());
    for output in ["human", "json", "yaml"] {
        for more in [
            &[][..],
            &["--diff", "never"],
            &["--timings"],
            &["--max", "none"],
            &["--policy", "broken.wasm"],
            &["--policy", "broken.wasm", "--read-secrets", "broken"],
        ] {
            let args = [&["-o", output], more].concat();
            for (old, new) in
                [(spec("old"), spec("new")), (files(&[]), spec("new")), (spec("old"), files(&[]))]
            {
                let ran = bench.plan(old, new, &args);
                assert!([0, 3].contains(&ran.code()), "{}", ran.err());
                assert_silent(&ran, &args.join(" "));
            }
        }
    }
}

#[test]
fn no_log_holds_contents_however_much_is_logged() {
    let bench = Bench::new();
    let worker = |spec| machine_config("worker", spec).to_string();
    bench.write("old.json", worker(spec("old")));
    bench.write("new.json", worker(spec("new")));
    let mut command = bench.command(&["plan", "old.json", "new.json"]);
    command.env("TREAD_LOG", "trace").env("TREAD_CACHE_DIR", bench.dir.path().join("cache"));
    assert_silent(&crate::support::run(command, b""), "TREAD_LOG=trace");
}

#[test]
fn diff_always_shows_contents_and_still_no_secret() {
    let bench = Bench::new();
    let ran = bench.plan(spec("old"), spec("new"), &["--diff", "always"]);
    let out = ran.out();
    for shown in [
        format!("- {MARKER}old"),
        format!("+ {MARKER}new"),
        format!("+ # {MARKER}new"),
        format!("+ ssh-ed25519 {MARKER}new"),
    ] {
        assert!(out.contains(&shown), "{shown} in\n{out}");
    }
    assert!(!everything(&ran).contains("secret-"), "{out}");
    assert!(out.contains("+1 −1 lines (a secret, not shown)"), "{out}");
    for output in ["json", "yaml"] {
        let ran = bench.plan(spec("old"), spec("new"), &["--diff", "always", "-o", output]);
        assert_silent(&ran, output);
    }
}

#[test]
fn a_file_that_was_a_secret_on_one_side_is_one() {
    let bench = Bench::new();
    let with =
        |text: &str, mode| config(json!({"storage": {"files": [file("/etc/a", text, mode)]}}));
    for (before, after) in [(0o644, 0o600), (0o600, 0o644), (0o640, 0o640)] {
        let (old, new) = (with(&format!("{MARKER}1"), before), with(&format!("{MARKER}2"), after));
        assert_silent(
            &bench.plan(old, new, &["--diff", "always"]),
            &format!("{before:o} {after:o}"),
        );
    }
}

/// A policy that logs the content of the new side, and panics: the last line is
/// the reason.
fn chatty() -> Vec<u8> {
    let body = r#"(call $log (i32.load offset=52 (local.get $changes))
        (i32.load offset=56 (local.get $changes))) unreachable"#;
    let claims = vec![claim("file:/etc/secret", Effect::None, Effect::Restart)];
    classifying("chatty", claims, body).component()
}

#[test]
fn a_policy_that_tells_all_it_sees_cannot_tell_a_secret() {
    let bench = Bench::new();
    bench.write("chatty.wasm", chatty());
    for output in ["human", "json", "yaml"] {
        let args = ["-o", output, "--timings", "--policy", "chatty.wasm"];
        let ran = bench.plan(spec("old"), spec("new"), &args);
        assert_silent(&ran, output);
        let out = one_line(&ran.out());
        assert!(out.contains("trap: secret:"), "it sees a token: {out}");
    }
}

#[test]
fn the_last_words_of_a_policy_that_may_read_secrets_are_not_told() {
    let bench = Bench::new();
    bench.write("chatty.wasm", chatty());
    for output in ["human", "json", "yaml"] {
        for more in [
            &["--policy", "chatty.wasm", "--read-secrets", "chatty"][..],
            &["--shadow", "chatty.wasm", "--read-secrets", "chatty"],
        ] {
            let ran = bench.plan(spec("old"), spec("new"), &[&["-o", output], more].concat());
            assert_silent(&ran, output);
            assert!(!everything(&ran).contains("secret-"), "{}", ran.out());
            let out = one_line(&ran.out());
            assert!(out.contains("It was offered secrets"), "{}{}", ran.out(), ran.err());
        }
    }
}

#[test]
fn what_a_policy_logs_goes_no_further_than_the_failure_that_it_explains() {
    let bench = Bench::new();
    let body = r#"(call $log (i32.load offset=52 (local.get $changes))
        (i32.load offset=56 (local.get $changes)))
        (call $log (i32.const 120000) (i32.const 4)) unreachable"#;
    let claims = vec![claim("file:/etc/unknown", Effect::None, Effect::Restart)];
    let chatty = crate::guests::Guest {
        fields: r#"(data (i32.const 120000) "done")"#.to_owned(),
        ..classifying("chatty", claims, body)
    };
    bench.write("chatty.wasm", chatty.component());
    for output in ["human", "json", "yaml"] {
        let args = ["-o", output, "--timings", "--policy", "chatty.wasm"];
        let ran = bench.plan(spec("old"), spec("new"), &args);
        assert!(one_line(&ran.out()).contains("trap: done"), "{}", ran.out());
        assert_silent(&ran, output);
    }
}

#[test]
fn what_a_policy_used_to_which_a_secret_was_offered_is_in_no_output() {
    let bench = Bench::new();
    let of = |path: &str, mode| {
        let with = |text: &str| {
            config(json!({"storage": {"files": [file(path, &certificate(text), mode)]}}))
        };
        let plan =
            |more: &[&str]| bench.plan(with("a"), with("b"), &[&["--timings"], more].concat());
        (plan(&[]).out(), plan(&["-o", "json"]).json()["timings"]["calls"][0].clone())
    };
    let (out, call) = of("/etc/kubernetes/kubelet-ca.crt", 0o644);
    assert!(out.contains("asking ") && out.contains("fuel "), "{out}");
    assert!(call["fuel"].as_u64().is_some() && call["call"].is_object(), "{call}");
    let (out, call) = of("/etc/kubernetes/kubelet-ca.crt", 0o600);
    assert!(!out.contains("asking ") && !out.contains("fuel "), "{out}");
    assert!(out.contains("what it used is not shown"), "{out}");
    assert_eq!((call.get("fuel"), call.get("call")), (None, None), "{call}");
    assert_eq!(call["policy"], "certificates");
}

#[test]
fn no_error_quotes_contents() {
    let bench = Bench::new();
    bench.write("good.yaml", machine_config("good", files(&[])).to_string());
    let source = |source: &str| {
        let file = json!({"path": "/etc/a", "contents": {"source": source}});
        machine_config("bad", config(json!({"storage": {"files": [file]}}))).to_string()
    };
    let user = |fields: Value| {
        machine_config("bad", config(json!({"passwd": {"users": [fields]}}))).to_string()
    };
    for (what, text) in [
        ("base64 that is none", source(&format!("data:;base64,{MARKER}!"))),
        ("base64 that is cut", source(&format!("data:;base64,{MARKER}"))),
        ("a percent sign", source(&format!("data:,{MARKER}%zz"))),
        ("a header", source(&format!("data:{MARKER},x"))),
        ("no comma", source(&format!("data:{MARKER}"))),
        ("a YAML quote", format!("a: \"{MARKER}\n")),
        ("a YAML escape", format!("a: \"{MARKER}\\q\"\n")),
        ("a YAML alias", format!("a: *{MARKER}\n")),
        ("a YAML tag", format!("a: !!int {MARKER}\n")),
        ("a YAML binary", format!("a: !!binary {MARKER}!\n")),
        ("a YAML tab", format!("a:\n\t- {MARKER}\n")),
        ("YAML with no key", format!("a: 1\n{MARKER}\n")),
        ("JSON that is cut", format!("{{\"a\": \"{MARKER}")),
        ("JSON and more", format!("{{\"a\": 1}} {MARKER}")),
        ("a JSON word", format!("{{\"a\": {MARKER}}}")),
        ("no object", MARKER.to_owned()),
        ("a list", format!("[\"{MARKER}\"]")),
        ("a text for a list", user(json!({"name": "core", "sshAuthorizedKeys": MARKER}))),
        ("a list for a text", user(json!({"name": "core", "passwordHash": [MARKER]}))),
        ("a text for an object", machine_config("bad", json!({"config": MARKER})).to_string()),
        ("a binary beginning", format!("\u{0}{MARKER}")),
    ] {
        bench.write("bad.yaml", text);
        let ran = bench.tread(&["plan", "good.yaml", "bad.yaml"]);
        assert_eq!(ran.code(), 1, "{what}: {}", ran.out());
        assert!(ran.err().contains("bad.yaml"), "{what}: {}", ran.err());
        assert_silent(&ran, what);
    }
}

#[test]
fn a_policy_that_refuses_does_not_quote_what_it_refuses() {
    let bench = Bench::new();
    for (path, text) in [
        ("/etc/containers/policy.json", format!("{{\"default\": [], \"x\": \"{MARKER}")),
        ("/etc/containers/registries.conf", format!("[[registry]]\nlocation = \"{MARKER}\n")),
        ("/etc/containers/registries.conf", format!("{MARKER}\n")),
    ] {
        for output in ["human", "json"] {
            let ran = bench.plan(files(&[]), files(&[(path, &text)]), &["-o", output]);
            assert_eq!(ran.code(), 4, "{text}: {}", ran.out());
            assert_silent(&ran, &text);
        }
    }
}

#[test]
fn a_refusal_does_not_quote_where_contents_come_from() {
    let bench = Bench::new();
    let url = format!("https://user:{MARKER}@example.com/a");
    let file = json!({"path": "/etc/a", "contents": {"source": url}});
    let new = config(json!({"storage": {"files": [file]}}));
    let ran = bench.plan(files(&[]), new, &["--diff", "always"]);
    assert_eq!(ran.code(), 4);
    assert_silent(&ran, "a URL");
}

fn secret_registries(text: &str) -> Value {
    let spec = config(json!({"storage": {"files": [
        file("/etc/containers/registries.conf", text, 0o600),
    ]}}));
    machine_config("a", spec)
}

fn mirrors() -> Value {
    json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ImageDigestMirrorSet",
        "metadata": {"name": "mirrors"},
        "spec": {"imageDigestMirrors": [{"source": "quay.io/app", "mirrors": ["m.io/app"]}]},
    })
}

#[test]
fn a_broken_file_that_mirrors_go_into_is_not_quoted() {
    let bench = Bench::new();
    let broken = secret_registries(&format!("proxy = \"{MARKER}"));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [broken, mirrors()]});
    bench.write("new.json", list.to_string());
    let ran = bench.tread(&["plan", "new.json", "new.json"]);
    assert_eq!(ran.code(), 1);
    assert!(ran.err().contains("no TOML (line 1)"), "{}", ran.err());
    assert_silent(&ran, "an error of the TOML reader");
}

#[test]
fn a_secret_file_stays_one_with_mirrors_in_it_and_no_reason_quotes_it() {
    let bench = Bench::new();
    let base = secret_registries(&format!("[[registry]]\nlocation = \"{MARKER}.io\"\n"));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [base, mirrors()]});
    bench.write("old.json", base.to_string());
    bench.write("new.json", list.to_string());
    for output in ["human", "json", "yaml"] {
        let ran = bench.tread(&["plan", "old.json", "new.json", "--diff", "always", "-o", output]);
        assert_eq!(ran.code(), 0, "{}", ran.err());
        assert_silent(&ran, output);
        let lower = everything(&ran).to_lowercase();
        assert!(!lower.contains(&MARKER.to_lowercase()), "{output}: {lower}");
    }
}

#[test]
fn a_file_that_is_known_to_hold_a_secret_is_one_whatever_its_mode() {
    let bench = Bench::new();
    for path in
        ["/var/lib/kubelet/config.json", "/etc/pki/tls/private/a.pem", "/etc/kubernetes/kubeconfig"]
    {
        let with = |side: &str| files(&[(path, &logins(&format!("{MARKER}{side}")))]);
        for output in ["human", "json"] {
            let args = ["-o", output, "--diff", "always"];
            let ran = bench.plan(with("old"), with("new"), &args);
            assert_eq!(ran.code(), 0, "{}", ran.err());
            assert_silent(&ran, path);
        }
    }
}

#[test]
fn a_policy_that_needs_secrets_says_so_until_it_may_read_them() {
    let bench = Bench::new();
    let component = crate::support::tree().join("tests/contract/1.1.0/declares.wasm");
    let component = component.to_str().unwrap();
    let with =
        |text: &str| config(json!({"storage": {"files": [file("/etc/declares/a", text, 0o600)]}}));
    let plan = |more: &[&str]| {
        let args = [&["--policy", component], more].concat();
        let ran = bench.plan(with("secret-1"), with("secret-2"), &args);
        assert!(!everything(&ran).contains("secret-"), "{}", ran.out());
        one_line(&ran.out())
    };
    let blind = plan(&[]);
    let says = "it may not read this file: `--read-secrets declares`, in a cluster \
                `spec.readSecrets: true`, lets it";
    assert!(blind.contains(says), "{blind}");
    let seeing = plan(&["--read-secrets", "declares"]);
    assert!(seeing.starts_with("restart declares.service; no drain, no reboot"), "{seeing}");
    assert!(seeing.contains("declares.service reads it when it starts"), "{seeing}");

    let listed = bench.tread(&["policies", "--policy", component]);
    assert!(listed.out().contains("Loaded; needs --read-secrets declares"), "{}", listed.out());
    let args = ["policies", "--policy", component, "--read-secrets", "declares"];
    assert!(!bench.tread(&args).out().contains("needs --read-secrets"));
    let inspected = bench.tread(&["policy", "inspect", component]);
    assert!(inspected.out().contains("It needs to read secrets"), "{}", inspected.out());
}

#[test]
fn where_a_built_in_policy_saw_a_secret_an_admin_is_told_how_to_see_its_reason() {
    let bench = Bench::new();
    let reason = |mode: u32| {
        let trust = |text: &str| {
            let files = [file("/etc/containers/policy.json", text, mode)];
            config(json!({"storage": {"files": files}}))
        };
        let accepts_all = r#"{"default": [{"type": "insecureAcceptAnything"}]}"#;
        let ran = bench.plan(trust(accepts_all), trust("{}"), &["-o", "json"]);
        assert_eq!(ran.code(), 4, "{}", ran.out());
        ran.json()["changes"][0]["reason"].as_str().unwrap().to_owned()
    };
    assert!(reason(0o600).contains("or of mode 0644, to see it"), "{}", reason(0o600));
    assert!(reason(0o644).contains("default"), "{}", reason(0o644));
}
