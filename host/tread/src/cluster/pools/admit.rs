//! `tread pools admit`: lets a node in that is held.

use crate::cluster::connect::Cluster;
use anyhow::Result;
use std::io::Write;
use tread_console::exit::Exit;
use tread_console::print::line;
use tread_enforce::by_hand;
use tread_kube::metrics::Metrics;

pub(super) const EXAMPLES: &str = "\
Examples:
  tread pools admit infra-7 --pool infra
      A node that registered as joining, and is held, is one of this pool from now on: you know that it
      is what it says. Its claim is not asked for. It gets the labels that the pool's selector determines;
      where these leave a choice it has to have some already: kubectl label node infra-7 KEY=VALUE
      Where it would still be in another pool, nothing is changed, and the labels in the way are named.

Whoever admits a node needs the rights to get and patch nodes, to list MachineConfigPools, and to get Rollouts,
whose taints the node gets.";

/// Lets a node in that is held.
pub(super) async fn admit(
    cluster: &Cluster,
    node: &str,
    pool: &str,
    out: &mut impl Write,
) -> Result<Exit> {
    by_hand::admit(&cluster.client, &Metrics::new(), node, pool).await?;
    writeln!(out, "{} is a node of pool {}", line(node), line(pool))?;
    Ok(Exit::Done)
}
