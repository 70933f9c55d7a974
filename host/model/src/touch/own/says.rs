//! What the text of a unit says of the system.

use super::commands::{reaches_the_kernel, runs_the_end};
use super::directives::is_known;
use super::lines::{Setting, settings};
use super::names::{Known, resolved, unescaped};
use super::needed::is_missed;
use super::relations::{self, Does};
use crate::touch::{ends_the_system, touch_gently};
use crate::unit_name::{is_template, kind_of_unit};
use std::borrow::Cow;

/// What a unit can have done to the system when it ends, fails or hangs.
const ACTIONS: [&str; 4] =
    ["SuccessAction", "FailureAction", "JobTimeoutAction", "StartLimitAction"];

/// What is run, or handed to what runs, besides `Exec…=`: the rest of them are Quadlet's.
const COMMANDS: [&str; 6] =
    ["StandardInputText", "Entrypoint", "HealthCmd", "HealthStartupCmd", "PodmanArgs", "ReloadCmd"];

/// Why a unit is not touched gently.
pub(super) enum Why {
    /// It ends or isolates the system, or stops what a node needs: a clause that quotes
    /// no value, and the line that it is about.
    Ends { what: String, line: usize },
    /// It says more than is looked at.
    More { section: String, key: String, line: usize },
}

/// Why it is not gentle that this comes of a unit, by its text. What is made of its values is taken from
/// `room`.
pub(super) fn ends(
    text: &str,
    name: &str,
    comes: Does,
    room: &mut usize,
    is_own_target: impl Fn(&str) -> bool,
) -> Option<Why> {
    let mut more = None;
    for setting in settings(text) {
        let (key, line) = (&*setting.key, setting.line);
        let handed_on = match is_handed_on(key) {
            true => handed_on(&setting.value, name, room),
            false => Some(Cow::Borrowed(&*setting.value)),
        };
        let what = handed_on.as_ref().and_then(|value| setting_ends(key, value));
        let what = what.or_else(|| relation_ends(&setting, name, comes, &is_own_target));
        if let Some(what) = what {
            return Some(Why::Ends { what, line });
        }
        // What is known to end the system says more than that something is not known.
        if more.is_none() && (handed_on.is_none() || !is_known(&setting.section, key)) {
            let (section, key) = (setting.section.to_string(), key.to_owned());
            more = Some(Why::More { section, key, line });
        }
    }
    more
}

/// Whether systemd hands a value on to what it runs, or to the kernel.
fn is_handed_on(key: &str) -> bool {
    let is_standard = key.starts_with("Standard") && key != "StandardInputData";
    is_standard || key.starts_with("Exec") || COMMANDS.contains(&key)
}

/// A value as systemd hands it on: with what its escapes and specifiers stand for. None: it is longer than is
/// looked at, or than there is room for.
pub(super) fn handed_on<'v>(value: &'v str, name: &str, room: &mut usize) -> Option<Cow<'v, str>> {
    let value = match unescaped(value) {
        Cow::Borrowed(value) => resolved(value, name)?,
        Cow::Owned(value) => Cow::Owned(resolved(&value, name)?.into_owned()),
    };
    if let Cow::Owned(made) = &value {
        *room = room.checked_sub(made.len())?;
    }
    Some(value)
}

/// Why a directive is not gentle by itself. Its value is as systemd hands it on.
fn setting_ends(key: &str, value: &str) -> Option<String> {
    if ACTIONS.contains(&key) && !matches!(value, "" | "none") {
        return Some(format!("has {key}=, by which the system ends"));
    }
    if key.starts_with("Standard") && reaches_the_kernel(value) {
        return Some(format!("reaches the kernel's sysrq, by {key}="));
    }
    let isolates = key.ends_with("JobMode") && value.contains("isolate");
    if isolates || key == "OnFailureIsolate" && !matches!(value, "" | "no" | "false" | "0" | "off")
    {
        return Some(format!("isolates another unit, by {key}="));
    }
    if key == "StandardInputData" && !value.is_empty() {
        return Some(format!("hands on what is not looked at, by {key}="));
    }
    if (key.starts_with("Exec") || COMMANDS.contains(&key)) && runs_the_end(value) {
        return Some(format!("runs what ends the system, by {key}="));
    }
    None
}

fn relation_ends(
    setting: &Setting<'_>,
    name: &str,
    comes: Does,
    is_own_target: impl Fn(&str) -> bool,
) -> Option<String> {
    let key = &*setting.key;
    let relations::Relations { relation, named } = relations::of(setting, name)?;
    let to = relation.to?;
    let does = to.after(comes)?;
    if key == "RequiredBy" && named.units.iter().any(|unit| unit == "local-fs.target") {
        return Some(
            "is required by local-fs.target, without which the system isolates itself".to_owned(),
        );
    }
    if named.too_many {
        return Some(format!("names more units than are looked at, by {key}="));
    }
    // If the template of an instance is known, the template is looked at.
    let is_unknown = named.patterns.iter().any(|pattern| match pattern.known() {
        Known::Nothing => false,
        Known::Template(template) => is_harsh(to, does, &template),
        Known::No => matches!(does, Does::Start | Does::Stop),
    });
    if is_unknown {
        return Some(format!("names units that only systemd can tell, by {key}="));
    }
    let mut units = named.units.iter();
    units
        .find(|unit| is_harsh(to, does, unit) && !(does == Does::Restart && is_own_target(unit)))?;
    Some(match to {
        Does::Start => format!("starts what ends the system, by {key}="),
        Does::Stop => format!("stops what a node needs, by {key}="),
        Does::Restart => format!("takes much of a node with it where it stops, by {key}="),
        _ => format!(
            "is another name of what ends the system, or of what much of a node needs, by {key}="
        ),
    })
}

/// Whether it is not gentle if a directive says `said` of a unit, and `comes` happens to it.
pub(super) fn is_harsh(said: Does, comes: Does, unit: &str) -> bool {
    // Of a template an instance runs.
    let unit = match is_template(unit) {
        true => &unit.replacen('@', "@x", 1),
        false => unit,
    };
    match if said == Does::Be { said } else { comes } {
        // A mount that the system needs is mounted already: to start it changes nothing.
        Does::Start => ends_the_system(unit) && !unit.ends_with(".mount"),
        Does::Stop => is_missed(unit),
        Does::Restart => touch_gently(unit).is_err(),
        Does::Be => touch_gently(unit).is_err() && kind_of_unit(unit).is_some(),
        Does::Reload => false,
    }
}
