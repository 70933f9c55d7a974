//! The digest of a node config, and of each of its entries.
//!
//! It covers the canonical form: configs that differ only in how they were
//! written have the same digest. Hashing is the most expensive part of a plan,
//! so each entry has a digest of its own, and what two configs have in common
//! as written is hashed once.

use crate::canonical::{self, Pair};
use crate::config::{File, NodeConfig, Unit};
use crate::contents::{DecodeError, Decoder};
use crate::digest::lanes::{Lanes, Message};
use crate::digest::{Digest, Fields};
use crate::problem::{Problem, Problems};
use std::convert::Infallible;

/// The digests of a node config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digests {
    /// Of all of it.
    pub config: Digest,
    /// Of each file, in order.
    pub(crate) files: Vec<Digest>,
    /// Of each unit, in order.
    pub(crate) units: Vec<Digest>,
}

/// The digests of one config. Contents that cannot be decoded are problems, all
/// of them together.
pub fn digests(config: &NodeConfig<'_>) -> Result<Digests, Problems> {
    let empty = NodeConfig::default();
    Ok(digests_of_pair(config, &empty)?.0)
}

/// The digests of two configs, as [`digests`] gives them, at less than the
/// price of both.
pub fn digests_of_pair(
    old: &NodeConfig<'_>,
    new: &NodeConfig<'_>,
) -> Result<(Digests, Digests), Problems> {
    of_pair(old, new, Shared::Hashed)
}

/// As [`digests_of_pair`], where it only matters what differs: what is equal as
/// written is read, and not hashed. So the digests tell the entries of the two
/// configs apart, and are those of nothing.
pub fn differences_of_pair(
    old: &NodeConfig<'_>,
    new: &NodeConfig<'_>,
) -> Result<(Digests, Digests), Problems> {
    of_pair(old, new, Shared::Read)
}

/// What becomes of entries that are equal as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shared {
    /// They share a digest.
    Hashed,
    /// They have none.
    Read,
}

fn of_pair(
    old: &NodeConfig<'_>,
    new: &NodeConfig<'_>,
    equal: Shared,
) -> Result<(Digests, Digests), Problems> {
    let mut files = Entries::new(old.files.len(), new.files.len(), equal);
    let mut decoder = Decoder::default();
    let mut problems = (Vec::new(), Vec::new());
    for pair in canonical::join(old.files.iter(), new.files.iter(), |file| file.path.as_ref()) {
        let same = |old, new| canonical::files_look_equal(old, new);
        files.add(
            pair,
            same,
            |file, message| write_file(file, &mut decoder, message),
            |file, error| {
                let (config, problems) = match file {
                    Owner::Old(_) => (old, &mut problems.0),
                    Owner::New(_) => (new, &mut problems.1),
                };
                problems.push(undecodable(config, file.entry(), error));
            },
        );
    }
    let mut units = Entries::new(old.units.len(), new.units.len(), equal);
    for pair in canonical::join(old.units.iter(), new.units.iter(), |unit| unit.name.as_ref()) {
        let same = |old, new| canonical::units_look_equal(old, new);
        units.add(pair, same, write_unit, |_, never: Infallible| match never {});
    }
    problems.0.append(&mut problems.1);
    if !problems.0.is_empty() {
        return Err(Problems(problems.0));
    }
    let ((old_files, new_files), (old_units, new_units)) = (files.finish(), units.finish());
    Ok((whole(old, old_files, old_units), whole(new, new_files, new_units)))
}

/// The digest of a file: of its path and of everything that stands on the node.
pub(crate) fn file_digest(file: &File<'_>, decoder: &mut Decoder) -> Result<Digest, DecodeError> {
    let mut message = Message::default();
    write_file(file, decoder, &mut message)?;
    Ok(message.digest())
}

/// The digest of a unit with its drop-ins.
pub(crate) fn unit_digest(unit: &Unit<'_>) -> Digest {
    let mut message = Message::default();
    match write_unit(unit, &mut message) {
        Ok(()) => message.digest(),
        Err(never) => match never {},
    }
}

fn write_file(
    file: &File<'_>,
    decoder: &mut Decoder,
    message: &mut Message,
) -> Result<(), DecodeError> {
    message.start("file");
    message.field(file.path.as_bytes());
    message.number(canonical::mode(file).into());
    message.field(file.user.as_bytes());
    message.field(file.group.as_bytes());
    message.number(file.appends.into());
    match decoder.decode(&file.contents)? {
        Some(bytes) => {
            message.number(1);
            message.field(bytes);
        }
        // Fetched from elsewhere: all that is known is from where.
        None => {
            message.number(2 + u64::from(file.contents.gzip));
            message.field(file.contents.url.as_deref().unwrap_or_default().as_bytes());
        }
    }
    Ok(())
}

fn write_unit(unit: &Unit<'_>, message: &mut Message) -> Result<(), Infallible> {
    let text = |message: &mut Message, text: Option<&str>| {
        message.number(text.is_some().into());
        message.field(text.unwrap_or_default().as_bytes());
    };
    message.start("unit");
    message.field(unit.name.as_bytes());
    message.number(unit.mask.into());
    message.number(canonical::enabled(unit).map_or(0, |enabled| 1 + u64::from(enabled)));
    text(message, canonical::text(&unit.contents));
    for dropin in &unit.dropins {
        message.field(dropin.name.as_bytes());
        text(message, canonical::text(&dropin.contents));
    }
    Ok(())
}

/// An entry, and the side that it is of.
enum Owner<E> {
    Old(E),
    New(E),
}

impl<E: Copy> Owner<E> {
    fn entry(&self) -> E {
        match self {
            Owner::Old(entry) | Owner::New(entry) => *entry,
        }
    }
}

/// The digests of one kind of entry on both sides, in the making.
struct Entries {
    lanes: Lanes<Slot>,
    old: Vec<Digest>,
    new: Vec<Digest>,
    /// How many of each side were added.
    added: (usize, usize),
    equal: Shared,
    /// What is read and not hashed.
    read: Message,
}

/// Where a digest belongs, by index.
struct Slot {
    old: Option<usize>,
    new: Option<usize>,
}

impl Entries {
    fn new(old: usize, new: usize, equal: Shared) -> Entries {
        let none = Digest([0; 32]);
        Entries {
            lanes: Lanes::new(),
            old: vec![none; old],
            new: vec![none; new],
            added: (0, 0),
            equal,
            read: Message::default(),
        }
    }

    /// Takes the next entry of one side, or of both; `same` says whether both
    /// are equal as written, and share a digest.
    fn add<'e, E, Error: Clone>(
        &mut self,
        pair: Pair<&'e E>,
        same: impl Fn(&'e E, &'e E) -> bool,
        mut write: impl FnMut(&'e E, &mut Message) -> Result<(), Error>,
        mut failed: impl FnMut(Owner<&'e E>, Error),
    ) {
        let (old, new) = pair.sides();
        let (old_at, new_at) = self.added;
        self.added = (old_at + usize::from(old.is_some()), new_at + usize::from(new.is_some()));
        let shared = old.zip(new).is_some_and(|(old, new)| same(old, new));
        let Entries { lanes, old: old_digests, new: new_digests, equal, read, .. } = self;
        let mut done = |slot, digest| place(old_digests, new_digests, slot, digest);
        if let Some(entry) = old {
            let slot = Slot { old: Some(old_at), new: shared.then_some(new_at) };
            let written = match shared && *equal == Shared::Read {
                true => write(entry, read),
                false => lanes.add(slot, |message| write(entry, message), &mut done),
            };
            if let Err(error) = written {
                if let Some(entry) = new.filter(|_| shared) {
                    failed(Owner::New(entry), error.clone());
                }
                failed(Owner::Old(entry), error);
            }
        }
        if let Some(entry) = new
            && !shared
        {
            let slot = Slot { old: None, new: Some(new_at) };
            if let Err(error) = lanes.add(slot, |message| write(entry, message), &mut done) {
                failed(Owner::New(entry), error);
            }
        }
    }

    fn finish(self) -> (Vec<Digest>, Vec<Digest>) {
        let Entries { lanes, mut old, mut new, .. } = self;
        lanes.finish(&mut |slot, digest| place(&mut old, &mut new, slot, digest));
        (old, new)
    }
}

fn place(old: &mut [Digest], new: &mut [Digest], slot: Slot, digest: Digest) {
    for (digests, at) in [(old, slot.old), (new, slot.new)] {
        if let Some(place) = at.and_then(|at| digests.get_mut(at)) {
            *place = digest;
        }
    }
}

/// The digest of a whole config, of those of its entries and all the rest.
fn whole(config: &NodeConfig<'_>, files: Vec<Digest>, units: Vec<Digest>) -> Digests {
    let mut all = Fields::new("tread config 1");
    for entries in [&files, &units] {
        all.number(entries.len() as u64);
        entries.iter().for_each(|entry| all.digest(entry));
    }
    let users: Vec<_> = canonical::users(config).collect();
    all.number(users.len() as u64);
    for user in users {
        all.field(user.name.as_bytes());
        list(&mut all, &user.ssh_keys);
        all.field(canonical::password(user).map_or("", |hash| hash.as_ref()).as_bytes());
        all.field(user.rest.as_bytes());
    }
    list(&mut all, &config.kernel_arguments);
    all.field(config.kernel_type.as_str().as_bytes());
    all.field(canonical::os_image(&config.os_image).as_bytes());
    list(&mut all, &config.extensions);
    all.number(config.fips.into());
    all.number(config.fixed.len() as u64);
    for fixed in &config.fixed {
        all.field(fixed.id.as_bytes());
        all.field(fixed.field.as_bytes());
        all.field(fixed.value.as_bytes());
    }
    Digests { config: all.finish(), files, units }
}

fn list(fields: &mut Fields, list: &[impl AsRef<str>]) {
    fields.number(list.len() as u64);
    list.iter().for_each(|item| fields.field(item.as_ref().as_bytes()));
}

/// The problem of a file whose contents cannot be decoded.
pub(crate) fn undecodable(config: &NodeConfig<'_>, file: &File<'_>, error: DecodeError) -> Problem {
    let (index, path) = (file.origin.index, &file.path);
    let place = config.place(file.origin);
    Problem {
        file: place.map_or(config.name.as_ref(), |place| &place.file).to_owned(),
        document: place.map(|place| place.document.clone()).unwrap_or_default(),
        path: config
            .field(file.origin, &format!("storage.files[{index}] ({path}).contents.source")),
        message: error.to_string(),
    }
}
