//! `tread policies`

use crate::cluster::ClusterArgs;
use crate::kubectl;
use crate::render::output::ListOutput;
use anyhow::Result;
use clap::Args;
use serde::Serialize;
use std::io::Write;
use tread_console::exit::Exit;
use tread_console::print::{json, warn, yaml};
use tread_console::sentence::effects;
use tread_console::table;
use tread_engine::limits::Limits;
use tread_engine::policy::{Policy, compile_ahead};
use tread_engine::sandbox::Sandbox;
use tread_loading::args::PolicyArgs;
use tread_loading::{policies, sandbox};
use tread_model::description::Claim;
use tread_model::digest::Sha256;
use tread_model::text::and_more;
use tread_model::verdict::Layer;

const EXAMPLES: &str = "\
Examples:
  tread policies                     the built-in policies
  tread policies -o wide             with every claim and the range of its answers
  tread policies --policy my.wasm    with a template owner's policy
  tread policies --cluster           those of a cluster
  tread policies -o json";

/// The arguments of `tread policies`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PoliciesArgs {
    /// Which policies, besides the built-in ones.
    #[command(flatten)]
    pub policies: PolicyArgs,
    /// List those of the cluster instead, as `kubectl tread policies` does
    #[arg(long = "cluster", conflicts_with_all = ["policy", "rules", "settings", "may_relax", "read_secrets"])]
    pub from_cluster: bool,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// How to print the list
    #[arg(short, long, value_enum, default_value_t = ListOutput::Human)]
    pub output: ListOutput,
}

impl PoliciesArgs {
    /// Whether those of the cluster are meant. Whoever asks kubectl means them.
    pub fn asks_cluster(&self) -> bool {
        let p = &self.policies;
        let names_others = !(p.policy.is_empty()
            && p.rules.is_empty()
            && p.settings.is_empty()
            && p.may_relax.is_empty()
            && p.read_secrets.is_empty());
        self.from_cluster || kubectl::is_caller() && !names_others
    }
}

/// Lists the policies, each loaded and checked.
pub fn run(args: &PoliciesArgs, out: &mut impl Write) -> Result<Exit> {
    let limits = Limits::default();
    let (policies, warnings) = policies::named(&args.policies, &limits)?;
    warnings.iter().for_each(|warning| warn(warning));
    let sandbox = sandbox::for_one(limits)?;
    compile_ahead(policies.policies().iter().map(AsRef::as_ref), &sandbox);
    let rows: Vec<Row<'_>> =
        policies.policies().iter().map(|policy| row(policy, &sandbox)).collect();
    match args.output {
        ListOutput::Json => json(out, &rows)?,
        ListOutput::Yaml => yaml(out, &rows)?,
        ListOutput::Human => table::print(out, &table_of(&rows))?,
        ListOutput::Wide => table::print(out, &wide_table_of(&rows))?,
    }
    Ok(Exit::Done)
}

/// A policy as it is listed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'p> {
    name: &'p str,
    layer: Layer,
    version: &'p str,
    summary: &'p str,
    claims: &'p [Claim],
    size: usize,
    digest: Sha256,
    settings: Option<serde_json::Value>,
    /// Whether it says that it needs secrets, and whether it may read them.
    needs_secrets: bool,
    reads_secrets: bool,
    /// `Loaded` or `Failed`.
    state: &'static str,
    /// The stable name of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'p str>,
}

fn row<'p>(policy: &'p Policy, sandbox: &Sandbox) -> Row<'p> {
    let failure = policy.check(sandbox).err();
    Row {
        name: &policy.identity.policy,
        layer: policy.identity.layer,
        version: &policy.identity.version,
        summary: &policy.summary,
        claims: &policy.claims,
        size: policy.size,
        digest: policy.identity.digest,
        settings: serde_json::from_str(&policy.settings).ok(),
        needs_secrets: policy.declarations.needs_secrets,
        reads_secrets: !policy.is_blind(),
        state: if failure.is_some() { "Failed" } else { "Loaded" },
        failure: failure.map(|failure| failure.kind.name()),
        message: failure.map(|failure| failure.message.as_str()),
    }
}

fn state(row: &Row<'_>) -> String {
    match row.failure {
        Some(failure) => format!("{} ({failure})", row.state),
        None if row.needs_secrets && !row.reads_secrets => {
            format!("{}; needs --read-secrets {}", row.state, row.name)
        }
        None => row.state.to_owned(),
    }
}

fn size(bytes: usize) -> String {
    format!("{} KB", bytes.div_ceil(1024))
}

fn table_of(rows: &[Row<'_>]) -> Vec<Vec<String>> {
    let heads = ["NAME", "LAYER", "VERSION", "CLAIMS", "SIZE", "DIGEST", "STATE"];
    let cells = rows.iter().map(|row| {
        let mut claims: Vec<&str> =
            row.claims.iter().take(2).map(|claim| claim.changes.as_str()).collect();
        let more = and_more(row.claims.len(), claims.len());
        claims.sort_unstable();
        vec![
            row.name.to_owned(),
            row.layer.to_string(),
            row.version.to_owned(),
            format!("{}{more}", claims.join(", ")),
            size(row.size),
            row.digest.short(),
            state(row),
        ]
    });
    table::with_heads(&heads, cells)
}

/// One line for each claim, with the range of its answers.
fn wide_table_of(rows: &[Row<'_>]) -> Vec<Vec<String>> {
    let heads = ["NAME", "LAYER", "VERSION", "CLAIM", "EFFECTS", "SIZE", "DIGEST", "STATE"];
    let cells = rows.iter().flat_map(|row| {
        (0usize..).zip(row.claims).map(move |(index, claim)| {
            let first = |text: String| if index == 0 { text } else { String::new() };
            vec![
                first(row.name.to_owned()),
                first(row.layer.to_string()),
                first(row.version.to_owned()),
                claim.changes.clone(),
                effects(claim),
                first(size(row.size)),
                first(row.digest.to_string()),
                first(state(row)),
            ]
        })
    });
    table::with_heads(&heads, cells)
}
