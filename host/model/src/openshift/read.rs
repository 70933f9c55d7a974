//! From a MachineConfiguration to rules, checked as OpenShift's API server checks it.

use super::api::{MOST_ACTIONS, MOST_ENTRIES, POLICY_NAME, check_service};
use super::convert::{Actions, Entry, convert};
use crate::claim::{Pattern, escaped};
use crate::path::clean;
use crate::read::fields::{Fields, unknown};
use crate::read::report::Report;
use crate::rules::policy::RulesPolicy;
use crate::rules::rule::RuleAction;
use crate::touch::touch;
use crate::unit_name::{can_be_restarted, is_unit_name};
use crate::verdict::Layer;
use std::collections::BTreeSet;

/// Reads an object whose kind and version are known. Only the user's entries
/// act; where one of OpenShift's defaults is closer, or nothing matches, the
/// policy abstains, so that the built-ins decide.
pub(crate) fn read(object: &Fields<'_>, report: &mut Report) -> Option<RulesPolicy> {
    object.only(&["apiVersion", "kind", "metadata", "spec", "status"], report);
    let metadata = object.child("metadata", report);
    let name = metadata.as_ref().and_then(|metadata| metadata.string("name", report));
    if name != Some("cluster") {
        let found = name.map_or("none".to_owned(), |name| format!("{name:?}"));
        let message =
            format!("has to be \"cluster\", found {found}: OpenShift reads no other object");
        report.problem("metadata.name", message);
    }
    let spec = object.child("spec", report);
    let policy = spec.as_ref().and_then(|spec| spec.child(POLICY_NAME, report));
    let (mut files, mut units, mut ssh_keys) = (Vec::new(), Vec::new(), None);
    if let Some(policy) = &policy {
        policy.only(&["files", "sshkey", "units"], report);
        files = read_entries(policy, "files", "path", report);
        check_paths(policy, &files, report);
        units = read_entries(policy, "units", "name", report);
        if let Some(keys) = policy.child("sshkey", report) {
            keys.only(&["actions"], report);
            ssh_keys = Some(read_actions(&keys, report));
        }
    }
    if !report.is_clean() {
        return None;
    }
    let (rules, mut warnings) = convert(&files, &units, ssh_keys.as_ref());
    let policy = RulesPolicy::new(POLICY_NAME, Layer::Admin, rules);
    if policy.claims.is_empty() {
        warnings.push(format!(
            "MachineConfiguration/cluster has no {POLICY_NAME} entry that could act."
        ));
    }
    warnings.extend(policy.warnings);
    Some(RulesPolicy { warnings, ..policy })
}

fn read_entries<'v>(
    policy: &Fields<'v>,
    list: &str,
    key: &str,
    report: &mut Report,
) -> Vec<Entry<'v>> {
    let mut seen = BTreeSet::new();
    let mut entries = Vec::new();
    for (index, fields) in policy.objects(list, report) {
        fields.only(&["actions", key], report);
        let name = match fields.string(key, report) {
            // OpenShift takes an empty path, which matches nothing.
            Some(name) => name,
            None => {
                if fields.get(key).is_none() {
                    report.problem(fields.at(key), "is missing: expected a string");
                }
                continue;
            }
        };
        if !seen.insert(name) {
            let message = format!("{name:?} stands in {list} twice");
            report.problem(fields.at(key), message);
        }
        if key == "name"
            && let Err(message) = check_service(name, is_unit_name)
        {
            report.problem(fields.at(key), message);
        }
        if fields.get("actions").is_none() {
            report.problem(fields.at("actions"), "is missing: expected a list of actions");
        }
        entries.push(Entry { index, name, actions: read_actions(&fields, report) });
    }
    let count = policy.list(list, report).len();
    if count > MOST_ENTRIES {
        let message = format!("{count} entries: OpenShift takes {MOST_ENTRIES} at most");
        report.problem(policy.at(list), message);
    }
    entries
}

/// OpenShift takes any text for a path; what cannot be a path in a claim is
/// refused here.
fn check_paths(policy: &Fields<'_>, files: &[Entry<'_>], report: &mut Report) {
    for file in files {
        let clean = clean(file.name);
        // What matches nothing needs no pattern.
        let matches_something = clean.starts_with('/') && clean != "/";
        let pattern = format!("file:{}/**", escaped(&clean));
        if matches_something && let Err(error) = Pattern::parse(&pattern) {
            report.problem(format!("{}[{}].path", policy.at("files"), file.index), error);
        }
    }
}

fn read_actions(entry: &Fields<'_>, report: &mut Report) -> Actions {
    let mut actions = Vec::new();
    let mut types = Vec::new();
    for (_, fields) in entry.objects("actions", report) {
        fields.only(&["reload", "restart", "type"], report);
        let Some(kind) = fields.required_string("type", report) else { continue };
        types.push(kind);
        let service = |of: &str, report: &mut Report| {
            let wanted = kind.to_ascii_lowercase() == of;
            match (wanted, fields.get(of).is_some()) {
                (true, true) => read_service(&fields, of, report),
                (true, false) => {
                    let message = format!("is missing: expected it beside `type: {kind}`");
                    report.problem(fields.at(of), message);
                    None
                }
                (false, true) => {
                    let message = format!("cannot stand beside `type: {kind}`");
                    report.problem(fields.at(of), message);
                    None
                }
                (false, false) => None,
            }
        };
        let (reload, restart) = (service("reload", report), service("restart", report));
        let action = match kind {
            "Reload" => reload.map(|unit| touching(unit, |unit| RuleAction::Reload { unit })),
            "Restart" => restart.map(|unit| touching(unit, |unit| RuleAction::Restart { unit })),
            "DaemonReload" => Some(RuleAction::DaemonReload),
            "Drain" => Some(RuleAction::Drain),
            "Reboot" => Some(RuleAction::Reboot),
            "None" => None,
            other => {
                let known = ["Reboot", "Drain", "Reload", "Restart", "DaemonReload", "None"];
                report.problem(fields.at("type"), unknown("type of action", other, &known));
                None
            }
        };
        actions.extend(action);
    }
    let count = entry.list("actions", report).len();
    if count > MOST_ACTIONS {
        let message = format!("{count} actions: OpenShift takes {MOST_ACTIONS} at most");
        report.problem(entry.at("actions"), message);
    }
    if actions.contains(&RuleAction::Reboot) {
        actions = vec![RuleAction::Reboot];
    }
    for alone in ["Reboot", "None"] {
        if types.contains(&alone) && types.len() > 1 {
            report.problem(entry.at("actions"), format!("{alone} has to stand alone"));
        }
    }
    Actions { actions, is_empty: count == 0 }
}

/// OpenShift takes the name of any unit. One that ends the system is the reboot
/// that it comes to.
fn touching(unit: String, action: impl FnOnce(String) -> RuleAction) -> RuleAction {
    match touch(&unit) {
        Ok(_) => action(unit),
        Err(_) => RuleAction::Reboot,
    }
}

fn read_service(action: &Fields<'_>, of: &str, report: &mut Report) -> Option<String> {
    let fields = action.child(of, report)?;
    fields.only(&["serviceName"], report);
    let name = fields.required_string("serviceName", report)?;
    match check_service(name, can_be_restarted) {
        Ok(()) => Some(name.to_owned()),
        Err(message) => {
            report.problem(fields.at("serviceName"), message);
            None
        }
    }
}
