//! The MachineConfigs that a pool selects.

use super::unrendered::{Rejection, Unrendered};
use crate::config::{Fault, NodeConfig};
use crate::problem::{Problem, Problems};
use crate::read::{
    GENERATED_BY, Input, MACHINE_CONFIG_API, ROLE_LABEL, TOGETHER, document_values, leave_out,
    merge_order, side_in_order,
};
use crate::refuse::unparsable;
use serde_json::Value;
use std::collections::BTreeSet;

/// One of them.
pub(super) struct MachineConfig<'a> {
    pub(super) input: Input<'a>,
    pub(super) name: String,
    pub(super) uid: Option<String>,
    role: Option<String>,
    /// Whether OpenShift's operator made it of its own templates.
    pub(super) is_generated: bool,
    /// Its spec, without the Ignition config.
    pub(super) spec: Value,
    /// Its Ignition config, without what Ignition does not know; null if it has none.
    pub(super) config: Value,
}

/// Reads them, and brings them into the order in which they are merged.
pub(super) fn read<'a>(inputs: &[Input<'a>]) -> Result<Vec<MachineConfig<'a>>, Unrendered> {
    let mut sources = Vec::with_capacity(inputs.len());
    let mut problems = Vec::new();
    for input in inputs {
        match document_values(input) {
            Ok(documents) => {
                let documents = documents.into_iter().map(|document| document.value);
                match <[Value; 1]>::try_from(documents.collect::<Vec<_>>()) {
                    Ok([object]) if is_machine_config(&object) => {
                        sources.push(MachineConfig::of(*input, object));
                    }
                    _ => problems.push(Problem {
                        file: input.name.to_owned(),
                        path: "kind".to_owned(),
                        message: format!("expected one MachineConfig of {MACHINE_CONFIG_API}"),
                        ..Problem::default()
                    }),
                }
            }
            Err(Problems(mut more)) => problems.append(&mut more),
        }
    }
    if !problems.is_empty() {
        problems.sort();
        return Err(Unrendered::Unreadable(Problems(problems)));
    }
    sources.sort_by(|a, b| order(a).cmp(&order(b)));
    Ok(sources)
}

fn order<'s>(source: &'s MachineConfig<'_>) -> (bool, &'s str) {
    merge_order(source.role.as_deref(), &source.name)
}

fn is_machine_config(object: &Value) -> bool {
    let is = |field: &str, text: &str| object.get(field).is_some_and(|it| it == text);
    is("kind", "MachineConfig") && is("apiVersion", MACHINE_CONFIG_API)
}

impl<'a> MachineConfig<'a> {
    fn of(input: Input<'a>, mut object: Value) -> MachineConfig<'a> {
        let mut spec = object.get_mut("spec").map(Value::take).unwrap_or_default();
        let mut config = spec.get_mut("config").map(Value::take).unwrap_or_default();
        leave_out(&mut config);
        let metadata = object.get("metadata");
        let text = |field: &str| Some(metadata?.get(field)?.as_str()?.to_owned());
        let of = |map: &str, name: &str| metadata?.get(map)?.get(name)?.as_str();
        MachineConfig {
            input,
            name: text("name").unwrap_or_default(),
            uid: text("uid"),
            role: of("labels", ROLE_LABEL).map(str::to_owned),
            is_generated: of("annotations", GENERATED_BY).is_some_and(|it| !it.is_empty()),
            spec,
            config,
        }
    }
}

/// What Ignition's parser rejects of the sources, which it parses one by one, and of
/// `config`, which all of them make.
pub(super) fn rejected(
    sources: &[MachineConfig<'_>],
    config: &NodeConfig<'_>,
) -> Result<Vec<Rejection>, Problems> {
    let mut rejections = Vec::new();
    let mut alone = BTreeSet::new();
    for source in sources {
        let faults = unparsable(&side_in_order(&source.name, &[source.input])?.config);
        rejections.extend(faults.iter().map(|fault| Rejection::of(fault, source.name.clone())));
        alone.extend(faults);
    }
    let together = unparsable(config).into_iter().filter(|fault| !alone.contains(fault));
    rejections.extend(together.map(|fault| Rejection::of(&fault, place(config, &fault))));
    Ok(rejections)
}

/// What the object is called in which the field of a fault is; empty: the field is one of
/// several together.
fn place(config: &NodeConfig<'_>, fault: &Fault) -> String {
    let origin = match fault.id.split_once(':') {
        Some(("file", path)) => {
            let found = config.files.binary_search_by(|file| file.path.as_ref().cmp(path)).ok();
            found.and_then(|at| config.files.get(at)).map(|file| file.origin)
        }
        Some(("unit", name)) => {
            let found = config.units.binary_search_by(|unit| unit.name.as_ref().cmp(name)).ok();
            found.and_then(|at| config.units.get(at)).map(|unit| unit.origin)
        }
        _ => None,
    };
    let place = origin.filter(|_| !fault.field.ends_with(TOGETHER));
    place.and_then(|it| config.place(it)).map(|it| it.file.clone()).unwrap_or_default()
}
