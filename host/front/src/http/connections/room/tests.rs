use super::*;

type Held = (Room, oneshot::Receiver<()>);

fn bounded(common: usize, probes: usize) -> Bounded {
    let most = Most { common, of_peer: common / 4, of_node: 2, probes };
    Bounded::new(most, &Metrics::new(), "plain")
}

fn peer(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

fn is_open((_, ends): &mut Held) -> bool {
    ends.try_recv() == Err(oneshot::error::TryRecvError::Empty)
}

fn counted(bounded: &Bounded, how: &'static str) -> u64 {
    bounded.metrics.turned_away.get_or_create(&Turned { port: "plain", how }).get()
}

#[test]
fn one_peer_has_a_quarter_at_most_and_its_own_silent_ones_make_way_for_more() {
    let bounded = bounded(8, 0);
    let mut first = bounded.room(peer(1)).unwrap();
    let mut second = bounded.room(peer(1)).unwrap();
    let mut third = bounded.room(peer(1)).unwrap();
    assert_eq!(
        [&mut first, &mut second, &mut third].map(is_open),
        [false, true, true],
        "the oldest makes way"
    );
    assert_eq!(bounded.lock().all.len(), 2);
    // Those that are being answered do not.
    for held in [&second, &third] {
        held.0.asked(|asked| asked + 1);
    }
    assert!(bounded.room(peer(1)).is_none());
    assert!(bounded.room(peer(2)).is_some());
    assert_eq!((counted(&bounded, "closed"), counted(&bounded, "refused")), (1, 1));
    drop((first, second, third));
    assert!(bounded.lock().all.is_empty(), "nothing is left of what ended");
}

#[test]
fn silent_connections_of_many_peers_keep_nobody_out() {
    let bounded = bounded(8, 2);
    let mut silent: Vec<Held> = (0..4)
        .flat_map(|last| [last, last])
        .map(|last| bounded.room(peer(last)).unwrap())
        .collect();
    let new = bounded.room(peer(99)).unwrap();
    assert_eq!(new.0.place, Place::Common);
    assert_eq!(silent.iter_mut().map(is_open).filter(|open| !open).count(), 1);
    assert!(!is_open(&mut silent[0]), "the oldest makes way");
}

#[test]
fn where_all_are_being_answered_there_is_room_for_probes_and_for_nothing_else() {
    let bounded = bounded(8, 2);
    let answered: Vec<Held> = (0..8).map(|last| bounded.room(peer(last / 2)).unwrap()).collect();
    answered.iter().for_each(|held| held.0.asked(|asked| asked + 1));
    let mut probes: Vec<Held> = (0..2).map(|_| bounded.room(peer(99)).unwrap()).collect();
    assert!(probes.iter().all(|held| held.0.place == Place::Probes));
    let third = bounded.room(peer(98)).unwrap();
    assert_eq!(third.0.place, Place::Probes);
    assert!(!is_open(&mut probes[0]) && is_open(&mut probes[1]));
    for held in [&probes[1], &third] {
        held.0.asked(|asked| asked + 1);
    }
    assert!(bounded.room(peer(97)).is_none());
    // One that was answered is silent again.
    answered[3].0.asked(|asked| asked - 1);
    assert_eq!(bounded.room(peer(97)).unwrap().0.place, Place::Common);
}

#[test]
fn one_node_has_a_few_connections_and_no_peer_has_to_answer_for_those_of_known_nodes() {
    let bounded = bounded(16, 0);
    let mut held: Vec<Held> = Vec::new();
    // More nodes behind one address than it may have connections that are of no node.
    for node in ["a", "b", "c", "d"] {
        for _ in 0..2 {
            let new = bounded.room(peer(1)).unwrap();
            new.0.asked(|asked| asked + 1);
            assert!(new.0.is_of(node));
            assert!(new.0.is_of(node), "the next question on it");
            held.push(new);
        }
    }
    assert!(held.iter_mut().all(is_open));
    // All of them are being answered: one more of the node is refused, and none of another one.
    let more = bounded.room(peer(2)).unwrap();
    assert!(!more.0.is_of("a"));
    assert!(more.0.is_of("e"));
    assert_eq!((counted(&bounded, "closed"), counted(&bounded, "refused")), (0, 1));
    // One that was answered makes way for a newer one of its node, and no other one does.
    for at in [1, 2, 3] {
        held[at].0.asked(|asked| asked - 1);
    }
    let new = bounded.room(peer(3)).unwrap();
    assert!(new.0.is_of("a"));
    let open: Vec<bool> = held.iter_mut().map(is_open).collect();
    assert_eq!(open, [true, false, true, true, true, true, true, true]);
    assert_eq!(counted(&bounded, "closed"), 1);
    // What is left of those that are of no node is theirs alone.
    let rest: Vec<Held> = (0..4).map(|_| bounded.room(peer(1)).unwrap()).collect();
    rest.iter().for_each(|held| held.0.asked(|asked| asked + 1));
    assert!(bounded.room(peer(1)).is_none());
}

#[test]
fn where_a_port_is_full_those_of_known_nodes_stay_before_those_of_nobody() {
    let bounded = bounded(8, 0);
    let mut known: Vec<Held> = (0..6).map(|last| bounded.room(peer(last)).unwrap()).collect();
    for (at, held) in known.iter().enumerate() {
        assert!(held.0.is_of(&at.to_string()));
    }
    let mut nobody: Vec<Held> = (0..2).map(|_| bounded.room(peer(9)).unwrap()).collect();
    let _new = bounded.room(peer(10)).unwrap();
    assert!(known.iter_mut().all(is_open));
    assert_eq!([is_open(&mut nobody[0]), is_open(&mut nobody[1])], [false, true]);
}
