//! `tread plan OLD NEW`

use crate::cli::{PlanArgs, PlanOutput, When};
use crate::inputs::{self, NamedBytes};
use crate::render::human::{self, Look};
use crate::render::{json, yaml};
use crate::{Exit, UsageError, loading, unless_nobody_reads};
use anyhow::Result;
use serde::Serialize;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tread_engine::limits::Limits;
use tread_engine::planner::{self, CallRecord, Planned};
use tread_model::effect::Effect;
use tread_model::mirrors;
use tread_model::plan::{Plan, PlanOutcome};
use tread_model::read::{self, Input, Side};

/// Plans, prints, and says by the exit code whether it is gentle enough.
pub fn run(args: &PlanArgs, out: &mut impl Write) -> Result<Exit> {
    let start = Instant::now();
    let old: Vec<&Path> = args.old.iter().chain(&args.old_path).map(PathBuf::as_path).collect();
    let new: Vec<&Path> = args.new.iter().chain(&args.new_path).map(PathBuf::as_path).collect();
    if old.iter().chain(&new).filter(|path| path.as_os_str() == "-").count() > 1 {
        let message = "there is one standard input, and more than one - to read from it: \
                       name files for the others";
        return Err(UsageError(message.to_owned()).into());
    }
    let (old, new) = (read_side(&old)?, read_side(&new)?);
    let (old, new) = read::sides(&named(&old), &named(&new))?;
    let doubts = read::doubts(&old, &new);
    let (old, new) = (with_mirrors(old)?, with_mirrors(new)?);
    let reading = start.elapsed();

    let start = Instant::now();
    let limits = Limits::default();
    let (policies, warnings) = loading::policies(&args.policies, &limits)?;
    let warnings = [doubts, warnings].concat();
    let sandbox = loading::sandbox(limits)?;
    let starting = start.elapsed();

    let planned = planner::plan(&sandbox, &policies, &old.config, &new.config, warnings)?;
    let timings = args.timings.then(|| Timings {
        reading,
        starting,
        comparing: planned.comparing,
        calls: planned.calls.clone(),
    });
    unless_nobody_reads(print(args, &planned, timings, out))?;
    Ok(exit(&planned.plan, args.max))
}

fn exit(plan: &Plan, max: Option<Effect>) -> Exit {
    match max {
        _ if plan.outcome == PlanOutcome::Refuse => Exit::Refused,
        Some(max) if plan.effect > max => Exit::TooDisruptive,
        _ => Exit::Done,
    }
}

fn read_side(paths: &[&Path]) -> Result<Vec<NamedBytes>> {
    let mut files = Vec::new();
    for path in paths {
        files.extend(inputs::read(path)?);
    }
    Ok(files)
}

fn named(files: &[NamedBytes]) -> Vec<Input<'_>> {
    files.iter().map(|file| Input { name: &file.name, bytes: &file.bytes }).collect()
}

/// Mirror objects become the side's registries.conf.
fn with_mirrors(mut side: Side<'_>) -> Result<Side<'_>> {
    if !side.mirrors.is_empty() {
        mirrors::apply(&mut side.config, &side.mirrors)?;
    }
    Ok(side)
}

/// How long everything took.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Timings {
    /// Reading both sides.
    pub(crate) reading: Duration,
    /// Getting the policies and the sandbox ready.
    pub(crate) starting: Duration,
    /// Comparing, digests included.
    pub(crate) comparing: Duration,
    /// Each call of a policy.
    pub(crate) calls: Vec<CallRecord>,
}

#[derive(Serialize)]
struct Output<'p> {
    #[serde(flatten)]
    plan: &'p Plan,
    #[serde(skip_serializing_if = "Option::is_none")]
    timings: Option<Timings>,
}

fn print(
    args: &PlanArgs,
    planned: &Planned<'_>,
    timings: Option<Timings>,
    out: &mut impl Write,
) -> Result<()> {
    let terminal = io::stdout().is_terminal();
    match args.output {
        PlanOutput::Json => json(out, &Output { plan: &planned.plan, timings }),
        PlanOutput::Yaml => yaml(out, &Output { plan: &planned.plan, timings }),
        PlanOutput::Human => {
            let look = Look {
                colours: terminal && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty()),
                contents: match args.diff {
                    When::Auto => terminal,
                    When::Always => true,
                    When::Never => false,
                },
            };
            human::plan(out, planned, timings.as_ref(), args.max, look)
        }
    }
}
