//! A machine for tests: a real systemd in namespaces, with real reboots and power cuts.
//!
//! Its tree is the one that the test runs in, seen through an overlay: what it writes
//! goes to a disk of its own, which its boots share. It has its own `/run`, `/tmp` and
//! `/dev`, its own control group, and a boot id for each boot; the network is the test's.
//! A boot takes less than a second.
//!
//! Everything is bounded: a machine that outlives its time is killed, and so is one whose
//! test panics or is killed itself. Nothing of it stays behind.

mod before;
mod building;
mod inside;
mod machine;
mod needs;
mod running;

pub use building::{Builder, TARGET};
pub use inside::Said;
pub use machine::Machine;
pub use needs::missing;
pub use running::{Boot, End};
