//! The folders of systemd's units.

use crate::view::split;

/// Where links are made and removed.
pub(super) const CONFIG: &str = "/etc/systemd/system";

const RUNTIME_CONFIG: &str = "/run/systemd/system";

const TRANSIENT: &str = "/run/systemd/transient";

const GENERATED: [&str; 3] =
    ["/run/systemd/generator", "/run/systemd/generator.early", "/run/systemd/generator.late"];

/// All of them, in the order in which systemd looks for a unit.
pub(super) const SEARCHED: [&str; 12] = [
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    TRANSIENT,
    "/run/systemd/generator.early",
    CONFIG,
    "/etc/systemd/system.attached",
    RUNTIME_CONFIG,
    "/run/systemd/system.attached",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/run/systemd/generator.late",
];

/// Whether a path is somewhere below one of the folders.
pub(super) fn is_below(path: &str) -> bool {
    SEARCHED.iter().any(|folder| {
        path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/') || rest.is_empty())
    })
}

/// Whether a path is right in one of the folders.
pub(super) fn is_in(path: &str) -> bool {
    SEARCHED.contains(&split(path).0)
}

/// Whether a path is right in a folder that admins write to.
pub(super) fn is_config(path: &str) -> bool {
    [CONFIG, RUNTIME_CONFIG].contains(&split(path).0)
}

/// Whether a unit comes from a generator.
pub(super) fn is_generated(path: &str) -> bool {
    GENERATED.contains(&split(path).0)
}

/// Whether a unit was made by a program that runs, and goes with it.
pub(super) fn is_transient(path: &str) -> bool {
    split(path).0 == TRANSIENT
}

/// Whether a path is gone after a boot.
pub(super) fn is_runtime(path: &str) -> bool {
    path.starts_with("/run/")
}
