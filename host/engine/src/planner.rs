//! From changes to a plan: route, ask, merge.

mod answers;
mod heard;
mod plan;
mod round;
mod shadow;
mod together;

pub use answers::{Answers, Unplanned};
pub use heard::touched_gently;
pub use plan::{Planned, plan, plan_digested};
pub use round::{CallRecord, Used};
pub use shadow::{Shadows, plan_with_shadows, shadow};
pub use together::plan_together;
