//! A config as it was given: the texts of its documents.

use serde::{Deserialize, Serialize};
use tread_model::config::NodeConfig;
use tread_model::config_digest;
use tread_model::digest::Digest;
use tread_model::mirrors;
use tread_model::problem::Problems;
use tread_model::read::Input;

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

    /// The name of the config, where an agent gave it. What is given by hand is called as its files
    /// are, whatever the MachineConfigs in them are called.
    pub fn given_as(&self) -> Option<&str> {
        let [document] = self.0.as_slice() else { return None };
        document.name.strip_suffix(".json")
    }

    /// What they say of a node.
    pub fn config(&self) -> Result<NodeConfig<'_>, Problems> {
        Ok(mirrors::side("new", &self.inputs())?.config)
    }
}

/// The digest of a config, as plans have it.
pub fn digest(config: &NodeConfig<'_>) -> Result<Digest, Problems> {
    Ok(config_digest::digests(config)?.config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_config_is_said_once() {
        let text = "{\"ignition\":{\"version\":\"3.4.0\"},\"storage\":7}".to_owned();
        let spoilt = Documents(vec![Document { name: "spoilt.ign".to_owned(), text }]);
        for config in [spoilt, Documents::default()] {
            let Problems(said) = config.config().unwrap_err();
            assert_eq!(said.len(), 1, "{said:?}");
        }
    }
}
