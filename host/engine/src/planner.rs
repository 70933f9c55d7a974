//! From changes to a plan: route, ask, merge.

mod answers;
mod asking;
mod heard;
mod plan;
mod question;
mod remembered;
mod round;
mod shadow;
mod shared;
mod sides;
mod together;

pub use answers::{Answers, Unplanned};
pub use asking::{CallRecord, Used};
pub use heard::touched_gently;
pub use plan::{Planned, plan, plan_digested};
pub use remembered::Remembered;
pub use shadow::{Shadows, plan_with_shadows, shadow};
pub use sides::Sides;
pub use together::{Together, plan_together};
