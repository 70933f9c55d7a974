//! What is said of strays and of machines, for scripts.

use serde_json::{Value, json};
use tread_cluster::boot_images::machine::Key;
use tread_cluster::membership::foretold::Foretold;
use tread_cluster::pools::Stray;

/// Of a node that strays.
pub(super) fn stray(stray: &Stray) -> Value {
    json!({
        "node": stray.node, "booted": stray.booted, "counts": stray.counts, "has": stray.has,
        "guessed": stray.guessed, "ends": stray.ends(),
    })
}

/// Of a MachineSet whose machines will.
pub(super) fn machines((key, foretold): (&Key, &Foretold)) -> Value {
    let resource = format!("{}/{}", key.namespace, key.name);
    json!({
        "machineSet": resource, "boots": foretold.boots, "counts": foretold.counts.pool(),
        "because": foretold.says(&resource), "prevents": foretold.prevents(key),
        "patch": foretold.patch,
    })
}
