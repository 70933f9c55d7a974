use super::*;

type Held = (Room, oneshot::Receiver<()>);

fn bounded(common: usize, probes: usize) -> Bounded {
    let most = Most { common, of_peer: common / 4, probes };
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
