//! How much room there is in the record of claims, and whose claims go where it ends.

use super::bound::Bound;
use std::collections::{BTreeMap, BTreeSet};

/// Before a claim's id; the value says whose it is.
pub(super) const CLAIM: &str = "claim.";
/// What claims may take. The API server stores a megabyte and a half, of which values may be one;
/// what else stands in the record takes 200 kB at most.
pub(super) const ROOM: usize = 1_100_000;
/// Beyond this it is told, and nodes lose their claims that are gone for long.
pub(super) const NEARLY: usize = ROOM / 10 * 8;
/// What each claim takes beside its value and its key. The key counts twice: it stands in the data
/// and, in a record that was just made, in `managedFields` too.
const BESIDES: usize = 16;
/// A node that is gone for so long, in seconds, hardly comes back.
const LONG: u64 = 90 * 24 * 3600;
/// Clocks differ by less, in seconds: a claim that ended so long ago lets nobody in.
const SLACK: u64 = 3600;

/// What a claim takes.
pub(super) fn takes(id: &str, bound: &Bound) -> usize {
    2 * (CLAIM.len() + id.len()) + bound.to_string().len() + BESIDES
}

/// What there is room for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Room<'r> {
    /// The claims that go for it.
    pub(super) goes: BTreeSet<&'r String>,
    /// What all others take then.
    pub(super) taken: usize,
}

/// Which claims are dropped to make room for a new one: only those of nodes that are gone, the
/// longest gone first. If the record is nearly full, only nodes that are gone for long lose theirs;
/// if it is full, the others too. A node that comes now is worth more than one that may come back,
/// which is then held and says why. A claim that has not ended stays, since another node could join
/// by it.
pub(super) fn room(
    claims: &BTreeMap<String, Bound>,
    new: usize,
    is_there: impl Fn(&str) -> bool,
    (now, lasts): (u64, u64),
) -> Room<'_> {
    let mut taken = new + claims.iter().map(|(id, it)| takes(id, it)).sum::<usize>();
    let mut goes = BTreeSet::new();
    if taken <= NEARLY {
        return Room { goes, taken };
    }
    let ended = |since: u64| since.saturating_add(lasts).saturating_add(SLACK) <= now;
    let gone = claims.iter().filter(|(_, it)| !is_there(&it.node));
    let gone = gone.filter_map(|(id, it)| Some((it.gone.filter(|it| ended(*it))?, id, it)));
    let mut gone: Vec<_> = gone.collect();
    gone.sort_by_key(|(since, id, _)| (*since, *id));
    for (since, id, bound) in gone {
        let until = if since.saturating_add(LONG) <= now { NEARLY } else { ROOM };
        if taken <= until {
            break;
        }
        taken -= takes(id, bound);
        goes.insert(id);
    }
    Room { goes, taken }
}

#[cfg(test)]
mod tests {
    use super::super::bound::Stands;
    use super::*;
    use tread_model::joining::Mark;

    const NOW: u64 = 2_000_000_000;
    const DAY: u64 = 24 * 3600;

    /// So many claims, and what is done to the node of each.
    fn claims(count: usize, gone: impl Fn(usize) -> Option<u64>) -> BTreeMap<String, Bound> {
        let one = |at: usize| {
            let name = format!("ip-10-0-{at:08}.eu-central-1.compute.internal");
            let (config, pool) = (Mark::of_config("c"), Mark::of_pool("p"));
            let bound = Bound::new(&name, "u", config, pool);
            let bound = match gone(at) {
                Some(since) => bound.standing(Stands::Gone, since),
                None => bound,
            };
            (format!("{at:016x}"), bound)
        };
        (0..count).map(one).collect()
    }

    fn goes(claims: &BTreeMap<String, Bound>, new: usize) -> (Vec<usize>, bool) {
        let is_there = |node: &str| claims.values().any(|it| it.node == node && it.gone.is_none());
        let room = room(claims, new, is_there, (NOW, DAY));
        let goes = room.goes.iter().map(|id| usize::from_str_radix(id, 16).unwrap());
        (goes.collect(), room.taken <= ROOM)
    }

    #[test]
    fn claims_go_of_nodes_that_are_gone_the_longest_first_and_only_where_there_is_no_room() {
        let one = claims(1, |_| Some(NOW)).iter().map(|(id, it)| takes(id, it)).sum::<usize>();
        // Gone for 200 days, 100 days and two days, and an hour ago.
        let gone = |at: usize| match at {
            0 => Some(NOW - 100 * DAY),
            1 => Some(NOW - 2 * DAY),
            2 => Some(NOW - 3600),
            3 => Some(NOW - 200 * DAY),
            _ => None,
        };
        let few = claims(20, gone);
        assert_eq!(goes(&few, 0), (vec![], true), "there is room");
        let taken = few.iter().map(|(id, it)| takes(id, it)).sum::<usize>();
        let new = |limit: usize, over: usize| limit - taken + over;
        assert_eq!(goes(&few, new(NEARLY, 0)), (vec![], true));
        assert_eq!(goes(&few, new(NEARLY, 1)), (vec![3], true));
        assert_eq!(goes(&few, new(NEARLY, one + 1)), (vec![0, 3], true));
        assert_eq!(goes(&few, new(ROOM, 2 * one)), (vec![0, 3], true));
        assert_eq!(goes(&few, new(ROOM, 2 * one + 1)), (vec![0, 1, 3], true));
        let (all, fits) = goes(&few, new(ROOM, 3 * one + 1));
        assert_eq!((all, fits), (vec![0, 1, 3], false), "a claim that has not ended stays");
    }

    #[test]
    fn six_thousand_nodes_with_long_names_have_room() {
        let all = claims(6000, |_| None);
        let taken = all.iter().map(|(id, it)| takes(id, it)).sum::<usize>();
        assert!(taken < ROOM, "{taken}");
        let values = all.values().map(|it| it.to_string().len()).sum::<usize>();
        assert!(values < 900_000, "{values}");
    }
}
