//! The service: it follows what is applied, and sees no drift in what an operation writes.

use super::*;
use crate::change::{Adopt, Order, adopt, change};
use crate::desired::Host;
use crate::documents::{Document, Documents, digest};
use crate::host::ThisHost;
use crate::journal::Journal;
use tread_model::plan::VerifiablePlan;

fn config(word: &str) -> Documents {
    let text = format!(
        r#"{{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {{"name": "rendered-worker-1",
                          "labels": {{"machineconfiguration.openshift.io/role": "worker"}}}},
            "spec": {{"config": {{"ignition": {{"version": "3.4.0"}}, "storage": {{"files": [
                {{"path": "/etc/a", "contents": {{"source": "data:,{word}"}}}},
                {{"path": "/etc/b", "contents": {{"source": "data:,{word}"}}}}]}}}}}}}}"#
    );
    Documents(vec![Document { name: "config".to_owned(), text }])
}

fn adopted(bed: &Bed, word: &str) {
    let tree = bed.tree();
    let host = ThisHost::read(&tree, false).unwrap();
    let label = |path: &str, kind| host.label(path, kind);
    let order = ("adopt", config(word), Adopt::Ask);
    let adoption = adopt(&tree, &host, &label, order, Vec::new()).unwrap();
    let journal = Journal::open(&tree).unwrap();
    journal.write(&adoption.ready.record, &adoption.ready.new).unwrap();
    journal.finish().unwrap();
}

/// Begins an operation, which stands until the journal is told that it is over.
fn begun(bed: &Bed, from: &str, to: &str) {
    let tree = bed.tree();
    let host = ThisHost::read(&tree, false).unwrap();
    let label = |path: &str, kind| host.label(path, kind);
    let digest = |word: &str| digest(&config(word).config().unwrap()).unwrap();
    let plan = VerifiablePlan::always_allowed(digest(from), digest(to));
    let order = Order {
        id: "1".to_owned(),
        documents: config(to),
        plan,
        accept: Vec::new(),
        others: Vec::new(),
    };
    let mut change = change(&tree, &host, &label, &order).unwrap();
    change.ready.record.order = serde_json::json!({"steps": []});
    let journal = Journal::open(&tree).unwrap();
    journal.write(&change.ready.record, &change.ready.new).unwrap();
}

async fn report(bed: &Bed, wanted: impl Fn(&Report) -> bool) -> Report {
    loop {
        match Report::read(&bed.tree()).unwrap() {
            Some(report) if wanted(&report) => return report,
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Does something while the service runs.
fn beside(bed: &Bed, done: impl AsyncFnOnce()) {
    let tree = bed.tree();
    let host = || match ThisHost::read(&bed.tree(), false) {
        Ok(host) => Ok(Box::new(host) as Box<dyn Host>),
        Err(error) => Err(error.to_string()),
    };
    in_time(async {
        tokio::select! {
            ended = serve(&tree, &host, QUICK) => panic!("it ended: {:?}", ended.map(drop)),
            () = done() => {}
        }
    });
}

fn bed() -> Bed {
    let bed = Bed::new();
    bed.file("/etc/a", "one");
    bed.file("/etc/b", "one");
    bed
}

#[test]
fn the_service_follows_adoption_drift_and_what_is_mended() {
    let bed = bed();
    beside(&bed, async || {
        let waiting = report(&bed, |it| it.state == State::Waiting).await;
        assert!(waiting.message.contains("tread node adopt"), "{waiting:?}");
        adopted(&bed, "one");
        let clean = report(&bed, |it| it.state == State::Watching).await;
        assert!(clean.count == 0 && clean.checked.is_some(), "{clean:?}");
        bed.file("/etc/a", "by hand");
        let drifted = report(&bed, |it| it.count == 1).await;
        let expected = vec![Differs { path: "/etc/a".to_owned(), kinds: vec![Kind::Contents] }];
        assert_eq!(drifted.drifted, expected);
        bed.file("/etc/a", "one");
        report(&bed, |it| it.state == State::Watching && it.count == 0).await;
    });
    let at = bed.path("/var/lib/tread/watch");
    assert_eq!(at.metadata().unwrap().permissions().mode() & 0o7777, 0o700);
    let text = fs::read_to_string(at.join("drift")).unwrap();
    assert!(!text.contains("one") && !text.contains("by hand"), "{text}");
}

#[test]
fn while_an_operation_stands_nothing_is_told_and_afterwards_the_new_config_holds() {
    let bed = bed();
    adopted(&bed, "one");
    beside(&bed, async || {
        report(&bed, |it| it.state == State::Watching && it.count == 0).await;
        begun(&bed, "one", "two");
        report(&bed, |it| it.state == State::Paused).await;
        bed.file("/etc/a", "by hand");
        Journal::open(&bed.tree()).unwrap().finish().unwrap();
        let drifted = report(&bed, |it| it.state == State::Watching).await;
        assert_eq!((drifted.count, drifted.drifted[0].path.as_str()), (1, "/etc/a"));
        bed.file("/etc/a", "two");
        report(&bed, |it| it.state == State::Watching && it.count == 0).await;
    });
}

#[test]
fn no_report_ever_takes_what_operations_write_for_drift() {
    let bed = bed();
    adopted(&bed, "one");
    beside(&bed, async || {
        for round in 0..30 {
            let (from, to) = if round % 2 == 0 { ("one", "two") } else { ("two", "one") };
            begun(&bed, from, to);
            Journal::open(&bed.tree()).unwrap().finish().unwrap();
            for _ in 0..10 {
                tokio::task::yield_now().await;
                let report = Report::read(&bed.tree()).unwrap();
                assert!(report.as_ref().is_none_or(|it| it.count == 0), "{report:?}");
            }
        }
        report(&bed, |it| it.state == State::Watching && it.count == 0).await;
    });
}
