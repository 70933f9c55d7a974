//! Not more plans than somebody reads: of hundreds of changes that are pending
//! together, those that cost most have plans of their own.

use super::described::Described;
use super::object::{self, Own, described};
use super::preview::Preview;
use k8s_openapi::jiff::Timestamp;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use tread_kube::api::POOL_KIND;
use tread_model::digest::Digest;

/// So many causes of a pool have plans of their own.
pub const MOST_CAUSES: usize = 20;

/// The plans of a preview without those that are too many, which are not even
/// made. The last one, which is that for all changes together, says how many
/// these are.
pub fn limited(preview: &Preview, inputs: Digest, now: Timestamp) -> Vec<Described> {
    let mut parts = object::parts(preview);
    let all = parts.len();
    let name = |(part, _): &Own<'_>| object::name(&preview.work, &part.cause);
    let is_whole = parts.last().is_some_and(|(part, _)| part.cause.kind == POOL_KIND);
    let own = all.saturating_sub(usize::from(is_whole));
    let mut left_out = BTreeSet::new();
    if own > MOST_CAUSES {
        let order = parts.iter().take(own);
        let mut order: Vec<_> =
            order.map(|part| (Reverse(object::effect(preview, part.1)), name(part))).collect();
        order.sort_unstable();
        left_out = order.into_iter().skip(MOST_CAUSES).map(|(_, name)| name).collect();
        parts.retain(|part| !left_out.contains(&name(part)));
    }
    let mut plans = described(preview, parts, all, (inputs, now));
    if let Some(last) = plans.last_mut().filter(|_| !left_out.is_empty()) {
        let more = left_out.len();
        let covered = if is_whole { ": this one says what all of them do" } else { "" };
        let changes = if more == 1 { "change has" } else { "changes have" };
        let said = format!(
            "{more} more pending {changes} no plan of their own, the {MOST_CAUSES} that cost most \
             have{covered}."
        );
        for way in &mut last.status.transitions {
            way.warnings.insert(0, said.clone().into());
        }
        last.left_out = left_out;
    }
    plans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::previews::Part;
    use crate::previews::warning::tests::preview;
    use std::sync::Arc;
    use tread_kube::api::disruption_plan::{Cause, CauseEvent};
    use tread_model::effect::Effect;
    use tread_model::plan::PlannedChange;

    /// So many causes, each of a change that costs nothing; the last ones of one
    /// that reboots.
    fn pending(causes: usize, reboots: usize) -> Preview {
        let mut all = preview("worker", 3, false, None);
        let harsh = preview("worker", 3, true, None);
        let change = |of: &Preview, number: usize| {
            let change = of.ways[0].plan.as_ref().unwrap().plan.changes[0].clone();
            PlannedChange { id: format!("file:/{number}"), ..change }
        };
        let gentle = causes - reboots;
        let changes = (0..causes)
            .map(|number| change(if number < gentle { &all } else { &harsh }, number))
            .collect();
        Arc::make_mut(&mut all.ways[0].plan.as_mut().unwrap().plan).changes = changes;
        let part = |number: usize| Part {
            cause: Cause {
                kind: "MachineConfig".to_owned(),
                name: format!("{number:03}"),
                event: CauseEvent::Created,
            },
            body: None,
            mirrors: false,
        };
        all.work.parts = (0..causes).map(part).collect();
        all.ids = (0..causes).map(|number| Some([format!("file:/{number}")].into())).collect();
        all
    }

    fn chosen(preview: &Preview) -> Vec<Described> {
        limited(preview, Digest::of(b""), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn as_many_as_there_is_room_for_are_all_that_there_are() {
        let preview = pending(MOST_CAUSES, 1);
        let all = object::describe(&preview, Digest::of(b""), Timestamp::UNIX_EPOCH);
        assert_eq!(chosen(&preview), all);
        assert_eq!((all.len(), all[MOST_CAUSES].cause.kind.as_str()), (MOST_CAUSES + 1, POOL_KIND));
    }

    #[test]
    fn those_that_cost_most_stay_and_the_last_one_counts_the_others() {
        let left = chosen(&pending(MOST_CAUSES + 4, 1));
        assert_eq!(left.len(), MOST_CAUSES + 1);
        let harsh = left.iter().find(|plan| plan.cause.name == "023").unwrap();
        assert_eq!(harsh.effect, Effect::Reboot);
        let others = harsh.status.transitions[0].warnings[0].as_str();
        let said = format!("together with {} other pending changes", MOST_CAUSES + 3);
        assert!(others.contains(&said), "{others}");
        let last = left.last().unwrap();
        assert_eq!((last.cause.kind.as_str(), last.left_out.len()), (POOL_KIND, 4));
        let said = last.status.transitions[0].warnings[0].as_str();
        assert!(said.starts_with("4 more pending changes have no plan of their own"), "{said}");
        assert!(said.ends_with("this one says what all of them do."), "{said}");
        assert!(left.iter().all(|plan| !last.left_out.contains(&plan.name)));
        let all = pending(MOST_CAUSES + 4, 1);
        let all = object::describe(&all, Digest::of(b""), Timestamp::UNIX_EPOCH);
        assert!(last.left_out.iter().all(|name| all.iter().any(|plan| plan.name == *name)));
    }

    #[test]
    fn where_nothing_can_be_told_there_are_no_more_either() {
        let mut preview = pending(MOST_CAUSES + 1, 0);
        preview.ways[0].plan = Err("it is gone".to_owned().into());
        preview.ids = vec![None; MOST_CAUSES + 1];
        let left = chosen(&preview);
        assert_eq!(left.len(), MOST_CAUSES);
        let said = left.last().unwrap().status.transitions[0].warnings[0].as_str();
        assert!(said.starts_with("1 more pending change has no plan"), "{said}");
    }

    #[test]
    fn what_the_plans_of_many_causes_say_of_a_way_is_held_once() {
        let mut preview = pending(MOST_CAUSES, 0);
        let plan = Arc::make_mut(&mut preview.ways[0].plan.as_mut().unwrap().plan);
        plan.warnings = vec!["x".repeat(1000); 1000];
        let ids: BTreeSet<String> = plan.changes.iter().map(|it| it.id.clone()).collect();
        // What nobody says anything of any more is of all of them.
        preview.ids = vec![Some(ids); MOST_CAUSES];
        let plans = chosen(&preview);
        let first = &plans[0].status.transitions[0];
        for way in plans.iter().map(|plan| &plan.status.transitions[0]) {
            assert_eq!(way.changes.len(), MOST_CAUSES);
            assert!(std::ptr::eq(&*way.changes[0], &*first.changes[0]));
            let last = way.warnings.last().unwrap();
            assert!(std::ptr::eq(&**last, &**first.warnings.last().unwrap()));
            assert!(way.warnings.len() <= 22 && way.warnings_left_out == 980);
        }
    }
}
