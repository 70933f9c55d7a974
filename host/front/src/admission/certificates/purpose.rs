//! For whom certificates are made.

use super::lives::Lives;
use crate::names::{MACHINES_SECRET, SECRET};
use std::time::Duration;

/// For whom certificates are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The API server, which is told whom to trust whenever that changes; and others who are told
    /// from time to time.
    Webhook,
    /// Machines that boot, which are told once, in their user data.
    Machines,
}

impl Purpose {
    pub(super) fn secret(self) -> &'static str {
        match self {
            Purpose::Webhook => SECRET,
            Purpose::Machines => MACHINES_SECRET,
        }
    }

    /// For how long things are good.
    pub fn lives(self) -> Lives {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
        match self {
            Purpose::Webhook => Lives::default(),
            // Another one is made in the last third: after ten years. It signs a year later, and
            // user data that is made from then on has both.
            Purpose::Machines => Lives { authority: YEAR * 15, overlap: YEAR, ..Lives::default() },
        }
    }
}
