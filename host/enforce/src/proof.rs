//! Whether a node proved that it is well since its last step. Only the node's own clock counts, so
//! it does not matter if that clock is hours wrong; if it was set back meanwhile, that is reported.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use k8s_openapi::jiff::SignedDuration;
use k8s_openapi::jiff::Timestamp;
use std::time::Duration;
use tread_kube::dated::timestamp;
use tread_model::protocol::Time;

/// A time less than this in the future only means that the kubelet was slow to renew its Lease.
const SLOW: SignedDuration = SignedDuration::from_mins(2);
/// In minutes: a difference between clocks is rounded to this, so that the message stays the same.
const ROUNDED: i64 = 5;

/// Whether a node is Ready, and has been for so long when its kubelet said last that it lives:
/// counted from the end of its last step, by the clock of the node.
pub(crate) fn is_proved(
    node: &Node,
    kubelet: Option<&Lease>,
    ended: Timestamp,
    ready_for: Duration,
) -> bool {
    let Some(since) = ready_since(node, ended) else { return false };
    let renewed = kubelet.and_then(|it| it.spec.as_ref()?.renew_time.as_ref());
    renewed.is_some_and(|renewed| {
        let for_so_long = Duration::try_from(renewed.0.duration_since(since));
        for_so_long.is_ok_and(|it| it >= ready_for)
    })
}

/// Why a node whose clock was set back since then is not proved before the clock has caught up;
/// nothing if it was not set back, or if that cannot be told. `now` is the API server's time, which
/// also stamps the writes of the kubelet's Lease.
pub(crate) fn set_back(
    node: &Node,
    kubelet: Option<&Lease>,
    ended: Timestamp,
    ready_for: Duration,
    now: Time,
) -> Option<String> {
    let (kubelet, since) = (kubelet?, ready_since(node, ended)?);
    let renewed = kubelet.spec.as_ref()?.renew_time.as_ref()?.0;
    let written = kubelet.metadata.managed_fields.iter().flatten();
    let written = written.filter_map(|it| Some(it.time.as_ref()?.0)).max()?;
    let ahead = renewed.duration_since(written);
    let shows = timestamp(now).checked_add(ahead).ok()?;
    if since.duration_since(shows) < SLOW {
        return None;
    }
    let proved = since.checked_add(ready_for).ok()?;
    Some(format!(
        "it is not proved yet: its last step ended, or it became Ready, at {since:.0} by its own clock, which was \
         set back since then ({}); it is proved once that clock is past {proved:.0}",
        difference(ahead)
    ))
}

/// How a clock differs from the API server's.
fn difference(ahead: SignedDuration) -> String {
    let minutes = (ahead.as_secs() + ROUNDED * 30).div_euclid(ROUNDED * 60) * ROUNDED;
    match minutes {
        0 => "it agrees with the API server's now".to_owned(),
        1.. => format!("it is about {minutes} min ahead of the API server's now"),
        _ => format!("it is about {} min behind the API server's now", minutes.unsigned_abs()),
    }
}

/// Since when the node is Ready and its last step over, by its own clock; nothing if it is not Ready.
fn ready_since(node: &Node, ended: Timestamp) -> Option<Timestamp> {
    let ready = ready(node).filter(|it| it.status == "True")?;
    Some(ready.last_transition_time.as_ref().map_or(ended, |at| at.0.max(ended)))
}

fn ready(node: &Node) -> Option<&NodeCondition> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == "Ready")
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
    use serde_json::json;

    #[test]
    fn a_node_is_proved_by_its_kubelet_after_the_last_step() {
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let proved = |status: &str, since: i64, renewed: Option<i64>, ended: i64| {
            let ready = json!({"type": "Ready", "status": status, "lastTransitionTime": at(since)});
            let node = json!({"status": {"conditions": [ready]}});
            let lease = renewed.map(|renewed| json!({"spec": {"renewTime": at(renewed)}}));
            let lease: Option<Lease> = lease.map(|it| serde_json::from_value(it).unwrap());
            let node = serde_json::from_value(node).unwrap();
            is_proved(&node, lease.as_ref(), at(ended), Duration::from_secs(30))
        };
        for (what, is, well) in [
            ("well for long", ("True", -900, Some(31), 0), true),
            ("the kubelet was silent since", ("True", -900, Some(-1), 0), false),
            ("the kubelet lived a while only", ("True", -900, Some(29), 0), false),
            ("it became Ready later", ("True", 20, Some(40), 0), false),
            ("and has been Ready for long", ("True", 20, Some(50), 0), true),
            ("not Ready", ("False", -900, Some(90), 0), false),
            ("not known", ("Unknown", -900, Some(90), 0), false),
            ("no kubelet", ("True", -900, None, 0), false),
        ] {
            assert_eq!(proved(is.0, is.1, is.2, is.3), well, "{what}");
        }
        let ended = at(0);
        assert!(!is_proved(&Node::default(), None, ended, Duration::ZERO));
    }

    /// What is made of a node whose clock was so many seconds ahead when its step ended, and is now,
    /// so many seconds after that.
    fn judged(was: i64, is: i64, after: i64) -> (bool, Option<String>) {
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": at(was - 900)});
        let node: Node =
            serde_json::from_value(json!({"status": {"conditions": [ready]}})).unwrap();
        let written = json!({"manager": "kubelet", "operation": "Update", "time": at(after)});
        let lease = json!({"metadata": {"managedFields": [written]},
            "spec": {"renewTime": MicroTime(at(after + is))}});
        let lease: Lease = serde_json::from_value(lease).unwrap();
        let (ended, ready_for) = (at(was), Duration::from_secs(30));
        let now = tread_kube::dated::time(at(after + 1)).unwrap();
        let back = set_back(&node, Some(&lease), ended, ready_for, now);
        (is_proved(&node, Some(&lease), ended, ready_for), back)
    }

    #[test]
    fn a_clock_that_is_hours_ahead_or_behind_delays_no_proof() {
        for hours in [-30, -5, 0, 5, 30] {
            let off = hours * 3600;
            assert_eq!(judged(off, off, 29), (false, None), "{hours} h");
            assert_eq!(judged(off, off, 30), (true, None), "{hours} h");
        }
    }

    #[test]
    fn a_clock_that_was_set_back_since_the_last_step_is_told_of_with_how_far_it_is_off() {
        for (was, is, says) in [
            (2 * 3600, 0, "agrees with"),
            (0, -2 * 3600, "about 120 min behind"),
            (5 * 3600, 3600 - 7, "about 60 min ahead of"),
        ] {
            let (is_proved, why) = judged(was, is, 600);
            let why = why.unwrap();
            assert!(!is_proved && why.contains(says) && why.contains("set back"), "{why}");
            assert_eq!(judged(was, is, 660).1.as_ref(), Some(&why), "the same each time");
        }
        let (_, why) = judged(2 * 3600, 0, 600);
        assert!(why.unwrap().ends_with("past 2027-01-15T10:00:30Z"));
        // It is over once the clock is there, and a kubelet that is slow is none of this.
        assert_eq!(judged(2 * 3600, 0, 2 * 3600 + 30), (true, None));
        assert_eq!(judged(60, 0, 10), (false, None));
    }
}
