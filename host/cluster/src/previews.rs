//! What a change will do to the nodes of a pool, before it does: from what the
//! cluster says ([`Cluster`]) to what has to be compared ([`work`]), to plans
//! ([`compute`]), to the objects and sentences that people see.
//!
//! Nothing here asks the API server, so that the service, its webhook and the
//! command line all say the same.

mod body;
mod causes;
mod cluster;
mod compute;
mod config;
mod cut;
mod described;
mod earlier;
mod effects;
mod limited;
mod names;
mod object;
mod once;
#[cfg(test)]
mod openshift;
mod parsed;
mod preview;
mod reading;
mod registries;
mod secrets;
mod side;
mod texts;
mod transition;
mod warning;
mod why;
mod work;

pub use body::{Bodies, Body, BodyKey};
pub use causes::Part;
pub use cluster::{Baseline, Cluster, Edit, Mirror, MirrorKey, Mirrors, Release};
pub use compute::{Asked, compute};
pub use cut::cut;
pub use described::Described;
pub use earlier::{IN_THE_CLUSTER_ALREADY, standing};
pub use limited::{MOST_CAUSES, limited};
pub use names::plan_name;
pub use object::describe;
pub use once::Once;
pub use parsed::Parsed;
pub use preview::{Preview, WayPlan, WayPlanned, decisions};
pub use side::{Generated, Piece, Side};
#[cfg(test)]
pub(crate) use warning::tests::preview;
pub use warning::{Line, line, lines, warnings};
pub use work::{Way, Work, between, mirror_pieces, work};
