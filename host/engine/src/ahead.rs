//! What was compiled before it is loaded.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use tread_model::digest::Sha256;
use tread_model::verdict::Failure;

/// What came of compiling, by the digests of the components, until they are loaded.
#[derive(Debug, Default)]
pub(crate) struct Ahead(Mutex<BTreeMap<Sha256, Result<Vec<u8>, Failure>>>);

impl Ahead {
    /// What came of a component that was compiled ahead.
    pub(crate) fn take(&self, digest: &Sha256) -> Option<Result<Vec<u8>, Failure>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(digest)
    }

    pub(crate) fn put(&self, digest: Sha256, compiled: Result<Vec<u8>, Failure>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(digest, compiled);
    }

    /// Whether all that waits to be loaded is larger than this, in bytes.
    pub(crate) fn is_over(&self, bytes: usize) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().flatten().map(Vec::len).sum::<usize>() > bytes
    }
}
