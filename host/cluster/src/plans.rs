//! A DisruptionPlan for everything that is about to happen to the nodes of a
//! pool: watched, planned, written, and told of before it is delivered.

mod admit;
mod ask;
mod blockers;
mod bodies;
mod budget;
mod compared;
mod flagged;
mod foreign;
mod make;
mod notes;
mod pass;
mod planners;
mod previewer;
mod run;
mod settings;
mod standing;
mod state;
mod takes;
mod undrained;
mod updates;
mod write;

pub use admit::{MIRROR_KINDS, change};
pub use ask::MadeOf;
pub use blockers::Blockers;
pub use flagged::note_flagged;
pub(crate) use notes::about;
pub use previewer::{NotKnown, Previewer};
pub use settings::{Retention, Settings};
pub(crate) use standing::strays as strays_of;
pub use undrained::{note_undrained, says as says_undrained};

use futures::future::{BoxFuture, FutureExt as _};

/// The previewer, which answers what a change would do, and the controller that
/// keeps it up to date and writes plans, for as long as it is polled.
pub fn start(settings: Settings) -> (Previewer, BoxFuture<'static, ()>) {
    let previewer = Previewer::new(&settings);
    let controller = run::run(settings, previewer.clone());
    (previewer, controller.boxed())
}
