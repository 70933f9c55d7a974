//! What a running node cannot take. The host refuses it before any policy is
//! asked, with the way out.

mod extensions;
mod keys;
mod links;
mod nodes;
mod reasons;
mod units;

pub(crate) use extensions::{FIELD as EXTENSIONS_FIELD, KERNEL_DEVEL, why_not_beside};
pub(crate) use links::LINKS;

use crate::canonical::{self, CORE, Pair};
use crate::change::Edit;
use crate::config::{Fault, File, Fixed, NodeConfig, User};
use crate::contents;
use crate::password::can_match;
use crate::path::is_below;
use extensions::EXTENSIONS;
use keys::can_be_key;
use nodes::Nodes;
use reasons::{
    why_above, why_append, why_below_link, why_force, why_foreign, why_mode, why_nested, why_unit,
};
use std::collections::BTreeMap;
use units::{unit, unit_at};

/// How the warning begins that nobody can log in to nodes any more.
pub const LOCK_OUT: &str = "lock-out: ";

/// The file that makes OpenShift's operator write everything again and reboot.
const FORCE_FILES: [&str; 2] =
    ["/run/machine-config-daemon-force", "/var/run/machine-config-daemon-force"];

/// Why a config cannot be applied to a node that runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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

/// A difference that costs no node anything, whatever policies there are: nobody
/// is asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Settled {
    /// The id of the change.
    pub id: String,
    /// What was done to it.
    pub edit: Edit,
    /// Why nothing has to be done.
    pub reason: String,
}

/// What the host itself says of the differences of two configs.
#[derive(Debug, Default)]
pub(crate) struct Own {
    pub(crate) refusals: Vec<Refusal>,
    pub(crate) settled: Vec<Settled>,
    pub(crate) warnings: Vec<String>,
}

fn edit<T>(old: Option<T>, new: Option<T>) -> Edit {
    match (old, new) {
        (None, _) => Edit::Added,
        (_, None) => Edit::Removed,
        _ => Edit::Changed,
    }
}

/// Differences that only provisioning a node could make.
pub(crate) fn differences(old: &NodeConfig<'_>, new: &NodeConfig<'_>, own: &mut Own) {
    // The gravest warning first: where there are too many, the last ones are left out.
    own.warnings.extend(locked_out(old, new));
    own.warnings.extend(new.notes.iter().cloned());
    for pair in canonical::join(old.fixed.iter(), new.fixed.iter(), |fixed| fixed.field.as_str()) {
        fixed(pair, own);
    }
    for pair in canonical::join(canonical::users(old), canonical::users(new), |u| u.name.as_ref()) {
        user((old, new), pair, &mut own.refusals);
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
        own.refusals.push(Refusal::new("fips", Edit::Changed, "spec.fips", reason));
    }
}

/// By what somebody can log in to a node.
struct WaysIn {
    key: bool,
    password: bool,
    /// Something stands where the keys are, be it a key or not.
    has_lines: bool,
}

impl WaysIn {
    fn of(config: &NodeConfig<'_>) -> WaysIn {
        let core = || config.users.iter().filter(|user| user.name == CORE);
        let mut lines = core().flat_map(|user| &user.ssh_keys);
        WaysIn {
            key: lines.clone().any(|line| can_be_key(line)),
            password: core().filter_map(canonical::password).any(|hash| can_match(hash)),
            has_lines: lines.any(|line| !line.trim().is_empty()),
        }
    }
}

/// Whether nobody can log in to a node any more, and somebody could.
fn locked_out(old: &NodeConfig<'_>, new: &NodeConfig<'_>) -> Option<String> {
    let (old, new) = (WaysIn::of(old), WaysIn::of(new));
    if new.key || new.password {
        return None;
    }
    let lost = match (old.key, old.password) {
        (true, true) => "loses its last SSH key and its password",
        (true, false) => "loses its last SSH key and has no password",
        (false, true) => "loses its password and has no SSH key",
        (false, false) => return None,
    };
    let no_keys = match new.has_lines {
        true => {
            " Nothing in its sshAuthorizedKeys is a key that sshd reads: a key is one line with its \
             kind (as ssh-ed25519), a space, and its whole base64."
        }
        false => "",
    };
    Some(format!(
        "{LOCK_OUT}core {lost}, so nobody can log in to these nodes; only `oc debug node/NODE` is \
         left, while the cluster runs.{no_keys} Leave core a key or a password."
    ))
}

fn fixed(pair: Pair<&Fixed>, own: &mut Own) {
    let (old, new) = pair.sides();
    if old == new {
        return;
    }
    if let (Some(old), None) = (old, new)
        && old.id == LINKS
    {
        let (id, reason) = (old.id.clone(), links::why_settled(&old.value));
        own.settled.push(Settled { id, edit: Edit::Removed, reason });
    } else if let Some(fixed) = new.or(old) {
        own.refusals.push(Refusal::new(
            &fixed.id,
            edit(old, new),
            &fixed.field,
            why_fixed(&fixed.id),
        ));
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
        LINKS => {
            "Ignition makes links only when a node is provisioned. Put the old value back \
             and describe the link in a file below /etc/tmpfiles.d, \
             or provision the nodes anew. Only all links together can be removed: OpenShift's \
             operator rejects a list that changes and is not empty."
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

/// Refuses what Ignition's parser rejects, and what nobody renders, by the entries of the
/// new config.
pub(crate) fn faulty(old: &NodeConfig<'_>, new: &NodeConfig<'_>, own: &mut Own) {
    let mut by_id: BTreeMap<&str, (&str, Vec<String>)> = BTreeMap::new();
    let nodes = Nodes::of(new).faults(new);
    let through = Nodes::left_over(old, new).written_through(new);
    let extensions = extensions::fault(new);
    let faults = new.faults.iter().chain(&nodes).chain(&through).chain(&extensions);
    for Fault { id, field, reason, .. } in faults {
        let (first, reasons) = by_id.entry(id).or_insert((field, Vec::new()));
        // The first field is named in front of all reasons.
        reasons.push(if first == field { reason.clone() } else { format!("{field}: {reason}") });
    }
    let places = own.refusals.iter().enumerate().filter(|_| !by_id.is_empty());
    let places: BTreeMap<String, usize> =
        places.map(|(index, refusal)| (refusal.id.clone(), index)).collect();
    for (id, (field, reasons)) in by_id {
        let reason = reasons.join(" ");
        match places.get(id).and_then(|index| own.refusals.get_mut(*index)) {
            Some(refusal) => refusal.reason = format!("{} {field}: {reason}", refusal.reason),
            None => {
                let edit = if has(old, id) { Edit::Changed } else { Edit::Added };
                own.refusals.push(Refusal::new(id, edit, field, &reason));
            }
        }
    }
}

/// Everything in a config that reaches no node: in its documents, and in all of them
/// together.
pub fn unparsable(config: &NodeConfig<'_>) -> Vec<Fault> {
    let mut faults = config.faults.clone();
    let together = Inapplicable::of(config);
    faults.extend(together.nodes.faults(config));
    for file in &config.files {
        if let Some(reason) = together.unparsable(config, file) {
            let index = file.origin.index;
            let field = config.field(file.origin, &format!("storage.files[{index}].path"));
            let id = format!("file:{}", file.path);
            faults.push(Fault { id, field, reason, by_parser: true });
        }
    }
    faults
}

/// Whether a config has such an entry.
fn has(config: &NodeConfig<'_>, id: &str) -> bool {
    match id.split_once(':') {
        Some(("file", path)) => {
            config.files.binary_search_by(|file| file.path.as_ref().cmp(path)).is_ok()
        }
        Some(("unit", name)) => unit(config, name).is_some(),
        Some(("storage", _)) => config.fixed.iter().any(|fixed| fixed.id == id),
        Some((_, name)) => config.users.iter().any(|user| user.name == name),
        None => id == EXTENSIONS && !config.extensions.is_empty(),
    }
}

/// The files of a config that cannot be applied whatever a node has now; to be
/// asked about each file, in order.
pub(crate) struct Inapplicable<'c> {
    /// The files, one below the other by their text, that the next path may lie below.
    above: Vec<&'c str>,
    nodes: Nodes,
}

impl<'c> Inapplicable<'c> {
    pub(crate) fn of(config: &NodeConfig<'_>) -> Inapplicable<'c> {
        Inapplicable { above: Vec::new(), nodes: Nodes::of(config) }
    }

    /// Why a file of the new config is refused.
    pub(crate) fn check(
        &mut self,
        config: &NodeConfig<'_>,
        file: &'c File<'_>,
        in_old: bool,
    ) -> Option<Refusal> {
        let above = self.enter(file.path.as_ref());
        let nested = above.map(why_nested).or_else(|| self.nested(config, &file.path));
        let unparsable = self.unparsable(config, file);
        let foreign = !contents::is_inline(&file.contents);
        let mode = canonical::mode(file);
        let forces = FORCE_FILES.contains(&file.path.as_ref());
        // One that appends is refused for that.
        let needs_source = file.needs_source && !file.appends;
        let at_rest = nested.is_none() && unparsable.is_none() && !needs_source;
        if at_rest && !foreign && mode <= 0o777 && !forces && !file.appends {
            return None;
        }

        let mut faults = Vec::new();
        if forces {
            faults.push(("path", why_force().to_owned()));
        }
        faults.extend(nested.map(|why| ("path", why)));
        faults.extend(unparsable.map(|why| ("path", why)));
        if file.appends {
            faults.push(("append", why_append().to_owned()));
        }
        if mode > 0o777 {
            faults.push(("mode", why_mode(mode)));
        }
        if foreign {
            faults.push(("contents.source", why_foreign().to_owned()));
        }
        if needs_source {
            faults.push(("contents.source", crate::ignition::NO_SOURCE.to_owned()));
        }
        let (field, _) = faults.first()?;
        let index = file.origin.index;
        let field = config.field(file.origin, &format!("storage.files[{index}].{field}"));
        let reasons: Vec<_> = faults.into_iter().map(|(_, reason)| reason).collect();
        let edit = if in_old { Edit::Changed } else { Edit::Added };
        Some(Refusal { id: format!("file:{}", file.path), edit, field, reason: reasons.join(" ") })
    }

    /// Why Ignition's parser rejects a file of the config for what else is in it.
    fn unparsable(&self, config: &NodeConfig<'_>, file: &File<'_>) -> Option<String> {
        let link = self.nodes.link_above(&file.path).map(why_below_link);
        let unit = || unit_at(config, &file.path).map(why_unit);
        link.or_else(unit)
    }

    /// Why a file and something else of the config that is no file cannot be there
    /// together: one stands where the other needs a directory.
    fn nested(&self, config: &NodeConfig<'_>, path: &str) -> Option<String> {
        if let Some((kind, below)) = self.nodes.below(path) {
            return Some(why_above(&format!("the {kind} {below}")));
        }
        if let Some(unit) = nodes::unit_below(config, path) {
            return Some(why_above(&format!("the unit {unit} (systemd.units)")));
        }
        nodes::unit_above(config, path).map(|unit| {
            format!(
                "The unit {unit} of the same config (systemd.units) is a file above it, so that \
                 no file can be below. Remove one of them."
            )
        })
    }

    /// The file, if any, that stands where `path` needs a directory. Paths come
    /// in order of their bytes, so that all that start with one path follow
    /// it, but not at once: `/etc/a`, `/etc/a-b`, `/etc/a/b`.
    fn enter(&mut self, path: &'c str) -> Option<&'c str> {
        while self.above.pop_if(|above| !path.starts_with(*above)).is_some() {}
        let found = self.above.iter().rev().find(|above| is_below(path, above)).copied();
        self.above.push(path);
        found
    }
}
