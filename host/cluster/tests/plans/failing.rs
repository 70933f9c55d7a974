//! What cannot be read costs nobody else anything, and is told of.

use super::fixture::{Cluster, Tread, condition, current, files};
use super::{REBOOT, status, tread_ready};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use std::sync::Arc;
use tread_kube::api::mirrors::ImageDigestMirrorSet;
use tread_kube::api::{DisruptionPlan, MachineConfig, MachineConfigPool};
use tread_kube::review::Asked;
use tread_model::text::is_unfit;
use tread_test_bed::{ControlPlane, eventually};

/// Whoever may do everything that planning needs, but get these MachineConfigs
/// only.
async fn limited(cluster: &Cluster, readable: &[&str]) -> Client {
    may_read(cluster, readable);
    eve(cluster).await
}

async fn eve(cluster: &Cluster) -> Client {
    let bind = ["create", "clusterrolebinding", "limited", "--clusterrole=limited", "--user=eve"];
    cluster.plane.kubectl(&bind).unwrap().success().unwrap();
    cluster.plane.impersonate("eve", &[]).unwrap().client().await.unwrap()
}

fn may_read(cluster: &Cluster, readable: &[&str]) {
    may(cluster, readable, &["list", "watch"]);
}

fn may(cluster: &Cluster, readable: &[&str], configs: &[&str]) {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let openshift = "machineconfiguration.openshift.io";
    let mut some = rule(openshift, &["machineconfigs"], &["get"]);
    some["resourceNames"] = json!(readable);
    let rules: Vec<Value> = vec![
        some,
        rule(openshift, &["machineconfigs"], configs),
        rule(openshift, &["machineconfigpools"], &["list", "watch"]),
        rule("", &["nodes"], &["list", "watch"]),
        rule("coordination.k8s.io", &["leases"], &["list", "watch"]),
        rule("nodemaintenance.medik8s.io", &["nodemaintenances"], &["list", "watch"]),
        rule("config.openshift.io", &["*"], &["list", "watch"]),
        rule("operator.openshift.io", &["*"], &["list", "watch"]),
        rule("tread.dev", &["*"], &["*"]),
        rule("events.k8s.io", &["events"], &["*"]),
    ];
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "limited"}, "rules": rules});
    cluster.plane.apply(&role.to_string()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_config_that_may_not_be_read_concerns_its_pool_only_until_it_may() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    cluster.pool("infra", 1).await;
    cluster.config("00-infra", "infra", files(&[("/etc/motd", "hello\n")])).await;
    let infra = cluster.render("infra").await;
    cluster.settle("infra").await;
    let worker = cluster.api::<tread_kube::api::MachineConfigPool>().get("worker").await;
    let worker = worker.unwrap().spec.configuration.unwrap().name.unwrap();
    let readable = ["00-worker", "00-infra", "50-b", &worker, &infra];
    let tread = Tread::start(&limited(&cluster, &readable).await);

    cluster.config("50-a", "worker", files(&[("/etc/a", "a")])).await;
    let forbidden = "tread_api_errors_total{verb=\"get\",kind=\"machineconfigs\"";
    eventually("it may not be read", async || {
        tread.metrics.text().unwrap().contains(forbidden).then_some(())
    })
    .await;
    cluster.config("50-b", "infra", files(&[("/etc/b", "b")])).await;
    let plan = cluster.plan("MachineConfig/50-b created", |_| true).await;
    assert_eq!(status(&plan).effect.as_deref(), Some(REBOOT));
    assert_eq!(cluster.plans().await.len(), 1);

    let readable = [&readable[..], &["50-a"]].concat();
    may_read(&cluster, &readable);
    let plan = cluster.plan("MachineConfig/50-a created", |_| true).await;
    assert_eq!(status(&plan).nodes, Some(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_stays_pending_while_it_cannot_be_told_what_the_pool_is_made_of() {
    let cluster = Cluster::start(ControlPlane::options()).await;
    cluster.pool("worker", 2).await;
    cluster.config("00-worker", "worker", files(&[("/etc/motd", "hello\n")])).await;
    let tread = Tread::start(&cluster.client);
    tread_ready(&tread).await;
    cluster.config("50-a", "worker", files(&[("/etc/a", "a")])).await;
    cluster.plan("MachineConfig/50-a created", |_| true).await;
    drop(tread);
    let _tread = Tread::start(&limited(&cluster, &["50-a"]).await);
    let plan = cluster.plan("MachineConfig/50-a created", |plan| status(plan).stale).await;
    assert_eq!(condition(&plan, "Pending").0, "True");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_config_that_is_nested_without_end_is_a_plan_that_says_so() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    let _tread = Tread::start(&cluster.client);
    cluster.config("50-a", "worker", files(&[("/etc/a", "a")])).await;
    cluster.plan("MachineConfig/50-a created", |_| true).await;
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let config = format!(
        r#"{{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {{"name": "50-deep", "labels": {{"{}": "worker"}}}},
            "spec": {{"config": {{"ignition": {{"version": "3.4.0"}}, "storage": {deep}}}}}}}"#,
        super::fixture::ROLE
    );
    cluster.plane.apply(&config).unwrap();
    let plan = cluster.plan("MachineConfig/50-deep created", |_| true).await;
    assert_eq!(condition(&plan, "Planned"), ("False", "CannotBeRead"));
    assert_eq!(status(&plan).effect.as_deref(), Some("not known"));
    assert_eq!(status(&plan).tread.as_deref(), Some(REBOOT));
    // What waits beside it still waits, and is as little known.
    let beside = cluster
        .plan("MachineConfig/50-a created", |plan| condition(plan, "Planned").0 == "False")
        .await;
    assert_eq!(condition(&beside, "Pending").0, "True");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rendered_config_that_is_not_heard_of_yet_is_waited_for_and_one_that_is_gone_is_not() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    cluster.pool("infra", 1).await;
    cluster.config("00-infra", "infra", files(&[("/etc/motd", "hello\n")])).await;
    let infra = cluster.render("infra").await;
    cluster.settle("infra").await;
    let pools = cluster.api::<MachineConfigPool>();
    let worker = pools.get("worker").await.unwrap().spec.configuration.unwrap().name.unwrap();
    // Who may list and not watch hears of nothing new.
    let coming = format!("rendered-worker-{:032x}", 2);
    let readable = ["00-worker", "00-infra", "50-keys", &worker, &infra, &coming];
    may(&cluster, &readable, &["list"]);
    let tread = Tread::start(&eve(&cluster).await);
    tread.previewer.ready().await;

    let keys = json!({"config": {"ignition": {"version": "3.4.0"},
        "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA me"]}]}}});
    cluster.config("50-keys", "worker", keys).await;
    assert_eq!(cluster.render("worker").await, coming);
    eventually("the pool is to have what is not heard of", async || {
        let pools = tread.previewer.snapshot().pools;
        let target = pools["worker"].target.as_ref().map(|it| it.name.clone());
        (target.as_ref() == Some(&coming)).then_some(())
    })
    .await;
    let mirrors = json!([{"source": "quay.example/a", "mirrors": ["mirror.example/a"]}]);
    cluster
        .create::<ImageDigestMirrorSet>(json!({
            "apiVersion": "config.openshift.io/v1", "kind": "ImageDigestMirrorSet",
            "metadata": {"name": "quay"}, "spec": {"imageDigestMirrors": mirrors},
        }))
        .await;
    let of = |pool: &'static str| {
        let plans = tread.previewer.plans();
        plans
            .into_iter()
            .filter(|plan| plan.pool == pool)
            .map(|plan| plan.cause.to_string())
            .collect::<Vec<_>>()
    };
    eventually("the pools are looked at", async || (!of("infra").is_empty()).then_some(())).await;
    assert_eq!(of("worker"), [""; 0]);
    assert!(tread.previewer.snapshot().gone_configs.is_empty());

    cluster.delete::<ImageDigestMirrorSet>("quay").await;
    may_read(&cluster, &readable);
    let plan = cluster
        .plan("MachineConfig/50-keys created", |plan| status(plan).transitions[0].to == coming)
        .await;
    assert_eq!(status(&plan).tread.as_deref(), Some("none"));

    // What a node has is gone for good.
    let readable = [&readable[..], &["rendered-worker-gone"]].concat();
    may_read(&cluster, &readable);
    cluster.roll(&["worker-1"], "rendered-worker-gone").await;
    let plan = cluster
        .plan("MachineConfig/50-keys created", |plan| status(plan).transitions.len() == 2)
        .await;
    let way = &status(&plan).transitions[0];
    assert_eq!((way.from.as_str(), way.outcome.as_str()), ("rendered-worker-gone", "unknown"));
    assert!(way.warnings[0].contains("is gone"), "{:?}", way.warnings);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_cannot_be_planned_while_policies_change_is_told_of_when_it_can() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    cluster.pool("infra", 1).await;
    cluster.config("00-infra", "infra", files(&[("/etc/motd", "hello\n")])).await;
    let infra = cluster.render("infra").await;
    cluster.settle("infra").await;
    let pools = cluster.api::<MachineConfigPool>();
    let worker = pools.get("worker").await.unwrap().spec.configuration.unwrap().name.unwrap();
    let (some, all) = (["00-worker", "00-infra", "50-b", &worker, &infra], ["50-a"]);
    let all = [&some[..], &all].concat();
    let tread = Tread::start(&limited(&cluster, &all).await);
    cluster.config("50-a", "worker", files(&[("/etc/a", "a")])).await;
    cluster.config("50-b", "infra", files(&[("/etc/a", "b")])).await;
    let a = cluster.plan("MachineConfig/50-a created", |_| true).await;
    let b = cluster.plan("MachineConfig/50-b created", |_| true).await;

    // The same, written again: it has to be read again.
    may_read(&cluster, &some);
    let label = ["label", "machineconfig", "50-a", "again=yes"];
    cluster.plane.kubectl(&label).unwrap().success().unwrap();
    cluster.plan("MachineConfig/50-a created", |plan| status(plan).stale).await;
    let rules = "apiVersion: tread.dev/v1alpha1\nkind: DisruptionPolicy\nmetadata: {name: ours}\n\
                 spec:\n  rules: [{match: ['file:/etc/a'], actions: []}]\n";
    tread.policies.send(Arc::new(current(&[rules]))).unwrap();
    let changed = |plan: &DisruptionPlan| {
        let name = plan.name_any();
        let selector = format!("involvedObject.name={name},reason=PlanChanged");
        let args = ["get", "events", "-o", "name", "--field-selector", &selector];
        let events = cluster.plane.kubectl(&args).unwrap().stdout;
        events.lines().count()
    };
    eventually("the one is told of", async || (changed(&b) == 1).then_some(())).await;
    assert_eq!(changed(&a), 0);
    may_read(&cluster, &all);
    cluster
        .plan("MachineConfig/50-a created", |plan| status(plan).tread.as_deref() == Some("none"))
        .await;
    eventually("the other is told of", async || (changed(&a) == 1).then_some(())).await;
    assert_eq!(changed(&b), 1, "what was told is not told again");
}

/// A MachineConfig of so many files, in as few bytes as possible.
fn of_files(count: usize) -> Value {
    let files: Vec<Value> =
        (0..count).map(|number| json!({"path": format!("/a{number}")})).collect();
    json!({"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": files}}})
}

/// What the API server asks of a MachineConfig that somebody creates.
fn asked(name: &str, spec: &Value) -> Asked {
    let review = json!({"request": {
        "uid": "1", "operation": "CREATE", "kind": {"kind": "MachineConfig"}, "name": name,
        "object": {
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {"name": name,
                "labels": {"machineconfiguration.openshift.io/role": "worker"}},
            "spec": spec,
        },
    }});
    Asked::read(review.to_string().as_bytes()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_changes_and_too_much_to_compare_are_a_reboot_that_says_so() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    let tread = Tread::start(&cluster.client);
    tread.previewer.ready().await;
    // Asked about, and made.
    let too_much = "values have to be compared: planned as a reboot";
    let list = json!({"config": {"ignition": {"version": "3.4.0"},
        "storage": {"directories": vec![0; 500_000]}}});
    for (name, spec, words) in [
        ("50-many", of_files(2001), "2001 changes: planned as a reboot"),
        ("50-too-many", of_files(60_000), too_much),
        ("50-short", list, too_much),
    ] {
        let lines = tread.previewer.warnings(asked(name, &spec)).await.lines;
        assert!(lines.iter().any(|line| line.contains(words)), "{lines:?}");
        cluster.config(name, "worker", spec).await;
        let plan = cluster
            .plan(&format!("MachineConfig/{name} created"), |plan| {
                condition(plan, "Planned").0 == "False"
            })
            .await;
        let said = plan.status.as_ref().unwrap();
        let planned = said.conditions.iter().find(|it| it.type_ == "Planned").unwrap();
        assert!(planned.message.contains(words), "{}", planned.message);
        let steps: Vec<&str> =
            said.transitions[0].steps.iter().map(|step| step.r#do.as_str()).collect();
        assert_eq!(steps, ["drain", "write", "reboot", "uncordon"]);
        cluster.delete::<MachineConfig>(name).await;
        cluster
            .plan(&format!("MachineConfig/{name} created"), |plan| {
                condition(plan, "Pending").0 == "False"
            })
            .await;
    }
    let mut nested = json!(0);
    for _ in 0..900 {
        nested = json!({ "a": nested });
    }
    let lines =
        tread.previewer.warnings(asked("50-nested", &json!({"config": nested}))).await.lines;
    let is_of_nested =
        |line: &String| line.contains("count on drain + reboot") && line.contains("50-nested");
    assert!(lines.iter().any(is_of_nested), "{lines:?}");
    // What fits is planned as it was.
    let lines = tread.previewer.warnings(asked("50-few", &of_files(2))).await.lines;
    assert!(lines.iter().any(|line| line.contains("file:/a0 and 1 more")), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_rolls_out_what_is_too_much_is_told_so_and_not_that_it_failed() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    let tread = Tread::start(&cluster.client);
    tread.previewer.ready().await;
    let target = || {
        let pools = tread.previewer.snapshot().pools;
        pools.get("worker").and_then(|pool| pool.target.as_ref().map(|it| it.name.clone()))
    };
    let from = target().unwrap();
    // More values than are read are rendered as they are.
    let values = json!({"kernelArguments": vec![""; 400_000]});
    for (name, spec, is_planned) in [
        ("50-few", of_files(2), true),
        ("50-many", of_files(2001), false),
        ("50-values", values, false),
    ] {
        cluster.config(name, "worker", spec).await;
        let to = cluster.render("worker").await;
        eventually("it is rendered", async || {
            let is_there = tread.previewer.snapshot().configs.contains_key(&to);
            (is_there && target().as_ref() == Some(&to)).then_some(())
        })
        .await;
        let plan = tread.previewer.plan(&from, "worker").await.unwrap();
        assert_eq!(plan.is_some(), is_planned, "{name}");
        cluster.delete::<MachineConfig>(name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_learns_a_secret_by_asking_and_whoever_may_read_it_is_told() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    let secret = |text: &str| {
        json!({"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": [
            {"path": "/etc/secret", "mode": 0o600, "overwrite": true,
                "contents": {"source": format!("data:,{text}")}}]}}})
    };
    cluster.config("50-secret", "worker", secret("right")).await;
    cluster.render("worker").await;
    cluster.settle("worker").await;
    let tread = Tread::start(&cluster.client);
    tread.previewer.ready().await;
    let mut said = Vec::new();
    for guess in ["right", "wrong"] {
        for name in ["50-secret", "99-guess"] {
            said.push(tread.previewer.warnings(asked(name, &secret(guess))).await.lines);
        }
    }
    assert_eq!(said[..2], said[2..]);
    let note = said[0].last().unwrap();
    assert!(note.contains("whether file:/etc/secret changes is not told"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_anybody_writes_into_configs_and_pools_drives_a_terminal() {
    const ODD: &str = "x\u{1b}[31mred\u{1b}]0;title\u{7}\nforged: line\u{202e}turned\u{200b}";
    let cluster = Cluster::settled(ControlPlane::options()).await;
    let tread = Tread::start(&cluster.client);
    tread.previewer.ready().await;
    let note = json!({"metadata": {"annotations": {"note": ODD}}});
    cluster.patch_pool("worker", note).await;
    // Names that Ignition takes and that are shown: kernel arguments, files, units.
    let of = |config: Value, rest: Value| {
        let mut spec = json!({"config": {"ignition": {"version": "3.4.0"}}});
        let put = |into: &mut Value, from: &Value| {
            for (name, value) in from.as_object().unwrap() {
                into[name] = value.clone();
            }
        };
        put(&mut spec["config"], &config);
        put(&mut spec, &rest);
        spec
    };
    let file = json!({"path": "/etc/a", "contents": {"source": format!("data:,{ODD}")}});
    let specs = [
        of(json!({}), json!({"kernelArguments": [ODD]})),
        of(json!({}), json!({"osImageURL": ODD, "kernelType": ODD, "extensions": [ODD]})),
        of(json!({"storage": {"files": [{"path": format!("/etc/{ODD}")}]}}), json!({})),
        of(json!({"storage": {"files": [{"path": "/etc/a", ODD: 1}]}}), json!({})),
        of(json!({"storage": {"files": [file]}}), json!({})),
        of(json!({"systemd": {"units": [{"name": format!("{ODD}.service")}]}}), json!({})),
        of(json!({"passwd": {"users": [{"name": ODD}]}, ODD: 1}), json!({})),
        of(json!({"storage": {"disks": [{"device": ODD}]}}), json!({})),
    ];
    let mut texts = Vec::new();
    for (number, spec) in specs.iter().enumerate() {
        let name = format!("50-odd-{number}");
        for line in tread.previewer.warnings(asked(&name, spec)).await.lines {
            texts.push(tread_kube::clean::clean(&line));
        }
        cluster.config(&name, "worker", spec.clone()).await;
        cluster.plan(&format!("MachineConfig/{name} created"), |_| true).await;
        for plan in tread.previewer.plans() {
            all_texts(&serde_json::to_value(&*plan).unwrap(), &mut texts);
        }
        for plan in cluster.plans().await {
            all_texts(&serde_json::to_value(&plan.status).unwrap(), &mut texts);
        }
        cluster.delete::<MachineConfig>(&name).await;
        eventually("it is over", async || tread.previewer.plans().is_empty().then_some(())).await;
    }
    // What a node says that it has.
    cluster.config("50-last", "worker", files(&[("/etc/a", "a")])).await;
    cluster.roll(&["worker-1"], ODD).await;
    let last = "MachineConfig/50-last created";
    cluster.plan(last, |plan| status(plan).transitions.len() == 2).await;
    for plan in tread.previewer.plans() {
        all_texts(&serde_json::to_value(&*plan).unwrap(), &mut texts);
    }
    for plan in cluster.plans().await {
        all_texts(&serde_json::to_value(&plan.status).unwrap(), &mut texts);
    }
    texts.extend(tread.metrics.text().unwrap().lines().map(str::to_owned));
    let columns = cluster.plane.kubectl(&["get", "dplan", "-o", "wide"]).unwrap();
    texts.extend(columns.success().unwrap().lines().map(str::to_owned));
    let said = texts.iter().filter(|text| text.contains("forged: line")).count();
    assert!(said > 0, "it is repeated: {texts:#?}");
    let odd: Vec<&String> = texts.iter().filter(|text| text.chars().any(is_unfit)).collect();
    assert!(odd.is_empty(), "{odd:#?}");
}

fn all_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        // The reasons of several policies stand on lines of their own.
        Value::String(text) => texts.extend(text.split('\n').map(str::to_owned)),
        Value::Array(all) => all.iter().for_each(|it| all_texts(it, texts)),
        Value::Object(all) => all.iter().for_each(|(name, it)| {
            texts.push(name.clone());
            all_texts(it, texts);
        }),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_policy_uses_to_which_a_secret_was_offered_is_counted_and_not_measured() {
    let cluster = Cluster::settled(ControlPlane::options()).await;
    let tread = Tread::start(&cluster.client);
    tread.previewer.ready().await;
    let path = "/var/lib/kubelet/config.json";
    let spec = |path: &str| {
        json!({"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": [
            {"path": path, "mode": 0o600, "overwrite": true, "contents": {"source": "data:,%7B%22auths%22%3A%7B%7D%7D"}}]}}})
    };
    let open = tread.previewer.warnings(asked("50-a", &spec("/etc/unknown"))).await;
    assert!(!open.offered_secrets && !open.lines.is_empty(), "{open:?}");
    let before = tread.metrics.text().unwrap();
    let warned = tread.previewer.warnings(asked("50-b", &spec(path))).await;
    assert!(warned.offered_secrets && !warned.lines.is_empty(), "{warned:?}");
    let text = tread.metrics.text().unwrap();
    let of = |text: &str, name: &str| {
        let lines = text.lines().filter(|line| line.starts_with(name));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let policy = "{policy=\"certificates\"}";
    let counted = format!("tread_sandbox_calls_with_secrets_total{policy} 1");
    assert_eq!(of(&text, "tread_sandbox_calls_with_secrets_total"), [counted]);
    for measured in ["tread_sandbox_fuel", "tread_sandbox_time", "tread_preview_time"] {
        assert_eq!(of(&text, measured), of(&before, measured));
    }
    assert_eq!(of(&text, "tread_untimed_previews_total"), ["tread_untimed_previews_total 1"]);
}
