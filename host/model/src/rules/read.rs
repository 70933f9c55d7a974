//! Files of rules: inline ones, and OpenShift's.

use super::inline::{self, Use};
use super::policy::RulesPolicy;
use crate::openshift;
use crate::problem::Problems;
use crate::read::fields::{Fields, unknown};
use crate::read::report::{Report, unless};
use crate::read::{Input, document_values};
use std::collections::BTreeSet;

/// Reads a file of rules: DisruptionPolicy objects with inline rules, and
/// OpenShift's MachineConfiguration.
pub fn read(input: &Input<'_>) -> Result<Vec<RulesPolicy>, Problems> {
    read_for(input, Use::Enforce)
}

/// As [`read`], for rules that are only tried: their mode may be `Shadow`.
pub fn read_shadow(input: &Input<'_>) -> Result<Vec<RulesPolicy>, Problems> {
    read_for(input, Use::Shadow)
}

/// As [`read`], whatever their mode: for whoever checks manifests.
pub fn read_any(input: &Input<'_>) -> Result<Vec<RulesPolicy>, Problems> {
    read_for(input, Use::Check)
}

fn read_for(input: &Input<'_>, wanted: Use) -> Result<Vec<RulesPolicy>, Problems> {
    let mut problems = Vec::new();
    let mut policies: Vec<RulesPolicy> = Vec::new();
    let mut names = BTreeSet::new();
    for document in document_values(input)? {
        let mut report = Report::new(input.name, &document.label);
        if let Some(object) = Fields::object(&document.value, "", &mut report)
            && let Some(policy) = read_object(&object, wanted, &mut report)
        {
            if !names.insert(policy.name.clone()) {
                let message = format!("{:?} is the name of an earlier policy too", policy.name);
                report.problem("metadata.name", message);
            }
            policies.push(policy);
        }
        problems.extend(report.into_problems());
    }
    unless(problems, policies)
}

const KINDS: [(&str, &str); 2] =
    [("DisruptionPolicy", inline::API_VERSION), ("MachineConfiguration", openshift::API_VERSION)];

fn read_object(object: &Fields<'_>, wanted: Use, report: &mut Report) -> Option<RulesPolicy> {
    let kind = object.required_string("kind", report)?;
    let Some((_, version)) = KINDS.iter().find(|(known, _)| *known == kind) else {
        let message = unknown("kind of rules", kind, &KINDS.map(|(kind, _)| kind));
        report.other_kind(object.at("kind"), kind, message);
        return None;
    };
    let found = object.required_string("apiVersion", report)?;
    if found != *version {
        let message = format!("{kind} has to be of {version}, found {found:?}");
        report.problem(object.at("apiVersion"), message);
        return None;
    }
    match kind {
        "DisruptionPolicy" => inline::read(object, wanted, report),
        _ => openshift::read(object, report),
    }
}
