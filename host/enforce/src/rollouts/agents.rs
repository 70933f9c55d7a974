//! The instructions of agents, and what they may begin.

use super::booted;
use super::facts::Facts;
use super::halted::says_halted;
use super::joining::{Joining, digest};
use super::known::Known;
use super::marks::is_of;
use super::scene::Scene;
use super::settings::Settings;
use crate::settings::Settings as Acts;
use crate::step::permit;
use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};
use tread_cluster::boot_images::Known as Images;
use tread_cluster::plans::Previewer;
use tread_kube::agents::{Answer, Ask, Asked, GivenConfig, Instructions};
use tread_kube::api::NodeUpdate;
use tread_kube::api::node_update::{
    ConfigName, NodeUpdateStatus, UpdateOrder, UpdatePhase, UpdateStage,
};
use tread_kube::node_lease::parse_operation;
use tread_kube::resting::Resting;
use tread_model::digest::Fields;
use tread_model::protocol::{Question, What};

/// So long an agent waits at most before it gets the instructions that it knows.
const LONGEST: Duration = Duration::from_secs(240);

/// The most of a core that finding whom to wake takes.
const RESTS: Resting = Resting { parts: 50, longest: Duration::from_millis(100) };

/// Why an agent gets no instructions.
#[derive(Debug, thiserror::Error)]
pub enum NoInstructions {
    /// There are none yet.
    #[error("tread does not know all nodes and pools yet; ask again")]
    NotYet,
    /// There is no such node, or another one of its name.
    #[error("there is no node {0}, or it was made anew: ask with a token of a pod on it")]
    NoNode(String),
    /// The config cannot be given.
    #[error("the config cannot be given: {0}")]
    NoConfig(String),
}

/// The instructions of agents. Clones share everything.
#[derive(Clone)]
pub struct Agents {
    acts: Acts,
    previewer: Previewer,
    known: Known,
    form: u32,
    scenes: watch::Receiver<Option<Arc<Scene>>>,
    joining: Joining,
    /// Configs that are being given, by name.
    given: Arc<Mutex<BTreeMap<String, Weak<GivenConfig>>>>,
    /// Agents that wait, by node: each is woken when something of its own changes.
    doors: Arc<Mutex<BTreeMap<String, Arc<Notify>>>>,
}

impl Agents {
    /// Tells from which images nodes booted, for as long as it is polled.
    pub fn publish_booted(&self, images: Images) -> BoxFuture<'static, ()> {
        booted::publish(self.known.clone(), images).boxed()
    }

    pub(super) fn new(
        settings: &Settings,
        known: &Known,
        scenes: watch::Receiver<Option<Arc<Scene>>>,
        joining: Joining,
    ) -> Agents {
        Agents {
            acts: settings.acts.clone(),
            previewer: settings.previewer.clone(),
            known: known.clone(),
            form: settings.form,
            scenes,
            joining,
            given: Arc::default(),
            doors: Arc::default(),
        }
    }

    /// What is to be done on the node of this name and UID, as soon as it is something else than
    /// what was `seen`, or after a while.
    pub async fn wait(
        &self,
        node: &str,
        uid: Option<&str>,
        seen: Option<&str>,
    ) -> Result<Instructions, NoInstructions> {
        self.wait_having((node, uid), seen, None).await
    }

    /// The same for a node whose disk has this config, by the node's own record.
    pub async fn wait_having(
        &self,
        (node, uid): (&str, Option<&str>),
        seen: Option<&str>,
        has: Option<&ConfigName>,
    ) -> Result<Instructions, NoInstructions> {
        let until = Instant::now() + LONGEST;
        let door = self.door(node);
        loop {
            // What changes from here on wakes it.
            let changes = door.notified();
            let what = self.what(node, uid, has)?;
            if seen != Some(what.revision.as_str()) {
                return self.instructions(node, what).await;
            }
            if timeout_at(until, changes).await.is_err() {
                return self.instructions(node, what).await;
            }
        }
    }

    fn door(&self, node: &str) -> Arc<Notify> {
        let mut doors = self.doors.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(doors.entry(node.to_owned()).or_default())
    }

    /// Wakes the agents of which something changed, for as long as it is polled.
    pub(super) async fn wake(self) {
        let mut before = Arc::default();
        let mut updates = self.known.updates().moments();
        let mut scenes = self.scenes.clone();
        loop {
            tokio::select! {
                Some(now) = updates.next() => {
                    let begun = Instant::now();
                    self.wake_of(&before, &now);
                    before = now;
                    RESTS.rest_after(begun.elapsed()).await;
                }
                // A node that has no config yet begins with that of its pool.
                Ok(()) = scenes.changed() => {
                    scenes.mark_unchanged();
                    for (name, update) in &*before {
                        if has_none(update) {
                            self.wake_up(name);
                        }
                    }
                }
            }
        }
    }

    fn wake_of(
        &self,
        before: &BTreeMap<String, Arc<NodeUpdate>>,
        now: &BTreeMap<String, Arc<NodeUpdate>>,
    ) {
        let is_same = |name: &String, update: &Arc<NodeUpdate>| {
            before.get(name).is_some_and(|before| Arc::ptr_eq(before, update))
        };
        now.iter().filter(|(name, it)| !is_same(name, it)).for_each(|(name, _)| self.wake_up(name));
        let mut gone = before.keys().filter(|name| !now.contains_key(*name)).peekable();
        if gone.peek().is_some() {
            gone.for_each(|name| self.wake_up(name));
            // Whoever waits at a door is woken by this door alone.
            let mut doors = self.doors.lock().unwrap_or_else(PoisonError::into_inner);
            doors.retain(|name, door| now.contains_key(name) || Arc::strong_count(door) > 1);
        }
    }

    fn wake_up(&self, node: &str) {
        let doors = self.doors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(door) = doors.get(node) {
            door.notify_waiters();
        }
    }

    /// The node of this name and UID, and the NodeUpdate of that name.
    fn node(
        &self,
        node: &str,
        uid: Option<&str>,
    ) -> Result<(Arc<Facts>, Option<Arc<NodeUpdate>>), NoInstructions> {
        let (facts, update) = self.known.node(node).ok_or(NoInstructions::NotYet)?;
        let facts = facts.filter(|facts| uid.is_none_or(|uid| uid == facts.uid));
        Ok((facts.ok_or_else(|| NoInstructions::NoNode(node.to_owned()))?, update))
    }

    fn what(
        &self,
        node: &str,
        uid: Option<&str>,
        has: Option<&ConfigName>,
    ) -> Result<Says, NoInstructions> {
        let (facts, update) = self.node(node, uid)?;
        let update = update.filter(|update| is_of(update, &facts.uid));
        let update = update.ok_or(NoInstructions::NotYet)?;
        let scene = self.scenes.borrow().clone().ok_or(NoInstructions::NotYet)?;
        // No agent is given an order before its node is prepared.
        let order = update.spec.order.as_ref().filter(|order| order.stage != UpdateStage::Prepare);
        let adopt = has_none(&update);
        // An order for a node that has said of no config that it has it begins from nothing.
        let overwrite = adopt && order.is_some_and(|order| order.stage != UpdateStage::Closed);
        let pool = scene.pool_of(node);
        let target = || pool.and_then(|pool| pool.target.clone());
        // What an agent says that its disk has counts only for configs of its own pool: it must not
        // read the config of another pool.
        let of_pool = pool.and_then(|_| scene.nodes.get(node)).map(|node| node.pool.as_str());
        let by_disk = || {
            let has = has.filter(|has| of_pool.is_some_and(|it| self.joining.is_of(it, &has.name)));
            has.map(|has| has.name.clone())
        };
        let begins = || by_disk().or_else(|| self.joining.booted(node, &facts.uid));
        let config = match order.map(|order| order.stage) {
            Some(UpdateStage::Go) => order.map(|order| order.config.clone()),
            // Whoever turns back needs no config, and that may be gone with its pool.
            Some(UpdateStage::Withdrawn | UpdateStage::Prepare) => None,
            Some(UpdateStage::Closed) | None if adopt => match begins() {
                Some(name) if target().is_none_or(|target| target.name != name) => {
                    Some(ConfigName { name, digest: String::new() })
                }
                _ => target(),
            },
            Some(UpdateStage::Closed) | None => None,
        };
        let has_begun = |order: &UpdateOrder| {
            let of_it = |it: &&NodeUpdateStatus| it.operation.as_ref() == Some(&order.operation);
            let status = update.status.as_ref().filter(of_it);
            status.is_some_and(|status| status.phase.is_some_and(|it| it != UpdatePhase::Waiting))
        };
        let is_begun =
            order.is_some_and(|order| order.stage == UpdateStage::Go && has_begun(order));
        let mut revision = Fields::new("tread told 2");
        // One that was made anew has said nothing, whatever the one before was told and has said.
        revision.field(facts.uid.as_bytes());
        if let Some(order) = order {
            revision.field(order.operation.as_bytes());
            revision.number(u64::from(order.token) << 8 | order.stage as u64);
            revision.number(order.disrupts as u64);
        }
        let joins = adopt && facts.joins.is_some();
        revision.number(u64::from(adopt) | u64::from(overwrite) << 1 | u64::from(joins) << 2);
        let name = config.as_ref().map(|config| format!("{} {}", config.name, config.digest));
        revision.field(name.unwrap_or_default().as_bytes());
        Ok(Says {
            revision: revision.finish().short(),
            generation: update.metadata.generation,
            order: order.cloned(),
            config,
            is_begun,
            adopt,
            overwrite,
            joins,
            uid: facts.uid.clone(),
        })
    }

    /// A config as all get it to whom it is given at a time: they are many where it is new.
    async fn config(&self, name: ConfigName) -> Result<Arc<GivenConfig>, NoInstructions> {
        let no_config = |why: String| NoInstructions::NoConfig(why);
        let bytes = self.previewer.body(&name.name).await;
        let bytes = bytes.map_err(|why| no_config(why.to_string()))?;
        let name = digested(name, bytes.clone()).await?;
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |it: &Arc<GivenConfig>| it.name == name && it.text.as_bytes() == &*bytes;
        if let Some(shared) = given.get(&name.name).and_then(Weak::upgrade).filter(is_it) {
            return Ok(shared);
        }
        let text = str::from_utf8(&bytes).map_err(|error| no_config(error.to_string()))?.to_owned();
        given.retain(|_, it| it.strong_count() > 0);
        let config = Arc::new(GivenConfig { name, text });
        given.insert(config.name.name.clone(), Arc::downgrade(&config));
        Ok(config)
    }

    async fn instructions(&self, node: &str, says: Says) -> Result<Instructions, NoInstructions> {
        let config = match says.config {
            Some(name) => match self.config(name).await {
                // Its host has the config by now, which may be gone here. It waits for a permit.
                Err(why) if says.is_begun => {
                    tracing::debug!(node, %why, "a node whose operation has begun gets no config");
                    None
                }
                config => Some(config?),
            },
            None => None,
        };
        Ok(Instructions {
            revision: says.revision,
            form: self.form,
            generation: says.generation,
            node: node.to_owned(),
            uid: Some(says.uid),
            overwrite: says.overwrite,
            joins: says.joins,
            order: says.order,
            adopt: says.adopt && config.is_some(),
            config,
        })
    }

    /// Whether the agent of the node of this name and UID may begin what it asks for.
    pub async fn permit(&self, node: &str, uid: Option<&str>, asked: &Ask) -> Answer {
        let refused = |why: String| Answer::Refused { why };
        // The token of a pod on a node that was deleted is good for a while.
        if let Err(why) = self.node(node, uid) {
            return refused(why.to_string());
        }
        let Some(operation) = parse_operation(&asked.operation) else {
            return refused(format!("the operation {:?} is none", asked.operation));
        };
        let what = match asked.what {
            Asked::Write => What::Write,
            Asked::Unit => What::Unit,
            Asked::Boot => What::Boot,
        };
        let question = Question { operation, what, number: asked.number };
        if let Some(answer) = self.joining.permit(node, operation, asked).await {
            return answer;
        }
        if self.known.has_operators_daemon() {
            return refused(says_halted());
        }
        let scene = self.scenes.borrow().clone();
        if let Some(why) = scene.as_ref().and_then(|scene| scene.halted.as_ref()) {
            return refused(why.clone());
        }
        let Some((aim, room)) = scene.and_then(|scene| scene.aim(node)) else {
            return refused("what the pool of the node is to have is not known yet".to_owned());
        };
        match permit(&self.acts, node, &aim, &room, &question).await {
            Ok(Ok(permit)) => Answer::Permitted {
                number: permit.number,
                lasts: u64::try_from(permit.lasts.as_millis()).unwrap_or(u64::MAX),
            },
            Ok(Err(not_now)) => refused(not_now.to_string()),
            Err(unread) => refused(unread.to_string()),
        }
    }
}

/// A config with its digest: nobody noted that of one that a machine booted with.
async fn digested(config: ConfigName, body: Arc<[u8]>) -> Result<ConfigName, NoInstructions> {
    if !config.digest.is_empty() {
        return Ok(config);
    }
    let name = config.name.clone();
    let read = tokio::task::spawn_blocking(move || digest(&name, &body)).await.ok().flatten();
    let read =
        read.ok_or_else(|| NoInstructions::NoConfig(format!("{} cannot be read", config.name)))?;
    Ok(ConfigName { digest: read.to_string(), ..config })
}

/// Whether its node has said of no config that it has it.
fn has_none(update: &NodeUpdate) -> bool {
    update.status.as_ref().is_none_or(|status| status.current.is_none())
}

/// The instructions of an agent, without the config.
struct Says {
    revision: String,
    generation: Option<i64>,
    order: Option<UpdateOrder>,
    config: Option<ConfigName>,
    /// Whether its agent has begun to carry the order out.
    is_begun: bool,
    adopt: bool,
    overwrite: bool,
    joins: bool,
    uid: String,
}
