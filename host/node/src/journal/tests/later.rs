//! A log in which a later version of tread noted what this one does not know.

use super::*;

/// An operation that stands, and whose log ends with this line.
fn noted(line: &str) -> Bed {
    let bed = bed();
    assert!(write(&bed, Arc::new(crate::tree::Unwatched)));
    let at = format!("{STATE}/operation/log");
    bed.file(&at, &format!("{}{line}\n", bed.text(&at).unwrap()));
    bed
}

/// A note of a later version.
const LATER: &str = r#"{"is":"of-a-later-version","boot":"1"}"#;

#[test]
fn what_an_operation_is_called_is_known_also_where_its_log_has_a_note_of_a_later_version() {
    for line in [LATER, "garbage"] {
        let bed = noted(line);
        assert_eq!(standing_id(&bed.tree()).unwrap().as_deref(), Some("1"), "{line}");
        assert!(is_in_the_way(&bed.tree()).unwrap(), "{line}");
    }
    // Of a record that cannot be read nobody knows it.
    let bed = noted(LATER);
    let record = format!("{STATE}/operation/record");
    let text = bed.text(&record).unwrap();
    bed.file(&record, &text.replace("changed.conf", "another.conf"));
    let error = standing_id(&bed.tree()).unwrap_err().to_string();
    assert!(error.contains("its digest is another one"), "{error}");
    bed.file(&record, &text.replace("journal/v1", "journal/v2"));
    let error = standing_id(&bed.tree()).unwrap_err();
    assert!(matches!(error, JournalError::Newer { .. }), "{error}");
}

#[test]
fn a_note_that_says_what_it_is_counts_as_a_newer_treads_and_not_as_damaged() {
    for (line, is_newer) in [
        (LATER, true),
        // With something else in it than this version knows.
        (r#"{"is":"degraded","since":"1"}"#, true),
        (r#"{"is":1}"#, false),
        (r#"{"boot":"1"}"#, false),
        (r#"["is"]"#, false),
        ("7", false),
    ] {
        let bed = noted(line);
        let before = bed.snapshot();
        let journal = Journal::open(&bed.tree()).unwrap();
        let error = journal.settle().unwrap_err().to_string();
        let says = match is_newer {
            true => "line 2 of /var/lib/tread/node/operation/log is a note that this version",
            false => "operation/log is damaged (line 2 is no note",
        };
        assert!(error.contains(says), "{line}: {error}");
        assert_eq!(error.contains("restore the node"), !is_newer, "{line}: {error}");
        assert_eq!(bed.snapshot(), before, "{line}: nothing is touched");
        // What is given up is not read any more: a newer version may still go on with it.
        let given_up = journal.give_up();
        assert_eq!(matches!(given_up, Err(JournalError::NewerNote { line: 2 })), is_newer);
        assert_eq!(stands(&bed.tree()).unwrap(), is_newer, "{line}");
    }
}
