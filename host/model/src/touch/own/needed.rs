//! Units that a node cannot do without.

use crate::touch::{ends_the_system, touch_gently};

/// What every unit that starts early conflicts with: such a conflict has an effect only when the
/// system ends anyway.
const HARMLESS_CONFLICTS: [&str; 9] = [
    "shutdown.target",
    "umount.target",
    "final.target",
    "emergency.service",
    "emergency.target",
    "rescue.service",
    "rescue.target",
    "initrd-switch-root.target",
    "sleep.target",
];

/// What a node cannot do without, and may be restarted all the same.
const NEEDED: [&str; 12] = [
    "containerd.service",
    "cri-o.service",
    "crio.service",
    "k3s-agent.service",
    "k3s.service",
    "kubelet.service",
    "NetworkManager.service",
    "rke2-agent.service",
    "rke2-server.service",
    "systemd-journald.service",
    "systemd-networkd.service",
    "systemd-udevd.service",
];

/// Whether a node cannot do without this unit.
pub(super) fn is_missed(unit: &str) -> bool {
    !is_harmless_conflict(unit) && (touch_gently(unit).is_err() || NEEDED.contains(&unit))
}

pub(super) fn is_harmless_conflict(unit: &str) -> bool {
    HARMLESS_CONFLICTS.contains(&unit)
}

/// Targets that units of the image stand on.
const SYSTEMS_TARGETS: [&str; 19] = [
    "basic.target",
    "cryptsetup.target",
    "getty.target",
    "graphical.target",
    "initrd.target",
    "local-fs-pre.target",
    "local-fs.target",
    "machines.target",
    "multi-user.target",
    "network-online.target",
    "network-pre.target",
    "network.target",
    "paths.target",
    "remote-fs.target",
    "slices.target",
    "sockets.target",
    "swap.target",
    "sysinit.target",
    "timers.target",
];

/// Whether units of the image stand on this target, or it ends the system.
pub(super) fn is_the_systems(target: &str) -> bool {
    SYSTEMS_TARGETS.contains(&target) || ends_the_system(target)
}
