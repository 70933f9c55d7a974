//! The reader that takes its time: all documents of one side, how they become one
//! node config, and what is wrong with them.

use super::document::{
    Document, Input, MirrorKind, MirrorObject, documents_and_problems, without_documents,
};
use super::fields::{Fields, unknown};
use super::layer::Layer;
use super::makeup::{Makeup, is_base, merge_order};
use super::merge::merge;
use super::report::Report;
use super::side::Side;
use super::{ignition, machine_config};
use crate::config::Place;
use crate::problem::Problem;
use crate::text::listed;
use std::collections::BTreeMap;

/// The order in which the configs of a side are merged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// As the operator does it for the one pool whose roles they say.
    ByRole,
    AsGiven,
}

/// What to say of a file with no object in it.
const NOTHING: &str = "holds no document: expected at least one MachineConfig";

/// What tread reads, for errors.
const READS: &str = "tread reads MachineConfig, ImageContentSourcePolicy, ImageDigestMirrorSet, \
    ImageTagMirrorSet, and Ignition configs";

/// The kinds of objects that make up a side, with their apiVersion.
const KINDS: [(&str, &str, Kind); 4] = [
    ("MachineConfig", machine_config::MACHINE_CONFIG_API, Kind::MachineConfig),
    ("ImageContentSourcePolicy", "operator.openshift.io/v1alpha1", Kind::Mirrors(MirrorKind::Icsp)),
    ("ImageDigestMirrorSet", "config.openshift.io/v1", Kind::Mirrors(MirrorKind::Idms)),
    ("ImageTagMirrorSet", "config.openshift.io/v1", Kind::Mirrors(MirrorKind::Itms)),
];

#[derive(Clone, Copy)]
enum Kind {
    MachineConfig,
    Ignition,
    Mirrors(MirrorKind),
}

/// Reads one side; adds what is wrong with it to `problems`, and then returns
/// whatever could be read.
pub(super) fn read(
    what: &str,
    inputs: &[Input<'_>],
    order: Order,
    problems: &mut Vec<Problem>,
) -> Side<'static> {
    let mut reading = Reading::default();
    if inputs.is_empty() {
        problems.push(Problem {
            message: format!("the {what} side has no file: expected at least one MachineConfig"),
            ..Problem::default()
        });
    }
    // Lists without items stand beside what holds something: there may be no mirrors yet.
    let mut has_any = false;
    for input in inputs {
        let (documents, mut problems) = documents_and_problems(input, NOTHING);
        has_any |= !(documents.is_empty() && problems.is_empty());
        reading.problems.append(&mut problems);
        documents.into_iter().for_each(|document| reading.document(input.name, document));
    }
    if let (false, Some(first)) = (has_any, inputs.first()) {
        reading.problems.push(without_documents(first, NOTHING));
    }
    reading.check_names();
    let makeup = match reading.check_rendered() {
        Some(pool) => Makeup::Rendered(pool),
        None if order == Order::AsGiven => reading.makeup(is_base),
        None => reading.sort_by_role(),
    };
    problems.append(&mut reading.problems);
    let layers = reading.layers.into_iter().map(|(layer, _)| layer).collect();
    let mut config = merge(layers);
    if config.name.is_empty() {
        let names: Vec<_> = reading.mirrors.iter().map(|object| object.name.as_str()).collect();
        config.name = names.join("+").into();
    }
    config.places = reading.places;
    Side { config, mirrors: reading.mirrors, makeup }
}

/// The one MachineConfig that a file holds. None: it holds something else, or something
/// is wrong with it.
pub(super) fn machine_config(input: &Input<'_>) -> Option<Layer> {
    let mut reading = Reading::default();
    let (documents, problems) = documents_and_problems(input, NOTHING);
    let [document] = <[Document; 1]>::try_from(documents).ok()?;
    if !(problems.is_empty() && document.label.is_empty()) {
        return None;
    }
    reading.document(input.name, document);
    let is_machine_config = reading.places.iter().all(|place| place.config == MACHINE_CONFIG);
    let (layer, _) = reading.layers.pop()?;
    (is_machine_config && reading.problems.is_empty()).then_some(layer)
}

/// Where the Ignition config stands in a MachineConfig.
pub(super) const MACHINE_CONFIG: &str = "spec.config";

/// What was read so far.
#[derive(Default)]
struct Reading {
    /// Each with the index of its place.
    layers: Vec<(Layer, usize)>,
    mirrors: Vec<MirrorObject>,
    places: Vec<Place>,
    problems: Vec<Problem>,
}

impl Reading {
    fn document(&mut self, file: &str, mut document: Document) {
        let number = self.places.len();
        let mut place = Place {
            file: file.to_owned(),
            document: document.label.clone(),
            config: MACHINE_CONFIG,
        };
        let origin = u32::try_from(number).unwrap_or(u32::MAX);
        let mut report = Report::new(file, &document.label);
        ignition::leave_out_of_document(&mut document.value, &mut report);
        let fields = Fields::object(&document.value, "", &mut report);
        match fields.as_ref().and_then(|fields| Some((fields, kind(fields, &mut report)?))) {
            Some((fields, Kind::MachineConfig)) => {
                let layer = machine_config::read(fields, origin, &mut report);
                self.layers.push((layer, number));
            }
            Some((fields, Kind::Ignition)) => {
                // Without its directory: the directory in which a file is named must
                // not decide which of several configs comes last.
                let name = file.rsplit('/').next().unwrap_or(file);
                let mut layer = Layer { name: name.to_owned(), ..Layer::default() };
                if !document.label.is_empty() {
                    layer.name = format!("{name}, document {}", document.label);
                }
                place.config = "";
                ignition::read(fields, origin, &mut layer, &mut report);
                self.layers.push((layer, number));
            }
            Some((fields, Kind::Mirrors(kind))) => self.mirrors.push(MirrorObject {
                kind,
                name: machine_config::name(fields, &mut report),
                value: document.value.clone(),
                file: file.to_owned(),
                document: document.label.clone(),
            }),
            None => {}
        }
        self.places.push(place);
        self.problems.append(&mut report.into_problems());
    }

    fn problem(&mut self, place: usize, path: &str, message: String) {
        if let Some(place) = self.places.get(place) {
            let mut report = Report::new(&place.file, &place.document);
            report.problem(path, message);
            self.problems.append(&mut report.into_problems());
        }
    }

    /// Reports MachineConfigs of the same name.
    fn check_names(&mut self) {
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        let mut twins = Vec::new();
        for (layer, place) in self.layers.iter().filter(|(layer, _)| !layer.name.is_empty()) {
            match first.get(layer.name.as_str()) {
                Some(there) => twins.push((layer.name.clone(), *there, *place)),
                None => _ = first.insert(&layer.name, *place),
            }
        }
        for (name, there, here) in twins {
            let there = self.places.get(there).map(Place::to_string).unwrap_or_default();
            let message = format!("{name:?} is the name of two configs on this side: see {there}");
            self.problem(here, "metadata.name", message);
        }
    }

    /// Brings the configs into the order in which the operator merges them for
    /// a pool, and reports configs that are not for one pool.
    fn sort_by_role(&mut self) -> Makeup {
        fn order((layer, _): &(Layer, usize)) -> (bool, &str) {
            merge_order(layer.role.as_deref(), &layer.name)
        }
        self.layers.sort_by(|a, b| order(a).cmp(&order(b)));
        // A config that says nothing belongs to a pool of workers as well.
        let role = |layer: &Layer| match layer.role.as_deref() {
            None | Some("") => "worker".to_owned(),
            Some(role) => role.to_owned(),
        };
        let mut roles: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (layer, place) in &self.layers {
            roles.entry(role(layer)).or_default().push(*place);
        }
        let makeup = self.makeup(is_base);
        let base = roles.keys().filter(|role| is_base(role)).count();
        if base <= 1 && roles.len() - base <= 1 {
            return makeup;
        }
        let pools = roles.iter().map(|(role, places)| {
            let files =
                places.iter().filter_map(|place| Some(self.places.get(*place)?.to_string()));
            format!("{role}: {}", files.collect::<Vec<_>>().join(", "))
        });
        let message = format!(
            "the configs of this side are for several pools ({}): give those of one pool",
            pools.collect::<Vec<_>>().join("; ")
        );
        let first = roles.values().flatten().min().copied().unwrap_or_default();
        self.problem(first, "metadata.labels", message);
        makeup
    }

    /// Of single configs: a custom pool has the configs of the base one too.
    fn makeup(&self, is_base: impl Fn(&str) -> bool) -> Makeup {
        let single = |(layer, _): &(Layer, usize)| match &layer.makeup {
            Makeup::Single(pool) => Some(pool.clone()),
            _ => None,
        };
        let pools: Vec<Option<String>> = self.layers.iter().filter_map(single).collect();
        if pools.is_empty() {
            return Makeup::Unknown;
        }
        let named = || pools.iter().flatten();
        Makeup::Single(named().find(|pool| !is_base(pool)).or_else(|| named().next()).cloned())
    }

    /// The pool of the rendered config, if the side is one. Such a config is a
    /// whole already: anything beside it is reported, with what to give.
    fn check_rendered(&mut self) -> Option<String> {
        let rendered = |(layer, _): &(Layer, usize)| match &layer.makeup {
            Makeup::Rendered(pool) => Some(pool.clone()),
            _ => None,
        };
        let pool = self.layers.iter().find_map(rendered)?;
        let whole = self.layers.iter().filter(|layer| rendered(layer).is_some());
        let whole: Vec<(String, usize)> =
            whole.map(|(layer, place)| (layer.name.clone(), *place)).collect();
        let [(name, first), others @ ..] = whole.as_slice() else { return None };
        if let Some((_, place)) = others.first() {
            let message = format!(
                "this side has {} rendered configs ({}), and each is all that a node has: give \
                 one. `oc get machineconfigpool {pool} -o jsonpath='{{.spec.configuration.name}}'` \
                 tells which one a pool is to have, `.status.configuration.name` which one it has",
                whole.len(),
                shortened(whole.iter().map(|(name, _)| name.as_str())),
            );
            self.problem(*place, "metadata.name", message);
        } else if self.layers.len() > 1 {
            let beside = self.layers.iter().filter(|layer| rendered(layer).is_none());
            let message = format!(
                "{name} is a rendered config, which is all that a node has, and is not merged with \
                 others: give it alone, or leave it out and give all the configs of the pool that \
                 it was rendered from; beside it stand {}",
                shortened(beside.map(|(layer, _)| layer.name.as_str())),
            );
            self.problem(*first, "metadata.name", message);
        }
        Some(pool)
    }
}

/// The first names of many.
fn shortened<'n>(names: impl Iterator<Item = &'n str>) -> String {
    listed(&names.collect::<Vec<_>>(), 5)
}

/// What to give in place of objects that people may take for configs.
fn instead(kind: &str) -> Option<&'static str> {
    const RENDERED: &str = "OpenShift's operator writes it into the MachineConfigs that it renders: \
        apply it to a test cluster, or look how the operator rendered it, and give the rendered \
        MachineConfig of the pool (oc get machineconfig rendered-POOL-HASH -o yaml) on each side";
    match kind {
        "KubeletConfig"
        | "ContainerRuntimeConfig"
        | "ClusterImagePolicy"
        | "ImagePolicy"
        | "Image"
        | "PinnedImageSet"
        | "APIServer"
        | "FeatureGate"
        | "Proxy"
        | "Node"
        | "Infrastructure"
        | "DNS"
        | "Network"
        | "ControllerConfig"
        | "Tuned"
        | "PerformanceProfile"
        | "MachineOSConfig"
        | "MachineOSBuild" => Some(RENDERED),
        "MachineConfigPool" => Some(
            "it only names the configs of a pool: give the rendered MachineConfig that stands in its \
             .status.configuration.name on the old side, and in .spec.configuration.name on the new",
        ),
        "DisruptionPolicy" | "MachineConfiguration" => {
            Some("it says what changes cost: give it with --rules")
        }
        "ConfigMap" => Some(
            "a policy in a ConfigMap is taken out with `tread policy unpack`, and given with --policy",
        ),
        _ => None,
    }
}

/// What a document is.
fn kind(fields: &Fields<'_>, report: &mut Report) -> Option<Kind> {
    let version = fields.string("apiVersion", report);
    let Some(name) = fields.string("kind", report) else {
        if fields.get("kind").is_some() {
            return None;
        }
        if fields.get("ignition").is_some() && version.is_none() {
            return Some(Kind::Ignition);
        }
        let message = if fields.get("variant").is_some() {
            "looks like a Butane config: run butane on it and give its output".to_owned()
        } else {
            format!("has neither a kind nor an ignition.version: {READS}")
        };
        report.problem("", message);
        return None;
    };
    let known: Vec<_> = KINDS.iter().map(|(kind, ..)| *kind).collect();
    let Some((_, want, kind)) = KINDS.iter().find(|(kind, ..)| *kind == name) else {
        if let Some(instead) = instead(name) {
            report.problem("kind", format!("{name} is no node config: {instead}"));
            return None;
        }
        let message = unknown("kind", name, &known);
        let said = message.split(": known here").next().unwrap_or_default();
        report.problem("kind", format!("{said} ({READS})"));
        return None;
    };
    if version != Some(want) {
        let found = version.map_or_else(|| "none".to_owned(), |version| format!("{version:?}"));
        report.problem("apiVersion", format!("expected {want} for a {name}, found {found}"));
        return None;
    }
    Some(*kind)
}
