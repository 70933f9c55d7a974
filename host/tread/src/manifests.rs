//! `tread manifests`: everything to install, made of the code.

use crate::acting::ActingArgs;
use crate::joining::JoiningArgs;
use crate::namespace::namespace;
use anyhow::Result;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::io::Write;
use tread_console::exit::{Exit, UsageError};
use tread_console::print::{self, warn};
use tread_front::manifests::{self, Ignition, OfHost, Options, agents_namespace};
use tread_node::agent::confinement;

const EXAMPLES: &str = "\
Examples:
  tread manifests --image registry.example.com/tread:1 | kubectl apply -f -
      Installs it in the namespace tread-system.
  tread manifests --with-inputs --image IMAGE | kubectl apply -f -
      Also on a cluster that is not OpenShift, and has no MachineConfigs yet.
  tread manifests --with-monitoring --image IMAGE
      With what Prometheus' operator takes: a ServiceMonitor and alerts.
  tread manifests --block-upgrades --image IMAGE | kubectl apply -f -
      Boot images that are too old hold back minor and major updates of OpenShift.
  tread manifests --mode enforce --with-inputs --image IMAGE | kubectl apply -f -
      With an agent on each node: nodes get the configs of their pools.
  tread manifests --mode enforce --ignition-address ignition.example.com:22623 --image IMAGE
      New machines boot with the config of their pool, and are its nodes at once.
  tread manifests --mode enforce --ignition-address ignition.example.com:22623 \
      --bootstrap-secret site-bootstrap --image IMAGE
      Their kubelets register by the kubeconfig in the Secret site-bootstrap, which an admin makes:
      kubectl create secret generic site-bootstrap -n tread-system --from-file=kubeconfig=FILE
  tread manifests --mode enforce --boot-for 2h --ready-for 2m --image IMAGE
      Machines that take long to boot; a node is done once it was Ready for two minutes.
  tread manifests --image IMAGE | kubectl diff -f -
      What would an upgrade change? Its options are those that it was installed with.
  tread manifests --image IMAGE | kubectl delete --ignore-not-found -f -
      Removes it, with all DisruptionPolicies, DisruptionPlans and BootImages. Where it rolls out, stop
      that first, and add --mode enforce.
  tread manifests --without-definitions --image IMAGE | kubectl delete --ignore-not-found -f -
      Removes it, and leaves the admins' DisruptionPolicies and BootImages for the next time.
  tread manifests --outside https://192.0.2.1:8443 | kubectl apply -f -
      For a service that runs outside of the cluster.";

/// What tread does in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// It lists, previews, warns and measures; it writes to no node, pool or config
    Advise,
    /// It brings nodes to the configs of their pools, with an agent on each
    Enforce,
}

impl From<Mode> for manifests::Mode {
    fn from(mode: Mode) -> manifests::Mode {
        match mode {
            Mode::Advise => manifests::Mode::Advise,
            Mode::Enforce => manifests::Mode::Enforce,
        }
    }
}

/// How to print manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ManifestsOutput {
    /// Documents for kubectl apply
    Yaml,
    /// One List
    Json,
}

/// The arguments of `tread manifests`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ManifestsArgs {
    /// What it does in the cluster
    #[arg(long, value_enum, default_value_t = Mode::Advise)]
    pub mode: Mode,
    /// Where it runs
    #[arg(long, default_value = "tread-system", value_parser = namespace)]
    pub namespace: String,
    /// Its image, as built of the Dockerfile [default: tread:VERSION]
    #[arg(long, value_parser = image)]
    pub image: Option<String>,
    /// Include the definitions of MachineConfig and MachineConfigPool: for
    /// clusters that have none
    #[arg(long)]
    pub with_inputs: bool,
    /// Leave out the definitions of DisruptionPolicy, DisruptionPlan and BootImages,
    /// and of NodeUpdate and Rollout: what is removed without them leaves the admins'
    /// DisruptionPolicies, BootImages and Rollouts there
    #[arg(long)]
    pub without_definitions: bool,
    /// Include a ServiceMonitor and alerts, for Prometheus' operator
    #[arg(long)]
    pub with_monitoring: bool,
    /// Let boot images that are too old hold back minor and major updates of
    /// OpenShift, by ClusterOperator tread
    #[arg(long)]
    pub block_upgrades: bool,
    /// In the mode enforce, let a drain delete pods whatever their budgets say, where it
    /// takes too long and a Rollout asks for it: spec.drain.afterTimeout
    #[arg(long)]
    pub delete_pods: bool,
    /// tread serve runs outside of the cluster, where the API server reaches it at
    /// this address: only definitions, rights and the webhook are installed; in the
    /// mode advise alone
    #[arg(long, value_name = "https://HOST:PORT", conflicts_with_all = ["image", "with_monitoring"], value_parser = address)]
    pub outside: Option<String>,
    /// In the mode enforce, where machines ask for the config that they boot with, as they reach it
    /// from outside of the cluster: a port from 30000 to 32767 is one of each node, another one that
    /// of a load balancer
    #[arg(long, value_name = "HOST:PORT", value_parser = ignition)]
    pub ignition_address: Option<Ignition>,
    /// How nodes are acted on.
    #[command(flatten)]
    pub acting: ActingArgs,
    /// How they join.
    #[command(flatten)]
    pub joining: JoiningArgs,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = ManifestsOutput::Yaml)]
    pub output: ManifestsOutput,
}

/// Prints them.
pub fn run(args: &ManifestsArgs, out: &mut impl Write) -> Result<Exit> {
    can_have_agents(args)?;
    let default = format!("tread:{}", env!("CARGO_PKG_VERSION"));
    if args.image.is_none() && args.outside.is_none() {
        warn(&format!(
            "without --image the Deployment asks for {default}, which only nodes have that it was loaded into"
        ));
    }
    let options = Options {
        mode: args.mode.into(),
        namespace: args.namespace.clone(),
        image: args.image.clone().unwrap_or(default),
        with_inputs: args.with_inputs,
        without_definitions: args.without_definitions,
        with_monitoring: args.with_monitoring,
        block_upgrades: args.block_upgrades,
        delete_pods: args.delete_pods,
        outside: args.outside.clone(),
        ignition: args.ignition_address.clone(),
        leases: args.acting.lease_namespace().to_owned(),
        ready_for: args.acting.ready_for,
        boot_for: args.acting.boot_for,
        bootstrap: args.joining.bootstrap_secret.clone(),
        joining: args.joining.words(),
        host: of_host(),
    };
    let objects = manifests::all(&options)?;
    match args.output {
        ManifestsOutput::Yaml => {
            for object in &objects {
                writeln!(out, "---")?;
                out.write_all(serde_saphyr::to_string(object)?.as_bytes())?;
            }
        }
        ManifestsOutput::Json => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
            print::json(out, &list)?;
        }
    }
    Ok(Exit::Done)
}

/// Whether the agents of the mode enforce would find a place, and the service.
fn can_have_agents(args: &ManifestsArgs) -> Result<(), UsageError> {
    if args.mode != Mode::Enforce {
        return match args.ignition_address {
            Some(_) => Err(UsageError(
                "--ignition-address is for --mode enforce: where OpenShift's operator rolls out, it serves \
                 machines too"
                    .to_owned(),
            )),
            None if args.delete_pods => {
                Err(UsageError("--delete-pods is for --mode enforce: nothing is drained in advise".to_owned()))
            }
            None => args.acting.fit_advise(),
        };
    }
    if args.outside.is_some() {
        return Err(UsageError(
            "--outside is for --mode advise: agents ask a service that runs in their cluster"
                .to_owned(),
        ));
    }
    let agents = agents_namespace(&args.namespace);
    if namespace(&agents).is_err() {
        return Err(UsageError(format!(
            "--namespace: agents get the namespace {agents}, which is longer than 63 characters: \
             choose a shorter one"
        )));
    }
    Ok(())
}

/// What agents get of their hosts: what they are tested with.
fn of_host() -> OfHost {
    OfHost {
        mounts: confinement::MOUNTS.map(|mount| (mount.path, mount.kind)).to_vec(),
        user: confinement::USER,
        capabilities: confinement::CAPABILITIES.to_vec(),
    }
}

/// Where machines ask that boot.
pub(crate) fn ignition(text: &str) -> Result<Ignition, UsageError> {
    Ignition::read(text).ok_or_else(|| {
        UsageError("expected HOST:PORT, such as ignition.example.com:22623".to_owned())
    })
}

fn image(text: &str) -> Result<String, UsageError> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(UsageError("expected a name such as registry.example.com/tread:1".to_owned()));
    }
    Ok(text.to_owned())
}

fn address(text: &str) -> Result<String, UsageError> {
    let rest = text.strip_prefix("https://").unwrap_or_default().trim_end_matches('/');
    let good =
        !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_graphic() && !b"/?#@".contains(&b));
    if good {
        return Ok(format!("https://{rest}"));
    }
    Err(UsageError("expected https://HOST:PORT: the API server asks by TLS only".to_owned()))
}
