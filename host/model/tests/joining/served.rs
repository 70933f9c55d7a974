//! What a machine is served.

use serde_json::{Value, json};
use tread_model::config_digest::digests;
use tread_model::digest::Digest;
use tread_model::joining::{
    BOOTED, BOOTSTRAP, Booted, Boots, KUBELET, Served, Unserved, served, stub,
};
use tread_model::read::{Input, side_in_order};
use tread_model::rendering::{Pool, Rendered, render};

const BASE64_KUBELET: &str =
    "data:text/plain;charset=utf-8;base64,a2luZDogS3ViZWxldENvbmZpZ3VyYXRpb24KbWF4UG9kczogMjUwCg==";

fn rendered(files: Value) -> Rendered {
    let config = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": "50-infra"},
        "spec": {"kernelArguments": ["quiet"], "config": {
            "ignition": {"version": "3.4.0"}, "storage": {"files": files}}},
    });
    let text = config.to_string();
    let input = Input { name: "50-infra", bytes: text.as_bytes() };
    render(&Pool { name: "infra", uid: "1" }, &[input], &[]).unwrap()
}

fn kubelet() -> Value {
    json!({"path": KUBELET, "mode": 420, "contents": {"source": BASE64_KUBELET}})
}

fn of<'a>(rendered: &'a Rendered, bootstrap: Option<&'a str>) -> Boots<'a> {
    Boots {
        pool: "infra",
        config: &rendered.name,
        digest: rendered.digest,
        spec: &rendered.object["spec"],
        kubelet: KUBELET,
        bootstrap,
    }
}

fn whole(served: &Served, claim: &str) -> Value {
    serde_json::from_str(&format!("{}{claim}{}", served.head, served.tail)).unwrap()
}

fn file(config: &Value, path: &str) -> (String, u64) {
    let files = config["storage"]["files"].as_array().unwrap();
    let file = files.iter().find(|file| file["path"] == path).unwrap();
    let source = file["contents"]["source"].as_str().unwrap().to_owned();
    let source = tread_model::config::Source { url: Some(source.into()), gzip: false };
    let bytes = tread_model::contents::decode(&source).unwrap().unwrap();
    (String::from_utf8(bytes.into_owned()).unwrap(), file["mode"].as_u64().unwrap())
}

#[test]
fn a_machine_is_served_what_its_pool_has_and_what_makes_it_one_of_it() {
    let other = json!({"path": "/etc/a", "mode": 384, "contents": {"source": "data:,a%20b"}});
    let rendered = rendered(json!([kubelet(), other]));
    let served = served(&of(&rendered, Some("users: [{token: \"a%\\n\"}]")), Some(3)).unwrap();
    let config = whole(&served, "1abc-_t");
    assert_eq!(config["ignition"]["version"], "3.3.0");
    let (text, mode) = file(&config, KUBELET);
    assert!(text.starts_with("kind: KubeletConfiguration\nmaxPods: 250\n#"), "{text}");
    assert!(text.contains("  value: \"1abc-_t\"\n"), "{text}");
    assert_eq!(mode, 0o644);
    let (booted, _) = file(&config, BOOTED);
    let expected = Booted::with("infra", &rendered.name, rendered.digest).joins(KUBELET, true);
    assert_eq!(Booted::read(booted.as_bytes()), Some(expected));
    let (bootstrap, mode) = file(&config, BOOTSTRAP);
    assert_eq!((bootstrap.as_str(), mode), ("users: [{token: \"a%\\n\"}]", 0o600));
    assert_eq!(file(&config, "/etc/a"), ("a b".to_owned(), 0o600));
    assert!(!format!("{served:?}").contains("token"), "it is shown nowhere");
}

#[test]
fn what_is_served_is_taken_by_ignitions_parser() {
    let rendered = rendered(json!([kubelet()]));
    let served = served(&of(&rendered, Some("a: ü ~\u{1}\n")), Some(0)).unwrap();
    let object = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": "served"}, "spec": {"config": whole(&served, "1abct")},
    });
    let text = object.to_string();
    let input = Input { name: "served", bytes: text.as_bytes() };
    let side = side_in_order("served", &[input]).unwrap();
    assert!(tread_model::refuse::unparsable(&side.config).is_empty());
    assert_ne!(digests(&side.config).unwrap().config, rendered.digest);
}

#[test]
fn two_machines_are_served_the_same_but_for_the_claim() {
    let rendered = rendered(json!([kubelet()]));
    let one = served(&of(&rendered, None), None).unwrap();
    assert_eq!(one, served(&of(&rendered, None), None).unwrap());
    assert_eq!(one.minor, 4);
    let text = format!("{}{}", one.head, one.tail);
    assert!(!text.contains("CLAIM") && !text.contains(BOOTSTRAP), "{text}");
}

#[test]
fn what_cannot_be_served_is_said_with_what_to_do() {
    let none = rendered(json!([{"path": "/etc/a", "contents": {"source": "data:,a"}}]));
    let taken = rendered(json!([kubelet(), {"path": BOOTED, "contents": {"source": "data:,a"}}]));
    let own = "data:,kind%3A%20KubeletConfiguration%0AregisterWithTaints%3A%20%5B%5D%0A";
    let own = rendered(json!([{"path": KUBELET, "contents": {"source": own}}]));
    let arguments = rendered(json!([kubelet()]));
    for (what, rendered, minor, says) in [
        ("no kubelet", &none, None, "has no file /etc/kubernetes/kubelet.conf"),
        ("taken", &taken, None, "has something at /etc/tread/booted.json"),
        ("taints", &own, None, "spec.nodeTaints"),
    ] {
        let error = served(&of(rendered, None), minor).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("infra"), "{what}: {error}");
    }
    // What a kubelet's command line says beats its configuration.
    let flag = "--register-with-taints=a=b:NoSchedule";
    let exec = format!("[Service]\nExecStart=/usr/bin/kubelet \\\n  {flag} \\\n  --v=2\n");
    let reads =
        "[Service]\nEnvironmentFile=-/etc/kubelet/env.d/*\nEnvironmentFile=/etc/kubelet/env\n";
    let environment =
        |path: &str| json!({"path": path, "contents": {"source": format!("data:,EXTRA={flag}")}});
    let unit = |unit: Value| json!({"units": [unit]});
    let named = |contents: &str| unit(json!({"name": "kubelet.service", "contents": contents}));
    let underscores = exec.replace(flag, &flag.replace("-with-taints", "_with_taints"));
    let elsewhere = "[Service]\nEnvironmentFile=-/opt/kubelet.env\nEnvironmentFile=%h/kubelet/*\n";
    let drop_in = json!({"name": "kubelet.service", "dropins": [{"name": "20-a.conf",
        "contents": format!("[Service]\nEnvironment=\"EXTRA={flag}\"\n")}]});
    let comment = format!("[Service]\n# {flag}\nExecStart=/usr/bin/kubelet\n");
    let masked = json!({"name": "old.service", "mask": true, "contents": exec});
    for (what, units, more, says) in [
        ("a unit", named(&exec), vec![], Some("unit kubelet.service")),
        ("a drop-in", unit(drop_in), vec![], Some("drop-in 20-a.conf of unit kubelet.service")),
        (
            "a drop-in as a file",
            json!({}),
            vec![environment("/etc/systemd/system/kubelet.service.d/20-b.conf")],
            Some("file /etc/systemd/system/kubelet.service.d/20-b.conf"),
        ),
        (
            "an environment",
            named(reads),
            vec![environment("/etc/kubelet/env")],
            Some("file /etc/kubelet/env"),
        ),
        (
            "one of several",
            named(reads),
            vec![environment("/etc/kubelet/env.d/a")],
            Some("file /etc/kubelet/env.d/a"),
        ),
        (
            "the image's",
            json!({}),
            vec![environment("/etc/sysconfig/kubelet")],
            Some("file /etc/sysconfig/kubelet"),
        ),
        (
            "kubeadm's",
            json!({}),
            vec![environment("/var/lib/kubelet/kubeadm-flags.env")],
            Some("file /var/lib/kubelet/kubeadm-flags.env"),
        ),
        (
            "an environment elsewhere",
            named(elsewhere),
            vec![environment("/opt/kubelet.env")],
            Some("file /opt/kubelet.env"),
        ),
        (
            "what a name without a beginning may be",
            named(elsewhere),
            vec![environment("/opt/a")],
            None,
        ),
        ("underscores", named(&underscores), vec![], Some("unit kubelet.service")),
        ("what nobody reads", named(reads), vec![environment("/etc/kubelet/other")], None),
        ("a comment", named(&comment), vec![], None),
        ("what never starts", unit(masked), vec![], None),
    ] {
        let mut spec = arguments.object["spec"].clone();
        spec["config"]["systemd"] = units;
        spec["config"]["storage"]["files"].as_array_mut().unwrap().extend(more);
        let boots = Boots { spec: &spec, ..of(&arguments, None) };
        let error = served(&boots, None).err().map(|error| error.to_string());
        let is_said = |says: &str| {
            let error = error.as_ref().unwrap();
            error.contains(says) && error.contains("spec.nodeTaints") && error.contains("infra")
        };
        assert!(says.map_or(error.is_none(), is_said), "{what}: {error:?}");
    }
    // Ignition takes a file neither beside something else at its path nor below a link.
    let link = |path: &str| json!({"path": path, "target": "/opt/a"});
    for (kind, node, bootstrap, path) in [
        ("links", link(BOOTSTRAP), Some("users: []"), Some(BOOTSTRAP)),
        ("links", link("/etc/kubernetes"), Some("users: []"), Some(BOOTSTRAP)),
        ("directories", json!({"path": BOOTSTRAP}), Some("users: []"), Some(BOOTSTRAP)),
        ("links", link(BOOTSTRAP), None, None),
        ("links", link("/etc/kube"), Some("users: []"), None),
        ("links", link("/etc/tread"), None, Some(BOOTED)),
    ] {
        let mut spec = arguments.object["spec"].clone();
        spec["config"]["storage"][kind] = json!([node]);
        let boots = Boots { spec: &spec, ..of(&arguments, bootstrap) };
        let error = served(&boots, None).err();
        assert!(error.as_ref().is_none_or(|why| !why.lacks_room()), "{error:?}");
        let says = path.map(|path| format!("of pool infra has something at {path}"));
        let error = error.map(|why| why.to_string());
        let is_said = |says: &String| error.as_ref().is_some_and(|it| it.contains(says));
        assert!(says.as_ref().map_or(error.is_none(), is_said), "{kind} {node}: {error:?}");
    }
    let mut spec = arguments.object["spec"].clone();
    spec["config"]["kernelArguments"] = json!({"shouldExist": ["quiet"]});
    let boots = Boots { spec: &spec, ..of(&arguments, None) };
    let Err(Unserved::Version(lacks)) = served(&boots, Some(2)) else { panic!("it is served") };
    assert!(lacks.to_string().contains("kernelArguments (since 3.3)"), "{lacks}");
}

#[test]
fn a_stub_says_where_by_which_token_and_whom_to_trust() {
    let stub = stub("ignition.example:22623", "infra", "t0k", "-----BEGIN CERTIFICATE-----\n");
    assert_eq!(stub["ignition"]["version"], "3.1.0");
    let merge = &stub["ignition"]["config"]["merge"][0];
    assert_eq!(merge["source"], "https://ignition.example:22623/config/infra");
    assert_eq!(merge["httpHeaders"], json!([{"name": "Authorization", "value": "Bearer t0k"}]));
    let authorities = &stub["ignition"]["security"]["tls"]["certificateAuthorities"];
    assert!(authorities[0]["source"].as_str().unwrap().starts_with("data:"));
    assert_eq!(Digest::parse("x"), None);
}
