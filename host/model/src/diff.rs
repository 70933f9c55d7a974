//! From two node configs to their differences.
//!
//! What differs is decided by the digests of the canonical entries, so that the
//! changes and the digests of a plan can never disagree; only what differs is
//! decoded for policies to see.

use crate::canonical::{self, CORE, Pair};
use crate::change::{Change, Entry, State};
use crate::config::{File, NodeConfig, Unit};
use crate::config_digest::{self, Digests};
use crate::contents::Decoder;
use crate::digest::Digest;
use crate::problem::Problems;
use crate::refuse::{self, Inapplicable, Own, Refusal, Settled};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// What two node configs differ in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison<'a> {
    /// What policies decide on, in the order of the ids' bytes.
    pub changes: Vec<Change<'a>>,
    /// What a running node cannot take, in the order of the ids' bytes. Nothing
    /// here is among the changes.
    pub refusals: Vec<Refusal>,
    /// What costs no node anything, in the order of the ids' bytes. Nothing here is
    /// among the others.
    pub settled: Vec<Settled>,
    /// What an admin should know besides, in sentences.
    pub warnings: Vec<String>,
    /// The digest of the old config.
    pub from: Digest,
    /// The digest of the new config.
    pub to: Digest,
}

/// Compares two node configs. Contents that cannot be decoded are problems,
/// whether they changed or not.
pub fn compare<'a>(old: &NodeConfig<'a>, new: &NodeConfig<'a>) -> Result<Comparison<'a>, Problems> {
    let (from, to) = config_digest::digests_of_pair(old, new)?;
    compare_digested(old, &from, new, &to)
}

/// As [`compare`], for configs whose own digests are `from` and `to`: the cost follows the
/// number of differences, not the size of what the configs hold.
pub fn compare_digested<'a>(
    old: &NodeConfig<'a>,
    from: &Digests,
    new: &NodeConfig<'a>,
    to: &Digests,
) -> Result<Comparison<'a>, Problems> {
    let mut changes = Vec::new();
    let mut own = Own::default();
    files((old, from), (new, to), &mut changes, &mut own.refusals)?;
    units((old, from), (new, to), &mut changes);
    for ((id, before), (_, after)) in settings(old).into_iter().zip(settings(new)) {
        if !settings_equal(id, &before, &after) {
            changes.push(Change { id: id.to_owned(), before, after });
        }
    }
    refuse::differences(old, new, &mut own);
    refuse::faulty(old, new, &mut own);
    let Own { mut refusals, settled, warnings } = own;
    if !refusals.is_empty() {
        let refused: BTreeSet<&str> = refusals.iter().map(|refusal| refusal.id.as_str()).collect();
        changes.retain(|change| !refused.contains(change.id.as_str()));
    }

    changes.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    refusals.sort_by(|a, b| (&a.id, &a.field).cmp(&(&b.id, &b.field)));
    Ok(Comparison { changes, refusals, settled, warnings, from: from.config, to: to.config })
}

/// What is equal on both sides, of that whose id `matches`; in the order of the
/// ids' bytes. What does not match costs no more than its id.
pub fn unchanged<'a>(
    old: &NodeConfig<'a>,
    new: &NodeConfig<'a>,
    matches: impl Fn(&str) -> bool,
) -> Result<Vec<Entry<'a>>, Problems> {
    let mut entries = Vec::new();
    let mut problems = Vec::new();
    let mut decoder = Decoder::default();
    let mut id = String::new();
    for pair in canonical::join(old.files.iter(), new.files.iter(), |file| file.path.as_ref()) {
        let Pair::Both(before, after) = pair else { continue };
        if !matches(named(&mut id, FILE, &after.path)) {
            continue;
        }
        let mut digest = |config, file| {
            let digest = config_digest::file_digest(file, &mut decoder);
            digest.map_err(|error| problems.push(config_digest::undecodable(config, file, error)))
        };
        let equal =
            canonical::files_look_equal(before, after) || digest(old, before) == digest(new, after);
        if equal {
            match canonical::file_state(after) {
                Ok(state) => entries.push(Entry { id: id.clone(), state, was_secret: false }),
                Err(error) => problems.push(config_digest::undecodable(new, after, error)),
            }
        }
    }
    if !problems.is_empty() {
        return Err(Problems(problems));
    }
    for pair in canonical::join(old.units.iter(), new.units.iter(), |unit| unit.name.as_ref()) {
        let Pair::Both(before, after) = pair else { continue };
        if matches(named(&mut id, UNIT, &after.name))
            && (canonical::units_look_equal(before, after)
                || config_digest::unit_digest(before) == config_digest::unit_digest(after))
        {
            let state = canonical::unit_state(after);
            entries.push(Entry { id: id.clone(), state, was_secret: false });
        }
    }
    for ((id, before), (_, state)) in settings(old).into_iter().zip(settings(new)) {
        if state != State::Absent && matches(id) && settings_equal(id, &before, &state) {
            entries.push(Entry { id: id.to_owned(), state, was_secret: false });
        }
    }
    entries.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    Ok(entries)
}

const FILE: &str = "file:";
const UNIT: &str = "unit:";

/// The id of an entry, in a buffer that is used again and again.
fn named<'i>(id: &'i mut String, kind: &str, name: &str) -> &'i str {
    id.clear();
    id.push_str(kind);
    id.push_str(name);
    id
}

fn files<'a>(
    (old, from): (&NodeConfig<'a>, &Digests),
    (new, to): (&NodeConfig<'a>, &Digests),
    changes: &mut Vec<Change<'a>>,
    refusals: &mut Vec<Refusal>,
) -> Result<(), Problems> {
    let mut inapplicable = Inapplicable::of(new);
    let mut problems = Vec::new();
    let mut state = |config, file: Option<&File<'a>>| match file {
        None => State::Absent,
        Some(file) => canonical::file_state(file).unwrap_or_else(|error| {
            problems.push(config_digest::undecodable(config, file, error));
            State::Absent
        }),
    };
    let before = old.files.iter().zip(&from.files);
    let after = new.files.iter().zip(&to.files);
    for pair in canonical::join(before, after, |(file, _)| file.path.as_ref()) {
        let (before, after) = pair.sides();
        if let Some((file, _)) = after
            && let Some(refusal) = inapplicable.check(new, file, before.is_some())
        {
            refusals.push(refusal);
            continue;
        }
        let digest = |side: Option<(_, &Digest)>| side.map(|(_, digest)| *digest);
        if digest(before) == digest(after) {
            continue;
        }
        let [before, after] = [before, after].map(|side| side.map(|(file, _)| file));
        if let Some(file) = after.or(before) {
            let id = format!("{FILE}{}", file.path);
            changes.push(Change { id, before: state(old, before), after: state(new, after) });
        }
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Problems(problems)),
    }
}

fn units<'a>(
    (old, from): (&NodeConfig<'a>, &Digests),
    (new, to): (&NodeConfig<'a>, &Digests),
    changes: &mut Vec<Change<'a>>,
) {
    let state = |unit: Option<&Unit<'a>>| unit.map_or(State::Absent, canonical::unit_state);
    let before = old.units.iter().zip(&from.units);
    let after = new.units.iter().zip(&to.units);
    for pair in canonical::join(before, after, |(unit, _)| unit.name.as_ref()) {
        let (before, after) = pair.sides();
        if before.map(|(_, digest)| digest) == after.map(|(_, digest)| digest) {
            continue;
        }
        let [before, after] = [before, after].map(|side| side.map(|(unit, _)| unit));
        if let Some(unit) = after.or(before) {
            let id = format!("{UNIT}{}", unit.name);
            changes.push(Change { id, before: state(before), after: state(after) });
        }
    }
}

const OS_IMAGE: &str = "os-image";

/// What a config sets once, by id.
fn settings<'a>(config: &NodeConfig<'a>) -> [(&'static str, State<'a>); 6] {
    let core = config.users.iter().find(|user| user.name == CORE);
    let kernel_type = Cow::Borrowed(config.kernel_type.as_str());
    [
        ("extensions", canonical::list_state(&config.extensions)),
        // In order: `hugepages=` counts pages of the `hugepagesz=` before it,
        // and of several `console=` the last becomes /dev/console.
        ("kernel-arguments", canonical::list_state(&config.kernel_arguments)),
        ("kernel-type", State::Text(kernel_type)),
        (OS_IMAGE, canonical::text_state(Some(&config.os_image))),
        ("password:core", canonical::text_state(core.and_then(canonical::password))),
        ("ssh-keys:core", canonical::list_state(core.map_or(&[], |user| &user.ssh_keys))),
    ]
}

fn settings_equal(id: &str, before: &State<'_>, after: &State<'_>) -> bool {
    match (before, after) {
        (State::Text(before), State::Text(after)) if id == OS_IMAGE => {
            canonical::os_image(before) == canonical::os_image(after)
        }
        _ => before == after,
    }
}
