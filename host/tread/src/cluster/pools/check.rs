//! `tread pools check`: whether new machines will belong to the pool that they boot into, by
//! their user data itself, read with the rights of whoever asks.

use super::said::machines;
use super::shown::{self, UserData};
use crate::render::output::ListOutput;
use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use tread_cluster::boot_images::machine::{Key, Machine};
use tread_cluster::membership::foretold::{
    Foretold, foretell_joining, foretell_of, pool_of_user_data,
};
use tread_cluster::membership::gather::{Gathered, PLANS};
use tread_cluster::membership::stub::{self, Stub};
use tread_cluster::pools::Place;
use tread_console::exit::{Exit, unless_nobody_reads};
use tread_console::print::{json, line, yaml};
use tread_front::names::{MACHINES, MACHINES_ADDRESS_KEY};
use tread_kube::asking::{Call, ask};
use tread_kube::metrics::Metrics;
use tread_model::joining::USER_DATA;

pub(super) const EXAMPLES: &str = "\
Examples:
  tread pools check
      Reads the user data of each MachineSet: the URL in it names the pool, whatever the Secret is called.
      One that shows a token there is served by tread: its nodes join by their claim, and get the labels
      of the pool. Whether the token is the pool's newest, a former one, or none of its own is told where you
      may get the Secret tread-joining-tokens.
  tread pools check -o json
      The same for a pipeline.

Exit codes:
  0  the nodes of every MachineSet will count in the pool that they boot into
  1  of some it cannot be told, or something else went wrong
  2  the command line is wrong
  3  machines will boot into one pool and count in another, be held, or be refused";

/// What was found out.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// MachineSets whose nodes will count in their pool.
    fine: usize,
    /// Those whose machines will stray, or be held.
    wrong: BTreeMap<Key, Foretold>,
    /// Those of which it cannot be told, and why.
    unknown: Vec<String>,
    /// What tread serves to those that show it a token.
    user_data: Vec<UserData>,
}

/// Reads the user data of each MachineSet. `namespace`: tread's own.
pub(super) async fn check(client: &Client, namespace: &str, gathered: &Gathered) -> Checked {
    let mut checked = Checked::default();
    // What is planned says nothing of machines.
    let unlisted = gathered.unlisted.iter().filter(|(what, _)| *what != PLANS);
    for (what, failed) in unlisted {
        checked.unknown.push(format!("{what} cannot be listed: {failed}"));
    }
    let unreadable = gathered.unreadable.iter().filter(|(kind, _)| *kind != PLANS);
    checked.unknown.extend(unreadable.map(|(kind, what)| format!("{kind} {what}")));
    let address = match gathered.cluster.by_tread {
        true => address(client, namespace).await,
        false => Ok(None),
    };
    for (key, machine) in &gathered.facts.machines {
        if machine.left_out.is_some() {
            continue;
        }
        let stub = stub(client, key, machine).await;
        match stub.and_then(|stub| foretold(&stub, machine, gathered, &address)) {
            Ok(Some(foretold)) => drop(checked.wrong.insert(key.clone(), foretold)),
            Ok(None) => checked.fine += 1,
            Err(why) => checked.unknown.push(format!("{}/{}: {why}", key.namespace, key.name)),
        }
    }
    checked.user_data = shown::look(client, namespace, gathered).await;
    let unknown = checked.user_data.iter().filter(|it| it.is_unknown());
    checked.unknown.extend(unknown.map(UserData::says));
    checked
}

/// What becomes of machines with this user data: nothing that anybody has to be told of, or why it
/// cannot be told.
fn foretold(
    stub: &Stub,
    machine: &Machine,
    gathered: &Gathered,
    address: &Result<Option<String>, String>,
) -> Result<Option<Foretold>, String> {
    let Stub { pool, address: asked, shows_token } = stub;
    if !gathered.cluster.pools.contains_key(pool) {
        return Err(format!("there is no pool {pool}"));
    }
    let scene = gathered.scene();
    if !shows_token {
        return Ok(foretell_of(pool, &machine.node_labels, &scene));
    }
    match address {
        _ if !scene.by_tread => Err(format!(
            "its user data asks {asked} with a token, as machines do that tread serves, and nothing shows \
             that tread rolls out here: it serves machines where it does"
        )),
        Ok(Some(serves)) if serves != asked => Err(format!(
            "its user data asks {asked}, and tread is asked at {serves}: tread pools stub {pool} prints the \
             user data of today"
        )),
        _ => match (foretell_joining(pool, &machine.node_labels, &scene), address) {
            // By its labels it would count in its pool, if it is tread that it asks.
            (None, Err(why)) => Err(format!(
                "its user data asks {asked} with a token, and whether tread is asked there is not known: {why}"
            )),
            (found, _) => Ok(found),
        },
    }
}

/// Where machines ask tread, if they do; or why that is not known.
async fn address(client: &Client, namespace: &str) -> Result<Option<String>, String> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let call = Call::new("get", "configmaps").within(namespace);
    let map = ask(&Metrics::new(), call, maps.get_opt(MACHINES)).await;
    let map = map.map_err(|failed| {
        format!(
            "the ConfigMap {MACHINES} in {namespace}, which says it, could not be read: {failed}"
        )
    })?;
    Ok(map.and_then(|map| map.data?.remove(MACHINES_ADDRESS_KEY)))
}

/// Where the user data of a MachineSet's machines asks for a config.
async fn stub(client: &Client, key: &Key, machine: &Machine) -> Result<Stub, String> {
    let Some(secret) = &machine.user_data else {
        return Err("it names no user data".to_owned());
    };
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &key.namespace);
    let call = Call::new("get", "secrets").within(&key.namespace);
    let found = ask(&Metrics::new(), call, secrets.get(secret)).await;
    let found = found.map_err(|failed| {
        let by_name = secret.strip_suffix(USER_DATA).or_else(|| pool_of_user_data(secret));
        let guess = match by_name {
            Some(pool) => format!(" (by its name it is of pool {pool})"),
            None => String::new(),
        };
        format!("its user data in Secret {secret} could not be read{guess}: {failed}")
    })?;
    let data = found.data.unwrap_or_default();
    let text = data.get("userData").map(|it| it.0.as_slice()).unwrap_or_default();
    stub::read(text)
        .ok_or_else(|| format!("no URL of a pool's config is in its user data (Secret {secret})"))
}

/// Prints it, and says how that ends.
pub(super) fn said(checked: &Checked, output: ListOutput, out: &mut impl Write) -> Result<Exit> {
    unless_nobody_reads(print(checked, output, out))?;
    let is_refused = checked.user_data.iter().any(UserData::is_refused);
    Ok(match (checked.wrong.is_empty() && !is_refused, checked.unknown.is_empty()) {
        (false, _) => Exit::TooDisruptive,
        (true, false) => Exit::Error,
        (true, true) => Exit::Done,
    })
}

fn print(checked: &Checked, output: ListOutput, out: &mut impl Write) -> Result<()> {
    let value = || {
        json!({
            "fine": checked.fine,
            "machineSets": checked.wrong.iter().map(machines).collect::<Vec<_>>(),
            "unknown": checked.unknown,
            "userData": checked.user_data.iter().map(UserData::json).collect::<Vec<_>>(),
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
            for it in checked.user_data.iter().filter(|it| !it.is_unknown()) {
                writeln!(out, "{}.", line(&it.says()))?;
            }
            for unknown in &checked.unknown {
                writeln!(out, "It cannot be told: {}", line(unknown))?;
            }
            let (fine, wrong) = (checked.fine, checked.wrong.len());
            let is_held = |it: &Foretold| matches!(it.counts, Place::Joining);
            let held = if checked.wrong.values().any(is_held) { " or be held" } else { "" };
            writeln!(
                out,
                "Machines of {wrong} MachineSets will stray{held}, those of {fine} will not, and of {} it \
                 cannot be told",
                checked.unknown.len()
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_console::exit::StandardOutput;
    use tread_kube::api::machines::MACHINE_SET;

    #[test]
    fn machines_that_will_stray_fail_a_pipeline_also_if_nobody_reads_it() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut out = StandardOutput(writer);
        let key = Key {
            kind: MACHINE_SET.name,
            namespace: "machines".to_owned(),
            name: "infra-a".to_owned(),
        };
        let strays = Foretold {
            boots: "infra".to_owned(),
            gets: None,
            counts: Place::Nowhere,
            gap: None,
            patch: None,
        };
        let wrong = Checked { wrong: [(key, strays)].into(), ..Checked::default() };
        let unknown = Checked { unknown: vec!["it is hidden".to_owned()], ..Checked::default() };
        for (checked, expected) in
            [(Checked::default(), Exit::Done), (unknown, Exit::Error), (wrong, Exit::TooDisruptive)]
        {
            for output in [ListOutput::Human, ListOutput::Json, ListOutput::Yaml] {
                assert_eq!(said(&checked, output, &mut out).unwrap(), expected, "{checked:?}");
            }
        }
    }
}
