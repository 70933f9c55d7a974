//! How long things last.

use super::order::Disrupts;
use super::question::What;
use std::time::Duration;

/// How long things last: settings of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// For how long a Lease is taken and renewed.
    pub lease: Duration,
    /// By how much the clocks of others who take Leases may differ from the API server's.
    pub skew: Duration,
    /// By how much a clock that only counts may be wrong over one permit, and how long a request
    /// to the API server may be on its way.
    pub drift: Duration,
    /// How long the longest step takes that is begun with a permit and is no boot.
    pub step: Duration,
    /// How long a boot, the proof after it and the way back take together.
    pub boot: Duration,
    /// For how long a replica may cordon and evict before it looks again.
    pub pass: Duration,
}

impl Default for Terms {
    fn default() -> Terms {
        let minutes = |count: u64| Duration::from_secs(count * 60);
        Terms {
            lease: minutes(30),
            skew: minutes(11),
            drift: minutes(1),
            step: minutes(6),
            boot: minutes(45),
            pass: minutes(2),
        }
    }
}

impl Terms {
    /// How long something lasts that a permit lets begin.
    pub(super) fn lasts(&self, what: What) -> Duration {
        match what {
            What::Write | What::Unit => self.step,
            What::Boot => self.boot,
        }
    }

    /// What has to be left of a Lease when something ends that it covers.
    pub(super) fn margin(&self) -> Duration {
        self.skew.saturating_add(self.drift)
    }

    /// How long a Lease is to last from now on.
    pub(super) fn lease_for(&self, disrupts: Disrupts) -> Duration {
        match disrupts {
            Disrupts::Reboot => self.lease.saturating_add(self.boot),
            _ => self.lease.saturating_add(self.step),
        }
    }

    /// Whether a Lease leaves room for each permit that is given under it.
    pub fn are_possible(&self) -> bool {
        let third = self.lease / 3;
        self.lease.saturating_sub(third) > self.margin().saturating_add(self.pass)
    }
}
