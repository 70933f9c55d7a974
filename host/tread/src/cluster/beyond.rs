//! What is more disruptive than `--max` lets pass, and what is refused: every pool, and every
//! change.

use std::collections::BTreeMap;
use tread_cluster::previews::Described;
use tread_console::sentence::sentence;
use tread_kube::api::POOL_KIND;
use tread_model::effect::Effect;
use tread_model::text::and_more_of;

/// How many changes of a pool are named besides the costliest.
const NAMED: usize = 8;
/// How many pools are named.
const POOLS: usize = 20;

/// All that is beyond it, of the plans of each pool.
pub(super) fn in_words(pools: &[Vec<&Described>], max: Effect) -> String {
    let said = pools.iter().filter_map(|plans| of_pool(plans, max)).collect();
    under(&format!("more disruptive than --max {max}:"), said)
}

/// What is refused of the plans of each pool, and why.
pub(super) fn refused(pools: &[Vec<&Described>]) -> String {
    under("refused:", pools.iter().filter_map(|plans| refused_of(plans)).collect())
}

/// One line, or one for each pool.
fn under(title: &str, mut said: Vec<String>) -> String {
    let more = and_more_of(said.len(), POOLS, "pools");
    said.truncate(POOLS);
    if !more.is_empty() {
        said.push(more.trim_start().to_owned());
    }
    match said.as_slice() {
        [one] => format!("{title} {one}"),
        all => format!("{title}\n  {}", all.join("\n  ")),
    }
}

fn refused_of(plans: &[&Described]) -> Option<String> {
    // The last one: a plan for a single change rather than the one for all of them.
    let plan = plans.iter().rfind(|plan| plan.effect == Effect::Refuse)?;
    let mut changes = plan.status.transitions.iter().flat_map(|way| &way.changes);
    let why = changes.find(|change| change.effect() == Effect::Refuse).map(|change| {
        let said =
            format!("{} {}", sentence(&change.reason), change.advice.as_deref().unwrap_or(""));
        format!(": {}: {}", change.id, said.trim_end())
    });
    Some(format!("pool {}{}", plan.pool, why.unwrap_or_default()))
}

fn of_pool(plans: &[&Described], max: Effect) -> Option<String> {
    let beyond = plans.iter().filter(|plan| plan.effect > max);
    // Of equals the last one: a plan for a single change rather than the one for all of them.
    let worst = beyond.max_by_key(|plan| plan.effect)?;
    let mut changes: Vec<(&str, Effect)> = changes(plans, max).into_iter().collect();
    let head = changes_of(worst).into_iter().find(|(_, effect)| *effect == worst.effect);
    if let Some((id, _)) = head {
        changes.retain(|(other, _)| *other != id);
    }
    changes.sort_by_key(|(_, effect)| std::cmp::Reverse(*effect));
    let mut said = format!("pool {}: this is a {}{}", worst.pool, worst.effect, costliest(worst));
    if !changes.is_empty() {
        let named = changes.iter().take(NAMED).map(|(id, effect)| {
            let of = brought_by(plans, id);
            format!("{id} ({effect}{of})")
        });
        let named = named.collect::<Vec<_>>().join(", ");
        let more = and_more_of(changes.len(), NAMED, "changes");
        said.push_str(&format!("\n    beyond it too: {named}{more}"));
    }
    Some(said)
}

/// The change that costs most, and who could make it cost less.
fn costliest(plan: &Described) -> String {
    // Beside OpenShift's operator it is the operator that does it.
    if let (Some(because), Some(tread)) = (&plan.status.because, &plan.status.tread) {
        return format!(", because of {because}, by OpenShift's operator; tread would do: {tread}");
    }
    let ways = plan.status.transitions.iter().filter(|way| way.effect == Some(plan.effect));
    // The most disruptive changes come first.
    let Some(change) = ways.flat_map(|way| &way.changes).next() else { return String::new() };
    match &change.advice {
        Some(advice) => format!(", because of {}. {advice}", change.id),
        None => format!(", because of {}: {}", change.id, change.reason),
    }
}

/// What each change of a plan costs, by whoever rolls it out.
fn changes_of(plan: &Described) -> Vec<(&str, Effect)> {
    let ways = &plan.status.transitions;
    if plan.status.tread.is_some() {
        let all = ways.iter().flat_map(|way| &way.operator_because);
        return all.map(|it| (it.id.as_str(), it.effect)).collect();
    }
    let all = ways.iter().flat_map(|way| &way.changes);
    all.map(|it| (it.id.as_str(), it.effect())).collect()
}

/// The changes of a pool that are beyond it, each once.
fn changes<'p>(plans: &[&'p Described], max: Effect) -> BTreeMap<&'p str, Effect> {
    let mut found = BTreeMap::new();
    for (id, effect) in plans.iter().flat_map(|plan| changes_of(plan)) {
        if effect > max {
            let most: &mut Effect = found.entry(id).or_insert(effect);
            *most = effect.max(*most);
        }
    }
    found
}

/// The objects that bring a change, where several are changed.
fn brought_by(plans: &[&Described], id: &str) -> String {
    let own: Vec<_> = plans.iter().filter(|plan| plan.cause.kind != POOL_KIND).collect();
    if own.len() < 2 {
        return String::new();
    }
    let by = own.iter().filter(|plan| changes_of(plan).iter().any(|(other, _)| *other == id));
    by.map(|plan| format!(", {}/{}", plan.cause.kind, plan.cause.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tread_kube::api::disruption_plan::Cause;

    /// The plan of a pool for an object with these changes, each with its action.
    fn plan(pool: &str, cause: (&str, &str), changes: &[(&str, &str)]) -> Described {
        let changes: Vec<Value> = changes
            .iter()
            .map(|(id, action)| {
                let (verdict, actions) = match *action {
                    "" => ("decided", json!([])),
                    "refuse" => ("refused", json!([])),
                    action => ("decided", json!([{"do": action}])),
                };
                json!({"id": id, "edit": "added", "verdict": verdict, "reason": "so it is",
                    "actions": actions})
            })
            .collect();
        let mut status: tread_kube::api::DisruptionPlanStatus =
            serde_json::from_value(json!({"transitions": [{
                "from": "a", "to": "b", "nodes": {"count": 1}, "outcome": "apply", "summary": "",
                "changes": changes}]}))
            .unwrap();
        let ways = &status.transitions;
        let effects = ways.iter().flat_map(|way| &way.changes).map(|it| it.effect());
        let effect = effects.max().unwrap_or(Effect::None);
        for way in &mut status.transitions {
            way.effect = Some(effect);
        }
        let (kind, name) = cause;
        Described {
            name: name.to_owned(),
            pool: pool.to_owned(),
            cause: Cause { kind: kind.to_owned(), name: name.to_owned(), ..Cause::default() },
            effect,
            status,
            happens: Vec::new(),
            reasons: Vec::new(),
            left_out: Default::default(),
        }
    }

    #[test]
    fn every_change_and_every_pool_that_is_beyond_it_is_named() {
        let mc = |name| ("MachineConfig", name);
        let whole = plan("worker", (POOL_KIND, "worker"), &[("a", "reboot"), ("b", "reboot")]);
        let a = plan("worker", mc("50-a"), &[("a", "reboot")]);
        let b = plan("worker", mc("60-b"), &[("b", "reboot"), ("c", "restart"), ("d", "")]);
        let infra = plan("infra", mc("70-c"), &[("e", "drain"), ("f", "reload")]);
        let gentle = plan("gentle", mc("80-d"), &[("g", "reload")]);
        let text = in_words(&[vec![&whole, &a, &b], vec![&infra], vec![&gentle]], Effect::Reload);
        assert_eq!(
            text,
            "more disruptive than --max reload:\
             \n  pool worker: this is a reboot, because of b: so it is\
             \n    beyond it too: a (reboot, MachineConfig/50-a), c (restart, MachineConfig/60-b)\
             \n  pool infra: this is a drain, because of e: so it is"
        );
        let one = in_words(&[vec![&a], vec![&gentle]], Effect::Restart);
        assert_eq!(
            one,
            "more disruptive than --max restart: pool worker: this is a reboot, because of a: so it is"
        );
    }

    #[test]
    fn what_is_refused_is_named_with_its_reason() {
        let refused =
            plan("worker", ("MachineConfig", "50-a"), &[("a", "reload"), ("b", "refuse")]);
        let gentle = plan("gentle", ("MachineConfig", "80-d"), &[("g", "reload")]);
        let text = super::refused(&[vec![&gentle], vec![&refused]]);
        assert_eq!(text, "refused: pool worker: b: So it is.");
    }

    #[test]
    fn what_is_too_much_to_name_is_counted() {
        let ids: Vec<String> = (0..30).map(|number| format!("file:/{number:02}")).collect();
        let many: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "reboot")).collect();
        let plans: Vec<Described> = (0..POOLS + 3)
            .map(|number| plan(&format!("pool-{number}"), ("MachineConfig", "a"), &many))
            .collect();
        let pools: Vec<Vec<&Described>> = plans.iter().map(|plan| vec![plan]).collect();
        let text = in_words(&pools, Effect::None);
        assert!(text.ends_with("\n  and 3 more pools"), "{text}");
        assert_eq!(text.matches(" and 21 more changes").count(), POOLS, "{text}");
    }
}
