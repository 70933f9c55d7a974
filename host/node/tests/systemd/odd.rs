//! Answers that a real systemd gives rarely.

use crate::fake::{Bus, Fake, JobEnds};
use crate::{PATIENCE, reload_without_end};
use std::time::Duration;
use tread_node::systemd::{Ask, JobResult, Outcome, Reboot, What};

fn fake(result: &'static str, ends: JobEnds) -> Fake {
    Fake { result, ends, then: "active", asked: Vec::new() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_end_is_told_before_its_name_is_heard() {
    for ends in [JobEnds::Before, JobEnds::After] {
        let bus = Bus::start().await;
        let fake = fake("done", ends).serve(&bus).await;
        let manager = bus.manager();
        let outcome = manager.unit_step(Ask::Reload, "a.service", PATIENCE).await.unwrap();
        assert_eq!(outcome, Outcome::Done { did: Ask::Reload, note: None });
        // What the unit is before the job, after it and at the end. A look that takes as
        // long as the unit has to stay well is the last one.
        let asked = fake.lock().unwrap().asked.clone();
        let looks = asked.iter().filter(|it| *it == "GetAll").count() as u64;
        assert!((2..=3).contains(&looks), "{asked:?}");
        // Hello, the unit's path, two kinds of signals, to be told them, and the job.
        assert_eq!(manager.calls(), 6 + looks);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_end_of_a_job_but_done_is_a_failure() {
    let bus = Bus::start().await;
    let fake = fake("", JobEnds::After).serve(&bus).await;
    let manager = bus.manager();
    for (word, result) in [
        ("failed", JobResult::Failed),
        ("canceled", JobResult::Canceled),
        ("timeout", JobResult::Timeout),
        ("dependency", JobResult::Dependency),
        ("skipped", JobResult::Skipped),
        ("invalid", JobResult::Invalid),
        ("assert", JobResult::Assert),
        ("unsupported", JobResult::Unsupported),
        ("collected", JobResult::Collected),
        ("once", JobResult::Once),
        ("frozen", JobResult::Other("frozen".to_owned())),
    ] {
        fake.lock().unwrap().result = word;
        let problem = manager.unit_step(Ask::Restart, "a.service", PATIENCE).await.unwrap_err();
        assert_eq!(problem.what, What::Job(result), "{word}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_was_skipped_since_the_unit_ended_is_skipped() {
    let bus = Bus::start().await;
    Fake { then: "inactive", ..fake("skipped", JobEnds::After) }.serve(&bus).await;
    let outcome = bus.manager().unit_step(Ask::Reload, "a.service", PATIENCE).await.unwrap();
    assert_eq!(outcome, Outcome::Skipped { note: "the unit is inactive".to_owned() });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_without_an_end_is_cancelled_at_its_deadline() {
    let bus = Bus::start().await;
    let fake = fake("", JobEnds::Never).serve(&bus).await;
    let limit = Duration::from_secs(3);
    let what = reload_without_end(&bus.manager(), "a.service", limit).await;
    assert_eq!(what, What::TimedOut { limit, cancelled: true });
    assert!(fake.lock().unwrap().asked.contains(&"CancelJob".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_gone_without_a_word_is_asked_for_once_more() {
    let bus = Bus::start().await;
    let fake = fake("", JobEnds::Never).serve(&bus).await;
    let problem = bus.manager().unit_step(Ask::Reload, "a.service", PATIENCE).await.unwrap_err();
    assert_eq!(problem.what, What::Job(JobResult::Unheard));
    let asked = fake.lock().unwrap().asked.clone();
    assert_eq!(asked.iter().filter(|it| *it == "ReloadUnit").count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_boots_the_node_the_kernel_is_asked_last() {
    let bus = Bus::start().await;
    let fake = fake("", JobEnds::Never).serve(&bus).await;
    let mut notes = Vec::new();
    let mut kernel = false;
    let ask_kernel = || {
        kernel = true;
        Ok(())
    };
    let how = Reboot { inhibited: PATIENCE, going_down: Duration::from_millis(1) };
    let problem = bus.manager().reboot(how, |note| notes.push(note), ask_kernel).await;
    assert!(kernel);
    let asked: Vec<&str> = notes.iter().filter_map(|it| it.strip_prefix("asking ")).collect();
    let expected = ["logind", "systemd's reboot.target", "systemd at once", "the kernel"];
    assert_eq!(asked, expected.map(|it| format!("{it} for a boot")), "{notes:?}");
    let heard = fake.lock().unwrap().asked.clone();
    let heard: Vec<&str> = heard.iter().map(String::as_str).collect();
    let logind = ["ListInhibitors", "Reboot", "RebootWithFlags"];
    assert_eq!(heard, [&logind[..], &["StartUnit", "Reboot"]].concat());
    let text = problem.to_string();
    assert!(text.contains("the kernel was asked, and the node is still up"), "{text}");
}
