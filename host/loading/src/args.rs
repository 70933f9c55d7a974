//! What is said of policies on a command line.

use std::path::{Path, PathBuf};

/// Who decides, besides the built-in policies.
#[derive(Debug, clap::Args)]
pub struct PolicyArgs {
    /// A policy of a template owner: a module, or a manifest with packed ones; -
    /// for standard input (may be repeated)
    #[arg(long, value_name = "FILE")]
    pub policy: Vec<PathBuf>,
    /// Rules of an admin: a DisruptionPolicy with inline rules, or OpenShift's
    /// MachineConfiguration with its nodeDisruptionPolicy: a file, a directory, or
    /// - for standard input (may be repeated)
    #[arg(long, value_name = "FILE")]
    pub rules: Vec<PathBuf>,
    /// A setting of a policy, such as registries.drain=always (may be repeated)
    #[arg(long = "set", value_name = "POLICY.KEY=VALUE")]
    pub settings: Vec<String>,
    /// Let what this template policy answers stand against the built-in policies
    #[arg(long, value_name = "POLICY")]
    pub may_relax: Vec<String>,
    /// Let this template policy read files that are a secret on the node
    #[arg(long, value_name = "POLICY")]
    pub read_secrets: Vec<String>,
}

impl PolicyArgs {
    /// All files that policies are read from.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.policy.iter().chain(&self.rules).map(PathBuf::as_path)
    }
}
