//! A DisruptionPlan for a person.

use serde_json::Value;
use std::io::{self, Write};
use tread_cluster::plans::says_undrained;
use tread_console::print::line;
use tread_console::table;
use tread_kube::api::disruption_plan::{
    DrainBlocker, FlaggedNode, PlanChange, PlanStep, Transition,
};
use tread_kube::api::{DisruptionPlan, DisruptionPlanStatus};
use tread_model::text::and_more_of;

/// Whether a plan is still to come, and why so.
pub(super) fn pending(plan: &DisruptionPlan) -> Option<(&str, &str)> {
    let conditions = plan.status.iter().flat_map(|status| &status.conditions);
    let pending = conditions.into_iter().find(|condition| condition.type_ == "Pending")?;
    Some((&pending.status, &pending.reason))
}

/// Everything that a plan says.
pub(super) fn plan(
    out: &mut impl Write,
    pool: &str,
    status: &DisruptionPlanStatus,
) -> io::Result<()> {
    let status = &fit_for_a_terminal(status);
    let word = |value: &Option<String>| value.clone().unwrap_or_default();
    writeln!(out, "Pool {}: {}", line(pool), word(&status.effect))?;
    writeln!(out, "  cause: {}", word(&status.cause))?;
    match (&status.tread, &status.because) {
        (Some(tread), Some(because)) => {
            writeln!(out, "  by OpenShift's operator, because of {because}")?;
            writeln!(out, "  tread would do: {tread}")?;
        }
        (Some(tread), None) => {
            writeln!(out, "  by OpenShift's operator; tread would do: {tread}")?;
        }
        _ => {}
    }
    if status.stale {
        writeln!(out, "  stale: its policies or configs have changed since")?;
    }
    for condition in &status.conditions {
        let speaks = condition.type_ == "Pending" || condition.status != "True";
        if speaks {
            let word = match (condition.type_.as_str(), condition.status.as_str()) {
                ("Pending", "False") => "over",
                ("Planned", _) => "not planned",
                _ => "pending",
            };
            writeln!(out, "  {word}: {}", condition.message)?;
        }
    }
    for blocker in &status.drain_blockers {
        blocks(out, blocker)?;
    }
    left_out(out, "  ", status.drain_blockers_left_out, "PodDisruptionBudgets may block a drain")?;
    if let Some(skipped) = &status.drain_skipped {
        writeln!(out, "  {}", says_undrained(skipped))?;
    }
    for FlaggedNode { node, why } in &status.flagged {
        writeln!(out, "  flagged for maintenance: {node}: {why}")?;
    }
    left_out(out, "  ", status.flagged_left_out, "nodes that are flagged for maintenance")?;
    for way in &status.transitions {
        writeln!(out)?;
        transition(out, way)?;
    }
    left_out(out, "\n  ", status.transitions_left_out, "ways")
}

/// How many more there are of what was named before, if any.
fn left_out(out: &mut impl Write, before: &str, count: i64, what: &str) -> io::Result<()> {
    match and_more_of(usize::try_from(count).unwrap_or_default(), 0, what).trim() {
        "" => Ok(()),
        more => writeln!(out, "{before}{more}"),
    }
}

/// Who would block a drain.
fn blocks(out: &mut impl Write, blocker: &DrainBlocker) -> io::Result<()> {
    let DrainBlocker { budget, why, pods, more_pods } = blocker;
    let pods: Vec<String> = pods.iter().map(|it| format!("{} on {}", it.pod, it.node)).collect();
    let of = match (pods.is_empty(), more_pods) {
        (true, _) => "any pod of it".to_owned(),
        (false, 0) => pods.join(", "),
        (false, more) => format!("{}, and {more} or more others", pods.join(", ")),
    };
    writeln!(out, "  blocks a drain: {of}, by the PodDisruptionBudget {budget}: {why}")
}

/// The same without what drives a terminal: whoever may write objects may write
/// anything into them. What has several lines stays below where it stands.
fn fit_for_a_terminal(status: &DisruptionPlanStatus) -> DisruptionPlanStatus {
    fn fit(value: &mut Value) {
        match value {
            Value::String(text) => {
                *text = text.split('\n').map(line).collect::<Vec<_>>().join("\n      ");
            }
            Value::Array(items) => items.iter_mut().for_each(fit),
            Value::Object(fields) => fields.values_mut().for_each(fit),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(status).unwrap_or_default();
    fit(&mut value);
    serde_json::from_value(value).unwrap_or_default()
}

fn transition(out: &mut impl Write, way: &Transition) -> io::Result<()> {
    let to = if way.to.is_empty() { "what is not rendered yet" } else { &way.to };
    let nodes = match way.nodes.count {
        1 => "1 node".to_owned(),
        count => format!("{count} nodes"),
    };
    let named = match way.nodes.first.as_slice() {
        [] => String::new(),
        first => {
            let shown = i64::try_from(first.len()).unwrap_or(i64::MAX);
            let more = if way.nodes.count > shown { ", …" } else { "" };
            format!(" ({}{more})", first.join(", "))
        }
    };
    writeln!(out, "  {nodes}{named}")?;
    writeln!(out, "    from {} to {to}", way.from)?;
    for stray in &way.nodes.strays {
        writeln!(out, "    strays: {}", stray.because)?;
        writeln!(out, "      what ends it: {}", stray.ends)?;
    }
    left_out(out, "    ", way.nodes.strays_left_out, "nodes that stray")?;
    let steps: Vec<String> = way.steps.iter().map(|it| step(it)).collect();
    let steps = if steps.is_empty() { "none".to_owned() } else { steps.join(", ") };
    match &way.operator {
        None => writeln!(out, "    steps: {steps}")?,
        Some(operator) => {
            writeln!(out, "    OpenShift's operator: {operator}")?;
            for because in &way.operator_because {
                writeln!(out, "      {}: {}: {}", because.id, because.effect, because.rule)?;
            }
            left_out(out, "      ", way.operator_because_left_out, "")?;
            writeln!(out, "    steps of tread, if it rolled this out: {steps}")?;
        }
    }
    if let Some(digest) = &way.digest {
        writeln!(out, "    digest: {digest}")?;
    }
    for warning in &way.warnings {
        writeln!(out, "    note: {}", **warning)?;
    }
    left_out(out, "    ", way.warnings_left_out, "notes")?;
    let rows = way.changes.iter().map(|change| {
        let by = match (&change.policy, change.verdict.as_str()) {
            (Some(policy), verdict) => format!("{verdict} by {}", policy.name),
            (None, "refused" | "decided") => format!("{} by tread", change.verdict),
            (None, verdict) => format!("{verdict}: no policy answers"),
        };
        let actions: Vec<String> = change.actions.iter().map(step).collect();
        let actions = if actions.is_empty() { "none".to_owned() } else { actions.join(", ") };
        vec!["   ".to_owned(), change.id.clone(), change.edit.clone(), actions, by]
    });
    table::print(out, &rows.collect::<Vec<_>>())?;
    for change in &way.changes {
        reason(out, change)?;
    }
    left_out(out, "    ", way.changes_left_out, "changes")
}

fn reason(out: &mut impl Write, change: &PlanChange) -> io::Result<()> {
    writeln!(out, "    {}: {}", change.id, change.reason)?;
    match &change.advice {
        Some(advice) => writeln!(out, "      {advice}"),
        None => Ok(()),
    }
}

fn step(step: &PlanStep) -> String {
    match &step.unit {
        Some(unit) => format!("{} {unit}", step.r#do),
        None => step.r#do.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_kube::api::disruption_plan::{Nodes, PlanBecause, PlanStray};
    use tread_kube::api::shared::Shared;
    use tread_model::effect::Effect;

    fn stray(says: impl Fn() -> String) -> Nodes {
        let strays = vec![PlanStray { because: says(), ends: says(), ..PlanStray::default() }];
        Nodes { count: 12, strays, strays_left_out: 2, ..Nodes::default() }
    }

    #[test]
    fn nodes_that_stray_are_named_with_what_ends_it() {
        let nodes = stray(|| "kubectl label node a role=".to_owned());
        let transitions = vec![Transition { nodes, ..Transition::default() }];
        let status = DisruptionPlanStatus { transitions, ..DisruptionPlanStatus::default() };
        let mut out = Vec::new();
        plan(&mut out, "worker", &status).unwrap();
        let out = String::from_utf8(out).unwrap();
        for line in [
            "    strays: kubectl label node a role=",
            "      what ends it: kubectl label node a role=",
            "    and 2 more nodes that stray",
        ] {
            assert!(out.lines().any(|it| it == line), "{line}: {out}");
        }
    }

    #[test]
    fn what_stands_in_a_plan_drives_no_terminal_and_passes_for_no_line_of_its_own() {
        let odd = || "\u{1b}[2Jodd\n  digest: forged\u{202e}".to_owned();
        let way = Transition {
            from: odd(),
            to: odd(),
            nodes: stray(odd),
            digest: Some(odd()),
            warnings: vec![odd().into()],
            steps: vec![PlanStep { r#do: odd(), unit: Some(odd()) }.into()],
            operator: Some(odd()),
            operator_because: vec![
                PlanBecause { id: odd(), effect: Effect::Reboot, rule: odd() }.into(),
            ],
            changes: vec![Shared::from(PlanChange {
                id: odd(),
                edit: odd(),
                verdict: odd(),
                actions: Vec::new(),
                policy: None,
                reason: odd(),
                advice: Some(odd()),
            })],
            ..Transition::default()
        };
        let status = DisruptionPlanStatus {
            flagged: vec![FlaggedNode { node: odd(), why: odd() }],
            flagged_left_out: 1,
            cause: Some(odd()),
            effect: Some(odd()),
            tread: Some(odd()),
            because: Some(odd()),
            transitions: vec![way],
            ..DisruptionPlanStatus::default()
        };
        let mut out = Vec::new();
        plan(&mut out, &odd(), &status).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(out.contains("odd"), "{out}");
        let drives = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!out.contains(drives), "{out:?}");
        let forged = |text: &&str| text.trim_start().starts_with("digest: forged");
        assert!(out.lines().filter(forged).all(|text| text.starts_with("      ")), "{out}");
    }
}
