//! What tread tells of, as Events that `kubectl describe` and `kubectl events`
//! show.

use crate::api::conditions::cut;
use crate::api::words::MANAGER;
use crate::told::told;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The API server takes no longer note.
const LONGEST_NOTE: usize = 1024;

/// Whoever tells has other things to do than to wait for a silent API server.
const PATIENCE: Duration = Duration::from_secs(5);

/// Before an Event is tried again at first, where the API server is busy.
const BUSY_WAIT: Duration = Duration::from_millis(500);

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

/// What the API server said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Yes or no.
    Answered,
    /// Nothing.
    NoAnswer,
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
    pub async fn tell(&self, about: &ObjectReference, note: &Note) -> Told {
        let event = Event {
            type_: if note.warns { EventType::Warning } else { EventType::Normal },
            reason: note.reason.to_owned(),
            note: Some(cut(note.text.clone(), LONGEST_NOTE)),
            action: self.action.to_owned(),
            secondary: None,
        };
        match timeout(PATIENCE, self.published(&event, about)).await {
            Ok(Ok(())) => Told::Answered,
            Ok(Err(error)) => {
                tracing::warn!(reason = note.reason, "an Event was not written: {}", told(&error));
                Told::Answered
            }
            Err(_) => {
                tracing::warn!(reason = note.reason, "an Event was not written: no answer");
                Told::NoAnswer
            }
        }
    }

    /// Tries again while the API server has too much to do.
    async fn published(&self, event: &Event, about: &ObjectReference) -> kube::Result<()> {
        let mut wait = BUSY_WAIT;
        loop {
            match self.recorder.publish(event, about).await {
                Err(kube::Error::Api(status)) if matches!(status.code, 409 | 429) => {
                    tracing::debug!(code = status.code, "an Event waits: {}", status.message);
                }
                done => return done,
            }
            sleep(wait).await;
            wait = wait.saturating_mul(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_event_does_not_wait_for_an_api_server_that_says_nothing() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let taken = tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok(connection) = silent.accept().await {
                open.push(connection);
            }
        });
        let client = Client::try_from(kube::Config::new(url.parse().unwrap())).unwrap();
        let about = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("ConfigMap".to_owned()),
            name: Some("a".to_owned()),
            namespace: Some("b".to_owned()),
            ..ObjectReference::default()
        };
        let note = Note { reason: "PolicyLoaded", warns: false, text: String::new() };
        // It ends a test that would hang: the client itself waits without end.
        let long = Duration::from_secs(120);
        let events = Events::new(client, "test", "Load");
        let told = tokio::time::timeout(long, events.tell(&about, &note)).await.unwrap();
        assert_eq!(told, Told::NoAnswer);
        taken.abort();
    }
}
