//! What is written without a plan, as to adopt a config, is over once its files are whole.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io;
use tread_node::host::ThisHost;
use tread_node::journal::{Journal, Owned, STATE};
use tread_node::operation::{Ended, Node, Patience};
use tread_node::permits::Alone;
use tread_node::prepare::{Target, Wanted, prepare};
use tread_node::progress::{Progress, Reporter};
use tread_node::systemd::{Limits, Manager};
use tread_node::terms::Terms;
use tread_node::tree::{Owner, Tree};

struct Nobody;

impl Reporter for Nobody {
    fn report(&self, _: &Progress) {}
}

fn no_kernel() -> io::Result<()> {
    Err(io::Error::other("a test never boots the machine that it runs on"))
}

#[test]
fn what_was_written_without_a_plan_is_finished_by_whoever_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let tree = Tree::open(dir.path()).unwrap();
    let no_label = |_: &str, _| Ok(None);
    let wanted = Wanted::File {
        bytes: b"1".as_slice().into(),
        owner: Owner { uid: 0, gid: 0, mode: 0o644 },
    };
    let target = Target { path: "/etc/a".to_owned(), wanted, folders: Owned::Root };
    std::fs::create_dir(dir.path().join("etc")).unwrap();
    let ready = prepare(&tree, "1", vec![target], &no_label).unwrap();
    Journal::open(&tree).unwrap().write(&ready.record, &ready.new).unwrap();

    let host = ThisHost::read(&tree, false).unwrap();
    let manager = Manager::new("unix:path=/nowhere", Limits::default());
    let node = Node {
        tree: tree.clone(),
        host: &host,
        label: &no_label,
        manager: &manager,
        permits: &Alone,
        reporter: &Nobody,
        terms: Terms::default(),
        patience: Patience::default(),
        kernel: &no_kernel,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ended = runtime.block_on(node.go_on()).unwrap();
    assert_eq!(ended, Ended::Done);
    assert_eq!(std::fs::read_to_string(dir.path().join("etc/a")).unwrap(), "1");
    assert!(!dir.path().join(format!("{}/operation", STATE.trim_start_matches('/'))).exists());
}
