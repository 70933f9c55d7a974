//! A node config: everything that MachineConfigs say of a node, in one form
//! whatever the way it was written.
//!
//! Contents stay as they were read (a borrowed data URL) until somebody needs
//! the bytes: most entries of two configs are equal as written, and are never
//! decoded twice.

use std::borrow::Cow;
use std::fmt;

/// Everything that is set on a node.
///
/// Invariants, kept by whoever builds one: `files` is sorted by path, `units`
/// and `users` by name, `fixed` by field, each without duplicates;
/// `extensions` is sorted without duplicates.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeConfig<'a> {
    /// What a person calls it: the names of its MachineConfigs.
    pub name: Cow<'a, str>,
    /// Files, by path.
    pub files: Vec<File<'a>>,
    /// systemd units, by name.
    pub units: Vec<Unit<'a>>,
    /// Users, by name.
    pub users: Vec<User<'a>>,
    /// One token each, quotes resolved, in order.
    pub kernel_arguments: Vec<Cow<'a, str>>,
    /// The kernel that is booted.
    pub kernel_type: KernelType,
    /// The OS image; empty if none is set.
    pub os_image: Cow<'a, str>,
    /// Sorted, without duplicates.
    pub extensions: Vec<Cow<'a, str>>,
    /// Whether the node runs in FIPS mode.
    pub fips: bool,
    /// What only provisioning can set, and a running node can never change.
    pub fixed: Vec<Fixed>,
    /// What Ignition's parser rejects of the documents that it was read from.
    pub faults: Vec<Fault>,
    /// What an admin should know of these documents, in sentences.
    pub notes: Vec<String>,
    /// The documents that it was read from, as [`Origin::document`] counts them.
    pub places: Vec<Place>,
}

/// What can be read, and compared, but reaches no node: Ignition's parser rejects it,
/// or nobody can tell what nodes would get.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The id of the change that it is refused as: `file:/etc/foo`, …
    pub id: String,
    /// The path of the field: `spec.config.storage.files[3].path`.
    pub field: String,
    /// Why, and the way out.
    pub reason: String,
    /// Whether Ignition's parser rejects it, in every release of OpenShift.
    pub by_parser: bool,
}

/// Where a document stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// As [`crate::problem::Problem::file`].
    pub file: String,
    /// As [`crate::problem::Problem::document`].
    pub document: String,
    /// The path of the Ignition config in it: `spec.config`, or empty.
    pub config: &'static str,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if !self.document.is_empty() {
            write!(f, ", document {}", self.document)?;
        }
        Ok(())
    }
}

impl NodeConfig<'_> {
    /// The document in which an entry was written; none for one that tread
    /// rendered itself.
    pub fn place(&self, origin: Origin) -> Option<&Place> {
        self.places.get(usize::try_from(origin.document).ok()?)
    }

    /// The path of a field in the document in which an entry was written.
    pub fn field(&self, origin: Origin, field: &str) -> String {
        match self.place(origin).map_or("spec.config", |place| place.config) {
            "" => field.to_owned(),
            config => format!("{config}.{field}"),
        }
    }
}

/// A file to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct File<'a> {
    /// The absolute path, cleaned.
    pub path: Cow<'a, str>,
    /// Where its bytes come from.
    pub contents: Source<'a>,
    /// As set; `None` means the default, 0o644.
    pub mode: Option<u32>,
    /// A name, or a number in decimal; `root` unless set (0 is `root`).
    pub user: Cow<'a, str>,
    /// As `user`.
    pub group: Cow<'a, str>,
    /// Whether it has `append`, which a running node cannot redo.
    pub appends: bool,
    /// It does not say where its contents come from, and not that nothing is written
    /// over: OpenShift's operator makes of that what Ignition rejects.
    pub needs_source: bool,
    /// The JSON text of the entry, where it was read from JSON and nothing was
    /// merged into it; empty otherwise. Entries with the same text are equal,
    /// and the reader lets equal entries of two sides share one slice.
    pub raw: &'a [u8],
    /// Where it was written, for errors.
    pub origin: Origin,
}

/// Where the bytes of a file come from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Source<'a> {
    /// A data URL; `None`: the file is empty.
    pub url: Option<Cow<'a, str>>,
    /// Whether the bytes of the URL are compressed.
    pub gzip: bool,
}

/// A systemd unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit<'a> {
    /// `crio.service`
    pub name: Cow<'a, str>,
    /// The unit file, if the config brings one.
    pub contents: Option<Cow<'a, str>>,
    /// None: left to the system's presets.
    pub enabled: Option<bool>,
    /// Whether it is linked to `/dev/null`; `None`: as it was.
    pub mask: Option<bool>,
    /// In order of name, without duplicates.
    pub dropins: Vec<Dropin<'a>>,
    /// As [`File::raw`].
    pub raw: &'a [u8],
    /// Where it was written, for errors.
    pub origin: Origin,
}

/// A piece of a unit in its `.d` directory.
#[derive(Debug, Clone, PartialEq)]
pub struct Dropin<'a> {
    /// `10-limits.conf`
    pub name: Cow<'a, str>,
    /// What is in it.
    pub contents: Option<Cow<'a, str>>,
}

/// A user of the node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct User<'a> {
    /// `core`
    pub name: Cow<'a, str>,
    /// Sorted as written, without duplicates.
    pub ssh_keys: Vec<Cow<'a, str>>,
    /// The password's hash.
    pub password_hash: Option<Cow<'a, str>>,
    /// Everything else that is set (uid, groups, shell, …), as canonical JSON,
    /// empty if nothing is: a running node cannot change it.
    pub rest: String,
    /// Where it was written, for errors.
    pub origin: Origin,
}

/// The kernel that is booted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KernelType {
    /// The ordinary one.
    #[default]
    Default,
    /// `realtime`
    Realtime,
    /// `64k-pages`
    Pages64k,
}

impl KernelType {
    /// As MachineConfigs write it.
    pub fn as_str(self) -> &'static str {
        match self {
            KernelType::Default => "default",
            KernelType::Realtime => "realtime",
            KernelType::Pages64k => "64k-pages",
        }
    }
}

/// A part of a config that takes effect only when a node is provisioned.
#[derive(Debug, Clone, PartialEq)]
pub struct Fixed {
    /// The id of its change: `storage:disks`, `storage:luks`,
    /// `storage:directories`, `users:groups`, `ignition:proxy`, …
    pub id: String,
    /// The path of the field: `spec.config.storage.disks`.
    pub field: String,
    /// What is set, as canonical JSON: keys sorted, defaults left out.
    pub value: String,
}

/// Where an entry was written: enough to find the field again for an error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Origin {
    /// Index of the document among all documents of its side.
    pub document: u32,
    /// Index in the list that it stands in (`storage.files[3]`).
    pub index: u32,
}
