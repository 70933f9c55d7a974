//! What the watch found, in a small file: for `tread node status`, and for whoever sees
//! nothing of the host but tread's own folder. It holds paths, and no contents (law 10).

use crate::drift::{Drift, Kind};
use crate::tree::{Folder, Owner, PathError, Tree};
use serde::{Deserialize, Serialize};

/// The version of the file.
const SCHEMA: &str = "tread.dev/drift/v1";
/// Where it is: in a folder that nothing watches, since whoever writes is heard there.
const FOLDER: &str = "/var/lib/tread/watch";
const FILE: &str = "drift";
const MOST: u64 = 1 << 20;
/// As many paths as it names; the others are counted.
const MOST_PATHS: usize = 200;

/// What the watch does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// It watches.
    Watching,
    /// It waits until an operation is over.
    Paused,
    /// It waits until tread knows which config this node has, and can have it.
    Waiting,
}

/// One path that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Differs {
    /// The path.
    pub path: String,
    /// What differs.
    pub kinds: Vec<Kind>,
}

/// What the watch found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    schema: String,
    /// What it does.
    pub state: State,
    /// When everything was looked at last, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<u64>,
    /// How many paths differ.
    pub count: usize,
    /// The first of them.
    pub drifted: Vec<Differs>,
    /// What differs, and is only noted, since others own it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noted: Vec<Differs>,
    /// What an admin has to know, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Report {
    /// Of a watch that does this, and found nothing.
    pub fn new(state: State, message: &str) -> Report {
        Report {
            schema: SCHEMA.to_owned(),
            state,
            checked: None,
            count: 0,
            drifted: Vec::new(),
            noted: Vec::new(),
            message: tread_model::text::one_line_within(message, 1024).0,
        }
    }

    /// With what differs.
    pub fn with<'d>(
        mut self,
        drifted: impl Iterator<Item = &'d Drift>,
        noted: impl Iterator<Item = &'d Drift>,
    ) -> Report {
        let differs = |it: &Drift| Differs { path: it.path.clone(), kinds: it.kinds.clone() };
        for found in drifted {
            self.count += 1;
            if self.drifted.len() < MOST_PATHS {
                self.drifted.push(differs(found));
            }
        }
        self.noted = noted.map(differs).collect();
        self
    }

    /// What the watch wrote last; nothing if it never ran, or if it cannot be read.
    pub fn read(tree: &Tree) -> Result<Option<Report>, PathError> {
        let Some(bytes) = tree.read(&format!("{FOLDER}/{FILE}"), MOST)? else { return Ok(None) };
        let report: Option<Report> = serde_json::from_slice(&bytes).ok();
        Ok(report.filter(|report| report.schema == SCHEMA))
    }

    /// Makes the folder that it stands in.
    pub fn make_folder(tree: &Tree) -> Result<(), PathError> {
        made(tree).map(drop)
    }

    /// Lets others see it.
    pub fn write(&self, tree: &Tree) -> Result<(), PathError> {
        let failed = |error| PathError::io(FOLDER, error);
        let folder = made(tree)?;
        let bytes = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        let (next, file) = (format!("{FILE}.next"), FILE);
        let written = || {
            let owner = Owner { mode: 0o600, ..folder.own_stat()?.owner };
            folder.remove_own(&next)?;
            folder.create(&next, &bytes, owner, &[])?;
            folder.replace_own(&next, file)
        };
        written().map_err(failed)
    }
}

/// The folder of the file, for root alone.
fn made(tree: &Tree) -> Result<Folder, PathError> {
    let failed = |error| PathError::io(FOLDER, error);
    let (parent, name) = Tree::split(FOLDER)?;
    let parent = tree.folder_made(parent)?;
    if parent.stat(name).map_err(failed)?.is_none() {
        parent.make_private_folder(name).map_err(failed)?;
    }
    parent.folder(name).map_err(failed)
}
