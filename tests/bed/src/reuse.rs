//! Control planes that tests of this process use one after the other.

use std::fs;
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::Result;

use crate::supervisor::Signal;
use crate::{ControlPlane, Options, Part};

/// Each takes half a gigabyte of memory.
const KEPT: usize = 3;

#[derive(Debug)]
struct Used {
    /// The last one that came back at the end.
    idle: Vec<ControlPlane>,
    /// Those that will be idle in a moment.
    returning: Vec<Options>,
}

static USED: Mutex<Used> = Mutex::new(Used { idle: Vec::new(), returning: Vec::new() });
static RETURNED: Condvar = Condvar::new();

fn used() -> MutexGuard<'static, Used> {
    USED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes one that was used before, or starts one where there is none.
pub(crate) fn take_or_start(options: Options) -> Result<ControlPlane> {
    while let Some(plane) = take(&options) {
        // Once more: something that had outlived its test might have written meanwhile.
        if rests(&plane, false) && put_back(&plane) && plane.start_others().is_ok() {
            plane.hurt.store(false, Ordering::Relaxed);
            return Ok(plane);
        }
    }
    ControlPlane::start_with(options)
}

fn take(options: &Options) -> Option<ControlPlane> {
    let mut used = used();
    loop {
        if let Some(at) = used.idle.iter().position(|plane| plane.options == *options) {
            return Some(used.idle.remove(at));
        }
        if !used.returning.contains(options) {
            return None;
        }
        used = RETURNED.wait(used).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Keeps it for the next test. That goes on beside, because the clients of the last one leave
/// when its runtime ends, which is after this.
pub(crate) fn give_back(plane: ControlPlane) {
    used().returning.push(plane.options.clone());
    thread::spawn(move || {
        let good = put_back(&plane) && rests(&plane, true);
        let mut used = used();
        if let Some(at) = used.returning.iter().position(|options| *options == plane.options) {
            used.returning.swap_remove(at);
        }
        let mut left = Some(plane);
        if good {
            used.idle.extend(left.take());
        }
        if used.idle.len() > KEPT {
            left = Some(used.idle.remove(0));
        }
        drop(used);
        RETURNED.notify_all();
        drop(left);
    });
}

/// Whether it takes processor time meanwhile: even one that nobody asks takes some, and there are as
/// many as tests that run at a time, and more.
fn rests(plane: &ControlPlane, rests: bool) -> bool {
    let (signal, parts) = match rests {
        true => (Signal::Stop, [Part::ApiServer, Part::Etcd]),
        false => (Signal::Continue, [Part::Etcd, Part::ApiServer]),
    };
    parts.into_iter().all(|part| plane.supervisor.signal(part.name(), signal).is_ok())
}

fn put_back(plane: &ControlPlane) -> bool {
    // kubectl keeps there which kinds there are.
    let _ = fs::remove_dir_all(plane.path("kubectl-cache"));
    plane.supervisor.restore(plane.port).is_ok()
}
