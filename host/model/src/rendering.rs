//! From the MachineConfigs and mirror objects of a pool to the one MachineConfig that its
//! nodes get.
//!
//! The node config that plans compare has less in it than a node needs, so that objects
//! are merged as they are written. What comes of that is read again, and is given out
//! only where it has the digest of what it was made of.

mod object;
mod registries;
mod size;
mod source;
mod spec;
mod unneeded;
mod unrendered;

pub use object::{Pool, RENDERED_BY, SOURCES};
pub use size::{LARGEST, Large, TooLarge};
pub use unneeded::{Existing, KEPT, unneeded};
pub use unrendered::{Rejection, Unrendered};

use crate::config::{NodeConfig, Source};
use crate::config_digest::digests;
use crate::diff::compare;
use crate::digest::Digest;
use crate::mirrors::render_side;
use crate::problem::Problems;
use crate::read::{Input, side_in_order};
use crate::refuse::unparsable;
use serde_json::Value;
use source::MachineConfig;

/// What was rendered for a pool.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// `rendered-POOL-HASH`. It says of which pool it is and what its nodes get, and
    /// nothing else: each replica gives the same one.
    pub name: String,
    /// The MachineConfig, as it is to be made.
    pub object: Value,
    /// The digest of its node config, and of that of all that it was rendered from.
    pub digest: Digest,
    /// What an admin should know of the sources, in sentences.
    pub notes: Vec<String>,
}

/// Renders the MachineConfigs that a pool selects, and the objects that redirect image
/// pulls, each as the API server has it, in any order. An input is named as its object,
/// for errors.
pub fn render(
    pool: &Pool<'_>,
    sources: &[Input<'_>],
    mirrors: &[Input<'_>],
) -> Result<Rendered, Unrendered> {
    if sources.is_empty() {
        return Err(Unrendered::NoSources { pool: pool.name.to_owned() });
    }
    let mut sources = source::read(sources)?;
    let side = side(pool, &sources, mirrors)?;
    let mut spec = spec::merged(&mut sources)?;
    registries::put(&mut spec, &side.registries, &registries::of(&side.config))?;

    let name = object::name(pool, &spec);
    let object = object::object(pool, &name, spec, &sources);
    size::check(&object)?;
    let digest = digests(&side.config)?.config;
    held_against(&name, &object, &side.config, digest)?;
    Ok(Rendered { name, object, digest, notes: side.config.notes })
}

/// What the sources say together.
struct Sources<'a> {
    /// The contents of registries.conf before mirrors are rendered into it.
    registries: Option<Source<'a>>,
    /// With mirrors.
    config: NodeConfig<'a>,
}

/// Reads all that a pool is made of, as plans read it. Whatever Ignition's parser rejects
/// is refused here: no machine would boot with it.
fn side<'a>(
    pool: &Pool<'_>,
    sources: &[MachineConfig<'a>],
    mirrors: &[Input<'a>],
) -> Result<Sources<'a>, Unrendered> {
    let mut inputs: Vec<Input<'a>> = sources.iter().map(|source| source.input).collect();
    let mut mirrors = mirrors.to_vec();
    mirrors.sort_by_key(|mirror| mirror.name);
    inputs.extend(mirrors);
    let mut side = side_in_order(pool.name, &inputs)?;
    let registries = registries::of(&side.config);
    render_side(&mut side)?;
    let rejected = source::rejected(sources, &side.config)?;
    if !rejected.is_empty() {
        return Err(Unrendered::Rejected(rejected));
    }
    Ok(Sources { registries, config: side.config })
}

/// Reads what was rendered, as whoever gets it reads it.
fn held_against(
    name: &str,
    object: &Value,
    from: &NodeConfig<'_>,
    digest: Digest,
) -> Result<(), Unrendered> {
    let text = object.to_string();
    let read = side_in_order(name, &[Input { name, bytes: text.as_bytes() }])?.config;
    let rejected = unparsable(&read);
    if !rejected.is_empty() {
        let rejected = rejected.iter().map(|fault| Rejection::of(fault, String::new()));
        return Err(Unrendered::Rejected(rejected.collect()));
    }
    if digests(&read)?.config == digest {
        return Ok(());
    }
    let compared = compare(from, &read)?;
    let changes = compared.changes.into_iter().map(|change| change.id);
    let refused = compared.refusals.into_iter().map(|refusal| refusal.id);
    Err(Unrendered::ReadsOtherwise { ids: changes.chain(refused).collect() })
}

impl From<Problems> for Unrendered {
    fn from(problems: Problems) -> Unrendered {
        Unrendered::Unreadable(problems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_read_as_something_else_is_given_to_nobody() {
        let source =
            br#"{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {"name": "a"}, "spec": {"kernelArguments": ["quiet"], "config": {
            "ignition": {"version": "3.4.0"}, "storage": {"disks": [{"device": "/dev/a"}],
            "files": [{"path": "/etc/a", "mode": 420, "contents": {"source": "data:,a"}}]}}}}"#;
        let inputs = [Input { name: "a", bytes: source }];
        let rendered = render(&Pool { name: "worker", uid: "1" }, &inputs, &[]).unwrap();
        let from = side_in_order("a", &inputs).unwrap().config;
        let held = |field: &str, value: Value| {
            let mut object = rendered.object.clone();
            *object.pointer_mut(field).unwrap() = value;
            held_against(&rendered.name, &object, &from, rendered.digest)
        };
        let arguments = "/spec/kernelArguments";
        assert_eq!(held(arguments, rendered.object.pointer(arguments).unwrap().clone()), Ok(()));
        for (field, value, id) in [
            (arguments, Value::Null, "kernel-arguments"),
            ("/spec/config/storage/files/0/mode", Value::from(384), "file:/etc/a"),
            ("/spec/config/storage/disks", Value::Null, "storage:disks"),
        ] {
            let ids = vec![id.to_owned()];
            assert_eq!(held(field, value), Err(Unrendered::ReadsOtherwise { ids }), "{field}");
        }
        let path = "/spec/config/storage/files/0/contents/source";
        assert_eq!(held(path, Value::from("data:,a b")).unwrap_err().word(), "Rejected");
        assert_eq!(held("/spec/kernelType", Value::from("x")).unwrap_err().word(), "Unreadable");
    }
}
