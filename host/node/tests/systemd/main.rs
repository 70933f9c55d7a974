//! What is asked of systemd, against a real one, and against one that answers oddly.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod boots;
mod commands;
mod fake;
mod lost;
mod odd;
mod units;

use std::time::Duration;
use tread_node::systemd::{Ask, Limits, Manager, What};
use tread_test_machine::Machine;

/// Long enough for whatever comes, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(300);

fn address(machine: &Machine) -> String {
    format!("unix:path={}", machine.bus().unwrap().display())
}

/// One that calls a unit well soon.
fn manager(machine: &Machine) -> Manager {
    patient(machine, Duration::from_millis(200))
}

fn patient(machine: &Machine, well_for: Duration) -> Manager {
    Manager::new(&address(machine), Limits { well_for, ..Limits::default() })
}

/// What becomes of a reload that does not end. The limit is long enough for all that comes before the
/// job, unless this machine stands still: then it is tried again.
async fn reload_without_end(manager: &Manager, unit: &str, limit: Duration) -> What {
    let reload = async || manager.unit_step(Ask::Reload, unit, limit).await.unwrap_err().what;
    let mut what = reload().await;
    for _ in 1..10 {
        if what == (What::TimedOut { limit, cancelled: false }) {
            what = reload().await;
        }
    }
    what
}
