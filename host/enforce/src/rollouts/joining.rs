//! Machines that boot for the first time become nodes of the pool whose config they asked for:
//! what they are served, and what becomes of the nodes that they register.

mod binding;
mod bootstrap;
mod bound;
mod choose;
mod fetches;
mod first_boot;
mod kept;
mod last;
mod letting;
mod missing;
mod noting;
mod patch;
mod permit;
mod refused;
mod report;
mod room;
mod run;
mod secrets;
mod serves;
mod serving;
mod sorting;
mod unwritten;

pub(super) use fetches::Missing;
pub use patch::{Patch, patch};
pub(super) use serving::digest;
pub use serving::{Boots, Joining, NotServed};

use super::known::Known;
use super::settings::Settings;
use futures::future::{BoxFuture, FutureExt as _, join_all};

/// What machines boot with, and what lets their nodes in, for as long as it is polled.
pub(super) fn start(settings: &Settings, known: &Known) -> (Joining, BoxFuture<'static, ()>) {
    let (joining, watching) = Joining::start(settings, known);
    let letting = run::run(joining.clone()).boxed();
    let missing = missing::run(joining.clone()).boxed();
    let serves = serves::run(joining.clone()).boxed();
    let last = last::run(joining.clone()).boxed();
    let all = join_all([watching, letting, missing, serves, last]);
    (joining, all.map(drop).boxed())
}
