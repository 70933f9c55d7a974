//! Why a node waits, in words.

use crate::text::and_more;
use std::fmt;

/// How many nodes are named.
const NAMED: usize = 3;

/// Nodes that are waited for. Thousands may wait for thousands: only the first are kept by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Few {
    named: Vec<String>,
    count: usize,
}

impl Few {
    pub(super) fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> Few {
        let mut few = Few::default();
        for name in names {
            if few.named.len() < NAMED {
                few.named.push(name.to_owned());
            }
            few.count += 1;
        }
        few
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }
}

impl fmt::Display for Few {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.named.join(", "), and_more(self.count, NAMED))
    }
}

/// Why a node waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The pool is paused.
    PoolPaused,
    /// The node is.
    NodePaused,
    /// Nodes failed.
    Halted(Few),
    /// Nodes went back from this config.
    WentBack(Few),
    /// A step of a plan without a boot failed on nodes, and this one's plan has no boot either.
    StepFailed(Few),
    /// Not in a window.
    Window(String),
    /// Somebody else has it.
    Held(String),
    /// It is a node of the control plane, and others of it are not Ready or under way.
    ControlPlane(Few),
    /// Canaries come first.
    Canary(Few),
    /// Nobody knows which nodes are the canaries.
    NoCanary(String),
    /// Nobody knows which nodes come last.
    NoOrder(String),
    /// Nodes of its pool are down.
    Pool(Few, usize),
    /// Nodes of all pools are down.
    All(usize, usize),
    /// Nodes of its wave are under way.
    Wave(Few),
}

impl Why {
    /// All words of [`Why::word`].
    pub const WORDS: [&'static str; 14] = [
        "paused",
        "node-paused",
        "halted",
        "went-back",
        "step-failed",
        "window",
        "held",
        "control-plane",
        "canary",
        "no-canary",
        "no-order",
        "room",
        "room-of-all",
        "wave",
    ];

    /// The same in a stable word.
    pub fn word(&self) -> &'static str {
        match self {
            Why::PoolPaused => "paused",
            Why::NodePaused => "node-paused",
            Why::Halted(_) => "halted",
            Why::WentBack(_) => "went-back",
            Why::StepFailed(_) => "step-failed",
            Why::Window(_) => "window",
            Why::Held(_) => "held",
            Why::ControlPlane(_) => "control-plane",
            Why::Canary(_) => "canary",
            Why::NoCanary(_) => "no-canary",
            Why::NoOrder(_) => "no-order",
            Why::Pool(..) => "room",
            Why::All(..) => "room-of-all",
            Why::Wave(_) => "wave",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::PoolPaused => f.write_str("its pool is paused"),
            Why::NodePaused => f.write_str("it is paused"),
            Why::Halted(nodes) => write!(f, "the rollout halted: {nodes} failed"),
            Why::WentBack(nodes) => write!(
                f,
                "{nodes} went back from this config: it goes on after tread rollout retry, or with \
                 another config"
            ),
            Why::StepFailed(nodes) => write!(
                f,
                "a step failed on {nodes}, and may fail here too: without a boot it goes on after \
                 tread rollout retry, or with another config"
            ),
            Why::Window(opens) => write!(f, "the window opens {opens}"),
            Why::Held(why) | Why::NoCanary(why) | Why::NoOrder(why) => f.write_str(why),
            Why::ControlPlane(nodes) => {
                write!(f, "it is of the control plane, and waits for {nodes}")
            }
            Why::Canary(nodes) => write!(f, "it waits for the canary {nodes}"),
            Why::Pool(nodes, 1) => {
                write!(f, "it waits for {nodes}: one node of its pool may be down")
            }
            Why::Pool(nodes, most) => {
                write!(f, "it waits for {nodes}: {most} nodes of its pool may be down")
            }
            Why::All(1, most) => {
                write!(f, "it waits: one node of all pools is down, and {most} may be")
            }
            Why::All(down, most) => {
                write!(f, "it waits: {down} nodes of all pools are down, and {most} may be")
            }
            Why::Wave(nodes) => {
                write!(f, "it waits for {nodes}, which get the change first")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_word_of_its_own() {
        let few = Few::default;
        let all = [
            Why::PoolPaused,
            Why::NodePaused,
            Why::Halted(few()),
            Why::WentBack(few()),
            Why::StepFailed(few()),
            Why::Window(String::new()),
            Why::Held(String::new()),
            Why::ControlPlane(few()),
            Why::Canary(few()),
            Why::NoCanary(String::new()),
            Why::NoOrder(String::new()),
            Why::Pool(few(), 1),
            Why::All(1, 1),
            Why::Wave(few()),
        ];
        assert_eq!(all.map(|why| why.word()), Why::WORDS);
    }
}
