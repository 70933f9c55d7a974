//! Secrets stay home: what other users of a node cannot read, what is known to
//! be a secret by its path, and what is a password, goes further only as a token,
//! which says nothing but what is equal.

mod paths;

use crate::change::{Change, Content, Entry, FileState, State, Token};
use crate::digest::Digest;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The permission bit that lets everybody on a node read a file.
const OTHERS_READ: u32 = 0o004;

/// Whether a change holds a secret: of a file that others cannot read on
/// either side, of one that holds secrets by its path whatever its mode, or of
/// a password.
pub fn is_secret(change: &Change<'_>) -> bool {
    secret(&change.id, [&change.before, &change.after])
}

/// Whether a file that is set with this mode holds a secret.
pub fn is_secret_file(path: &str, mode: Option<u32>) -> bool {
    mode.is_some_and(|mode| mode & OTHERS_READ == 0) || paths::is_known(path)
}

/// As [`is_secret`], for what did not change.
pub fn is_secret_entry(entry: &Entry<'_>) -> bool {
    entry.was_secret || secret(&entry.id, [&entry.state])
}

/// Whether a change reveals a secret to whoever sees it: it is one, and no token
/// stands in its place.
pub fn reveals_secret(change: &Change<'_>) -> bool {
    is_secret(change) && (reveals(&change.before) || reveals(&change.after))
}

/// As [`reveals_secret`], for what did not change.
pub fn reveals_secret_entry(entry: &Entry<'_>) -> bool {
    is_secret_entry(entry) && reveals(&entry.state)
}

/// What stands for secrets in all that one call offers to someone who may not
/// see them. They are numbered in the order in which they come, so that the same
/// offer looks the same everywhere, and no contents can be guessed from it: two are
/// equal where the contents of one file are, and never say that another file has the
/// same, which who may write that one could try until it does.
#[derive(Debug, Default)]
pub struct Tokens(BTreeMap<(String, Digest), Token>);

impl Tokens {
    /// The change for someone who may not see secrets.
    pub fn redact<'c, 'a>(&mut self, change: &'c Change<'a>) -> Cow<'c, Change<'a>> {
        if !is_secret(change) {
            return Cow::Borrowed(change);
        }
        let [before, after] =
            [&change.before, &change.after].map(|state| self.hide(&change.id, state));
        Cow::Owned(Change { id: change.id.clone(), before, after })
    }

    /// As [`Tokens::redact`], for what did not change.
    pub fn redact_entry<'c, 'a>(&mut self, entry: &'c Entry<'a>) -> Cow<'c, Entry<'a>> {
        if !is_secret_entry(entry) {
            return Cow::Borrowed(entry);
        }
        let (id, state) = (entry.id.clone(), self.hide(&entry.id, &entry.state));
        Cow::Owned(Entry { id, state, was_secret: entry.was_secret })
    }

    fn hide<'a>(&mut self, id: &str, state: &State<'a>) -> State<'a> {
        match state {
            State::File(file) => State::File(FileState {
                content: match &file.content {
                    Content::Bytes(bytes) => Content::Token(self.token(id, bytes)),
                    other => other.clone(),
                },
                mode: file.mode,
                user: file.user.clone(),
                group: file.group.clone(),
            }),
            State::Text(text) => State::Token(self.token(id, text.as_bytes())),
            other => other.clone(),
        }
    }

    fn token(&mut self, id: &str, secret: &[u8]) -> Token {
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX).saturating_add(1);
        *self.0.entry((id.to_owned(), Digest::of(secret))).or_insert(Token(next))
    }
}

fn secret<const N: usize>(id: &str, states: [&State<'_>; N]) -> bool {
    id.starts_with("password:")
        || states.into_iter().any(is_closed)
        || id.strip_prefix("file:").is_some_and(paths::is_known)
}

/// Whether others cannot read the file.
fn is_closed(state: &State<'_>) -> bool {
    matches!(state, State::File(file) if file.mode & OTHERS_READ == 0)
}

fn reveals(state: &State<'_>) -> bool {
    match state {
        State::File(file) => matches!(file.content, Content::Bytes(_)),
        State::Text(_) => true,
        State::Absent | State::Unit(_) | State::List(_) | State::Token(_) => false,
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
            let redacted = Tokens::default().redact(&change).into_owned();
            match expected {
                false => assert_eq!(redacted, change),
                true => {
                    assert_eq!(*content(&redacted.before), Content::Token(Token(1)));
                    assert_eq!(*content(&redacted.after), Content::Token(Token(2)));
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
            let mut tokens = Tokens::default();
            let hidden = tokens.redact(&pull_secret);
            assert_eq!(*content(&hidden.after), Content::Token(Token(2)));
            let entry = Entry { id: id.to_owned(), state: file(b"one", mode), was_secret: false };
            assert_eq!(*content(&tokens.redact_entry(&entry).state), Content::Token(Token(1)));
        }
    }

    #[test]
    fn a_secret_file_that_comes_is_hidden_too() {
        let redacted = change("file:/etc/a", State::Absent, file(b"one", 0o400));
        let redacted = Tokens::default().redact(&redacted).into_owned();
        assert_eq!(redacted.before, State::Absent);
        assert_eq!(*content(&redacted.after), Content::Token(Token(1)));
    }

    #[test]
    fn a_password_is_hidden_and_other_texts_are_not() {
        let text = |text: &'static str| State::Text(Cow::Borrowed(text));
        let password = change("password:core", text("$6$x"), State::Absent);
        assert!(is_secret(&password));
        let hidden = Tokens::default().redact(&password).into_owned();
        assert_eq!((hidden.before, hidden.after), (State::Token(Token(1)), State::Absent));
        assert!(!is_secret(&change("os-image", text("a"), text("b"))));
        let keys = State::List(vec!["ssh-ed25519 AAAA".into()]);
        assert!(!is_secret(&change("ssh-keys:core", State::Absent, keys)));
    }

    #[test]
    fn an_entry_is_hidden_by_the_same_rule() {
        let entry = |mode| Entry {
            id: "file:/etc/a".to_owned(),
            state: file(b"one", mode),
            was_secret: false,
        };
        assert!(!is_secret_entry(&entry(0o644)));
        assert_eq!(*Tokens::default().redact_entry(&entry(0o644)), entry(0o644));
        assert!(is_secret_entry(&entry(0o600)));
        let hidden = Tokens::default().redact_entry(&entry(0o600)).into_owned();
        assert_eq!(*content(&hidden.state), Content::Token(Token(1)));
        // One that everybody may read from now on, as its change.
        let was_secret = Entry { was_secret: true, ..entry(0o644) };
        assert!(is_secret_entry(&was_secret) && reveals_secret_entry(&was_secret));
        let hidden = Tokens::default().redact_entry(&was_secret).into_owned();
        assert_eq!(*content(&hidden.state), Content::Token(Token(1)));
    }

    #[test]
    fn tokens_are_numbered_in_order_within_a_call_and_equal_where_contents_of_one_file_are() {
        let mut tokens = Tokens::default();
        let secret = |id: &str, before, after| change(id, file(before, 0o600), file(after, 0o600));
        let numbers = |change: &Change<'_>| {
            [&change.before, &change.after].map(|state| match content(state) {
                Content::Token(Token(number)) => *number,
                other => panic!("{other:?} is no token"),
            })
        };
        let mut next = |change| numbers(&tokens.redact(&change));
        assert_eq!(next(secret("file:/etc/a", b"one", b"two")), [1, 2]);
        assert_eq!(next(secret("file:/etc/b", b"three", b"three")), [3, 3]);
        assert_eq!(next(secret("file:/etc/a", b"two", b"one")), [2, 1]);
        let entry =
            Entry { id: "file:/etc/d".to_owned(), state: file(b"five", 0o600), was_secret: false };
        assert_eq!(*content(&tokens.redact_entry(&entry).state), Content::Token(Token(4)));
        assert_eq!(Token(5).to_string(), "secret:5");
    }

    #[test]
    fn nobody_learns_by_a_token_that_another_file_has_the_same_contents() {
        let shown = |guess: &'static [u8]| {
            let mut tokens = Tokens::default();
            let key = Entry {
                id: "file:/etc/a/client.key".into(),
                state: file(b"key", 0o600),
                was_secret: false,
            };
            let guess = change("file:/etc/b/client.key", State::Absent, file(guess, 0o600));
            let password = change("password:core", State::Text("key".into()), State::Absent);
            let key = tokens.redact_entry(&key).into_owned();
            [tokens.redact(&guess), tokens.redact(&password)]
                .map(|it| (key.clone(), it.before.clone(), it.after.clone()))
        };
        assert_eq!(shown(b"key"), shown(b"no key"));
        // Nor by contents that everybody may read.
        let public = change("file:/etc/c", file(b"key", 0o644), file(b"key2", 0o644));
        assert_eq!(*Tokens::default().redact(&public), public);
    }

    #[test]
    fn a_token_tells_no_secret() {
        let secret = change("file:/etc/a", State::Absent, file(b"one", 0o600));
        assert!(reveals_secret(&secret));
        assert!(!reveals_secret(&Tokens::default().redact(&secret)));
        assert!(!reveals_secret(&change("file:/etc/a", State::Absent, file(b"one", 0o644))));
    }
}
