//! What `tread manifests` prints.

use crate::support::{Bench, tree};
use serde_json::{Value, json};

fn kinds(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["kind"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn documents_and_the_list_say_the_same_in_an_order_that_can_be_applied() {
    let bench = Bench::new();
    let image = "registry.example.com/tread:1";
    let yaml = bench.tread(&["manifests", "--image", image]);
    assert_eq!((yaml.code(), yaml.err().as_str()), (0, ""));
    assert_eq!(yaml.out(), bench.tread(&["manifests", "--mode", "advise", "--image", image]).out());
    let list = bench.tread(&["manifests", "--image", image, "-o", "json"]).json();
    let documents: Vec<Value> = yaml
        .out()
        .split("---\n")
        .filter(|document| !document.is_empty())
        .map(|document| serde_saphyr::from_str(document).unwrap())
        .collect();
    assert_eq!(json!(documents), list["items"]);
    let kinds = kinds(&list);
    assert_eq!(kinds.first().unwrap(), "Namespace");
    let at = |kind: &str| kinds.iter().position(|found| found == kind).unwrap();
    assert!(at("CustomResourceDefinition") < at("ClusterRole"));
    assert!(at("ServiceAccount") < at("Deployment"));
    // The API server would ask a service that is not there yet.
    assert_eq!(kinds.last().unwrap(), "ValidatingWebhookConfiguration");
    assert!(
        yaml.out().contains("tread.tread-system") || yaml.out().contains("namespace: tread-system")
    );
}

#[test]
fn the_compiled_policies_of_the_service_fit_into_its_volume_before_it_is_evicted() {
    let list = Bench::new().tread(&["manifests", "-o", "json"]).json();
    let items = list["items"].as_array().unwrap();
    let service = items.iter().find(|item| item["kind"] == "Deployment").unwrap();
    let volume = &service["spec"]["template"]["spec"]["volumes"][0]["emptyDir"];
    let limit = volume["sizeLimit"].as_str().unwrap().strip_suffix("Gi").unwrap();
    let limit = limit.parse::<u64>().unwrap() << 30;
    // Some are written at the same time.
    assert!(2 * tread_engine::sandbox::MOST_CACHED_BYTES <= limit);
}

#[test]
fn each_part_is_there_when_it_is_asked_for() {
    let bench = Bench::new();
    let of =
        |args: &[&str]| kinds(&bench.tread(&[&["manifests", "-o", "json"], args].concat()).json());
    let definitions =
        |kinds: &[String]| kinds.iter().filter(|k| *k == "CustomResourceDefinition").count();
    let plain = of(&[]);
    assert_eq!(definitions(&plain), 3);
    assert_eq!(definitions(&of(&["--with-inputs"])), 5);
    assert!(!plain.contains(&"PrometheusRule".to_owned()));
    let monitored = of(&["--with-monitoring"]);
    assert!(
        ["PrometheusRule", "ServiceMonitor"].iter().all(|k| monitored.contains(&(*k).to_owned()))
    );
    let outside = bench.tread(&["manifests", "-o", "json", "--outside", "https://192.0.2.1:8443/"]);
    assert_eq!(outside.err(), "");
    let outside = outside.json();
    assert!(!kinds(&outside).contains(&"Deployment".to_owned()));
    let webhook = outside["items"].as_array().unwrap().last().unwrap()["webhooks"][0].clone();
    assert_eq!(webhook["clientConfig"], json!({"url": "https://192.0.2.1:8443/warn"}));
}

#[test]
fn where_tread_rolls_out_it_gets_agents_with_a_place_of_their_own() {
    let bench = Bench::new();
    let args = ["manifests", "--mode", "enforce", "-o", "json", "--namespace", "mine"];
    let list = bench.tread(&[&args[..], &["--image", "registry.example.com/tread:1"]].concat());
    assert_eq!((list.code(), list.err().as_str()), (0, ""));
    let list = list.json();
    let items = list["items"].as_array().unwrap();
    let find = |kind: &str| {
        let mut found = items.iter().filter(|item| item["kind"] == kind);
        found.next().unwrap_or_else(|| panic!("no {kind}"))
    };
    assert_eq!(find("DaemonSet")["metadata"]["namespace"], "mine-agents");
    let container = |kind: &str| find(kind)["spec"]["template"]["spec"]["containers"][0].clone();
    assert_eq!(container("Deployment")["args"], json!(["serve", "--mode", "enforce"]));
    let agent = container("DaemonSet");
    let service = agent["args"].as_array().unwrap().iter().position(|arg| arg == "--service");
    assert_eq!(agent["args"][service.unwrap() + 1], "https://tread-agents.mine.svc:8444");
    let mounts = agent["volumeMounts"].as_array().unwrap();
    for mount in tread_node::agent::confinement::MOUNTS {
        assert!(mounts.iter().any(|it| it["mountPath"] == mount.path), "{mount:?}");
    }
    let kinds = kinds(&list);
    assert_eq!(kinds.iter().filter(|kind| *kind == "CustomResourceDefinition").count(), 5);
    // Nobody is asked to keep to a policy that is not there yet.
    let at = |kind: &str| kinds.iter().position(|found| found == kind).unwrap();
    assert!(at("ValidatingAdmissionPolicyBinding") < at("DaemonSet"));
    assert_eq!(kinds.last().unwrap(), "ValidatingWebhookConfiguration");
}

#[test]
fn agents_that_would_find_no_place_or_no_service_are_refused_with_what_to_do() {
    let long = "a".repeat(57);
    for (args, says) in [
        (["--namespace", long.as_str()], "choose a shorter one"),
        (["--outside", "https://192.0.2.1:8443"], "--outside is for --mode advise"),
    ] {
        let ran = Bench::new().tread(&["manifests", "--mode", "enforce", args[0], args[1]]);
        assert_eq!(ran.code(), 2, "{args:?}");
        assert!(ran.err().contains(says), "{args:?}: {}", ran.err());
        assert!(Bench::new().tread(&["manifests", args[0], args[1]]).code() == 0, "{args:?}");
    }
}

#[test]
fn an_image_that_nobody_can_pull_is_warned_of() {
    let ran = Bench::new().tread(&["manifests"]);
    assert_eq!(ran.code(), 0);
    assert!(ran.err().starts_with("warning: without --image"), "{}", ran.err());
    assert!(ran.out().contains(&format!("image: tread:{}", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn what_the_api_server_would_refuse_is_refused_with_what_was_expected() {
    for (args, says) in [
        (["--namespace", "Tread"], "lower-case letters"),
        (["--namespace", ""], "lower-case letters"),
        (["--namespace", "a-"], "lower-case letters"),
        (["--image", "a b"], "registry.example.com/tread:1"),
        (["--outside", "http://a:1"], "https://HOST:PORT"),
        (["--outside", "https://a:1/path"], "https://HOST:PORT"),
        (["--mode", "roll"], "advise, enforce"),
    ] {
        let ran = Bench::new().tread(&["manifests", args[0], args[1]]);
        assert_eq!(ran.code(), 2, "{args:?}");
        assert!(ran.err().contains(says), "{args:?}: {}", ran.err());
    }
}

#[test]
fn a_service_without_a_cluster_says_what_is_missing() {
    let bench = Bench::new();
    let mut command =
        bench.command(&["serve", "--listen", "127.0.0.1:0", "--listen-tls", "127.0.0.1:0"]);
    for name in ["KUBECONFIG", "HOME", "KUBERNETES_SERVICE_HOST", "POD_NAMESPACE"] {
        command.env_remove(name);
    }
    command.env("HOME", bench.dir.path());
    let ran = crate::support::run(command, b"");
    assert_eq!(ran.code(), 1);
    assert!(ran.err().contains("set KUBECONFIG"), "{}", ran.err());
    // A port that is taken.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = bench.tread(&["serve", "--listen", &address]);
    assert_eq!(ran.code(), 1);
    assert!(ran.err().contains(&format!("cannot listen on {address}")), "{}", ran.err());
}

#[test]
fn help_and_documentation_name_every_definition_that_is_installed() {
    let bench = Bench::new();
    let image = ["--image", "registry.example.com/tread:1", "-o", "json"];
    let list = bench.tread(&[&["manifests", "--mode", "enforce"], &image[..]].concat());
    let all = list.json();
    let items = all["items"].as_array().unwrap();
    let definitions = items.iter().filter(|item| item["kind"] == "CustomResourceDefinition");
    let kinds: Vec<&str> =
        definitions.map(|it| it["spec"]["names"]["kind"].as_str().unwrap()).collect();
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let help = one_line(&bench.tread(&["manifests", "--help"]).out());
    let (_, help) = help.split_once("Leave out the definitions of ").unwrap();
    let (help, _) = help.split_once(':').unwrap();
    let page = std::fs::read_to_string(tree().join("examples/install/README.md")).unwrap();
    let page = one_line(&page);
    let (_, page) = page.split_once("Installed are: ").unwrap();
    let (page, _) = page.split_once("<!-- what it may do -->").unwrap();
    assert!(kinds.len() >= 5, "{kinds:?}");
    for kind in kinds {
        assert!(help.contains(kind), "{kind} in {help}");
        assert!(page.contains(kind), "{kind} in {page}");
    }
}
