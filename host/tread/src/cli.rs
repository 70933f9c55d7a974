//! The command line: what can be asked, and how it is explained.

mod parse;
mod unused;

pub use parse::parse;

use crate::agent::{self, AgentArgs};
use crate::cluster::boot_images::BootImagesArgs;
use crate::cluster::lease::{self, LeaseCommand};
use crate::cluster::nodes::NodesArgs;
use crate::cluster::plans::PlansArgs;
use crate::cluster::pools::PoolsArgs;
use crate::cluster::rollout::{self, RolloutCommand};
use crate::manifests::ManifestsArgs;
use crate::plan::args::PlanArgs;
use crate::policies::PoliciesArgs;
use crate::serve::ServeArgs;
use clap::{Parser, Subcommand};
use tread_loading::sandbox::COMPILE_MODULE;
use tread_node::cli::NodeCommand;

/// Decides how gently a Kubernetes node can take a configuration change.
#[derive(Debug, Parser)]
#[command(name = "tread", version, disable_help_subcommand = true, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  tread plan old.yaml new.yaml            what would this change do to a node?
  tread plan --max reload old/ new/       fail a pipeline that disturbs more
  tread policies                          who decides, and on what
  tread pools                             which nodes are in which pool, and which stray?
  tread nodes --watch                     how far is each node?
  tread rollout pause worker              begin no more nodes of a pool
  tread bootimages                        do new nodes boot from images that are too old?
  tread lease hold node-7 -- ./update     keep everybody else away from a node meanwhile
  tread manifests --image IMAGE | less    what would be installed in a cluster?

Environment:
  TREAD_CACHE_DIR   where compiled policies are kept (default: the user's cache directory)
  TREAD_LOG         off, error, warn, info, debug or trace, on standard error (default: warn;
                    tread serve and tread agent: info)
  NO_COLOR          no colours, also on a terminal";

/// What can be asked.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Shows what a change of configuration does to a node, and why.
    Plan(PlanArgs),
    /// Lists what is about to happen to the nodes of a cluster.
    Plans(PlansArgs),
    /// Lists pools, and says why a node counts where it does.
    Pools(PoolsArgs),
    /// Lists how far each node is on its way to the newest config of its pool.
    Nodes(NodesArgs),
    /// Says how far rollouts are, and pauses, resumes, retries and stops them.
    #[command(after_help = rollout::EXAMPLES)]
    Rollout {
        /// What to do.
        #[command(subcommand)]
        command: RolloutCommand,
    },
    /// Lists the policies that decide.
    Policies(PoliciesArgs),
    /// Says which images new nodes boot from, and whether they are too old.
    #[command(name = "bootimages")]
    BootImages(BootImagesArgs),
    /// Says who holds which node, and takes and gives back nodes.
    #[command(after_help = lease::EXAMPLES)]
    Lease {
        /// What to do.
        #[command(subcommand)]
        command: LeaseCommand,
    },
    /// Makes, tests and ships policies, and checks rules that need no code.
    #[command(after_help = tread_authoring::EXAMPLES)]
    Policy {
        /// What to do with it.
        #[command(subcommand)]
        command: tread_authoring::Command,
    },
    /// What an admin does on a node itself: applies a plan, and survives anything.
    #[command(after_help = tread_node::cli::EXAMPLES)]
    Node {
        /// What to do on this node.
        #[command(subcommand)]
        command: NodeCommand,
    },
    /// Takes orders on a node, and attends the units of the host that carry them out.
    #[command(after_help = agent::EXAMPLES)]
    Agent(AgentArgs),
    /// Prints everything to install in a cluster.
    Manifests(ManifestsArgs),
    /// Runs in a cluster: lists policies, previews changes, and warns.
    Serve(ServeArgs),
    /// Compiles the module on standard input: for tread's own use.
    #[command(hide = true, name = COMPILE_MODULE)]
    CompileModule,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubectl::in_its_words;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        in_its_words(Cli::command()).debug_assert();
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
