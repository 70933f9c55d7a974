//! What is pending from before in pools that nobody renders. Their nodes do not say
//! what they have: whoever did not watch them knows what DisruptionPlans say.

use super::described::Described;
use super::names::plan_name;
use super::preview::Preview;
use kube::ResourceExt as _;
use tread_kube::api::disruption_plan::{Cause, CauseEvent, DisruptionPlan};
use tread_kube::api::{POOL_KIND, conditions};
use tread_kube::clean::{clean, cleaned};
use tread_model::effect::Effect;
use tread_model::text::and_more;

/// How many plans a note names.
const NAMED: usize = 3;
const LONGEST_NOTE: usize = 1024;

/// Why it is not known what becomes of nodes.
pub const IN_THE_CLUSTER_ALREADY: &str = "nobody renders for this pool, and its nodes do not say what they have: the cluster holds this \
     already, and no DisruptionPlan says whether the nodes do";

/// A plan that stands in the cluster, if it is not known to be over.
pub fn standing(object: DisruptionPlan) -> Option<Described> {
    let name = clean(&object.name_any());
    let status = cleaned(object.status.unwrap_or_default());
    let pending = status.conditions.iter().find(|it| it.type_ == "Pending");
    if pending.is_some_and(|it| it.status == "False") {
        return None;
    }
    // One that says nothing may be anything.
    let effect = status.transitions.iter().map(|way| way.effect.unwrap_or(Effect::Reboot));
    let effect = effect.max().unwrap_or(Effect::Reboot);
    Some(Described {
        name,
        pool: object.spec.pool,
        cause: object.spec.cause,
        effect,
        happens: vec![(effect, status.nodes.unwrap_or_default())],
        reasons: vec![status.because.clone()],
        left_out: Default::default(),
        status,
    })
}

/// The plans of a preview with what is pending besides; the last of several is that
/// of all of them, as harsh as the harshest.
pub(super) fn counted(plans: Vec<Described>, preview: &Preview) -> Vec<Described> {
    let Some(earlier) = &preview.earlier else { return plans };
    let note = note(earlier);
    let is_whole = |plan: &Described| plan.cause.kind == POOL_KIND;
    let (mut wholes, mut all): (Vec<_>, Vec<_>) = plans.into_iter().partition(is_whole);
    for plan in earlier.iter().cloned() {
        let same = |it: &&mut Described| {
            (&it.cause.kind, &it.cause.name) == (&plan.cause.kind, &plan.cause.name)
        };
        match all.iter_mut().find(same) {
            _ if is_whole(&plan) => wholes.push(plan),
            Some(own) if own.effect >= plan.effect && is_planned(own) => {}
            Some(own) => *own = plan,
            None => all.push(plan),
        }
    }
    // Of plans that are alike the last one counts: that of all that is asked about.
    let harshest = all.iter().chain(wholes.iter().rev()).max_by_key(|plan| plan.effect).cloned();
    if let Some(mut whole) = harshest.filter(|_| all.len() > 1) {
        let (pool, since) = (&preview.work.pool, &preview.work.since);
        let (kind, name) = (POOL_KIND.to_owned(), pool.name.clone());
        whole.cause = Cause { kind, name, event: CauseEvent::Rollout };
        whole.name = plan_name(pool, &whole.cause, since);
        whole.status.cause = Some(clean(&whole.cause.to_string()));
        all.push(whole);
    }
    for way in all.iter_mut().flat_map(|plan| &mut plan.status.transitions) {
        way.warnings.insert(0, note.clone().into());
    }
    all
}

fn is_planned(plan: &Described) -> bool {
    let planned = plan.status.conditions.iter().find(|it| it.type_ == "Planned");
    planned.is_none_or(|it| it.status == "True")
}

fn note(earlier: &[Described]) -> String {
    let named = earlier.iter().take(NAMED).map(|plan| {
        let effect = plan.status.effect.clone().unwrap_or_else(|| plan.effect.to_string());
        format!("{} ({effect})", plan.name)
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let pending = match earlier.len() {
        0 => "no DisruptionPlan is pending from before".to_owned(),
        count => format!("pending from before: {named}{}", and_more(count, NAMED)),
    };
    conditions::cut(
        format!(
            "It is not known what these nodes have: nobody renders for this pool, and they do not \
             say it. This counts from what the pool is made of now; {pending}."
        ),
        LONGEST_NOTE,
    )
}
