//! Boot images: which version a machine resource boots, whether that is too old
//! for the cluster, and why, in words.
//!
//! The data runs one way: what a resource says (`provider`, `template`) and what
//! is known besides (`catalogue`) are `sources`; the best of them gives a
//! version, and `rule` holds it against the `limits` of a release.

pub mod catalogue;
mod document;
pub mod limits;
pub mod operator;
pub mod patch;
pub mod provider;
pub mod rule;
pub mod sources;
pub mod template;
pub mod user_data;
pub mod version;

pub use catalogue::Catalogue;
pub use document::shown;
pub use limits::{Limits, Stream, Tighter};
pub use provider::{Boots, Platform};
pub use rule::{Mode, Outcome, Reason, Verdict};
pub use sources::{Found, KnownBy};
pub use version::{ImageVersion, Release, Rhel};
