//! On which terms an operation is carried out: kept with it over crashes and boots.

use crate::api_server::is_address;
use crate::systemd::Limits;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// On which terms an operation is carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Terms {
    /// Who says whether something that disrupts may be done now.
    pub permits: Asked,
    /// For how many seconds a unit has to stay well after it was told.
    pub well_for: u64,
    /// How many seconds the node may take to prove that it is well after a boot.
    #[serde(skip_serializing_if = "is_usual")]
    pub proof: u64,
    /// An API server that the node has to reach afterwards if it reached it before:
    /// `HOST:PORT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_server: Option<String>,
    /// After how many seconds without that API server the node goes back.
    pub cut_off: u64,
}

/// How many seconds the proof may take unless somebody says otherwise.
const PROOF: u64 = 600;

/// What is as usual is not said: an older version may have to read it.
fn is_usual(proof: &u64) -> bool {
    *proof == PROOF
}

/// The longest that anything of it may take, in seconds.
pub const LONGEST: u64 = 86_400;

impl Default for Terms {
    fn default() -> Terms {
        let well_for = Limits::default().well_for.as_secs();
        Terms { permits: Asked::Nobody, well_for, proof: PROOF, api_server: None, cut_off: 600 }
    }
}

impl Terms {
    /// Whether nothing of it takes for ever, and a unit can stay well for as long as it has to
    /// before the proof is over: a node where none can would always go back.
    pub fn are_possible(&self) -> bool {
        let all = [self.well_for, self.proof, self.cut_off];
        all.into_iter().all(|seconds| seconds <= LONGEST) && self.well_for < self.proof
    }

    /// Whether the API server that it names, if it does, is an address.
    pub fn name_an_address(&self) -> bool {
        self.api_server.as_deref().is_none_or(is_address)
    }

    /// How long things may take that no step gives a deadline.
    pub fn limits(&self) -> Limits {
        Limits { well_for: Duration::from_secs(self.well_for), ..Limits::default() }
    }
}

/// Who says whether something that disrupts may be done now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Asked {
    /// Nobody: everything may be done at any time.
    #[default]
    Nobody,
    /// The agent.
    Agent,
}
