//! Everything to install, made of the code.

mod agents;
pub mod grants;
mod limits;
mod monitoring;
mod options;
mod roles;
pub mod webhook;
mod words;
pub mod workload;

pub use crate::names::{
    AGENT, AGENTS_AUTHORITY, AGENTS_AUTHORITY_KEY, AGENTS_SERVICE, NAME, agents_namespace,
    of_installation,
};
pub use options::{Ignition, Mode, OfHost, Options};

use serde::Serialize;
use serde_json::Value;
use tread_kube::api::crds;
use webhook::Reached;

/// All objects, in the order in which they can be applied.
pub fn all(options: &Options) -> Result<Vec<Value>, serde_json::Error> {
    let namespace = options.namespace.as_str();
    let enforces = options.mode == Mode::Enforce;
    let mut all = vec![value(&workload::namespace(options))?];
    if enforces {
        all.push(agents::namespace(options));
    }
    if !options.without_definitions {
        let enforcing = if enforces { crds::enforcing() } else { Vec::new() };
        for crd in [crds::own(), enforcing].concat() {
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
        value(&roles::role(options))?,
        value(&roles::role_binding(namespace))?,
        value(&roles::view(options))?,
        value(&roles::read(options))?,
        value(&workload::lease(options))?,
    ]);
    if enforces {
        let (role, binding) = roles::among_agents(options);
        all.extend([value(&role)?, value(&binding)?]);
        // What holds agents to less comes before them.
        all.extend(limits::service(options));
        all.extend(limits::agents(options));
        all.push(limits::flow(options));
        all.push(agents::service_account(options));
        all.extend(agents::role(options));
        all.push(agents::admitted_on_openshift(options));
    }
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
        if enforces {
            all.extend([agents::service(options), agents::daemon_set(options)]);
            if let Some(service) = workload::ignition(options) {
                all.push(value(&service)?);
            }
        }
        if options.with_monitoring {
            all.extend([monitoring::role(options), monitoring::role_binding(options)]);
            all.extend([monitoring::service_monitor(options), monitoring::alerts(options)]);
        }
    }
    all.push(value(&webhook::configuration(namespace, &options.leases, &reached, enforces))?);
    Ok(all)
}

fn value(object: &impl Serialize) -> Result<Value, serde_json::Error> {
    serde_json::to_value(object)
}
