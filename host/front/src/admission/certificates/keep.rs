//! Follows the Secret and the webhook's configuration; the leader keeps both.

use super::lives::{CertificateError, Lives};
use super::material::{Due, Material, due};
use super::paths::{self, Paths};
use super::purpose::Purpose;
use super::serving::Serving;
use super::state::{ADDRESS, State, lock};
use crate::admission::registration::{self, Registration};
use crate::names::{NAME, configuration};
use futures::StreamExt as _;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::watch_object;
use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tread_kube::api::words::{MANAGER, PART_OF_LABEL};
use tread_kube::asking::{Backoff, Call, CallOutcome, Failed, SHORT_PATIENCE, ask_before};
use tread_kube::leadership::Leading;
use tread_kube::metrics::Metrics;

/// The key in the Secret.
const KEY: &str = "certificates.json";
const SECRETS: &str = "secrets";
/// The kind of the webhook's configuration.
const WEBHOOK: &str = "ValidatingWebhookConfiguration";
const WEBHOOKS: &str = "validatingwebhookconfigurations";
/// How long to wait after a request that failed, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(30));
/// Dates are compared with the clock at least so often: clocks are set.
const LOOK: Duration = Duration::from_secs(3600);
/// The same while a certificate is not good yet by this clock.
const LOOK_SOON: Duration = Duration::from_secs(60);
/// What is wrong with a certificate that is not good yet by this clock.
const EARLY: &str = "its time";
/// A watch that brought no bad news for so long goes well again: while it fails it is begun anew more
/// often than that, also where the client waits for an answer as long as it ever does.
pub(super) const QUIET: Duration = Duration::from_secs(420);
/// What is wrong with the watches of both kinds.
const SECRET_WATCH: &str = "watch of the Secret";
const WEBHOOK_WATCH: &str = "watch of the ValidatingWebhookConfiguration";
/// No more steps at once are ever due.
const STEPS: usize = 4;

pub(super) struct Keeper {
    pub(super) secrets: Api<Secret>,
    pub(super) configurations: Api<ValidatingWebhookConfiguration>,
    pub(super) namespace: String,
    pub(super) purpose: Purpose,
    pub(super) names: Vec<String>,
    pub(super) lives: Lives,
    /// See [`QUIET`].
    pub(super) quiet: Duration,
    pub(super) leading: Leading,
    pub(super) metrics: Metrics,
    pub(super) provider: Arc<CryptoProvider>,
    pub(super) serving: Arc<Serving>,
    pub(super) paths: Paths,
    pub(super) state: Arc<Mutex<State>>,
    pub(super) announce: watch::Sender<String>,
}

/// What was due could not be done, and is tried again.
struct NotDone;

/// What was seen; None: not yet.
#[derive(Default)]
struct Observed {
    secret: Option<Option<Secret>>,
    configuration: Option<Option<ValidatingWebhookConfiguration>>,
}

impl Keeper {
    pub(super) async fn run(self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        let name = configuration(&self.namespace);
        let secret = self.purpose.secret();
        let mut secrets = pin!(watch_object(self.secrets.clone(), secret).default_backoff());
        let mut configurations =
            pin!(watch_object(self.configurations.clone(), &name).default_backoff());
        let mut leads = self.leading.watch();
        let mut election = true;
        let mut seen = Observed::default();
        // When each watch counts as going well, where it does not.
        let (mut secret_well, mut configuration_well) = (None, None);
        let mut wake = Instant::now() + LOOK;
        let mut backoff = Backoff::new(WAITS);
        loop {
            tokio::select! {
                () = stop.as_mut() => return,
                Some(change) = secrets.next() => match change {
                    Ok(secret) => {
                        secret_well = None;
                        self.solved(SECRET_WATCH);
                        self.serve(secret.as_ref());
                        seen.secret = Some(secret);
                    }
                    Err(error) => {
                        secret_well = Some(Instant::now() + self.quiet);
                        let failed = Failed::watch(&error, SECRETS);
                        self.watch_failed(SECRET_WATCH, failed, &format!("Secret {secret}"));
                    }
                },
                Some(change) = configurations.next(), if self.purpose == Purpose::Webhook => match change {
                    Ok(configuration) => {
                        configuration_well = None;
                        self.solved(WEBHOOK_WATCH);
                        self.solved(WEBHOOK);
                        seen.configuration = Some(configuration);
                    }
                    Err(error) => {
                        configuration_well = Some(Instant::now() + self.quiet);
                        let failed = Failed::watch(&error, WEBHOOKS);
                        self.watch_failed(WEBHOOK_WATCH, failed, &format!("{WEBHOOK} {name}"));
                    }
                },
                () = until(secret_well) => {
                    secret_well = None;
                    self.solved(SECRET_WATCH);
                }
                () = until(configuration_well) => {
                    configuration_well = None;
                    self.solved(WEBHOOK_WATCH);
                }
                changed = leads.changed(), if election => election = changed.is_ok(),
                () = sleep_until(wake) => {}
            }
            let wait = match self.act(&mut seen).await {
                Ok(wait) => {
                    backoff.reset();
                    wait
                }
                Err(NotDone) => backoff.next_wait(),
            };
            wake = Instant::now() + wait;
        }
    }

    /// Does what is due, if this is the leader. Gives the time until it is to look again.
    #[tracing::instrument(name = "certificates", skip_all)]
    async fn act(&self, seen: &mut Observed) -> Result<Duration, NotDone> {
        for _ in 0..STEPS {
            let Some(secret) = seen.secret.as_ref() else { return Ok(LOOK) };
            let kept = secret.as_ref().and_then(|secret| self.usable(secret));
            let is_early = self.is_early(kept.as_ref());
            let look = if is_early { LOOK_SOON } else { LOOK };
            let found = seen.configuration.as_ref().map(Option::as_ref);
            let bundle = kept.as_ref().map(Material::bundle).unwrap_or_default();
            let now = seconds();
            let kept_paths = kept.as_ref().map_or(&[][..], Material::paths);
            let path = paths::announced(kept_paths, now, &self.lives);
            let registration = match self.purpose {
                Purpose::Webhook => registration::look(found, &bundle, &path),
                // Whom to trust stands in what machines are given, for years.
                Purpose::Machines => Registration::Current,
            };
            if self.purpose == Purpose::Webhook {
                lock(&self.state).registration = registration.to_string();
            }
            match registration::host(found.flatten()) {
                Some(host) if !self.names.contains(&host) => self.problem(
                    ADDRESS,
                    &format!(
                        "nobody is warned: the API server asks at {host}, and the certificate is \
                         not for that: start tread with --tls-name {host}, or apply `tread manifests \
                         --outside` with the address where it is"
                    ),
                ),
                _ => self.solved(ADDRESS),
            }
            if !self.leading.now() {
                return Ok(look);
            }
            match due(kept.as_ref(), &self.names, registration.is_known(), now, &self.lives) {
                Err(error) => {
                    self.problem("Secret", &error.to_string());
                    return Err(NotDone);
                }
                Ok(Due::Write(next, why)) => match self.write(secret.as_ref(), &next, why).await {
                    Some(written) => {
                        self.serve(Some(&written));
                        seen.secret = Some(Some(written));
                    }
                    None => return Err(NotDone),
                },
                Ok(Due::NothingUntil(time)) => {
                    let Registration::Differs(patch) = registration else {
                        let wait = Duration::from_secs(time.saturating_sub(now).max(1));
                        return Ok(wait.min(look));
                    };
                    match self.register(patch).await {
                        Some(patched) => seen.configuration = Some(Some(patched)),
                        None => return Err(NotDone),
                    }
                }
            }
        }
        Err(NotDone)
    }

    /// What is in the Secret, unless it is spoilt; what has only ended is not.
    fn usable(&self, secret: &Secret) -> Option<Material> {
        let material = read(secret).ok()?;
        let now = seconds();
        let good = material.ends() <= now || self.served(&material, now).is_ok();
        good.then_some(material)
    }

    /// What is served. That of machines is also where it is not good yet by this clock, which may be
    /// behind: their user data names its authority for years. All others hear of another authority.
    fn served(&self, material: &Material, now: u64) -> Result<CertifiedKey, CertificateError> {
        match self.purpose {
            Purpose::Machines => material.served(&self.provider, now),
            Purpose::Webhook => material.certified(&self.provider, now),
        }
    }

    /// Serves what is in the Secret from now on; what cannot be served changes nothing.
    fn serve(&self, secret: Option<&Secret>) {
        let Some(secret) = secret else {
            return self.problem(
                "Secret",
                &format!("there is no Secret {}/{} yet", self.namespace, self.purpose.secret()),
            );
        };
        let served = read(secret).and_then(|material| {
            let served = self.served(&material, seconds());
            Ok((served.map_err(|error| error.to_string())?, material))
        });
        match served {
            Ok((served, material)) => {
                self.serving.set(served);
                self.paths.set(material.paths());
                self.announce.send_if_modified(|known| {
                    let bundle = material.bundle();
                    let is_new = *known != bundle;
                    *known = bundle;
                    is_new
                });
                let ends = i64::try_from(material.ends()).unwrap_or(i64::MAX);
                if self.purpose == Purpose::Webhook {
                    self.metrics.certificate_ends.set(ends);
                }
                lock(&self.state).ends = Some(material.ends());
                self.solved("Secret");
            }
            Err(error) => {
                self.problem(
                    "Secret",
                    &format!(
                        "the Secret {}/{} cannot be used: {error}",
                        self.namespace,
                        self.purpose.secret()
                    ),
                );
            }
        }
    }

    /// Whether what is served is not good yet by this clock, which is said for as long as it is so.
    fn is_early(&self, kept: Option<&Material>) -> bool {
        let is_early = kept.is_some_and(|kept| kept.is_of_later(seconds()));
        match is_early {
            true => self.problem(
                EARLY,
                &format!(
                    "the certificate in the Secret {}/{} is not good yet by this clock: the one of this \
                     node is behind, or that of whoever made it was ahead; set the clock that is wrong. \
                     Clients refuse it until then",
                    self.namespace,
                    self.purpose.secret()
                ),
            ),
            false => self.solved(EARLY),
        }
        is_early
    }

    async fn write(
        &self,
        earlier: Option<&Secret>,
        material: &Material,
        why: &str,
    ) -> Option<Secret> {
        let Ok(json) = serde_json::to_vec(material) else { return None };
        let mut secret = earlier.cloned().unwrap_or_else(|| Secret {
            metadata: ObjectMeta {
                name: Some(self.purpose.secret().to_owned()),
                namespace: Some(self.namespace.clone()),
                labels: Some(BTreeMap::from([(PART_OF_LABEL.to_owned(), NAME.to_owned())])),
                ..ObjectMeta::default()
            },
            ..Secret::default()
        });
        secret.data = Some(BTreeMap::from([(KEY.to_owned(), ByteString(json))]));
        let params =
            PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        let written = if earlier.is_some() {
            let call = Call::new("update", SECRETS).within(&self.namespace);
            self.ask("Secret", call, self.secrets.replace(self.purpose.secret(), &params, &secret))
                .await
        } else {
            let call = Call::new("create", SECRETS).within(&self.namespace);
            self.ask("Secret", call, self.secrets.create(&params, &secret)).await
        };
        if written.is_some() {
            tracing::info!(secret = self.purpose.secret(), "made a new certificate: {why}");
        }
        written
    }

    async fn register(&self, patch: serde_json::Value) -> Option<ValidatingWebhookConfiguration> {
        let Ok(patch) = serde_json::from_value(patch) else { return None };
        let params =
            PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let patch = Patch::Json::<()>(patch);
        let name = configuration(&self.namespace);
        let patched = self.configurations.patch(&name, &params, &patch);
        let patched = self.ask(WEBHOOK, Call::new("patch", WEBHOOKS), patched).await?;
        tracing::info!(
            configuration = name,
            "told the API server which authority to trust, and where to ask"
        );
        Some(patched)
    }

    async fn ask<T>(
        &self,
        kind: &'static str,
        call: Call,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Option<T> {
        let answer_by = Instant::now() + SHORT_PATIENCE;
        match ask_before(answer_by, &self.metrics, call, request).await {
            Ok(answer) => Some(answer),
            // Somebody was faster: the watch brings what it is now.
            Err(failed) if failed.outcome == CallOutcome::Conflict => None,
            Err(failed) => {
                self.problem(kind, &format!("{} of {kind}: {failed}", failed.verb()));
                None
            }
        }
    }

    fn watch_failed(&self, watch: &'static str, failed: Failed, what: &str) {
        let failed = failed.counted(&self.metrics);
        self.problem(watch, &format!("{what} cannot be watched: {failed}"));
    }

    /// Says what is wrong, once.
    fn problem(&self, kind: &'static str, problem: &str) {
        let mut state = lock(&self.state);
        if state.problems.get(kind).is_none_or(|known| known != problem) {
            tracing::warn!("{problem}");
            state.problems.insert(kind, problem.to_owned());
        }
    }

    fn solved(&self, kind: &'static str) {
        lock(&self.state).problems.remove(kind);
    }
}

/// Waits for a time, if there is one.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn read(secret: &Secret) -> Result<Material, String> {
    let json = secret.data.as_ref().and_then(|data| data.get(KEY));
    let json = json.ok_or_else(|| format!("it has no key {KEY}"))?;
    // An error of serde would show what it found: that may be a key.
    serde_json::from_slice(&json.0).map_err(|_| format!("{KEY} is not what tread writes"))
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use std::io;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const DAY: u64 = 24 * 3600;

    /// One that leads, and counts what it asks the API server, which answers nothing.
    fn leader(purpose: Purpose) -> (Keeper, Arc<AtomicUsize>) {
        let asked: Arc<AtomicUsize> = Arc::default();
        let counted = Arc::clone(&asked);
        let service = tower::service_fn(move |_: Request<Body>| {
            counted.fetch_add(1, Ordering::SeqCst);
            std::future::ready(Err::<Response<Body>, _>(io::Error::other("nobody answers")))
        });
        (keeper(purpose, Client::new(service, "tread")), asked)
    }

    /// One that leads.
    fn keeper(purpose: Purpose, client: Client) -> Keeper {
        let (_, leads) = watch::channel(true);
        let (announce, _) = watch::channel(String::new());
        Keeper {
            secrets: Api::namespaced(client.clone(), "tread"),
            configurations: Api::all(client),
            namespace: "tread".to_owned(),
            purpose,
            names: vec!["tread.tread.svc".to_owned()],
            lives: purpose.lives(),
            quiet: QUIET,
            leading: Leading::without_election(leads, None),
            metrics: Metrics::new(),
            provider: Arc::new(rustls::crypto::ring::default_provider()),
            serving: Arc::default(),
            paths: Paths::default(),
            state: Arc::default(),
            announce,
        }
    }

    fn secret(json: Vec<u8>) -> Secret {
        let data = BTreeMap::from([(KEY.to_owned(), ByteString(json))]);
        Secret { data: Some(data), ..Secret::default() }
    }

    #[tokio::test]
    async fn a_leader_whose_clock_is_behind_makes_no_other_authority_for_machines_and_says_so() {
        let (keeper, asked) = leader(Purpose::Machines);
        // By this clock it is made in two days.
        let made = due(None, &keeper.names, true, seconds() + 2 * DAY, &keeper.lives).unwrap();
        let Due::Write(made, _) = made else { panic!("there is none, and none is made") };
        assert!(made.certified(&keeper.provider, seconds()).is_err());
        let secret = secret(serde_json::to_vec(&made).unwrap());
        keeper.serve(Some(&secret));
        let mut seen = Observed { secret: Some(Some(secret.clone())), configuration: None };
        let wait = keeper.act(&mut seen).await;
        assert!(wait.is_ok_and(|wait| wait <= LOOK_SOON), "it looks again soon");
        assert_eq!(asked.load(Ordering::SeqCst), 0, "it was written anew");
        assert!(keeper.serving.serves());
        assert_eq!(*keeper.announce.borrow(), made.bundle());
        assert!(lock(&keeper.state).problems[EARLY].contains("set the clock that is wrong"));
        // It is said no longer than that is so, also where nothing is served anew.
        let good = due(None, &keeper.names, true, seconds(), &keeper.lives).unwrap();
        let Due::Write(good, _) = good else { panic!("there is none, and none is made") };
        let good = self::secret(serde_json::to_vec(&good).unwrap());
        assert!(
            keeper
                .act(&mut Observed { secret: Some(Some(good)), configuration: None })
                .await
                .is_ok()
        );
        assert!(!lock(&keeper.state).problems.contains_key(EARLY));
        // Whoever hears of another authority is served at once.
        let (keeper, _) = leader(Purpose::Webhook);
        assert!(keeper.usable(&secret).is_none());
    }

    #[tokio::test]
    async fn a_watch_that_failed_is_said_to_fail_until_it_was_quiet_for_a_while() {
        let watches: Arc<AtomicUsize> = Arc::default();
        let counted = Arc::clone(&watches);
        let service = tower::service_fn(move |request: Request<Body>| {
            let of_watch = request.uri().query().is_some_and(|it| it.contains("watch=true"));
            let nth = if of_watch { counted.fetch_add(1, Ordering::SeqCst) } else { 0 };
            async move {
                let list = r#"{"metadata": {"resourceVersion": "1"}, "items": []}"#;
                match (of_watch, nth) {
                    (false, _) => Ok(Response::new(Body::from(list.as_bytes().to_vec()))),
                    (true, 0) => Err(io::Error::other("the connection broke")),
                    // It goes on, and nothing happens.
                    (true, _) => std::future::pending().await,
                }
            }
        });
        let mut keeper = keeper(Purpose::Machines, Client::new(service, "tread"));
        keeper.quiet = Duration::from_secs(2);
        let (state, leads) = (Arc::clone(&keeper.state), watch::channel(false));
        keeper.leading = Leading::without_election(leads.1, None);
        let kept = tokio::spawn(keeper.run(std::future::pending()));
        let fails = || lock(&state).problems.contains_key(SECRET_WATCH);
        for expected in [true, false] {
            let seen = async {
                while fails() != expected {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(60), seen).await.unwrap();
        }
        assert_eq!(watches.load(Ordering::SeqCst), 2);
        kept.abort();
    }

    #[tokio::test]
    async fn what_is_spoilt_is_made_anew_also_where_it_says_that_it_is_of_a_later_day() {
        let (keeper, asked) = leader(Purpose::Machines);
        let made = due(None, &keeper.names, true, seconds() + 2 * DAY, &keeper.lives).unwrap();
        let Due::Write(made, _) = made else { panic!("there is none, and none is made") };
        let mut spoilt = serde_json::to_value(&made).unwrap();
        spoilt["names"] = serde_json::json!(["other.example"]);
        let spoilt = secret(serde_json::to_vec(&spoilt).unwrap());
        assert!(keeper.usable(&spoilt).is_none());
        let mut seen = Observed { secret: Some(Some(spoilt)), configuration: None };
        assert!(keeper.act(&mut seen).await.is_err());
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }
}
