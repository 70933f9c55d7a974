//! What a machine needs of the one that it runs on.

use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs that a machine is made of, and Debian's packages of them.
const PROGRAMS: [(&str, &str); 6] = [
    ("/lib/systemd/systemd", "systemd"),
    ("/usr/bin/dbus-daemon", "dbus"),
    ("/usr/bin/unshare", "util-linux"),
    ("/usr/bin/nsenter", "util-linux"),
    ("/usr/bin/setpriv", "util-linux"),
    ("/usr/bin/timeout", "coreutils"),
];

/// What is missing here to make a machine, in a sentence; nothing where all is there.
pub fn missing() -> Option<String> {
    find().err().map(|error| format!("{error:#}"))
}

/// The control group in which machines may make their own; an error says what is
/// missing.
pub(crate) fn find() -> Result<PathBuf> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "A machine for tests needs root, for its namespaces and mounts. Run the tests as root, or \
         leave them out by: tests/run --without node"
    );
    for (program, package) in PROGRAMS {
        ensure!(
            Path::new(program).exists(),
            "A machine for tests needs {program}. On Debian: apt-get install {package}"
        );
    }
    let tried = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "--uts", "--ipc", "--cgroup", "--pid"])
        .args(["--fork", "mount", "-t", "tmpfs", "tmpfs", "/mnt"])
        .output()
        .context("unshare cannot be run")?;
    ensure!(
        tried.status.success(),
        "A machine for tests needs namespaces and mounts, and here they are forbidden ({}). A \
         container that runs the tests has to be privileged",
        String::from_utf8_lossy(&tried.stderr).trim()
    );
    cgroup()
}

/// A control group of version 2 whose processes can be killed together.
fn cgroup() -> Result<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
    let Some(mount) = mounts.lines().find_map(unified_mount) else {
        bail!("A machine for tests needs control groups of version 2, and none are mounted");
    };
    let groups = std::fs::read_to_string("/proc/self/cgroup")?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    // Processes stand only in leaves: those of the machines are made beside the test's.
    let beside = Path::new(own).parent().unwrap_or(Path::new(""));
    Ok(Path::new(mount).join(beside))
}

/// Where a line of mountinfo mounts control groups of version 2.
fn unified_mount(line: &str) -> Option<&str> {
    let (place, kind) = line.split_once(" - ")?;
    if kind.starts_with("cgroup2 ") { place.split(' ').nth(4) } else { None }
}
