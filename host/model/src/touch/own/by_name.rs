//! What is kept by the names of units, most of which are borrowed from the configs.

use std::borrow::Cow;

/// Values with the names of units, in the order in which they came.
pub(super) type Named<'c, T> = Vec<(Cow<'c, str>, T)>;

/// Values by the names of units.
#[derive(Debug)]
pub(super) struct ByName<'c, T>(Named<'c, T>);

impl<'c, T> ByName<'c, T> {
    /// Of all that there is: it is sorted once, and looked up after that.
    pub(super) fn of(mut all: Named<'c, T>) -> ByName<'c, T> {
        // What came first stays first among those of the same name.
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        ByName(all)
    }

    /// All of one name.
    pub(super) fn get(&self, name: &str) -> impl Iterator<Item = &T> {
        let first = self.0.partition_point(|(other, _)| **other < *name);
        let of_name = self.0.get(first..).unwrap_or_default().iter();
        of_name.take_while(move |(other, _)| *other == name).map(|(_, value)| value)
    }

    /// The names, each once.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.chunk_by(|(one, _), (other, _)| one == other).filter_map(|same| {
            let (name, _) = same.first()?;
            Some(name.as_ref())
        })
    }
}

impl<T> Default for ByName<'_, T> {
    fn default() -> Self {
        ByName(Vec::new())
    }
}
