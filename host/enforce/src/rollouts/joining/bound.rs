//! Whose a claim is, as the record has it.

use tread_model::digest::Digest;
use tread_model::joining::Mark;

/// The word for a node that is held, behind the fields of the first version of the format.
const HELD: &str = "held";
/// Before the mark of the pool that the node was in last.
const POOL: &str = "pool:";
/// Before the time since which it is gone.
const GONE: &str = "gone:";
/// Where nobody noted it.
const NOTHING: &str = "-";

/// Who has a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bound {
    /// The node's name: the claim is good for it alone, for good.
    pub(super) node: String,
    /// Which node of that name it was first, and the config that its machine was served.
    first: Option<(String, Mark)>,
    /// It has shown a good claim, and is held for another reason: it is given no config.
    pub(super) is_held: bool,
    /// The pool that the node was in last; before it was in one, that of its claim. None: nobody
    /// noted it yet.
    pub(super) pool: Option<Mark>,
    /// Since when there is no such node, in seconds since 1970, as far as somebody noted it.
    pub(super) gone: Option<u64>,
}

/// Where the node is now that has a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stands {
    /// In this pool.
    In(Mark),
    /// In none.
    Outside,
    /// There is no such node.
    Gone,
}

impl Bound {
    pub(super) fn new(node: &str, uid: &str, config: Mark, pool: Mark) -> Bound {
        let first = Some((short(uid), config));
        Bound { node: node.to_owned(), first, is_held: false, pool: Some(pool), gone: None }
    }

    #[must_use]
    pub(super) fn held(self, is_held: bool) -> Bound {
        Bound { is_held, ..self }
    }

    /// The same, of a node that stands there now.
    pub(super) fn standing(&self, stands: Stands, now: u64) -> Bound {
        match stands {
            Stands::In(pool) => Bound { pool: Some(pool), gone: None, ..self.clone() },
            Stands::Outside => Bound { gone: None, ..self.clone() },
            Stands::Gone => Bound { gone: Some(self.gone.unwrap_or(now)), ..self.clone() },
        }
    }

    pub(super) fn read(text: &str) -> Bound {
        let mut words = text.split(' ');
        let node = words.next().unwrap_or_default().to_owned();
        let (uid, config) = (words.next(), words.next());
        let first = uid.map(str::to_owned).zip(config.and_then(Mark::parse));
        let mut bound = Bound { node, first, is_held: false, pool: None, gone: None };
        for word in words {
            if word == HELD {
                bound.is_held = true;
            } else if let Some(pool) = word.strip_prefix(POOL) {
                bound.pool = Mark::parse(pool);
            } else if let Some(since) = word.strip_prefix(GONE) {
                bound.gone = since.parse().ok();
            }
        }
        bound
    }

    /// Whether it was the node with this UID first, which has not registered again since.
    pub(super) fn is_first(&self, uid: &str) -> bool {
        self.first.as_ref().is_some_and(|(first, _)| *first == short(uid))
    }

    /// The config that its machine was served.
    pub(super) fn config(&self) -> Option<Mark> {
        self.first.as_ref().map(|(_, config)| *config)
    }

    /// The config that this node's machine was served, where it has not registered again since and
    /// is not held.
    pub(super) fn served(&self, node: &str, uid: &str) -> Option<Mark> {
        let is_it = self.node == node && self.is_first(uid) && !self.is_held;
        self.config().filter(|_| is_it)
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.node)?;
        match &self.first {
            Some((uid, config)) => write!(f, " {uid} {config}")?,
            None if self.pool.is_none() && self.gone.is_none() => {}
            None => write!(f, " {NOTHING} {NOTHING}")?,
        }
        if self.is_held {
            write!(f, " {HELD}")?;
        }
        if let Some(pool) = self.pool {
            write!(f, " {POOL}{pool}")?;
        }
        match self.gone {
            Some(since) => write!(f, " {GONE}{since}"),
            None => Ok(()),
        }
    }
}

/// The first digits of a UID's digest: names and bytes are short.
fn short(uid: &str) -> String {
    Digest::of(uid.as_bytes()).hex().chars().take(16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_a_claim_is_is_read_as_it_was_written_by_versions_before_too() {
        let (config, pool) = (Mark::of_config("c"), Mark::of_pool("p"));
        let bound = Bound::new("node-1", "u", config, pool);
        let former = Bound { pool: None, ..bound.clone() };
        for it in [
            bound.clone(),
            bound.clone().held(true),
            bound.standing(Stands::Gone, 7),
            former.clone(),
            former.clone().held(true),
            former.standing(Stands::Gone, 7),
        ] {
            assert_eq!(Bound::read(&it.to_string()), it);
        }
        let by_hand = Bound::read("node-1");
        assert_eq!((by_hand.to_string().as_str(), by_hand.config()), ("node-1", None));
        let noted = by_hand.standing(Stands::In(pool), 7);
        assert_eq!(Bound::read(&noted.to_string()), noted);
        for odd in ["node-1 u x held", "node-1 u", "node-1 - - pool:x gone:y z"] {
            let read = Bound::read(odd);
            assert_eq!((read.node.as_str(), read.config(), read.pool), ("node-1", None, None));
        }
    }

    #[test]
    fn the_pool_that_a_node_was_in_last_stays_while_it_is_in_none_or_gone() {
        let [first, second] = ["1", "2"].map(Mark::of_pool);
        let bound = Bound::new("node-1", "u", Mark::of_config("c"), first);
        let moved = bound.standing(Stands::In(second), 10);
        assert_eq!((moved.pool, moved.gone), (Some(second), None));
        assert_eq!(moved.standing(Stands::Outside, 20), moved);
        let gone = moved.standing(Stands::Gone, 30);
        assert_eq!((gone.pool, gone.gone), (Some(second), Some(30)));
        assert_eq!(gone.standing(Stands::Gone, 40), gone, "since when it is gone stays");
        assert_eq!(gone.standing(Stands::Outside, 50), moved, "it registered again");
    }
}
