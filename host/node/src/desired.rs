//! What a node config puts on the disk: the paths of its files, units, drop-ins, links
//! and keys, and what stands under each.

use crate::journal::Owned;
use crate::prepare::{Target, Wanted};
use crate::shadow::{self, Hash};
use crate::tree::Owner;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use tread_model::canonical;
use tread_model::config::{File, NodeConfig, Unit, User};
use tread_model::contents;

/// Where units are that an administrator brings.
pub const UNITS: &str = "/etc/systemd/system";
/// What a masked unit is a link to.
pub const MASK: &str = "/dev/null";

/// The user of whom a running node takes a password.
const CORE: &str = "core";

/// Where tread keeps all that is its own.
const OWN: &str = "/var/lib/tread";

/// What has to be known of the host.
pub trait Host {
    /// The number of a user, by name or in decimal.
    fn user(&self, path: &str, name: &str) -> Result<u32, String>;
    /// The number of a group, by name or in decimal.
    fn group(&self, path: &str, name: &str) -> Result<u32, String>;
    /// For each unit of a config that it says to be enabled, or not to be, or not to be masked: the
    /// links that stand for that, or why that cannot be. They are decided from the files as they will
    /// be: with `all_else` of the config in its place, and what has `gone` of the one before.
    fn enablement(
        &self,
        config: &NodeConfig<'_>,
        all_else: &Desired<'_>,
        gone: &[Target<'_>],
    ) -> BTreeMap<String, Result<Vec<Enabling>, String>>;
    /// The links that presets make or remove, for units that a config leaves open, each with its
    /// unit. `after` is all else that changes. What cannot be decided is left as it is.
    fn left_open(&self, after: &[Target<'_>], units: &[LeftOpen]) -> Vec<(String, Enabling)>;
    /// Whether an empty file stands under a path: Ignition makes one of a drop-in without contents.
    fn is_empty(&self, path: &str) -> bool;
    /// Where a user's SSH keys are.
    fn keys(&self, user: &str) -> Result<Keys, String>;
    /// Whether a user's password is in /etc/shadow; otherwise why not.
    fn password(&self, user: &str) -> Result<(), String>;
}

/// A unit of which a new config does not say whether it is enabled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOpen {
    /// The unit.
    pub unit: String,
    /// What the host's presets are asked for.
    pub why: Why,
}

/// What the host's presets are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The config brings it. If the host had no such unit, they decide.
    New,
    /// A config said it before, and none does any more: they decide.
    Lost,
    /// A config brought it before. If there is no such unit any more, nothing enables it.
    Gone,
}

/// A link that enables a unit, or masks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enabling {
    /// Where it is.
    pub path: String,
    /// Where it leads; nothing if it is not to be there.
    pub target: Option<String>,
}

/// Where a user's SSH keys are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// The file.
    pub path: String,
    /// Whose it is, and its folders where they have to be made.
    pub owner: Owner,
}

/// One path of a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece<'c> {
    /// What it is a part of: `file:/etc/foo`, `unit:a.service`, `ssh-keys:core`.
    pub of: String,
    /// What stands there; nothing where the config does not hold the contents of a file
    /// that only provisioning fetches.
    pub wanted: Option<Wanted<'c>>,
    /// Whose the folders are that have to be made for it.
    pub folders: Owned,
}

/// Everything that a config puts on the disk, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Desired<'c> {
    /// By path.
    pub pieces: BTreeMap<String, Piece<'c>>,
}

/// Why a config cannot be put on the disk, each with what it is about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{of}: {why}")]
pub struct Impossible {
    /// `file:/etc/foo`, `unit:a.service`, …
    pub of: String,
    /// Why, and the way out.
    pub why: String,
}

/// What a config puts on the disk, where nothing of another one has to go; everything that cannot be is
/// told together.
pub fn desired<'c>(
    config: &'c NodeConfig<'c>,
    host: &dyn Host,
) -> Result<Desired<'c>, Vec<Impossible>> {
    Unlinked::of(config, host).linked(host, &[])
}

/// What a config puts on the disk, but for the links that enable its units, and masks that are there:
/// these hang on all else.
pub struct Unlinked<'c> {
    config: &'c NodeConfig<'c>,
    all: Pieces<'c>,
}

impl<'c> Unlinked<'c> {
    /// By what the config says.
    pub fn of(config: &'c NodeConfig<'c>, host: &dyn Host) -> Unlinked<'c> {
        let mut all = Pieces { desired: Desired::default(), impossible: Vec::new() };
        for file in &config.files {
            all.file(file, host);
        }
        for unit in &config.units {
            all.unit(unit, host);
        }
        for user in config.users.iter().filter(|user| !user.ssh_keys.is_empty()) {
            all.keys(user, host);
        }
        // Only its password can change on a node that runs.
        for user in config.users.iter().filter(|user| user.name == CORE) {
            all.password(user, host);
        }
        Unlinked { config, all }
    }

    /// Whether a host can have it at all, whatever its links are to be.
    pub fn possible(self) -> Result<(), Vec<Impossible>> {
        match self.all.impossible.is_empty() {
            true => Ok(()),
            false => Err(self.all.impossible),
        }
    }

    /// Whether it has something for a path.
    pub fn has(&self, path: &str) -> bool {
        self.all.desired.pieces.contains_key(path)
    }

    /// Whether it says of a unit that it is to be enabled, or not to be.
    pub fn says(&self, unit: &str) -> bool {
        let unit = self.config.units.iter().find(|it| it.name == unit);
        unit.is_some_and(|unit| canonical::enabled(unit).is_some())
    }

    /// And the links; `gone` is what becomes of paths that another config had and this one has not.
    pub fn linked(
        self,
        host: &dyn Host,
        gone: &[Target<'_>],
    ) -> Result<Desired<'c>, Vec<Impossible>> {
        let Unlinked { config, mut all } = self;
        let mut enablement = host.enablement(config, &all.desired, gone);
        for unit in config.units.iter().filter(|unit| unit.mask != Some(true)) {
            if let Some(links) = enablement.remove(unit.name.as_ref()) {
                all.links(unit, links);
            }
        }
        match all.impossible.is_empty() {
            true => Ok(all.desired),
            false => Err(all.impossible),
        }
    }
}

impl<'c> Desired<'c> {
    /// What has to be put under a path so that it is as wanted here.
    pub fn target(&self, path: &str) -> Option<Target<'c>> {
        let piece = self.pieces.get(path)?;
        let wanted = piece.wanted.clone()?;
        Some(Target { path: path.to_owned(), wanted, folders: piece.folders })
    }
}

/// The units that tread brings: without them a boot could find half a config.
pub const OWN_UNITS: [&str; 5] = [
    "tread-boot.service",
    "tread-operation.service",
    "tread-resume.service",
    "tread-settle.service",
    "tread-watch.service",
];

/// The folders beside a unit in which systemd finds more of it.
const BESIDE: [&str; 4] = [".d", ".wants", ".requires", ".upholds"];

/// Which of them a path says something of, where systemd reads units. What stands in
/// `tread-.service.d` is of all units whose names begin with `tread-`.
fn own_unit(path: &str) -> Option<&'static str> {
    let is_of = |name: &str, unit: &str| {
        let beside = |whole: &str| {
            let rest = name.strip_prefix(whole);
            rest.is_some_and(|rest| BESIDE.contains(&rest))
        };
        let (stem, kind) = unit.rsplit_once('.').unwrap_or((unit, ""));
        let begins = stem.match_indices('-').filter_map(|(at, _)| stem.get(..=at));
        name == unit
            || beside(unit)
            || begins.map(|it| format!("{it}.{kind}")).any(|it| beside(&it))
    };
    let (_, below) = path.split_once("/systemd/system")?;
    let find = |name: &str| OWN_UNITS.into_iter().find(|unit| is_of(name, unit));
    below.split('/').find_map(find)
}

/// Why no config may put anything under a path; nothing if it may.
pub(crate) fn is_own(path: &str) -> Option<String> {
    if Path::new(path).starts_with(OWN) {
        return Some(format!(
            "tread itself keeps what it knows of the node in {OWN}; choose another path"
        ));
    }
    own_unit(path).map(|unit| {
        format!("{path} would change tread's own {unit}, which keeps the node whole; remove it")
    })
}

struct Pieces<'c> {
    desired: Desired<'c>,
    impossible: Vec<Impossible>,
}

impl<'c> Pieces<'c> {
    fn impossible(&mut self, of: &str, why: impl Into<String>) {
        self.impossible.push(Impossible { of: of.to_owned(), why: why.into() });
    }

    fn put(&mut self, path: String, piece: Piece<'c>) {
        if let Some(why) = is_own(&path) {
            return self.impossible(&piece.of, why);
        }
        match self.desired.pieces.get(&path) {
            Some(other) if other.wanted != piece.wanted => {
                let why = format!("{} puts something else under {path}; remove one", other.of);
                self.impossible(&piece.of.clone(), why);
            }
            Some(_) => {}
            None => drop(self.desired.pieces.insert(path, piece)),
        }
    }

    fn root_file(&mut self, path: String, of: &str, text: &'c str) {
        let owner = Owner { uid: 0, gid: 0, mode: 0o644 };
        self.root_piece(path, of, Wanted::File { bytes: Cow::Borrowed(text.as_bytes()), owner });
    }

    fn root_piece(&mut self, path: String, of: &str, wanted: Wanted<'c>) {
        let piece = Piece { of: of.to_owned(), wanted: Some(wanted), folders: Owned::Root };
        self.put(path, piece);
    }

    fn file(&mut self, file: &'c File<'c>, host: &dyn Host) {
        let of = format!("file:{}", file.path);
        let owner = host.user(&file.path, &file.user).and_then(|uid| {
            let gid = host.group(&file.path, &file.group)?;
            Ok(Owner { uid, gid, mode: canonical::mode(file) })
        });
        let owner = match owner {
            Ok(owner) => owner,
            Err(why) => return self.impossible(&of, why),
        };
        let wanted = match contents::decode(&file.contents) {
            Ok(bytes) => bytes.map(|bytes| Wanted::File { bytes, owner }),
            Err(error) => return self.impossible(&of, error.to_string()),
        };
        self.put(file.path.clone().into_owned(), Piece { of, wanted, folders: Owned::Root });
    }

    fn unit(&mut self, unit: &'c Unit<'c>, host: &dyn Host) {
        let of = format!("unit:{}", unit.name);
        for dropin in &unit.dropins {
            let path = format!("{UNITS}/{}.d/{}", unit.name, dropin.name);
            match canonical::text(&dropin.contents) {
                Some(text) => self.root_file(path, &of, text),
                // What the config has as a file stays, and an empty one says nothing of the unit.
                None if self.desired.pieces.contains_key(&path) || host.is_empty(&path) => {}
                None => self.root_piece(path, &of, Wanted::Absent),
            }
        }
        let path = format!("{UNITS}/{}", unit.name);
        if unit.mask == Some(true) {
            self.root_piece(path, &of, Wanted::Link { target: MASK.to_owned() });
        } else if let Some(text) = canonical::text(&unit.contents) {
            self.root_file(path, &of, text);
        }
    }

    fn links(&mut self, unit: &Unit<'_>, links: Result<Vec<Enabling>, String>) {
        let of = format!("unit:{}", unit.name);
        let links = match links {
            Ok(links) => links,
            Err(why) => return self.impossible(&of, why),
        };
        for Enabling { path, target } in links {
            let wanted = target.map_or(Wanted::Absent, |target| Wanted::Link { target });
            self.root_piece(path, &of, wanted);
        }
    }

    fn password(&mut self, user: &'c User<'c>, host: &dyn Host) {
        let Some(text) = user.password_hash.as_deref().filter(|text| !text.is_empty()) else {
            return;
        };
        let of = format!("password:{}", user.name);
        let hash = host.password(&user.name).and_then(|()| Hash::new(text));
        let hash = match hash {
            Ok(hash) => hash,
            Err(why) => return self.impossible(&of, why),
        };
        if let Some(other) = self.desired.pieces.get(shadow::FILE) {
            let why = format!("{} puts all of {} there; remove one", other.of, shadow::FILE);
            return self.impossible(&of, why);
        }
        let wanted = Some(Wanted::Password { user: user.name.clone().into_owned(), hash });
        let path = shadow::path_of(&user.name);
        self.put(path, Piece { of, wanted, folders: Owned::Root });
    }

    fn keys(&mut self, user: &'c User<'c>, host: &dyn Host) {
        let of = format!("ssh-keys:{}", user.name);
        let Keys { path, owner } = match host.keys(&user.name) {
            Ok(keys) => keys,
            Err(why) => return self.impossible(&of, why),
        };
        let mut text = user.ssh_keys.join("\n");
        text.push('\n');
        let bytes = Cow::Owned(text.into_bytes());
        let wanted = Some(Wanted::File { bytes, owner: Owner { mode: 0o600, ..owner } });
        let folders = Owned::User(Owner { mode: 0o700, ..owner });
        self.put(path, Piece { of, wanted, folders });
    }
}

#[cfg(test)]
mod tests;
