//! What a person, or a script, does with nodes and their Leases: by their own rights, in every mode.

mod admit;
mod rule;

pub use admit::{NotAdmitted, admit};
pub use rule::{Answer, HeldBy, answer};

use crate::namespace;
use k8s_openapi::api::coordination::v1::Lease as Object;
use k8s_openapi::api::core::v1::Node;
use kube::api::{
    DeleteParams, ListParams, ObjectList, PartialObjectMeta, PostParams, Preconditions,
};
use kube::{Api, Client, ResourceExt as _};
use std::time::Duration;
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::dated;
use tread_kube::metrics::Metrics;
use tread_kube::node_lease::{OfNode, Writes, name, read, written};
use tread_kube::paging::in_pages;
use tread_model::protocol::{Holder, Lease, Terms, Time};

/// Somebody who takes nodes' Leases.
pub struct Hand {
    /// Asks by their rights.
    pub client: Client,
    /// What is counted.
    pub metrics: Metrics,
    /// Where the Leases are.
    pub namespace: String,
    /// What they are called as the holder.
    pub holder: String,
    /// By how much clocks may differ.
    pub terms: Terms,
}

/// Why a Lease was not taken or given back.
#[derive(Debug, thiserror::Error)]
pub enum NotTaken {
    /// Somebody else holds it.
    #[error("{0}")]
    Held(HeldBy),
    /// There is no such node.
    #[error("there is no node {0}: see `kubectl get nodes`")]
    NoNode(String),
    /// No Lease can have its name.
    #[error(
        "{0:?} is no name of a node that can have a Lease: small letters, digits, - and ., 248 at most"
    )]
    NoName(String),
    /// Others were faster, again and again.
    #[error("the Lease of {0} changes all the time: somebody else takes it too; try again")]
    Busy(String),
    /// The API server's answer.
    #[error(transparent)]
    Failed(#[from] Failed),
}

/// How often it is tried again where somebody else wrote first.
const TRIES: usize = 5;
const LEASES: &str = "leases";
/// So many Leases are listed at a time.
const PAGE: u32 = 500;

/// A Lease that was got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Got {
    /// When it ends.
    pub ends: Time,
    /// Whether nobody else can have had it since it was got before: it was there, and theirs.
    pub was_theirs: bool,
}

impl Hand {
    /// Takes a node's Lease, or makes it last longer.
    pub async fn acquire(
        &self,
        node: &str,
        lasts: Duration,
        reason: Option<&str>,
    ) -> Result<Got, NotTaken> {
        let lease_name = name(node).ok_or_else(|| NotTaken::NoName(node.to_owned()))?;
        let of = self.node(node).await?;
        for _ in 0..TRIES {
            let found = self.find(&lease_name).await?;
            let (object, now) = (found.object, found.at);
            let writes = |lease: &Lease| {
                let Hand { holder, namespace, .. } = self;
                let by = Writes { us: holder, node: &of, namespace, now, reason };
                written(lease, by, object.as_ref())
            };
            let lease = object.as_ref().map(|it| read(it, &self.holder));
            let was_theirs = lease.is_some_and(|it| it.holder != Holder::Other);
            let done = match answer(object.as_ref(), lease, now, lasts, &self.terms) {
                Answer::Held(by) => return Err(NotTaken::Held(by)),
                Answer::Keep(ends) => return Ok(Got { ends, was_theirs }),
                Answer::Make(lease) => self.make(&writes(&lease)).await.map(|()| lease),
                Answer::Write(lease) => {
                    self.replace(&lease_name, &writes(&lease)).await.map(|()| lease)
                }
            };
            match done {
                Ok(lease) => return Ok(Got { ends: lease.ends().unwrap_or(now), was_theirs }),
                Err(failed) if failed.outcome == CallOutcome::Conflict => {}
                Err(failed) => return Err(failed.into()),
            }
        }
        Err(NotTaken::Busy(node.to_owned()))
    }

    /// Gives a node's Lease back; says whether there was one.
    pub async fn release(&self, node: &str) -> Result<bool, NotTaken> {
        let lease_name = name(node).ok_or_else(|| NotTaken::NoName(node.to_owned()))?;
        for _ in 0..TRIES {
            let found = self.find(&lease_name).await?;
            let Some(object) = found.object else { return Ok(false) };
            let lease = read(&object, &self.holder);
            if lease.holder == Holder::Other {
                return Err(NotTaken::Held(HeldBy::of(&object, &lease, found.at, &self.terms)));
            }
            match self.remove(&lease_name, &object).await {
                Ok(()) => return Ok(true),
                Err(failed) if failed.outcome == CallOutcome::Gone => return Ok(true),
                Err(failed) if failed.outcome == CallOutcome::Conflict => {}
                Err(failed) => return Err(failed.into()),
            }
        }
        Err(NotTaken::Busy(node.to_owned()))
    }

    /// All Leases of nodes, and the API server's time.
    pub async fn list(&self) -> Result<(Vec<Object>, Time), Failed> {
        let path = format!("{}?limit=1", self.path());
        let first: dated::Dated<ObjectList<Object>> =
            dated::read(&self.client, &self.metrics, self.call("list"), &path).await?;
        let (api, params) = (self.api(), ListParams::default());
        let list = async |params| api.list(&params).await;
        let of_nodes = |it: Object| it.name_any().starts_with("node-").then_some(it);
        let all = in_pages(PAGE, &self.metrics, self.call("list"), params, list, of_nodes);
        Ok((all.await?, first.at))
    }

    fn path(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace)
    }

    fn call(&self, verb: &'static str) -> Call {
        Call::new(verb, LEASES).within(&self.namespace)
    }

    fn api(&self) -> Api<Object> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn find(&self, lease: &str) -> Result<dated::Dated<Object>, Failed> {
        let path = format!("{}/{lease}", self.path());
        dated::read(&self.client, &self.metrics, self.call("get"), &path).await
    }

    async fn node(&self, name: &str) -> Result<OfNode, NotTaken> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let asked = nodes.get_metadata(name);
        let node: PartialObjectMeta<Node> =
            match ask(&self.metrics, Call::new("get", "nodes"), asked).await {
                Err(failed) if failed.outcome == CallOutcome::Gone => {
                    return Err(NotTaken::NoNode(name.to_owned()));
                }
                read => read?,
            };
        Ok(OfNode { name: name.to_owned(), uid: node.metadata.uid.unwrap_or_default() })
    }

    /// Makes it, and the namespace where nobody did that yet.
    async fn make(&self, lease: &Object) -> Result<(), Failed> {
        let create = async || {
            let (api, params) = (self.api(), PostParams::default());
            ask(&self.metrics, self.call("create"), api.create(&params, lease)).await.map(|_| ())
        };
        match create().await {
            Err(failed) if failed.outcome == CallOutcome::Gone => {
                namespace::make(&self.client, &self.metrics, &self.namespace).await?;
                create().await
            }
            made => made,
        }
    }

    async fn replace(&self, name: &str, lease: &Object) -> Result<(), Failed> {
        let (api, params) = (self.api(), PostParams::default());
        ask(&self.metrics, self.call("update"), api.replace(name, &params, lease)).await?;
        Ok(())
    }

    async fn remove(&self, name: &str, object: &Object) -> Result<(), Failed> {
        let preconditions = Preconditions {
            uid: object.metadata.uid.clone(),
            resource_version: object.metadata.resource_version.clone(),
        };
        let params = DeleteParams::default().preconditions(preconditions);
        let api = self.api();
        ask(&self.metrics, self.call("delete"), api.delete(name, &params)).await?;
        Ok(())
    }
}
