//! More folders than a process may have open.

use super::*;
use std::process::Command;

const FOLDERS: usize = 600;
const HERE: &str = "journal::tests::many::an_order_may_have_names_in_more_folders_than_may_be_open";
/// Set in the process that may have few files open.
const IS_CHILD: &str = "TREAD_TEST_FEW_FILES";

#[test]
fn an_order_may_have_names_in_more_folders_than_may_be_open() {
    if std::env::var_os(IS_CHILD).is_some() {
        return goes_there_and_back();
    }
    // The limit is one of a whole process, in which other tests run.
    let own = std::env::current_exe().unwrap();
    let child = Command::new("sh")
        .args(["-c", "ulimit -n 400 && exec \"$0\" --exact \"$1\" --nocapture"])
        .args([own.as_os_str(), HERE.as_ref()])
        .env(IS_CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    let why = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() && said.contains("1 passed"), "{said}\n{why}");
}

fn goes_there_and_back() {
    let bed = Bed::new();
    bed.folder(STATE);
    let path = |index: usize| format!("/etc/{index}/a.conf");
    (0..FOLDERS).for_each(|index| bed.file(&path(index), "old"));
    bed.folder("/opt");
    let old = bed.snapshot();
    let made = |index: usize| format!("/opt/{index}/new/a.conf");
    let paths = || (0..FOLDERS).map(path).chain((0..FOLDERS).map(made));
    let targets = || paths().map(|path| file(&path, "new"));
    let Ready { mut record, new } =
        prepare(&bed.tree(), "1", targets().collect(), &no_label).unwrap();
    record.order = serde_json::json!({"steps": []});
    let journal = Journal::open(&bed.tree()).unwrap();
    journal.write(&record, &new).unwrap();
    assert_eq!(bed.text(&path(FOLDERS - 1)).as_deref(), Some("new"));
    let settled = journal.take_back("it was not well", false).unwrap().unwrap();
    assert!(settled.changed && settled.left.is_empty(), "{settled:?}");
    assert_eq!(bed.snapshot(), old);
    journal.finish().unwrap();
    // The undo of one that is cut short has as many.
    let Ready { record, new } = prepare(&bed.tree(), "2", targets().collect(), &no_label).unwrap();
    let last = made(FOLDERS - 1);
    let staged = journal.stage(&record, &new).unwrap();
    bed.file(&last, "theirs");
    let error = journal.place(&record, &staged).unwrap_err();
    assert!(matches!(&error, JournalError::Changed { .. }), "{error}");
    assert_eq!(bed.text(&last).as_deref(), Some("theirs"));
    assert_eq!(bed.text(&path(0)).as_deref(), Some("old"));
    assert!(journal.standing().unwrap().is_none());
}
