//! What it takes to report nodes that stray.

use crate::boot_images;
use crate::plans::Previewer;
use tread_kube::events::Events;
use tread_kube::leadership::Leading;
use tread_kube::metrics::Metrics;

/// What it takes to report nodes that stray.
#[derive(Clone)]
pub struct Settings {
    /// What is known of nodes, pools and configs.
    pub previewer: Previewer,
    /// What is known of machine resources.
    pub boot_images: boot_images::Known,
    /// Whether this replica reports.
    pub leads: Leading,
    /// Where to count.
    pub metrics: Metrics,
    /// Where to report.
    pub events: Events,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").finish_non_exhaustive()
    }
}
