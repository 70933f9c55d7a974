//! Secrets stay home: what other users of a node cannot read, what is known to
//! be a secret by its path, and what is a password, goes further only as a
//! digest.

mod paths;

use crate::change::{Change, Content, Entry, FileState, State};
use crate::digest::Digest;
use std::borrow::Cow;

/// The permission bit that lets everybody on a node read a file.
const OTHERS_READ: u32 = 0o004;

/// Whether a change holds a secret: of a file that others cannot read on
/// either side, of one that holds secrets by its path whatever its mode, or of
/// a password.
pub fn is_secret(change: &Change<'_>) -> bool {
    secret(&change.id, &change.before) || secret(&change.id, &change.after)
}

/// Whether a file that is set with this mode holds a secret.
pub fn is_secret_file(path: &str, mode: Option<u32>) -> bool {
    mode.is_some_and(|mode| mode & OTHERS_READ == 0) || paths::is_known(path)
}

/// As [`is_secret`], for what did not change.
pub fn is_secret_entry(entry: &Entry<'_>) -> bool {
    secret(&entry.id, &entry.state)
}

/// The change for someone who may not see secrets: digests stand for the
/// contents, on both sides. Equal digests still mean equal contents.
pub fn redact<'c, 'a>(change: &'c Change<'a>) -> Cow<'c, Change<'a>> {
    if !is_secret(change) {
        return Cow::Borrowed(change);
    }
    let (before, after) = (hide(&change.before), hide(&change.after));
    Cow::Owned(Change { id: change.id.clone(), before, after })
}

/// As [`redact`], for what did not change.
pub fn redact_entry<'c, 'a>(entry: &'c Entry<'a>) -> Cow<'c, Entry<'a>> {
    if !is_secret_entry(entry) {
        return Cow::Borrowed(entry);
    }
    Cow::Owned(Entry { id: entry.id.clone(), state: hide(&entry.state) })
}

fn secret(id: &str, state: &State<'_>) -> bool {
    match state {
        State::File(file) => {
            let path = id.strip_prefix("file:").unwrap_or_default();
            file.mode & OTHERS_READ == 0 || paths::is_known(path)
        }
        _ => id.starts_with("password:"),
    }
}

fn hide<'a>(state: &State<'a>) -> State<'a> {
    match state {
        State::File(file) => State::File(FileState {
            content: match &file.content {
                Content::Bytes(bytes) => Content::Digest(Digest::of(bytes)),
                other => other.clone(),
            },
            mode: file.mode,
            user: file.user.clone(),
            group: file.group.clone(),
        }),
        State::Text(text) => State::Digest(Digest::of(text.as_bytes())),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &'static [u8], mode: u32) -> State<'static> {
        State::File(FileState {
            content: Content::Bytes(Cow::Borrowed(bytes)),
            mode,
            user: "root".into(),
            group: "root".into(),
        })
    }

    fn change(id: &str, before: State<'static>, after: State<'static>) -> Change<'static> {
        Change { id: id.to_owned(), before, after }
    }

    fn content<'s>(state: &'s State<'_>) -> &'s Content<'s> {
        let State::File(file) = state else { panic!("{state:?} is no file") };
        &file.content
    }

    #[test]
    fn a_file_that_others_cannot_read_on_either_side_is_secret_on_both() {
        for (before, after, expected) in [
            (0o644, 0o644, false),
            (0o604, 0o604, false),
            (0o600, 0o600, true),
            (0o640, 0o640, true),
            (0o600, 0o644, true),
            (0o644, 0o600, true),
            (0o773, 0o773, true),
        ] {
            let change = change("file:/etc/a", file(b"one", before), file(b"two", after));
            assert_eq!(is_secret(&change), expected, "{before:o} {after:o}");
            let redacted = redact(&change);
            match expected {
                false => assert_eq!(*redacted, change),
                true => {
                    assert_eq!(*content(&redacted.before), Content::Digest(Digest::of(b"one")));
                    assert_eq!(*content(&redacted.after), Content::Digest(Digest::of(b"two")));
                }
            }
        }
    }

    #[test]
    fn a_file_that_is_known_to_hold_a_secret_is_hidden_whatever_its_mode() {
        for mode in [0o600, 0o644, 0o777] {
            let id = "file:/var/lib/kubelet/config.json";
            let pull_secret = change(id, file(b"one", mode), file(b"two", mode));
            assert!(is_secret(&pull_secret), "{mode:o}");
            let hidden = redact(&pull_secret);
            assert_eq!(*content(&hidden.after), Content::Digest(Digest::of(b"two")));
            let entry = Entry { id: id.to_owned(), state: file(b"one", mode) };
            assert_eq!(*content(&redact_entry(&entry).state), Content::Digest(Digest::of(b"one")));
        }
    }

    #[test]
    fn a_secret_file_that_comes_is_hidden_too() {
        let redacted = change("file:/etc/a", State::Absent, file(b"one", 0o400));
        let redacted = redact(&redacted);
        assert_eq!(redacted.before, State::Absent);
        assert_eq!(*content(&redacted.after), Content::Digest(Digest::of(b"one")));
    }

    #[test]
    fn a_password_is_hidden_and_other_texts_are_not() {
        let text = |text: &'static str| State::Text(Cow::Borrowed(text));
        let password = change("password:core", text("$6$x"), State::Absent);
        assert!(is_secret(&password));
        assert_eq!(redact(&password).before, State::Digest(Digest::of(b"$6$x")));
        assert_eq!(redact(&password).after, State::Absent);
        assert!(!is_secret(&change("os-image", text("a"), text("b"))));
        let keys = State::List(vec!["ssh-ed25519 AAAA".into()]);
        assert!(!is_secret(&change("ssh-keys:core", State::Absent, keys)));
    }

    #[test]
    fn an_entry_is_hidden_by_the_same_rule() {
        let entry = |mode| Entry { id: "file:/etc/a".to_owned(), state: file(b"one", mode) };
        assert!(!is_secret_entry(&entry(0o644)));
        assert_eq!(*redact_entry(&entry(0o644)), entry(0o644));
        assert!(is_secret_entry(&entry(0o600)));
        let hidden = entry(0o600);
        assert_eq!(*content(&redact_entry(&hidden).state), Content::Digest(Digest::of(b"one")));
    }
}
