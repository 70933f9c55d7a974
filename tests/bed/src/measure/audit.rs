//! What the API server was asked.

use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::Path;

/// How often the API server was asked.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) all: usize,
    pub(crate) leases: usize,
    /// By verb and resource.
    pub(crate) others: BTreeMap<String, usize>,
}

/// The requests of somebody since a place in the log. A watch counts where it
/// begins.
pub(crate) fn requests(log: &Path, since: u64, user: &str) -> Result<Requests> {
    let mut file = File::open(log).with_context(|| format!("cannot read {}", log.display()))?;
    file.seek(SeekFrom::Start(since))?;
    let mut requests = Requests::default();
    for line in BufReader::new(file).lines() {
        let Ok(event) = serde_json::from_str::<Value>(&line?) else { continue };
        let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default();
        if text("/user/username") != user || text("/stage") != "ResponseComplete" {
            continue;
        }
        requests.all += 1;
        if text("/objectRef/resource") == "leases" {
            requests.leases += 1;
        } else {
            let what = format!("{} {}", text("/verb"), text("/objectRef/resource"));
            *requests.others.entry(what).or_default() += 1;
        }
    }
    Ok(requests)
}
