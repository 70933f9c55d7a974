//! A registry whose policies are compiled in a process of their own. This test is
//! its own compiler: started with `serve` it is the child, and with `hang` one
//! that never answers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, reason = "it says what it does, as every test does")]
#![allow(dead_code, unreachable_pub, reason = "it uses a part of what tests share")]

#[path = "registry/support.rs"]
mod support;

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::Duration;
use support::*;
use tread_cluster::policies::snapshot::Room;
use tread_engine::compile::{Compiler, serve};
use tread_engine::limits::Limits;
use tread_engine::sandbox::{Options, Sandbox};
use tread_kube::api::DisruptionPolicyStatus;
use tread_kube::api::disruption_policy::State;
use tread_test_bed::{ControlPlane, eventually};

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("serve") => return serve(&Limits::default()).unwrap(),
        Some("hang") => loop {
            std::thread::park();
        },
        Some("hang-while") => {
            while std::env::args().nth(2).is_some_and(|path| Path::new(&path).exists()) {
                std::thread::park();
            }
            return serve(&Limits::default()).unwrap();
        }
        Some("some-take-long") => return some_take_long(),
        _ => {}
    }
    // As every test, they do not run where others are asked for.
    let args: Vec<String> = std::env::args().skip(1).collect();
    let asked = args.iter().filter(|arg| arg.parse::<u32>().is_err() && !arg.starts_with('-'));
    let asked: Vec<&str> = asked.map(String::as_str).collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (mut passed, mut left_out) = (0, 0);
    let mut run = |name: &str, test: &mut dyn FnMut()| {
        if asked.is_empty() || asked.iter().any(|asked| name.contains(asked)) {
            test();
            passed += 1;
            println!("test {name} ... ok");
        } else {
            left_out += 1;
        }
    };
    run("a_module_that_cannot_be_compiled_in_time_holds_up_nobody", &mut || {
        runtime.block_on(a_module_that_cannot_be_compiled_in_time_holds_up_nobody());
    });
    run("a_namespace_whose_modules_compile_too_long_holds_up_no_other", &mut || {
        runtime.block_on(a_namespace_whose_modules_compile_too_long_holds_up_no_other());
    });
    run("a_last_good_version_that_cannot_be_loaded_for_a_moment_is_tried_again", &mut || {
        runtime.block_on(a_last_good_version_that_cannot_be_loaded_for_a_moment_is_tried_again());
    });
    // One that fails ends this process before.
    println!(
        "\ntest result: ok. {passed} passed; 0 failed; 0 ignored; 0 measured; {left_out} filtered out"
    );
}

/// In the name of a policy that this compiler never ends with.
const TAKES_LONG: &[u8] = b"zq";
/// The name of a policy of somebody else.
const GOOD: &str = "good";

/// A compiler that does not come to an end with some modules: it takes time once the second file is
/// there. Each of those adds a dot to the first one, and the one of somebody else adds a mark.
fn some_take_long() {
    let mut job = Vec::new();
    std::io::stdin().lock().read_to_end(&mut job).unwrap();
    let [tried, goes_on] = [2, 3].map(|at| std::env::args().nth(at).unwrap());
    let is_of = |name: &[u8]| job.windows(name.len()).any(|it| it == name);
    let note = |mark: &[u8]| {
        let mut tried = std::fs::File::options().create(true).append(true).open(&tried).unwrap();
        tried.write_all(mark).unwrap();
    };
    if is_of(TAKES_LONG) {
        note(b".");
        while !Path::new(&goes_on).exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
        loop {
            std::hint::spin_loop();
        }
    }
    if is_of(GOOD.as_bytes()) {
        note(b"!");
    }
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let mut child = child.arg("serve").stdin(std::process::Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&job).unwrap();
    child.wait().unwrap();
}

fn compiled_by(arg: &str, limits: Limits) -> Sandbox {
    compiled_with(vec![arg.into()], limits)
}

fn compiled_with(args: Vec<OsString>, limits: Limits) -> Sandbox {
    let compiler = Compiler::Child { program: std::env::current_exe().unwrap(), args };
    Sandbox::new(Options { limits, compiler, ..Options::default() }).unwrap()
}

async fn a_module_that_cannot_be_compiled_in_time_holds_up_nobody() {
    let plane = &ready(ControlPlane::options().maybe_used());
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    for name in ["one1", "two1", "tre1"] {
        put(&client, &namespace, name, policy(name, 1)).await;
    }
    let few = Limits { compile_time: Duration::from_secs(1), patience: 1, ..Limits::default() };
    let stuck = replica_with(plane, true, Room::default(), compiled_by("hang", few));
    for name in ["one1", "two1", "tre1"] {
        let status = until_state(&client, &format!("{namespace}.{name}"), State::Failed).await;
        assert_eq!(condition(&status, "Loaded").1, "CompileTimeout");
    }
    let current = until_current(&stuck, |it| it.settled && has(it, "registries")).await;
    assert_eq!(cost(&current, "/etc/one1/none", ""), "drain, reboot");
    // A newcomer that takes its time does not make anybody wait who plans.
    let mut news = stuck.published.clone();
    let unsettled = tokio::spawn(async move { news.wait_for(|it| !it.settled).await.is_ok() });
    put(&client, &namespace, "new1", policy("new1", 1)).await;
    until_state(&client, &format!("{namespace}.new1"), State::Failed).await;
    assert!(!unsettled.is_finished());
    unsettled.abort();
    drop(stuck);

    let well = compiled_by("serve", Limits::default());
    let well = replica_with(plane, true, Room::default(), well);
    until_current(&well, |it| it.settled && has(it, "one1") && has(it, "tre1")).await;
    until(&client, &format!("{namespace}.one1"), |it| it.kept_in.is_some()).await;
}

async fn a_namespace_whose_modules_compile_too_long_holds_up_no_other() {
    const MANY: usize = 15;
    let plane = &ready(ControlPlane::options().maybe_used());
    let client = plane.client().await.unwrap();
    let (many, other) = (allowed(plane), allowed(plane));
    let slow: Vec<String> = (0..MANY).map(|number| format!("zq{number:02}")).collect();
    let [tried, goes_on] = ["tried", "goes-on"].map(|name| {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()))
    });
    std::fs::write(&tried, "").unwrap();
    let _ = std::fs::remove_file(&goes_on);
    let noted = || std::fs::read_to_string(&tried).unwrap();
    let tries = || noted().matches('.').count();
    // Little, so that all of them are over soon, whatever else the machine does.
    let compile_time = Duration::from_millis(500);
    let few = Limits { compile_time, patience: 100, ..Limits::default() };
    let args: [OsString; 3] =
        ["some-take-long".into(), tried.clone().into(), goes_on.clone().into()];
    let sandbox = || compiled_with(args.to_vec(), few.clone());
    let room = || Room { registered_of_namespace: MANY + 1, ..Room::default() };
    let first = replica_with(plane, true, room(), sandbox());
    let (old, new) = (policy("late", 1), policy("late", 2));
    put(&client, &many, "late", old.clone()).await;
    let late = format!("{many}.late");
    until(&client, &late, |it| it.kept_in.is_some()).await;
    for name in &slow {
        put(&client, &many, name, policy(name, 1)).await;
    }
    eventually("as many are tried as may be", async || (tries() >= 2).then_some(())).await;
    // A new version in the same namespace waits behind them; the one before decides.
    put(&client, &many, "late", new.clone()).await;
    until_current(&first, |it| it.settled && has(it, "registries")).await;
    until_state(&client, &format!("{many}.{}", slow[MANY - 1]), State::Loading).await;
    let is_waited_for = |it: &DisruptionPolicyStatus| condition(it, "Loaded").1 == "Waiting";
    let status = until(&client, &late, is_waited_for).await;
    assert_eq!((status.state, status.digest), (Some(State::Loaded), Some(digest(&old))));
    // They are all waiting, or being tried, when somebody else ships one.
    put(&client, &other, GOOD, policy(GOOD, 1)).await;
    let others = format!("{other}.{GOOD}");
    until(&client, &others, |it| it.state.is_some()).await;
    std::fs::write(&goes_on, "").unwrap();
    until_state(&client, &others, State::Loaded).await;
    let before = noted().find('!').unwrap();
    assert!(before < MANY, "{before} others came first");
    let mut retried_at = Vec::new();
    for name in &slow {
        let status = until_state(&client, &format!("{many}.{name}"), State::Failed).await;
        let failure = status.failure.unwrap();
        assert_eq!((failure.name.as_str(), failure.tries >= Some(1)), ("compile-timeout", true));
        assert_eq!(failure.digest, status.newest_digest);
        retried_at.push(failure.retry_at.unwrap().0);
    }
    let status = until(&client, &late, |it| it.digest == Some(digest(&new))).await;
    assert_eq!(condition(&status, "Loaded").0, "True");
    drop(first);

    // One that starts again knows which bytes are of no use yet, and waits for none.
    let before = tries();
    let next = replica_with(plane, true, room(), sandbox());
    let current = until_current(&next, |it| it.settled && has(it, GOOD)).await;
    let now = k8s_openapi::jiff::Timestamp::now();
    let due = retried_at.iter().filter(|at| **at <= now).count();
    assert!(tries() <= before + due, "{} were tried again, and {due} were due", tries() - before);
    // What they claim costs reboots meanwhile.
    assert_eq!(cost(&current, "/etc/zq01/none", ""), "drain, reboot");
    assert_eq!(cost(&current, "/etc/good/none", ""), "");
    std::fs::remove_file(&tried).unwrap();
    std::fs::remove_file(&goes_on).unwrap();
}

async fn a_last_good_version_that_cannot_be_loaded_for_a_moment_is_tried_again() {
    let plane = &ready(ControlPlane::options().maybe_used());
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    let good = policy("good", 1);
    let before = replica(plane, true, Room::default());
    put(&client, &namespace, "app", good.clone()).await;
    let object = format!("{namespace}.app");
    until(&client, &object, |it| it.kept_in.is_some()).await;
    put(&client, &namespace, "app", spoiled(good.clone())).await;
    until_state(&client, &object, State::LastGood).await;
    drop(before);

    // A replica that starts while nothing can be compiled.
    let busy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("busy-{}", std::process::id()));
    std::fs::write(&busy, "").unwrap();
    let few = Limits { compile_time: Duration::from_secs(5), patience: 1, ..Limits::default() };
    let sandbox = compiled_with(vec!["hang-while".into(), busy.clone().into()], few);
    let started = replica_with(plane, true, Room::default(), sandbox);
    let current = until_current(&started, |it| it.settled && has(it, "good")).await;
    assert_eq!(cost(&current, "/etc/good/none", ""), "drain, reboot");
    until_state(&client, &object, State::Failed).await;
    std::fs::remove_file(&busy).unwrap();
    until_current(&started, |it| decides(it, "good", &digest(&good))).await;
    until_state(&client, &object, State::LastGood).await;
}
