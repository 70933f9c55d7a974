//! From rules and claims to a nodeDisruptionPolicy: whatever is answered by the
//! path, unit or key alone.
//!
//! An entry is written only where OpenShift, which takes the longest path that
//! is the changed one or a directory above it, comes to what tread comes to.
//! Where something below an exported directory cannot be said, it gets an entry
//! with a reboot: what OpenShift does without any. The same holds where one of
//! OpenShift's own defaults would decide and do less than a rule, or the policy
//! of an owner, might ask for. So a node is never treated more gently than these
//! say, except where a policy abstains; where only a built-in policy would look
//! at the contents, OpenShift's default goes on deciding.

mod answer;
mod defaults;
mod entry;
mod exporting;
mod files;
mod left_out;
mod notes;
mod object;
mod units;
mod voice;

pub use left_out::LeftOut;
pub use object::MachineConfiguration;
pub use voice::{Says, Voice};

use exporting::Exporting;
use object::NodeDisruptionPolicy;
use serde::Serialize;
use std::collections::BTreeMap;

/// What became of an export.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Export {
    /// The object `MachineConfiguration/cluster`, with nothing but the policy.
    pub manifest: MachineConfiguration,
    /// What it does not say, by policy and pattern.
    pub left_out: Vec<LeftOut>,
    /// Where it means something else than it does in tread.
    pub notes: Vec<String>,
}

/// Says all that OpenShift's object can say of what these voices answer
/// together.
pub fn export(voices: &[Voice]) -> Export {
    let mut exporting = Exporting { voices, reasons: BTreeMap::new(), needless: false };
    let files = exporting.files();
    let units = exporting.units();
    let sshkey = exporting.keys();
    let left_out = exporting.left_out();
    let policy = NodeDisruptionPolicy { files, units, sshkey };
    let notes = exporting.notes(&policy);
    let manifest = MachineConfiguration::of(policy);
    Export { manifest, left_out, notes }
}

#[cfg(test)]
mod tests;
