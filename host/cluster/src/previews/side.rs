//! A side of a comparison: which objects it is made of, and the bytes of them.

use super::body::{Bodies, BodyKey};
use super::config::Given;
use std::sync::Arc;

/// An object that a side is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A MachineConfig of the cluster.
    Stored(BodyKey),
    /// An object that is at hand.
    Given(Arc<Given>),
    /// The MachineConfig in which the operator renders mirrors, as it will.
    Generated(Box<Generated>),
}

/// The MachineConfig in which the operator renders mirrors, and all that it is
/// rendered anew of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// Its name.
    pub name: String,
    /// As it stands in the cluster; None: there is none yet.
    pub before: Option<Piece>,
    /// What the operator's own templates became: it renders over their file.
    pub templates: Vec<Piece>,
    /// The objects that redirect image pulls.
    pub mirrors: Vec<Piece>,
}

/// What a node has, or is to get.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Side {
    /// The MachineConfigs, in the order in which they are merged; of a rendered
    /// config it alone.
    pub configs: Vec<Piece>,
    /// The objects that are rendered into registries.conf over that.
    pub mirrors: Vec<Piece>,
    /// The rendered config whose OS image stands where these name none: the
    /// operator takes it from elsewhere.
    pub os_image_of: Option<BodyKey>,
}

impl Piece {
    /// An object that is at hand: what it is called, and what it holds.
    pub fn given(name: String, bytes: Arc<[u8]>) -> Piece {
        Piece::Given(Given::new(name, bytes))
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        match self {
            Piece::Stored((name, _)) => name,
            Piece::Given(given) => given.name(),
            Piece::Generated(generated) => &generated.name,
        }
    }

    /// What it holds, if that is at hand.
    pub fn bytes<'b>(&'b self, bodies: &'b Bodies) -> Option<&'b [u8]> {
        match self {
            Piece::Stored(key) => bodies.get(key).map(|body| &**body.bytes()),
            Piece::Given(given) => Some(given.bytes()),
            Piece::Generated(_) => None,
        }
    }

    /// Whether it is at hand, whatever the cluster holds.
    pub(crate) fn is_given(&self) -> bool {
        matches!(self, Piece::Given(_))
    }

    /// It, or what it is rendered of.
    pub fn parts(&self) -> Vec<&Piece> {
        match self {
            Piece::Stored(_) | Piece::Given(_) => vec![self],
            Piece::Generated(it) => {
                it.before.iter().chain(&it.templates).chain(&it.mirrors).collect()
            }
        }
    }
}

impl Side {
    /// A rendered config.
    pub fn rendered(key: BodyKey) -> Side {
        Side { configs: vec![Piece::Stored(key)], ..Side::default() }
    }

    /// What has to be fetched for it.
    pub fn keys(&self) -> impl Iterator<Item = &BodyKey> {
        let parts = self.configs.iter().chain(&self.mirrors).flat_map(Piece::parts);
        let stored = parts.filter_map(|piece| match piece {
            Piece::Stored(key) => Some(key),
            Piece::Given(_) | Piece::Generated(_) => None,
        });
        stored.chain(&self.os_image_of)
    }
}
