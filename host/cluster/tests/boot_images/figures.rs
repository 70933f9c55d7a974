//! Five hundred machine resources on a real API server. The times are printed;
//! what they were is in SPECIFICATION.md.

use super::fixture::Cluster;
use super::judged::{SETS, machine_set, request};
use kube::Api;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;
use tread_kube::api::BootImages;
use tread_test_bed::eventually;

const COUNT: i64 = 500;

fn set(at: i64, image: &str) -> Value {
    let provider =
        json!({"kind": "GCPMachineProviderSpec", "disks": [{"boot": true, "image": image}]});
    let mut set = machine_set(&format!("worker-{at}"), json!({}), &provider);
    set["apiVersion"] = json!("machine.openshift.io/v1beta1");
    set["kind"] = json!("MachineSet");
    set
}

/// All of them in a file, one after the other: what makes them is no part of what is measured.
fn made() -> PathBuf {
    let path = std::env::temp_dir().join(format!("tread-resources-{}.json", std::process::id()));
    let mut file = std::fs::File::create(&path).unwrap();
    for at in 0..COUNT {
        writeln!(file, "{}", set(at, "rhcos-9-6-20250523-0-gcp")).unwrap();
    }
    path
}

/// What the process has of memory of its own, in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[tokio::test(flavor = "multi_thread")]
async fn of_five_hundred_resources_one_change_is_judged_by_itself_and_warned_of() {
    let cluster = Cluster::openshift().await;
    let running = cluster.run();
    cluster.until("Upgradeable", "True", "NothingToJudge").await;
    let made = made();
    let before = resident();
    cluster.kubectl(&["apply", "-f", made.to_str().unwrap()]);
    std::fs::remove_file(made).unwrap();
    let count = || running.known.now().map(|it| it.1.resources.len() as i64);
    let judged = async || (count() == Some(COUNT)).then_some(());
    eventually("all are judged", judged).await;
    let judged_by = resident();
    let api: Api<BootImages> = Api::all(cluster.client.clone());
    eventually("all are told", async || {
        let status = api.get("cluster").await.ok()?.status?;
        (status.count == Some(COUNT) && status.resources.len() == 200).then_some(())
    })
    .await;
    let taken = resident().max(judged_by).saturating_sub(before);

    let begun = Instant::now();
    cluster.apply(&set(77, "rhcos-412-86-202308081056-0-gcp"));
    let applied = begun.elapsed();
    eventually("the change is judged", async || {
        let status = api.get("cluster").await.ok()?.status?;
        (status.resources.first()?.name == "worker-77").then_some(())
    })
    .await;
    let judged = begun.elapsed();

    let asked = request(SETS, "new", None, set(501, "rhcos-412-86-202308081056-0-gcp"), None);
    let begun = Instant::now();
    let said = running.known.warnings(&asked);
    let warned = begun.elapsed();
    assert_eq!(said.len(), 1, "{said:?}");
    let figures = format!(
        "500 resources: judged {judged:?} after the command began (which took {applied:?}), warned \
         within {warned:?}, {} KB more resident",
        taken / 1024
    );
    writeln!(std::io::stderr(), "{figures}").unwrap();
    let text = cluster.metrics.text().unwrap();
    assert!(text.contains("tread_boot_images{verdict=\"Blocks\"} 1"), "{text}");
    assert!(text.contains("tread_boot_images{verdict=\"Passes\"} 499"), "{text}");
}
