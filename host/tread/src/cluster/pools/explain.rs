//! `tread pools explain`

use super::said::stray;
use crate::render::output::ListOutput;
use anyhow::{Result, anyhow};
use serde_json::json;
use std::io::Write;
use tread_cluster::membership::gather::Gathered;
use tread_cluster::membership::listed::explain;
use tread_console::exit::Exit;
use tread_console::print::{json, line, yaml};

pub(super) const EXAMPLES: &str = "\
Examples:
  tread pools explain infra-7
      Which pools select it, which one counts, which config it has, and whether it strays.
  tread pools explain infra-7 -o json
      The same for a script.";

/// Says why a node counts where it does.
pub(super) fn run(
    gathered: &Gathered,
    node: &str,
    output: ListOutput,
    out: &mut impl Write,
) -> Result<Exit> {
    let strays = gathered.strays();
    let lines = explain(gathered, &strays, node);
    let lines = lines.ok_or_else(|| {
        anyhow!("there is no node {}: `kubectl get nodes` lists them", line(node))
    })?;
    let value = || {
        let member = gathered.cluster.members.get(node);
        json!({
            "node": node,
            "pool": member.and_then(|it| it.place.pool()),
            "held": gathered.held.iter().find(|it| it.node == node),
            "has": member.and_then(|it| it.node.current.as_ref()),
            "stray": strays.iter().find(|it| it.node == node).map(stray),
            "because": lines,
        })
    };
    match output {
        ListOutput::Json => json(out, &value())?,
        ListOutput::Yaml => yaml(out, &value())?,
        ListOutput::Human | ListOutput::Wide => {
            for said in &lines {
                writeln!(out, "{}", line(said))?;
            }
        }
    }
    Ok(Exit::Done)
}
