//! From files to the two node configs that are compared.

mod assembled;
mod diagnosing;
pub mod document;
mod doubts;
mod fast;
pub mod fields;
mod ignition;
mod layer;
mod left_out;
mod machine_config;
mod makeup;
mod merge;
mod nodes;
mod normal;
pub mod report;
mod side;
mod twice;
mod value;

pub use assembled::{Assembled, ReadConfig, assembled};
pub use document::{Document, Input, MirrorKind, MirrorObject, document_values, has_no_document};
pub use doubts::doubts;
pub use machine_config::{GENERATED_BY, MACHINE_CONFIG_API, ROLE_LABEL};
pub use makeup::{Makeup, POOL_KIND};
pub use merge::TOGETHER;
pub use side::Side;

pub(crate) use makeup::merge_order;
pub(crate) use normal::canonical as canonical_json;

use crate::problem::Problems;
use diagnosing::Order;

/// Reads the files of both sides.
///
/// In what it returns nothing is left that has no meaning: a `mode` of 0o644 is
/// `None`, an empty text or source too, an owner of 0 is `root`.
pub fn sides<'a>(old: &[Input<'a>], new: &[Input<'a>]) -> Result<(Side<'a>, Side<'a>), Problems> {
    if let Some(sides) = fast::sides(old, new) {
        return Ok(sides);
    }
    diagnosed(old, new)
}

/// Reads one side alone, as [`sides`] reads each of two. `what` names it.
pub fn side<'a>(what: &str, inputs: &[Input<'a>]) -> Result<Side<'a>, Problems> {
    if let Some(side) = fast::side(inputs, Order::ByRole) {
        return Ok(side);
    }
    one(what, inputs, Order::ByRole)
}

/// Reads one side, that of a pool whose MachineConfigs are known, and are given in the
/// order in which they are merged, whatever roles they say. `what` names the side.
pub fn side_in_order<'a>(what: &str, inputs: &[Input<'a>]) -> Result<Side<'a>, Problems> {
    if let Some(side) = fast::side(inputs, Order::AsGiven) {
        return Ok(side);
    }
    side_diagnosed(what, inputs)
}

/// As [`side_in_order`], by the reader that takes its time.
///
/// It is public for the tests that hold the others against it.
#[doc(hidden)]
pub fn side_diagnosed(what: &str, inputs: &[Input<'_>]) -> Result<Side<'static>, Problems> {
    one(what, inputs, Order::AsGiven)
}

fn one(what: &str, inputs: &[Input<'_>], order: Order) -> Result<Side<'static>, Problems> {
    let mut problems = Vec::new();
    let side = diagnosing::read(what, inputs, order, &mut problems);
    report::unless(problems, side)
}

/// The fast reader alone, for the same tests: `None` if it is in any doubt.
#[doc(hidden)]
pub fn side_fast_only<'a>(inputs: &[Input<'a>]) -> Option<Side<'a>> {
    fast::side(inputs, Order::AsGiven)
}

fn both(
    old: &[Input<'_>],
    new: &[Input<'_>],
    order: Order,
) -> Result<(Side<'static>, Side<'static>), Problems> {
    let mut problems = Vec::new();
    let old = diagnosing::read("old", old, order, &mut problems);
    let new = diagnosing::read("new", new, order, &mut problems);
    report::unless(problems, (old, new))
}

/// Takes out of an Ignition config what its version does not know.
pub(crate) fn leave_out(config: &mut serde_json::Value) {
    ignition::leave_out(config, "", &mut report::Report::new("", ""));
}

/// As [`sides`], by the reader that takes its time and finds every problem.
///
/// It is public for the tests that hold the fast reader against it.
#[doc(hidden)]
pub fn diagnosed(
    old: &[Input<'_>],
    new: &[Input<'_>],
) -> Result<(Side<'static>, Side<'static>), Problems> {
    both(old, new, Order::ByRole)
}

/// The fast reader alone, for the same tests: `None` if it is in any doubt.
#[doc(hidden)]
pub fn fast_only<'a>(old: &[Input<'a>], new: &[Input<'a>]) -> Option<(Side<'a>, Side<'a>)> {
    fast::sides(old, new)
}
