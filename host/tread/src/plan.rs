//! `tread plan OLD NEW`

pub mod args;
mod exit_reason;
mod overruled;
mod sides;
pub(crate) mod too_disruptive;

use crate::render;
use crate::render::human::{self, Beside};
use crate::render::look::Look;
use crate::render::measure::measured;
use crate::render::timings::Timings;
use anyhow::Result;
use args::{PlanArgs, PlanOutput, When};
use serde::Serialize;
use sides::{Read, Source, named, read_side};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;
use too_disruptive::too_disruptive;
use tread_console::exit::{Exit, unless_nobody_reads};
use tread_console::print::{json, yaml};
use tread_engine::limits::Limits;
use tread_engine::planner::{self, Planned};
use tread_loading::file::check_standard_input;
use tread_loading::sandbox;
use tread_loading::shadow::policies_and_shadows;
use tread_model::mirrors::rendered_sides;
use tread_model::plan::compare::Shadow;
use tread_model::plan::{Plan, PlanOutcome};
use tread_model::read;

/// Plans, prints, and says by the exit code whether it is gentle enough.
pub fn run(args: &PlanArgs, out: &mut impl Write) -> Result<Exit> {
    let start = Instant::now();
    let old: Vec<&Path> = args.old.iter().chain(&args.old_path).map(PathBuf::as_path).collect();
    let new: Vec<&Path> = args.new.iter().chain(&args.new_path).map(PathBuf::as_path).collect();
    let deciding = args.policies.paths().chain(args.shadow.iter().map(PathBuf::as_path));
    check_standard_input(old.iter().chain(&new).copied().chain(deciding))?;
    let (old_files, new_files) = (read_side("OLD", &old)?, read_side("NEW", &new)?);
    let (old, new) = read::sides(&named(&old_files), &named(&new_files))?;
    let (old_source, new_source) = (Source::new(&old_files, &old), Source::new(&new_files, &new));
    let doubts = read::doubts(&old, &new);
    let (old, new) = rendered_sides(old, new)?;
    let reading = start.elapsed();

    let start = Instant::now();
    let limits = Limits::default();
    let sandbox = sandbox::for_one(limits.clone())?;
    let (policies, warnings, shadows) =
        policies_and_shadows(&args.policies, &args.shadow, &sandbox)?;
    let warnings = [doubts, warnings].concat();
    let starting = start.elapsed();

    let (before, after) = (&old.config, &new.config);
    let (mut planned, shadow, shadow_calls) = match &shadows {
        None => (planner::plan(&sandbox, &policies, before, after, warnings)?, None, Vec::new()),
        Some(shadows) => {
            let (planned, shadow, calls) =
                planner::plan_with_shadows(&sandbox, &policies, shadows, before, after, warnings)?;
            (planned, Some(shadow), calls)
        }
    };
    overruled::note(&mut planned.plan, &args.policies, &limits, &sandbox, (&old, &new))?;
    if args.output != PlanOutput::Human {
        measure(&mut planned);
    }
    let timings = args.timings.then(|| Timings {
        reading,
        starting,
        comparing: planned.comparing,
        calls: planned.calls.clone(),
        shadow_calls,
    });
    let beside = Beside {
        sides: sides::lines(&old_source, &new_source),
        too_disruptive: too_disruptive(&planned.plan, args.max),
        timings: timings.as_ref(),
        shadow: shadow.as_ref(),
    };
    let read = Read::of(&old_source, &new_source);
    unless_nobody_reads(print(args, &planned, (&beside, &read), out))?;
    exit_reason::print_beside(&planned.plan, beside.too_disruptive.as_ref(), args.output);
    Ok(match planned.plan.outcome {
        PlanOutcome::Refuse => Exit::Refused,
        _ if beside.too_disruptive.is_some() => Exit::TooDisruptive,
        _ => Exit::Done,
    })
}

/// What the plan for a person shows of both sides, for a script.
fn measure(planned: &mut Planned<'_>) {
    for change in &mut planned.plan.changes {
        let sides = planned.changes.binary_search_by(|sides| sides.id.cmp(&change.id));
        let sides = sides.ok().and_then(|index| planned.changes.get(index));
        change.difference = sides.map(measured);
    }
}

#[derive(Serialize)]
struct Output<'p> {
    #[serde(flatten)]
    plan: &'p Plan,
    read: &'p Read<'p>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shadow: Option<&'p Shadow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timings: Option<&'p Timings>,
}

fn print(
    args: &PlanArgs,
    planned: &Planned<'_>,
    (beside, read): (&Beside<'_>, &Read<'_>),
    out: &mut impl Write,
) -> Result<()> {
    let (shadow, timings) = (beside.shadow, beside.timings);
    let output = Output { plan: &planned.plan, read, shadow, timings };
    match args.output {
        PlanOutput::Json => json(out, &output),
        PlanOutput::Yaml => yaml(out, &output),
        PlanOutput::Human => {
            let look = Look::of_stdout(|terminal| match args.diff {
                When::Auto => terminal,
                When::Always => true,
                When::Never => false,
            });
            human::plan(out, planned, beside, look)?;
            beside.shadow.map_or(Ok(()), |shadow| render::shadow::shadow(out, shadow, look))
        }
    }
}
