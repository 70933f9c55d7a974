//! What is on a machine's disk before its first boot.

use crate::machine::Machine;
use crate::needs;
use anyhow::{Context, Result, bail};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The target that a machine boots into unless told otherwise: systemd, its journal,
/// the system bus and logind, and nothing else.
pub const TARGET: &str = "tread-machine.target";
const TARGET_TEXT: &str = "[Unit]\n\
    Description=A machine for tests\n\
    Requires=dbus.service systemd-journald.service systemd-logind.service\n\
    After=dbus.service systemd-journald.service systemd-logind.service\n\
    AllowIsolate=yes\n";

/// A machine that is being made.
#[must_use]
#[derive(Debug)]
pub struct Builder {
    entries: Vec<(PathBuf, Entry)>,
    target: String,
    lifetime: Duration,
}

#[derive(Debug)]
enum Entry {
    File(Vec<u8>, u32),
    Link(PathBuf),
}

impl Default for Builder {
    fn default() -> Builder {
        let builder = Builder {
            entries: Vec::new(),
            target: TARGET.to_owned(),
            lifetime: Duration::from_secs(1800),
        };
        // Mounts of the machine that the tests run on are none of this one's.
        builder.file("/etc/fstab", "").file(format!("/etc/systemd/system/{TARGET}"), TARGET_TEXT)
    }
}

impl Builder {
    /// A file with mode 0644. The path is one of the machine, and parents are made.
    pub fn file(self, path: impl Into<PathBuf>, contents: impl AsRef<[u8]>) -> Builder {
        self.file_with_mode(path, contents, 0o644)
    }

    /// A file with another mode.
    pub fn file_with_mode(
        mut self,
        path: impl Into<PathBuf>,
        contents: impl AsRef<[u8]>,
        mode: u32,
    ) -> Builder {
        self.entries.push((path.into(), Entry::File(contents.as_ref().to_vec(), mode)));
        self
    }

    /// A symbolic link at `path` that says `target`.
    pub fn link(mut self, path: impl Into<PathBuf>, target: impl Into<PathBuf>) -> Builder {
        self.entries.push((path.into(), Entry::Link(target.into())));
        self
    }

    /// A unit in `/etc/systemd/system`.
    pub fn unit(self, name: &str, text: &str) -> Builder {
        self.file(format!("/etc/systemd/system/{name}"), text)
    }

    /// A unit that is started at each boot.
    pub fn unit_at_boot(self, name: &str, text: &str) -> Builder {
        let wants = format!("/etc/systemd/system/{TARGET}.wants/{name}");
        self.unit(name, text).link(wants, format!("/etc/systemd/system/{name}"))
    }

    /// What it boots into.
    pub fn target(mut self, name: &str) -> Builder {
        name.clone_into(&mut self.target);
        self
    }

    /// After how long it is killed, whatever it does; half an hour unless told otherwise.
    pub fn lifetime(mut self, lifetime: Duration) -> Builder {
        self.lifetime = lifetime;
        self
    }

    /// The machine, switched off.
    pub fn make(self) -> Result<Machine> {
        let parent = needs::find()?;
        let dir = tempfile::Builder::new().prefix("tread-machine-").tempdir()?;
        for part in ["disk", "work", "root"] {
            std::fs::create_dir(dir.path().join(part))?;
        }
        std::fs::write(dir.path().join("target"), &self.target)?;
        std::fs::write(dir.path().join("console"), "")?;
        let disk = dir.path().join("disk");
        std::fs::set_permissions(&disk, std::fs::Permissions::from_mode(0o755))?;
        for (path, entry) in &self.entries {
            put(&disk, path, entry).with_context(|| format!("putting {} in", path.display()))?;
        }
        let name = dir.path().file_name().context("a directory without a name")?;
        let cgroup = parent.join(name);
        std::fs::create_dir(&cgroup)
            .with_context(|| format!("making the control group {}", cgroup.display()))?;
        if !cgroup.join("cgroup.kill").exists() {
            std::fs::remove_dir(&cgroup)?;
            bail!("A machine for tests needs Linux 5.14 or newer, which kills a control group");
        }
        Machine::keep(dir.keep(), cgroup, self.lifetime)
    }

    /// The machine, after its first boot.
    pub fn boot(self) -> Result<Machine> {
        let machine = self.make()?;
        machine.start()?;
        machine.wait_until_running()?;
        Ok(machine)
    }
}

fn put(disk: &Path, path: &Path, entry: &Entry) -> Result<()> {
    let place = disk.join(path.strip_prefix("/").context("the path is not absolute")?);
    let parent = place.parent().context("the path has no parent")?;
    make_directories(disk, parent)?;
    match entry {
        Entry::File(contents, mode) => {
            std::fs::write(&place, contents)?;
            std::fs::set_permissions(&place, std::fs::Permissions::from_mode(*mode))?;
        }
        Entry::Link(target) => symlink(target, &place)?,
    }
    Ok(())
}

/// As `create_dir_all`, but a directory that the tree below has keeps its mode.
fn make_directories(disk: &Path, place: &Path) -> Result<()> {
    if place.is_dir() {
        return Ok(());
    }
    if let Some(parent) = place.parent() {
        make_directories(disk, parent)?;
    }
    std::fs::create_dir(place)?;
    let below = Path::new("/").join(place.strip_prefix(disk)?);
    let mode = std::fs::metadata(below).map_or(0o755, |it| it.permissions().mode());
    std::fs::set_permissions(place, std::fs::Permissions::from_mode(mode))?;
    Ok(())
}
