//! Watches that go on whatever happens, and say how it stands with them.

pub mod fold;
mod installed;
mod outdated;
pub mod parsed;
mod pruned;
mod reading;
pub mod served;
mod watches;
mod writing;

use crate::api::machines::Kind;
use crate::asking::{Failed, pause};
use crate::client::BEGINS;
use crate::metrics::{Metrics, OfKind};
use futures::stream::{BoxStream, once, unfold};
use futures::{Stream, StreamExt as _};
use installed::Definition;
use kube::core::{DynamicObject, ObjectMeta};
use kube::runtime::watcher::{Config, Error, Event, watcher};
use kube::{Api, Client, Resource};
use parsed::{Parsed, each_by_itself, kind_at};
use serde::de::DeserializeOwned;
use served::served;
use std::collections::{BTreeSet, VecDeque};
use std::fmt::Debug;
use std::time::Duration;

pub use pruned::{Pruned, says};
pub use watches::{Unwritten, Watched, Watches};

/// How long is waited after a failure: at first, and at most.
const WAITS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// The same where the API server does not know a kind whose definition is there.
const ALMOST_WAITS: (Duration, Duration) = (WAITS.0, Duration::from_secs(120));

/// The same where it does not say whether the definition is there.
const BLIND_WAITS: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(120));

/// A watch without bad news for so long goes well again: longer than the API server may take to begin
/// one.
const QUIET: Duration = Duration::from_secs(BEGINS.as_secs() + 10);

/// Watches objects, whatever happens. Every failure is noted and counted, and
/// after a growing pause the watch goes on where it was. `name` is what the
/// kind is called, in lower case and plural: `configmaps`.
///
/// A kind that the API server does not know has no objects; they come when it
/// is installed, and go when it is removed. One of Kubernetes itself is always there, and an
/// answer that says otherwise is a failure. An object that cannot be read is
/// told of in the log and counted, and left out: the others go on.
pub fn follow<K>(
    api: Api<K>,
    config: Config,
    name: &'static str,
    watches: &Watches,
    metrics: &Metrics,
) -> impl Stream<Item = Event<K>> + Send + Unpin + use<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    follow_with(api, config, name, watches, metrics, Follower::read)
}

/// The same with what cannot be read: it is not told of in the log.
pub fn follow_all<K>(
    api: Api<K>,
    config: Config,
    name: &'static str,
    watches: &Watches,
    metrics: &Metrics,
) -> impl Stream<Item = Event<Parsed<K>>> + Send + Unpin + use<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    follow_with(api, config, name, watches, metrics, |_, event| Some(event))
}

/// The same of a kind in the newest version that is known and served, whenever it
/// is listed anew.
pub fn follow_served(
    client: &Client,
    kind: Kind,
    config: Config,
    watches: &Watches,
    metrics: &Metrics,
) -> impl Stream<Item = Event<Parsed<DynamicObject>>> + Send + Unpin + use<> {
    watches.note(kind.name, |_| {});
    let definition = Definition::of(&kind.resource(), client.clone());
    let (client, counting) = (client.clone(), metrics.clone());
    let again = move || {
        let (client, config, counting) = (client.clone(), config.clone(), counting.clone());
        let found = async move {
            let events: Events<DynamicObject> = match served(&client, &counting, &kind).await {
                Ok(resource) => begun(Api::all_with(client, &resource), config),
                Err(failed) => once(async move { Err(Broken::Unasked(failed)) }).boxed(),
            };
            events
        };
        once(found).flatten().boxed()
    };
    let take: Take<DynamicObject, Parsed<DynamicObject>> = |_, event| Some(event);
    Follower::started(Box::new(again), definition, kind.name, watches, metrics, take)
}

type Take<K, T> = fn(&mut Follower<K, T>, Event<Parsed<K>>) -> Option<Event<T>>;

fn follow_with<K, T>(
    api: Api<K>,
    config: Config,
    name: &'static str,
    watches: &Watches,
    metrics: &Metrics,
    take: Take<K, T>,
) -> BoxStream<'static, Event<T>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    T: Send + 'static,
{
    watches.note(name, |_| {});
    let definition = Definition::of(&kind_at(api.resource_url()), api.clone().into_client());
    let again = move || begun(api.clone(), config.clone());
    Follower::started(Box::new(again), definition, name, watches, metrics, take)
}

/// Begins to watch.
fn begun<K>(api: Api<K>, config: Config) -> Events<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    watcher(each_by_itself(api), config).map(|news| news.map_err(Broken::Watch)).boxed()
}

type Events<K> = BoxStream<'static, Result<Event<Parsed<K>>, Broken>>;

/// Why there is no news.
enum Broken {
    /// The watch failed, and goes on by itself.
    Watch(Error),
    /// It did not begin: the API server does not say which version of the kind there is.
    Unasked(Failed),
}

/// Starts from nothing.
type Again<K> = Box<dyn Fn() -> Events<K> + Send>;

struct Follower<K, T> {
    /// What becomes of an event.
    take: Take<K, T>,
    events: Events<K>,
    /// Starts from nothing.
    again: Again<K>,
    /// Of the kind.
    definition: Definition,
    name: &'static str,
    watches: Watches,
    metrics: Metrics,
    /// How often it failed in a row.
    failures: u32,
    /// The API server knew no such kind when it was asked last.
    absent: bool,
    /// It did so just now: the definition comes first.
    asked_in_vain: bool,
    /// The objects that cannot be read, and were left out: their namespaces and names.
    left_out: BTreeSet<(Option<String>, Option<String>)>,
    /// What goes out before the API server is asked again.
    queue: VecDeque<Event<T>>,
    /// How long to wait before that.
    wait: Duration,
}

impl<K: Send + 'static, T: Send + 'static> Follower<K, T> {
    fn started(
        again: Again<K>,
        definition: Definition,
        name: &'static str,
        watches: &Watches,
        metrics: &Metrics,
        take: Take<K, T>,
    ) -> BoxStream<'static, Event<T>> {
        let follower = Follower {
            take,
            events: again(),
            again,
            definition,
            name,
            watches: watches.clone(),
            metrics: metrics.clone(),
            failures: 0,
            absent: false,
            asked_in_vain: false,
            left_out: BTreeSet::new(),
            queue: VecDeque::new(),
            wait: Duration::ZERO,
        };
        unfold(follower, async |mut it| Some((it.next().await?, it))).boxed()
    }
}

impl<K, T> Follower<K, T> {
    /// The next event; it never ends.
    async fn next(&mut self) -> Option<Event<T>> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Some(event);
            }
            tokio::time::sleep(std::mem::take(&mut self.wait)).await;
            if std::mem::take(&mut self.asked_in_vain) {
                self.until_installed().await;
            }
            let Ok(news) = tokio::time::timeout(QUIET, self.events.next()).await else {
                self.failures = 0;
                self.watches.note(self.name, |it| {
                    if it.synced {
                        it.error = None;
                    }
                });
                continue;
            };
            match news? {
                Ok(event) => {
                    // A list alone says nothing of the watch that is to follow.
                    if matches!(event, Event::Apply(_) | Event::Delete(_)) {
                        self.failures = 0;
                    }
                    if !matches!(event, Event::Init | Event::InitApply(_)) {
                        self.absent = false;
                        self.watches.note(self.name, |it| {
                            *it = Watched { synced: true, ..Watched::default() };
                        });
                    }
                    if let Some(event) = (self.take)(self, event) {
                        return Some(event);
                    }
                }
                Err(broken) => self.failed(broken),
            }
        }
    }

    /// Waits until the kind may be known. Whoever may not see its definition asks
    /// for the kind itself, at long intervals.
    async fn until_installed(&mut self) {
        if let Err(error) = self.definition.is_there().await {
            let failed = Failed::watch(&error, "customresourcedefinitions").counted(&self.metrics);
            let verb = failed.verb();
            tracing::debug!(kind = self.name, verb, "asked for again after a pause: {failed}");
            tokio::time::sleep(pause(BLIND_WAITS, self.failures)).await;
        }
    }

    /// Says what is wrong, once for as long as it is.
    fn warn(&self, failed: &Failed) {
        let known = self.watches.all.borrow();
        let known = known.get(self.name).and_then(|it| it.error.as_ref());
        if known != Some(failed) {
            let verb = failed.verb();
            tracing::warn!(kind = self.name, verb, "the watch goes on after a pause: {failed}");
        }
    }

    fn failed(&mut self, broken: Broken) {
        let (failed, has_begun) = match broken {
            Broken::Watch(error) => (Failed::watch(&error, self.name).counted(&self.metrics), true),
            Broken::Unasked(failed) => (failed, false),
        };
        let mut waits = WAITS;
        if failed.code == 404 && self.definition.may_be_absent {
            waits = ALMOST_WAITS;
            self.asked_in_vain = true;
            if !std::mem::replace(&mut self.absent, true) {
                tracing::info!(kind = self.name, "the API server knows none of these");
                self.failures = 0;
                self.queue.extend([Event::Init, Event::InitDone]);
            }
            self.events = (self.again)();
            self.watches.note(self.name, |it| {
                *it = Watched { synced: true, not_installed: true, error: None };
            });
        } else {
            match failed.code {
                // Usual after some time without news. Where the watch was refused as a whole, kube
                // would ask for the same version for ever.
                410 => {
                    tracing::debug!(kind = self.name, "begins anew: {failed}");
                    self.events = (self.again)();
                }
                _ => self.warn(&failed),
            }
            if !has_begun {
                self.events = (self.again)();
            }
            self.watches.note(self.name, |it| it.error = Some(failed));
        }
        self.wait = pause(waits, self.failures);
        self.failures = self.failures.saturating_add(1);
    }
}

impl<K: Resource> Follower<K, K> {
    /// The event, if its object could be read.
    fn read(&mut self, event: Event<Parsed<K>>) -> Option<Event<K>> {
        let (metadata, why, news) = match event {
            Event::Init => {
                self.left_out.clear();
                return Some(Event::Init);
            }
            Event::InitDone => return Some(Event::InitDone),
            Event::InitApply(Parsed::Read(object)) => {
                return Some(Event::InitApply(object));
            }
            Event::Apply(Parsed::Read(object)) => {
                self.left_out.remove(&place(object.meta()));
                return Some(Event::Apply(object));
            }
            Event::Delete(Parsed::Read(object)) => {
                self.left_out.remove(&place(object.meta()));
                return Some(Event::Delete(object));
            }
            Event::InitApply(Parsed::Unreadable(metadata, why)) => (metadata, why, News::Listed),
            Event::Apply(Parsed::Unreadable(metadata, why)) => (metadata, why, News::Written),
            Event::Delete(Parsed::Unreadable(metadata, why)) => (metadata, why, News::Gone),
        };
        let place = place(&metadata);
        let was_left_out = match news {
            News::Listed | News::Written => {
                left_out(self.name, &metadata, &why, &self.metrics);
                !self.left_out.insert(place)
            }
            News::Gone => self.left_out.remove(&place),
        };
        if news != News::Listed && !was_left_out {
            // It may have been known from before: a list says which ones are left.
            self.events = (self.again)();
            self.wait = pause(WAITS, 0);
        }
        None
    }
}

/// What a watch says of an object that cannot be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum News {
    Listed,
    Written,
    Gone,
}

/// Where an object is: its namespace and name.
fn place(of: &ObjectMeta) -> (Option<String>, Option<String>) {
    (of.namespace.clone(), of.name.clone())
}

/// Tells of an object that cannot be read in the log, and counts it.
pub fn left_out(kind: &'static str, metadata: &ObjectMeta, why: &str, metrics: &Metrics) {
    let (name, namespace) = (metadata.name.as_deref(), metadata.namespace.as_deref());
    tracing::warn!(
        // Also for those who are not told of watches.
        target: "tread_kube::left_out",
        kind, namespace = namespace.unwrap_or_default(), name = name.unwrap_or_default(),
        "cannot be read, and is left out: {why}"
    );
    metrics.unreadable.get_or_create(&OfKind { kind }).inc();
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream::{iter, pending};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::ResourceExt as _;

    /// What a follower makes of these events; each list begins the next ones.
    async fn followed(parts: Vec<Vec<Event<Parsed<ConfigMap>>>>) -> Vec<String> {
        let client = Client::try_from(kube::Config::new("http://127.0.0.1:1".parse().unwrap()));
        let definition = Definition::of(&kind_at("/api/v1/configmaps"), client.unwrap());
        let parts = std::sync::Mutex::new(VecDeque::from(parts));
        let again: Again<ConfigMap> = Box::new(move || {
            let next = parts.lock().unwrap().pop_front().unwrap_or_default();
            iter(next.into_iter().map(Ok)).chain(pending()).boxed()
        });
        let (watches, metrics) = (Watches::default(), Metrics::new());
        let take: Take<ConfigMap, ConfigMap> = Follower::read;
        let mut events =
            Follower::started(again, definition, "configmaps", &watches, &metrics, take);
        let mut said = Vec::new();
        loop {
            said.push(match events.next().await.unwrap() {
                Event::Init => "list".to_owned(),
                Event::InitDone => "listed".to_owned(),
                Event::InitApply(it) | Event::Apply(it) => it.name_any(),
                // Where a test ends.
                Event::Delete(_) => return said,
            });
        }
    }

    fn named(name: &str) -> ObjectMeta {
        ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
    }

    fn fine(name: &str) -> Parsed<ConfigMap> {
        Parsed::Read(ConfigMap { metadata: named(name), ..ConfigMap::default() })
    }

    fn broken(name: &str) -> Parsed<ConfigMap> {
        Parsed::Unreadable(Box::new(named(name)), "why".to_owned())
    }

    #[tokio::test]
    async fn what_cannot_be_read_any_more_is_left_out_at_once_as_it_is_of_a_list() {
        use Event::{Apply, Delete, Init, InitApply, InitDone};
        let long = Duration::from_secs(60);
        let end = || Delete(fine("end"));
        let both = || vec![Init, InitApply(fine("a")), InitApply(fine("b")), InitDone];
        let without = |more: Vec<_>| {
            [vec![Init, InitApply(broken("a")), InitApply(fine("b")), InitDone], more].concat()
        };
        // Its old version goes with the list, and it is not listed again for each write of it.
        let parts = vec![
            [both(), vec![Apply(broken("a"))]].concat(),
            without(vec![Apply(broken("a")), Apply(broken("a")), Apply(fine("a")), end()]),
        ];
        let said = tokio::time::timeout(long, followed(parts)).await.unwrap();
        assert_eq!(said, ["list", "a", "b", "listed", "list", "b", "listed", "a"]);
        // One that was left out is gone without a list; one that was not may have been known.
        let parts = vec![
            without(vec![Delete(broken("a")), Delete(broken("b"))]),
            vec![Init, InitDone, end()],
        ];
        let said = tokio::time::timeout(long, followed(parts)).await.unwrap();
        assert_eq!(said, ["list", "b", "listed", "list", "listed"]);
    }
}
