//! `tread-measure`: what `tread serve` takes on a large cluster, and how fast it
//! answers there.

mod audit;
mod cluster;
mod limit;
mod process;

use anyhow::{Context, Result, bail};
use clap::Parser;
use cluster::Cluster;
use process::Tread;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What tread serve takes on a large cluster, and how fast it answers there.
///
/// It starts a control plane of its own, fills it, runs the given tread beside
/// it, and prints a table. It takes some minutes.
#[derive(Parser)]
#[command(name = "tread-measure", verbatim_doc_comment)]
struct Arguments {
    /// The tread to measure
    #[arg(long, value_name = "FILE")]
    tread: PathBuf,
    /// A policy to ship again and again, each time as another one
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// How many nodes there are
    #[arg(long, default_value_t = 5000)]
    nodes: usize,
    /// How many pools
    #[arg(long, default_value_t = 50)]
    pools: usize,
    /// How many MachineConfigs
    #[arg(long, default_value_t = 500)]
    configs: usize,
    /// How many policies, the built-in ones included
    #[arg(long, default_value_t = 100)]
    policies: usize,
    /// How often each answer is timed
    #[arg(long, default_value_t = 100)]
    times: usize,
    /// Without the memory limit that its pod has
    #[arg(long)]
    without_limit: bool,
    /// For how many seconds it is watched at rest
    #[arg(long, default_value_t = 60)]
    rest: u64,
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let done = runtime
        .context("cannot start threads")
        .and_then(|runtime| runtime.block_on(run(&Arguments::parse())));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "tread-measure: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<()> {
    let mut out = std::io::stdout();
    let cluster = Cluster::start(arguments.pools).await?;
    let ports = process::install(&arguments.tread, &cluster)?;
    say("filling the cluster");
    cluster.fill(arguments.nodes, arguments.configs).await?;
    let builtins = 7;
    cluster.policies(&arguments.policy, arguments.policies.saturating_sub(builtins)).await?;

    say("starting tread");
    let begun = Instant::now();
    let tread = Tread::start(&arguments.tread, &cluster, ports, !arguments.without_limit)?;
    tread.ready().await?;
    let ready = begun.elapsed();
    let at_start = tread.memory()?;

    say("watching it at rest");
    let since = cluster.audit()?;
    tokio::time::sleep(Duration::from_secs(arguments.rest)).await;
    let requests = audit::requests(&cluster.audit_log(), since, tread.user())?;

    say("timing previews");
    let mut previews = Vec::new();
    for number in 0..arguments.times {
        previews.push(cluster.preview(number).await?);
    }
    say("timing warnings");
    let mut asked = Asked::default();
    for number in 0..arguments.times {
        asked.ask(&cluster, &tread, number).await?;
    }
    let Asked { mut warnings, mut wide, mut again, mut at_once, mut without, mut processor } =
        asked;
    let at_end = tread.memory()?;
    let hostile = Hostile::measured(&cluster, &tread, arguments.times).await?;

    writeln!(out, "| {:<44} | {:>10} | {:>10} |", "what", "measured", "limit")?;
    writeln!(out, "| {:-<44} | {:->10} | {:->10} |", "", "", "")?;
    let mut row = |what: &str, measured: String, limit: &str| {
        writeln!(out, "| {what:<44} | {measured:>10} | {limit:>10} |")
    };
    let megabytes = |kilobytes: u64| format!("{} MB", kilobytes / 1024);
    row("ready after the start", milliseconds(ready), "")?;
    row("resident when ready", megabytes(at_start.resident), "")?;
    row("resident at the end", megabytes(at_end.resident), "")?;
    row("resident at its peak", megabytes(at_end.peak), "200 MB")?;
    row(&format!("requests at rest, in {} s", arguments.rest), requests.all.to_string(), "")?;
    row("  of them for the Lease", requests.leases.to_string(), "")?;
    row("preview, median", milliseconds(percentile(&mut previews, 50)), "")?;
    row("preview, p99", milliseconds(percentile(&mut previews, 99)), "2000 ms")?;
    row("warning, of one pool, median", milliseconds(percentile(&mut warnings, 50)), "")?;
    row("warning, of one pool, p99", milliseconds(percentile(&mut warnings, 99)), "100 ms")?;
    row("warning, of every pool, median", milliseconds(percentile(&mut wide, 50)), "")?;
    row("warning, of every pool, p99", milliseconds(percentile(&mut wide, 99)), "100 ms")?;
    row("the same once more, median", milliseconds(percentile(&mut again, 50)), "")?;
    row("the same once more, p99", milliseconds(percentile(&mut again, 99)), "100 ms")?;
    row("  tread's processor time for it, median", tenths(percentile(&mut processor, 50)), "")?;
    row("a warning that needs no plan, median", tenths(percentile(&mut at_once, 50)), "")?;
    row("a warning that needs no plan, p99", tenths(percentile(&mut at_once, 99)), "")?;
    row("the same without tread, median", tenths(percentile(&mut without, 50)), "")?;
    row("the same without tread, p99", tenths(percentile(&mut without, 99)), "")?;
    let mut ratio = |percent| {
        let (with, without) = (percentile(&mut wide, percent), percentile(&mut without, percent));
        with.as_secs_f64() / without.as_secs_f64()
    };
    let (median, worst) = (ratio(50), ratio(99));
    row("every pool / without tread, median", format!("{median:.1}"), "3")?;
    row("every pool / without tread, p99", format!("{worst:.1}"), "3")?;
    row("resident at its peak, hostile requests", megabytes(hostile.requests.peak), "400 MB")?;
    row("resident at its peak, hostile objects", megabytes(hostile.objects.peak), "400 MB")?;
    row("resident after them", megabytes(hostile.after.resident), "")?;
    row("warned meanwhile, of others", hostile.warned.clone(), "")?;
    for (what, count) in requests.others {
        writeln!(out, "at rest: {count} × {what}")?;
    }
    let longest = percentile(&mut wide, 99).max(percentile(&mut warnings, 99));
    let longest = longest.max(percentile(&mut again, 99));
    let mut broken = Vec::new();
    let mut promised = |kept: bool, what: String| broken.extend((!kept).then_some(what));
    promised(at_end.peak <= 200 * 1024, format!("{} KB are taken, and not 200 MB", at_end.peak));
    promised(
        hostile.objects.peak <= 400 * 1024,
        format!("{} KB are taken for what is hostile, and not 400 MB", hostile.objects.peak),
    );
    promised(hostile.missed == 0, format!("{} others were not warned", hostile.missed));
    promised(longest <= LONGEST_WARNING, format!("a warning takes {}", milliseconds(longest)));
    promised(
        worst <= MOST_TIMES,
        format!("a warning takes {worst:.1} times what it takes without"),
    );
    if !broken.is_empty() {
        bail!("{}", broken.join("; "));
    }
    Ok(())
}

/// How long answers took, each kind in turn.
#[derive(Default)]
struct Asked {
    /// Of a config of one pool.
    warnings: Vec<Duration>,
    /// Of one of every pool, which says what nobody asked about before.
    wide: Vec<Duration>,
    /// The processor time that tread took for that.
    processor: Vec<Duration>,
    /// The same once more, as when it is tried first and applied then.
    again: Vec<Duration>,
    /// Of one of no pool, so that there is nothing to plan.
    at_once: Vec<Duration>,
    /// Of one that tread is not asked about.
    without: Vec<Duration>,
}

impl Asked {
    async fn ask(&mut self, cluster: &Cluster, tread: &Tread, number: usize) -> Result<()> {
        let before = tread.processor_time()?;
        let wide = cluster.wide_warning(number).await?;
        self.processor.push(tread.processor_time()?.saturating_sub(before));
        let asked = [
            (wide, true, &mut self.wide),
            (cluster.no_warning(number).await?, false, &mut self.without),
            (cluster.warning(number).await?, true, &mut self.warnings),
            (cluster.wide_warning(number).await?, true, &mut self.again),
            (cluster.warning_of_no_pool(number).await?, true, &mut self.at_once),
        ];
        for ((time, warned), expected, times) in asked {
            if warned != expected {
                bail!("warned: {warned}, where {expected} was expected: is the webhook reached?");
            }
            times.push(time);
        }
        Ok(())
    }
}

/// A warning takes no longer, and no more times what the same takes without tread.
const LONGEST_WARNING: Duration = Duration::from_millis(100);
const MOST_TIMES: f64 = 3.0;

/// What it takes while somebody asks for as much as one can.
struct Hostile {
    requests: process::Memory,
    objects: process::Memory,
    after: process::Memory,
    /// How many others were warned meanwhile.
    warned: String,
    missed: usize,
}

impl Hostile {
    async fn measured(cluster: &Cluster, tread: &Tread, times: usize) -> Result<Hostile> {
        say("asking for too much");
        let (mut asked, mut missed) = (0, 0);
        for round in 0..4 {
            let all = (0..4).map(|number| cluster.hostile_request(round * 4 + number));
            futures::future::try_join_all(all).await?;
            missed += usize::from(!cluster.warning(times + round).await?.1);
            asked += 1;
        }
        let requests = tread.memory()?;
        say("making objects that hold too much");
        // Others go on asking while these are planned.
        let made = cluster.hostile_objects();
        tokio::pin!(made);
        let mut names = None;
        while names.is_none() || asked < 8 {
            let number = 2 * times + asked;
            let (made, warned) = tokio::join!(
                async {
                    match names {
                        Some(_) => Ok(None),
                        None => tokio::time::timeout(PAUSE, &mut made).await.ok().transpose(),
                    }
                },
                cluster.warning(number),
            );
            names = names.or(made?);
            missed += usize::from(!warned?.1);
            asked += 1;
        }
        let names = names.unwrap_or_default();
        let objects = tread.memory()?;
        cluster.remove(&names).await?;
        tread.ready().await?;
        let after = tread.memory()?;
        let warned = format!("{} of {asked}", asked - missed);
        Ok(Hostile { requests, objects, after, warned, missed })
    }
}

/// Before the next one asks while something hostile is planned.
const PAUSE: Duration = Duration::from_millis(500);

fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "tread-measure: {what}");
}

fn milliseconds(time: Duration) -> String {
    format!("{:.0} ms", time.as_secs_f64() * 1e3)
}

fn tenths(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// Of sorted times, the one that so many percent are not above.
fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    let place = (times.len() * percent).div_ceil(100).saturating_sub(1);
    times.get(place).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_times() {
        let of = |count: u64, percent| {
            let mut times: Vec<Duration> = (1..=count).rev().map(Duration::from_secs).collect();
            percentile(&mut times, percent).as_secs()
        };
        assert_eq!(
            [of(100, 99), of(100, 50), of(1, 99), of(10, 99), of(0, 99)],
            [99, 50, 1, 10, 0]
        );
    }
}
