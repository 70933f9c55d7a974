//! Which pool a rendered config is of.

use super::configs::Configs;
use super::pool::{Pool, Pools};

/// How many digits end the name of a rendered config.
const DIGITS: usize = 32;

/// The pool that a config belongs to, and whether that is a guess: of a config that is gone only
/// the name is left to tell the pool.
pub fn owner<'p>(config: &str, configs: &Configs, pools: &'p Pools) -> Option<(&'p Pool, bool)> {
    if let Some(config) = configs.get(config) {
        let owner = config.owner.as_ref()?;
        // Another pool of that name is not the one that it was rendered for.
        let pool = pools.get(&owner.name).filter(|pool| pool.uid == owner.uid)?;
        return Some((pool, false));
    }
    let (pool, digits) = config.strip_prefix("rendered-")?.rsplit_once('-')?;
    let is_digit = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    if digits.len() != DIGITS || !digits.bytes().all(is_digit) {
        return None;
    }
    Some((pools.get(pool)?, true))
}
