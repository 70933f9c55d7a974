//! The mirrors that objects name, by source.

use super::order::merge;
use super::scope::{check_mirror, check_source};
use crate::problem::Problems;
use crate::read::fields::{Fields, unknown};
use crate::read::report::{Report, unless};
use crate::read::{MirrorKind, MirrorObject};
use std::collections::BTreeMap;

/// Everything that the objects of one side say, in the order of the sources.
#[derive(Debug, Default)]
pub(super) struct MirrorSets {
    /// For pulls by digest.
    pub(super) digest: BTreeMap<String, Sets>,
    /// For pulls by tag.
    pub(super) tag: BTreeMap<String, Sets>,
}

impl MirrorSets {
    /// Whether no set names a mirror.
    pub(super) fn is_empty(&self) -> bool {
        self.digest.is_empty() && self.tag.is_empty()
    }
}

/// What is said of one source.
#[derive(Debug, Default)]
pub(super) struct Sets {
    lists: Vec<Vec<String>>,
    /// The source itself is never contacted.
    pub(super) blocked: bool,
}

impl Sets {
    /// All mirrors, in one order.
    pub(super) fn mirrors<'s>(&'s self, source: &'s str) -> Vec<&'s str> {
        let lists: Vec<&[String]> = self.lists.iter().map(Vec::as_slice).collect();
        merge(source, &lists)
    }
}

/// One entry of an object.
struct Set<'v> {
    source: &'v str,
    mirrors: Vec<String>,
    never_contact_source: bool,
}

/// Reads all objects, and reports what OpenShift would refuse.
pub(super) fn read(objects: &[MirrorObject]) -> Result<MirrorSets, Problems> {
    let mut objects: Vec<&MirrorObject> = objects.iter().collect();
    objects.sort_by_key(|object| (object.kind, &object.name));
    let mut problems = Vec::new();
    let mut sets = MirrorSets::default();
    // Of each source, whether it may be contacted, and which object says so.
    let mut policies: BTreeMap<&str, (bool, &str)> = BTreeMap::new();
    for object in objects {
        let mut report = Report::new(&object.file, &object.document);
        for (at, set) in read_object(object, &mut report) {
            let never = set.never_contact_source;
            let (known, by) = *policies.entry(set.source).or_insert((never, &object.name));
            if known != never {
                let message = format!(
                    "{:?} has AllowContactingSource in one set and NeverContactSource in another \
                     (see {by}): OpenShift renders neither",
                    set.source
                );
                report.problem(at, message);
            }
            // Mirrors that only repeat the source are none.
            if set.mirrors.iter().any(|mirror| mirror != set.source) {
                let by_source = match object.kind {
                    MirrorKind::Icsp | MirrorKind::Idms => &mut sets.digest,
                    MirrorKind::Itms => &mut sets.tag,
                };
                let merged = by_source.entry(set.source.to_owned()).or_default();
                merged.lists.push(set.mirrors);
                merged.blocked |= never;
            }
        }
        problems.extend(report.into_problems());
    }
    unless(problems, sets)
}

fn read_object<'v>(object: &'v MirrorObject, report: &mut Report) -> Vec<(String, Set<'v>)> {
    let (list, known): (_, &[&str]) = match object.kind {
        MirrorKind::Icsp => ("repositoryDigestMirrors", &["mirrors", "source"]),
        MirrorKind::Idms => ("imageDigestMirrors", &["mirrorSourcePolicy", "mirrors", "source"]),
        MirrorKind::Itms => ("imageTagMirrors", &["mirrorSourcePolicy", "mirrors", "source"]),
    };
    let Some(fields) = Fields::object(&object.value, "", report) else { return Vec::new() };
    fields.only(&["apiVersion", "kind", "metadata", "spec", "status"], report);
    let Some(spec) = fields.child("spec", report) else {
        if fields.get("spec").is_none() {
            report.problem("spec", format!("is missing: expected an object with {list}"));
        }
        return Vec::new();
    };
    spec.only(&[list], report);
    let entries = spec.objects(list, report);
    entries
        .into_iter()
        .filter_map(|(_, fields)| {
            fields.only(known, report);
            Some((fields.path().to_owned(), read_set(&fields, report)?))
        })
        .collect()
}

fn read_set<'v>(fields: &Fields<'v>, report: &mut Report) -> Option<Set<'v>> {
    let source = fields.required_string("source", report);
    if let Some(Err(error)) = source.map(check_source) {
        report.problem(fields.at("source"), error);
    }
    let never_contact_source = match fields.string("mirrorSourcePolicy", report) {
        None | Some("" | "AllowContactingSource") => false,
        Some("NeverContactSource") => true,
        Some(other) => {
            let known = ["AllowContactingSource", "NeverContactSource"];
            report.problem(fields.at("mirrorSourcePolicy"), unknown("policy", other, &known));
            false
        }
    };
    let mut mirrors = Vec::new();
    for (index, mirror) in fields.strings("mirrors", report) {
        let at = format!("{}[{index}]", fields.at("mirrors"));
        if let Err(error) = check_mirror(mirror) {
            report.problem(at, error);
        } else if never_contact_source && Some(mirror) == source {
            report.problem(at, "is the source itself, which NeverContactSource forbids to contact");
        }
        mirrors.push(mirror.to_owned());
    }
    Some(Set { source: source?, mirrors, never_contact_source })
}
