//! Why a node waits, in words.

use crate::text::listed;
use std::fmt;

/// Why a node waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The pool is paused.
    PoolPaused,
    /// The node is.
    NodePaused,
    /// Nodes failed.
    Halted(Vec<String>),
    /// Not in a window.
    Window(String),
    /// Somebody else has it.
    Held(String),
    /// It is a node of the control plane, and others of it are not Ready or under way.
    ControlPlane(Vec<String>),
    /// Canaries come first.
    Canary(Vec<String>),
    /// Nodes of its pool are down.
    Pool(Vec<String>, usize),
    /// Nodes of all pools are down.
    All(usize, usize),
    /// Nodes of its wave are under way.
    Wave(Vec<String>),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::PoolPaused => f.write_str("its pool is paused"),
            Why::NodePaused => f.write_str("it is paused"),
            Why::Halted(nodes) => write!(f, "the rollout halted: {} failed", few(nodes)),
            Why::Window(opens) => write!(f, "the window opens {opens}"),
            Why::Held(by) => f.write_str(by),
            Why::ControlPlane(nodes) => {
                write!(f, "it is of the control plane, and waits for {}", few(nodes))
            }
            Why::Canary(nodes) => write!(f, "it waits for the canary {}", few(nodes)),
            Why::Pool(nodes, 1) => {
                write!(f, "it waits for {}: one node of its pool may be down", few(nodes))
            }
            Why::Pool(nodes, most) => {
                write!(f, "it waits for {}: {most} nodes of its pool may be down", few(nodes))
            }
            Why::All(down, most) => {
                write!(
                    f,
                    "it waits for other pools: {down} nodes are down, and {most} of all may be"
                )
            }
            Why::Wave(nodes) => {
                write!(f, "it waits for {}, which get the change first", few(nodes))
            }
        }
    }
}

fn few(nodes: &[String]) -> String {
    listed(nodes, 3)
}
