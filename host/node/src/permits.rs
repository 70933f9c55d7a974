//! Whether something that disrupts may be done now, and until when.

mod by_file;

pub use by_file::{Answer, ByFile, Question, Questions};

use crate::clock::since_boot;
use futures::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a permit is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "lowercase", deny_unknown_fields)]
pub enum Act {
    /// The first name changes.
    Write,
    /// A unit is told.
    Unit {
        /// Its name.
        unit: String,
    },
    /// The node boots.
    Boot {
        /// Why, where the plan does not say so.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        because: String,
    },
}

/// That something may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permit {
    ends: Option<Duration>,
}

impl Permit {
    /// One that does not end.
    pub const FOREVER: Permit = Permit { ends: None };

    /// One that ends at a time since this boot: see [`since_boot`].
    pub fn until(ends: Duration) -> Permit {
        Permit { ends: Some(ends) }
    }

    /// Whether it may still be done.
    pub fn holds(&self) -> bool {
        self.ends.is_none_or(|ends| since_boot() < ends)
    }

    /// When it ends, since this boot.
    pub fn ends(&self) -> Option<Duration> {
        self.ends
    }
}

/// Why there is no permit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPermit {
    /// What has begun stays, and asks again once it is gone on with.
    #[error("{0}")]
    NotNow(String),
    /// Nobody permits anything more of this operation: what has begun ends as it stands.
    #[error("{0}")]
    Never(String),
}

/// Who says whether something may be done now. Whoever is asked takes the time it needs; a
/// refusal says why.
pub trait Permits {
    /// Whether it may be done now; otherwise why not.
    fn ask(&self, act: Act) -> LocalBoxFuture<'_, Result<Permit, NoPermit>>;
}

/// Nobody else decides: everything may be done at any time.
pub struct Alone;

impl Permits for Alone {
    fn ask(&self, _: Act) -> LocalBoxFuture<'_, Result<Permit, NoPermit>> {
        Box::pin(async { Ok(Permit::FOREVER) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_ends_on_the_nodes_own_clock() {
        assert!(Permit::FOREVER.holds());
        assert!(Permit::until(since_boot() + Duration::from_secs(3600)).holds());
        assert!(!Permit::until(since_boot()).holds());
        assert!(!Permit::until(Duration::ZERO).holds());
    }
}
