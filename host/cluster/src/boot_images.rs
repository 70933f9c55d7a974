//! Boot images in the cluster: what machine resources boot, judged as it changes.
//!
//! `gathered` folds what watches and the index say into `facts`, `report` judges them, `status` says
//! it in the words of BootImages, and `run` carries that out. `gather` lists the
//! same facts once, for the command line.

pub mod admit;
mod booted;
pub mod cluster_operator;
pub mod facts;
pub mod first_boots;
pub mod gather;
pub mod gathered;
pub mod kinds;
pub mod machine;
pub mod noting;
pub mod report;
mod run;
pub mod selector;
mod settings;
pub mod standing;
pub mod status;
pub mod stuck;
pub mod write;

pub use booted::{Booted, NewestNode};
pub use settings::{Judged, Known, Settings};

use futures::future::{BoxFuture, FutureExt as _};

/// What is known, and what keeps it up to date for as long as it is polled.
pub fn start(settings: Settings) -> (Known, BoxFuture<'static, ()>) {
    let known = Known::default();
    (known.clone(), run::run(settings, known).boxed())
}
