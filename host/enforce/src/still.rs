//! Whether it is still a node's turn, asked in the moment before it is begun.

use std::fmt;
use std::sync::Arc;

/// Whether it is still a node's turn, by what is known when it is asked. Unless something is given
/// to ask, it is.
#[derive(Clone, Default)]
pub struct Still(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Still {
    /// As this says each time.
    pub fn by(says: impl Fn() -> bool + Send + Sync + 'static) -> Still {
        Still(Some(Arc::new(says)))
    }

    /// Whether it is.
    pub(crate) fn holds(&self) -> bool {
        self.0.as_ref().is_none_or(|says| says())
    }
}

impl fmt::Debug for Still {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Still").field(&self.holds()).finish()
    }
}
