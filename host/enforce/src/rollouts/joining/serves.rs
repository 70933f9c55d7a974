//! Each pool says whether its machines are served, and get a kubeconfig to register with: the leader
//! writes that into the pool's Rollout.

use super::super::settings::Settings;
use super::bootstrap::{Flaw, SERVES, brings, found};
use super::choose::chosen;
use super::run::maybe;
use super::secrets::unread;
use super::serving::{Joining, one};
use futures::{StreamExt as _, stream};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;
use tread_cluster::pools::Pool;
use tread_kube::api::Rollout;
use tread_kube::api::conditions::{Finding, set};
use tread_kube::asking::{Backoff, Call, CallOutcome, ask};
use tread_model::digest::Digest;
use tread_model::joining::{Boots, Mark, Unserved, served};

/// The word where the config of a pool has no room for claims.
const CANNOT_BE_SERVED: &str = "CannotBeServed";

/// The word where machines are served and their nodes held: no one can say which labels they get.
const NO_LABELS: &str = "NoLabels";

/// What happens at the same time is told together.
const TOGETHER: Duration = Duration::from_millis(500);
/// What nodes say, by which another config may be served, is looked at no more often than that: they say
/// something all the time.
const OF_NODES: Duration = Duration::from_secs(5);
/// How long is waited after a failure, at first and at most.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// What was found before.
#[derive(Debug, Default)]
struct Before {
    /// None: nothing was logged yet.
    logged: Option<Option<Flaw>>,
    /// Which Secret of tread's could not be read.
    unread: Option<&'static str>,
    /// By its name, what was read of a config: what is rendered stays as it is.
    read: BTreeMap<String, Read>,
    /// Whether machines get a kubeconfig, by which that was read: it needs a place in the config.
    bootstraps: bool,
}

/// What was read of a config.
#[derive(Debug, Clone)]
struct Read {
    /// Whether it has a kubeconfig itself.
    brings: bool,
    /// Why no machine can be served with it.
    unserved: Option<String>,
    /// Whether that is for want of room for claims, so that it concerns nodes that joined by theirs.
    lacks_room: bool,
}

/// Tells of it, as the leader, for as long as it is polled.
pub(super) async fn run(joining: Joining) {
    joining.settings.previewer.ready().await;
    let mut changes = stream::select_all([
        joining.bootstraps().boxed(),
        joining.keys.moments().map(drop).boxed(),
        joining.tokens.moments().map(drop).boxed(),
        joining.known.rollouts().moments().map(drop).boxed(),
        joining.record.moments().map(drop).boxed(),
    ]);
    let mut of_nodes = stream::select_all([
        joining.known.nodes().moments().map(drop).boxed(),
        joining.known.updates().moments().map(drop).boxed(),
    ]);
    let mut pools = joining.settings.previewer.changes();
    let mut leads = joining.settings.leads.watch();
    let mut backoff = Backoff::new(WAITS);
    let mut before = Before::default();
    let mut due = Some(Instant::now());
    // After a failure nothing that happens meanwhile leads to another look.
    let mut has_failed = false;
    loop {
        let within = |due: Option<Instant>, wait: Duration| {
            let at = Instant::now() + wait;
            due.map(|due| if has_failed { due } else { due.min(at) }).or(Some(at))
        };
        tokio::select! {
            Some(()) = changes.next() => due = within(due, TOGETHER),
            Ok(()) = pools.changed() => due = within(due, TOGETHER),
            Ok(()) = leads.changed() => due = within(due, TOGETHER),
            Some(()) = of_nodes.next() => due = within(due, OF_NODES),
            () = maybe(due) => match look(&joining, &mut before).await {
                Ok(()) => {
                    backoff.reset();
                    (due, has_failed) = (None, false);
                }
                Err(why) => {
                    has_failed = true;
                    tracing::warn!(why, "pools cannot say whether machines are served");
                    due = Some(Instant::now() + backoff.next_wait());
                }
            }
        }
    }
}

async fn look(joining: &Joining, before: &mut Before) -> Result<(), String> {
    let settings = &joining.settings;
    if !settings.leads.now() {
        (before.logged, before.unread) = (None, None);
        return Ok(());
    }
    let (Some(bootstrap), Some(rollouts), Some(record)) =
        (joining.bootstrap(), joining.known.rollouts().now(), joining.record())
    else {
        return Ok(());
    };
    let (Some(nodes), Some(updates)) = (joining.known.nodes().now(), joining.known.updates().now())
    else {
        return Ok(());
    };
    // Where no machine is served nothing is to be said.
    let is_served = settings.joining.first_boots.is_some();
    let flaw = bootstrap.err();
    let named = (settings.acts.namespace.as_str(), settings.joining.bootstrap.as_str());
    if is_served && before.logged.replace(flaw) != Some(flaw) {
        match flaw {
            Some(flaw) => tracing::warn!(
                "machines that boot get no kubeconfig to register with, unless the config of their pool brings \
                 it: {}",
                flaw.says(named)
            ),
            None => tracing::info!(secret = named.1, "machines that boot get its kubeconfig"),
        }
    }
    // Where it cannot be read, no machine is served and no node joins, whoever asks.
    let held = joining.keys.now().zip(joining.tokens.now());
    let unread =
        held.and_then(|(keys, tokens)| unread(one(&keys).as_deref(), one(&tokens).as_deref()));
    let word = unread.as_ref().map(|(word, _)| *word);
    if before.unread != word {
        match &unread {
            Some((_, why)) => tracing::warn!("no machine that boots is served: {why}"),
            None => tracing::info!("the Secrets of joining can be read again"),
        }
        before.unread = word;
    }
    let cluster = settings.previewer.snapshot();
    let target = |pool: &Pool| pool.target.as_ref().map(|it| it.name.clone());
    let bootstrapped = std::mem::replace(&mut before.bootstraps, is_served && flaw.is_none());
    let is_same = bootstrapped == before.bootstraps;
    before.read.retain(|name, _| is_same && cluster.configs.contains_key(name));
    // What cannot be read of one pool keeps nothing from the others.
    let mut done = Ok(());
    for (name, pool) in &cluster.pools {
        // What of a pool cannot be read is told of elsewhere.
        let rollout = rollouts.get(name).filter(|_| pool.unread.is_none());
        let Some(rollout) = rollout else { continue };
        let mark = Mark::of_pool(&pool.uid);
        let has_members = record.as_ref().is_some_and(|record| record.has_members(mark));
        let is_read = unread.is_none() && (is_served || has_members);
        // What machines boot with now may be another config than the pool is to have.
        let now = is_served.then(|| chosen(pool, &cluster, &nodes, &updates)).flatten();
        let configs = [now, target(pool)].map(|it| it.filter(|_| is_read));
        let read = match read_all(settings, before, name, configs).await {
            Ok(read) => read,
            Err(why) => {
                done = done.and(Err(why));
                continue;
            }
        };
        let finding = match &unread {
            Some((word, why)) => is_served.then(|| unserved(word, why.clone())),
            None => {
                let bootstraps =
                    |brings| is_served.then(|| joins(found(flaw, brings, named), pool));
                judged(&read, has_members, bootstraps)
            }
        };
        done = done.and(say(settings, rollout, finding).await);
    }
    done
}

/// What is found of a pool by the configs that its machines are served now, and that it is to have.
/// `bootstraps` finds it where its machines are served, by whether their config brings a kubeconfig;
/// nothing where no machine is.
fn judged(
    [now, target]: &[Option<(String, Read)>; 2],
    has_members: bool,
    bootstraps: impl FnOnce(bool) -> Option<Finding>,
) -> Option<Finding> {
    // Why a config is not served, and whether nodes lose their claims by it.
    let why = |read: &Read| Some((read.unserved.clone()?, has_members && read.lacks_room));
    if let Some((why, loses)) = now.as_ref().and_then(|(_, read)| why(read)) {
        return Some(unserved(CANNOT_BE_SERVED, without_room(&why, loses)));
    }
    let later = target.as_ref().and_then(|(name, read)| Some((name, why(read)?)));
    let finding = bootstraps(now.as_ref().is_some_and(|(_, read)| read.brings));
    match (later, now) {
        (Some((_, (why, loses))), None) => {
            let is_told = loses || finding.is_some();
            is_told.then(|| unserved(CANNOT_BE_SERVED, without_room(&why, loses)))
        }
        (Some((target, (why, loses))), Some((now, _))) => {
            let why = without_room(&why, loses);
            let later = format!(
                "machines that boot get {now} as long as no node runs {target} well, and none is served after \
                 that: {why}"
            );
            finding.map(|finding| match loses {
                true => Finding {
                    status: Some(false),
                    reason: CANNOT_BE_SERVED.to_owned(),
                    message: later,
                    ..finding
                },
                false => {
                    Finding { message: format!("{}. But {later}", finding.message), ..finding }
                }
            })
        }
        (None, _) => finding,
    }
}

/// What is found of a pool whose machines are served nothing.
fn unserved(word: &str, why: String) -> Finding {
    let message = format!("no machine that boots is served: {why}");
    Finding { type_: SERVES, status: Some(false), reason: word.to_owned(), message }
}

/// Why a config has no room for claims, and what that means for the nodes that joined by one: their
/// Nodes are there, and the config takes what they would register again with.
fn without_room(why: &str, loses: bool) -> String {
    if !loses {
        return why.to_owned();
    }
    format!(
        "{why}. So it is for nodes that joined by their claims: with this config one of them whose Node is deleted \
         registers without its claim, and counts in the pool that its own labels say, most likely worker. Delete none of \
         the Nodes before that is mended: the next config with room for claims brings them back"
    )
}

/// What is found of a pool whose machines are served: where its selector leaves open which labels
/// they get, their nodes are held until somebody lets each in, and that is said before the first boots.
fn joins(finding: Finding, pool: &Pool) -> Finding {
    match pool.gives() {
        Err(why) if finding.status == Some(true) => {
            let message = format!(
                "machines that boot are served, and each of their nodes is held then: nobody can say which \
                 labels a node of the pool gets: {why}. Write a spec.nodeSelector that says it (matchLabels, In \
                 with one value, Exists); or else label each node, and let it in: tread pools admit NODE --pool {}",
                pool.name
            );
            Finding { status: Some(false), reason: NO_LABELS.to_owned(), message, ..finding }
        }
        _ => finding,
    }
}

/// What these configs of a pool have for machines that boot.
async fn read_all(
    settings: &Settings,
    before: &mut Before,
    pool: &str,
    configs: [Option<String>; 2],
) -> Result<[Option<(String, Read)>; 2], String> {
    let mut all = [None, None];
    for (config, read) in configs.into_iter().zip(&mut all) {
        let Some(config) = config else { continue };
        let known = read_of(settings, before, pool, &config).await?;
        *read = Some((config, known));
    }
    Ok(all)
}

/// What a config of a pool has for machines that boot.
async fn read_of(
    settings: &Settings,
    before: &mut Before,
    pool: &str,
    config: &str,
) -> Result<Read, String> {
    if let Some(known) = before.read.get(config) {
        return Ok(known.clone());
    }
    let body = settings.previewer.body(config).await.map_err(|why| why.to_string())?;
    let of = (pool.to_owned(), config.to_owned(), settings.joining.kubelet.clone());
    let bootstraps = before.bootstraps;
    let read = tokio::task::spawn_blocking(move || {
        let (pool, config, kubelet) = of;
        let unserved = unserved_by((&pool, &config), &kubelet, bootstraps, &body);
        Read {
            brings: brings(&body),
            lacks_room: unserved.as_ref().is_some_and(Unserved::lacks_room),
            unserved: unserved.map(|why| why.to_string()),
        }
    });
    let read = read.await.map_err(|_| "it was interrupted".to_owned())?;
    before.read.insert(config.to_owned(), read.clone());
    Ok(read)
}

/// Why no machine of a pool can be served with a config, whatever stands in the kubeconfig that it gets,
/// if it gets one; what cannot be read is told of elsewhere.
fn unserved_by(
    (pool, config): (&str, &str),
    kubelet: &str,
    bootstraps: bool,
    body: &[u8],
) -> Option<Unserved> {
    let object: serde_json::Value = serde_json::from_slice(body).ok()?;
    let digest = Digest::of(b"");
    let (spec, bootstrap) = (object.get("spec")?, bootstraps.then_some(""));
    let boots = Boots { pool, config, digest, spec, kubelet, bootstrap };
    served(&boots, None).err()
}

/// Says it where that is something else than what stands there; nothing takes it away.
async fn say(
    settings: &Settings,
    rollout: &Rollout,
    finding: Option<Finding>,
) -> Result<(), String> {
    // One that has no status yet gets it from what tells how far it is, and comes again.
    let Some(status) = &rollout.status else { return Ok(()) };
    let mut conditions = status.conditions.clone();
    let generation = rollout.metadata.generation.unwrap_or_default();
    let stands = status.conditions.iter().find(|it| it.type_ == SERVES);
    match finding {
        Some(finding) => {
            set(&mut conditions, finding, generation, Timestamp::now());
            let says = conditions.iter().find(|it| it.type_ == SERVES);
            let same = stands.zip(says).is_some_and(|(a, b)| {
                (&a.status, &a.reason, &a.message) == (&b.status, &b.reason, &b.message)
            });
            if same {
                return Ok(());
            }
        }
        None if stands.is_none() => return Ok(()),
        None => conditions.retain(|it| it.type_ != SERVES),
    }
    // The list is replaced as a whole, and others write it too.
    let version = &rollout.metadata.resource_version;
    let patch =
        json!({"metadata": {"resourceVersion": version}, "status": {"conditions": conditions}});
    let name = rollout.metadata.name.as_deref().unwrap_or_default();
    let api: Api<Rollout> = Api::all(settings.acts.client.clone());
    let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
    let call = Call::new("patch", "rollouts").of_status();
    match ask(&settings.acts.metrics, call, api.patch_status(name, &params, &patch)).await {
        // The watch brings what somebody else wrote.
        Err(it) if !matches!(it.outcome, CallOutcome::Conflict | CallOutcome::Gone) => {
            Err(it.to_string())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_model::joining::{Ambiguous, BOOTSTRAP, Determined};

    #[test]
    fn a_config_without_room_for_claims_says_what_nodes_lose_that_have_joined() {
        assert_eq!(without_room("it has taints", false), "it has taints");
        let says = without_room("it has taints", true);
        assert!(says.starts_with("it has taints. ") && says.contains("Delete none of the Nodes"));
    }

    #[test]
    fn a_pool_is_judged_by_the_config_that_its_machines_are_served_and_says_what_comes() {
        let read = |name: &str, unserved: Option<&str>| {
            let (brings, lacks_room) = (name == "old", unserved == Some("it has taints"));
            let read = Read { brings, unserved: unserved.map(str::to_owned), lacks_room };
            Some((name.to_owned(), read))
        };
        let bootstraps = |brings: bool| {
            let reason = if brings { "ConfigBrings" } else { "NoBootstrapSecret" };
            let message = "as it is".to_owned();
            Some(Finding {
                type_: SERVES,
                status: Some(brings),
                reason: reason.to_owned(),
                message,
            })
        };
        let (old, new) = (read("old", None), read("new", Some("it has taints")));
        let says = |configs: [Option<(String, Read)>; 2], has_members| {
            let finding = judged(&configs, has_members, bootstraps).unwrap();
            (finding.status, finding.reason, finding.message)
        };
        // Machines boot with the one before, and do so well.
        let (status, word, message) = says([old.clone(), new.clone()], false);
        assert_eq!((status, word.as_str()), (Some(true), "ConfigBrings"));
        assert!(message.starts_with("as it is. But machines that boot get old"), "{message}");
        assert!(message.ends_with("it has taints"), "{message}");
        // Nodes lose their claims by the one that they are to have.
        let (status, word, message) = says([old.clone(), new.clone()], true);
        assert_eq!((status, word.as_str()), (Some(false), CANNOT_BE_SERVED));
        assert!(message.starts_with("machines that boot get old"), "{message}");
        assert!(message.contains("Delete none of the Nodes"), "{message}");
        // It is served, and the one that is to come would have room again.
        let (status, word, message) = says([new.clone(), old.clone()], false);
        assert_eq!((status, word.as_str()), (Some(false), CANNOT_BE_SERVED));
        assert_eq!(message, "no machine that boots is served: it has taints");
        let (_, word, message) = says([old.clone(), old.clone()], true);
        assert_eq!((word.as_str(), message.as_str()), ("ConfigBrings", "as it is"));
        // Where no machine is served at all, it concerns nodes that have joined.
        let none = |has_members| judged(&[None, new.clone()], has_members, |_| None);
        assert_eq!(none(false), None);
        assert!(none(true).unwrap().message.contains("Delete none of the Nodes"));
        assert_eq!(judged(&[None, old.clone()], true, |_| None), None);
        // What is in the way of other files than the one with the claim costs no node its claim.
        let taken = read("new", Some("it has a link there"));
        let (status, word, message) = says([taken.clone(), taken.clone()], true);
        assert_eq!((status, word.as_str()), (Some(false), CANNOT_BE_SERVED));
        assert_eq!(message, "no machine that boots is served: it has a link there");
        let (status, _, message) = says([old.clone(), taken.clone()], true);
        assert!(status == Some(true) && message.ends_with("it has a link there"), "{message}");
        assert_eq!(judged(&[None, taken], true, |_| None), None);
    }

    #[test]
    fn a_config_with_a_link_where_the_kubeconfig_goes_is_served_where_nobody_gave_one() {
        let body = json!({"spec": {"config": {"ignition": {"version": "3.4.0"}, "storage": {
            "files": [{"path": "/etc/kubelet", "contents": {"source": "data:,kind%3A%20KubeletConfiguration"}}],
            "links": [{"path": BOOTSTRAP, "target": "/etc/own"}],
        }}}});
        let unserved = |bootstraps| {
            let body = body.to_string();
            unserved_by(("infra", "rendered"), "/etc/kubelet", bootstraps, body.as_bytes())
        };
        assert_eq!(unserved(false), None);
        let taken = unserved(true).unwrap();
        assert!(matches!(taken, Unserved::Taken { path: BOOTSTRAP, .. }), "{taken}");
    }

    #[test]
    fn a_pool_whose_selector_leaves_labels_open_says_so_before_a_machine_boots() {
        let finding = |status: bool| Finding {
            type_: SERVES,
            status: Some(status),
            reason: "Before".to_owned(),
            message: "before".to_owned(),
        };
        let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        let labels = Determined { labels, ..Determined::default() };
        let open = Err(Ambiguous::Open("site In [a, b]".to_owned()));
        for (status, gives, expected) in [
            (true, Ok(labels), (true, "Before")),
            (true, open.clone(), (false, NO_LABELS)),
            // Without a kubeconfig none registers.
            (false, open, (false, "Before")),
        ] {
            let pool = Pool { name: "edge".to_owned(), gives: Some(gives), ..Pool::default() };
            let said = joins(finding(status), &pool);
            assert_eq!((said.status, said.reason.as_str()), (Some(expected.0), expected.1));
            if said.reason == NO_LABELS {
                assert!(said.message.contains("site In [a, b]"), "{}", said.message);
                assert!(said.message.contains("admit NODE --pool edge"), "{}", said.message);
            }
        }
    }
}
