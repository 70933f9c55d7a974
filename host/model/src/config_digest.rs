//! The digest of a node config, and what tells its entries apart.
//!
//! It covers the canonical form: configs that differ only in how they were
//! written have the same digest. Hashing is the most expensive part of a plan, so
//! entries are hashed in groups, many at a time, and the groups that two configs
//! have in common as written are hashed once.

mod groups;

use crate::canonical::{self, Pair};
use crate::config::{File, NodeConfig, Source, Unit};
use crate::contents::{DecodeError, Decoder};
use crate::digest::{Contents, Digest, Fields};
use crate::problem::{Problem, Problems};
use groups::{Grouped, Groups};

/// With what the digest of a config begins: another one where it is made in another way.
pub const VERSION: &str = "tread config 3";

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
/// price of both. Those of entries tell the entries of these two configs apart,
/// and are those of nothing where both are equal as written.
pub fn digests_of_pair(
    old: &NodeConfig<'_>,
    new: &NodeConfig<'_>,
) -> Result<(Digests, Digests), Problems> {
    of_pair(old, new, Digested::All)
}

/// As [`digests_of_pair`], where it only matters what differs: the digests of the
/// configs are those of nothing, too.
pub fn differences_of_pair(
    old: &NodeConfig<'_>,
    new: &NodeConfig<'_>,
) -> Result<(Digests, Digests), Problems> {
    of_pair(old, new, Digested::Differences)
}

/// What becomes of entries that are equal as written: they are read in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Digested {
    /// They are part of their config's digest.
    All,
    /// They are not hashed.
    Differences,
}

fn of_pair(
    old: &NodeConfig<'_>,
    new: &NodeConfig<'_>,
    digested: Digested,
) -> Result<(Digests, Digests), Problems> {
    let mut decoder = Decoder::default();
    let mut problems = (Vec::new(), Vec::new());
    let mut files = Groups::new(digested == Digested::All);
    for pair in canonical::join(old.files.iter(), new.files.iter(), |file| file.path.as_ref()) {
        let alike = matches!(pair, Pair::Both(old, new) if canonical::files_look_equal(old, new));
        let (before, after) = pair.sides();
        // What is held in the same words is decoded once.
        let same_contents =
            before.zip(after).is_some_and(|(old, new)| old.contents == new.contents);
        let name = before.or(after).map_or("", |file| file.path.as_ref());
        if same_contents || before.is_none() || after.is_none() {
            let Some(of) = before.or(after) else { continue };
            match Held::read(&of.contents, &mut decoder) {
                Ok(held) => files.add(
                    name,
                    alike,
                    before.map(|file| write_file(file, &held)),
                    after.map(|file| write_file(file, &held)),
                ),
                Err(error) => {
                    problems.0.extend(before.map(|file| undecodable(old, file, error)));
                    problems.1.extend(after.map(|file| undecodable(new, file, error)));
                }
            }
            continue;
        }
        if let Some(file) = before {
            match Held::read(&file.contents, &mut decoder) {
                Ok(held) => files.add_old(name, write_file(file, &held)),
                Err(error) => problems.0.push(undecodable(old, file, error)),
            }
        }
        if let Some(file) = after {
            match Held::read(&file.contents, &mut decoder) {
                Ok(held) => files.add_new(name, write_file(file, &held)),
                Err(error) => problems.1.push(undecodable(new, file, error)),
            }
        }
    }
    problems.0.append(&mut problems.1);
    if !problems.0.is_empty() {
        return Err(Problems(problems.0));
    }
    let mut units = Groups::new(digested == Digested::All);
    for pair in canonical::join(old.units.iter(), new.units.iter(), |unit| unit.name.as_ref()) {
        let alike = matches!(pair, Pair::Both(old, new) if canonical::units_look_equal(old, new));
        let (before, after) = pair.sides();
        let name = before.or(after).map_or("", |unit| unit.name.as_ref());
        units.add(name, alike, before.map(write_unit), after.map(write_unit));
    }
    let ((old_files, new_files), (old_units, new_units)) = (files.finish(), units.finish());
    Ok((whole(old, old_files, old_units), whole(new, new_files, new_units)))
}

/// The digest of a file: of its path and of everything that stands on the node.
pub(crate) fn file_digest(file: &File<'_>, decoder: &mut Decoder) -> Result<Digest, DecodeError> {
    let held = Held::read(&file.contents, decoder)?;
    let mut fields = Fields::default();
    write_file(file, &held)(&mut fields);
    Ok(fields.finish())
}

/// The digest of a unit with its drop-ins.
pub(crate) fn unit_digest(unit: &Unit<'_>) -> Digest {
    let mut fields = Fields::default();
    write_unit(unit)(&mut fields);
    fields.finish()
}

/// What a file holds.
enum Held<'d> {
    /// Known bytes.
    Here(Contents<'d>),
    /// Fetched from elsewhere: all that is known is from where.
    Elsewhere,
}

impl Held<'_> {
    fn read<'d>(source: &'d Source<'_>, decoder: &'d mut Decoder) -> Result<Held<'d>, DecodeError> {
        let bytes = decoder.decode(source)?;
        Ok(bytes.map_or(Held::Elsewhere, |bytes| Held::Here(Contents::of(bytes))))
    }
}

fn write_file<'f>(file: &'f File<'_>, held: &'f Held<'_>) -> impl FnOnce(&mut Fields) + use<'f> {
    move |fields| {
        fields.field(b"file");
        fields.field(file.path.as_bytes());
        fields.number(canonical::mode(file).into());
        fields.field(file.user.as_bytes());
        fields.field(file.group.as_bytes());
        fields.number(file.appends.into());
        match held {
            Held::Here(contents) => {
                fields.number(1);
                fields.contents(contents);
            }
            Held::Elsewhere => {
                fields.number(2 + u64::from(file.contents.gzip));
                fields.field(file.contents.url.as_deref().unwrap_or_default().as_bytes());
            }
        }
    }
}

fn write_unit<'u>(unit: &'u Unit<'_>) -> impl FnOnce(&mut Fields) + use<'u> {
    let text = |fields: &mut Fields, text: Option<&str>| {
        fields.number(text.is_some().into());
        fields.contents(&Contents::of(text.unwrap_or_default().as_bytes()));
    };
    move |fields| {
        fields.field(b"unit");
        fields.field(unit.name.as_bytes());
        for said in [canonical::mask(unit), canonical::enabled(unit)] {
            fields.number(said.map_or(0, |said| 1 + u64::from(said)));
        }
        text(fields, canonical::text(&unit.contents));
        fields.number(unit.dropins.len() as u64);
        for dropin in &unit.dropins {
            fields.field(dropin.name.as_bytes());
            text(fields, canonical::text(&dropin.contents));
        }
    }
}

/// The digest of a whole config, of those of its entries and all the rest.
fn whole(config: &NodeConfig<'_>, files: Grouped, units: Grouped) -> Digests {
    let mut all = Fields::new(VERSION);
    for entries in [&files, &units] {
        all.number(entries.groups.len() as u64);
        entries.groups.iter().for_each(|group| all.digest(group));
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
    Digests { config: all.finish(), files: files.entries, units: units.entries }
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
        ..Problem::default()
    }
}
