//! What a machine is served: what its pool's nodes have, and what makes it one of them.

use super::accept::NEWEST;
use super::booted::{BOOTED, Booted};
use super::file::{is_taken, text};
use super::flags::{Beats, beats};
use super::kubelet::{NoRoom, with_claim};
use super::version::{Lacks, in_version};
use crate::digest::Digest;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// Where the kubelet finds by whom it registers first.
pub const BOOTSTRAP: &str = "/etc/kubernetes/kubeconfig";

/// Readable for root alone.
const SECRET: u32 = 0o600;
/// Readable for all.
const OPEN: u32 = 0o644;

/// What machines of a pool boot with.
#[derive(Debug, Clone, Copy)]
pub struct Boots<'a> {
    /// The pool.
    pub pool: &'a str,
    /// The rendered config.
    pub config: &'a str,
    /// The digest of what it says of a node.
    pub digest: Digest,
    /// Its spec.
    pub spec: &'a Value,
    /// Where the kubelet finds its configuration.
    pub kubelet: &'a str,
    /// The kubeconfig by which kubelets register, where an admin gave one.
    pub bootstrap: Option<&'a str>,
}

/// The text that is served, but for the claim, which is another one each time.
#[derive(Clone, PartialEq, Eq)]
pub struct Served {
    /// What stands before the claim.
    pub head: String,
    /// What follows it.
    pub tail: String,
    /// The version: 3.X.
    pub minor: u8,
}

/// It holds secrets.
impl std::fmt::Debug for Served {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served").field("minor", &self.minor).finish_non_exhaustive()
    }
}

/// Why a machine cannot be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unserved {
    /// There is nothing by which its node could claim to be one of the pool's.
    #[error(
        "the config {config} of pool {pool} has no file {path}, into which a machine's claim is written: \
         bring the kubelet's configuration by a MachineConfig, or say where it is"
    )]
    NoKubelet {
        /// The pool.
        pool: String,
        /// The config.
        config: String,
        /// Where the file should be.
        path: String,
    },
    /// The claim does not fit into it.
    #[error(
        "no machine of pool {pool} can claim to be one of its nodes by {path} of {config}: {why}"
    )]
    NoRoom {
        /// The pool.
        pool: String,
        /// The config.
        config: String,
        /// The file.
        path: String,
        /// What keeps it from being written there.
        why: NoRoom,
    },
    /// Its kubelet is told elsewhere with which taints its node registers.
    #[error(
        "no machine of pool {pool} can claim to be one of its nodes: {whose} of {config} says {says}, \
         which beats the kubelet's configuration and the claim in it. Take it out, and write these taints into \
         spec.nodeTaints of the Rollout of the pool, from where a node gets them when it joins"
    )]
    Beaten {
        /// The pool.
        pool: String,
        /// The config.
        config: String,
        /// What says so: a unit, or a file.
        whose: String,
        /// A flag, or a field.
        says: &'static str,
    },
    /// Its kubelet reads another configuration than the one with the claim.
    #[error(
        "no machine of pool {pool} can claim to be one of its nodes: {whose} of {config} starts the \
         kubelet with --config={other}, and the claim is written into {path}. Name that file there, or say \
         --kubelet-config={other} to tread manifests or tread serve"
    )]
    Other {
        /// The pool.
        pool: String,
        /// The config.
        config: String,
        /// What says so: a unit, or a file.
        whose: String,
        /// What its kubelet reads.
        other: String,
        /// What has the claim.
        path: String,
    },
    /// Somebody has something else where tread writes.
    #[error(
        "the config {config} of pool {pool} has something at {path}, or a link above it, where tread writes \
         a file of its own: take it out"
    )]
    Taken {
        /// The pool.
        pool: String,
        /// The config.
        config: String,
        /// The path.
        path: &'static str,
    },
    /// The version that is asked for lacks something.
    #[error("{0}")]
    Version(#[from] Lacks),
    /// A defect of tread.
    #[error("a claim has no place of its own in {0}; please report it")]
    Defect(String),
}

impl Unserved {
    /// Whether no claim has a place in the config. Nodes that joined by theirs lose it with such a config.
    pub fn lacks_room(&self) -> bool {
        use Unserved::{Beaten, NoKubelet, NoRoom, Other};
        matches!(self, NoKubelet { .. } | NoRoom { .. } | Beaten { .. } | Other { .. })
    }
}

/// What machines of a pool are served that read 3.`minor`; none: in the version that there is.
pub fn served(boots: &Boots<'_>, minor: Option<u8>) -> Result<Served, Unserved> {
    let mut config = boots.spec.get("config").cloned().unwrap_or_else(|| json!({}));
    let (pool, name) = (boots.pool.to_owned(), boots.config.to_owned());
    // A placeholder as long as a claim, which nobody could have written into the config.
    let mark = Digest::of(config.to_string().as_bytes()).hex();
    let mark: String = ["CLAIM", mark.as_str()].concat().chars().take(62).collect();

    let booted = Booted::with(boots.pool, boots.config, boots.digest);
    let booted = booted.joins(boots.kubelet, boots.bootstrap.is_some());
    let booted = serde_json::to_string(&booted).unwrap_or_default();
    if is_taken(&config, &["directories", "files", "links"], BOOTED) {
        return Err(Unserved::Taken { pool, config: name, path: BOOTED });
    }
    // A file that the config has there is written over.
    if boots.bootstrap.is_some() && is_taken(&config, &["directories", "links"], BOOTSTRAP) {
        return Err(Unserved::Taken { pool, config: name, path: BOOTSTRAP });
    }
    let path = boots.kubelet.to_owned();
    match beats(&config, boots.kubelet) {
        None => {}
        Some(Beats::Taints(whose, says)) => {
            return Err(Unserved::Beaten { pool, config: name, whose, says });
        }
        Some(Beats::Other(whose, other)) => {
            return Err(Unserved::Other { pool, config: name, whose, other, path });
        }
    }
    let Some(kubelet) = text_of(&config, boots.kubelet) else {
        return Err(Unserved::NoKubelet { pool, config: name, path });
    };
    let kubelet = with_claim(&kubelet, &mark).map_err(|why| Unserved::NoRoom {
        pool,
        config: name.clone(),
        path,
        why,
    })?;
    put(&mut config, boots.kubelet, &kubelet, OPEN);
    put(&mut config, BOOTED, &booted, OPEN);
    if let Some(bootstrap) = boots.bootstrap {
        put(&mut config, BOOTSTRAP, bootstrap, SECRET);
        // It lets whoever reads it register a node.
        set(&mut config, BOOTSTRAP, "mode", json!(SECRET));
    }
    let minor = in_version(&mut config, minor.map(|minor| minor.min(NEWEST)))?;
    let text = config.to_string();
    match text.split_once(&mark) {
        Some((head, tail)) if !tail.contains(&mark) => {
            Ok(Served { head: head.to_owned(), tail: tail.to_owned(), minor })
        }
        _ => Err(Unserved::Defect(name)),
    }
}

fn files(config: &mut Value) -> Option<&mut Vec<Value>> {
    let fields = config.as_object_mut()?;
    let storage = fields.entry("storage").or_insert_with(|| Value::Object(Map::new()));
    let files = storage.as_object_mut()?.entry("files");
    files.or_insert_with(|| Value::Array(Vec::new())).as_array_mut()
}

fn is_at(entry: &Value, path: &str) -> bool {
    entry.get("path").is_some_and(|it| it == path)
}

/// The contents of a file, as text.
fn text_of(config: &Value, path: &str) -> Option<String> {
    let files = config.pointer("/storage/files")?.as_array()?;
    text(files.iter().find(|file| is_at(file, path))?)
}

/// Writes a text into a file of a config: without base64, so that a claim in it is seen.
fn put(config: &mut Value, path: &str, text: &str, mode: u32) {
    let contents = json!({"source": url(text)});
    let Some(files) = files(config) else { return };
    match files.iter_mut().find(|file| is_at(file, path)).and_then(Value::as_object_mut) {
        Some(file) => {
            file.insert("contents".to_owned(), contents);
            file.insert("overwrite".to_owned(), Value::Bool(true));
        }
        None => {
            files.push(json!({"path": path, "mode": mode, "overwrite": true, "contents": contents}))
        }
    }
}

fn set(config: &mut Value, path: &str, field: &str, value: Value) {
    let files = files(config).into_iter().flatten();
    for file in files.filter(|file| is_at(file, path)).filter_map(Value::as_object_mut) {
        file.insert(field.to_owned(), value.clone());
    }
}

/// A data URL that Ignition takes.
fn url(text: &str) -> String {
    let mut url = String::with_capacity(text.len() + text.len() / 2);
    url.push_str("data:,");
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' | b':' => {
                url.push(char::from(byte));
            }
            // Writing to a String does not fail.
            _ => drop(write!(url, "%{byte:02X}")),
        }
    }
    url
}
