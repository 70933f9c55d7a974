//! The arguments of `tread plan`.

use crate::cluster::ClusterArgs;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use tread_kube::node_lease;
use tread_loading::args::PolicyArgs;
use tread_model::effect::Effect;

const EXAMPLES: &str = "\
Examples:
  tread plan old.yaml new.yaml
      Two files; each may hold several MachineConfigs, mirror objects (ICSP, IDMS, ITMS) or a List.
  tread plan --old worker/ --old mirrors-now.yaml --new worker/ --new mirrors-next.yaml
      Several files or directories on a side are merged as for a pool.
  oc get mc rendered-worker-1 -o yaml | tread plan - new.yaml
      Standard input.
  tread plan --rules machineconfiguration.yaml old.yaml new.yaml
      With the cluster's own nodeDisruptionPolicy, or the rules of a DisruptionPolicy.
  tread plan --policy chrony.wasm old.yaml new.yaml
      With a template owner's policy: a module, or a ConfigMap with a packed one.
  tread plan --shadow chrony.wasm old.yaml new.yaml
      What would a policy decide, and what would that save? It decides nothing yet.
  tread plan --max restart -o json old.yaml new.yaml
      In a pipeline.
  tread plan -f machineconfig.yaml --pool worker
      What would applying this do to a cluster, by the policies that are loaded there?
  tread plan -f machineconfig.yaml -f mirrors-next.yaml --max restart
      Several changes are one rollout: what that does to each pool, and each change by itself.

Exit codes:
  0  planned
  1  an input cannot be read, or something else went wrong
  2  the command line is wrong
  3  more disruptive than --max
  4  refused: a running node cannot take the change, or a policy refuses it";

/// The arguments of `tread plan`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PlanArgs {
    /// What the node has: a file, a directory, or - for standard input
    #[arg(value_name = "OLD", required_unless_present_any = ["old", "file"], conflicts_with = "old")]
    pub old_path: Option<PathBuf>,
    /// What it is to get
    #[arg(value_name = "NEW", required_unless_present_any = ["new", "file"], conflicts_with = "new")]
    pub new_path: Option<PathBuf>,
    /// One of several files or directories of what the node has
    #[arg(long, value_name = "FILE")]
    pub old: Vec<PathBuf>,
    /// One of several files or directories of what it is to get
    #[arg(long, value_name = "FILE")]
    pub new: Vec<PathBuf>,
    /// Ask the cluster what applying this MachineConfig, or these mirrors, would
    /// do to its nodes, by the policies that are loaded there (may be repeated,
    /// and may hold several: they are one rollout, with all that is pending
    /// already, which is shown and not judged)
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["old_path", "new_path", "old", "new", "policy", "rules", "settings", "may_relax", "read_secrets", "shadow", "timings", "diff"])]
    pub file: Vec<PathBuf>,
    /// With --file: what deleting it would do
    #[arg(long, requires = "file")]
    pub delete: bool,
    /// With --file: only to this pool (may be repeated)
    #[arg(long, value_name = "POOL", requires = "file")]
    pub pool: Vec<String>,
    /// With --file: where tread runs in the cluster
    #[arg(
        short,
        long,
        value_name = "NAMESPACE",
        requires = "file",
        default_value = "tread-system"
    )]
    pub namespace: String,
    /// With --file: the namespace of the nodes' Leases
    #[arg(long, value_name = "NAME", requires = "file", default_value = node_lease::NAMESPACE)]
    pub lease_namespace: String,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Who decides.
    #[command(flatten)]
    pub policies: PolicyArgs,
    /// Show what this policy (a module, or a manifest with packed ones), or these rules, would have
    /// decided, and how many steps that saves or adds. It decides nothing: the plan and the exit
    /// code stay the same. It is tried in place of a policy of the same name and layer (may be
    /// repeated; all together are tried)
    #[arg(long, value_name = "FILE")]
    pub shadow: Vec<PathBuf>,
    /// How to print the plan
    #[arg(short, long, value_enum, default_value_t = PlanOutput::Human)]
    pub output: PlanOutput,
    /// Fail with exit code 3 if the plan is more disruptive than this: none,
    /// reload, restart, drain or reboot
    #[arg(long, value_name = "EFFECT", value_parser = parse_max)]
    pub max: Option<Effect>,
    /// Show how long reading, comparing, loading and asking took
    #[arg(long)]
    pub timings: bool,
    /// Show what changes inside files: contents are shown on a terminal only,
    /// unless this says otherwise. Secrets are never shown
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = When::Auto)]
    pub diff: When,
}

/// How to print a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlanOutput {
    /// For a person
    Human,
    /// For a script
    Json,
    /// For a script
    Yaml,
}

/// When to do something that depends on where the output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

fn parse_max(text: &str) -> Result<Effect, String> {
    match text {
        "none" => Ok(Effect::None),
        "reload" => Ok(Effect::Reload),
        "restart" => Ok(Effect::Restart),
        "drain" => Ok(Effect::Drain),
        "reboot" => Ok(Effect::Reboot),
        _ => Err("expected none, reload, restart, drain or reboot".to_owned()),
    }
}
