//! Work in the background, for as long as somebody needs it.

use tokio::task::AbortHandle;

/// Ends a job with its entry, or when another takes its place.
#[derive(Debug)]
pub(super) struct Running<T> {
    pub(super) what: T,
    pub(super) task: AbortHandle,
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
