//! Units that a change turns on or off, where what is decided on it starts or stops nothing.

use super::schema::{Plan, PlanOutcome, PlannedChange};
use super::steps::CA_TRUST_UNIT;
use crate::change::{Change, Content, State, UnitState};
use crate::verdict::Action;

/// What a change does to a unit, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Switch {
    On(&'static str),
    Off(&'static str),
    Removed,
}

/// A warning for each unit that is turned on or off, and is only reloaded or restarted for that: a node
/// neither reloads nor restarts what does not run, and a unit that is disabled, masked or removed goes on
/// running.
pub fn warnings_of_units(plan: &Plan, changes: &[Change<'_>]) -> Vec<String> {
    if plan.outcome != PlanOutcome::Apply || plan.reboot {
        return Vec::new();
    }
    let warnings = changes.iter().filter_map(|change| {
        let unit = change.id.strip_prefix("unit:")?;
        let at = plan.changes.binary_search_by(|it| it.id.as_str().cmp(&change.id)).ok()?;
        let planned = plan.changes.get(at)?;
        let touched = only_touched(&planned.decided, unit)?;
        let switch = switch(&change.before, &change.after)?;
        let starts = touched == Touched::Restarted && is_started_by_a_restart(&change.after);
        let is_needless = starts && matches!(switch, Switch::On(_));
        (!is_needless).then(|| warning(planned, unit, touched, switch))
    });
    warnings.collect()
}

/// What is done to the unit itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Touched {
    Reloaded,
    Restarted,
}

/// None if that is nothing, or not all: another unit may start or stop this one with it.
fn only_touched(actions: &[Action], unit: &str) -> Option<Touched> {
    let mut touched = None;
    for action in actions {
        match action {
            Action::Restart(own) if own == unit && own != CA_TRUST_UNIT => {
                touched = Some(Touched::Restarted);
            }
            Action::Reload(own) if own == unit && own != CA_TRUST_UNIT => {
                touched = touched.or(Some(Touched::Reloaded));
            }
            Action::DaemonReload | Action::Drain => {}
            Action::Restart(_) | Action::Reload(_) | Action::Reboot | Action::RebootUndrained => {
                return None;
            }
        }
    }
    touched
}

fn switch(before: &State<'_>, after: &State<'_>) -> Option<Switch> {
    let is_whole = |unit: &UnitState<'_>| unit.contents != Content::Absent;
    match (before, after) {
        (State::Absent, State::Unit(new)) => match (new.masked, is_whole(new), new.enabled) {
            (true, ..) => Some(Switch::Off("masked")),
            (_, true, Some(false)) => None,
            (_, true, _) => Some(Switch::On("new")),
            (_, false, Some(true)) => Some(Switch::On("enabled")),
            (_, false, Some(false)) => Some(Switch::Off("disabled")),
            (_, false, None) => None,
        },
        (State::Unit(old), State::Absent) if old.masked => Some(Switch::On("unmasked")),
        (State::Unit(old), State::Absent) => is_whole(old).then_some(Switch::Removed),
        (State::Unit(old), State::Unit(new)) => match (old.masked, new.masked) {
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

/// Whether a restart starts the unit also where it does not run: one that runs once, and is over then.
fn is_started_by_a_restart(state: &State<'_>) -> bool {
    let State::Unit(unit) = state else { return false };
    let remains = last_value(unit, "RemainAfterExit").unwrap_or_default();
    let remains = matches!(&*remains.to_ascii_lowercase(), "1" | "yes" | "y" | "true" | "t" | "on");
    last_value(unit, "Type") == Some("oneshot") && !remains
}

/// What a unit's text says last of a setting, its drop-ins after its file.
fn last_value<'s>(unit: &'s UnitState<'_>, key: &str) -> Option<&'s str> {
    let text = |content: &'s Content<'_>| match content {
        Content::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
        Content::Absent | Content::Token(_) => None,
    };
    let dropins = unit.dropins.iter().map(|dropin| &dropin.contents);
    let texts = std::iter::once(&unit.contents).chain(dropins).filter_map(text);
    let mut settings = texts.flat_map(str::lines).filter_map(|line| line.split_once('='));
    settings.rfind(|(name, _)| name.trim() == key).map(|(_, value)| value.trim())
}

fn warning(change: &PlannedChange, unit: &str, touched: Touched, switch: Switch) -> String {
    let id = &change.id;
    let policy = change.decided_by.as_ref().map_or("the policy", |by| by.policy.as_str());
    let asked = match touched {
        Touched::Reloaded => "reload",
        Touched::Restarted => "restart",
    };
    match switch {
        Switch::On(what) => format!(
            "{id} is {what}, and {policy} answers with {asked} {unit}, which starts nothing that \
             does not run: the unit is not started before the next boot. If it has to run sooner, \
             have {policy} answer with a reboot, or start it by hand (systemctl start {unit})."
        ),
        Switch::Off(what) => format!(
            "{id} is {what}, and {policy} answers with {asked} {unit}, which does not stop it: \
             where the unit runs, it runs on until the next boot. If it has to end sooner, have \
             {policy} answer with a reboot, or stop it by hand (systemctl stop {unit})."
        ),
        Switch::Removed => format!(
            "{id} is removed, and {policy} answers with {asked} {unit}, which does not stop it: \
             where the unit runs, it runs on, and the {asked} fails if nothing else brings the \
             unit, which costs a reboot after all. Have {policy} answer with a reboot, or with no \
             action, and stop the unit by hand (systemctl stop {unit})."
        ),
    }
}

#[cfg(test)]
mod tests;
