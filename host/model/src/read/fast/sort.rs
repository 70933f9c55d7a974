//! Sorts the lists of a node config that may be written in any order.

use crate::config::NodeConfig;
use crate::read::normal;

/// Sorts all such lists; `None` if something stands in one of them twice.
pub(super) fn sort(config: &mut NodeConfig<'_>) -> Option<()> {
    sort_by(&mut config.files, |file| &file.path)?;
    sort_by(&mut config.units, |unit| &unit.name)?;
    sort_by(&mut config.users, |user| &user.name)?;
    normal::sort(&mut config.extensions);
    Some(())
}

/// Sorts by key; `None` if two have the same one.
pub(super) fn sort_by<T>(entries: &mut [T], key: impl Fn(&T) -> &str) -> Option<()> {
    if !entries.is_sorted_by(|a, b| key(a) < key(b)) {
        entries.sort_unstable_by(|a, b| key(a).cmp(key(b)));
    }
    entries.is_sorted_by(|a, b| key(a) < key(b)).then_some(())
}
