//! The service: it follows what is applied, and sees no drift in what an operation writes.

use super::*;
use crate::change::{Adopt, Order, adopt, change};
use crate::desired::Host;
use crate::documents::{Document, Documents, digest};
use crate::drift::Drift;
use crate::host::ThisHost;
use crate::journal::Journal;
use crate::tree::{Syscall, Witness};
use futures::future::LocalBoxFuture;
use std::cell::Cell;
use std::io;
use std::sync::{Arc, Mutex};
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

fn adopted(bed: &Bed, config: &Documents) {
    let tree = bed.tree();
    let host = ThisHost::read(&tree, false).unwrap();
    let label = |path: &str, kind| host.label(path, kind);
    let order = ("adopt", config.clone(), Adopt::Ask);
    let adoption = adopt(&tree, &host, &label, order, Vec::new()).unwrap();
    let journal = Journal::open(&tree).unwrap();
    journal.write(&adoption.ready.record, &adoption.ready.new).unwrap();
    journal.finish().unwrap();
}

/// Begins an operation, which stands until the journal is told that it is over.
fn begun(tree: &Tree, from: &Documents, to: &Documents) {
    let host = ThisHost::read(tree, false).unwrap();
    let label = |path: &str, kind| host.label(path, kind);
    let digest = |config: &Documents| digest(&config.config().unwrap()).unwrap();
    let plan = VerifiablePlan::always_allowed(digest(from), digest(to));
    let order = Order {
        id: "1".to_owned(),
        documents: to.clone(),
        plan,
        accept: Vec::new(),
        others: Vec::new(),
    };
    let mut change = change(tree, &host, &label, &order).unwrap();
    change.ready.record.order = serde_json::json!({"steps": []});
    let journal = Journal::open(tree).unwrap();
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

/// As many files as it takes for an operation to begin while they are looked at.
const FILES: usize = 300;

/// As [`config`], with more files.
fn large(word: &str) -> Documents {
    let mut config = config(word);
    let file = |index: usize| {
        format!(r#"{{"path": "/etc/large/{index}", "contents": {{"source": "data:,{word}"}}}},"#)
    };
    let files: String = (0..FILES).map(file).collect();
    let text = &mut config.0[0].text;
    *text = text.replace(r#""files": ["#, &format!(r#""files": [{files}"#));
    config
}

/// Does something while the service runs.
fn beside(tree: &Tree, pace: Pace, done: impl AsyncFnOnce()) {
    beside_system(tree, pace, &|_| Box::pin(async { Ok(Vec::new()) }), done);
}

/// The same, with an operating system of which this is known.
fn beside_system(tree: &Tree, pace: Pace, system: &System<'_>, done: impl AsyncFnOnce()) {
    let host = || match ThisHost::read(tree, false) {
        Ok(host) => Ok(Box::new(host) as Box<dyn Host>),
        Err(error) => Err(error.to_string()),
    };
    in_time(async {
        tokio::select! {
            ended = serve(tree, &host, system, pace) => panic!("it ended: {:?}", ended.map(drop)),
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
    beside(&bed.tree(), QUICK, async || {
        let waiting = report(&bed, |it| it.state == State::Waiting).await;
        assert!(waiting.message.contains("tread node adopt --config CONFIG"), "{waiting:?}");
        adopted(&bed, &config("one"));
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
fn what_kept_the_service_from_watching_is_asked_again_at_each_full_check() {
    let bed = bed();
    adopted(&bed, &config("one"));
    let tree = bed.tree();
    let is_mended = Cell::new(false);
    let host = || match is_mended.get() {
        false => Err("its users cannot be read".to_owned()),
        true => {
            let host = ThisHost::read(&tree, false).map_err(|error| error.to_string())?;
            Ok(Box::new(host) as Box<dyn Host>)
        }
    };
    let system =
        |_: crate::os::Wish| -> LocalBoxFuture<'_, _> { Box::pin(async { Ok(Vec::new()) }) };
    let often = Pace { full: Duration::from_millis(300), ..QUICK };
    in_time(async {
        let told = async {
            let waiting = report(&bed, |it| it.state == State::Waiting).await;
            assert!(waiting.message.contains("its users cannot be read"), "{waiting:?}");
            is_mended.set(true);
            report(&bed, |it| it.state == State::Watching).await;
        };
        tokio::select! {
            ended = serve(&tree, &host, &system, often) => panic!("{:?}", ended.map(drop)),
            () = told => {}
        }
    });
}

#[test]
fn each_full_check_asks_how_the_operating_system_is_and_what_differs_is_told_until_it_does_not() {
    let bed = bed();
    let mut config = config("one");
    let text = &mut config.0[0].text;
    text.insert_str(text.len() - 2, r#", "kernelArguments": ["nosmt"]"#);
    adopted(&bed, &config);
    let booted = Mutex::new(Ok(Vec::new()));
    let system = |wish: crate::os::Wish| -> LocalBoxFuture<'_, _> {
        assert_eq!(wish.arguments, ["nosmt"]);
        let booted = booted.lock().unwrap().clone();
        Box::pin(async move { booted })
    };
    let often = Pace { full: Duration::from_millis(50), ..QUICK };
    beside_system(&bed.tree(), often, &system, async || {
        report(&bed, |it| it.state == State::Watching && it.count == 0).await;
        let (path, of) = ("kernel-arguments".to_owned(), "kernel-arguments".to_owned());
        let (kinds, differs) = (vec![Kind::Contents], "not booted with them".to_owned());
        let drift = Drift { path, of, there: crate::tree::Found::Other, kinds, differs };
        *booted.lock().unwrap() = Ok(vec![drift]);
        let drifted = report(&bed, |it| it.count == 1).await;
        assert_eq!(drifted.drifted[0].path, "kernel-arguments");
        *booted.lock().unwrap() = Err("no answer".to_owned());
        let unknown = report(&bed, |it| !it.message.is_empty()).await;
        assert!(unknown.message.contains("operating system is: no answer"), "{unknown:?}");
        *booted.lock().unwrap() = Ok(Vec::new());
        report(&bed, |it| it.message.is_empty() && it.count == 0).await;
    });
}

#[test]
fn while_an_operation_stands_nothing_is_told_and_afterwards_the_new_config_holds() {
    let bed = bed();
    adopted(&bed, &config("one"));
    beside(&bed.tree(), QUICK, async || {
        report(&bed, |it| it.state == State::Watching && it.count == 0).await;
        begun(&bed.tree(), &config("one"), &config("two"));
        report(&bed, |it| it.state == State::Paused).await;
        bed.file("/etc/a", "by hand");
        Journal::open(&bed.tree()).unwrap().finish().unwrap();
        let drifted = report(&bed, |it| it.state == State::Watching).await;
        assert_eq!((drifted.count, drifted.drifted[0].path.as_str()), (1, "/etc/a"));
        bed.file("/etc/a", "two");
        report(&bed, |it| it.state == State::Watching && it.count == 0).await;
    });
}

/// Sees each report that is written.
#[derive(Default)]
struct Reports(Mutex<Vec<Report>>);

impl Witness for Reports {
    fn before(&self, syscall: &Syscall<'_>) -> io::Result<()> {
        if let Syscall::Create { bytes, .. } = syscall {
            self.0.lock().unwrap().extend(serde_json::from_slice::<Report>(bytes).ok());
        }
        Ok(())
    }

    fn after(&self, _: &Syscall<'_>) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn no_report_ever_takes_what_operations_write_for_drift() {
    const ROUNDS: usize = 10;
    let bed = bed();
    for index in 0..FILES {
        bed.file(&format!("/etc/large/{index}"), "one");
    }
    adopted(&bed, &large("one"));
    let reports = Arc::new(Reports::default());
    let tree = Tree::witnessed(bed.0.path(), reports.clone()).unwrap();
    let at_once = Pace { settle: Duration::ZERO, ..QUICK };
    beside(&tree, at_once, async || {
        report(&bed, |it| it.state == State::Watching && it.count == 0).await;
        let at = bed.0.path().to_owned();
        let operations = tokio::task::spawn_blocking(move || {
            let bed = Tree::open(&at).unwrap();
            for round in 0..ROUNDS {
                let (from, to) = if round % 2 == 0 { ("one", "two") } else { ("two", "one") };
                begun(&bed, &large(from), &large(to));
                Journal::open(&bed).unwrap().finish().unwrap();
            }
        });
        operations.await.unwrap();
        report(&bed, |it| it.state == State::Watching && it.count == 0).await;
    });
    let reports = reports.0.lock().unwrap();
    assert!(reports.len() > 2, "{} reports", reports.len());
    let wrong = reports.iter().find(|it| it.count > 0);
    assert!(wrong.is_none(), "{:?}", wrong.map(|it| it.count));
}
