use super::*;
use crate::pools::Node;
use serde_json::json;
use std::time::Duration;
use tread_model::protocol::HeldBy;

fn lease(name: &str, holder: &str) -> Lease {
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": node_lease::NAMESPACE},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 3600,
            "acquireTime": "2026-10-21T07:00:00.000000Z",
            "renewTime": "2026-10-21T07:00:00.000000Z"},
    }))
    .unwrap()
}

fn at(hour: u64) -> Time {
    // 2026-10-21T00:00:00Z
    Time(Duration::from_secs(1_792_540_800 + hour * 3600))
}

#[test]
fn a_nodes_lease_says_more_than_an_object_and_that_more_than_a_mark() {
    let leases = [lease("node-a", "one"), lease("node-b", "tread/1"), lease("node-c", "two")];
    let maintained: BTreeMap<String, String> =
        [("m1", "a"), ("m2", "b"), ("m3", "b")].map(|(a, b)| (a.to_owned(), b.to_owned())).into();
    let flags = Flags::of(&leases, &maintained, at(7));
    let mut marked = Member::default();
    marked.node = Node { held: Some(HeldBy::Cordon), ..Node::default() };
    let plain = Member::default();
    let why = |name: &str, member: &Member| flags.why(name, member);
    assert!(why("a", &marked).unwrap().starts_with("Lease medik8s-leases/node-a held by one"));
    assert_eq!(why("b", &marked).as_deref(), Some("NodeMaintenance m2"), "tread's own is none");
    assert_eq!(why("d", &marked).as_deref(), Some("somebody cordoned it"));
    assert_eq!(why("d", &plain), None);
    // Later the Leases have ended.
    let later = Flags::of(&leases, &maintained, at(9));
    assert!(flags.has_leases() && !later.has_leases());
    assert_eq!(later.why("a", &plain).as_deref(), Some("NodeMaintenance m1"));
    let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(later.differ_from(&flags), names(&["a", "c"]));
    assert_eq!(flags.differ_from(&Flags::default()), names(&["a", "b", "c"]));
    assert!(flags.differ_from(&flags.clone()).is_empty());
}

#[test]
fn as_many_nodes_are_named_as_a_line_has_room_for() {
    let flagged = |count: usize, why: usize| -> Vec<Flagged> {
        (0..count).map(|at| (format!("node-{at:02}"), "w".repeat(why))).collect()
    };
    let line = |flagged: &[Flagged]| line("worker", flagged, 256);
    assert_eq!(line(&[]), None);
    assert_eq!(
        line(&flagged(1, 3)).unwrap(),
        "tread: 1 node of pool worker is flagged for maintenance: node-00 (www)"
    );
    let two = line(&flagged(2, 3)).unwrap();
    assert!(two.ends_with("are flagged for maintenance: node-00 (www), node-01 (www)"), "{two}");
    let some = line(&flagged(40, 60)).unwrap();
    assert!(
        some.starts_with("tread: 40 nodes of pool worker") && some.ends_with(" more"),
        "{some}"
    );
    assert!(some.contains("node-00 (www"), "{some}");
    let long = line(&flagged(40, 250)).unwrap();
    assert!(long.contains("node-00, node-01") && long.ends_with(" and 30 more"), "{long}");
    for (count, why) in [(1, 0), (1, 300), (3, 100), (40, 60), (40, 250), (5_000, 20)] {
        let said = line(&flagged(count, why)).unwrap();
        assert!(said.chars().count() <= 256, "{said}");
    }
    let odd = [("n".repeat(253), "w".to_owned())];
    assert_eq!(line(&odd).unwrap(), "tread: 1 node of pool worker is flagged for maintenance");
}
