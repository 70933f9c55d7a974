//! Commands that have the tree of a machine before it boots, as an initramfs has.

use crate::machine::Machine;
use crate::running::in_cgroup;
use anyhow::{Result, ensure};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

/// `$0` is the machine's directory.
const MOUNTS: &str = r#"mount -t overlay overlay -o "lowerdir=/,upperdir=$0/disk,workdir=$0/work" "$0/root" && exec "$@""#;

impl Machine {
    /// Where [`Machine::before_boot`] has the tree.
    pub fn sysroot(&self) -> PathBuf {
        self.boots.dir.join("root")
    }

    /// A command, run on this side, that has the whole tree of a machine which is switched off at
    /// [`Machine::sysroot`]. It has to end before the machine is switched on.
    pub fn before_boot<S: AsRef<OsStr>>(
        &self,
        argv: impl IntoIterator<Item = S>,
    ) -> Result<Command> {
        let is_off = self.boots().last().is_none_or(|boot| boot.end.is_some());
        ensure!(is_off, "The machine runs, and its tree is its own");
        // What it leaves behind ends with the machine.
        let mut command = in_cgroup(self.cgroup(), "unshare");
        command
            .args(["--mount", "--propagation", "private", "sh", "-c", MOUNTS])
            .arg(&self.boots.dir)
            .args(argv);
        Ok(command)
    }
}
