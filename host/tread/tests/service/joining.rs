//! Machines that boot into a pool, as they are installed and asked for: by what `tread manifests`
//! and `tread pools stub` print, through the real port, with the rights of the installed service.

mod cluster;
mod stub;

use crate::pools::machine_set;
use crate::replica::{MACHINES, NAMESPACE};
use crate::rights::not_done;
use cluster::{BOOTSTRAP_SECRET, Cluster, GROUP, pool_of};
use kube::client::Body;
use serde_json::{Value, json};
use std::time::Instant;
use stub::{Stub, claim, file};
use tread_kube::api::machines;
use tread_model::joining::BOOTSTRAP;
use tread_test_bed::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_becomes_a_node_of_its_pool_by_what_tread_prints() {
    let cluster = Cluster::installed();
    let (code, _, err) = cluster.tread(&["stub", "infra"]);
    assert!(code == 1 && err.contains("no machine is served here"), "{err}");
    let replica = cluster.serves().await;
    let infra = cluster.stub("infra").await;
    let config = infra.boots().await;
    assert_eq!(config["ignition"]["version"], "3.4.0");
    let served = [&["get", "configmap", "tread-joining", "-n", NAMESPACE][..], &["-o", "json"]];
    let served = cluster.plane.kubectl(&served.concat()).unwrap().success().unwrap();
    let served: Value = serde_json::from_str(&served).unwrap();
    let until = served["data"].as_object().unwrap().iter().find(|it| it.0.starts_with("served."));
    let until: i64 = until.unwrap().1.as_str().unwrap().parse().unwrap();
    let now = k8s_openapi::jiff::Timestamp::now().as_second();
    assert!(until - now > 47 * 3600, "what is served is kept as long as claims for it last");
    cluster.registers("infra-1", &claim(&config));
    cluster.is_in_infra("infra-1").await;
    // Its claim is good for one node: what is held is named, with why and the way out.
    cluster.registers("infra-2", &claim(&config));
    let out = eventually("it is held", async || {
        let (code, out, err) = cluster.tread(&[]);
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        out.contains("ClaimUsed").then_some(out)
    })
    .await;
    let cells: Vec<Vec<&str>> = out.lines().map(|it| it.split_whitespace().collect()).collect();
    assert_eq!(cells[1][..4], ["infra", "1", "0", "1"], "{out}");
    assert_eq!(cells[2][..4], ["worker", "0", "0", "0"], "{out}");
    assert!(out.contains("Node infra-2 is held (ClaimUsed), and claims infra."), "{out}");
    let remedy = "tread pools admit infra-2 --pool infra";
    let (code, out, _) = cluster.tread(&["explain", "infra-2"]);
    assert!(code == 0 && out.contains("Node infra-2 counts in no pool"), "{out}");
    assert!(out.contains("ClaimUsed") && out.contains("tread pools admit infra-2"), "{out}");
    let (_, out, _) = cluster.tread(&["-o", "json"]);
    let listed: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(listed["held"][0]["node"], "infra-2");
    let (code, _, err) = cluster.tread(&["admit", "infra-2", "--pool", "none"]);
    assert!(code == 1 && err.contains("there is no MachineConfigPool none"), "{err}");
    let words: Vec<&str> = remedy.split(' ').skip(2).collect();
    let (code, out, err) = cluster.tread(&words);
    assert_eq!((code, out.as_str()), (0, "infra-2 is a node of pool infra\n"), "{err}");
    cluster.is_in_infra("infra-2").await;
    let (code, _, err) = cluster.tread(&words);
    assert!(code == 1 && err.contains("is not held"), "{err}");

    // What nodes have, and whether they failed, say their agents, and no annotation.
    let target = eventually("infra has a config", async || {
        let get = ["get", "rollout", "infra", "-o", "jsonpath={.status.target}"];
        serde_json::from_str::<Value>(&cluster.plane.kubectl(&get).unwrap().stdout).ok()
    })
    .await;
    let annotation = format!("{GROUP}/currentConfig=rendered-infra-0");
    cluster
        .plane
        .kubectl(&["annotate", "node", "infra-1", &annotation])
        .unwrap()
        .success()
        .unwrap();
    cluster.says("infra-1", json!({"current": target})).await;
    cluster.says("infra-2", json!({"current": target, "phase": "Degraded"})).await;
    let (code, out, err) = cluster.tread(&[]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let cells: Vec<Vec<&str>> = out.lines().map(|it| it.split_whitespace().collect()).collect();
    assert_eq!(cells[1][..6], ["infra", "2", "2", "0", "0", "1"], "{out}");
    let (_, out, _) = cluster.tread(&["explain", "infra-1"]);
    let name = target["name"].as_str().unwrap();
    assert!(out.contains(&format!("It has {name}, which was rendered for pool infra")), "{out}");

    // One that would be in two pools is let into none, and what is in the way is named.
    let gpu = "node-role.kubernetes.io/gpu";
    cluster.pool("gpu", json!({gpu: ""}));
    cluster.registers("infra-3", &claim(&config));
    let label = |text: &str| {
        cluster.plane.kubectl(&["label", "node", "infra-3", text]).unwrap().success().unwrap();
    };
    label(&format!("{gpu}="));
    let (code, out, err) = cluster.tread(&["admit", "infra-3", "--pool", "infra"]);
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    assert!(err.contains("node infra-3 would be in the pools gpu, infra"), "{err}");
    assert!(err.contains(&format!("kubectl label node infra-3 {gpu}-")), "{err}");
    let (_, out, _) = cluster.tread(&["explain", "infra-3"]);
    assert!(out.contains("Node infra-3 counts in no pool: it registered as joining"), "{out}");
    // Nor is one that lacks a label of which nobody can say what it is to be.
    let sites = json!({"key": "site", "operator": "In", "values": ["north", "south"]});
    cluster.apply(&pool_of("edge", json!({"matchExpressions": [sites]})));
    label(&format!("{gpu}-"));
    let to_edge = ["admit", "infra-3", "--pool", "edge"];
    let (code, _, err) = cluster.tread(&to_edge);
    assert!(code == 1 && err.contains("which labels a node of pool edge gets"), "{err}");
    assert!(err.contains("kubectl label node infra-3 KEY=VALUE"), "{err}");
    label("site=north");
    // What taints its nodes get stands there.
    eventually("edge has a Rollout", async || {
        let ran = cluster.plane.kubectl(&["get", "rollout", "edge"]).unwrap();
        (ran.code == 0).then_some(())
    })
    .await;
    let (code, out, err) = cluster.tread(&to_edge);
    assert_eq!((code, out.as_str()), (0, "infra-3 is a node of pool edge\n"), "{err}");
    let (_, out, _) = cluster.tread(&["explain", "infra-3"]);
    assert!(out.contains("Node infra-3 counts in pool edge."), "{out}");
    cluster.nobody_was_forbidden_anything(&replica);
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_with_the_user_data_that_tread_prints_are_told_of_where_they_will_be_held() {
    let cluster = Cluster::installed();
    let definition = machines::definition(&machines::MACHINE_SET).unwrap();
    cluster.plane.define(&[definition]).unwrap();
    cluster.plane.kubectl(&["create", "namespace", MACHINES]).unwrap().success().unwrap();
    let _replica = cluster.serves().await;
    cluster.stub("infra").await;
    // By this name it would be a stub of OpenShift's.
    let (_, secret, _) = cluster.tread(&["stub", "infra", "--secret-name", "infra-user-data"]);
    cluster.plane.apply(&secret).unwrap();
    let gives = |labels: Value| {
        cluster.apply(&machine_set("infra-a", "infra-user-data", &labels));
    };
    gives(json!({}));
    let out = eventually("tread is seen to roll out", async || {
        let (code, out, _) = cluster.tread(&["check", "-o", "json"]);
        (code == 0).then_some(out)
    })
    .await;
    let checked: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&checked["fine"], &checked["machineSets"]), (&json!(1), &json!([])));
    let (_, out, _) = cluster.tread(&["-o", "json"]);
    let listed: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(listed["machineSets"], json!([]));

    let gpu = "node-role.kubernetes.io/gpu";
    cluster.pool("gpu", json!({gpu: ""}));
    gives(json!({gpu: ""}));
    let (code, out, _) = cluster.tread(&["check"]);
    assert_eq!(code, 3, "{out}");
    let said = "New machines of openshift-machine-api/infra-a boot into pool infra and will count in \
                no pool: they are held (with the labels of their pool they would be in the pools gpu, \
                infra).";
    assert!(out.contains(said), "{out}");
    gives(json!({}));
    assert_eq!(cluster.tread(&["check"]).0, 0);

    // Who may not read where tread is asked is told so, and not that all is well.
    let nearly_all = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "nearly-all"}, "rules": [
            {"apiGroups": ["tread.dev", "machineconfiguration.openshift.io", "machine.openshift.io",
                "config.openshift.io"], "resources": ["*"], "verbs": ["get", "list"]},
            {"apiGroups": [""], "resources": ["nodes", "secrets"], "verbs": ["get", "list"]},
            {"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["get"]}]});
    cluster.plane.apply(&nearly_all.to_string()).unwrap();
    let bind =
        ["create", "clusterrolebinding", "nearly-all", "--clusterrole=nearly-all", "--user=reader"];
    cluster.plane.kubectl(&bind).unwrap().success().unwrap();
    let reader = cluster.plane.impersonate("reader", &[]).unwrap();
    let said =
        format!("the ConfigMap tread-ignition in {NAMESPACE}, which says it, could not be read");
    for output in [&[][..], &["-o", "json"]] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tread"));
        reader.prepare(&mut command);
        let ran = command.args(["pools", "check"]).args(output).output().unwrap();
        let out = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.code() == Some(1) && out.contains(&said), "{out}");
    }

    // What it shows is compared with what tread admits today.
    let shows = |token: &str, ends: i32| {
        let (code, out, _) = cluster.tread(&["check", "-o", "json"]);
        let checked: Value = serde_json::from_str(&out).unwrap();
        let user_data = &checked["userData"][0];
        assert_eq!((code, &user_data["token"]), (ends, &json!(token)), "{out}");
        assert_eq!(user_data["trusted"], json!(true), "{out}");
    };
    shows("newest", 0);
    let (code, renewed, err) =
        cluster.tread(&["stub", "infra", "--secret-name", "infra-user-data", "--renew"]);
    assert_eq!(code, 0, "{err}");
    shows("former", 0);
    assert_eq!(cluster.tread(&["stub", "infra", "--end-overlap"]).0, 0);
    shows("other", 3);
    let (_, out, _) = cluster.tread(&["check"]);
    assert!(out.contains("is none of pool infra's, so that machines are refused"), "{out}");
    cluster.plane.apply(&renewed).unwrap();
    shows("newest", 0);

    // A stub of another address finds nobody.
    let elsewhere = renewed.replace(&cluster.machines.to_string(), "other.example:22623");
    cluster.plane.apply(&elsewhere).unwrap();
    let (code, out, _) = cluster.tread(&["check"]);
    assert!(code == 1 && out.contains("asks other.example:22623, and tread is asked at"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_is_sent_away_for_good_is_told_of_on_its_pool() {
    let cluster = Cluster::installed();
    let replica = cluster.serves().await;
    let mut infra = cluster.stub("infra").await;
    infra.boots().await;
    let old = "application/vnd.coreos.ignition+json;version=2.2.0";
    assert_eq!(infra.asks("GET", old, &infra.header.1).await.status, 406);
    for _ in 0..3 {
        assert_eq!(infra.asks("GET", "", "Bearer another").await.status, 401);
    }
    infra.url = infra.url.replace("/config/infra", "/config/none");
    assert_eq!(infra.asks("GET", "", "Bearer another").await.status, 401);
    let said = || {
        let get =
            ["get", "events", "-A", "--field-selector", "reason=MachinesSentAway", "-o", "json"];
        let events: Value =
            serde_json::from_str(&cluster.plane.kubectl(&get).unwrap().stdout).unwrap();
        let items = events["items"].as_array().unwrap().clone();
        assert!(items.iter().all(|it| it["involvedObject"]["name"] == "infra"), "{items:#?}");
        let messages = items.iter().map(|it| it["message"].as_str().unwrap().to_owned());
        messages.collect::<Vec<String>>()
    };
    let said = eventually("both reasons are told of", async || {
        Some(said())
            .filter(|said| said.iter().any(|it| it.contains("is none of this pool's")))
            .filter(|said| said.iter().any(|it| it.contains("newer image")))
    })
    .await;
    assert!(said.iter().all(|it| it.contains("127.0.0.1")), "{said:?}");
    let (_, metrics) = replica.get("/metrics").await.unwrap();
    for (outcome, count) in [("no-token", 4), ("version", 1)] {
        let line = format!(
            "tread_machine_requests_total{{asks=\"config\",outcome=\"{outcome}\"}} {count}"
        );
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
    cluster.nobody_was_forbidden_anything(&replica);
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_get_the_kubeconfig_of_the_secret_that_an_admin_names_and_the_pool_says_so() {
    let cluster = Cluster::installed();
    let replica = cluster.serves().await;
    let infra = cluster.stub("infra").await;
    let says = async |expected: &str| {
        let path = "jsonpath={.status.conditions[?(@.type==\"Serves\")].reason}";
        let get = ["get", "rollout", "infra", "-o", path];
        eventually(&format!("the pool says {expected}"), async || {
            let ran = cluster.plane.kubectl(&get).unwrap();
            (ran.stdout == expected).then_some(())
        })
        .await;
    };
    says("NoBootstrapSecret").await;
    infra.boots().await;
    let create = ["create", "secret", "generic", BOOTSTRAP_SECRET, "-n", NAMESPACE];
    let create = [&create[..], &["--from-literal=kubeconfig=users: []"]].concat();
    cluster.plane.kubectl(&create).unwrap().success().unwrap();
    says("Bootstraps").await;
    let config = infra.boots().await;
    assert_eq!(file(&config, BOOTSTRAP), "users: []");
    cluster.nobody_was_forbidden_anything(&replica);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_served_by_tls_with_the_authority_and_token_of_its_stub_alone() {
    let cluster = Cluster::installed();
    let _replica = cluster.serves().await;
    let (infra, worker) = (cluster.stub("infra").await, cluster.stub("worker").await);
    let config = infra.boots().await;
    let booted: Value = serde_json::from_str(&file(&config, "/etc/tread/booted.json")).unwrap();
    assert_eq!(booted["pool"], "infra");
    let head = infra.asks("HEAD", "", &infra.header.1).await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    let two = "application/vnd.coreos.ignition+json;version=2.2.0";
    assert_eq!(infra.asks("GET", two, &infra.header.1).await.status, 406);
    let other = Stub { url: infra.url.replace("/config/infra", "/config/none"), ..infra };
    let infra = cluster.stub("infra").await;
    let mut said = Vec::new();
    for (stub, token) in [
        (&infra, worker.header.1.as_str()),
        (&infra, ""),
        (&infra, "Bearer x"),
        (&other, infra.header.1.as_str()),
        (&other, ""),
    ] {
        let answer = stub.asks("GET", "", token).await;
        assert_eq!(answer.status, 401, "{token}: {}", answer.body);
        assert_eq!(stub.asks("HEAD", "", token).await.status, 401);
        said.push(answer.body);
    }
    said.dedup();
    assert!(said.len() == 1 && !said[0].contains("infra"), "{said:?}");
    // Who trusts another authority does not get that far.
    let authority = std::fs::read_to_string(cluster.plane.certificate_authority()).unwrap();
    let wrong = Stub { authority, ..infra };
    let request = axum::http::Request::get("/config/infra").body(Body::empty()).unwrap();
    let refused = wrong.client().send(request).await;
    assert!(refused.is_err(), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_exchanged_with_an_overlap_that_an_admin_ends() {
    let cluster = Cluster::installed();
    let _replica = cluster.serves().await;
    let first = cluster.stub("infra").await;
    first.boots().await;
    let (code, _, err) = cluster.tread(&["stub", "infra", "--end-overlap"]);
    assert!(code == 1 && err.contains("no overlap to end"), "{err}");
    let (code, out, err) = cluster.tread(&["stub", "infra", "--renew"]);
    assert!(code == 0 && err.contains("--end-overlap"), "{err}");
    let second = Stub::of(&serde_json::from_str(&out).unwrap());
    assert_ne!(first.header, second.header);
    let is_served = async |token: &str, status: u16| {
        eventually(&format!("{status}"), async || {
            (first.asks("GET", "", token).await.status == status).then_some(())
        })
        .await;
    };
    is_served(&second.header.1, 200).await;
    assert_eq!(first.asks("GET", "", &first.header.1).await.status, 200);
    // The one before both is not forgotten unasked.
    let (code, _, err) = cluster.tread(&["stub", "infra", "--renew"]);
    assert!(code == 1 && err.contains("tread pools stub infra --end-overlap"), "{err}");
    let (code, out, _) = cluster.tread(&["stub", "infra", "--end-overlap"]);
    assert_eq!((code, out.lines().count()), (0, 1), "{out}");
    is_served(&first.header.1, 401).await;
    is_served(&second.header.1, 200).await;
    let (_, out, err) = cluster.tread(&["stub", "infra"]);
    assert_eq!(err, "");
    assert_eq!(Stub::of(&serde_json::from_str(&out).unwrap()).header, second.header);
    let both = ["stub", "infra", "--renew", "--end-overlap"];
    assert_eq!(cluster.tread(&both).0, 2);
}

/// What tread wrote, by the API server's audit log: what each write is about, in their order.
fn written(cluster: &Cluster) -> Vec<(String, String)> {
    let log = std::fs::read_to_string(cluster.plane.audit_log()).unwrap();
    let entries = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let entries = entries.filter(|it| {
        let user = it["user"]["username"].as_str().unwrap_or_default();
        let verb = it["verb"].as_str().unwrap_or_default();
        let is_write = ["create", "update", "patch", "delete"].contains(&verb);
        let is_done = it["responseStatus"]["code"].as_u64().is_some_and(|code| code < 300);
        user.ends_with(":tread") && is_write && is_done && it["stage"] == "ResponseComplete"
    });
    let word = |it: &Value, field: &str| it["objectRef"][field].as_str().unwrap_or("").to_owned();
    let said = entries.map(|it| {
        let kind = format!("{} {}", word(&it, "resource"), word(&it, "subresource"));
        (kind.trim_end().to_owned(), word(&it, "name"))
    });
    said.collect()
}

/// How many Events of tread's are about a node.
fn events_about(cluster: &Cluster, node: &str) -> usize {
    let get = ["get", "events.events.k8s.io", "-A", "-o", "json"];
    let list = cluster.plane.kubectl(&get).unwrap().success().unwrap();
    let list: Value = serde_json::from_str(&list).unwrap();
    let is_its =
        |it: &&Value| it["regarding"]["name"] == node && it["reportingController"] == "tread";
    list["items"].as_array().unwrap().iter().filter(is_its).count()
}

#[tokio::test(flavor = "multi_thread")]
#[allow(clippy::print_stdout, reason = "it says what it counted")]
async fn a_node_that_joins_costs_three_writes_until_it_is_a_member() {
    const NODE: &str = "infra-1";
    let cluster = Cluster::logged();
    let _replica = cluster.serves().await;
    let infra = cluster.stub("infra").await;
    // That its config is served is noted once an hour, for all machines.
    infra.boots().await;
    let is_of_record = |it: &(String, String)| it.1 == "tread-joining";
    let noted = || written(&cluster).iter().filter(|it| is_of_record(it)).count();
    eventually("that it was served is noted", async || (noted() >= 2).then_some(())).await;
    let before = written(&cluster).len();
    let was_noted = noted();
    let claim = claim(&infra.boots().await);
    eventually("that this one was served is noted too", async || {
        (noted() > was_noted).then_some(())
    })
    .await;
    cluster.registers(NODE, &claim);
    cluster.is_in_infra(NODE).await;
    // What is told of it comes after it has joined.
    let all = eventually("it is told of", async || {
        let all = written(&cluster).split_off(before);
        let count = |kind: &str| all.iter().filter(|it| it.0 == kind && it.1 == NODE).count();
        let is_reported = count("nodeupdates") >= 1 && count("nodeupdates status") >= 1;
        (is_reported && events_about(&cluster, NODE) == 1).then_some(all)
    })
    .await;
    let joined = all.iter().position(|it| it.0 == "nodes").unwrap();
    let count = |all: &[(String, String)], kind: &str| all.iter().filter(|it| it.0 == kind).count();
    let its = |all: &[(String, String)]| -> Vec<(String, String)> {
        all.iter().filter(|it| it.1 == NODE || is_of_record(it)).cloned().collect()
    };
    let (until, since) = (its(&all[..=joined]), its(&all[joined + 1..]));
    println!(
        "until it is a member: Node {}, record {}, NodeUpdate {}; what tells of it: NodeUpdate {}, record {}, Events {}",
        count(&until, "nodes"),
        count(&until, "configmaps"),
        count(&until, "nodeupdates") + count(&until, "nodeupdates status"),
        count(&since, "nodeupdates") + count(&since, "nodeupdates status"),
        count(&since, "configmaps"),
        events_about(&cluster, NODE),
    );
    // One for its Node; that it was served; and whose its claim is, which forgets the former.
    assert!(until.len() <= 3 && count(&all, "nodes") == 1, "{all:#?}");
    assert_eq!(count(&all, "configmaps"), 2, "{all:#?}");
    let writes = since.len() + until.len() - 3 + events_about(&cluster, NODE);
    assert!(writes <= 3, "{all:#?}");
    let get = ["get", "configmap", "tread-joining", "-n", NAMESPACE, "-o", "json"];
    let record = cluster.plane.kubectl(&get).unwrap().success().unwrap();
    assert!(!record.contains("\"fetched."), "both machines came: {record}");
    // By now it has done all that its rights are for, but for what is rare.
    let mut left = Vec::new();
    eventually("all is done that the service is granted", async || {
        let now = not_done(&cluster.plane);
        if now != left {
            println!("not done yet: {now:?}");
            left.clone_from(&now);
        }
        now.is_empty().then_some(())
    })
    .await;
}

/// How much of a process is resident, in bytes; or was at most since it was asked to begin anew.
fn resident(pid: u32, what: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

#[tokio::test(flavor = "multi_thread")]
#[allow(clippy::print_stdout, reason = "it says what it measured")]
async fn two_hundred_machines_are_served_a_megabyte_each_at_once() {
    const MACHINES: usize = 200;
    let cluster = Cluster::installed();
    let replica = cluster.serves().await;
    let infra = cluster.stub("infra").await;
    infra.boots().await;
    cluster.config("50-large", "/etc/large", &"x".repeat(1 << 20));
    let size = eventually("the large one is served", async || {
        let size = infra.asks("GET", "", &infra.header.1).await.body.len();
        (size > 1 << 20).then_some(size)
    })
    .await;
    // It was much while the config was rendered: the most is counted from here on.
    std::fs::write(format!("/proc/{}/clear_refs", replica.pid), "5").unwrap();
    let before = resident(replica.pid, "VmRSS:");
    let begun = Instant::now();
    let asking = (0..MACHINES).map(|_| async {
        let answer = infra.asks("GET", "", &infra.header.1).await;
        assert_eq!((answer.status, answer.body.len()), (200, size));
        begun.elapsed()
    });
    let mut times = futures::future::join_all(asking).await;
    times.sort();
    let most = resident(replica.pid, "VmHWM:");
    let (p99, more) = (times[MACHINES * 99 / 100], most.saturating_sub(before));
    println!("{MACHINES} machines, {size} bytes each: p99 {p99:?}, {more} bytes more at most");
    assert!(more <= 64 << 20, "{more} bytes more");
}
