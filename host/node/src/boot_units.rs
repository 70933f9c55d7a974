//! What runs on the host by itself: a unit that notes boots, one that settles the journal before
//! anything reads what it is about, one that goes on with the operation once the node is up, and one
//! that watches for drift.
//!
//! They run the current executable below tread's own folder: the death, upgrade or eviction
//! of whoever brought it interrupts nothing.

use crate::desired::UNITS;
use crate::journal::Owned;
use crate::prepare::{Target, Wanted};
use crate::program::CURRENT_PATH;
use crate::tree::Owner;

/// Notes that the machine boots with an operation that stands, and that this boot ends in order.
pub const BOOT: &str = "tread-boot.service";
/// Settles the journal at boot.
pub const SETTLE: &str = "tread-settle.service";
/// Watches whether the disk stays as the config last applied wants it.
pub const WATCH: &str = "tread-watch.service";
/// Goes on with the operation after a boot.
pub const RESUME: &str = "tread-resume.service";

/// What must not start while names may be mixed: it would act on half a config.
const AFTER_IT: [&str; 3] = ["containerd.service", "crio.service", "kubelet.service"];

/// All units, with the links that enable them.
pub fn targets() -> Vec<Target<'static>> {
    let mut targets = Vec::new();
    let units = [
        (BOOT, boot(), "sysinit.target"),
        (SETTLE, settle(), "sysinit.target"),
        (RESUME, resume(), "multi-user.target"),
        (WATCH, watch(), "multi-user.target"),
    ];
    for (name, text, wanted_by) in units {
        targets.push(file(&format!("{UNITS}/{name}"), text.into_bytes()));
        targets.push(link(&format!("{wanted_by}.wants"), name));
    }
    targets.extend(AFTER_IT.map(|unit| link(&format!("{unit}.requires"), SETTLE)));
    targets
}

/// A link to a unit in a folder of links.
fn link(folder: &str, unit: &str) -> Target<'static> {
    let wanted = Wanted::Link { target: format!("{UNITS}/{unit}") };
    Target { path: format!("{UNITS}/{folder}/{unit}"), wanted, folders: Owned::Root }
}

fn file(path: &str, bytes: Vec<u8>) -> Target<'static> {
    let owner = Owner { uid: 0, gid: 0, mode: 0o644 };
    let wanted = Wanted::File { bytes: bytes.into(), owner };
    Target { path: path.to_owned(), wanted, folders: Owned::Root }
}

/// Nothing waits for this unit's success: what it notes only bounds how often a machine goes down. It
/// notes the end once those have ended that carry an operation out, and have the journal. Of both it names
/// only the one with a file: systemd forgets no unit that another one names.
fn boot() -> String {
    format!(
        "[Unit]\n\
         Description=Note that this node boots with a change of its configuration\n\
         DefaultDependencies=no\n\
         ConditionPathExists=/var/lib/tread/node/operation\n\
         RequiresMountsFor=/var/lib/tread\n\
         After=local-fs.target\n\
         Before=sysinit.target {SETTLE} {RESUME} shutdown.target\n\
         Conflicts=shutdown.target\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n\
         ExecStart=-{CURRENT_PATH} node note-boot\n\
         # And not ExecStop: it runs also where the boot ends while ExecStart does.\n\
         ExecStopPost=-{CURRENT_PATH} node note-boot --ends\n\
         TimeoutSec=30\n\
         \n\
         [Install]\n\
         WantedBy=sysinit.target\n"
    )
}

fn settle() -> String {
    format!(
        "[Unit]\n\
         Description=Settle a change of this node's configuration that was cut short\n\
         DefaultDependencies=no\n\
         ConditionPathExists=/var/lib/tread/node/operation\n\
         RequiresMountsFor=/var/lib/tread\n\
         After=local-fs.target\n\
         Before=sysinit.target network-pre.target NetworkManager.service systemd-networkd.service \
         systemd-sysctl.service systemd-modules-load.service systemd-tmpfiles-setup.service \
         crio.service containerd.service kubelet.service shutdown.target\n\
         Wants=network-pre.target\n\
         Conflicts=shutdown.target\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         ExecStart={CURRENT_PATH} node settle\n\
         SuccessExitStatus=5\n\
         TimeoutStartSec=120\n\
         \n\
         [Install]\n\
         WantedBy=sysinit.target\n"
    )
}

/// This unit does not wait for the container runtime and the kubelet: where a boot hangs before these
/// start, this unit goes back from that boot. It waits for the disks of other machines, since files
/// that an operation changed may be on them; systemd ends a mount that takes too long.
fn resume() -> String {
    format!(
        "[Unit]\n\
         Description=Go on with a change of this node's configuration after a boot\n\
         ConditionPathExists=/var/lib/tread/node/operation\n\
         StartLimitIntervalSec=1h\n\
         StartLimitBurst=10\n\
         Wants=dbus.service\n\
         After=dbus.service systemd-logind.service remote-fs.target\n\
         \n\
         [Service]\n\
         Type=exec\n\
         ExecStart={CURRENT_PATH} node carry-out\n\
         Restart=on-failure\n\
         RestartSec=30\n\
         RestartPreventExitStatus=5\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n"
    )
}

fn watch() -> String {
    format!(
        "[Unit]\n\
         Description=Watch whether this node's configuration stays as it was applied\n\
         After={SETTLE}\n\
         \n\
         [Service]\n\
         Type=exec\n\
         ExecStart={CURRENT_PATH} node watch\n\
         Restart=always\n\
         RestartSec=60\n\
         Nice=10\n\
         IOSchedulingClass=idle\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n"
    )
}
