//! Previews and warnings: how long they take, and what of memory.

use crate::Arguments;
use crate::audit;
use crate::cluster::Cluster;
use crate::figures::{Figures, megabytes, milliseconds, percentile, tenths};
use crate::process::{Memory, Tread};
use crate::say;
use anyhow::{Result, bail};
use std::time::Duration;

/// Measures them.
pub(crate) async fn measure(
    arguments: &Arguments,
    cluster: &Cluster,
    tread: &Tread,
    figures: &mut Figures,
) -> Result<()> {
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
        asked.ask(cluster, tread, number).await?;
    }
    let Asked { mut warnings, mut wide, mut again, mut at_once, mut without, mut processor } =
        asked;
    let at_end = tread.memory()?;
    let hostile = Hostile::measured(cluster, tread, arguments.times).await?;

    figures.row("resident at the end", megabytes(at_end.resident), "");
    figures.row("resident at its peak", megabytes(at_end.peak), "200 MB");
    figures.row(
        &format!("requests at rest, in {} s", arguments.rest),
        requests.all.to_string(),
        "",
    );
    figures.row("  of them for the Lease", requests.leases.to_string(), "");
    for (what, count) in requests.others {
        figures.row(&format!("  {what}"), count.to_string(), "");
    }
    figures.row("preview, median", milliseconds(percentile(&mut previews, 50)), "");
    figures.row("preview, p99", milliseconds(percentile(&mut previews, 99)), "2000 ms");
    figures.row("warning, of one pool, median", milliseconds(percentile(&mut warnings, 50)), "");
    figures.row("warning, of one pool, p99", milliseconds(percentile(&mut warnings, 99)), "100 ms");
    figures.row("warning, of every pool, median", milliseconds(percentile(&mut wide, 50)), "");
    figures.row("warning, of every pool, p99", milliseconds(percentile(&mut wide, 99)), "100 ms");
    figures.row("the same once more, median", milliseconds(percentile(&mut again, 50)), "");
    figures.row("the same once more, p99", milliseconds(percentile(&mut again, 99)), "100 ms");
    figures.row(
        "  tread's processor time for it, median",
        tenths(percentile(&mut processor, 50)),
        "",
    );
    figures.row("a warning that needs no plan, median", tenths(percentile(&mut at_once, 50)), "");
    figures.row("a warning that needs no plan, p99", tenths(percentile(&mut at_once, 99)), "");
    figures.row("the same without tread, median", tenths(percentile(&mut without, 50)), "");
    figures.row("the same without tread, p99", tenths(percentile(&mut without, 99)), "");
    let mut ratio = |percent| {
        let (with, without) = (percentile(&mut wide, percent), percentile(&mut without, percent));
        with.as_secs_f64() / without.as_secs_f64()
    };
    let (median, worst) = (ratio(50), ratio(99));
    figures.row("every pool / without tread, median", format!("{median:.1}"), "3");
    figures.row("every pool / without tread, p99", format!("{worst:.1}"), "3");
    figures.row(
        "resident at its peak, hostile requests",
        megabytes(hostile.requests.peak),
        "400 MB",
    );
    figures.row("resident at its peak, hostile objects", megabytes(hostile.objects.peak), "400 MB");
    figures.row("resident after them", megabytes(hostile.after.resident), "");
    figures.row("warned meanwhile, of others", hostile.warned.clone(), "");
    let longest = percentile(&mut wide, 99).max(percentile(&mut warnings, 99));
    let longest = longest.max(percentile(&mut again, 99));
    figures.promised(
        at_end.peak <= 200 * 1024,
        format!("{} KB are taken, and not 200 MB", at_end.peak),
    );
    figures.promised(
        hostile.objects.peak <= 400 * 1024,
        format!("{} KB are taken for what is hostile, and not 400 MB", hostile.objects.peak),
    );
    figures.promised(hostile.missed == 0, format!("{} others were not warned", hostile.missed));
    figures
        .promised(longest <= LONGEST_WARNING, format!("a warning takes {}", milliseconds(longest)));
    figures.promised(
        worst <= MOST_TIMES,
        format!("a warning takes {worst:.1} times what it takes without"),
    );
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
    requests: Memory,
    objects: Memory,
    after: Memory,
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
