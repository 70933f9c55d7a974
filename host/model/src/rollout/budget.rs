//! How many nodes may be down at a time.

use serde::Deserialize;

/// How many nodes of a pool may be unavailable: a number, or a part of them (`10%`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Text")]
pub enum MaxUnavailable {
    /// A number of nodes.
    Number(usize),
    /// A part of the nodes, in percent.
    Percent(usize),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Number(usize),
    Percent(String),
}

impl TryFrom<Text> for MaxUnavailable {
    type Error = String;

    fn try_from(text: Text) -> Result<MaxUnavailable, String> {
        match text {
            Text::Number(count) => Ok(MaxUnavailable::Number(count)),
            Text::Percent(text) => text
                .strip_suffix('%')
                .and_then(|count| count.parse().ok())
                .filter(|percent| *percent <= 100)
                .map(MaxUnavailable::Percent)
                .ok_or_else(|| format!("{text} is neither a number nor a percentage as 10%")),
        }
    }
}

impl std::str::FromStr for MaxUnavailable {
    type Err = String;

    fn from_str(text: &str) -> Result<MaxUnavailable, String> {
        match text.parse() {
            Ok(count) => Ok(MaxUnavailable::Number(count)),
            Err(_) => Text::Percent(text.to_owned()).try_into(),
        }
    }
}

impl MaxUnavailable {
    /// How many of so many nodes: rounded down, and at least one.
    pub fn of(self, nodes: usize) -> usize {
        match self {
            MaxUnavailable::Number(count) => count,
            MaxUnavailable::Percent(percent) => nodes.saturating_mul(percent) / 100,
        }
        .max(1)
    }
}

/// How many nodes of all pools may be unavailable: a tenth, at least one.
pub fn cap_of_all(nodes: usize) -> usize {
    (nodes / 10).max(1)
}

/// What is left for one pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// How many nodes of all pools may be down.
    pub all: usize,
    /// How many of other pools are down.
    pub down_elsewhere: usize,
}
