//! What agents and the service say to each other. Who asks is known by the token of the request,
//! which is bound to a pod on one node: nothing in the request says which node it is.

use crate::api::node_update::{ConfigName, UpdateOrder};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Whom the tokens of agents are for: the API server gives a pod one for this audience alone.
pub const AUDIENCE: &str = "tread.dev/agents";
/// Where an agent waits for what is to be done: a POST of [`Wait`], answered by [`Instructions`].
pub const WAIT: &str = "/v1/agent/wait";
/// Where it asks whether something may begin: a POST of [`Ask`], answered by [`Answer`].
pub const PERMIT: &str = "/v1/agent/permit";
/// The newest form of orders that is known here. An agent that knows only older ones is told to
/// be upgraded first.
pub const FORM: u32 = 2;

/// That an agent wants to know what is to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Wait {
    /// The revision of what it was told last: it is answered once there is another one, or after
    /// a while with what it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// The newest form of orders that it knows.
    pub form: u32,
    /// What the node's disk has by the node's own record, where its agent has said of no config yet
    /// that the node has it. An older service refuses a question with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has: Option<ConfigName>,
}

/// What is to be done on a node.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Instructions {
    /// What stands here, by a name: another one where anything of it changes.
    pub revision: String,
    /// The form in which it stands. An agent that knows only older ones does nothing of it.
    #[serde(default)]
    pub form: u32,
    /// The generation of the NodeUpdate that this is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// The node's name, and that of its NodeUpdate.
    pub node: String,
    /// Its UID. What its agent knows of orders and tokens counts for the node of this UID alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The order in its NodeUpdate, with the whole plan; none if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<UpdateOrder>,
    /// The config that the order names, or that a node has to begin with. All nodes that get
    /// it share one.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "shared")]
    pub config: Option<Arc<GivenConfig>>,
    /// The node has said of no config that it has it: unless an order is open it is to say so of
    /// the one here, if its disk is as that says. Whatever it said before, it says again.
    #[serde(default)]
    pub adopt: bool,
    /// The node has registered as joining, and is in no pool before it has said that it has the
    /// config here. No pod is put there meanwhile: what its machine could not boot with, such as
    /// another OS image, the agent brings with one boot, once it is permitted.
    #[serde(default)]
    pub joins: bool,
    /// The order, which has a boot, brings the disk to the config whatever it had: so a node
    /// joins a pool that overwrites new nodes.
    #[serde(default)]
    pub overwrite: bool,
}

/// serde leaves `Arc` to a feature of its own.
mod shared {
    use super::{Arc, GivenConfig};
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(
        config: &Option<Arc<GivenConfig>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        config.as_deref().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Arc<GivenConfig>>, D::Error> {
        Ok(Option::deserialize(deserializer)?.map(Arc::new))
    }
}

/// A config, whole.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GivenConfig {
    /// What it is called.
    #[serde(flatten)]
    pub name: ConfigName,
    /// The MachineConfig that was rendered, as JSON.
    pub text: String,
}

impl std::fmt::Debug for GivenConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What it holds may be secret.
        f.debug_struct("GivenConfig").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What an agent asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ask {
    /// In which operation: 32 hexadecimal digits.
    pub operation: String,
    /// What for.
    pub what: Asked,
    /// No two questions of an agent have the same.
    pub number: u64,
}

/// What a permit is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Asked {
    /// The first name changes.
    Write,
    /// A unit is told.
    Unit,
    /// The node boots, and once more if it has to go back.
    Boot,
}

/// Whether it may begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// It may, for so many milliseconds from the question on.
    Permitted {
        /// The question that is answered.
        number: u64,
        /// For how long.
        lasts: u64,
    },
    /// It may not, now.
    Refused {
        /// Why, in a sentence.
        why: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_model::config_digest::VERSION;
    use tread_model::plan::DIGEST_VERSION;

    /// An agent verifies an order by its digests: one that makes them in another way would boot its
    /// node for each. It waits to be upgraded where the form of orders is a newer one.
    #[test]
    fn whoever_makes_digests_in_another_way_raises_the_form_of_orders() {
        let forms = (FORM, VERSION, DIGEST_VERSION);
        let expected = (2, "tread config 3", "tread plan 2");
        assert_eq!(forms, expected, "with another digest comes another FORM: raise it, and this");
    }
}
