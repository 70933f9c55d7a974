//! `tread agent`: orders from files of root's, or from the service.

use clap::Args;
use http::Uri;
use std::path::PathBuf;
use std::process::ExitCode;
use tread_agent::Settings;
use tread_node::cli::{self, NodeError, Served};
use tread_node::tree::Tree;

/// For the help of `tread agent`.
pub const EXAMPLES: &str = "\
Examples:
  tread agent                                        orders from /var/lib/tread/orders
  tread agent --program /usr/libexec/tread-node      the host runs this program
  tread agent --service https://tread-agents.tread-system.svc:8444 \\
      --token /var/run/secrets/tread/token --ca /etc/tread/ca.crt
      In a pod on its node: orders and permits from the service, to which the token says the node
      (its audience is tread.dev/agents). How far it is stands in the node's NodeUpdate, which is
      written with the pod's own service account. The files are read anew when they change.

It needs root, the system bus at /run/dbus/system_bus_socket and /var/lib/tread of the host, and
nothing else of it.";

/// How an agent serves, and whom.
#[derive(Debug, Args)]
// The other one has the name already.
#[group(id = "agent-of-a-cluster")]
pub struct AgentArgs {
    #[command(flatten)]
    node: cli::AgentArgs,
    /// The service that gives orders and permits: https://HOST:PORT
    #[arg(long, value_name = "URL", requires = "token", requires = "ca")]
    service: Option<Uri>,
    /// The file with the token by which the service knows the node
    #[arg(long, value_name = "FILE", requires = "service")]
    token: Option<PathBuf>,
    /// The file with the authorities of the service's certificate; no other is believed
    #[arg(long, value_name = "FILE", requires = "service")]
    ca: Option<PathBuf>,
}

/// Serves until it is told to end.
pub fn run(args: &AgentArgs) -> Result<ExitCode, NodeError> {
    match (&args.service, &args.token, &args.ca) {
        (Some(service), Some(token), Some(ca)) => {
            let (url, token, authority) = (service.clone(), token.clone(), ca.clone());
            args.node.serve(async |tree| wired(tree, Settings { url, token, authority }).await)
        }
        _ => args.node.run(),
    }
}

async fn wired(tree: &Tree, settings: Settings) -> Result<Served, NodeError> {
    let said = |error: &dyn std::error::Error| NodeError::Said(error.to_string());
    let config = tread_kube::client::config().await.map_err(|error| {
        NodeError::Said(format!(
            "no API server to say how far the node is: run it in a pod with a service account, or set KUBECONFIG: \
             {error}"
        ))
    })?;
    let client = tread_kube::client::client(config).map_err(|error| said(&error))?;
    let wire = tread_agent::start(tree, settings, client).map_err(|error| said(&error))?;
    Ok(Served {
        orders: Box::new(wire.clone()),
        permits: Box::new(wire.clone()),
        reporter: Some(Box::new(wire)),
    })
}
