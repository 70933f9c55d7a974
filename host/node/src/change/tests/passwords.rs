//! A password in the config, and the one on the disk.

use super::*;

const LINES: &str = "root:*:19000:0:99999:7:::\ncore:$6$before:19001:0:99999:7:::\nzoe:!:1::::::\n";

fn with(hash: &str) -> Documents {
    let users =
        format!(r#", "passwd": {{"users": [{{"name": "core", "passwordHash": "{hash}"}}]}}"#);
    documents(&[], &users)
}

fn bed(lines: &str) -> Bed {
    let bed = Bed::with(&documents(&[], ""));
    bed.file("/etc/shadow", lines);
    bed
}

/// The hash of a user.
fn hash(bed: &Bed, user: &str) -> String {
    let text = bed.text("/etc/shadow").unwrap();
    let line = text.lines().find(|line| line.starts_with(&format!("{user}:"))).unwrap();
    line.split(':').nth(1).unwrap().to_owned()
}

fn drift_of(bed: &Bed) -> Vec<String> {
    let applied = Applied::read(&bed.tree()).unwrap().unwrap();
    let config = applied.documents.config().unwrap();
    let desired = wanted(&config, &Own).unwrap();
    let found = drift(&bed.tree(), &desired, &applied.accepted).unwrap();
    found.into_iter().map(|it| format!("{}: {}", it.path, it.differs)).collect()
}

#[test]
fn a_password_is_set_changed_and_gone_back_to_what_it_was_before() {
    let bed = bed(LINES);
    assert_eq!(bed.apply(&with("$6$one"), &[]).unwrap(), ["password:core"]);
    assert_eq!(hash(&bed, "core"), "$6$one");
    bed.apply(&with("$6$two"), &[]).unwrap();
    assert_eq!(hash(&bed, "core"), "$6$two");
    bed.file("/etc/shadow", &bed.text("/etc/shadow").unwrap().replace("zoe:!:", "zoe:$6$z:"));
    bed.apply(&documents(&[], ""), &[]).unwrap();
    assert_eq!(hash(&bed, "core"), "$6$before");
    assert_eq!(hash(&bed, "zoe"), "$6$z");
    let kept = std::fs::read_dir(bed.path("/var/lib/tread/node/originals")).unwrap().count();
    assert_eq!(kept, 0, "the old hash is kept only as long as it is needed");
}

#[test]
fn a_password_of_which_no_other_is_known_ends_locked_and_never_open() {
    let adopted = bed(&LINES.replace("$6$before", "$6$one"));
    adopted.adopt(with("$6$one"), Adopt::Ask).unwrap();
    let open = bed(&LINES.replace("$6$before", ""));
    open.apply(&with("$6$one"), &[]).unwrap();
    for bed in [adopted, open] {
        bed.apply(&documents(&[], ""), &[]).unwrap();
        assert_eq!(hash(&bed, "core"), "*");
    }
}

#[test]
fn the_copy_of_an_old_password_is_for_root_alone() {
    use std::os::unix::fs::MetadataExt as _;
    let bed = bed(LINES);
    bed.apply(&with("$6$one"), &[]).unwrap();
    let at = bed.path("/var/lib/tread/node/originals");
    assert_eq!(at.metadata().unwrap().mode() & 0o7777, 0o700);
    let copies: Vec<_> = std::fs::read_dir(at).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(copies.len(), 1);
    assert_eq!(copies[0].metadata().unwrap().mode() & 0o7777, 0o600);
    assert_eq!(std::fs::read(&copies[0]).unwrap(), b"$6$before");
}

#[test]
fn only_the_password_itself_drifts_and_not_what_else_stands_in_the_file() {
    let bed = bed(LINES);
    bed.apply(&with("$6$one"), &[]).unwrap();
    let text = bed.text("/etc/shadow").unwrap();
    let others = text.replace("zoe:!:1:", "zoe:$6$z:9:").replace(":0:99999:7:::", ":0:5:7:::");
    bed.file("/etc/shadow", &format!("new:*:::::::\n{others}"));
    assert_eq!(drift_of(&bed), Vec::<String>::new());
    bed.apply(&with("$6$two"), &[]).unwrap();
    bed.file("/etc/shadow", &bed.text("/etc/shadow").unwrap().replace("$6$two", "$6$mine"));
    assert_eq!(drift_of(&bed), ["/etc/shadow:core: the password differs"]);
    let error = bed.apply(&with("$6$three"), &[]).unwrap_err().to_string();
    assert!(error.contains("/etc/shadow:core") && !error.contains("$6$"), "{error}");
    bed.file("/etc/shadow", "root:*:::::::\n");
    assert_eq!(drift_of(&bed), ["/etc/shadow:core: /etc/shadow has no such user"]);
    bed.file("/etc/shadow", "core:$6$two\n");
    assert!(drift_of(&bed)[0].contains("is not as it has to be"));
}

#[test]
fn a_password_that_differs_is_accepted_or_overwritten_as_a_file_is() {
    let kept = bed(LINES);
    assert_eq!(kept.adopt(with("$6$one"), Adopt::Keep).unwrap().len(), 1);
    assert_eq!(drift_of(&kept), Vec::<String>::new());
    assert_eq!(hash(&kept, "core"), "$6$before");
    let over = bed(LINES);
    assert_eq!(over.adopt(with("$6$one"), Adopt::Overwrite).unwrap().len(), 1);
    assert_eq!(hash(&over, "core"), "$6$one");
    over.apply(&documents(&[], ""), &[]).unwrap();
    assert_eq!(hash(&over, "core"), "$6$before");
}
