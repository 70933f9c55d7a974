//! Whether a node joins a pool by its claim, or is held, and why.

use super::claim::{Claim, Id, Invalid, Mark};
use super::labels::{Ambiguous, Determined, Labels};
use super::{EFFECT, Key, TAINT};
use crate::text::listed;
use std::fmt;
use std::time::Duration;

/// Clocks of API servers, which date claims and nodes, differ by less, in seconds. A claim is good for so
/// much longer than it lasts.
pub const SKEW: u64 = 300;

/// What a node that registered as joining says.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Its name.
    pub node: &'a str,
    /// When it registered, in seconds since 1970.
    pub registered: u64,
    /// The value of its taint.
    pub claim: &'a str,
    /// Its labels.
    pub labels: &'a Labels,
}

/// What is known of the pool of a claim.
#[derive(Debug, Clone)]
pub struct PoolFacts {
    /// Its name.
    pub name: String,
    /// The labels that its selector determines.
    pub labels: Result<Determined, Ambiguous>,
}

/// What was noted of a claim that a node has shown before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The node's name: the claim is good for it alone.
    pub node: String,
    /// The pool that it was in last. None: that of the claim.
    pub pool: Option<Mark>,
    /// The config that its machine was served.
    pub config: Option<Mark>,
}

/// What becomes of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// It joins a pool.
    Joins(Joins),
    /// It stays held, and so does the claim that it has shown: no other node joins by it.
    Held(Held, Option<Shown>),
}

/// A good claim of a node that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// Which one.
    pub claim: Id,
    /// The pool that it is good for.
    pub pool: Mark,
    /// The config that its machine was served.
    pub config: Mark,
}

/// A node that joins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joins {
    /// By which claim, which no other node joins by.
    pub claim: Id,
    /// The config that its machine was served.
    pub config: Mark,
    /// The pool.
    pub pool: String,
    /// Which one of that name.
    pub mark: Mark,
    /// The labels that it gets.
    pub labels: Labels,
}

/// Why a node is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// Its claim cannot be read.
    Unreadable,
    /// Nobody of tread signed it.
    Forged,
    /// It ended so many seconds before the node registered.
    Old(u64),
    /// It was made so many seconds after the node registered.
    Later(u64),
    /// Another node registered with it before.
    Used(String),
    /// Its pool is not there any more.
    PoolGone,
    /// The pool that it was in last is not there any more.
    LastGone,
    /// The selector of its pool does not say which labels it gets.
    NoLabels(String, Ambiguous),
    /// With these labels it would be somewhere else.
    Elsewhere(String, String),
    /// It would be in this pool, but selectors of these others cannot be read.
    Unplaced(String, Vec<String>),
}

impl Held {
    /// A word for it, as conditions have.
    pub fn word(&self) -> &'static str {
        match self {
            Held::Unreadable => "ClaimUnreadable",
            Held::Forged => "ClaimForged",
            Held::Old(_) => "ClaimOld",
            Held::Later(_) => "ClaimLater",
            Held::Used(_) => "ClaimUsed",
            Held::PoolGone | Held::LastGone => "PoolGone",
            Held::NoLabels(..) => "NoLabels",
            Held::Elsewhere(..) | Held::Unplaced(..) => "Elsewhere",
        }
    }

    /// Why and what to do, of a node.
    pub fn says(&self, node: &str) -> String {
        let to_do = match self {
            Held::NoLabels(pool, _) => format!(
                "Give it labels that this selects, and let it in then: kubectl label node {node} KEY=VALUE; \
                 tread pools admit {node} --pool {pool}; or else write a selector that says it"
            ),
            Held::Elsewhere(pool, _) => format!(
                "tread pools admit {node} --pool {pool} names the labels that are in the way: it joins by \
                 itself once they are taken away; or else mend the selectors of the pools"
            ),
            Held::Unplaced(pool, broken) => format!(
                "Mend {}, of which tread pools says why: it joins pool {pool} by itself then, and tread pools \
                 admit {node} --pool {pool} lets nobody in before",
                listed(broken, 5)
            ),
            _ => format!(
                "If you know where it belongs: tread pools admit {node} --pool POOL; or else remove the \
                 machine, and start another"
            ),
        };
        format!("it is held, and in no pool: {self}. {to_do}")
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Held::Unreadable => write!(f, "its taint {TAINT} holds no claim of tread's"),
            Held::Forged => f.write_str(
                "no key of this tread has signed its claim: it was made up, altered, is of another cluster, or \
                 was signed before the Secret with the keys was made anew",
            ),
            Held::Old(by) => write!(f, "its claim had ended {} before it registered", span(*by)),
            Held::Later(by) => write!(
                f,
                "its claim was made {} after it registered: its taint was added later, or clocks of API \
                 servers differ",
                span(*by)
            ),
            Held::Used(by) => {
                write!(f, "node {by} registered with its claim before, which is good for one node")
            }
            Held::PoolGone => f.write_str("the pool that its claim names is gone"),
            Held::LastGone => f.write_str("the pool that it was in last is gone"),
            Held::NoLabels(pool, why) => {
                write!(f, "nobody can say which labels a node of pool {pool} gets: {why}")
            }
            Held::Unplaced(_, broken) => write!(
                f,
                "{} or its spec.nodeSelector cannot be read, and until that is mended no node is placed in any pool",
                listed(broken, 5)
            ),
            Held::Elsewhere(pool, place) => {
                write!(f, "with the labels of pool {pool} it would be {place}")
            }
        }
    }
}

fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// The claim among a node's taints (key, value, effect): none where it is not joining.
pub fn claim_of<'a>(
    taints: impl IntoIterator<Item = (&'a str, Option<&'a str>, &'a str)>,
) -> Option<&'a str> {
    let own = taints.into_iter().filter(|(key, ..)| *key == TAINT);
    let mut all: Vec<&str> = own
        .map(|(_, value, effect)| if effect == EFFECT { value } else { None }.unwrap_or(""))
        .collect();
    all.dedup();
    match all.as_slice() {
        [] => None,
        [one] => Some(one),
        // Nobody says several things.
        _ => Some(""),
    }
}

/// Whether a node joins. `lasts` is how long claims do, `by` what was noted of a claim that was shown
/// before, `pool` which pool a mark names, and `place` where a node with labels belongs, or the pools
/// with selectors that cannot be read, for which no node is placed.
pub fn settle(
    facts: &Facts<'_>,
    keys: &[Key],
    lasts: Duration,
    by: impl FnOnce(Id) -> Option<Known>,
    pool: impl FnOnce(Mark) -> Option<PoolFacts>,
    place: impl FnOnce(&Labels) -> Result<Vec<String>, Vec<String>>,
) -> Settled {
    match join(facts, keys, lasts, by, pool, place) {
        Ok(joins) => Settled::Joins(joins),
        Err((held, shown)) => Settled::Held(held, shown),
    }
}

fn join(
    facts: &Facts<'_>,
    keys: &[Key],
    lasts: Duration,
    by: impl FnOnce(Id) -> Option<Known>,
    pool: impl FnOnce(Mark) -> Option<PoolFacts>,
    place: impl FnOnce(&Labels) -> Result<Vec<String>, Vec<String>>,
) -> Result<Joins, (Held, Option<Shown>)> {
    let (shown, has_moved) = good(facts, keys, lasts, by).map_err(|why| (why, None))?;
    // The claim stays this node's even while the node is held: another one that shows it read it
    // somewhere.
    let held = |why: Held| (why, Some(shown));
    let gone = || if has_moved { Held::LastGone } else { Held::PoolGone };
    let pool = pool(shown.pool).ok_or_else(|| held(gone()))?;
    let labels = pool.labels.map_err(|why| held(Held::NoLabels(pool.name.clone(), why)))?;
    let labels = labels.given(facts.labels);
    let mut all = facts.labels.clone();
    all.extend(labels.clone());
    let place = place(&all).map_err(|broken| held(Held::Unplaced(pool.name.clone(), broken)))?;
    if place != [pool.name.as_str()] {
        let place = match place.as_slice() {
            [] => "in no pool".to_owned(),
            pools => format!("in {}", listed(pools, 5)),
        };
        return Err(held(Held::Elsewhere(pool.name, place)));
    }
    let Shown { claim, config, pool: mark } = shown;
    Ok(Joins { claim, config, pool: pool.name, mark, labels })
}

/// What a node's claim is good for, and whether that is another pool than the one that the claim
/// names. If this node has shown the claim before, only what was noted then counts: the pool that
/// the node was in last, even if the key that signed the claim is gone.
fn good(
    facts: &Facts<'_>,
    keys: &[Key],
    lasts: Duration,
    by: impl FnOnce(Id) -> Option<Known>,
) -> Result<(Shown, bool), Held> {
    let says = Claim::unproved(facts.claim).ok_or(Held::Unreadable)?;
    let signed = Claim::read(facts.claim, keys).map_err(|invalid| match invalid {
        Invalid::Form => Held::Unreadable,
        Invalid::Signature => Held::Forged,
    });
    let known = by(says.id);
    let own = known.as_ref().filter(|known| known.node == facts.node);
    if let Some(Known { pool: Some(pool), config: Some(config), .. }) = own {
        let shown = Shown { claim: says.id, pool: *pool, config: *config };
        return Ok((shown, *pool != says.pool));
    }
    let claim = signed?;
    match known {
        Some(known) if known.node != facts.node => return Err(Held::Used(known.node)),
        // A machine that registers again has what it was served once.
        Some(_) => {}
        None => {
            let ended = claim.issued.saturating_add(lasts.as_secs()).saturating_add(SKEW);
            if facts.registered > ended {
                return Err(Held::Old(facts.registered - ended + SKEW));
            }
            let later = claim.issued.saturating_sub(facts.registered);
            if later > SKEW {
                return Err(Held::Later(later));
            }
        }
    }
    Ok((Shown { claim: claim.id, pool: claim.pool, config: claim.config }, false))
}
