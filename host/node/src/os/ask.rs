//! What is asked of the host: which tool it has, what it can boot, what it was booted with.

use super::deployments::Deployments;
use super::error::OsError;
use super::{ARGUMENTS, EXTENSIONS, IMAGE, KERNEL, Wish, arguments, bootc, extensions, rpm_ostree};
use crate::systemd::{Command, Manager};
use crate::tree::{PathError, Tree};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Where the kernel says what it was booted with.
pub const CMDLINE: &str = "/proc/cmdline";
/// What a host has that ostree booted.
const BOOTED: &str = "/run/ostree-booted";
/// What is there while a deployment is staged, until the next boot.
const STAGED: &str = "/run/ostree/staged-deployment";
/// Where tools look for what a registry asks them; the first is made where none is there.
const SECRETS: [&str; 3] =
    ["/run/ostree/auth.json", "/etc/ostree/auth.json", "/usr/lib/ostree/auth.json"];
/// The secret with which the kubelet pulls.
const KUBELETS_SECRET: &str = "/var/lib/kubelet/config.json";
/// More than a tool says of any host, or the kernel of its arguments.
const MOST: u64 = 16 << 20;

/// What changes the operating system of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// It changes everything.
    RpmOstree,
    /// It changes the image.
    Bootc,
}

/// How long a tool may take.
#[derive(Debug, Clone, Copy)]
pub struct OsLimits {
    /// To say how it stands.
    pub look: Duration,
    /// To fetch an image.
    pub fetch: Duration,
    /// To stage what was fetched.
    pub stage: Duration,
}

impl Default for OsLimits {
    fn default() -> OsLimits {
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        OsLimits { look: minutes(2), fetch: minutes(60), stage: minutes(30) }
    }
}

/// The operating system of a host, for one operation.
#[derive(Clone, Copy)]
pub struct Os<'o> {
    /// Its files.
    pub tree: &'o Tree,
    /// Its systemd, which runs the tool.
    pub manager: &'o Manager,
    /// How long the tool may take.
    pub limits: OsLimits,
    /// The operation that it is for: whoever goes on with it finds its commands again.
    pub operation: &'o str,
}

impl Os<'_> {
    /// The tool that runs this host: rpm-ostree, where ostree booted it and it is there.
    pub fn tool(&self) -> Result<Option<Tool>, PathError> {
        if self.is_there(BOOTED)? && self.is_there(rpm_ostree::PROGRAM)? {
            return Ok(Some(Tool::RpmOstree));
        }
        Ok(self.is_there(bootc::PROGRAM)?.then_some(Tool::Bootc))
    }

    /// Whether a deployment is staged for the next boot.
    pub fn is_staged(&self) -> Result<bool, PathError> {
        self.is_there(STAGED)
    }

    /// Lets the tool pull with the kubelet's secret until the next boot, where the host has
    /// none for it.
    pub(super) fn lend_secret(&self) -> Result<(), PathError> {
        for secret in SECRETS {
            if self.is_there(secret)? {
                return Ok(());
            }
        }
        let [first, ..] = SECRETS;
        if !self.is_there(KUBELETS_SECRET)? {
            return Ok(());
        }
        let (folder, name) = Tree::split(first)?;
        let folder = self.tree.folder_made(folder)?;
        folder.symlink(name, KUBELETS_SECRET).map_err(|error| PathError::io(first, error))
    }

    fn is_there(&self, path: &str) -> Result<bool, PathError> {
        let failed = |error| PathError::io(path, error);
        match self.tree.place(path)? {
            Some((folder, name)) => Ok(folder.stat(name).map_err(failed)?.is_some()),
            None => Ok(false),
        }
    }

    /// What can make these changes here; `ids` are theirs.
    pub fn tool_for(&self, ids: &[&str], from: &Wish, to: &Wish) -> Result<Tool, OsError> {
        let named = || ids.first().copied().unwrap_or(IMAGE).to_owned();
        let tool = self.tool()?.ok_or_else(|| OsError::NoTool(named()))?;
        if ids.contains(&IMAGE) && to.image.is_empty() && !from.image.is_empty() {
            return Err(OsError::NoImage);
        }
        if tool == Tool::Bootc {
            let cannot = [ARGUMENTS, KERNEL, EXTENSIONS].into_iter().find(|id| ids.contains(id));
            return cannot.map_or(Ok(tool), |id| Err(OsError::NotByBootc(id)));
        }
        if let Some(name) = extensions::unknown(&to.extensions) {
            return Err(OsError::Extension(name.to_owned()));
        }
        if to.kernel == "64k-pages" && std::env::consts::ARCH != "aarch64" {
            return Err(OsError::Processor(std::env::consts::ARCH));
        }
        if !to.has_default_kernel() && to.extensions.iter().any(|it| it == "kernel-devel") {
            return Err(OsError::KernelDevel);
        }
        Ok(tool)
    }

    /// All arguments that this node was booted with.
    pub fn booted_arguments(&self) -> Result<Vec<String>, PathError> {
        let line = self.tree.read(CMDLINE, MOST)?.unwrap_or_default();
        Ok(arguments::split(&String::from_utf8_lossy(&line)))
    }

    /// What the host can boot.
    pub async fn look(&self, tool: Tool) -> Result<Deployments, OsError> {
        let unreadable = |said: &[u8], why: &str| {
            let said = String::from_utf8_lossy(said);
            let said = tread_model::text::one_line_within(&said, 200).0;
            let what = match tool {
                Tool::RpmOstree => rpm_ostree::STATUS.join(" "),
                Tool::Bootc => bootc::STATUS.join(" "),
            };
            OsError::Said(format!("`{what}` said what cannot be read ({why}): {said}"))
        };
        match tool {
            Tool::RpmOstree => {
                let said = self.said("status", &rpm_ostree::STATUS).await?;
                rpm_ostree::read(&said).map_err(|why| unreadable(&said, &why))
            }
            Tool::Bootc => {
                let said = self.said("status", &bootc::STATUS).await?;
                let read = bootc::read(&said).map_err(|why| unreadable(&said, &why))?;
                read.ok_or(OsError::NoOstree)
            }
        }
    }

    /// The line of arguments that the next boot brings, as far as is known now.
    pub(super) async fn next_arguments(&self, tool: Tool) -> Result<String, OsError> {
        match tool {
            Tool::RpmOstree => {
                let said = self.said("arguments", &rpm_ostree::ARGUMENTS).await?;
                Ok(String::from_utf8_lossy(&said).trim().to_owned())
            }
            Tool::Bootc => Ok(String::new()),
        }
    }

    async fn said(&self, name: &str, argv: &[&str]) -> Result<Vec<u8>, OsError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("os-{name}-{}-{count}", std::process::id());
        let command = Command {
            unit: Command::unit_of(self.operation, &name),
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            limit: self.limits.look,
        };
        Ok(self.manager.output(&command, MOST).await?)
    }
}
