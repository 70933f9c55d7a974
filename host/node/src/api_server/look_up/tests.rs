#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::time::timeout;

#[tokio::test]
async fn look_ups_that_hang_take_one_thread_and_the_next_answer_is_heard() {
    let (let_go, held) = mpsc::channel::<()>();
    let begun = Arc::new(AtomicUsize::new(0));
    let hangs = {
        let begun = Arc::clone(&begun);
        move |_: &str| {
            begun.fetch_add(1, Ordering::SeqCst);
            let _ = held.recv();
            Ok(Vec::new())
        }
    };
    let counts = |begun: &Arc<AtomicUsize>| {
        let begun = Arc::clone(begun);
        move |_: &str| {
            begun.fetch_add(1, Ordering::SeqCst);
            Ok(vec![SocketAddr::from(([127, 0, 0, 1], 1))])
        }
    };
    let soon = Duration::from_millis(20);
    assert!(timeout(soon, look_up("a.example:1", hangs)).await.is_err());
    for _ in 0..10 {
        assert!(timeout(soon, look_up("a.example:1", counts(&begun))).await.is_err());
    }
    // A thread that was not scheduled yet has begun at last once it can be let go.
    let_go.send(()).unwrap();
    let found = look_up("a.example:1", counts(&begun)).await.unwrap();
    assert_eq!(found, [SocketAddr::from(([127, 0, 0, 1], 1))]);
    assert_eq!(begun.load(Ordering::SeqCst), 2, "those that were given up were never asked");
    let number = look_up("[::1]:6443", |_| panic!("a number needs nobody")).await.unwrap();
    assert_eq!(number, ["[::1]:6443".parse().unwrap()]);
}
