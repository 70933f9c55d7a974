//! What the parts of an export share: who answers, and what cannot be said.

use super::answer::{Place, answer};
use super::entry::{Act, entry};
use super::voice::{Says, Voice};
use crate::claim::{Kind, Pattern, Shape};
use std::collections::BTreeMap;

/// Whom OpenShift's configs can give keys and a password.
pub(super) const USER: &str = "core";

/// What becomes of one place.
pub(super) type Found = Result<Option<Vec<Act>>, String>;

/// What is found out while one object is written.
pub(super) struct Exporting<'v> {
    pub(super) voices: &'v [Voice],
    /// Why a place has no entry, by the kind and the shape of the pattern that names
    /// it.
    pub(super) reasons: BTreeMap<(Kind, Shape), String>,
    /// Whether answers need no entry, because OpenShift reboots without one.
    pub(super) needless: bool,
}

impl Exporting<'_> {
    /// What is answered for a place, as an entry.
    pub(super) fn listed(&self, place: Place<'_>, daemon_reload: bool) -> Found {
        match answer(self.voices, place)? {
            Some(actions) => entry(&actions, daemon_reload).map(Some),
            None => Ok(None),
        }
    }

    /// All that the voices say something of, by voice and as it is written there.
    pub(super) fn patterns(&self) -> impl Iterator<Item = (&Voice, &str, Pattern)> {
        self.voices.iter().flat_map(|voice| {
            let texts: Vec<&str> = match &voice.says {
                Says::Rules(rules) => {
                    rules.iter().flat_map(|rule| &rule.r#match).map(String::as_str).collect()
                }
                Says::Claims(claims) => claims.iter().map(|it| it.changes.as_str()).collect(),
            };
            let parsed = texts.into_iter().map(|text| (text, Pattern::parse(text)));
            parsed.filter_map(move |(text, pattern)| Some((voice, text, pattern.ok()?)))
        })
    }
}
