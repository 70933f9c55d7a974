//! What tread tells of, as Events that `kubectl describe` and `kubectl events`
//! show.

mod told;

use crate::api::conditions::cut;
use crate::api::words::MANAGER;
use crate::asking::{Call, CallOutcome, Failed, SHORT_PATIENCE, ask_again, is_busy};
use crate::clean::clean;
use crate::metrics::Metrics;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event as Written;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use told::{Told, Turn};
use tread_model::digest::Fields;

/// The API server takes no longer note.
const LONGEST_NOTE: usize = 1024;

const EVENTS: &str = "events";

/// An Event that says the same again is counted up for so many seconds, and then written anew.
const WINDOW: i64 = 360;

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
    /// On both: the new version is bad, and the one before goes on, as the message says.
    PolicyLastGood,
    /// On both: it cannot decide; the message says whether what it claims costs reboots.
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
    /// On a MachineConfigPool: it cannot be read, or a selector of it; while it is that of nodes, OpenShift places no node in any pool.
    PoolUnreadable,
    /// On a Node: it is in several pools, and nobody can say which config it is to have.
    InSeveralPools,
    /// On a Node: it is in the pool `master`, and gets nothing of another pool that selects it too.
    MasterCounts,
    /// On a Node and two MachineConfigPools: it booted into one, and counts in the other, which is about to give it its own config.
    NodeStrays,
    /// On a MachineSet and a MachineConfigPool: its machines boot into the pool, and will count in another.
    MachinesWillStray,
    /// On BootImages: images are too old for an update of the cluster.
    BootImagesTooOld,
    /// On BootImages: no image is too old any more.
    BootImagesWithinLimit,
    /// On BootImages: an admin does not want to be told.
    BootImagesNotJudged,
    /// On a Node: tread drains it, since a change of its config needs that.
    NodeUpdateBegun,
    /// On a Node: no pod has to move any more, and its agent brings it to its new config.
    NodeDrained,
    /// On a Node: it booted for a change of its config, and has to prove that it is well.
    NodeBooted,
    /// On a Node: it has its new config, and pods come back.
    NodeUpdateEnded,
    /// On a Node: what was begun on it was given up before it had its new config, and pods come back.
    NodeUpdateTurnedBack,
    /// On a Node and its MachineConfigPool: a step of a plan without a boot failed; the node waits for its turn to boot, and its pool halts; changes without a boot wait for `tread rollout retry`.
    NodeNeedsBoot,
    /// On a Node and its MachineConfigPool: it failed, or went back to its old config; its pool halts.
    NodeUpdateFailed,
    /// On a Node: somebody else has it (a Lease, a cordon, a NodeMaintenance), and a change of its config waits for them.
    NodeTaken,
    /// On a Node: it is flagged for maintenance, and OpenShift's operator, which does not wait for that, is about to change it.
    NodeFlagged,
    /// On a Node: it has joined the pool whose config it booted with.
    NodeJoined,
    /// On a Node: it registered as joining, and is in no pool: why, and the way out.
    NodeHeld,
    /// On a MachineConfigPool: machines fetched its config, and registered no node within 30 minutes: from where, and when.
    MachinesMissing,
    /// On a MachineConfigPool: a machine asked for its config and was sent away, so that it asks no more: it showed no token of the pool, or its Ignition reads no version that the config fits. One of each in ten minutes.
    MachinesSentAway,
    /// On a MachineConfigPool: the next nodes get a change that drains none of them. One for each wave.
    SoftWave,
    /// On a MachineConfigPool: all its nodes have its config.
    PoolUpdated,
    /// On a MachineConfigPool: its config cannot be made, so its nodes keep what they have.
    PoolNotRendered,
    /// On a MachineConfigPool: somebody removed its Rollout; tread made it anew, and it is paused until somebody resumes it.
    RolloutMadeAnew,
    /// On a Machine and what made it: it has no node for long, and its image may be why.
    MachineStuck,
    /// On BootImages: a machine says at its first boot that its image is too old, and whether it joins all the same.
    MachineTooOld,
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

/// Something to report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What it is about.
    pub reason: Reason,
    /// Whether somebody should do something about it.
    pub warns: bool,
    /// A sentence.
    pub text: String,
}

/// When something was reported that is reported once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Once {
    /// Now.
    Now,
    /// Before, perhaps by another replica.
    Before,
}

/// Where Events go.
#[derive(Clone)]
pub struct Events {
    client: Client,
    replica: String,
    action: &'static str,
    metrics: Metrics,
    told: Arc<Mutex<Told>>,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("action", &self.action).finish_non_exhaustive()
    }
}

impl Events {
    /// Events of this replica, about what it does here: `Load`, `Plan`, `Judge`.
    pub fn new(client: Client, replica: &str, action: &'static str, metrics: &Metrics) -> Events {
        let (replica, metrics) = (replica.to_owned(), metrics.clone());
        Events { client, replica, action, metrics, told: Arc::default() }
    }

    /// Reports something that stays true, once for as long as the API server keeps Events: also where
    /// another replica reported it. `of` tells apart what is reported for the same reason on one
    /// object. What cannot be written is logged, and is an error where it may be reported later: no
    /// answer came, or the API server has too much to do.
    pub async fn report_each(
        &self,
        about: &ObjectReference,
        note: &Note,
        of: &str,
    ) -> Result<Once, Failed> {
        let event = self.event(about, note, name(about, note, [of]));
        match self.create(&event).await {
            Err(failed) if failed.outcome == CallOutcome::Conflict => Ok(Once::Before),
            made => written(note, made).map(|()| Once::Now),
        }
    }

    /// Reports something that is about this object. What is said again within some minutes counts
    /// up the Event that says it. An Event that cannot be written is only logged.
    pub async fn report(&self, about: &ObjectReference, note: &Note) {
        let window = Timestamp::now().as_second() / WINDOW;
        let name = name(about, note, [&window.to_string(), &note.text]);
        let of = (about.uid.clone().unwrap_or_default(), note.reason.word());
        let turn = {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            told.turn(window, of, &name)
        };
        let event = self.event(about, note, name);
        let done = match turn {
            Turn::First => match self.create(&event).await {
                // Another replica said so.
                Err(failed) if failed.outcome == CallOutcome::Conflict => {
                    self.count(&event, 2).await
                }
                done => done,
            },
            Turn::Again(times) => match self.count(&event, times).await {
                // It could not be written the first time.
                Err(failed) if failed.outcome == CallOutcome::Gone => self.create(&event).await,
                done => done,
            },
            Turn::TooMany => {
                let (reason, text) = (note.reason.word(), &note.text);
                let object = about.name.as_deref().unwrap_or_default();
                tracing::warn!(object, reason, "no Event says so, since there are many: {text}");
                return;
            }
        };
        // It is logged.
        let _ = written(note, done);
    }

    fn event(&self, about: &ObjectReference, note: &Note, name: String) -> Written {
        Written {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(about.namespace.as_deref().unwrap_or("default").to_owned()),
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
        }
    }

    async fn create(&self, event: &Written) -> Result<(), Failed> {
        let namespace = event.namespace().unwrap_or_default();
        let events: Api<Written> = Api::namespaced(self.client.clone(), &namespace);
        let params = PostParams::default();
        let call = Call::new("create", EVENTS).within(&namespace);
        let make = || events.create(&params, event);
        ask_again(SHORT_PATIENCE, &self.metrics, call, make, is_busy).await.map(drop)
    }

    /// Says that an Event happened so many times by now.
    async fn count(&self, event: &Written, times: u32) -> Result<(), Failed> {
        let (namespace, name) = (event.namespace().unwrap_or_default(), event.name_any());
        let events: Api<Written> = Api::namespaced(self.client.clone(), &namespace);
        let params = PatchParams::default();
        let series = json!({"count": times, "lastObservedTime": event.event_time});
        let patch = Patch::Merge(json!({ "series": series }));
        let call = Call::new("patch", EVENTS).within(&namespace);
        let make = || events.patch(&name, &params, &patch);
        ask_again(SHORT_PATIENCE, &self.metrics, call, make, is_busy).await.map(drop)
    }
}

/// The name of an Event, which is the same on every replica.
fn name<const N: usize>(about: &ObjectReference, note: &Note, of: [&str; N]) -> String {
    let mut fields = Fields::new("tread event 1");
    fields.field(about.uid.as_deref().unwrap_or_default().as_bytes());
    fields.field(note.reason.word().as_bytes());
    for part in of.into_iter().filter(|part| !part.is_empty()) {
        fields.field(part.as_bytes());
    }
    format!("tread-{}", fields.finish().short())
}

fn written(note: &Note, done: Result<(), Failed>) -> Result<(), Failed> {
    let Err(failed) = done else { return Ok(()) };
    tracing::warn!(reason = note.reason.word(), "an Event was not written: {failed}");
    match failed.outcome {
        CallOutcome::Unanswered => Err(failed),
        _ => Ok(()),
    }
}

/// What a terminal and the API server take.
fn fit(text: &str) -> String {
    cut(clean(text), LONGEST_NOTE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::client::Body;
    use serde_json::Value;

    /// What an API server was asked, with the body.
    type Asked = Arc<Mutex<Vec<(http::Method, Value)>>>;

    /// An API server that keeps Events, and writes down what it was asked.
    fn api_server() -> (Client, Asked) {
        let asked = Asked::default();
        let noted = Arc::clone(&asked);
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let noted = Arc::clone(&noted);
            async move {
                let (method, path) = (request.method().clone(), request.uri().path().to_owned());
                let bytes = request.into_body().collect_bytes().await?;
                let mut body: Value = serde_json::from_slice(&bytes).unwrap();
                let mut noted = noted.lock().unwrap();
                let is_it = |name: &Value| path.ends_with(name.as_str().unwrap());
                let name = body["metadata"]["name"].clone();
                let known: Vec<Value> =
                    noted.iter().map(|(_, body)| body["metadata"]["name"].clone()).collect();
                let code = match method == http::Method::POST {
                    true if known.contains(&name) => {
                        body = json!({"status": "Failure", "code": 409, "reason": "AlreadyExists"});
                        409
                    }
                    true => {
                        noted.push((method, body.clone()));
                        201
                    }
                    false => {
                        assert!(known.iter().any(is_it), "{path} of {known:?}");
                        noted.push((method, body));
                        body = noted.first().unwrap().1.clone();
                        200
                    }
                };
                let answer = http::Response::builder().status(code);
                Ok::<_, kube::Error>(
                    answer.body(Body::from(body.to_string().into_bytes())).unwrap(),
                )
            }
        });
        (Client::new(service, "default"), asked)
    }

    fn policy() -> ObjectReference {
        ObjectReference {
            api_version: Some("tread.dev/v1alpha1".to_owned()),
            kind: Some("DisruptionPolicy".to_owned()),
            name: Some("apps.a".to_owned()),
            uid: Some("1".to_owned()),
            ..ObjectReference::default()
        }
    }

    fn failed(text: &str) -> Note {
        Note { reason: Reason::PolicyFailed, warns: true, text: text.to_owned() }
    }

    #[tokio::test]
    async fn each_text_has_an_event_of_its_own_and_the_same_text_is_counted() {
        let (client, asked) = api_server();
        let metrics = Metrics::new();
        let events = Events::new(client.clone(), "test", "Load", &metrics);
        for text in ["v2 traps", "v3 claims nonsense", "v2 traps"] {
            events.report(&policy(), &failed(text)).await;
        }
        // Another replica that leads now.
        let other = Events::new(client, "other", "Load", &metrics);
        other.report(&policy(), &failed("v3 claims nonsense")).await;
        let asked = asked.lock().unwrap();
        let said: Vec<&Value> = asked.iter().map(|(_, body)| &body["note"]).collect();
        // Between the first and the last one a window may have ended, and all is said anew.
        assert!(said.starts_with(&[&json!("v2 traps"), &json!("v3 claims nonsense")]), "{said:?}");
        if asked.iter().filter(|(method, _)| method == http::Method::POST).count() == 2 {
            let counts: Vec<&Value> =
                asked[2..].iter().map(|(_, it)| &it["series"]["count"]).collect();
            assert_eq!(counts, [&json!(2), &json!(2)]);
        }
    }

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
        let long = std::time::Duration::from_secs(120);
        let metrics = Metrics::new();
        let events = Events::new(client, "test", "Load", &metrics);
        tokio::time::timeout(long, events.report(&about, &note)).await.unwrap();
        let failed =
            tokio::time::timeout(long, events.report_each(&about, &note, "")).await.unwrap();
        assert_eq!(failed.unwrap_err().outcome, CallOutcome::Unanswered);
        let counted = "tread_api_errors_total{verb=\"create\",kind=\"events\",code=\"0\"} 2";
        assert!(metrics.text().unwrap().contains(counted));
        taken.abort();
    }
}
