//! Of those that are answered at a time, a share for each of several who ask: nobody takes all.

use super::answer::Refused;
use axum::extract::Request;
use axum::http::StatusCode;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Whose share a request takes; none: it takes nobody's, and is answered soon.
pub(super) type Whose = Arc<dyn Fn(&Request) -> Option<String> + Send + Sync>;

/// What each of them has. Clones share it.
#[derive(Clone)]
pub(super) struct Shares {
    whose: Whose,
    most: usize,
    each: Arc<Mutex<HashMap<String, Arc<Semaphore>>>>,
}

impl fmt::Debug for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shares").field("most", &self.most).finish_non_exhaustive()
    }
}

impl Shares {
    /// So many for each.
    pub(super) fn new(most: usize, whose: Whose) -> Shares {
        Shares { whose, most, each: Arc::default() }
    }

    /// A place of a share, until it is dropped. Whoever has used it up does not wait: that would
    /// take a connection from others.
    pub(super) fn take(&self, request: &Request) -> Result<Option<OwnedSemaphorePermit>, Refused> {
        let Some(whose) = (self.whose)(request) else { return Ok(None) };
        let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
        // A place that is taken holds its share.
        each.retain(|_, share| Arc::strong_count(share) > 1);
        let share = each.entry(whose).or_insert_with(|| Arc::new(Semaphore::new(self.most)));
        Arc::clone(share).try_acquire_owned().map(Some).map_err(|_| {
            let sentence = format!(
                "{} machines of this pool are being answered already; ask again",
                self.most
            );
            Refused::new(StatusCode::SERVICE_UNAVAILABLE, sentence)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    #[test]
    fn each_has_its_share_and_nothing_is_left_of_what_was_given_back() {
        let whose: Whose = Arc::new(|request| match request.uri().path() {
            "/none" => None,
            path => Some(path.to_owned()),
        });
        let shares = Shares::new(2, whose);
        let take = |path: &str| shares.take(&Request::get(path).body(Body::empty()).unwrap());
        let held: Vec<_> = ["/a", "/a", "/b"].map(|path| take(path).unwrap()).into();
        assert!(held.iter().all(Option::is_some));
        assert_eq!(take("/a").unwrap_err().status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(take("/b").unwrap().is_some(), "others have their own");
        assert!(take("/none").unwrap().is_none());
        drop(held);
        assert!(take("/a").unwrap().is_some());
        for number in 0..100 {
            take(&format!("/{number}")).unwrap();
        }
        assert!(shares.each.lock().unwrap().len() <= 1);
    }
}
