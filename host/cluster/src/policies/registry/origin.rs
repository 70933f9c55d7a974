//! What a version of a policy is made of.

use crate::policies::load::{Body, Terms};
use crate::policies::snapshot::Place;
use serde_json::{Map, Value};
use tread_model::verdict::Failure;

/// All that makes a version what it is: as long as it is the same, there is
/// nothing to load.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Recipe {
    pub(super) origin: Origin,
    pub(super) settings: Map<String, Value>,
    pub(super) pin: Option<String>,
    pub(super) terms: Terms,
}

/// Where a version comes from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Origin {
    /// A ConfigMap, as it was written last.
    ConfigMap { place: Place, uid: String, resource_version: String, key: Option<String> },
    /// It is at hand.
    Here(Body),
    /// There is nothing to load.
    Nothing(Failure),
}

impl Recipe {
    /// Whether at most the ConfigMap was written in between: where it is and all
    /// that an admin says is the same.
    pub(super) fn is_as_before(&self, other: &Recipe) -> bool {
        let same_origin = match (&self.origin, &other.origin) {
            (Origin::ConfigMap { place, .. }, Origin::ConfigMap { place: other, .. }) => {
                place == other
            }
            (origin, other) => origin == other,
        };
        same_origin
            && self.settings == other.settings
            && self.pin == other.pin
            && self.terms == other.terms
    }
}
