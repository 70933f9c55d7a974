//! `tread pools check`: whether new machines will belong to the pool that they boot into, by
//! their user data itself, read with the rights of whoever asks.

use super::said::machines;
use crate::render::output::ListOutput;
use anyhow::Result;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use tread_cluster::boot_images::machine::{Key, Machine};
use tread_cluster::membership::foretold::{Foretold, foretell_of, pool_of_user_data};
use tread_cluster::membership::gather::{Gathered, PLANS};
use tread_cluster::membership::stub;
use tread_console::exit::Exit;
use tread_console::print::{json, line, yaml};
use tread_kube::asking::{Call, ask};
use tread_kube::metrics::Metrics;

pub(super) const EXAMPLES: &str = "\
Examples:
  tread pools check
      Reads the user data of each MachineSet: the URL in it names the pool, whatever the Secret is called.
  tread pools check -o json
      The same for a pipeline.

Exit codes:
  0  every MachineSet gives its nodes the labels of the pool that they boot into
  1  of some it cannot be told, or something else went wrong
  2  the command line is wrong
  3  machines will boot into one pool and count in another";

/// What was found out.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// MachineSets that give their nodes the labels of their pool.
    fine: usize,
    /// Those whose machines will stray.
    wrong: BTreeMap<Key, Foretold>,
    /// Those of which it cannot be told, and why.
    unknown: Vec<String>,
}

/// Reads the user data of each MachineSet.
pub(super) async fn check(client: &Client, gathered: &Gathered) -> Checked {
    let mut checked = Checked::default();
    // What is planned says nothing of machines.
    let unlisted = gathered.unlisted.iter().filter(|(what, _)| *what != PLANS);
    for (what, failed) in unlisted {
        checked.unknown.push(format!("{what} cannot be listed: {failed}"));
    }
    for (key, machine) in &gathered.facts.machines {
        if machine.left_out.is_some() {
            continue;
        }
        match pool(client, key, machine).await {
            Ok(pool) if !gathered.cluster.pools.contains_key(&pool) => {
                let text = format!("{}/{}: there is no pool {pool}", key.namespace, key.name);
                checked.unknown.push(text);
            }
            Ok(pool) => match foretell_of(&pool, &machine.node_labels, &gathered.scene()) {
                Some(foretold) => drop(checked.wrong.insert(key.clone(), foretold)),
                None => checked.fine += 1,
            },
            Err(why) => checked.unknown.push(format!("{}/{}: {why}", key.namespace, key.name)),
        }
    }
    checked
}

/// The pool that the user data of a MachineSet's machines names.
async fn pool(client: &Client, key: &Key, machine: &Machine) -> Result<String, String> {
    let Some(secret) = &machine.user_data else {
        return Err("it names no user data".to_owned());
    };
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &key.namespace);
    let call = Call::new("get", "secrets").within(&key.namespace);
    let found = ask(&Metrics::new(), call, secrets.get(secret)).await;
    let found = found.map_err(|failed| {
        let guess = match pool_of_user_data(secret) {
            Some(pool) => format!(" (by its name it is of pool {pool})"),
            None => String::new(),
        };
        format!("its user data in Secret {secret} could not be read{guess}: {failed}")
    })?;
    let data = found.data.unwrap_or_default();
    let text = data.get("userData").map(|it| it.0.as_slice()).unwrap_or_default();
    stub::pool(text)
        .ok_or_else(|| format!("no URL of a pool's config is in its user data (Secret {secret})"))
}

/// Prints it.
pub(super) fn print(checked: &Checked, output: ListOutput, out: &mut impl Write) -> Result<Exit> {
    let value = || {
        json!({
            "fine": checked.fine,
            "machineSets": checked.wrong.iter().map(machines).collect::<Vec<_>>(),
            "unknown": checked.unknown,
        })
    };
    match output {
        ListOutput::Json => json(out, &value())?,
        ListOutput::Yaml => yaml(out, &value())?,
        ListOutput::Human | ListOutput::Wide => {
            for (key, it) in &checked.wrong {
                let resource = format!("{}/{}", key.namespace, key.name);
                writeln!(out, "{}.", line(&it.says(&resource)))?;
                writeln!(out, "  {}", line(&it.prevents(key)))?;
            }
            for unknown in &checked.unknown {
                writeln!(out, "It cannot be told: {}", line(unknown))?;
            }
            let (fine, wrong) = (checked.fine, checked.wrong.len());
            writeln!(
                out,
                "Machines of {wrong} MachineSets will stray, those of {fine} will not, and of {} it \
                 cannot be told",
                checked.unknown.len()
            )?;
        }
    }
    Ok(match (checked.wrong.is_empty(), checked.unknown.is_empty()) {
        (false, _) => Exit::TooDisruptive,
        (true, false) => Exit::Error,
        (true, true) => Exit::Done,
    })
}
