//! What a TOML document says, in pieces of its text.

use crate::{Map, Table, Value, words};
use std::borrow::Cow;
use std::cmp::Ordering;

pub(crate) const TWICE: &str = "this key is defined twice";

type Result<T> = std::result::Result<T, &'static str>;

/// A value of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item<'a> {
    /// A string.
    Text(Cow<'a, str>),
    /// A truth value.
    Bool(bool),
    /// A number, a date or a time, as it is written.
    Other(&'a str),
    /// An array.
    List(Vec<Item<'a>>),
    /// A table, with or without a header.
    Table(Section<'a>),
    /// `[[header]]`, as often as it is there.
    Tables(Vec<Section<'a>>),
}

/// A table. It remembers how it came to be, which decides who may add to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section<'a> {
    /// By length, then by text: the order that is found in the fewest steps.
    entries: Vec<(Cow<'a, str>, Item<'a>)>,
    made: Made,
    /// Where its header starts, if it has one of its own.
    pub(crate) start: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Made {
    /// As the parent of a header; a header may still define it.
    Implied,
    /// By a header of its own, as the root is without one.
    Whole,
    /// By a dotted key; more dotted keys may add to it.
    Dotted,
    /// In braces: nothing can be added.
    Inline,
}

impl<'a> Section<'a> {
    pub(crate) fn new(made: Made, start: usize) -> Section<'a> {
        Section { entries: Vec::new(), made, start }
    }

    /// The keys and what belongs to them, in no order that means something.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Item<'a>)> {
        self.entries.iter().map(|(key, item)| (key.as_ref(), item))
    }

    /// What belongs to `key`.
    pub fn get(&self, key: &str) -> Option<&Item<'a>> {
        let at = self.find(key).ok()?;
        self.entries.get(at).map(|(_, item)| item)
    }

    #[cfg(test)]
    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Item<'a>> {
        let at = self.find(key).ok()?;
        self.entries.get_mut(at).map(|(_, item)| item)
    }

    #[cfg(test)]
    pub(crate) fn remove(&mut self, key: &str) {
        self.entries.retain(|(other, _)| other != key);
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The only thing in it, if that is `[[key]]`.
    pub(crate) fn into_only(mut self, key: &str) -> Option<Vec<Section<'a>>> {
        match (self.entries.pop(), self.entries.is_empty()) {
            (Some((only, Item::Tables(all))), true) if words::equal(&only, key) => Some(all),
            _ => None,
        }
    }

    fn find(&self, key: &str) -> std::result::Result<usize, usize> {
        self.entries.binary_search_by(|(other, _)| match other.len().cmp(&key.len()) {
            Ordering::Equal => words::order(other, key),
            order => order,
        })
    }

    fn get_or_add(
        &mut self,
        key: Cow<'a, str>,
        item: impl FnOnce() -> Item<'a>,
    ) -> Result<&mut Item<'a>> {
        let at = match self.find(&key) {
            Ok(at) => at,
            Err(at) => {
                self.entries.insert(at, (key, item()));
                at
            }
        };
        self.entries.get_mut(at).map(|(_, item)| item).ok_or(TWICE)
    }

    /// The table that a header on the way to another one names.
    pub(crate) fn pass(&mut self, key: Cow<'a, str>) -> Result<&mut Section<'a>> {
        let new = || Item::Table(Section::new(Made::Implied, 0));
        match self.get_or_add(key, new)? {
            Item::Table(section) if section.made != Made::Inline => Ok(section),
            Item::Tables(all) => all.last_mut().ok_or(TWICE),
            _ => Err(TWICE),
        }
    }

    /// The table that `[header]` defines.
    pub(crate) fn define(&mut self, key: Cow<'a, str>, start: usize) -> Result<&mut Section<'a>> {
        let new = || Item::Table(Section::new(Made::Implied, 0));
        match self.get_or_add(key, new)? {
            Item::Table(section) if section.made == Made::Implied => {
                (section.made, section.start) = (Made::Whole, start);
                Ok(section)
            }
            _ => Err(TWICE),
        }
    }

    /// The table that `[[header]]` adds.
    pub(crate) fn append(&mut self, key: Cow<'a, str>, start: usize) -> Result<&mut Section<'a>> {
        let Item::Tables(all) = self.get_or_add(key, || Item::Tables(Vec::new()))? else {
            return Err(TWICE);
        };
        all.push(Section::new(Made::Whole, start));
        all.last_mut().ok_or(TWICE)
    }

    /// The table that a key with a dot behind it names.
    pub(crate) fn dotted(&mut self, key: Cow<'a, str>) -> Result<&mut Section<'a>> {
        let new = || Item::Table(Section::new(Made::Dotted, 0));
        match self.get_or_add(key, new)? {
            Item::Table(section) if section.made == Made::Dotted => Ok(section),
            _ => Err(TWICE),
        }
    }

    /// Sets a key.
    pub(crate) fn set(&mut self, key: Cow<'a, str>, item: Item<'a>) -> Result<()> {
        match self.find(&key) {
            Ok(_) => Err(TWICE),
            Err(at) => {
                self.entries.insert(at, (key, item));
                Ok(())
            }
        }
    }

    /// The same as a tree that owns its texts.
    pub(crate) fn into_table(self) -> Table {
        let mut table = Map::new();
        for (key, item) in self.entries {
            table.insert(key.into_owned(), item.into_value());
        }
        table
    }
}

impl<'a> Item<'a> {
    /// The string, if this is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Item::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The table, if this is one.
    pub fn as_table(&self) -> Option<&Section<'a>> {
        match self {
            Item::Table(section) => Some(section),
            _ => None,
        }
    }

    fn into_value(self) -> Value {
        match self {
            Item::Text(text) => Value::Text(text.into_owned()),
            Item::Bool(truth) => Value::Bool(truth),
            Item::Other(token) => Value::Other(token.replace('_', "")),
            Item::List(items) => Value::List(items.into_iter().map(Item::into_value).collect()),
            Item::Table(section) => Value::Table(section.into_table()),
            Item::Tables(all) => {
                Value::List(all.into_iter().map(|one| Value::Table(one.into_table())).collect())
            }
        }
    }
}
