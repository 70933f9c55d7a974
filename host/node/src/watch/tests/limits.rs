//! What the kernel forbids, forgets, and takes away.

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

#[test]
fn more_events_than_the_kernel_remembers_cost_one_full_check() {
    let (bed, expected) = bed();
    let most = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let most: usize = most.trim().parse().unwrap();
    in_time(async {
        let mut watch = Watch::new(&bed.tree(), expected, Accepted::new(), &[], QUICK);
        watch.next().await;
        for index in 0..=most {
            // Alike events after each other are one.
            let name = if index % 2 == 0 { "/etc/one" } else { "/etc/two" };
            fs::write(bed.path(name), "x").unwrap();
        }
        bed.file("/etc/a.conf", "b");
        assert_eq!(watch.next().await, Noticed::Looked { news: true, all: true });
        differ(&mut watch, &[("/etc/a.conf", &[Kind::Contents])]).await;
    });
}

#[test]
fn a_flood_of_events_is_looked_at_no_more_often_than_the_pace_says() {
    let (bed, expected) = bed();
    let pace = Pace { apart: Duration::from_millis(300), ..QUICK };
    let (over, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let flood = {
        let (over, written) = (Arc::clone(&over), Arc::clone(&written));
        let path = bed.path("/etc/a.conf");
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let number = written.fetch_add(1, Ordering::Relaxed);
                fs::write(&path, number.to_string()).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
            fs::write(&path, "a").unwrap();
        })
    };
    in_time(async {
        let mut watch = Watch::new(&bed.tree(), expected, Accepted::new(), &[], pace);
        watch.next().await;
        let began = Instant::now();
        let mut looks = 0;
        while looks < 6 || written.load(Ordering::Relaxed) < 100 {
            watch.next().await;
            looks += 1;
        }
        assert!(began.elapsed() >= pace.apart * (looks - 1), "{looks} in {:?}", began.elapsed());
        over.store(true, Ordering::Relaxed);
        flood.join().unwrap();
        differ(&mut watch, &[]).await;
    });
}

/// Runs this test again in namespaces of its own, by these words; true for who is there.
fn is_inside(name: &str, words: &[&str]) -> bool {
    const INSIDE: &str = "TREAD_TEST_IS_INSIDE";
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let ran = Command::new("unshare")
        .args(words)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("watch::tests::limits::{name}"), "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    false
}

#[test]
fn where_no_more_folders_may_be_watched_it_says_so_and_looks_by_the_hour() {
    let name = "where_no_more_folders_may_be_watched_it_says_so_and_looks_by_the_hour";
    if !is_inside(name, &["--user", "--map-root-user"]) {
        return;
    }
    let (bed, expected) = bed();
    fs::write("/proc/sys/user/max_inotify_watches", "3").unwrap();
    let pace = Pace { full: Duration::from_millis(500), ..QUICK };
    in_time(async {
        let mut watch = Watch::new(&bed.tree(), expected, Accepted::new(), &[], pace);
        watch.next().await;
        let why = watch.deaf().unwrap().to_owned();
        assert!(why.contains("fs.inotify.max_user_watches"), "{why}");
        bed.file("/opt/deep/er/still", "other");
        differ(&mut watch, &[("/opt/deep/er/still", &[Kind::Contents])]).await;
        fs::write("/proc/sys/user/max_inotify_watches", "100").unwrap();
        while watch.deaf().is_some() {
            watch.next().await;
        }
        fs::write("/proc/sys/user/max_inotify_instances", "0").unwrap();
        let expected = vec![file("/etc/a.conf", "b")];
        let mut watch = Watch::new(&bed.tree(), expected, Accepted::new(), &[], pace);
        differ(&mut watch, &[("/etc/a.conf", &[Kind::Contents])]).await;
        let why = watch.deaf().unwrap().to_owned();
        assert!(why.contains("fs.inotify.max_user_instances"), "{why}");
        assert_eq!(watch.next().await, Noticed::Looked { news: false, all: true });
    });
}

fn ran(words: &[&str], path: &Path) {
    let (program, args) = words.split_first().unwrap();
    let ran = Command::new(program).args(args).arg(path).status().unwrap();
    assert!(ran.success(), "{words:?}");
}

#[test]
fn a_file_system_that_is_unmounted_is_heard_and_so_is_what_was_below_it() {
    let name = "a_file_system_that_is_unmounted_is_heard_and_so_is_what_was_below_it";
    if !is_inside(name, &["--mount"]) {
        return;
    }
    let (bed, expected) = bed();
    let at = bed.path("/opt");
    ran(&["mount", "-t", "tmpfs", "tmpfs"], &at);
    bed.file("/opt/deep/er/still", "other");
    in_time(async {
        let mut watch = Watch::new(&bed.tree(), expected, Accepted::new(), &[], QUICK);
        differ(&mut watch, &[("/opt/deep/er/still", &[Kind::Contents])]).await;
        ran(&["umount"], &at);
        differ(&mut watch, &[]).await;
        bed.file("/opt/deep/er/still", "changed");
        differ(&mut watch, &[("/opt/deep/er/still", &[Kind::Contents])]).await;
    });
}
