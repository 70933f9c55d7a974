//! Units that a change turns on or off, where what is decided on it starts or stops nothing.

use super::schema::{Plan, PlanOutcome, PlannedChange};
use super::steps::{CA_TRUST_UNIT, Step};
use crate::change::{Change, Content, State, UnitState};
use crate::unit_name::is_template;
use crate::verdict::Action;

/// What a change does to a unit, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Switch {
    On(&'static str),
    Off(&'static str),
    Removed,
}

/// A warning for each unit that is turned on or off, and for which only that unit, or none, is reloaded or
/// restarted: a node neither reloads nor restarts what does not run, and a unit that is disabled, masked or
/// removed goes on running. Whoever answers with no action at all means that.
pub fn warnings_of_units(plan: &Plan, changes: &[Change<'_>]) -> Vec<String> {
    if plan.outcome != PlanOutcome::Apply || plan.reboot {
        return Vec::new();
    }
    changes.iter().filter_map(|change| warning_of(plan, change)).collect()
}

fn warning_of(plan: &Plan, change: &Change<'_>) -> Option<String> {
    let unit = change.id.strip_prefix("unit:").filter(|unit| !is_template(unit))?;
    let at = plan.changes.binary_search_by(|it| it.id.as_str().cmp(&change.id)).ok()?;
    let planned = plan.changes.get(at)?;
    let touched = touched(&planned.decided, unit)?;
    let switch = switch(&change.before, &change.after)?;
    let is_meant = touched != Touched::No || is_switched(switch, change);
    let is_started = matches!(switch, Switch::On(_)) && is_started(plan, unit, &change.after);
    (is_meant && !is_started).then(|| warning(planned, change, (unit, touched, switch)))
}

/// What is done to the unit itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Touched {
    No,
    Reloaded,
    Restarted,
}

/// None if nothing is to be done, or if that is not all: another unit may start or stop this one with it.
fn touched(actions: &[Action], unit: &str) -> Option<Touched> {
    let each = actions.iter().map(|action| match action {
        Action::Restart(own) if own == unit && own != CA_TRUST_UNIT => Some(Touched::Restarted),
        Action::Reload(own) if own == unit && own != CA_TRUST_UNIT => Some(Touched::Reloaded),
        Action::DaemonReload | Action::Drain => Some(Touched::No),
        Action::Restart(_) | Action::Reload(_) | Action::Reboot | Action::RebootUndrained => None,
    });
    each.collect::<Option<Vec<Touched>>>()?.into_iter().max()
}

fn switch(before: &State<'_>, after: &State<'_>) -> Option<Switch> {
    let is_whole = |unit: &UnitState<'_>| unit.contents != Content::Absent;
    let is_masked = |unit: &UnitState<'_>| unit.masked == Some(true);
    match (before, after) {
        (State::Absent, State::Unit(new)) => match (is_masked(new), is_whole(new), new.enabled) {
            (true, ..) => Some(Switch::Off("masked")),
            (_, true, Some(false)) => None,
            (_, true, _) => Some(Switch::On("new")),
            (_, false, Some(true)) => Some(Switch::On("enabled")),
            (_, false, Some(false)) => Some(Switch::Off("disabled")),
            (_, false, None) => None,
        },
        (State::Unit(old), State::Absent) if is_masked(old) => Some(Switch::On("unmasked")),
        (State::Unit(old), State::Absent) => is_whole(old).then_some(Switch::Removed),
        (State::Unit(old), State::Unit(new)) => match (is_masked(old), is_masked(new)) {
            (false, true) => Some(Switch::Off("masked")),
            (true, false) => (new.enabled != Some(false)).then_some(Switch::On("unmasked")),
            (true, true) => None,
            (false, false) => match (old.enabled, new.enabled) {
                (old, new) if old == new => None,
                (_, Some(true)) => Some(Switch::On("enabled")),
                (_, Some(false)) => Some(Switch::Off("disabled")),
                (_, None) => None,
            },
        },
        _ => None,
    }
}

/// Whether the change itself says that the unit is to run from now on, or no more, where no action on it
/// does: one that is not enabled may wait for whoever needs it.
fn is_switched(switch: Switch, change: &Change<'_>) -> bool {
    match (switch, &change.before, &change.after) {
        (Switch::On(_), _, State::Unit(new)) => new.enabled == Some(true) && can_be_enabled(new),
        (Switch::Removed, State::Unit(old), _) => old.enabled != Some(false),
        (Switch::On(_) | Switch::Removed, ..) => false,
        (Switch::Off(_), ..) => true,
    }
}

/// Whether anything says what starts the unit at boot; of what cannot be looked at, it may.
fn can_be_enabled(unit: &UnitState<'_>) -> bool {
    !matches!(unit.contents, Content::Bytes(_))
        || texts(unit).flat_map(str::lines).any(|line| line.trim() == "[Install]")
}

/// Whether something that the plan restarts starts the unit too.
fn is_started(plan: &Plan, unit: &str, after: &State<'_>) -> bool {
    let restarts = |wanted: &str| {
        plan.steps.iter().any(|step| matches!(step, Step::Restart { unit } if unit == wanted))
    };
    (restarts(unit) && is_started_by_a_restart(after)) || pulled_in_by(after).any(restarts)
}

/// Whether a restart starts the unit also where it does not run: one that runs once, and is over then.
fn is_started_by_a_restart(state: &State<'_>) -> bool {
    let State::Unit(unit) = state else { return false };
    let last = |key| values(unit, key).next_back();
    let remains = last("RemainAfterExit").unwrap_or_default();
    let remains = matches!(&*remains.to_ascii_lowercase(), "1" | "yes" | "y" | "true" | "t" | "on");
    last("Type") == Some("oneshot") && !remains
}

/// The units with which an enabled unit is started.
fn pulled_in_by<'s>(state: &'s State<'_>) -> impl Iterator<Item = &'s str> {
    let unit = match state {
        State::Unit(unit) if unit.enabled == Some(true) => Some(unit),
        _ => None,
    };
    let keys = ["WantedBy", "RequiredBy", "UpheldBy"];
    let lists = unit.into_iter().flat_map(move |unit| keys.map(|key| values(unit, key)));
    lists.flatten().flat_map(str::split_whitespace)
}

/// What a unit's text says of a setting, its drop-ins after its file.
fn values<'s>(
    unit: &'s UnitState<'_>,
    key: &'static str,
) -> impl DoubleEndedIterator<Item = &'s str> {
    let settings = texts(unit).flat_map(str::lines).filter_map(|line| line.split_once('='));
    settings.filter(move |(name, _)| name.trim() == key).map(|(_, value)| value.trim())
}

/// The unit's file and its drop-ins, as far as they can be looked at.
fn texts<'s>(unit: &'s UnitState<'_>) -> impl DoubleEndedIterator<Item = &'s str> {
    let text = |content: &'s Content<'_>| match content {
        Content::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
        Content::Absent | Content::Token(_) => None,
    };
    let dropins = unit.dropins.iter().map(|dropin| &dropin.contents);
    std::iter::once(&unit.contents).chain(dropins).filter_map(text)
}

fn warning(
    planned: &PlannedChange,
    change: &Change<'_>,
    (unit, touched, switch): (&str, Touched, Switch),
) -> String {
    let id = &change.id;
    let policy = planned.decided_by.as_ref().map_or("the policy", |by| by.policy.as_str());
    let asked = match touched {
        Touched::No => planned.actions.iter().map(Step::to_string).collect::<Vec<_>>().join(", "),
        Touched::Reloaded => format!("reload {unit}"),
        Touched::Restarted => format!("restart {unit}"),
    };
    match (switch, touched) {
        (Switch::On(what), _) => {
            let but = if touched == Touched::No { "" } else { " that does not run" };
            let sooner = match is_started_by_a_restart(&change.after) {
                true => format!("restart {unit}"),
                false => "a reboot".to_owned(),
            };
            format!(
                "{id} is {what}, and {policy} answers with {asked}, which starts nothing{but}: the \
                 unit is not started before the next boot. If it has to run sooner, have {policy} \
                 answer with {sooner}, or start it by hand (systemctl start {unit})."
            )
        }
        (Switch::Removed, Touched::Reloaded | Touched::Restarted) => format!(
            "{id} is removed, and {policy} answers with {asked}, which does not stop it: \
             where the unit runs, it runs on, and the {action} fails if nothing else brings the \
             unit, which costs a reboot after all. Have {policy} answer with a reboot, or with no \
             action, and stop the unit by hand (systemctl stop {unit}).",
            action = if touched == Touched::Restarted { "restart" } else { "reload" }
        ),
        (Switch::Off(_) | Switch::Removed, _) => {
            let what = if let Switch::Off(what) = switch { what } else { "removed" };
            format!(
                "{id} is {what}, and {policy} answers with {asked}, which does not stop it: \
                 where the unit runs, it runs on until the next boot. If it has to end sooner, have \
                 {policy} answer with a reboot, or stop it by hand (systemctl stop {unit})."
            )
        }
    }
}

#[cfg(test)]
mod tests;
