//! A disk that is full at the end of an operation, for real.

use crate::bed::{APPLY, Bed, PROGRAM, reload};
use std::process::Stdio;

/// So many pages are not enough for any operation.
const ROOMS: u32 = 2;

#[test]
fn an_operation_ends_on_a_disk_without_any_room_and_the_next_one_is_refused_with_the_reason() {
    let bed = Bed::with("one", |machine| machine);
    let sh = |text: &str| drop(bed.machine.run_well(["sh", "-c", text]).unwrap());
    sh("mount -t tmpfs -o size=400m tmpfs /var/lib/tread");
    bed.put_files("one", "one", &reload());
    bed.machine.run_well([PROGRAM, "node", "adopt", "--config", "/var/next.json"]).unwrap();
    bed.put_files("one", "two", &reload());
    bed.hold();
    let mut admin = bed.machine.command(APPLY).unwrap();
    let mut admin = admin.stdout(Stdio::null()).spawn().unwrap();
    bed.logs("reload two");
    let fill = |name: &str| {
        let dd = format!("dd if=/dev/zero of=/var/lib/tread/filler-{name}");
        sh(&format!("{dd}-1 bs=64k 2>/dev/null; {dd}-2 bs=1k 2>/dev/null; :"));
    };
    fill("1");
    bed.let_go();
    assert!(admin.wait().unwrap().success());
    let status = || bed.machine.run_well([PROGRAM, "node", "status"]).unwrap();
    assert!(status().contains("(done)"), "{}", status());
    bed.put_files("two", "one", &reload());
    let dd = "dd if=/dev/zero bs=4k count=1 2>/dev/null of=/var/lib/tread/room";
    (0..ROOMS).for_each(|room| sh(&format!("{dd}-{room}")));
    // Whatever else writes there would leave room where it replaces a file.
    sh("systemctl stop tread-watch.service");
    // What was staged is gone, and has left a little room.
    fill("2");
    let refused = bed.machine.run(APPLY).unwrap();
    assert_eq!(refused.status, Some(1), "{refused:?}");
    assert!(refused.err.contains("No space left on device"), "{refused:?}");
    assert!(status().contains("(done)"), "{}", status());
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("two"));
    // With a little room it is refused later. No order is listed that was.
    let waits = || bed.machine.run_well(["ls", "/var/lib/tread/node/orders"]).unwrap();
    assert_eq!(waits(), "");
    for room in 0..ROOMS {
        sh(&format!("rm /var/lib/tread/room-{room}"));
        let refused = bed.machine.run(APPLY).unwrap();
        assert_eq!(refused.status, Some(1), "{room}: {refused:?}");
        assert!(refused.err.contains("No space left on device"), "{room}: {refused:?}");
        assert_eq!(waits(), "", "{room}: {refused:?}");
        assert!(!status().contains("next:"), "{room}: {}", status());
        assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("two"), "{room}");
    }
    sh("rm /var/lib/tread/filler*");
    let applied = bed.machine.run(APPLY).unwrap();
    assert_eq!(applied.status, Some(0), "{applied:?}");
    assert_eq!(bed.log(), ["start one", "reload two", "reload one"]);
}
