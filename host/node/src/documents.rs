//! A config as it was given: the texts of its documents.

use serde::{Deserialize, Serialize};
use tread_model::config::NodeConfig;
use tread_model::config_digest;
use tread_model::digest::Digest;
use tread_model::mirrors;
use tread_model::problem::Problems;
use tread_model::read::{self, Input};

/// A config as it was given: kept to the byte, so that it is read alike for ever.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Documents(pub Vec<Document>);

/// One file with MachineConfigs, and mirror objects where they are not rendered yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// What it is called in errors.
    pub name: String,
    /// All of it.
    pub text: String,
}

impl Documents {
    fn inputs(&self) -> Vec<Input<'_>> {
        let input = |it| {
            let Document { name, text }: &Document = it;
            Input { name, bytes: text.as_bytes() }
        };
        self.0.iter().map(input).collect()
    }

    /// What they say of a node.
    pub fn config(&self) -> Result<NodeConfig<'_>, Problems> {
        let inputs = self.inputs();
        let (side, _) = read::sides(&inputs, &inputs).map_err(once)?;
        let mut config = side.config;
        mirrors::apply(&mut config, &side.mirrors)?;
        Ok(config)
    }
}

/// What is wrong on both of two sides that are one is said once.
fn once(Problems(all): Problems) -> Problems {
    let mut told = Vec::new();
    for problem in all {
        if !told.contains(&problem) {
            told.push(problem);
        }
    }
    Problems(told)
}

/// The digest of a config, as plans have it.
pub fn digest(config: &NodeConfig<'_>) -> Result<Digest, Problems> {
    Ok(config_digest::digests(config)?.config)
}
