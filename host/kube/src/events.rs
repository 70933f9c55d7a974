//! What tread tells of, as Events that `kubectl describe` and `kubectl events`
//! show.

use crate::api::conditions::cut;
use crate::api::words::MANAGER;
use crate::clean::clean;
use crate::told::told;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event as Written;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Api, Client};
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tread_model::digest::Fields;

/// The API server takes no longer note.
const LONGEST_NOTE: usize = 1024;

/// Whoever tells has other things to do than to wait for a silent API server.
const PATIENCE: Duration = Duration::from_secs(5);

/// Before an Event is tried again at first, where the API server is busy.
const BUSY_WAIT: Duration = Duration::from_millis(500);

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $name:ident),* $(,)?) => {
        /// What an Event is about, in a stable word.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Reason {
            $($(#[doc = $doc])+ $name,)*
        }

        impl Reason {
            /// All of them.
            pub const ALL: &[Reason] = &[$(Reason::$name),*];

            /// The word.
            pub fn word(self) -> &'static str {
                match self {
                    $(Reason::$name => stringify!($name),)*
                }
            }

            /// What it means.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Reason::$name => concat!($($doc),+).trim_ascii(),)*
                }
            }
        }
    };
}

reasons! {
    /// On a DisruptionPolicy and its ConfigMap: this version decides from now on.
    PolicyLoaded,
    /// On both: the new version is bad, and the one before goes on deciding.
    PolicyLastGood,
    /// On both: it cannot decide, and what it claims costs reboots.
    PolicyFailed,
    /// On both: it claims more than its namespace may, and an admin has to approve that.
    PolicyNeedsApproval,
    /// On both: an admin switched it off.
    PolicyDisabled,
    /// On a DisruptionPolicy: what it stood for is gone, and it is removed, with what an admin had said in it.
    PolicyWithdrawn,
    /// On the newest labelled ConfigMap of a namespace: policies from there are not allowed.
    NamespaceNotAllowed,
    /// On a labelled ConfigMap: its policy would have a name that is too long.
    NameTooLong,
    /// On a labelled ConfigMap: there are as many policies as there may be.
    TooManyPolicies,
    /// On a labelled ConfigMap: another policy has the name that its policy would have.
    NameTaken,
    /// On a DisruptionPolicy: it made pending plans gentler or harsher.
    PlansChanged,
    /// On a DisruptionPlan: changed policies made what tread does gentler or harsher.
    PlanChanged,
    /// On a DisruptionPlan: somebody else's, under a name that tread uses, was removed.
    PlanReplaced,
    /// On a MachineConfigPool: a part of it cannot be read, and counts as not set.
    PoolUnreadable,
    /// On a Node: it is in several pools, and nobody can say which config it is to have.
    InSeveralPools,
    /// On BootImages: images are too old for an update of the cluster.
    BootImagesTooOld,
    /// On BootImages: no image is too old any more.
    BootImagesWithinLimit,
    /// On BootImages: an admin does not want to be told.
    BootImagesNotJudged,
    /// On a Machine and what made it: it has no node for long, and its image may be why.
    MachineStuck,
}

/// All reasons as a table, for people.
pub fn table() -> String {
    let mut table = String::from("| reason | what |\n| --- | --- |\n");
    for reason in Reason::ALL {
        table.push_str(&format!("| `{reason}` | {} |\n", reason.meaning()));
    }
    table
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

/// Something to tell of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What it is about.
    pub reason: Reason,
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
    client: Client,
    replica: String,
    recorder: Recorder,
    action: &'static str,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("action", &self.action).finish_non_exhaustive()
    }
}

impl Events {
    /// Events of this replica, about what it does here: `Load`, `Plan`, `Judge`.
    pub fn new(client: Client, replica: &str, action: &'static str) -> Events {
        let reporter =
            Reporter { controller: MANAGER.to_owned(), instance: Some(replica.to_owned()) };
        let recorder = Recorder::new(client.clone(), reporter);
        Events { client, replica: replica.to_owned(), recorder, action }
    }

    /// Tells of something that stays true, once for as long as the API server keeps
    /// Events: also where another replica told it.
    pub async fn tell_once(&self, about: &ObjectReference, note: &Note) -> Told {
        let namespace = about.namespace.as_deref().unwrap_or("default");
        let mut fields = Fields::new("tread event 1");
        fields.field(about.uid.as_deref().unwrap_or_default().as_bytes());
        fields.field(note.reason.word().as_bytes());
        let event = Written {
            metadata: ObjectMeta {
                // The same on every replica.
                name: Some(format!("tread-{}", fields.finish().short())),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            action: Some(self.action.to_owned()),
            event_time: Some(MicroTime(Timestamp::now())),
            note: Some(fit(&note.text)),
            reason: Some(note.reason.word().to_owned()),
            regarding: Some(about.clone()),
            reporting_controller: Some(MANAGER.to_owned()),
            reporting_instance: Some(self.replica.clone()),
            type_: Some(if note.warns { "Warning" } else { "Normal" }.to_owned()),
            ..Written::default()
        };
        let events: Api<Written> = Api::namespaced(self.client.clone(), namespace);
        let params = PostParams::default();
        let made = async {
            again_while_busy(
                || async { events.create(&params, &event).await.map(|_| ()) },
                |code| code == 429,
            )
            .await
        };
        match timeout(PATIENCE, made).await {
            Ok(Err(kube::Error::Api(status))) if status.is_already_exists() => Told::Answered,
            how => answered(note, how),
        }
    }

    /// Tells of something that is about this object. An Event that cannot be
    /// written is only logged: the state itself is in the object's status.
    pub async fn tell(&self, about: &ObjectReference, note: &Note) -> Told {
        let event = Event {
            type_: if note.warns { EventType::Warning } else { EventType::Normal },
            reason: note.reason.word().to_owned(),
            note: Some(fit(&note.text)),
            action: self.action.to_owned(),
            secondary: None,
        };
        let published = again_while_busy(
            || self.recorder.publish(&event, about),
            |code| matches!(code, 409 | 429),
        );
        answered(note, timeout(PATIENCE, published).await)
    }
}

fn answered(note: &Note, how: Result<kube::Result<()>, tokio::time::error::Elapsed>) -> Told {
    let reason = note.reason.word();
    match how {
        Ok(Ok(())) => Told::Answered,
        Ok(Err(error)) => {
            tracing::warn!(reason, "an Event was not written: {}", told(&error));
            Told::Answered
        }
        Err(_) => {
            tracing::warn!(reason, "an Event was not written: no answer");
            Told::NoAnswer
        }
    }
}

/// What a terminal and the API server take.
fn fit(text: &str) -> String {
    cut(clean(text), LONGEST_NOTE)
}

/// Tries again while the API server has too much to do.
async fn again_while_busy<F: Future<Output = kube::Result<()>>>(
    ask: impl Fn() -> F,
    is_busy: impl Fn(u16) -> bool,
) -> kube::Result<()> {
    let mut wait = BUSY_WAIT;
    loop {
        match ask().await {
            Err(kube::Error::Api(status)) if is_busy(status.code) => {
                tracing::debug!(code = status.code, "an Event waits: {}", status.message);
            }
            done => return done,
        }
        sleep(wait).await;
        wait = wait.saturating_mul(2);
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
        let note = Note { reason: Reason::PolicyLoaded, warns: false, text: String::new() };
        // It ends a test that would hang: the client itself waits without end.
        let long = Duration::from_secs(120);
        let events = Events::new(client, "test", "Load");
        let told = tokio::time::timeout(long, events.tell(&about, &note)).await.unwrap();
        assert_eq!(told, Told::NoAnswer);
        taken.abort();
    }
}
