//! Steps that tell a unit something.

use crate::{PATIENCE, manager, patient, reload_without_end};
use std::time::{Duration, Instant};
use tread_node::systemd::{Active, Ask, Ill, JobResult, Load, Outcome, What};
use tread_test_machine::Machine;

/// Runs for ever, and notes each reload and start.
const GOOD: &str = "[Service]\n\
    ExecStartPre=/bin/sh -c 'echo started >>/run/notes'\n\
    ExecStart=/bin/sleep infinity\n\
    ExecReload=/bin/sh -c 'echo reloaded >>/run/notes'\n";

fn done(did: Ask) -> Outcome {
    Outcome::Done { did, note: None }
}

fn skipped(note: &str) -> Outcome {
    Outcome::Skipped { note: note.to_owned() }
}

fn notes(machine: &Machine) -> String {
    machine.run_well(["sh", "-c", "cat /run/notes; rm /run/notes"]).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_runs_is_reloaded_and_restarted_with_few_calls() {
    let machine = Machine::build().unit_at_boot("good.service", GOOD).boot().unwrap();
    let manager = manager(&machine);
    assert_eq!(notes(&machine), "started\n");
    let before = manager.facts("good.service").await.unwrap();
    assert_eq!((&before.load, &before.active), (&Load::Loaded, &Active::Active));
    assert_eq!((before.kind.as_str(), before.file_state.as_str()), ("simple", "enabled"));
    assert!(before.can_reload && before.can_start && before.invocation.len() == 32);

    let calls = manager.calls();
    let outcome = manager.unit_step(Ask::Reload, "good.service", PATIENCE).await.unwrap();
    assert_eq!((outcome, notes(&machine).as_str()), (done(Ask::Reload), "reloaded\n"));
    // Its path, what it is, two kinds of signals, to be told them, the job, and how it is
    // after it and at the end. Each change that systemd tells of costs one more look, and how
    // many it tells of apart depends on how busy the machine is.
    let calls = manager.calls() - calls;
    assert!((8..=20).contains(&calls), "{calls} calls");

    let outcome = manager.unit_step(Ask::Restart, "good.service", PATIENCE).await.unwrap();
    assert_eq!((outcome, notes(&machine).as_str()), (done(Ask::Restart), "started\n"));
    let after = manager.facts("good.service").await.unwrap();
    assert_ne!(after.invocation, before.invocation);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_is_inactive_or_masked_is_skipped_but_a_oneshot_is_started() {
    let once = "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo ran >>/run/notes'\n";
    let machine = Machine::build()
        .unit("inactive.service", GOOD)
        .link("/etc/systemd/system/masked.service", "/dev/null")
        .unit("once.service", once)
        .unit("remains.service", &format!("{once}RemainAfterExit=yes\n"))
        .boot()
        .unwrap();
    let manager = patient(&machine, PATIENCE);
    let inactive = skipped("the unit is inactive");
    for (unit, reload, restart) in [
        ("inactive.service", inactive.clone(), inactive.clone()),
        ("masked.service", skipped("the unit is masked"), skipped("the unit is masked")),
        // Well at once: it has no process that could fail.
        ("once.service", inactive.clone(), done(Ask::Restart)),
        ("remains.service", inactive.clone(), inactive),
    ] {
        assert_eq!(manager.unit_step(Ask::Reload, unit, PATIENCE).await.unwrap(), reload, "{unit}");
        let restarted = manager.unit_step(Ask::Restart, unit, PATIENCE).await.unwrap();
        assert_eq!(restarted, restart, "{unit}");
    }
    assert_eq!(notes(&machine), "ran\n");
    machine.run_well(["systemctl", "start", "remains.service"]).unwrap();
    let restarted = manager.unit_step(Ask::Restart, "remains.service", PATIENCE).await.unwrap();
    assert_eq!((restarted, notes(&machine).as_str()), (done(Ask::Restart), "ran\nran\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_is_named() {
    let machine = Machine::build()
        .unit_at_boot("stubborn.service", "[Service]\nExecStart=/bin/sleep infinity\n")
        .unit("broken.service", "[Service]\nType=nonsense\n")
        .boot()
        .unwrap();
    let manager = manager(&machine);
    let step = async |ask, unit| manager.unit_step(ask, unit, PATIENCE).await.unwrap_err();
    let missing = step(Ask::Restart, "missing.service").await;
    assert_eq!(missing.what, What::Missing);
    assert!(missing.to_string().starts_with("restart missing.service: there is no such unit."));
    let stubborn = step(Ask::Reload, "stubborn.service").await;
    assert_eq!(stubborn.what, What::CannotReload);
    let broken = step(Ask::Restart, "broken.service").await;
    assert_eq!(broken.what, What::Unusable("bad-setting".to_owned()));
    let nonsense = step(Ask::Restart, "no unit at all").await;
    assert!(matches!(nonsense.what, What::Refused { .. }), "{nonsense}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_fails_to_start_has_failed_and_its_words_are_told() {
    let unit = "[Service]\nType=notify\nNotifyAccess=all\nExecReload=/bin/false\n\
        ExecStart=/bin/sh -c 'if [ -e /run/broken ]; then echo \\033[31mwhat is wrong; exit 3; fi; \
        systemd-notify --ready; exec sleep infinity'\n";
    let machine = Machine::build().unit_at_boot("bad.service", unit).boot().unwrap();
    let manager = manager(&machine);
    let reload = manager.unit_step(Ask::Reload, "bad.service", PATIENCE).await.unwrap_err();
    assert_eq!(reload.what, What::Job(JobResult::Failed), "a reload that fails");
    machine.run_well(["touch", "/run/broken"]).unwrap();
    let restart = manager.unit_step(Ask::Restart, "bad.service", PATIENCE).await.unwrap_err();
    assert_eq!(restart.what, What::Job(JobResult::Failed));
    let said = restart.excerpt.join("\n");
    assert!(said.contains("what is wrong") && !said.contains('\u{1b}'), "{said}");
    assert!(said.contains("Failed to start bad.service"), "what systemd says of it too: {said}");
    assert!(restart.to_string().starts_with("restart bad.service: systemd's job failed. See"));
    // Now that it has failed, a reload is a restart.
    machine.run_well(["rm", "/run/broken"]).unwrap();
    let reload = manager.unit_step(Ask::Reload, "bad.service", PATIENCE).await.unwrap();
    let note = Some("the unit had failed, so it was restarted".to_owned());
    assert_eq!(reload, Outcome::Done { did: Ask::Restart, note });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_hangs_past_its_deadline_loses_its_job() {
    let unit = "[Service]\nTimeoutStartSec=infinity\n\
        ExecStart=/bin/sleep infinity\nExecReload=/bin/sleep infinity\n";
    let machine = Machine::build().unit_at_boot("hangs.service", unit).boot().unwrap();
    let manager = manager(&machine);
    let limit = Duration::from_secs(5);
    let what = reload_without_end(&manager, "hangs.service", limit).await;
    assert_eq!(what, What::TimedOut { limit, cancelled: true });
    assert_eq!(manager.facts("hangs.service").await.unwrap().job, None);
    // It is still at its reload: the next step waits for the unit, and no longer than it may.
    let problem = manager.unit_step(Ask::Reload, "hangs.service", limit).await.unwrap_err();
    assert_eq!(problem.what, What::TimedOut { limit, cancelled: false });
}

/// Runs for ever, or ends a moment after its start.
fn ends_later(how: &str, more: &str) -> String {
    format!(
        "[Service]\nExecStart=/bin/sh -c 'if [ -e /run/broken ]; then echo the last words; \
         sleep 0.3; {how}; fi; exec sleep infinity'\n{more}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_fails_a_moment_later_or_again_and_again_has_failed() {
    let machine = Machine::build()
        .unit_at_boot("later.service", &ends_later("exit 7", ""))
        .unit_at_boot("ends.service", &ends_later("exit 0", ""))
        .unit_at_boot("again.service", &ends_later("exit 7", "Restart=always\nRestartSec=10ms\n"))
        .boot()
        .unwrap();
    // As long as it takes: whoever fails is told of at once.
    let manager = patient(&machine, PATIENCE);
    machine.run_well(["touch", "/run/broken"]).unwrap();
    let failed = "exit-code".to_owned();
    for (unit, ill) in [
        ("later.service", [Ill::Failed(failed.clone())].as_slice()),
        ("ends.service", &[Ill::Ended]),
        // Systemd forgets the result as it starts the unit again.
        ("again.service", &[failed, "success".to_owned()].map(Ill::KeepsFailing)),
    ] {
        let begun = Instant::now();
        let problem = manager.unit_step(Ask::Restart, unit, PATIENCE).await.unwrap_err();
        let What::NotWell(is) = &problem.what else { panic!("{unit}: {problem}") };
        assert!(ill.contains(is), "{unit}: {is:?}");
        assert!(begun.elapsed() < PATIENCE, "{unit}");
        let said = problem.excerpt.join("\n");
        assert!(said.contains("the last words") || unit == "again.service", "{unit}: {said}");
    }
    // Mended, it is well however often it was restarted before.
    machine.run_well(["rm", "/run/broken"]).unwrap();
    let manager = crate::manager(&machine);
    let restarted = manager.unit_step(Ask::Restart, "again.service", PATIENCE).await.unwrap();
    assert_eq!(restarted, done(Ask::Restart));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_is_well_only_after_it_stayed_well() {
    let machine = Machine::build().unit_at_boot("good.service", GOOD).boot().unwrap();
    let well_for = Duration::from_millis(700);
    let begun = Instant::now();
    patient(&machine, well_for).unit_step(Ask::Reload, "good.service", PATIENCE).await.unwrap();
    assert!(begun.elapsed() >= well_for);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_that_is_not_met_is_no_success() {
    let unit = "[Unit]\nConditionPathExists=!/run/off\n[Service]\nExecStart=/bin/sleep infinity\n";
    let machine = Machine::build().unit_at_boot("unmet.service", unit).boot().unwrap();
    machine.run_well(["touch", "/run/off"]).unwrap();
    let manager = manager(&machine);
    let problem = manager.unit_step(Ask::Restart, "unmet.service", PATIENCE).await.unwrap_err();
    assert_eq!(problem.what, What::NotWell(Ill::Unmet));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_is_being_started_is_waited_for() {
    let unit = "[Service]\nExecStartPre=/bin/sh -c 'until [ -e /run/go ]; do sleep 0.05; done'\n\
        ExecStart=/bin/sleep infinity\nExecReload=/bin/true\n";
    let machine = Machine::build().unit("slow.service", unit).boot().unwrap();
    machine.run_well(["systemctl", "start", "--no-block", "slow.service"]).unwrap();
    let manager = manager(&machine);
    let step = manager.unit_step(Ask::Reload, "slow.service", PATIENCE);
    let release = async {
        // The step has begun by now, or begins when the unit runs: both end alike.
        machine.run_well(["touch", "/run/go"]).unwrap();
    };
    let (outcome, ()) = tokio::join!(step, release);
    assert_eq!(outcome.unwrap(), done(Ask::Reload));
}

#[tokio::test(flavor = "multi_thread")]
async fn units_are_read_anew() {
    let machine = Machine::build().unit("changes.service", GOOD).boot().unwrap();
    let manager = manager(&machine);
    assert!(manager.facts("changes.service").await.unwrap().can_reload);
    assert_eq!(manager.facts("new.service").await.unwrap().load, Load::NotFound);
    let units = machine.root().unwrap().join("etc/systemd/system");
    for name in ["changes.service", "new.service"] {
        std::fs::write(units.join(name), "[Service]\nExecStart=/bin/true\n").unwrap();
    }
    manager.daemon_reload(PATIENCE).await.unwrap();
    assert!(!manager.facts("changes.service").await.unwrap().can_reload);
    assert_eq!(manager.facts("new.service").await.unwrap().load, Load::Loaded);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_boot_a_unit_proves_that_it_is_well_or_what_it_is_instead() {
    let flaky = "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\nRestartSec=10ms\n\
        ExecStart=/bin/sh -c 'test -e /run/go && exec sleep infinity; exit 1'\n";
    let unmet = "[Unit]\nConditionPathExists=/nowhere\n[Service]\nExecStart=/bin/sleep 9\n";
    let needs = "[Unit]\nRequires=fails.service\nAfter=fails.service\n\
        [Service]\nExecStart=/bin/sleep infinity\n";
    let machine = Machine::build()
        .unit_at_boot("good.service", GOOD)
        .unit_at_boot("flaky.service", flaky)
        .unit_at_boot("unmet.service", unmet)
        .unit("fails.service", "[Service]\nType=oneshot\nExecStart=/bin/false\n")
        .unit_at_boot("needs.service", needs)
        .unit("off.service", GOOD)
        .link("/etc/systemd/system/masked.service", "/dev/null")
        .make()
        .unwrap();
    machine.start().unwrap();
    machine.wait_until_booted().unwrap();
    let manager = manager(&machine);
    for (unit, note) in [
        ("good.service", None),
        ("unmet.service", Some("a condition of the unit is not met")),
        ("off.service", Some("the unit is inactive")),
        ("masked.service", Some("the unit is masked")),
    ] {
        assert_eq!(manager.proves_well(unit, PATIENCE).await.unwrap(), note, "{unit}");
    }
    // It is enabled, and did not start.
    let limit = Duration::from_secs(30);
    let problem = manager.proves_well("needs.service", limit).await.unwrap_err();
    assert_eq!(problem.what, What::NotWell(Ill::NotStarted), "{problem}");
    assert!(problem.to_string().contains("the unit was not started"), "{problem}");
    let limit = Duration::from_secs(3);
    let proven = patient(&machine, PATIENCE).proves_well("flaky.service", limit).await;
    let problem = proven.unwrap_err();
    assert!(matches!(problem.what, What::NotWell(_) | What::TimedOut { .. }), "{problem}");
    let missing = manager.proves_well("missing.service", PATIENCE).await.unwrap_err();
    assert_eq!(missing.what, What::Missing);
    // What it waits for comes: it is well from then on.
    let prove = manager.proves_well("flaky.service", PATIENCE);
    let release = async { machine.run_well(["touch", "/run/go"]).unwrap() };
    assert_eq!(tokio::join!(prove, release).0.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_boot_a_unit_whose_job_waits_for_another_unit_is_not_well_before_it_ran() {
    let waits = "[Unit]\nBefore=once.service runs.service\n[Service]\nType=oneshot\n\
        ExecStart=/bin/sh -c 'until [ -e /run/go ]; do sleep 0.05; done'\n";
    let once = "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo ran >>/run/notes'\n";
    let machine = Machine::build()
        .unit_at_boot("waits.service", waits)
        .unit_at_boot("once.service", once)
        .unit_at_boot("runs.service", GOOD)
        .make()
        .unwrap();
    machine.start().unwrap();
    let has_bus = || machine.bus().is_ok_and(|bus| bus.exists());
    machine.wait_for("the bus", has_bus).unwrap();
    let manager = manager(&machine);
    // The first answer may take long while the machine boots.
    manager.facts("once.service").await.unwrap();
    let limit = Duration::from_secs(5);
    let [once, runs] = ["once.service", "runs.service"];
    let proven = tokio::join!(manager.proves_well(once, limit), manager.proves_well(runs, limit));
    for (unit, proven) in [(once, proven.0), (runs, proven.1)] {
        let problem = proven.unwrap_err();
        let behind = vec!["waits.service".to_owned()];
        assert_eq!(problem.what, What::Queued { limit: limit * 3, behind }, "{unit}");
        assert!(problem.to_string().contains("since it waited for waits.service"), "{problem}");
    }
    let begun = Instant::now();
    manager.until_it_has_no_job("runs.service", limit).await.unwrap();
    assert!(begun.elapsed() >= limit, "it still has one then");
    let prove = async |unit| manager.proves_well(unit, PATIENCE).await.unwrap();
    let release = async { machine.run_well(["touch", "/run/go"]).unwrap() };
    let waited = manager.until_it_has_no_job("runs.service", PATIENCE);
    let (proven, waited, _) = tokio::join!(prove("runs.service"), waited, release);
    assert_eq!(proven, None);
    waited.unwrap();
    // What ran once is off after that, and did not fail.
    assert!(matches!(prove("once.service").await, None | Some("the unit is inactive")));
    assert!(notes(&machine).contains("ran\n"));
}
