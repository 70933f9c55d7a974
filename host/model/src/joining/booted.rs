//! What a machine was served with, on its disk: its agent takes that as applied.

use crate::digest::Digest;
use serde::{Deserialize, Serialize};

/// Where it stands.
pub const BOOTED: &str = "/etc/tread/booted.json";

const SCHEMA: &str = "tread.dev/booted/v1";

/// What a machine booted with first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Booted {
    schema: String,
    /// The pool whose config it asked for.
    pub pool: String,
    /// The config that it was served.
    pub config: String,
    /// The digest of what that says of a node.
    pub digest: Digest,
    /// The kubelet's configuration, into which its claim was written.
    #[serde(default)]
    pub kubelet: String,
    /// Whether it was given a kubeconfig to register by, in place of what the config may have there.
    #[serde(default)]
    pub bootstrap: bool,
}

impl Booted {
    /// With this config of a pool.
    pub fn with(pool: &str, config: &str, digest: Digest) -> Booted {
        let (schema, pool, config) = (SCHEMA.to_owned(), pool.to_owned(), config.to_owned());
        Booted { schema, pool, config, digest, kubelet: String::new(), bootstrap: false }
    }

    /// And with what makes it a node of the pool.
    pub fn joins(self, kubelet: &str, bootstrap: bool) -> Booted {
        Booted { kubelet: kubelet.to_owned(), bootstrap, ..self }
    }

    /// Reads what was written. A disk may hold anything.
    pub fn read(bytes: &[u8]) -> Option<Booted> {
        let booted: Booted = serde_json::from_slice(bytes).ok()?;
        (booted.schema == SCHEMA).then_some(booted)
    }
}
