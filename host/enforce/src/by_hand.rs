//! What a person, or a script, does with nodes' Leases: by their own rights, in every mode.

mod rule;

pub use rule::{Answer, HeldBy, answer};

use k8s_openapi::api::coordination::v1::Lease as Object;
use k8s_openapi::api::core::v1::{Namespace, Node};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, ObjectList, PartialObjectMeta, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt as _};
use std::time::Duration;
use tread_kube::asking::{Call, CallOutcome, Failed, ask};
use tread_kube::dated;
use tread_kube::metrics::Metrics;
use tread_kube::node_lease::{OfNode, Writes, name, read, written};
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
    /// Its Lease would have too long a name.
    #[error("the name {0} is too long for a Lease: nodes with up to 248 characters have one")]
    TooLong(String),
    /// Others were faster, again and again.
    #[error("the Lease of {0} changes all the time: somebody else takes it too; try again")]
    Busy(String),
    /// The API server's answer.
    #[error(transparent)]
    Failed(#[from] Failed),
}

/// Somebody who was faster is looked at again so often.
const TRIES: usize = 5;
const LEASES: &str = "leases";

impl Hand {
    /// Takes a node's Lease, or makes it last longer; says when it ends.
    pub async fn acquire(
        &self,
        node: &str,
        lasts: Duration,
        reason: Option<&str>,
    ) -> Result<Time, NotTaken> {
        let of = self.node(node).await?;
        let lease_name = name(node).ok_or_else(|| NotTaken::TooLong(node.to_owned()))?;
        for _ in 0..TRIES {
            let found = self.find(&lease_name).await?;
            let (object, now) = (found.object, found.at);
            let writes = |lease: &Lease| {
                let Hand { holder, namespace, .. } = self;
                let by = Writes { us: holder, node: &of, namespace, now, reason };
                written(lease, by, object.as_ref())
            };
            let lease = object.as_ref().map(|it| read(it, &self.holder));
            let done = match answer(object.as_ref(), lease, now, lasts, &self.terms) {
                Answer::Held(by) => return Err(NotTaken::Held(by)),
                Answer::Keep(ends) => return Ok(ends),
                Answer::Make(lease) => self.make(&writes(&lease)).await.map(|()| lease),
                Answer::Write(lease) => {
                    self.replace(&lease_name, &writes(&lease)).await.map(|()| lease)
                }
            };
            match done {
                Ok(lease) => return Ok(lease.ends().unwrap_or(now)),
                Err(failed) if failed.outcome == CallOutcome::Conflict => {}
                Err(failed) => return Err(failed.into()),
            }
        }
        Err(NotTaken::Busy(node.to_owned()))
    }

    /// Gives a node's Lease back; says whether there was one.
    pub async fn release(&self, node: &str) -> Result<bool, NotTaken> {
        let lease_name = name(node).ok_or_else(|| NotTaken::TooLong(node.to_owned()))?;
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
        let path = format!("{}?limit=5000", self.path());
        let list: dated::Dated<ObjectList<Object>> =
            dated::read(&self.client, &self.metrics, self.call("list"), &path).await?;
        let mut items = list.object.map(|it| it.items).unwrap_or_default();
        items.retain(|it| it.name_any().starts_with("node-"));
        Ok((items, list.at))
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
                self.make_namespace().await?;
                create().await
            }
            made => made,
        }
    }

    async fn make_namespace(&self) -> Result<(), Failed> {
        let api: Api<Namespace> = Api::all(self.client.clone());
        let metadata = ObjectMeta { name: Some(self.namespace.clone()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let params = PostParams::default();
        let asked = api.create(&params, &namespace);
        match ask(&self.metrics, Call::new("create", "namespaces"), asked).await {
            Err(failed) if failed.outcome != CallOutcome::Conflict => Err(failed),
            _ => Ok(()),
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
