//! The command line: what can be asked, and how it is explained.

mod unused;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use tread_model::effect::Effect;

/// Decides how gently a Kubernetes node can take a configuration change.
#[derive(Debug, Parser)]
#[command(name = "tread", version, disable_help_subcommand = true, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Reads the command line. kubectl runs `kubectl-tread`, where that is found, for
/// `kubectl tread`, and its help is in those words.
pub fn parse() -> Cli {
    let mut command = match is_called_by_kubectl() {
        true => in_kubectls_words(Cli::command()).bin_name("kubectl tread"),
        false => Cli::command(),
    };
    let matches = command.get_matches_mut();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match unused::without_a_cluster(&cli, &matches) {
        Some(problem) => command.error(ErrorKind::ArgumentConflict, problem).exit(),
        None => cli,
    }
}

fn is_called_by_kubectl() -> bool {
    let called = std::env::args_os().next().map(PathBuf::from);
    called.is_some_and(|it| it.file_stem() == Some("kubectl-tread".as_ref()))
}

/// The same with examples that begin with `kubectl tread`.
fn in_kubectls_words(command: clap::Command) -> clap::Command {
    let words = command.get_after_help().map(|help| help.to_string());
    let command = match words {
        Some(help) => command.after_help(help.replace("\n  tread ", "\n  kubectl tread ")),
        None => command,
    };
    command.mut_subcommands(in_kubectls_words)
}

const EXAMPLES: &str = "\
Examples:
  tread plan old.yaml new.yaml            what would this change do to a node?
  tread plan --max reload old/ new/       fail a pipeline that disturbs more
  tread policies                          who decides, and on what
  tread bootimages                        do new nodes boot from images that are too old?
  tread manifests | kubectl apply -f -    install tread in a cluster

Environment:
  TREAD_CACHE_DIR   where compiled policies are kept (default: the user's cache directory)
  TREAD_LOG         off, error, warn, info, debug or trace, on standard error (default: warn;
                    tread serve: info)
  NO_COLOR          no colours, also on a terminal";

/// What can be asked.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Shows what a change of configuration does to a node, and why.
    Plan(PlanArgs),
    /// Lists what is about to happen to the nodes of a cluster.
    Plans(crate::cluster::plans::PlansArgs),
    /// Lists the policies that decide.
    Policies(PoliciesArgs),
    /// Says which images new nodes boot from, and whether they are too old.
    #[command(name = "bootimages")]
    BootImages(crate::cluster::boot_images::BootImagesArgs),
    /// Makes, tests and ships policies, and checks rules that need no code.
    #[command(after_help = POLICY_EXAMPLES)]
    Policy {
        /// What to do with it.
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Prints everything to install in a cluster.
    Manifests(crate::manifests::ManifestsArgs),
    /// Runs in a cluster: lists policies, previews changes, and warns.
    Serve(crate::serve::ServeArgs),
    /// Compiles the module on standard input: for tread's own use.
    #[command(hide = true, name = "compile-module")]
    CompileModule,
}

const PLAN_EXAMPLES: &str = "\
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
#[command(after_help = PLAN_EXAMPLES)]
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
    /// Which cluster.
    #[command(flatten)]
    pub cluster: crate::cluster::ClusterArgs,
    /// Who decides.
    #[command(flatten)]
    pub policies: PolicyArgs,
    /// Show what this policy, or these rules, would have decided, and how many
    /// steps that saves or adds: it decides nothing, and neither plan nor exit
    /// code follow it. One of the name of another stands in its place (may be
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

/// Who decides, besides the built-in policies.
#[derive(Debug, Args)]
pub struct PolicyArgs {
    /// A policy of a template owner: a module, or a manifest with packed ones
    /// (may be repeated)
    #[arg(long, value_name = "FILE")]
    pub policy: Vec<PathBuf>,
    /// Rules of an admin: a DisruptionPolicy with inline rules, or OpenShift's
    /// MachineConfiguration with its nodeDisruptionPolicy (may be repeated)
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

const POLICIES_EXAMPLES: &str = "\
Examples:
  tread policies                     the built-in policies
  tread policies -o wide             with every claim and the range of its answers
  tread policies --policy my.wasm    with a template owner's policy
  tread policies --cluster           those of a cluster
  tread policies -o json";

/// The arguments of `tread policies`.
#[derive(Debug, Args)]
#[command(after_help = POLICIES_EXAMPLES)]
pub struct PoliciesArgs {
    /// Which policies, besides the built-in ones.
    #[command(flatten)]
    pub policies: PolicyArgs,
    /// List those of the cluster instead, as `kubectl tread policies` does
    #[arg(long = "cluster", conflicts_with_all = ["policy", "rules", "settings", "may_relax", "read_secrets"])]
    pub from_cluster: bool,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: crate::cluster::ClusterArgs,
    /// How to print the list
    #[arg(short, long, value_enum, default_value_t = ListOutput::Human)]
    pub output: ListOutput,
}

impl PoliciesArgs {
    /// Whether those of the cluster are meant. Whoever asks kubectl means them.
    pub fn asks_cluster(&self) -> bool {
        let p = &self.policies;
        let names_others = !(p.policy.is_empty() && p.rules.is_empty());
        self.from_cluster || is_called_by_kubectl() && !names_others
    }
}

const POLICY_EXAMPLES: &str = "\
Examples:
  tread policy new chrony                a crate to start from, in the directory chrony
  tread policy test chrony               builds it, and runs its cases
  tread policy build chrony              makes chrony/chrony.wasm, for tread plan --policy
  tread policy pack chrony/chrony.wasm -n node-config --name chrony
  tread policy rules rules.yaml          rules that need no code
  tread policy new --help";

/// What can be done with a policy.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Makes a crate to start a policy from.
    New(crate::policy::new::NewArgs),
    /// Runs the cases of a policy, and what every policy must keep.
    Test(crate::policy::test::TestArgs),
    /// Builds a policy's crate, or another compiler's module, into a component.
    #[command(after_help = "\
Examples:
  tread policy build                     the crate in this directory
  tread policy build chrony -o chrony.wasm
  tread policy build --from module.wasm  what another compiler made, in any language

--from takes a core module that was built against wit/policy.wit (with
wit-bindgen, for example, or by hand: guest-sdk/OTHER_LANGUAGES.md), or a
component. Its description is written into it if it brings none, and it is
checked as it is when it is loaded.")]
    Build {
        /// The directory of the crate
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// Make the policy of this core module or component instead
        #[arg(long, value_name = "FILE", conflicts_with = "dir")]
        from: Option<PathBuf>,
        /// Where to write the component [default: NAME.wasm in the directory; with
        /// --from, here]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Shows what a file is: a policy and all that it declares, or something else.
    Inspect(crate::policy::inspect::InspectArgs),
    /// Measures what a policy's calls take: time, fuel and memory.
    Bench(crate::policy::bench::BenchArgs),
    /// Writes a policy as a ConfigMap for the cluster.
    Pack(crate::policy::pack::PackArgs),
    /// Gets a policy's module back out of a manifest.
    Unpack(crate::policy::unpack::UnpackArgs),
    /// Checks rules that need no code, and takes them from and to OpenShift.
    Rules(crate::policy::rules::RulesArgs),
    /// Rebuilds the built-in policies of a source tree, or checks that what is
    /// committed is what their source gives: for those who work on tread.
    #[command(hide = true)]
    Prebuilt {
        /// Check instead of writing
        #[arg(long)]
        check: bool,
        /// Write the components here, and leave those of the tree alone
        #[arg(long, value_name = "DIR", conflicts_with = "check")]
        into: Option<PathBuf>,
        /// The source tree
        #[arg(default_value = ".")]
        tree: PathBuf,
    },
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

/// How to print manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ManifestsOutput {
    /// Documents for kubectl apply
    Yaml,
    /// One List
    Json,
}

/// How to print a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ListOutput {
    /// A table
    Human,
    /// A table with more
    Wide,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        in_kubectls_words(Cli::command()).debug_assert();
    }

    #[test]
    fn two_paths_or_several_named_ones_are_taken_and_a_missing_side_is_not() {
        for good in [
            vec!["tread", "plan", "a", "b"],
            vec!["tread", "plan", "--old", "a", "--old", "b", "--new", "c"],
        ] {
            assert!(Cli::try_parse_from(&good).is_ok(), "{good:?}");
        }
        for bad in [
            vec!["tread", "plan", "a"],
            vec!["tread", "plan"],
            vec!["tread", "plan", "--old", "a"],
            vec!["tread", "plan", "a", "b", "--max", "refuse"],
            vec!["tread", "plan", "a", "b", "--old", "c"],
        ] {
            assert!(Cli::try_parse_from(&bad).is_err(), "{bad:?}");
        }
    }
}
