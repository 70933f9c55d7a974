//! A registry whose policies are compiled in a process of their own. This test is
//! its own compiler: started with `serve` it is the child, and with `hang` one
//! that never answers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, reason = "it says what it does, as every test does")]
#![allow(dead_code, unreachable_pub, reason = "it uses a part of what tests share")]

#[path = "registry/support.rs"]
mod support;

use std::ffi::OsString;
use std::time::Duration;
use support::*;
use tread_cluster::api::disruption_policy::State;
use tread_cluster::policies::snapshot::Room;
use tread_engine::compile::{Compiler, serve};
use tread_engine::limits::Limits;
use tread_engine::sandbox::{Options, Sandbox};
use tread_test_bed::ControlPlane;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("serve") => return serve(&Limits::default()).unwrap(),
        Some("hang") => loop {
            std::thread::park();
        },
        _ => {}
    }
    const NAME: &str = "a_module_that_cannot_be_compiled_in_time_holds_up_nobody";
    // As every test, it does not run where others are asked for.
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mut asked = args.iter().filter(|arg| arg.parse::<u32>().is_err() && !arg.starts_with('-'));
    if asked.clone().next().is_some() && !asked.any(|asked| NAME.contains(asked.as_str())) {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(a_module_that_cannot_be_compiled_in_time_holds_up_nobody());
    println!("test {NAME} ... ok");
}

fn compiled_by(arg: &str, limits: Limits) -> Sandbox {
    let args: Vec<OsString> = vec![arg.into()];
    let compiler = Compiler::Child { program: std::env::current_exe().unwrap(), args };
    Sandbox::new(Options { limits, compiler, ..Options::default() }).unwrap()
}

async fn a_module_that_cannot_be_compiled_in_time_holds_up_nobody() {
    let plane = ready(ControlPlane::options().start().unwrap());
    let client = plane.client().await.unwrap();
    let namespace = allowed(plane);
    for name in ["one1", "two1", "tre1"] {
        put(&client, &namespace, name, policy(name, 1)).await;
    }
    let few = Limits { compile_time: Duration::from_secs(1), ..Limits::default() };
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
