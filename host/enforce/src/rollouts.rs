//! Pools go from one config to the next, node by node: what is rendered, whose turn it is, and
//! what agents are instructed to do.

mod agents;
mod anew;
mod booted;
mod budgets;
mod by;
mod events;
mod facts;
mod findings;
mod glance;
mod halted;
mod joining;
mod known;
mod limits;
mod machines;
mod marks;
mod may_act;
mod named;
mod objects;
mod outside;
mod plans;
mod progress;
mod render;
mod run;
mod said;
mod scene;
mod settings;
mod sightings;
mod state;
mod stuck;
mod taken;
mod tidy;
mod time;
mod workers;
mod writing;

pub use agents::{Agents, NoInstructions};
pub(crate) use anew::node_taints;
pub use facts::PAUSED_ANNOTATION;
pub use halted::{OPERATORS_DAEMON, OPERATORS_NAMESPACE, says_halted};
pub use joining::{Boots, Joining, NotServed, Patch, patch};
pub use settings::{FirstBoots, JoiningSettings, Paces, Settings};

use futures::future::{BoxFuture, FutureExt as _, join_all};
use known::Known;
use tokio::sync::watch;

/// The instructions of agents, what machines boot with, and what rolls out, for as long as it is polled.
pub fn start(settings: Settings) -> (Agents, Joining, BoxFuture<'static, ()>) {
    let (known, watching) = Known::start(&settings.acts, &settings.index, &settings.watches);
    let (publish, scenes) = watch::channel(None);
    let (joining, letting) = joining::start(&settings, &known);
    let agents = Agents::new(&settings, &known, scenes, joining.clone());
    let waking = agents.clone().wake().boxed();
    let (reporter, news) = events::EventReporter::new();
    let writing = events::write(settings.events.clone(), news).boxed();
    let running = run::run(settings, known, publish, reporter, joining.clone()).boxed();
    let all = join_all([watching, waking, running, writing, letting]);
    (agents, joining, all.map(drop).boxed())
}
