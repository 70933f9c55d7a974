//! What an operation has synced.

use super::*;

#[test]
fn each_changed_file_costs_two_syncs_and_the_operation_ten_more_at_most() {
    let bed = bed();
    let recorder = Arc::new(Recorder::default());
    assert!(write(&bed, recorder.clone()));
    let syncs = recorder.syncs();
    let changed = ready(&self::bed().tree()).record.entries.len();
    assert!(syncs <= 2 * changed + 10, "{syncs} syncs for {changed} names");
}

#[test]
fn files_that_share_folders_cost_little_more_than_one_sync_each() {
    let bed = Bed::new();
    bed.folder(STATE);
    let path = |index: usize| format!("/etc/{}/{index}.conf", index % 20);
    (0..2000).for_each(|index| bed.file(&path(index), "old"));
    let targets = (0..2000).map(|index| file(&path(index), "new")).collect();
    // One for each file and each folder, six for the operation.
    assert_eq!(syncs_of(&bed, targets), 2000 + 20 + 6);
}

#[test]
fn folders_that_are_made_are_synced_once_each_within_what_an_operation_may_cost() {
    let bed = Bed::new();
    bed.folder(STATE);
    bed.folder("/etc");
    // Of the file, of the four folders that are made, and of the one that they are in.
    let syncs = syncs_of(&bed, vec![file("/etc/a/b/c/d/e.conf", "new")]);
    assert_eq!(syncs, 1 + 4 + 1 + 6);
    assert!(syncs <= 2 + 10);
    // Files in one new folder share its sync.
    let many = (0..10).map(|index| file(&format!("/etc/new/{index}.conf"), "new")).collect();
    assert_eq!(syncs_of(&bed, many), 10 + 1 + 1 + 6);
}

#[test]
fn many_files_in_new_folders_of_their_own_cost_one_sync_for_each_of_them_and_none_twice() {
    let bed = Bed::new();
    bed.folder("/etc");
    bed.folder(STATE);
    let at = |index| file(&format!("/etc/{index}/b/c/e.conf"), "new");
    let syncs = syncs_of(&bed, (0..50).map(at).collect());
    // What names a folder, or a file in it, is on the disk only once that folder was synced; the
    // last of these is /etc, in which all chains begin.
    assert_eq!(syncs, 50 + 50 * 3 + 1 + 6);
}

/// How many syncs a whole operation has, to its end.
fn syncs_of(bed: &Bed, targets: Vec<Target<'static>>) -> usize {
    let recorder = Arc::new(Recorder::default());
    let Ready { record, new } = prepare(&bed.tree(), "1", targets, &no_label).unwrap();
    let journal = Journal::open(&bed.witnessed(recorder.clone())).unwrap();
    journal.write(&record, &new).unwrap();
    journal.settle().unwrap();
    journal.finish().unwrap();
    recorder.syncs()
}
