//! People take nodes' Leases, beside each other and beside tread.

use crate::fixture::Bed;
use std::sync::Arc;
use std::time::Duration;
use tread_enforce::Ended;
use tread_enforce::by_hand::{Hand, NotTaken};
use tread_kube::metrics::Metrics;
use tread_model::protocol::{Disrupts, Terms, Waits};

const HOUR: Duration = Duration::from_secs(3600);

fn hand(bed: &Bed, holder: &str) -> Hand {
    Hand {
        client: bed.settings.client.clone(),
        metrics: Metrics::new(),
        namespace: bed.settings.leases.clone(),
        holder: holder.to_owned(),
        terms: Terms::default(),
    }
}

#[tokio::test]
async fn of_many_who_take_a_node_at_once_one_has_it() {
    let bed = Bed::with(1, 1).await;
    let node = &bed.nodes[0];
    let hands: Vec<Hand> = (0..8).map(|number| hand(&bed, &format!("hand-{number}"))).collect();
    let asked = hands.iter().map(|hand| hand.acquire(node, HOUR, None));
    let got = futures::future::join_all(asked).await;
    let (has, others): (Vec<_>, Vec<_>) = hands.iter().zip(got).partition(|(_, got)| got.is_ok());
    assert_eq!(has.len(), 1);
    for (_, got) in others {
        assert!(matches!(got, Err(NotTaken::Held(_))), "{got:?}");
    }
    for hand in &hands {
        let is_its = std::ptr::eq(hand, has[0].0);
        assert_eq!(hand.release(node).await.is_ok_and(|was| was), is_its, "{}", hand.holder);
        if is_its {
            break;
        }
    }
}

#[tokio::test]
async fn a_node_that_a_person_holds_is_left_alone_by_tread_and_the_other_way_round() {
    let bed = Arc::new(Bed::with(1, 1).await);
    let node = bed.nodes[0].clone();
    let alice = hand(&bed, "alice");
    alice.acquire(&node, HOUR, Some("a disk")).await.unwrap();
    match bed.step(&node, Disrupts::Reboot).await {
        Ok(Ended::Waits(waits, _)) => assert_eq!(waits, Waits::Lease),
        ended => panic!("{ended:?}"),
    }
    alice.release(&node).await.unwrap();
    assert!(matches!(
        bed.step(&node, Disrupts::Reboot).await,
        Ok(Ended::Waits(Waits::Agent, _) | Ended::Drains(..))
    ));
    let Err(NotTaken::Held(by)) = alice.acquire(&node, HOUR, None).await else { panic!() };
    assert_eq!(by.holder, bed.settings.holder);
    let agents = bed.agents(Disrupts::Reboot);
    let replica = bed.replica(0, Disrupts::Reboot, 1);
    bed.all_are_done().await;
    drop((agents, replica));
    alice.acquire(&node, HOUR, None).await.unwrap();
    bed.judge.holds().await;
}
