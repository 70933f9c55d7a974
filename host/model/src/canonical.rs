//! The one form in which entries are compared, digested and shown: what counts
//! as a difference is decided here and nowhere else.
//!
//! Each rule looks at one side alone, so that two configs compare equal exactly
//! when their digests are equal.

use crate::change::{Content, DropinState, FileState, State, UnitState};
use crate::config::{File, NodeConfig, Unit, User};
use crate::contents::{self, DecodeError};
use std::borrow::Cow;
use std::cmp::Ordering;

/// The mode of a file that sets none.
const DEFAULT_MODE: u32 = 0o644;

/// The only user that can change on a running node.
pub(crate) const CORE: &str = "core";

/// What an entry of one side has on the other.
pub(crate) enum Pair<T> {
    Old(T),
    Both(T, T),
    New(T),
}

impl<T> Pair<T> {
    pub(crate) fn sides(self) -> (Option<T>, Option<T>) {
        match self {
            Pair::Old(old) => (Some(old), None),
            Pair::Both(old, new) => (Some(old), Some(new)),
            Pair::New(new) => (None, Some(new)),
        }
    }
}

/// Walks two lists together that are each sorted by `key`.
pub(crate) fn join<I, T, K>(old: I, new: I, key: fn(&T) -> K) -> impl Iterator<Item = Pair<T>>
where
    I: Iterator<Item = T>,
    K: Ord,
{
    let (mut old, mut new) = (old.peekable(), new.peekable());
    std::iter::from_fn(move || {
        let order = match (old.peek(), new.peek()) {
            (Some(a), Some(b)) => key(a).cmp(&key(b)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return None,
        };
        match order {
            Ordering::Less => old.next().map(Pair::Old),
            Ordering::Greater => new.next().map(Pair::New),
            Ordering::Equal => old.next().zip(new.next()).map(|(old, new)| Pair::Both(old, new)),
        }
    })
}

/// Whether two entries were written with the same text.
fn same_text(old: &[u8], new: &[u8]) -> bool {
    !old.is_empty() && (std::ptr::eq(old, new) || old == new)
}

/// Whether two files of the same path are equal as they were written. `false`
/// says nothing: their bytes may still be equal.
pub(crate) fn files_look_equal(old: &File<'_>, new: &File<'_>) -> bool {
    same_text(old.raw, new.raw)
        || (mode(old) == mode(new)
            && old.appends == new.appends
            && old.user == new.user
            && old.group == new.group
            && old.contents == new.contents)
}

/// As [`files_look_equal`], for units of the same name.
pub(crate) fn units_look_equal(old: &Unit<'_>, new: &Unit<'_>) -> bool {
    same_text(old.raw, new.raw)
        || (old.enabled == new.enabled
            && old.mask == new.mask
            && old.contents == new.contents
            && old.dropins == new.dropins)
}

/// The permission bits.
pub fn mode(file: &File<'_>) -> u32 {
    file.mode.unwrap_or(DEFAULT_MODE)
}

/// The text of a unit or a drop-in: one without any is not written.
pub fn text<'t>(contents: &'t Option<Cow<'_, str>>) -> Option<&'t str> {
    contents.as_deref().filter(|text| !text.is_empty())
}

/// Whether a unit is to be masked.
///
/// `false` takes a mask away that the system's image brings, and nothing leaves it. They mean the same
/// where the config brings the whole unit, which takes the place of a mask.
pub fn mask(unit: &Unit<'_>) -> Option<bool> {
    unit.mask.filter(|mask| *mask || text(&unit.contents).is_none())
}

/// Whether a unit is to be enabled; of one that is masked it does not matter.
///
/// `false` takes away all links to the unit, also where it has no `[Install]` section, as those that
/// the system's image brings. Nothing leaves them to whoever made them, and to the system's presets.
pub fn enabled(unit: &Unit<'_>) -> Option<bool> {
    unit.enabled.filter(|_| unit.mask != Some(true))
}

/// What identifies an OS image: its digest if it has one, whatever the name of
/// the repository.
pub(crate) fn os_image<'i>(image: &'i str) -> &'i str {
    let digest = image.rfind("@sha256:").and_then(|at| image.get(at..));
    let hex = |digest: &&'i str| {
        digest.strip_prefix("@sha256:").is_some_and(|hex| {
            hex.len() == 64 && hex.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
        })
    };
    digest.filter(hex).unwrap_or(image)
}

/// A user's password hash; an empty one sets no password.
pub(crate) fn password<'p, 'a>(user: &'p User<'a>) -> Option<&'p Cow<'a, str>> {
    user.password_hash.as_ref().filter(|hash| !hash.is_empty())
}

/// The users that make a difference: `core` exists on every node, so that an
/// entry for it that sets nothing is none.
pub(crate) fn users<'c, 'a>(config: &'c NodeConfig<'a>) -> impl Iterator<Item = &'c User<'a>> {
    config.users.iter().filter(|user| {
        let empty = user.ssh_keys.is_empty() && password(user).is_none() && user.rest.is_empty();
        !(empty && user.name == CORE)
    })
}

/// A file as it is shown to policies. Contents that the config does not hold
/// are absent.
pub(crate) fn file_state<'a>(file: &File<'a>) -> Result<State<'a>, DecodeError> {
    let content = match contents::decode(&file.contents)? {
        Some(bytes) if !file.appends => Content::Bytes(bytes),
        _ => Content::Absent,
    };
    let (user, group) = (file.user.clone(), file.group.clone());
    Ok(State::File(FileState { content, mode: mode(file), user, group }))
}

/// A unit as it is shown to policies.
pub(crate) fn unit_state<'a>(unit: &Unit<'a>) -> State<'a> {
    let content = |contents: &Option<Cow<'a, str>>| match contents {
        Some(Cow::Borrowed(text)) if !text.is_empty() => {
            Content::Bytes(Cow::Borrowed(text.as_bytes()))
        }
        Some(Cow::Owned(text)) if !text.is_empty() => {
            Content::Bytes(Cow::Owned(text.as_bytes().to_vec()))
        }
        _ => Content::Absent,
    };
    State::Unit(UnitState {
        contents: content(&unit.contents),
        enabled: enabled(unit),
        masked: mask(unit),
        dropins: unit
            .dropins
            .iter()
            .map(|dropin| DropinState {
                name: dropin.name.clone(),
                contents: content(&dropin.contents),
            })
            .collect(),
    })
}

/// A list as it is shown to policies.
pub(crate) fn list_state<'a>(list: &[Cow<'a, str>]) -> State<'a> {
    match list {
        [] => State::Absent,
        list => State::List(list.to_vec()),
    }
}

/// A text as it is shown to policies.
pub(crate) fn text_state<'a>(text: Option<&Cow<'a, str>>) -> State<'a> {
    match text {
        Some(text) if !text.is_empty() => State::Text(text.clone()),
        _ => State::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_unit_that_is_masked_it_does_not_matter_whether_it_is_enabled() {
        for contents in ["", "[Service]\n", "[Service]\n[Install]\nWantedBy=a.target\n"] {
            for said in [None, Some(false), Some(true)] {
                for mask in [None, Some(false), Some(true)] {
                    let unit = Unit {
                        name: "a.service".into(),
                        contents: Some(contents.into()),
                        enabled: said,
                        mask,
                        dropins: Vec::new(),
                        raw: b"",
                        origin: Default::default(),
                    };
                    let expected = if mask == Some(true) { None } else { said };
                    assert_eq!(enabled(&unit), expected, "{unit:?}");
                }
            }
        }
    }

    #[test]
    fn an_os_image_is_its_digest_if_it_has_one() {
        let digest = format!("@sha256:{}", "0a".repeat(32));
        assert_eq!(os_image(&format!("quay.io/a{digest}")), digest);
        assert_eq!(os_image(&format!("quay.io/a:tag{digest}")), digest);
        for image in ["", "quay.io/a:tag", "quay.io/a@sha256:0a", "quay.io/a@sha512:0a"] {
            assert_eq!(os_image(image), image);
        }
        let upper = format!("quay.io/a@sha256:{}", "0A".repeat(32));
        assert_eq!(os_image(&upper), upper);
    }

    #[test]
    fn a_join_meets_every_entry_of_both_sides_once() {
        let pairs = |old: &[u32], new: &[u32]| {
            join(old.iter().copied(), new.iter().copied(), |n| *n)
                .map(Pair::sides)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            pairs(&[1, 2, 4], &[2, 3, 4, 5]),
            [
                (Some(1), None),
                (Some(2), Some(2)),
                (None, Some(3)),
                (Some(4), Some(4)),
                (None, Some(5))
            ]
        );
        assert_eq!(pairs(&[], &[]), []);
    }
}
