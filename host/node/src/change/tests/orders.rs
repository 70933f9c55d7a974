//! What an admin accepts with an order, and what no order can have.

use super::*;
use tread_model::plan::Step;

/// Carries an order out that accepts these paths.
fn apply_accepting(bed: &Bed, to: &Documents, accept: &[&str]) -> Result<(), OrderError> {
    let tree = bed.tree();
    let from = Applied::read(&tree).unwrap().unwrap().documents;
    let order = Order {
        id: "1".to_owned(),
        documents: to.clone(),
        plan: plan(&from, to, &[Step::Write]),
        accept: accept.iter().map(|path| (*path).to_owned()).collect(),
        others: Vec::new(),
    };
    let change = change(&tree, &Own, &no_label, &order)?;
    let journal = Journal::open(&tree)?;
    journal.write(&change.ready.record, &change.ready.new)?;
    Ok(journal.finish()?)
}

#[test]
fn what_was_there_before_tread_comes_back_also_where_drift_was_accepted_in_between() {
    let config = |files: &[(&str, &str)]| documents(files, "");
    let both = [("/etc/before", "one"), ("/etc/new", "one")];
    let changed = [("/etc/before", "two"), ("/etc/new", "two")];
    // The order that accepts it changes the path; or leaves it; or has it no more.
    for next in [&changed[..], &both[..], &[]] {
        let bed = Bed::with(&config(&[]));
        bed.file("/etc/before", "of the host");
        bed.apply(&config(&both), &[]).unwrap();
        bed.file("/etc/before", "by hand");
        bed.file("/etc/new", "by hand");
        assert!(matches!(
            apply_accepting(&bed, &config(next), &[]),
            Err(OrderError::Drifted(_)) | Err(OrderError::Plan(_))
        ));
        if next == both {
            // There is nothing to apply: it is accepted together with another change.
            let more = [both[0], both[1], ("/etc/more", "1")];
            apply_accepting(&bed, &config(&more), &["/etc/before", "/etc/new"]).unwrap();
            assert_eq!(bed.text("/etc/before").as_deref(), Some("by hand"));
        } else {
            apply_accepting(&bed, &config(next), &["/etc/before", "/etc/new"]).unwrap();
        }
        if !next.is_empty() {
            let accepted = Applied::read(&bed.tree()).unwrap().unwrap().accepted;
            let accept: Vec<&str> = accepted.keys().map(String::as_str).collect();
            apply_accepting(&bed, &config(&[]), &accept).unwrap();
        }
        assert_eq!(bed.text("/etc/before").as_deref(), Some("of the host"), "{next:?}");
        assert_eq!(bed.text("/etc/new"), None, "{next:?}");
    }
}

#[test]
fn a_path_of_neither_config_is_not_accepted_and_the_nearest_one_is_named() {
    let (one, two) =
        (documents(&[("/etc/a.conf", "1")], ""), documents(&[("/etc/a.conf", "2")], ""));
    let bed = Bed::with(&one);
    for (path, expected) in [
        ("/etc/a.cnf", Some("the nearest that is: /etc/a.conf")),
        ("etc/a.conf", Some("the nearest that is: /etc/a.conf")),
        ("kernel-argument", Some("the nearest that is: kernel-arguments")),
        ("/usr/lib/something/else/entirely", None),
    ] {
        let error = apply_accepting(&bed, &two, &[path]).unwrap_err().to_string();
        assert!(error.contains("is in neither config"), "{error}");
        assert_eq!(error.contains("nearest"), expected.is_some(), "{error}");
        assert!(error.contains(expected.unwrap_or_default()), "{error}");
    }
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("1"));
    apply_accepting(&bed, &two, &["/etc/a.conf", "kernel-arguments"]).unwrap();
}

#[test]
fn a_file_that_is_to_be_a_folder_is_refused_with_the_way_there_and_back() {
    let nothing = documents(&[], "");
    let file = documents(&[("/etc/a", "1")], "");
    let folder = documents(&[("/etc/a/b/c", "1")], "");
    let bed = Bed::with(&file);
    let before = Applied::read(&bed.tree()).unwrap();
    let error = apply_accepting(&bed, &folder, &[]).unwrap_err().to_string();
    assert!(error.contains("/etc/a is a file, and the new config has /etc/a/b/c"), "{error}");
    assert!(error.contains("Apply a config with neither of them first"), "{error}");
    assert_eq!(Applied::read(&bed.tree()).unwrap(), before);
    // As it says.
    apply_accepting(&bed, &nothing, &[]).unwrap();
    apply_accepting(&bed, &folder, &[]).unwrap();
    assert_eq!(bed.text("/etc/a/b/c").as_deref(), Some("1"));
    let error = apply_accepting(&bed, &file, &[]).unwrap_err().to_string();
    assert!(error.contains("/etc/a is a folder, and is to be a file"), "{error}");
    assert!(error.contains("rm -r /etc/a"), "{error}");
    apply_accepting(&bed, &nothing, &[]).unwrap();
    assert!(matches!(apply_accepting(&bed, &file, &[]), Err(OrderError::InTheWay(_))));
    std::fs::remove_dir_all(bed.path("/etc/a")).unwrap();
    apply_accepting(&bed, &file, &[]).unwrap();
    assert_eq!(bed.text("/etc/a").as_deref(), Some("1"));
}
