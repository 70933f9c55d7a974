//! What OpenShift's object does not say.

use super::answer::{Place, answer};
use super::exporting::{Exporting, USER};
use crate::claim::{Kind, Pattern, Shape};
use serde::Serialize;
use std::collections::BTreeSet;

/// A pattern or claim that OpenShift's object does not carry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LeftOut {
    /// Whose it is.
    pub policy: String,
    /// As it is written there.
    pub pattern: String,
    /// The reason, in words.
    pub reason: String,
}

impl Exporting<'_> {
    /// Every pattern that says something and is not, or not wholly, exported.
    pub(super) fn left_out(&mut self) -> Vec<LeftOut> {
        let mut left = BTreeSet::new();
        let mut needless = false;
        for (voice, text, pattern) in self.patterns() {
            if voice.abstains_on(text) && !self.costs_more(&pattern) {
                continue;
            }
            if voice.only_reboots(text) && !pattern.kind().is_named() {
                needless = true;
                continue;
            }
            for shape in pattern.shapes() {
                let Some(reason) = self.why_not(pattern.kind(), &shape) else { continue };
                let (policy, pattern) = (voice.name.clone(), text.to_owned());
                left.insert(LeftOut { policy, pattern, reason });
            }
        }
        self.needless |= needless;
        left.into_iter().collect()
    }

    /// Whether a glob makes a whole directory cost what only a part of it does.
    fn costs_more(&self, pattern: &Pattern) -> bool {
        pattern.shapes().iter().any(|shape| match (shape, shape.directory()) {
            (Shape::Glob { .. }, Some(directory)) => {
                self.reasons.contains_key(&(pattern.kind(), Shape::Below(directory.to_owned())))
            }
            _ => false,
        })
    }

    fn why_not(&self, kind: Kind, shape: &Shape) -> Option<String> {
        if let Some(reason) = self.reasons.get(&(kind, shape.clone())) {
            return Some(reason.clone());
        }
        match (kind, shape) {
            (Kind::File, Shape::Below(directory)) if directory.is_empty() => {
                Some("OpenShift has no entry for everything: its / matches nothing".to_owned())
            }
            // Something wider says the same, or decides.
            (Kind::File, shape @ Shape::Glob { .. })
                if answer(self.voices, Place::Below(shape.directory().unwrap_or_default()))
                    .is_ok_and(|found| found.is_some()) =>
            {
                None
            }
            (Kind::File, Shape::Glob { .. }) => {
                Some("OpenShift has no globs: it takes whole paths and directories".to_owned())
            }
            (Kind::Unit, Shape::Below(_) | Shape::Glob { .. }) => {
                Some("OpenShift has no globs: it takes whole names of units".to_owned())
            }
            (Kind::SshKeys | Kind::Password, Shape::Exact(user)) if user != USER => {
                Some(format!("OpenShift knows no user but {USER}"))
            }
            (Kind::SshKeys | Kind::Password, Shape::Glob { .. }) => {
                Some(format!("OpenShift has no globs, and knows no user but {USER}"))
            }
            (Kind::File | Kind::Unit | Kind::SshKeys | Kind::Password, _) => None,
            (kind, _) => {
                Some(format!("OpenShift always reboots for a change of {}", kind.as_str()))
            }
        }
    }
}
