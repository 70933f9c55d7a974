//! `tread pools stub`: the user data with which machines of a pool boot.

use crate::cluster::connect::Cluster;
use anyhow::{Result, anyhow, bail};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use tread_console::exit::Exit;
use tread_console::print::{line, warn};
use tread_front::names::{AGENTS_AUTHORITY_KEY, MACHINES, MACHINES_ADDRESS_KEY};
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::metrics::Metrics;
use tread_model::joining::{self, SECRETS_KEY, TOKENS_SECRET, Tokens, USER_DATA};

pub(super) const EXAMPLES: &str = "\
Examples:
  tread pools stub infra | kubectl apply -f -
      The Secret that a MachineSet of this pool names as its user data.
  tread pools stub infra --secret-namespace default --secret-name my-machines
  tread pools stub infra --renew | kubectl apply -f -
      With a new token. Where this was lost, the command without --renew prints the new one again.
      Machines with the one before it are served too, until you end that:
  tread pools stub infra --end-overlap

Whoever prints it needs the right to get the Secret tread-joining-tokens and the ConfigMap tread-ignition in
tread's namespace, and to patch that Secret to exchange a token. With its token a machine is given all that nodes
of the pool have, secrets too.";

/// What becomes of the pool's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Stays,
    Renew,
    EndOverlap,
}

/// Of which tread, what the Secret is called, and with which token.
pub(super) struct Stub<'a> {
    pub(super) namespace: &'a str,
    pub(super) secret_namespace: &'a str,
    pub(super) secret_name: Option<&'a str>,
    pub(super) token: Token,
}

/// Prints the Secret with which machines of a pool boot.
pub(super) async fn stub(
    cluster: &Cluster,
    pool: &str,
    of: Stub<'_>,
    out: &mut impl Write,
) -> Result<Exit> {
    let namespace = of.namespace;
    let (address, authority) = served(cluster, namespace).await?;
    let tokens = exchanged(cluster, namespace, pool, of.token).await?;
    if of.token == Token::EndOverlap {
        writeln!(out, "pool {}: only machines with its newest token are served", line(pool))?;
        return Ok(Exit::Done);
    }
    if tokens.has_former() {
        warn(&format!(
            "machines with the token before this one are served too: once all user data has the new one, end \
             that: tread pools stub {} --end-overlap",
            line(pool)
        ));
    }
    let stub = joining::stub(&address, pool, tokens.newest(), &authority).to_string();
    let name = of.secret_name.map_or_else(|| format!("{pool}{USER_DATA}"), str::to_owned);
    let object = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": of.secret_namespace},
        "type": "Opaque",
        "stringData": {"disableTemplating": "true", "userData": stub},
    });
    writeln!(out, "{}", serde_json::to_string_pretty(&object)?)?;
    Ok(Exit::Done)
}

/// Why something was not read or written.
fn said(what: &str, failed: &Failed) -> anyhow::Error {
    match failed.outcome {
        CallOutcome::Gone => anyhow!("there is no {what}"),
        _ => anyhow!("{what}: {failed}"),
    }
}

/// Where machines ask, and whom they trust there.
async fn served(cluster: &Cluster, namespace: &str) -> Result<(String, String)> {
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), namespace);
    let call = Call::new("get", "configmaps").within(namespace);
    let map = ask(&Metrics::new(), call, maps.get(MACHINES)).await;
    let map = map.map_err(|failed| match failed.outcome {
        CallOutcome::Gone => anyhow!(
            "no machine is served here: install tread with tread manifests --mode enforce --ignition-address \
             HOST:PORT, or name its namespace with --namespace"
        ),
        _ => said(&format!("ConfigMap {namespace}/{MACHINES}"), &failed),
    })?;
    let mut data = map.data.unwrap_or_default();
    let address = data.remove(MACHINES_ADDRESS_KEY);
    address.zip(data.remove(AGENTS_AUTHORITY_KEY)).ok_or_else(|| {
        anyhow!("the ConfigMap {namespace}/{MACHINES} does not say where machines ask yet")
    })
}

/// What to do where a token was exchanged already. Whoever ends the overlap first cuts off all machines
/// whose user data has the former one: it may be that nobody has seen the newest yet.
fn exchanged_already(pool: &str, why: &str) -> String {
    let pool = line(pool);
    format!(
        "the token of pool {pool} is not exchanged: {why}. `tread pools stub {pool}` (without --renew) prints \
         the newest; once all user data has it, and `tread pools check` shows none with the former one, end the \
         overlap: tread pools stub {pool} --end-overlap"
    )
}

/// The tokens of a pool, after what was asked for.
async fn exchanged(cluster: &Cluster, namespace: &str, pool: &str, token: Token) -> Result<Tokens> {
    let metrics = Metrics::new();
    let what = format!("Secret {namespace}/{TOKENS_SECRET}");
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), namespace);
    let call = |verb| Call::new(verb, "secrets").within(namespace);
    let secret = ask(&metrics, call("get"), secrets.get(TOKENS_SECRET)).await;
    let secret = secret.map_err(|failed| said(&what, &failed))?;
    let version = secret.metadata.resource_version;
    let json = secret.data.unwrap_or_default().remove(SECRETS_KEY).unwrap_or_default();
    let all: Option<BTreeMap<String, Tokens>> = serde_json::from_slice(&json.0).ok();
    let mut all = all.ok_or_else(|| {
        anyhow!("{what} does not hold what tread writes: remove it, and tread makes it anew")
    })?;
    let tokens = all.get_mut(pool).ok_or_else(|| {
        anyhow!("pool {} has no token: is there such a MachineConfigPool?", line(pool))
    })?;
    match token {
        Token::Stays => return Ok(tokens.clone()),
        Token::Renew => {
            let mut random = [0; 32];
            getrandom::fill(&mut random)?;
            tokens.exchange(random).map_err(|why| anyhow!("{}", exchanged_already(pool, why)))?;
        }
        Token::EndOverlap => {
            if !tokens.end_former() {
                bail!("pool {} has one token: there is no overlap to end", line(pool));
            }
        }
    }
    let tokens = tokens.clone();
    let patch = Patch::Merge(json!({
        "metadata": {"resourceVersion": version},
        "data": {SECRETS_KEY: ByteString(serde_json::to_vec(&all)?)},
    }));
    let params = PatchParams::default();
    match ask(&metrics, call("patch"), secrets.patch(TOKENS_SECRET, &params, &patch)).await {
        Ok(_) => Ok(tokens),
        Err(failed) if failed.outcome == CallOutcome::Conflict => {
            bail!("{what} changed meanwhile: try again")
        }
        Err(failed) => Err(said(&what, &failed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_exchanges_a_token_twice_is_told_how_to_print_the_newest_before_the_former_one_ends()
    {
        let mut tokens = Tokens::fresh("uid", [1; 32]);
        tokens.exchange([2; 32]).unwrap();
        let says = exchanged_already("infra", tokens.exchange([3; 32]).unwrap_err());
        let parts = [
            "it was exchanged already",
            "`tread pools stub infra` (without --renew) prints the newest",
            "`tread pools check` shows none with the former one",
            "tread pools stub infra --end-overlap",
        ];
        let at = parts.map(|part| says.find(part).unwrap_or_else(|| panic!("{part}: {says}")));
        assert!(at.is_sorted(), "{says}");
    }
}
