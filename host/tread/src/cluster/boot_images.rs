//! `tread bootimages`

use super::connect::{cluster, in_words, wait_for};
use super::listing::Listing;
use crate::render::output::ListOutput;
use anyhow::{Result, anyhow, bail};
use clap::{Args, Subcommand};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};
use serde_json::json;
use std::io::Write;
use tread_cluster::boot_images::facts::Facts;
use tread_cluster::boot_images::gather::gather;
use tread_cluster::boot_images::kinds::CATALOGUE_NAMESPACE;
use tread_cluster::boot_images::machine::{Key, Machine};
use tread_cluster::boot_images::report::{Report, boots, name_of, remedy_of, report};
use tread_console::exit::{Exit, unless_nobody_reads};
use tread_console::print::{json, line, warn, yaml};
use tread_console::table;
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::metrics::Metrics;
use tread_model::boot_images::rule::Reason;
use tread_model::boot_images::{Outcome, Release, Verdict, user_data};
use tread_model::text::and_more;

const EXAMPLES: &str = "\
Examples:
  tread bootimages
      What does each machine resource boot, and is that too old? The oldest comes first.
  tread bootimages check --to 4.22.0
      Would an update to this release find the images too old? For a pipeline.
  tread bootimages patch worker-a
      What gives this machine resource a newer image? Nothing is changed.

Exit codes:
  0  done; check: the images are new enough, or there is nothing to judge
  1  something went wrong, or not all may be read; check: it cannot be told
  2  the command line is wrong
  3  check: the images are too old";

const CHECK_EXAMPLES: &str = "\
Examples:
  tread bootimages check --to 4.22.0
      Would an update to this release find the images too old?
  tread bootimages check -o json
      Are they too old for the release that runs?

Exit codes:
  0  the images are new enough, or too old in a release that holds nothing up for it; or there is
     nothing to judge: no limit, or no machine resource, as the sentence says
  1  it cannot be told, or something else went wrong
  2  the command line is wrong
  3  the images are too old";

const PATCH_EXAMPLES: &str = "\
Examples:
  tread bootimages patch worker-a
      One command where the stream metadata has a newer image, else the steps. Nothing is changed.
  tread bootimages patch openshift-machine-api/worker-a -o json
      The same with the patch as JSON.";

/// The arguments of `tread bootimages`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct BootImagesArgs {
    /// What to do; none: list them.
    #[command(subcommand)]
    pub command: Option<BootImagesCommand>,
    /// How and of what.
    #[command(flatten)]
    pub asked: Asked,
}

/// What every form of it takes.
#[derive(Debug, Args)]
pub struct Asked {
    /// Where tread runs in the cluster
    #[arg(short, long, value_name = "NAMESPACE", default_value = "tread-system")]
    pub namespace: String,
    /// How and of which cluster.
    #[command(flatten)]
    pub listing: Listing,
}

/// What can be done besides listing.
#[derive(Debug, Subcommand)]
pub enum BootImagesCommand {
    /// Says whether boot images are too old for a release.
    #[command(after_help = CHECK_EXAMPLES)]
    Check {
        /// The release to go to, such as 4.22.0 [default: the one that runs]
        #[arg(long, value_name = "VERSION", value_parser = target)]
        to: Option<Release>,
        /// How and of what.
        #[command(flatten)]
        asked: Asked,
    },
    /// Says how to give a machine resource a newer image.
    #[command(after_help = PATCH_EXAMPLES)]
    Patch {
        /// Its name, or NAMESPACE/NAME, or KIND/NAMESPACE/NAME where several have that name
        #[arg(value_name = "RESOURCE")]
        resource: String,
        /// How and of what.
        #[command(flatten)]
        asked: Asked,
    },
}

fn target(text: &str) -> Result<Release, String> {
    Release::parse_target(text).ok_or_else(|| "expected a release, such as 4.22.0".to_owned())
}

/// Lists, checks or says what to do.
pub fn run(args: &BootImagesArgs, out: &mut impl Write) -> Result<Exit> {
    match &args.command {
        None => list(&args.asked, out),
        Some(BootImagesCommand::Check { to, asked }) => check(*to, asked, out),
        Some(BootImagesCommand::Patch { resource, asked }) => patch(resource, asked, out),
    }
}

/// What was found.
struct Known {
    client: Client,
    facts: Facts,
    report: Report,
    /// All of it could be listed.
    whole: bool,
}

async fn known(asked: &Asked) -> Result<Known> {
    let client = cluster(&asked.listing.cluster).await?.client;
    let (facts, waits) = gather(&client, &asked.namespace).await;
    let waits = in_few_words(&waits, &asked.namespace);
    let report = report(&facts, &waits);
    if report.resources.is_empty() && !waits.is_empty() {
        // Nothing can be said of anything.
        bail!(waits.join("; "));
    }
    for problem in waits.iter().chain(&report.problems) {
        warn(problem);
    }
    Ok(Known { client, facts, report, whole: waits.is_empty() })
}

/// How many things that cannot be listed are told of one by one.
const NAMED: usize = 3;

/// What cannot be listed: all that is forbidden at once, with what to do.
fn in_few_words(waits: &[(String, Failed)], namespace: &str) -> Vec<String> {
    let is_unknown =
        |(_, failed): &&(String, Failed)| failed.outcome == CallOutcome::Unauthenticated;
    if let Some((_, failed)) = waits.iter().find(is_unknown) {
        return vec![in_words(failed)];
    }
    let is_forbidden = |(_, failed): &&(String, Failed)| failed.outcome == CallOutcome::Forbidden;
    let (forbidden, others): (Vec<_>, Vec<_>) = waits.iter().partition(is_forbidden);
    let mut said = Vec::new();
    if let Some((name, _)) = forbidden.first() {
        let more = and_more(forbidden.len(), 1);
        said.push(format!(
            "you may not read {name}{more}, by which boot images are judged: an admin can bind the \
             ClusterRole tread-read.{namespace} to you"
        ));
    }
    said.extend(others.iter().take(NAMED).map(|(name, failed)| format!("{name}: {failed}")));
    if let more @ 1.. = others.len().saturating_sub(NAMED) {
        said.push(format!("{more} more kinds cannot be listed either"));
    }
    said
}

fn list(asked: &Asked, out: &mut impl Write) -> Result<Exit> {
    let Known { report, whole, .. } = wait_for(known(asked))?;
    unless_nobody_reads(print(&report, asked.listing.output, out))?;
    Ok(if whole { Exit::Done } else { Exit::Error })
}

fn print(report: &Report, output: ListOutput, out: &mut impl Write) -> Result<()> {
    let rows: Vec<_> = report.resources.iter().map(|it| &it.shown).collect();
    let value = || {
        json!({
            "items": rows,
            "leftOut": report.left_out,
            "verdict": checked(report, report.running, &report.verdict),
        })
    };
    match output {
        ListOutput::Json => json(out, &value())?,
        ListOutput::Yaml => yaml(out, &value())?,
        ListOutput::Human | ListOutput::Wide => {
            let wide = output == ListOutput::Wide;
            let mut heads = vec!["RESOURCE", "VERSION", "KNOWN BY", "STREAM", "VERDICT", "REASON"];
            heads.extend(wide.then_some(["KIND", "IMAGE"]).into_iter().flatten());
            let cells = rows.iter().map(|it| {
                let mut cells = vec![
                    format!("{}/{}", it.namespace, it.name),
                    it.version.clone().unwrap_or_else(|| "unknown".to_owned()),
                    it.known_by.clone(),
                    it.stream.clone(),
                    it.verdict.clone(),
                    it.reason.clone(),
                ];
                if wide {
                    cells.extend([it.kind.clone(), it.image.clone().unwrap_or_default()]);
                }
                cells
            });
            if !rows.is_empty() {
                table::print(out, &table::with_heads(&heads, cells))?;
            }
            for left in &report.left_out {
                writeln!(out, "not judged: {}", line(left))?;
            }
            if !(rows.is_empty() && report.left_out.is_empty()) {
                writeln!(out)?;
            }
            writeln!(out, "{}", line(&sentence(report, &report.verdict, report.running)))?;
            if let Some(theirs) = report.theirs() {
                writeln!(out, "{}", line(&theirs))?;
            }
        }
    }
    Ok(())
}

fn sentence(report: &Report, verdict: &Verdict, to: Option<Release>) -> String {
    let release = to.map(|release| format!(" of {release}")).unwrap_or_default();
    let limit = match report.limit.as_str() {
        "" => String::new(),
        limit => format!(" (the limit{release} is {limit})"),
    };
    let outcome = match verdict.outcome {
        Outcome::Passes if verdict.reason == Reason::NothingToJudge => "There is nothing to judge",
        Outcome::Passes if verdict.reason == Reason::ModeNone => "The boot images are not judged",
        Outcome::Passes if verdict.reason == Reason::NoLimit => {
            return format!(
                "Whether the boot images are too old{} is not asked: {}; for an update `tread \
                 bootimages check --to VERSION` says it",
                to.map(|release| format!(" for {release}")).unwrap_or_default(),
                verdict.message
            );
        }
        Outcome::Passes => "The boot images are new enough",
        Outcome::Warns | Outcome::Blocks if !verdict.is_of_image() => {
            "Whether boot images are too old cannot be told"
        }
        Outcome::Warns => "Boot images are too old, which holds nothing up in this release",
        Outcome::Waits => "Whether boot images are too old cannot be told yet",
        Outcome::Blocks => "Boot images are too old",
    };
    format!("{outcome}{limit}: {}", verdict.message)
}

fn check(to: Option<Release>, asked: &Asked, out: &mut impl Write) -> Result<Exit> {
    let Known { report, .. } = wait_for(known(asked))?;
    let to = to.or(report.running);
    let verdict = report.to(to);
    unless_nobody_reads(print_checked((&report, to, &verdict), asked.listing.output, out))?;
    Ok(match verdict.outcome {
        Outcome::Passes | Outcome::Warns => Exit::Done,
        Outcome::Waits => Exit::Error,
        Outcome::Blocks => Exit::TooDisruptive,
    })
}

fn print_checked(
    (report, to, verdict): (&Report, Option<Release>, &Verdict),
    output: ListOutput,
    out: &mut impl Write,
) -> Result<()> {
    match output {
        ListOutput::Json => json(out, &checked(report, to, verdict))?,
        ListOutput::Yaml => yaml(out, &checked(report, to, verdict))?,
        ListOutput::Human | ListOutput::Wide => {
            writeln!(out, "{}", line(&sentence(report, verdict, to)))?;
            if let Some(theirs) = report.theirs() {
                writeln!(out, "{}", line(&theirs))?;
            }
        }
    }
    Ok(())
}

fn checked(report: &Report, to: Option<Release>, verdict: &Verdict) -> serde_json::Value {
    json!({
        "openshift": report.openshift,
        "to": to.map(|release| release.to_string()),
        "verdict": verdict.outcome.as_str(),
        "reason": verdict.reason.as_str(),
        "message": verdict.message,
    })
}

/// The one resource that a person names.
fn named<'f>(facts: &'f Facts, name: &str) -> Result<(&'f Key, &'f Machine)> {
    let parts: Vec<&str> = name.split('/').collect();
    let fits = |(key, machine): &(&Key, &Machine)| match parts.as_slice() {
        [name] => key.name == *name,
        [namespace, name] => key.namespace == *namespace && key.name == *name,
        [kind, namespace, name] => {
            machine.kind.eq_ignore_ascii_case(kind)
                && key.namespace == *namespace
                && key.name == *name
        }
        _ => false,
    };
    let all = facts.machines.iter().map(|(key, machine)| (key, &**machine));
    let found: Vec<_> = all.filter(fits).collect();
    match found.as_slice() {
        [one] => Ok(*one),
        [] => {
            Err(anyhow!("there is no machine resource {}: tread bootimages lists them", line(name)))
        }
        several => {
            let names: Vec<String> = several
                .iter()
                .map(|(key, machine)| format!("{}/{}", machine.kind, name_of(key)))
                .collect();
            Err(anyhow!("several have that name: write one of {}", names.join(", ")))
        }
    }
}

fn patch(name: &str, asked: &Asked, out: &mut impl Write) -> Result<Exit> {
    let (remedy, stub) = wait_for(async {
        let Known { client, facts, .. } = known(asked).await?;
        let (key, machine) = named(&facts, name)?;
        let boots = boots(&facts, key, machine);
        let secret = boots.as_ref().ok().and_then(|boots| boots.user_data.as_deref());
        let stub = match secret {
            Some(secret) => stub(&client, &key.namespace, secret).await,
            None => None,
        };
        Ok((remedy_of(&facts, key, machine), stub))
    })?;
    match asked.listing.output {
        ListOutput::Json => json(out, &json!({ "userData": stub, "remedy": remedy }))?,
        ListOutput::Yaml => yaml(out, &json!({ "userData": stub, "remedy": remedy }))?,
        ListOutput::Human | ListOutput::Wide => {
            if let Some(problem) = &stub {
                writeln!(out, "# First: {}", line(problem))?;
            }
            for step in &remedy.steps {
                writeln!(out, "# {}", line(step))?;
            }
            if let Some(command) = &remedy.command {
                writeln!(out, "{command}")?;
            }
        }
    }
    Ok(Exit::Done)
}

/// What is wrong with the user data that new machines would get, read with the
/// rights of whoever asks.
async fn stub(client: &Client, namespace: &str, name: &str) -> Option<String> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let call = Call::new("get", "secrets").within(namespace);
    let secret = match ask(&Metrics::new(), call, secrets.get(name)).await {
        Ok(secret) => secret,
        Err(failed) => {
            return Some(format!(
                "the user data in Secret {namespace}/{name} could not be read, so whether it fits a \
                 new image is not known: {failed}"
            ));
        }
    };
    let data = secret.data.unwrap_or_default();
    let text = data.get("userData").map(|it| it.0.as_slice()).unwrap_or_default();
    let problem = user_data::problem(text, &authorities(client).await);
    problem.map(|problem| format!("Secret {namespace}/{name}: {problem}"))
}

/// Where the machine config server's CA is; the second is where older releases
/// have it.
const AUTHORITIES: [(&str, &str, &str); 2] = [
    (CATALOGUE_NAMESPACE, "machine-config-server-ca", "ca-bundle.crt"),
    ("kube-system", "root-ca", "ca.crt"),
];

/// What machines are to trust; empty if nobody says.
async fn authorities(client: &Client) -> String {
    for (namespace, name, key) in AUTHORITIES {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let call = Call::new("get", "configmaps").within(namespace);
        let found = ask(&Metrics::new(), call, maps.get_opt(name)).await.ok().flatten();
        if let Some(text) = found.and_then(|map| map.data?.remove(key)) {
            return text;
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_test_bed::refusal;

    #[tokio::test]
    async fn all_that_is_forbidden_is_one_line_with_what_to_do() {
        let failed = async |code: u16| {
            let no = refusal(json!({"code": code, "message": "not so"}));
            let answer = std::future::ready(Err::<(), _>(no));
            ask(&Metrics::new(), Call::new("list", "kinds"), answer).await.unwrap_err()
        };
        let (forbidden, other) = (failed(403).await, failed(500).await);
        let of = |count: usize, failed: &Failed| -> Vec<(String, Failed)> {
            (0..count).map(|number| (format!("kind-{number}.example"), failed.clone())).collect()
        };
        assert_eq!(
            in_few_words(&of(17, &forbidden), "tread-system"),
            [
                "you may not read kind-0.example and 16 more, by which boot images are judged: an admin \
              can bind the ClusterRole tread-read.tread-system to you"
            ]
        );
        let said = in_few_words(&of(5, &other), "tread-system");
        assert_eq!(said.len(), NAMED + 1, "{said:?}");
        assert_eq!(said[0], "kind-0.example: not so");
        assert_eq!(said[NAMED], "2 more kinds cannot be listed either");
    }
}
