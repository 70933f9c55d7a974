//! The internal release image registry of a control plane, from which CRI-O pulls: a container that
//! `iri-registry.service` starts once its script has loaded the image.
//!
//! The start counts as done before the registry has read its files. So a restart tells nobody that it ends
//! for want of one.

use crate::anchors;
use crate::state::{bytes, is_gone};
use std::iter;
use tread_guest_sdk::{Action, Change, Content, State, Unit, Verdict};

const UNIT: &str = "iri-registry.service";
const DIRECTORY: &str = "/etc/iri-registry/";
const CERTIFICATE: &str = "/etc/iri-registry/certs/tls.crt";
const KEY: &str = "/etc/iri-registry/certs/tls.key";

pub(crate) const READ: &str = "the internal release image registry reads its files when it starts";
pub(crate) const GONE: &str = "the internal release image registry reads its files when it starts, and may not start without this one; then a pull that worked fails";
pub(crate) const NO_CERTIFICATE: &str = "this file holds no certificate in PEM; the internal release image registry would not start with it, and pulls from it would fail. Correct it";
pub(crate) const NO_KEY: &str = "this file holds no private key in PEM; the internal release image registry would not start with it, and pulls from it would fail. Correct it";
pub(crate) const SCRIPT_READ: &str =
    "the script runs when the internal release image registry starts";
pub(crate) const SCRIPT_NOT_RUN: &str = "nobody may run this script, without which the internal release image registry does not start; make it executable";
pub(crate) const SCRIPT_GONE: &str = "the script runs when the internal release image registry starts, which does not start without it; then a pull that worked fails";

pub(crate) fn is_file(path: &str) -> bool {
    path.starts_with(DIRECTORY)
}

/// The verdict on one of the registry's files.
pub(crate) fn file(path: &str, change: &Change) -> Verdict {
    if is_gone(&change.after) {
        return goes(change, READ, GONE);
    }
    match (path, bytes(&change.after)) {
        (CERTIFICATE, Some(bytes)) if !anchors::may_hold_one(bytes) => {
            Verdict::refuse(NO_CERTIFICATE)
        }
        (KEY, Some(bytes)) if !anchors::may_hold_key(bytes) => Verdict::refuse(NO_KEY),
        _ => Verdict::restart(UNIT, READ),
    }
}

/// The verdict on what loads the registry's image.
pub(crate) fn script(change: &Change) -> Verdict {
    if is_gone(&change.after) {
        return goes(change, SCRIPT_READ, SCRIPT_GONE);
    }
    let was_run = is_gone(&change.before) || may_be_run(&change.before);
    if was_run && !may_be_run(&change.after) {
        return Verdict::refuse(SCRIPT_NOT_RUN);
    }
    Verdict::restart(UNIT, SCRIPT_READ)
}

fn may_be_run(state: &State) -> bool {
    matches!(state, State::File(file) if file.mode & 0o111 != 0)
}

fn goes(change: &Change, nothing_was: &str, why: &str) -> Verdict {
    if is_gone(&change.before) {
        return Verdict::restart(UNIT, nothing_was);
    }
    Verdict::drain(why).and(Action::restart(UNIT))
}

/// Whether the configuration turns a unit on.
#[derive(PartialEq, Eq)]
enum Turned {
    On,
    Off,
    /// What the node's presets say, or whoever turned it on or off before.
    LeftOpen,
}

fn turned(state: &State) -> Turned {
    match state.as_unit() {
        // OpenShift's own way to turn it off: it runs once, does nothing, and is enabled.
        Some(unit) if runs_once(unit) => Turned::Off,
        Some(unit) if !unit.masked => match unit.enabled {
            Some(true) => Turned::On,
            Some(false) => Turned::Off,
            None => Turned::LeftOpen,
        },
        _ => Turned::Off,
    }
}

/// Whether it is over once it has run: the last `Type=` says so.
fn runs_once(unit: &Unit) -> bool {
    let texts = iter::once(&unit.contents).chain(unit.dropins.iter().map(|it| &it.contents));
    let lines = texts.filter_map(Content::text).flat_map(str::lines);
    let mut types =
        lines.filter_map(|line| line.trim().strip_prefix("Type")?.trim().strip_prefix('='));
    types.next_back().is_some_and(|last| last.trim() == "oneshot")
}

/// A restart makes a running registry take its new unit. It neither starts one
/// that the configuration turns on, nor stops one that it turns off.
pub(crate) fn unit(change: &Change) -> Verdict {
    match (turned(&change.before), turned(&change.after)) {
        (before, after) if before == after => Verdict::restart(
            UNIT,
            "the internal release image registry takes its new unit when it starts",
        )
        .and(Action::DaemonReload),
        (_, Turned::Off) => Verdict::reboot(
            "the internal release image registry is turned off, but goes on running until the \
             node boots",
        ),
        (Turned::On, _) => Verdict::reboot(
            "whether the internal release image registry is on is left to the node; if that turns \
             it off, it goes on running until the node boots",
        ),
        _ => Verdict::reboot(
            "the internal release image registry is turned on, and enabled units start at boot",
        ),
    }
}
