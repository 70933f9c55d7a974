//! Since when marks of others are seen of which nobody says since when they are there.

use super::facts::Facts;
use super::known::Moment;
use std::collections::BTreeMap;
use std::sync::Arc;
use tread_kube::held::Mark;
use tread_model::protocol::{HeldBy, Time};

/// The mark by which somebody else has a node, on it or on an object about it. Its cordon comes
/// last: others say more, and often belong to it.
pub(crate) fn mark<'m>(name: &str, facts: &'m Facts, moment: &'m Moment) -> Option<&'m Arc<Mark>> {
    let on_it = facts.mark.as_ref();
    on_it.filter(|mark| mark.by != HeldBy::Cordon).or_else(|| moment.marks.get(name)).or(on_it)
}

/// Since when marks are seen that do not say it themselves, by node.
#[derive(Debug, Default)]
pub(crate) struct Sightings(BTreeMap<String, (Arc<Mark>, Time)>);

impl Sightings {
    /// Looks which of them are there now.
    pub(crate) fn look(&mut self, moment: &Moment, now: Time) {
        let mut before = std::mem::take(&mut self.0);
        for (name, facts) in moment.nodes.iter() {
            let mark = mark(name, facts, moment).filter(|mark| !mark.says_since());
            let Some(mark) = mark else { continue };
            let known = before.remove(name).filter(|(known, _)| known == mark);
            let since = known.map_or(now, |(_, since)| since);
            self.0.insert(name.clone(), (Arc::clone(mark), since));
        }
    }

    /// Since when a mark of a node is seen.
    pub(crate) fn since(&self, name: &str, mark: &Arc<Mark>) -> Option<Time> {
        let (known, since) = self.0.get(name)?;
        (known == mark).then_some(*since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::time::Duration;

    fn at(second: u64) -> Time {
        Time(Duration::from_secs(second))
    }

    fn moment(nodes: &[(&str, Value)]) -> Moment {
        let facts = nodes.iter().map(|(name, spec)| {
            let node = serde_json::from_value(json!({"spec": spec})).unwrap();
            ((*name).to_owned(), Arc::new(Facts::of(&node)))
        });
        Moment { nodes: Arc::new(facts.collect()), ..Moment::empty() }
    }

    #[test]
    fn a_mark_that_does_not_say_since_when_it_is_there_is_seen_since_the_first_look() {
        let karpenters = || json!({"taints": [{"key": "karpenter.sh/disrupted", "effect": "x"}]});
        let cordoned = || json!({"unschedulable": true});
        let mut sightings = Sightings::default();
        let mut since = |nodes: &[(&str, Value)], now: u64| -> Vec<Option<Time>> {
            let moment = moment(nodes);
            sightings.look(&moment, at(now));
            let of = |(name, facts): (&String, &Arc<Facts>)| {
                sightings.since(name, mark(name, facts, &moment)?)
            };
            moment.nodes.iter().map(of).collect()
        };
        assert_eq!(since(&[("a", karpenters()), ("b", json!({}))], 1), [Some(at(1)), None]);
        let both = [("a", karpenters()), ("b", cordoned())];
        assert_eq!(since(&both, 2), [Some(at(1)), Some(at(2))]);
        assert_eq!(since(&both, 3), [Some(at(1)), Some(at(2))]);
        assert_eq!(since(&[("a", cordoned())], 4), [Some(at(4))], "it is another one");
        assert_eq!(since(&both[1..], 5), [Some(at(5))], "it went, and came again");
        let noted = json!({"taints": [{"key": "karpenter.sh/disrupted", "effect": "x",
            "timeAdded": "2026-10-21T07:00:00Z"}]});
        assert_eq!(since(&[("a", noted)], 6), [None], "it says so itself");
    }

    #[test]
    fn an_object_about_a_node_says_more_than_its_cordon_and_less_than_another_mark() {
        let object = json!({"metadata": {"name": "disk"}, "spec": {"nodeName": "a"}});
        let object = Mark::of_maintenance(&serde_json::from_value(object).unwrap());
        let by = |spec: Value| {
            let mut moment = moment(&[("a", spec)]);
            moment.marks.insert("a".to_owned(), Arc::new(object.clone()));
            mark("a", &moment.nodes["a"], &moment).map(|mark| mark.by)
        };
        assert_eq!(by(json!({})), Some(HeldBy::Maintenance));
        assert_eq!(by(json!({"unschedulable": true})), Some(HeldBy::Maintenance));
        let drained = json!({"unschedulable": true,
            "taints": [{"key": "medik8s.io/drain", "effect": "NoSchedule"}]});
        assert_eq!(by(drained), Some(HeldBy::Drain));
    }
}
