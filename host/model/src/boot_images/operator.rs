//! The other truth: what OpenShift's own operator does about boot images from
//! 4.22 on, by its own rules.

use super::document::{field_at, shown};
use super::limits::{Limits, Stream};
use super::rule::Updater;
use super::version::{Release, Rhel};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The first release that has the check.
const FIRST: (u32, u32) = (4, 22);

/// Whether the operator holds an update back, and which version it decides by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Automatic, Manual, None; empty: it has not said.
    pub mode: String,
    /// The version that it compares; may be empty.
    pub version: String,
    /// Whether it holds updates back.
    pub blocks: bool,
    /// It looked at no version at all, although its mode asks for it.
    pub skipped: bool,
    /// Why, in words.
    pub message: String,
}

/// What the operator does, by MachineConfiguration `cluster`. None: this release
/// has no such check.
pub fn check(running: Option<Release>, object: Option<&Value>) -> Option<Check> {
    let running = running.filter(|release| release.line() >= FIRST)?;
    let stream = Stream { name: String::new(), own: true };
    let limits = Limits::of(Some(running), &stream, &[]);
    let status = object.map_or(&Value::Null, |object| field_at(object, "/status"));
    let enforced = field_at(status, "/bootImageSkewEnforcementStatus");
    let mode = field_at(enforced, "/mode").as_str().unwrap_or_default();
    let said = |blocks, skipped, version: &str, message: String| {
        Some(Check { mode: shown(mode), version: shown(version), blocks, skipped, message })
    };
    let given = match mode {
        "Automatic" => field_at(enforced, "/automatic"),
        "Manual" => field_at(enforced, "/manual"),
        "None" => return said(false, false, "", "its mode is None".to_owned()),
        _ => {
            return said(
                false,
                true,
                "",
                "it has not set a mode yet, and lets updates pass".to_owned(),
            );
        }
    };
    let text = |name: &str| field_at(given, &format!("/{name}")).as_str().unwrap_or_default();
    let (openshift, rhcos) = (text("ocpVersion"), text("rhcosVersion"));
    let version = if openshift.is_empty() { rhcos } else { openshift };
    if mode == "Automatic" {
        if let Some(message) = degraded(status) {
            return said(
                true,
                false,
                version,
                format!("its updater is degraded: {}", shown(message)),
            );
        }
        if let Some(waits) = progressing(status) {
            return said(
                false,
                true,
                version,
                format!("{waits}, and until then it lets updates pass"),
            );
        }
    }
    let below = if openshift.is_empty() {
        rhel_of(rhcos).zip(limits.rhel).map(|(rhel, limit)| rhel < limit)
    } else {
        generic(openshift).zip(limits.openshift).map(|(release, limit)| release < limit)
    };
    match below {
        Some(true) => said(true, false, version, "below its limit".to_owned()),
        Some(false) => said(false, false, version, "not below its limit".to_owned()),
        None => {
            let message = "it cannot read the version, and lets updates pass".to_owned();
            said(false, true, version, message)
        }
    }
}

fn condition<'s>(status: &'s Value, kind: &str) -> Option<&'s Value> {
    field_at(status, "/conditions")
        .as_array()?
        .iter()
        .find(|condition| field_at(condition, "/type") == kind)
}

/// How it stands with the operator's updater of boot images, where it has
/// anything to update.
pub fn updater(object: Option<&Value>) -> Updater {
    let status = object.map_or(&Value::Null, |object| field_at(object, "/status"));
    if field_at(status, "/bootImageSkewEnforcementStatus/mode") != "Automatic"
        && !managers(status).any(acts)
    {
        return Updater::Quiet;
    }
    match (degraded(status), progressing(status)) {
        (Some(message), _) => Updater::Degraded(shown(message)),
        (None, Some(waits)) => Updater::Progressing(waits.to_owned()),
        (None, None) => Updater::Quiet,
    }
}

/// What the updater recorded of the images that it manages: one version or both.
pub fn recorded(object: Option<&Value>) -> Vec<String> {
    let status = object.map_or(&Value::Null, |object| field_at(object, "/status"));
    let given = field_at(status, "/bootImageSkewEnforcementStatus/automatic");
    let texts = ["ocpVersion", "rhcosVersion"]
        .into_iter()
        .filter_map(|name| field_at(given, &format!("/{name}")).as_str());
    texts.filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

/// Whether the updater manages a resource of OpenShift's machine API with these
/// labels: `machinesets` or `controlplanemachinesets`.
pub fn manages(object: Option<&Value>, plural: &str, labels: &BTreeMap<String, String>) -> bool {
    let status = object.map_or(&Value::Null, |object| field_at(object, "/status"));
    managers(status).filter(|it| field_at(it, "/resource") == plural).any(|manager| {
        let selection = field_at(manager, "/selection");
        match field_at(selection, "/mode").as_str() {
            Some("All") => true,
            Some("Partial") => {
                selects(field_at(selection, "/partial/machineResourceSelector"), labels)
            }
            _ => false,
        }
    })
}

fn managers(status: &Value) -> impl Iterator<Item = &Value> {
    let all = field_at(status, "/managedBootImagesStatus/machineManagers").as_array();
    all.into_iter().flatten().filter(|it| field_at(it, "/apiGroup") == "machine.openshift.io")
}

fn acts(manager: &Value) -> bool {
    field_at(manager, "/selection/mode") != "None"
}

/// Whether a selector takes these labels. One that cannot be read takes none.
fn selects(selector: &Value, labels: &BTreeMap<String, String>) -> bool {
    let has = |key: &str, value: &Value| labels.get(key).is_some_and(|it| value == it.as_str());
    let exact = field_at(selector, "/matchLabels").as_object();
    let exact = exact.into_iter().flatten().all(|(key, value)| has(key, value));
    let expressions = field_at(selector, "/matchExpressions").as_array();
    exact
        && expressions.into_iter().flatten().all(|it| {
            let Some(key) = field_at(it, "/key").as_str() else { return false };
            let within = field_at(it, "/values")
                .as_array()
                .is_some_and(|all| all.iter().any(|v| has(key, v)));
            match field_at(it, "/operator").as_str() {
                Some("In") => within,
                Some("NotIn") => !within,
                Some("Exists") => labels.contains_key(key),
                Some("DoesNotExist") => !labels.contains_key(key),
                _ => false,
            }
        })
}

/// Why its updater is degraded, if it is.
pub fn degraded(status: &Value) -> Option<&str> {
    let found = condition(status, "BootImageUpdateDegraded")
        .filter(|it| field_at(it, "/status") == "True")?;
    Some(field_at(found, "/message").as_str().unwrap_or_default())
}

/// What its updater is at, if it is not done.
pub fn progressing(status: &Value) -> Option<&'static str> {
    match condition(status, "BootImageUpdateProgressing") {
        None => Some("it has not looked at the machine resources yet"),
        Some(found) if field_at(found, "/status") == "True" => {
            Some("it is changing machine resources")
        }
        Some(_) => None,
    }
}

/// Numbers with dots, from one on, as the operator reads a version: what comes
/// after them is dropped.
fn generic(text: &str) -> Option<Release> {
    let numbers = text.strip_prefix('v').unwrap_or(text).split(['-', '+', '~']).next()?;
    let parts: Option<Vec<u32>> = numbers.split('.').map(|part| part.parse().ok()).collect();
    let parts = parts?;
    let at = |index: usize| parts.get(index).copied().unwrap_or(0);
    (parts.len() >= 2).then(|| Release::new(at(0), at(1), at(2)))
}

/// The RHEL that the operator reads from a version of RHCOS.
fn rhel_of(text: &str) -> Option<Rhel> {
    let mut parts = text.split('.');
    let (major, minor, stamp) = (parts.next()?, parts.next()?, parts.next()?);
    let stamp = stamp.split('-').next()?;
    let (major, minor) = match stamp.len() {
        8 => (major, minor),
        12 if minor.len() >= 2 => minor.split_at_checked(1)?,
        _ => return None,
    };
    Some(Rhel::new(major.parse().ok()?, minor.parse().ok()?))
}
