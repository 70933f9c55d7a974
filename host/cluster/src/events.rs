//! What tread tells of, as Events that `kubectl describe` and `kubectl events`
//! show.

use crate::api::conditions::cut;
use crate::api::words::MANAGER;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};

/// The API server takes no longer note.
const LONGEST_NOTE: usize = 1024;

/// Something to tell of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// A stable word.
    pub reason: &'static str,
    /// Whether somebody should do something about it.
    pub warns: bool,
    /// A sentence.
    pub text: String,
}

/// Where Events go.
#[derive(Clone)]
pub struct Events {
    recorder: Recorder,
    action: &'static str,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("action", &self.action).finish_non_exhaustive()
    }
}

impl Events {
    /// Events of this replica, about what it does here: `Load`, `Plan`.
    pub fn new(client: Client, replica: &str, action: &'static str) -> Events {
        let reporter =
            Reporter { controller: MANAGER.to_owned(), instance: Some(replica.to_owned()) };
        Events { recorder: Recorder::new(client, reporter), action }
    }

    /// Tells of something that is about this object. An Event that cannot be
    /// written is only logged: the state itself is in the object's status.
    pub async fn tell(&self, about: &ObjectReference, note: &Note) {
        let event = Event {
            type_: if note.warns { EventType::Warning } else { EventType::Normal },
            reason: note.reason.to_owned(),
            note: Some(cut(note.text.clone(), LONGEST_NOTE)),
            action: self.action.to_owned(),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, about).await {
            tracing::warn!(reason = note.reason, "an Event was not written: {error}");
        }
    }
}
