//! What a running node cannot take. The host refuses it before any policy is
//! asked, with the way out.

use crate::canonical::{self, CORE, Pair};
use crate::change::Edit;
use crate::config::{File, Fixed, NodeConfig, User};
use crate::contents;

/// The file that makes OpenShift's operator write everything again and reboot.
const FORCE_FILES: [&str; 2] =
    ["/run/machine-config-daemon-force", "/var/run/machine-config-daemon-force"];

/// Why a config cannot be applied to a node that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The id of the change that is refused: `storage:disks`, `fips`,
    /// `file:/etc/foo`, …
    pub id: String,
    /// What was done to it. A file that stands unchanged in both configs, but
    /// cannot be applied, is `Changed`.
    pub edit: Edit,
    /// The path of the field in the new config (in the old one, if it was
    /// removed): `spec.config.storage.disks`.
    pub field: String,
    /// Why, and the way out.
    pub reason: String,
}

impl Refusal {
    fn new(id: &str, edit: Edit, field: &str, reason: &str) -> Refusal {
        let [id, field, reason] = [id, field, reason].map(str::to_owned);
        Refusal { id, edit, field, reason }
    }
}

fn edit<T>(old: Option<T>, new: Option<T>) -> Edit {
    match (old, new) {
        (None, _) => Edit::Added,
        (_, None) => Edit::Removed,
        _ => Edit::Changed,
    }
}

/// Differences that only provisioning a node could make.
pub(crate) fn differences(old: &NodeConfig<'_>, new: &NodeConfig<'_>, out: &mut Vec<Refusal>) {
    for pair in canonical::join(old.fixed.iter(), new.fixed.iter(), |fixed| fixed.field.as_str()) {
        fixed(pair, out);
    }
    for pair in canonical::join(canonical::users(old), canonical::users(new), |u| u.name.as_ref()) {
        user((old, new), pair, out);
    }
    if old.fips != new.fips {
        let reason = match new.fips {
            true => {
                "FIPS mode cannot be switched on for a running node. Leave `fips` as it was, \
                 or provision the nodes anew with it."
            }
            false => {
                "FIPS mode cannot be switched off for a running node. Leave `fips: true`, \
                 or provision the nodes anew without it."
            }
        };
        out.push(Refusal::new("fips", Edit::Changed, "spec.fips", reason));
    }
}

fn fixed(pair: Pair<&Fixed>, out: &mut Vec<Refusal>) {
    let (old, new) = pair.sides();
    if old == new {
        return;
    }
    if let Some(fixed) = new.or(old) {
        out.push(Refusal::new(&fixed.id, edit(old, new), &fixed.field, why_fixed(&fixed.id)));
    }
}

fn why_fixed(id: &str) -> &'static str {
    match id {
        "storage:disks" | "storage:filesystems" | "storage:raid" | "storage:luks" => {
            "Disks are set up only when a node is provisioned. Put the old value back, \
             or provision the nodes anew with the new one."
        }
        "storage:directories" => {
            "Ignition makes directories only when a node is provisioned. Put the old value back \
             and describe the directory in a file below /etc/tmpfiles.d, \
             or provision the nodes anew."
        }
        "storage:links" => {
            "Ignition makes links only when a node is provisioned. Put the old value back \
             and describe the link in a file below /etc/tmpfiles.d, \
             or provision the nodes anew."
        }
        "users:groups" => {
            "Groups are made only when a node is provisioned. Put the old value back, \
             or provision the nodes anew with the new one."
        }
        "ignition:kernel-arguments" => {
            "Ignition sets its kernel arguments only when a node is provisioned. Put the old \
             value back and use `spec.kernelArguments`, which running nodes take."
        }
        _ => {
            "This takes effect only when a node is provisioned. Put the old value back, \
             or provision the nodes anew with the new one."
        }
    }
}

fn user(
    configs: (&NodeConfig<'_>, &NodeConfig<'_>),
    pair: Pair<&User<'_>>,
    out: &mut Vec<Refusal>,
) {
    let (old, new) = pair.sides();
    let Some(user) = new.or(old) else { return };
    let core = user.name == CORE;
    let changed = match core {
        true => old.map_or("", |user| &user.rest) != new.map_or("", |user| &user.rest),
        false => {
            let all = |user| (canonical::password(user), &user.ssh_keys, &user.rest);
            old.map(all) != new.map(all)
        }
    };
    if !changed {
        return;
    }
    let reason = match core {
        true => {
            "Of the user `core` only SSH keys and the password can change on a running node. \
             Put its other fields back, or provision the nodes anew."
        }
        false => {
            "On a running node only the user `core` can change. Leave this user as it was, \
             or provision the nodes anew."
        }
    };
    let index = user.origin.index;
    let config = if new.is_some() { configs.1 } else { configs.0 };
    let field = config.field(user.origin, &format!("passwd.users[{index}]"));
    out.push(Refusal::new(&format!("users:{}", user.name), edit(old, new), &field, reason));
}

/// The files of a config that cannot be applied whatever a node has now; to be
/// asked about each file, in order.
#[derive(Default)]
pub(crate) struct Inapplicable<'c> {
    /// The paths of which the last one may be a continuation.
    above: Vec<&'c str>,
}

impl<'c> Inapplicable<'c> {
    /// Why a file of the new config is refused.
    pub(crate) fn check(
        &mut self,
        config: &NodeConfig<'_>,
        file: &'c File<'_>,
        in_old: bool,
    ) -> Option<Refusal> {
        let above = self.enter(file.path.as_ref());
        let foreign = !contents::is_inline(&file.contents);
        let mode = canonical::mode(file);
        let forces = FORCE_FILES.contains(&file.path.as_ref());
        if above.is_none() && !foreign && mode <= 0o777 && !forces && !file.appends {
            return None;
        }

        let mut faults = Vec::new();
        if forces {
            faults.push(("path", why_force().to_owned()));
        }
        if let Some(above) = above {
            faults.push(("path", why_nested(above)));
        }
        if file.appends {
            faults.push(("append", why_append().to_owned()));
        }
        if mode > 0o777 {
            faults.push(("mode", why_mode(mode)));
        }
        if foreign {
            faults.push(("contents.source", why_foreign().to_owned()));
        }
        let (field, _) = faults.first()?;
        let index = file.origin.index;
        let field = config.field(file.origin, &format!("storage.files[{index}].{field}"));
        let reasons: Vec<_> = faults.into_iter().map(|(_, reason)| reason).collect();
        let edit = if in_old { Edit::Changed } else { Edit::Added };
        Some(Refusal { id: format!("file:{}", file.path), edit, field, reason: reasons.join(" ") })
    }

    /// The file, if any, that stands where `path` needs a directory. Paths come
    /// in order of their bytes, so that all that start with one path follow
    /// it, but not at once: `/etc/a`, `/etc/a-b`, `/etc/a/b`.
    fn enter(&mut self, path: &'c str) -> Option<&'c str> {
        while self.above.pop_if(|above| !path.starts_with(*above)).is_some() {}
        let below = |above: &&&str| path.as_bytes().get(above.len()) == Some(&b'/');
        let found = self.above.iter().rev().find(below).copied();
        self.above.push(path);
        found
    }
}

fn why_force() -> &'static str {
    "This file tells OpenShift's operator to write everything again and reboot; as a part of the \
     config it would do so for ever. Remove it from the config, and create it by hand on the node \
     that needs it."
}

fn why_nested(above: &str) -> String {
    format!("{above} is a file in the same config, so that no file can be below it. Remove one.")
}

fn why_append() -> &'static str {
    "It appends to a file, which cannot be repeated on a running node. \
     Write the whole file with `contents` instead of `append`."
}

fn why_mode(mode: u32) -> String {
    let octal = u32::from_str_radix(&mode.to_string(), 8).ok().filter(|meant| *meant <= 0o777);
    let way_out = match octal {
        Some(meant) => format!("If 0{mode} was meant: in JSON and Ignition that is {meant}."),
        None => "Leave out the setuid, setgid and sticky bits.".to_owned(),
    };
    format!(
        "The mode {mode} (octal {mode:o}) is more than 0777, the most that a file can have here. {way_out}"
    )
}

fn why_foreign() -> &'static str {
    "Its contents would be fetched from elsewhere, and tread applies only what the config itself \
     holds. Put the contents into the config, as a data URL."
}
