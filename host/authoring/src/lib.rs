//! The template owner's tools: from nothing to a policy in a ConfigMap. They know no
//! cluster.

pub mod bench;
pub mod build;
pub mod cases;
mod explain;
pub mod in_cluster;
pub mod inspect;
pub mod new;
pub mod pack;
pub mod prebuilt;
mod questions;
pub mod rules;
pub mod test;
pub mod unpack;

use anyhow::Result;
use clap::Subcommand;
use std::io::Write;
use tread_console::exit::Exit;

/// What stands below the help of `tread policy`.
pub const EXAMPLES: &str = "\
Examples:
  tread policy new chrony                a crate to start from, in the directory chrony
  tread policy test chrony               builds it, and runs its cases
  tread policy build chrony              makes chrony/chrony.wasm, for tread plan --policy
  tread policy pack chrony/chrony.wasm -n node-config --name chrony
  tread policy rules rules.yaml          rules that need no code
  tread policy new --help";

/// What can be done with a policy.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Makes a crate to start a policy from.
    New(new::NewArgs),
    /// Runs the cases of a policy, and what every policy must keep.
    Test(test::TestArgs),
    /// Builds a policy's crate, or another compiler's module, into a component.
    Build(build::BuildArgs),
    /// Shows what a file is: a policy and all that it declares, or something else.
    Inspect(inspect::InspectArgs),
    /// Measures what a policy's calls take: time, fuel and memory.
    Bench(bench::BenchArgs),
    /// Writes a policy as a ConfigMap for the cluster.
    Pack(pack::PackArgs),
    /// Gets a policy's module back out of a manifest.
    Unpack(unpack::UnpackArgs),
    /// Checks rules that need no code, and takes them from and to OpenShift.
    Rules(rules::RulesArgs),
    /// Rebuilds the built-in policies of a source tree, or checks that what is
    /// committed is what their source gives: for those who work on tread.
    #[command(hide = true)]
    Prebuilt(prebuilt::PrebuiltArgs),
}

/// Does it, and says how that went.
pub fn run(command: &Command, out: &mut impl Write) -> Result<Exit> {
    match command {
        Command::New(args) => new::run(args, out),
        Command::Test(args) => test::run(args, out),
        Command::Build(args) => build::run(args, out),
        Command::Inspect(args) => inspect::run(args, out),
        Command::Bench(args) => bench::run(args, out),
        Command::Pack(args) => pack::run(args, out),
        Command::Unpack(args) => unpack::run(args, out),
        Command::Rules(args) => rules::run(args, out),
        Command::Prebuilt(args) => prebuilt::run(args, out),
    }
}
