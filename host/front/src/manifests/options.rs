//! What is to be installed.

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
