//! Who is next in a pool, who waits and for whom, and when a node may be begun at all.

mod budget;
mod escalated;
mod node;
mod order;
mod retry;
mod turns;
mod wave;
mod why;
mod window;

pub use budget::{Budget, MaxUnavailable, cap_of_all};
pub use escalated::waits_to_boot;
pub use node::{Node, State};
pub use order::{First, Order};
pub use retry::Retry;
pub use turns::{Pool, Turns, turns};
pub use wave::soft_limit;
pub use why::{Few, Why};
pub use window::{BadWindow, Opening, Overrun, Window, WindowText, opening};
