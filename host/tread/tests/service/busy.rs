//! An API server that takes no writes for a while.

use crate::front::{Fate, Front, Refused};
use crate::replica::installed;
use crate::story::{allow, cluster_with, config, plan, policy, put, written};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tread_test_bed::eventually;

/// What tread writes, its Lease aside: without that it would not lead.
fn is_write(method: &str, path: &str) -> bool {
    let places = ["/apis/tread.dev/", "/apis/events.k8s.io/", "/configmaps/"];
    ["POST", "PUT", "PATCH", "DELETE"].contains(&method)
        && places.iter().any(|place| path.contains(place))
}

/// When each request was refused.
fn by_request(refused: &[Refused]) -> BTreeMap<&str, Vec<Instant>> {
    let mut all: BTreeMap<&str, Vec<Instant>> = BTreeMap::new();
    for it in refused {
        all.entry(it.what.as_str()).or_default().push(it.at);
    }
    all
}

const CREATE: &str = "POST /apis/tread.dev/v1alpha1/disruptionpolicies";

/// What happens while no write is taken is said, counted, tried again after
/// longer and longer pauses, and all there when writes are taken again.
///
/// The pauses between two tries are at least `first`, and twice as long each time, on
/// top of `always`.
async fn nothing_is_lost(fate: Fate, code: u16, (always, first): (Duration, Duration)) {
    let plane = installed();
    let front = Front::start(plane.client().await.unwrap()).await;
    let kubeconfig = written(&format!("busy-{code}.kubeconfig"), &front.kubeconfig());
    let replica = cluster_with(&plane, &[("KUBECONFIG", kubeconfig.to_str().unwrap())]).await;
    allow(&plane);
    let begun = Instant::now();
    front.set(move |method, path| match is_write(method.as_str(), path) {
        true => fate,
        false => Fate::Passes,
    });
    put(&plane, "ours").await;
    plane.apply(&config("50-a", "a", "1")).unwrap();

    eventually("it says so", async || {
        let (_, text) = replica.get("/readyz").await?;
        let line = text.lines().find(|line| line.starts_with("ok writes: tried again: "))?;
        (line.contains("plans: ") && line.contains("policies: ")).then_some(())
    })
    .await;
    let (_, metrics) = replica.get("/metrics").await.unwrap();
    for kind in ["disruptionplans", "disruptionpolicies"] {
        let counted = |line: &str| {
            let place = format!("kind=\"{kind}\",code=\"{code}\"");
            line.starts_with("tread_api_errors_total{") && line.contains(&place)
        };
        assert!(metrics.lines().any(counted), "{kind}: {metrics}");
    }
    eventually("it tries again", async || {
        let refused = front.refused();
        let tries = by_request(&refused);
        (tries.get(CREATE)?.len() >= 4).then_some(())
    })
    .await;
    front.set(|_, _| Fate::Passes);
    let (refused, took) = (front.refused(), begun.elapsed());

    let all = by_request(&refused);
    let pauses = all[CREATE].windows(2).map(|two| two[1].duration_since(two[0]));
    for (pause, times) in pauses.zip(0..) {
        let least = always + first * 2_u32.pow(times);
        assert!(pause >= least, "{times}: {pause:?} is less than {least:?}");
    }
    // Without a pause it would be hundreds in a second.
    for (what, times) in &all {
        let most = 10.0 + 4.0 * took.as_secs_f64();
        let times = u32::try_from(times.len()).unwrap();
        assert!(f64::from(times) < most, "{what}: {times} in {took:?}");
    }

    policy(&plane, "apps.ours", "Loaded").await;
    plan(&plane, "MachineConfig/50-a created").await;
    eventually("it was told", async || {
        let events = ["get", "events", "-A", "--field-selector", "reason=PolicyLoaded"];
        let events = plane.kubectl(&events).unwrap().success().unwrap();
        events.contains("disruptionpolicy/apps.ours").then_some(())
    })
    .await;
    eventually("nothing is left", async || {
        let (_, text) = replica.get("/readyz").await?;
        text.contains("ok writes: nothing waits").then_some(())
    })
    .await;
    eventually("it leads", async || replica.leads().await.then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_is_too_busy_for_writes_is_left_alone_and_nothing_is_lost() {
    let pauses = (Duration::from_secs(2), Duration::from_millis(200));
    nothing_is_lost(Fate::Busy(2), 429, pauses).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_for_which_somebody_else_was_faster_are_tried_again_and_nothing_is_lost() {
    let pauses = (Duration::ZERO, Duration::from_millis(500));
    nothing_is_lost(Fate::Conflict, 409, pauses).await;
}
