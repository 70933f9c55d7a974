//! Everything to install, made of the code.

pub mod grants;
mod monitoring;
pub mod webhook;
mod words;
pub mod workload;

pub use tread_kube::api::words::NAME;

use serde::Serialize;
use serde_json::Value;
use tread_kube::api::crds;
use webhook::Reached;

/// What belongs to no namespace is called after the one that it is for, so that
/// two installations do not take each other's.
pub fn of_installation(namespace: &str) -> String {
    format!("{NAME}.{namespace}")
}

/// What tread does in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// It lists, previews, warns and measures, and writes to no node, pool or config.
    #[default]
    Advise,
}

impl Mode {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Advise => "advise",
        }
    }
}

/// What to install.
#[derive(Debug, Clone)]
pub struct Options {
    /// What it does.
    pub mode: Mode,
    /// Where it runs.
    pub namespace: String,
    /// Its image.
    pub image: String,
    /// With the definitions of MachineConfig and MachineConfigPool, for clusters
    /// that have none.
    pub with_inputs: bool,
    /// Without the definitions of tread's own objects: what is removed without
    /// them leaves all DisruptionPolicies there.
    pub without_definitions: bool,
    /// With what Prometheus' operator takes.
    pub with_monitoring: bool,
    /// With the right to hold back updates of OpenShift for boot images.
    pub block_upgrades: bool,
    /// Where it runs outside of the cluster, as `https://HOST:PORT`: then only
    /// definitions, rights and the webhook are installed.
    pub outside: Option<String>,
}

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
        value(&grants::cluster_role(options))?,
        value(&grants::cluster_role_binding(namespace))?,
        value(&grants::role(namespace))?,
        value(&grants::role_binding(namespace))?,
        value(&grants::view(namespace))?,
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
