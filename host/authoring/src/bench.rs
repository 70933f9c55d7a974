//! `tread policy bench`: what a policy's calls take.

use crate::cases::{self, Case};
use crate::explain::{Scene, crate_of};
use crate::inspect::{Examined, Output};
use crate::questions::{self, Question};
use anyhow::{Context as _, Result, ensure};
use serde::Serialize;
use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tread_console::exit::{Exit, unless_nobody_reads};
use tread_console::print::{json, line};
use tread_console::sentence::{count, thousands};
use tread_console::table;
use tread_engine::limits::Limits;
use tread_engine::policy::{Policy, Wishes};
use tread_engine::sandbox::{Call, Module, Sandbox, Speaker, Spent};
use tread_loading::{file, sandbox};
use tread_model::change::Change;
use tread_model::digest::Sha256;
use tread_model::verdict::{Failure, Layer};

const EXAMPLES: &str = "\
Examples:
  tread policy bench chrony.wasm
  tread policy bench chrony.wasm --cases cases/
  tread policy bench chrony.wasm --runs 5000 -o json

Times are those of this machine: compare them on one machine only. Fuel is the same
everywhere. Without --cases the policy is asked about 1, 10 and 100 changes of
4+4 KiB each that are made up to match its claims; their text means nothing, so that
a policy that reads them gives up early: --cases shows what it takes for real ones.";

/// The arguments of `tread policy bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct BenchArgs {
    /// The component
    pub file: PathBuf,
    /// Ask about the changes of these cases: a file, or a directory of them
    #[arg(long, value_name = "DIR|FILE")]
    pub cases: Option<PathBuf>,
    /// How often each is measured; fewer where that takes more than 3 seconds
    #[arg(long, value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Output::Human)]
    pub output: Output,
}

/// Changes in one made-up call.
const COUNTS: [usize; 3] = [1, 10, 100];
/// The bytes of each side of a made-up change.
const BYTES: usize = 4096;
/// Calls that are not measured: the first ones find nothing warm.
const WARM_UP: u32 = 3;
/// How long one row is measured at most.
const LONGEST: Duration = Duration::from_secs(3);

/// Measures, prints, and fails if a call did.
pub fn run(args: &BenchArgs, out: &mut impl Write) -> Result<Exit> {
    let bytes = file::read(&args.file)?;
    let sandbox = sandbox::for_one(Limits::default())?;
    Examined::new(&args.file, &bytes, &sandbox).check(&args.file)?;
    let report = measure(args, &bytes, &sandbox)?;
    unless_nobody_reads(match args.output {
        Output::Json => json(out, &report),
        Output::Human => human(out, &report),
    })?;
    let failed = report.calls.iter().any(|row| row.failure.is_some());
    Ok(if failed { Exit::Error } else { Exit::Done })
}

/// What is printed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    policy: String,
    version: String,
    digest: Sha256,
    /// Of a call that is offered nothing: what is offered adds to it.
    fuel_limit: u64,
    memory_limit: usize,
    /// Compiling it, and getting it ready.
    load_nanos: u64,
    /// Making a fresh instance, which is a part of each call.
    instantiate: Times,
    calls: Vec<Row>,
    /// Cases that change nothing that it claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    cases_without_a_call: Option<usize>,
}

/// One question, asked again and again.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    /// The file of the case.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    title: String,
    changes: usize,
    unchanged: usize,
    /// The call, its instance included.
    times: Option<Times>,
    fuel: u64,
    fuel_per_change: u64,
    memory: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failed>,
}

#[derive(Debug, Serialize)]
struct Failed {
    failure: &'static str,
    message: String,
    /// The same in the words of its author, with what helps to mend it.
    explanation: Vec<String>,
}

/// How long something took, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Times {
    runs: usize,
    p50_nanos: u64,
    p90_nanos: u64,
    p99_nanos: u64,
    max_nanos: u64,
}

impl Times {
    /// None of nothing.
    fn of(mut took: Vec<Duration>) -> Option<Times> {
        took.sort_unstable();
        // The nearest rank: the least that so many in a hundred do not exceed.
        let rank = |percent: usize| {
            let rank = (took.len() * percent).div_ceil(100).max(1);
            took.get(rank - 1).map(|it| nanos(*it))
        };
        Some(Times {
            runs: took.len(),
            p50_nanos: rank(50)?,
            p90_nanos: rank(90)?,
            p99_nanos: rank(99)?,
            max_nanos: rank(100)?,
        })
    }
}

fn nanos(took: Duration) -> u64 {
    u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)
}

fn measure(args: &BenchArgs, bytes: &[u8], sandbox: &Sandbox) -> Result<Report> {
    let load = load_time(bytes)?;
    let module = sandbox.load(bytes, None)?;
    let plain = policy(bytes, Wishes::default(), sandbox)?;
    let (instantiate, _) = repeat(args.runs, || sandbox.instantiate(&module))?;
    let (mut calls, mut without) = (Vec::new(), None);
    match &args.cases {
        None => {
            for count in COUNTS {
                let question = questions::made_up(&plain.claims, count, BYTES)?;
                // Its claims may allow no more than before.
                if calls.last().is_none_or(|row: &Row| row.changes < question.changes.len()) {
                    calls.push(row(args, None, &question, &plain, &module, sandbox));
                }
            }
        }
        Some(path) => {
            let mut silent = 0;
            for (file, case) in read_cases(path)? {
                let named = || line(&format!("{file} ({})", case.title));
                let settings = case.settings.get(&plain.identity.policy);
                let settings = settings.and_then(|it| it.as_object().cloned());
                let policy = match settings {
                    Some(settings) => {
                        let wishes = Wishes { settings, ..Wishes::default() };
                        policy(bytes, wishes, sandbox).with_context(named)?
                    }
                    None => policy(bytes, Wishes::default(), sandbox)?,
                };
                match questions::of_case(&case, &policy).with_context(named)? {
                    Some(question) => {
                        let file = Some(file);
                        calls.push(row(args, file, &question, &policy, &module, sandbox));
                    }
                    None => silent += 1,
                }
            }
            without = Some(silent);
            ensure!(
                !calls.is_empty(),
                "{}: none of {silent} cases changes anything that {} claims; \
                 `tread policy inspect` lists its claims",
                path.display(),
                plain.identity.policy
            );
        }
    }
    Ok(Report {
        policy: plain.identity.policy.clone(),
        version: plain.identity.version.clone(),
        digest: plain.identity.digest,
        fuel_limit: sandbox.limits().fuel,
        memory_limit: sandbox.limits().memory_bytes,
        load_nanos: nanos(load),
        instantiate,
        calls,
        cases_without_a_call: without,
    })
}

/// Loading it where nothing is kept of it.
fn load_time(bytes: &[u8]) -> Result<Duration> {
    let fresh = sandbox::without_cache(Limits::default())?;
    // The engine itself is there in a service long before a policy comes.
    fresh.allocator()?;
    let start = Instant::now();
    fresh.load(bytes, None)?;
    Ok(start.elapsed())
}

/// The policy with these settings, which it has to take.
fn policy(bytes: &[u8], wishes: Wishes, sandbox: &Sandbox) -> Result<Policy> {
    let component = Cow::Owned(bytes.to_vec());
    let policy = Policy::new(component, None, Layer::Template, wishes, sandbox.limits())?;
    policy.check(sandbox).map_err(Clone::clone)?;
    Ok(policy)
}

fn read_cases(path: &Path) -> Result<Vec<(String, Case)>> {
    let mut all = Vec::new();
    for file in cases::files(path)? {
        let name = file.display().to_string();
        all.extend(cases::read_file(&file)?.into_iter().map(|case| (name.clone(), case)));
    }
    Ok(all)
}

/// Does something again and again; the last answer is kept.
fn repeat<T>(
    runs: u32,
    mut once: impl FnMut() -> Result<T, Failure>,
) -> Result<(Times, T), Failure> {
    let mut last = once()?;
    for _ in 1..WARM_UP {
        last = once()?;
    }
    let begin = Instant::now();
    let mut took = Vec::new();
    for _ in 0..runs {
        let start = Instant::now();
        last = once()?;
        took.push(start.elapsed());
        if begin.elapsed() > LONGEST {
            break;
        }
    }
    let none = Times { runs: 0, p50_nanos: 0, p90_nanos: 0, p99_nanos: 0, max_nanos: 0 };
    Ok((Times::of(took).unwrap_or(none), last))
}

fn row(
    BenchArgs { runs, file: component, .. }: &BenchArgs,
    file: Option<String>,
    question: &Question,
    policy: &Policy,
    module: &Module,
    sandbox: &Sandbox,
) -> Row {
    let changes: Vec<&Change<'_>> = question.changes.iter().collect();
    let call = Call {
        settings: &policy.settings,
        changes: &changes,
        unchanged: &question.unchanged,
        claims: &policy.claims,
        layer: Layer::Template,
        speaker: Speaker::Policy,
        words: policy.words(),
    };
    let source = crate_of(component);
    let scene = Scene { claims: &policy.claims, source };
    let mut used = Spent::default();
    let asked = repeat(*runs, || {
        // Of its author's own cases nothing has to be kept back.
        sandbox.classify_openly(module, &call).map_err(|failed| {
            used = failed.spent.unwrap_or_default();
            failed.failure
        })
    });
    let (times, failure) = match asked {
        Ok((times, reply)) => {
            used = reply.spent.unwrap_or_default();
            (Some(times), None)
        }
        Err(failure) => {
            let explanation = scene.failure(&failure, &changes);
            let Failure { kind, message } = failure;
            (None, Some(Failed { failure: kind.name(), message, explanation }))
        }
    };
    Row {
        file,
        title: question.title.clone(),
        changes: changes.len(),
        unchanged: question.unchanged.len(),
        times,
        fuel: used.fuel,
        fuel_per_change: used.fuel / (changes.len() as u64).max(1),
        memory: used.memory,
        failure,
    }
}

fn human(out: &mut impl Write, report: &Report) -> Result<()> {
    let Report { policy, version, digest, .. } = report;
    writeln!(out, "{policy} {version} ({})", digest.short())?;
    writeln!(out, "loading it, compiled anew: {} ms\n", report.load_nanos.div_ceil(1_000_000))?;
    let heads =
        ["TIMES IN µs", "CHANGES", "P50", "P90", "P99", "MAX", "FUEL", "PER CHANGE", "MEMORY"];
    let mut rows = Vec::new();
    let instance = ["a fresh instance".to_owned(), String::new()];
    rows.push(instance.into_iter().chain(micros(&report.instantiate)).collect());
    for row in &report.calls {
        let mut cells = vec![short(&row.title), row.changes.to_string()];
        match (&row.times, &row.failure) {
            (Some(times), _) => {
                cells.extend(micros(times));
                cells.push(thousands(row.fuel));
                cells.push(thousands(row.fuel_per_change));
                cells.push(format!("{} KiB", row.memory.div_ceil(1024)));
            }
            (None, failed) => cells.extend(failed.as_ref().map(|it| format!("{}!", it.failure))),
        }
        rows.push(cells);
    }
    table::print(out, &table::with_heads(&heads, rows))?;
    writeln!(
        out,
        "\nA call may use {} units of fuel (more for large changes) and {} KiB of memory.",
        thousands(report.fuel_limit),
        report.memory_limit >> 10
    )?;
    if let Some(without @ 1..) = report.cases_without_a_call {
        let verb = if without == 1 { "changes" } else { "change" };
        let cases = count(without, "case");
        writeln!(out, "{cases} {verb} nothing that it claims.")?;
    }
    for row in &report.calls {
        if let Some(failed) = &row.failure {
            writeln!(out, "\n{}: it failed", line(&row.title))?;
            failed.explanation.iter().try_for_each(|it| writeln!(out, "  {}", line(it)))?;
        }
    }
    Ok(())
}

fn micros(times: &Times) -> Vec<String> {
    let Times { p50_nanos, p90_nanos, p99_nanos, max_nanos, .. } = *times;
    let cell = |nanos: u64| format!("{}.{}", thousands(nanos / 1000), nanos % 1000 / 100);
    [p50_nanos, p90_nanos, p99_nanos, max_nanos].map(cell).to_vec()
}

/// A title that leaves room for the numbers.
fn short(title: &str) -> String {
    const LONGEST: usize = 40;
    match title.char_indices().nth(LONGEST) {
        None => title.to_owned(),
        Some(_) => title.chars().take(LONGEST - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let of = |range: std::ops::RangeInclusive<u64>| {
            Times::of(range.rev().map(Duration::from_nanos).collect())
        };
        let times = |runs, p50_nanos, p90_nanos, p99_nanos, max_nanos| {
            Some(Times { runs, p50_nanos, p90_nanos, p99_nanos, max_nanos })
        };
        assert_eq!(of(1..=100), times(100, 50, 90, 99, 100));
        assert_eq!(of(1..=1000), times(1000, 500, 900, 990, 1000));
        assert_eq!(of(1..=3), times(3, 2, 3, 3, 3));
        assert_eq!(of(7..=7), times(1, 7, 7, 7, 7));
        assert_eq!(Times::of(Vec::new()), None);
    }

    #[test]
    fn times_and_titles_fit_their_columns() {
        let times = Times {
            runs: 1,
            p50_nanos: 999,
            p90_nanos: 12_345,
            p99_nanos: 1_000_000,
            max_nanos: 1_234_567_890,
        };
        assert_eq!(micros(&times), ["0.9", "12.3", "1,000.0", "1,234,567.8"]);
        assert_eq!(short("short"), "short");
        let (forty, more) = ("ü".repeat(40), "ü".repeat(41));
        assert_eq!(short(&forty), forty);
        assert_eq!(short(&more).chars().count(), 40);
    }
}
