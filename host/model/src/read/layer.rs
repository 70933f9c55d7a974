//! One MachineConfig or Ignition config as it was written.

use super::makeup::Makeup;
use crate::config::{Fault, File, KernelType, Unit, User};
use crate::ignition::{Shape, shape_at};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What one config sets. What it leaves open is `None` or empty: only after
/// merging the defaults are filled in.
#[derive(Debug, Clone, Default)]
pub(super) struct Layer {
    /// The name of the MachineConfig.
    pub(super) name: String,
    /// The pool that it is for.
    pub(super) role: Option<String>,
    pub(super) makeup: Makeup,
    pub(super) files: Vec<LayerFile>,
    pub(super) units: Vec<LayerUnit>,
    pub(super) users: Vec<LayerUser>,
    pub(super) kernel_arguments: Vec<Cow<'static, str>>,
    pub(super) kernel_type: Option<KernelType>,
    pub(super) os_image: Option<String>,
    /// OpenShift's operator made it of its own templates.
    pub(super) is_generated: bool,
    pub(super) extensions: Vec<Cow<'static, str>>,
    pub(super) fips: bool,
    pub(super) fixed: BTreeMap<Part, Value>,
    pub(super) faults: Vec<Fault>,
    pub(super) notes: Vec<String>,
}

impl Layer {
    /// Whether it sets nothing but files and units.
    pub(super) fn only_has_files_and_units(&self) -> bool {
        // All fields are named, so that nobody adds one without a thought of this.
        let Layer {
            name: _,
            role: _,
            makeup: _,
            files: _,
            units: _,
            users,
            kernel_arguments,
            kernel_type,
            os_image,
            is_generated: _,
            extensions,
            fips,
            fixed,
            faults,
            notes,
        } = self;
        let lists = [kernel_arguments, extensions].into_iter().all(Vec::is_empty);
        let nothing_else = kernel_type.is_none() && os_image.is_none() && !fips && fixed.is_empty();
        lists && nothing_else && users.is_empty() && faults.is_empty() && notes.is_empty()
    }
}

/// An owner, as configs say it.
#[derive(Debug, Clone, Default)]
pub(super) struct LayerOwner {
    /// What its number is called in a node config: its name, or the number in decimal.
    pub(super) id: Option<Cow<'static, str>>,
    /// An empty name takes back what a config below says.
    pub(super) name: Option<Cow<'static, str>>,
}

/// A file. `contents.gzip` in it is not used here, nor are its owners.
#[derive(Debug, Clone)]
pub(super) struct LayerFile {
    pub(super) file: File<'static>,
    /// Whether it says `compression`, and which.
    pub(super) gzip: Option<bool>,
    /// A config below says gzip, and one above says nothing of it.
    pub(super) gzip_below: bool,
    /// `verification.hash`.
    pub(super) hash: Option<String>,
    /// Whether it says where contents come from, empty ones too.
    pub(super) has_source: bool,
    pub(super) overwrite: Option<bool>,
    pub(super) user: LayerOwner,
    pub(super) group: LayerOwner,
    /// Whether several configs have it.
    pub(super) merged: bool,
}

/// A unit. `mask` in it is not used here.
#[derive(Debug, Clone)]
pub(super) struct LayerUnit {
    pub(super) unit: Unit<'static>,
    pub(super) mask: Option<bool>,
}

/// A user. `rest` in it is not used here.
#[derive(Debug, Clone)]
pub(super) struct LayerUser {
    pub(super) user: User<'static>,
    /// Objects, from each config that has the user.
    pub(super) rest: Vec<Value>,
}

/// The parts that only provisioning can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Config,
    Proxy,
    Security,
    Timeouts,
    KernelArguments,
    Groups,
    Directories,
    Disks,
    Filesystems,
    Links,
    Luks,
    Raid,
}

impl Part {
    /// Its change, its field in a MachineConfig, and, for a list, the fields
    /// that tell its entries apart.
    pub(super) fn names(self) -> (&'static str, &'static str, Option<&'static [&'static str]>) {
        match self {
            Part::Config => ("ignition:config", "spec.config.ignition.config", None),
            Part::Proxy => ("ignition:proxy", "spec.config.ignition.proxy", None),
            Part::Security => ("ignition:security", "spec.config.ignition.security", None),
            Part::Timeouts => ("ignition:timeouts", "spec.config.ignition.timeouts", None),
            Part::KernelArguments => {
                ("ignition:kernel-arguments", "spec.config.kernelArguments", None)
            }
            Part::Groups => ("users:groups", "spec.config.passwd.groups", Some(&["name"])),
            Part::Directories => {
                ("storage:directories", "spec.config.storage.directories", Some(&["path"]))
            }
            Part::Disks => ("storage:disks", "spec.config.storage.disks", Some(&["device"])),
            Part::Filesystems => (
                "storage:filesystems",
                "spec.config.storage.filesystems",
                Some(&["device", "path"]),
            ),
            Part::Links => ("storage:links", "spec.config.storage.links", Some(&["path"])),
            Part::Luks => ("storage:luks", "spec.config.storage.luks", Some(&["name"])),
            Part::Raid => ("storage:raid", "spec.config.storage.raid", Some(&["name"])),
        }
    }

    /// What it holds.
    pub(super) fn shape(self) -> Shape {
        shape_at(self.names().1.trim_start_matches("spec.config."))
    }

    /// What tells an entry of a list apart.
    pub(super) fn key<'v>(self, field: impl Fn(&str) -> Option<&'v Value>) -> Option<&'v str> {
        let names = self.names().2?;
        names.iter().find_map(|name| field(name)?.as_str())
    }
}
