//! What a change is a change of.

use crate::read::fields::unknown;

/// What a change is a change of, as far as policies can claim it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `file:/etc/chrony.conf`
    File,
    /// `unit:crio.service`
    Unit,
    /// `ssh-keys:core`
    SshKeys,
    /// `password:core`
    Password,
    /// `kernel-arguments`
    KernelArguments,
    /// `kernel-type`
    KernelType,
    /// `os-image`
    OsImage,
    /// `extensions`
    Extensions,
}

impl Kind {
    pub(super) const ALL: [Kind; 8] = [
        Kind::File,
        Kind::Unit,
        Kind::SshKeys,
        Kind::Password,
        Kind::KernelArguments,
        Kind::KernelType,
        Kind::OsImage,
        Kind::Extensions,
    ];

    /// What an id of this kind begins with, or is.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::File => "file",
            Kind::Unit => "unit",
            Kind::SshKeys => "ssh-keys",
            Kind::Password => "password",
            Kind::KernelArguments => "kernel-arguments",
            Kind::KernelType => "kernel-type",
            Kind::OsImage => "os-image",
            Kind::Extensions => "extensions",
        }
    }

    /// Whether there can be several on a node, each with a name.
    pub fn is_named(self) -> bool {
        matches!(self, Kind::File | Kind::Unit | Kind::SshKeys | Kind::Password)
    }

    /// Whether what changes there takes effect at boot, and at nothing less.
    pub fn needs_boot(self) -> bool {
        matches!(self, Kind::KernelArguments | Kind::KernelType | Kind::OsImage | Kind::Extensions)
    }

    /// Whether this is the id of a change that only a boot applies.
    pub fn is_applied_by_boot(change_id: &str) -> bool {
        Kind::ALL.into_iter().any(|kind| kind.needs_boot() && kind.as_str() == change_id)
    }

    pub(super) fn example(self) -> &'static str {
        match self {
            Kind::Unit => "unit:crio.service",
            Kind::SshKeys => "ssh-keys:core",
            Kind::Password => "password:core",
            _ => "file:/etc/chrony.conf",
        }
    }

    /// The kind that a pattern begins with.
    pub(super) fn read(word: &str) -> Result<Kind, String> {
        if let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.as_str() == word) {
            return Ok(kind);
        }
        if matches!(word, "fips" | "storage" | "users" | "ignition") {
            return Err(format!("{word} cannot be claimed: tread itself refuses such a change"));
        }
        Err(unknown("kind", word, &Kind::ALL.map(Kind::as_str)))
    }
}
