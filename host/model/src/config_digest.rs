//! The digest of a node config, and of each of its entries.
//!
//! It covers the canonical form: configs that differ only in how they were
//! written have the same digest. Hashing is the most expensive part of a plan,
//! so each entry has a digest of its own, and what two configs have in common
//! as written is hashed once.

use crate::canonical::{self, Pair};
use crate::config::{File, NodeConfig, Source, Unit};
use crate::contents::{DecodeError, Decoder};
use crate::digest::{Contents, Digest, Fields};
use crate::problem::{Problem, Problems};

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
    let mut files = (Vec::with_capacity(old.files.len()), Vec::with_capacity(new.files.len()));
    let mut problems = (Vec::new(), Vec::new());
    let mut reader = Files::new(equal);
    for pair in canonical::join(old.files.iter(), new.files.iter(), |file| file.path.as_ref()) {
        let of = match &pair {
            Pair::Old(file) => (Some(reader.digest(file)), None),
            Pair::New(file) => (None, Some(reader.digest(file))),
            Pair::Both(old, new) => {
                let (old, new) = reader.digests(old, new);
                (Some(old), Some(new))
            }
        };
        let (before, after) = pair.sides();
        for (config, file, digest, digests, problems) in [
            (old, before, of.0, &mut files.0, &mut problems.0),
            (new, after, of.1, &mut files.1, &mut problems.1),
        ] {
            match file.zip(digest) {
                Some((_, Ok(digest))) => digests.push(digest),
                Some((file, Err(error))) => problems.push(undecodable(config, file, error)),
                None => {}
            }
        }
    }
    problems.0.append(&mut problems.1);
    if !problems.0.is_empty() {
        return Err(Problems(problems.0));
    }
    let mut units = (Vec::with_capacity(old.units.len()), Vec::with_capacity(new.units.len()));
    for pair in canonical::join(old.units.iter(), new.units.iter(), |unit| unit.name.as_ref()) {
        let (before, after) = match pair {
            Pair::Both(old, new) if canonical::units_look_equal(old, new) => {
                let digest = if equal == Shared::Read { Digest::NONE } else { unit_digest(old) };
                (Some(digest), Some(digest))
            }
            pair => {
                let (old, new) = pair.sides();
                (old.map(unit_digest), new.map(unit_digest))
            }
        };
        units.0.extend(before);
        units.1.extend(after);
    }
    Ok((whole(old, files.0, units.0), whole(new, files.1, units.1)))
}

/// The digest of a file: of its path and of everything that stands on the node.
pub(crate) fn file_digest(file: &File<'_>, decoder: &mut Decoder) -> Result<Digest, DecodeError> {
    let held = Held::read(&file.contents, decoder)?;
    let mut fields = Fields::default();
    Ok(digest_of(file, &held, &mut fields))
}

/// The digest of a unit with its drop-ins.
pub(crate) fn unit_digest(unit: &Unit<'_>) -> Digest {
    let text = |fields: &mut Fields, text: Option<&str>| {
        fields.number(text.is_some().into());
        fields.contents(&Contents::of(text.unwrap_or_default().as_bytes()));
    };
    let mut fields = Fields::new("unit");
    fields.field(unit.name.as_bytes());
    fields.number(unit.mask.into());
    fields.number(canonical::enabled(unit).map_or(0, |enabled| 1 + u64::from(enabled)));
    text(&mut fields, canonical::text(&unit.contents));
    for dropin in &unit.dropins {
        fields.field(dropin.name.as_bytes());
        text(&mut fields, canonical::text(&dropin.contents));
    }
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

fn digest_of(file: &File<'_>, held: &Held<'_>, fields: &mut Fields) -> Digest {
    fields.start("file");
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
    fields.finish()
}

/// Digests many files, one after another, with one set of buffers.
struct Files {
    decoder: Decoder,
    fields: Fields,
    equal: Shared,
}

type FileDigest = Result<Digest, DecodeError>;

impl Files {
    fn new(equal: Shared) -> Files {
        Files { decoder: Decoder::default(), fields: Fields::default(), equal }
    }

    fn digest(&mut self, file: &File<'_>) -> FileDigest {
        let held = Held::read(&file.contents, &mut self.decoder)?;
        Ok(digest_of(file, &held, &mut self.fields))
    }

    /// The digests of two files of the same path. What is equal as written is
    /// decoded and digested once.
    fn digests(&mut self, old: &File<'_>, new: &File<'_>) -> (FileDigest, FileDigest) {
        if canonical::files_look_equal(old, new) {
            let digest = match self.equal {
                Shared::Hashed => self.digest(old),
                Shared::Read => self.decoder.decode(&old.contents).map(|_| Digest::NONE),
            };
            return (digest, digest);
        }
        if old.contents != new.contents {
            return (self.digest(old), self.digest(new));
        }
        match Held::read(&old.contents, &mut self.decoder) {
            Ok(held) => {
                let mut of = |file| Ok(digest_of(file, &held, &mut self.fields));
                (of(old), of(new))
            }
            Err(error) => (Err(error), Err(error)),
        }
    }
}

/// The digest of a whole config, of those of its entries and all the rest.
fn whole(config: &NodeConfig<'_>, files: Vec<Digest>, units: Vec<Digest>) -> Digests {
    let mut all = Fields::new("tread config 2");
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
