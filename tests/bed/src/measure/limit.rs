//! The limit of memory that a pod of the manifests has, as the kernel keeps it.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::PathBuf;

/// What the Deployment of `tread manifests` allows.
pub(crate) const BYTES: u64 = 1 << 30;

/// Where the kernel takes a limit, and in which file: cgroups of either version.
const PLACES: [(&str, &str); 2] =
    [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")];

/// A group of processes that together take no more memory than a pod may. It is
/// removed with this, when they have ended.
pub(crate) struct Limit(PathBuf);

impl Limit {
    /// One that holds for a process from now on.
    pub(crate) fn of(process: u32) -> Result<Limit> {
        let name = format!("tread-measure-{process}");
        for (place, file) in PLACES {
            let dir = PathBuf::from(place).join(&name);
            if fs::create_dir(&dir).is_err() {
                continue;
            }
            let limit = Limit(dir);
            // Elsewhere it is a directory like any other.
            if !limit.0.join("cgroup.procs").exists() {
                continue;
            }
            let set = fs::write(limit.0.join(file), BYTES.to_string())
                .and_then(|()| fs::write(limit.0.join("cgroup.procs"), process.to_string()));
            if set.is_ok() {
                return Ok(limit);
            }
        }
        bail!(
            "no memory limit can be set: that takes a user who may make groups below \
             /sys/fs/cgroup, with the memory controller; --without-limit measures without it"
        )
    }

    /// How often something in it was killed for its memory.
    pub(crate) fn kills(&self) -> Result<u64> {
        let read = |file: &str| fs::read_to_string(self.0.join(file));
        let text = read("memory.events").or_else(|_| read("memory.oom_control"));
        let text = text.context("the kernel does not say who was killed")?;
        let kills = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        Ok(kills.and_then(|count| count.trim().parse().ok()).unwrap_or_default())
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        // A group that still has processes stays: nothing else knows it.
        let _ = fs::remove_dir(&self.0);
    }
}
