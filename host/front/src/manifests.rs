//! Everything to install, made of the code.

pub mod grants;
mod monitoring;
mod options;
mod roles;
pub mod webhook;
mod words;
pub mod workload;

pub use crate::names::{NAME, of_installation};
pub use options::{Mode, Options};

use serde::Serialize;
use serde_json::Value;
use tread_kube::api::crds;
use webhook::Reached;

/// All objects, in the order in which they can be applied.
pub fn all(options: &Options) -> Result<Vec<Value>, serde_json::Error> {
    let namespace = options.namespace.as_str();
    let mut all = vec![value(&workload::namespace(options))?];
    if !options.without_definitions {
        for crd in crds::own() {
            all.push(value(&crd)?);
        }
    }
    if options.with_inputs {
        for crd in crds::inputs() {
            all.push(value(&crd)?);
        }
    }
    all.extend([
        value(&workload::service_account(options))?,
        value(&roles::cluster_role(options))?,
        value(&roles::cluster_role_binding(namespace))?,
        value(&roles::role(namespace))?,
        value(&roles::role_binding(namespace))?,
        value(&roles::view(namespace))?,
        value(&workload::lease(options))?,
    ]);
    let reached = match &options.outside {
        Some(url) => Reached::At(url.clone()),
        None => Reached::InNamespace(namespace.to_owned()),
    };
    if options.outside.is_none() {
        all.extend([
            value(&workload::service(options))?,
            value(&workload::network_policy(options))?,
            value(&workload::disruption_budget(options))?,
            value(&workload::deployment(options))?,
        ]);
        if options.with_monitoring {
            all.extend([monitoring::service_monitor(options), monitoring::alerts(options)]);
        }
    }
    all.push(value(&webhook::configuration(namespace, &reached))?);
    Ok(all)
}

fn value(object: &impl Serialize) -> Result<Value, serde_json::Error> {
    serde_json::to_value(object)
}
