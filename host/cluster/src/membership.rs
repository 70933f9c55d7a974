//! Who is told that nodes boot into one pool and count in another: while it happens, and
//! before.

pub mod admit;
pub mod entry;
pub mod foretold;
pub mod gather;
mod held;
mod kept;
pub mod listed;
mod machines;
mod retries;
mod run;
pub mod sent_away;
mod settings;
mod strays;
pub mod stub;
mod ways;

pub use settings::Settings;

use futures::future::{BoxFuture, FutureExt as _};

/// What tells of it, for as long as it is polled.
pub fn start(settings: Settings) -> BoxFuture<'static, ()> {
    run::run(settings).boxed()
}
