//! How long certificates and paths are good, and why there may be none.

use std::time::Duration;

/// For how long things are good.
#[derive(Debug, Clone, Copy)]
pub struct Lives {
    /// An authority.
    pub authority: Duration,
    /// A server's certificate.
    pub server: Duration,
    /// How long everybody has to learn of something new before it is relied on.
    pub overlap: Duration,
}

impl Default for Lives {
    fn default() -> Lives {
        const DAY: Duration = Duration::from_secs(24 * 3600);
        Lives { authority: DAY * 730, server: DAY * 180, overlap: Duration::from_secs(600) }
    }
}

/// Why a certificate cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// It cannot be made.
    #[error("a certificate cannot be made: {0}")]
    Making(#[from] rcgen::Error),
    /// What is kept is not what was written.
    #[error("{0}")]
    Unusable(String),
}
