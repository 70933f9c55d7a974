//! The registry: watches the cluster, loads in the background, and publishes the
//! policies that decide. Every replica runs one; only the leader writes.

mod carry;
mod chosen;
mod entry;
mod hopeless;
mod jobs;
mod known;
mod last_good;
mod origin;
mod pass;
mod publish;
mod recipe;
mod running;
mod settings;
mod state;
mod sweep;
mod sweeping;
mod taken;
mod turns;
mod write;

pub use settings::Settings;

use super::current::{Current, Published};
use carry::carry_out;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use known::moments;
use state::Registry;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tread_engine::policy::PolicySet;
use tread_kube::resting::Resting;
use write::Write;

/// So many snapshots are taken in before the next look at everything.
const AT_ONCE: usize = 8;
/// The most of a core that looks at everything take: anybody who may write ConfigMaps somewhere can
/// bring them about.
const RESTS: Resting = Resting { parts: 20, longest: Duration::from_secs(1) };

/// Starts a registry. What is published at first is empty and not settled. The
/// future runs until it is dropped, and everything with it.
pub fn start(settings: Settings) -> (Published, BoxFuture<'static, ()>) {
    let nobody = Current::new(PolicySet::default(), None, false);
    let (publish, published) = watch::channel(Arc::new(nobody));
    (published, run(settings, publish).boxed())
}

async fn run(settings: Settings, publish: watch::Sender<Arc<Current>>) {
    let mut moments = moments(&settings.index).ready_chunks(AT_ONCE);
    let mut leads = settings.leads.watch();
    let mut registry = Registry::new(settings, publish);
    let mut writing = None;
    let mut rests_until = Instant::now();
    loop {
        if registry.known.is_complete() && Instant::now() < rests_until {
            // What comes while it rests is taken in together.
            registry.look_by(rests_until);
        } else if registry.known.is_complete() {
            let begun = Instant::now();
            let writes = registry.pass();
            rests_until = Instant::now() + RESTS.after(begun.elapsed());
            let may_write = Instant::now() >= registry.write_after;
            if writing.is_none() && !writes.is_empty() {
                if may_write {
                    registry.removing = writes.iter().filter_map(Write::removes).collect();
                    writing = Some(carry_out(registry.settings.clone(), writes).boxed());
                } else {
                    registry.look_by(registry.write_after);
                }
            }
        }
        let look_at = registry.look_at.take();
        tokio::select! {
            Some(now) = moments.next() => now.into_iter().for_each(|it| registry.known.take(it)),
            Some(done) = registry.jobs.join_next() => registry.take(done),
            written = next_of(&mut writing) => {
                writing = None;
                registry.wrote(written);
            }
            Ok(()) = leads.changed() => {}
            () = sleep_until(look_at.unwrap_or_else(Instant::now)), if look_at.is_some() => {}
        }
    }
}

/// What comes of it; nothing, where there is nothing.
async fn next_of<T>(future: &mut Option<BoxFuture<'static, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => futures::future::pending().await,
    }
}
