//! The verdict on every machine resource and on the cluster, from the facts: the
//! same in the service, at admission and on a laptop.

use super::booted::NewestNode;
use super::facts::Facts;
use super::kinds::CATALOGUE;
use super::machine::{Image, Key, Machine};
use k8s_openapi::jiff::Timestamp;
use std::collections::BTreeSet;
use tread_kube::api::boot_images::{BootImage, RecordedBy, SkewMode};
use tread_kube::api::machines::{CAPI_MACHINE_DEPLOYMENT, CAPI_MACHINE_SET, MACHINE_SET};
use tread_model::boot_images::operator::{self, Check};
use tread_model::boot_images::patch::{Remedy, Resource, remedy};
use tread_model::boot_images::rule::{
    Question, Recorded, Updater, by_age, judge, judge_cluster, judge_resource,
};
use tread_model::boot_images::sources::Sources;
use tread_model::boot_images::{
    Boots, Catalogue, Found, Limits, Mode, Outcome, Release, Rhel, Stream, Tighter, Verdict, shown,
};

/// A machine resource that was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The machine resource.
    pub key: Key,
    /// Its UID.
    pub uid: String,
    /// What was found of its image.
    pub found: Found,
    /// Its stream.
    pub stream: Stream,
    /// What is wrong with it, or not, for the running release.
    pub verdict: Verdict,
    /// What is wrong with its image, whatever is asked of it.
    pub of_image: Verdict,
    /// As it is shown.
    pub shown: BootImage,
}

impl Judged {
    /// Whether its image may keep machines from joining.
    pub fn is_suspect(&self) -> bool {
        matches!(self.of_image.outcome, Outcome::Warns | Outcome::Blocks)
    }
}

/// All that is said of boot images.
#[derive(Debug, Clone)]
pub struct Report {
    /// How they are judged.
    pub mode: SkewMode,
    /// The oldest first.
    pub resources: Vec<Judged>,
    /// What is not judged, and why.
    pub left_out: Vec<String>,
    /// For the running release.
    pub verdict: Verdict,
    /// The limit of the cluster's own stream, in words.
    pub limit: String,
    /// The oldest version of the cluster's own stream, in words.
    pub oldest: Option<String>,
    /// What OpenShift's own check does.
    pub openshift: Option<Check>,
    /// What is wrong with what tread reads, in words.
    pub problems: Vec<String>,
    /// The release that the cluster runs.
    pub running: Option<Release>,
    asked: Asked,
}

/// What a verdict for another release needs.
#[derive(Debug, Clone)]
struct Asked {
    mode: Mode,
    nothing: Option<&'static str>,
    updater: Updater,
    waits: Vec<String>,
    stream: Stream,
    tighter: Vec<Tighter>,
}

impl Report {
    /// The cluster's verdict for a release that it may go to.
    pub fn to(&self, release: Option<Release>) -> Verdict {
        verdict(&self.asked, &self.resources, release)
    }

    /// The verdict on a machine resource as it would be.
    pub fn of(&self, facts: &Facts, key: &Key, machine: &Machine) -> Verdict {
        let found = sources(facts, key, machine, &first_images(facts)).best();
        let stream = stream_of(facts, key, machine, &self.asked.stream);
        self.asked.judge(self.running, &found, &stream)
    }

    /// What an image has to be of a stream, given the cluster's own.
    pub fn limits(&self, stream: impl FnOnce(&Stream) -> Stream) -> Limits {
        Limits::of(self.running, &stream(&self.asked.stream), &self.asked.tighter)
    }

    /// What OpenShift's own check does, where there is one, in a sentence.
    pub fn theirs(&self) -> Option<String> {
        let Check { mode, version, blocks, message, .. } = self.openshift.as_ref()?;
        let or = |text: &str, other: &str| if text.is_empty() { other } else { text }.to_owned();
        let does = if *blocks { "holds updates back" } else { "lets updates pass" };
        Some(format!(
            "OpenShift's own check (mode {}, version {}) {does}: {message}",
            or(mode, "unset"),
            or(version, "none")
        ))
    }

    /// The worst verdict on what is of another stream than the cluster's.
    pub fn others(&self) -> Option<&Judged> {
        let others = self.resources.iter().filter(|it| !it.stream.own);
        others.max_by_key(|it| it.verdict.outcome)
    }

    /// What keeps a resource from being judged as it will be: what it waits for.
    pub fn waits(&self) -> bool {
        self.verdict.outcome == Outcome::Waits
    }
}

impl Asked {
    /// The verdict on one resource.
    fn judge(&self, running: Option<Release>, found: &Found, stream: &Stream) -> Verdict {
        let limits = Limits::of(running, stream, &self.tighter);
        judge_resource(&self.mode, self.nothing, found, &limits, stream)
    }
}

fn verdict(asked: &Asked, resources: &[Judged], release: Option<Release>) -> Verdict {
    let limits = Limits::of(release, &asked.stream, &asked.tighter);
    let images: Vec<_> = resources
        .iter()
        .map(|it| (name_of(&it.key), it.stream.clone(), it.found.clone()))
        .collect();
    judge_cluster(&Question {
        mode: &asked.mode,
        nothing: asked.nothing,
        updater: &asked.updater,
        waits: &asked.waits,
        limits: &limits,
        stream: &asked.stream,
        images: &images,
    })
}

/// As a sentence names it.
pub fn name_of(key: &Key) -> String {
    if key.namespace.is_empty() {
        return key.name.clone();
    }
    format!("{}/{}", key.namespace, key.name)
}

/// Judges everything. `waits`: what was not listed yet, in words.
pub fn report(facts: &Facts, waits: &[String]) -> Report {
    let spec = facts.object.as_deref().map(|object| object.spec.clone()).unwrap_or_default();
    let running = facts.running().and_then(|written| written.release);
    let stream = cluster_stream(facts);
    let tighter: Vec<Tighter> = spec
        .limits
        .iter()
        .map(|limit| Tighter {
            stream: limit.stream.clone(),
            openshift: limit.ocp_version.as_deref().and_then(Release::parse),
            rhel: limit.rhel_version.as_deref().and_then(Rhel::parse),
        })
        .collect();
    let mode = match (spec.mode, &spec.manual) {
        (SkewMode::None, _) => Mode::None,
        (SkewMode::Manual, Some(manual)) => Mode::Manual(match manual.mode {
            RecordedBy::Openshift => {
                Recorded::Openshift(manual.ocp_version.clone().unwrap_or_default())
            }
            RecordedBy::Rhcos => Recorded::Rhcos(manual.rhcos_version.clone().unwrap_or_default()),
        }),
        _ => Mode::Automatic,
    };
    let mut waits = waits.to_vec();
    if facts.versions.is_some() && running.is_none() {
        waits.push("ClusterVersion version to say which release it completed".to_owned());
    }
    let asked = Asked {
        mode,
        nothing: facts.nothing(),
        updater: operator::updater(facts.operator.as_deref()),
        waits,
        stream,
        tighter,
    };
    let (resources, left_out) = judged(facts, &asked, running);
    let limits = Limits::of(running, &asked.stream, &asked.tighter);
    let oldest = match &asked.mode {
        Mode::Manual(Recorded::Openshift(text) | Recorded::Rhcos(text)) => Some(shown(text)),
        _ => resources.iter().find(|it| it.stream.own).map(|it| match it.found.version() {
            Some(version) => shown(&version.to_string()),
            None => "unknown".to_owned(),
        }),
    };
    let verdict = verdict(&asked, &resources, running);
    let openshift = operator::check(running, facts.operator.as_deref());
    Report {
        mode: spec.mode,
        openshift: openshift.map(|check| beside(check, &verdict)),
        verdict,
        resources,
        left_out,
        limit: limits.in_words(),
        oldest,
        problems: problems(facts),
        running,
        asked,
    }
}

/// What OpenShift's own check does, beside what tread says of it.
fn beside(check: Check, verdict: &Verdict) -> Check {
    let more = match verdict.outcome {
        Outcome::Blocks if check.skipped => "; tread does not let that pass",
        Outcome::Waits if check.skipped => "; tread waits, and says until then what it said before",
        _ => "",
    };
    Check { message: check.message + more, ..check }
}

/// What is wrong with what tread reads.
fn problems(facts: &Facts) -> Vec<String> {
    let current = facts.current.iter();
    let mut found: Vec<String> =
        current.chain(facts.given.values()).filter_map(|it| it.catalogues.clone().err()).collect();
    let named = |(key, why): (&Key, &String)| format!("{}: {why}", name_of(key));
    found.extend(facts.unread.iter().map(named));
    let unstamped = facts
        .given
        .iter()
        .filter(|(_, it)| it.release.as_deref().and_then(Release::parse).is_none());
    found.extend(unstamped.map(|(name, _)| {
        format!("ConfigMap {name} says no release: write one like 4.12.30 into its key release")
    }));
    found
}

fn judged(facts: &Facts, asked: &Asked, running: Option<Release>) -> (Vec<Judged>, Vec<String>) {
    let first = first_images(facts);
    let mut left_out = Vec::new();
    let mut all = Vec::new();
    for (key, machine) in &facts.machines {
        if machine.stood_for {
            continue;
        }
        if let Some(why) = machine.left_out.clone().or_else(|| mirrored(facts, key)) {
            left_out.push(format!("{} {}: {why}", machine.kind, name_of(key)));
            continue;
        }
        let found = sources(facts, key, machine, &first).best();
        let stream = stream_of(facts, key, machine, &asked.stream);
        let verdict = asked.judge(running, &found, &stream);
        let of_image = judge(&found, &Limits::of(running, &stream, &asked.tighter), &stream);
        let shown = BootImage {
            kind: machine.kind.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            image: boots(facts, key, machine).ok().map(Boots::in_words),
            version: found.version().map(|version| shown(&version.to_string())),
            known_by: found.by().as_str().to_owned(),
            stream: shown(&stream.name),
            verdict: verdict.outcome.as_str().to_owned(),
            reason: verdict.reason.as_str().to_owned(),
            message: verdict.message.clone(),
            owner: machine.owner.clone(),
        };
        let uid = machine.uid.clone();
        all.push(Judged { key: key.clone(), uid, found, stream, verdict, of_image, shown });
    }
    all.sort_by(|one, two| by_age(&one.found, &two.found).then_with(|| one.key.cmp(&two.key)));
    (all, left_out)
}

/// A resource of Cluster API that mirrors one of OpenShift's, which counts.
fn mirrored(facts: &Facts, key: &Key) -> Option<String> {
    if key.kind != CAPI_MACHINE_SET.name {
        return None;
    }
    let mut ours = facts.machines.iter().filter(|(other, _)| other.kind == MACHINE_SET.name);
    let (other, _) = ours.find(|(other, machine)| {
        other.name == key.name && machine.authority.as_deref() == Some("MachineAPI")
    })?;
    Some(format!("the machine API of OpenShift is authoritative for it, by {}", name_of(other)))
}

/// What a resource boots, or why that is not known.
pub fn boots<'f>(facts: &'f Facts, key: &Key, machine: &'f Machine) -> Result<&'f Boots, String> {
    match &machine.image {
        Image::Here(boots) => boots.as_ref().map_err(Clone::clone),
        Image::Template(kind, name) => {
            let found = facts.templates.iter().find(|(template, _)| {
                template.name == *name
                    && template.namespace == key.namespace
                    && is_kind(template.kind, kind)
            });
            match found {
                Some((_, boots)) => boots.as_ref().as_ref().map_err(Clone::clone),
                None => Err(format!(
                    "its infrastructure template {} {} is not there, or of a kind that tread does not know",
                    shown(kind),
                    shown(name)
                )),
            }
        }
    }
}

fn is_kind(name: &str, kind: &str) -> bool {
    name.split('.').next().is_some_and(|plural| plural == format!("{}s", kind.to_ascii_lowercase()))
}

/// The images that resources have which are as old as the cluster.
fn first_images(facts: &Facts) -> BTreeSet<String> {
    let Some((_, Some(until))) = facts.installed() else { return BTreeSet::new() };
    let is_first = |created: Option<Timestamp>| created.is_some_and(|created| created <= *until);
    let first = facts.machines.iter().filter(|(_, machine)| is_first(machine.created));
    first
        .filter_map(|(key, machine)| boots(facts, key, machine).ok())
        .flat_map(|boots| boots.images.iter().map(|image| image.id.clone()))
        .collect()
}

fn sources(facts: &Facts, key: &Key, machine: &Machine, first: &BTreeSet<String>) -> Sources {
    let boots = boots(facts, key, machine);
    let (catalogue, waits) = current(facts);
    let former = facts.kept.values().flatten();
    let given = facts.given.values().filter_map(|it| it.catalogues.as_ref().ok()).flatten();
    let managed = machine.owner.is_none()
        && operator::manages(facts.operator.as_deref(), machine.plural, &machine.labels)
        && machine.kind.ends_with(MACHINE_SET.group);
    let known = boots.as_ref().ok();
    let was_first = known.is_some_and(|boots| boots.images.iter().all(|it| first.contains(&it.id)));
    let broken = facts.current.as_ref().and_then(|it| it.catalogues.as_ref().err());
    Sources {
        annotation: machine.annotation.clone(),
        catalogues: known
            .map(|boots| {
                let all = catalogue.iter().chain(former).chain(given);
                all.filter_map(|catalogue| catalogue.find(boots)).collect()
            })
            .unwrap_or_default(),
        catalogue_waits: waits,
        names: known.map(|boots| boots.versions()).unwrap_or_default(),
        updater: if managed { operator::recorded(facts.operator.as_deref()) } else { Vec::new() },
        aleph: aleph(facts, key).map(|it| it.image.clone()),
        install: facts.installed().filter(|_| was_first).and_then(|(written, _)| written.release),
        problem: boots.as_ref().err().cloned().or_else(|| broken.cloned()),
    }
}

/// What the newest node of a resource says. A MachineDeployment stands for its MachineSets.
fn aleph<'f>(facts: &'f Facts, key: &Key) -> Option<&'f NewestNode> {
    if let Some(of_it) = facts.booted.get(key) {
        return Some(of_it);
    }
    if key.kind != CAPI_MACHINE_DEPLOYMENT.name {
        return None;
    }
    let owner = shown(&format!("{}/{}", CAPI_MACHINE_DEPLOYMENT.kind, key.name));
    let sets = facts.machines.iter().filter(|(set, machine)| {
        set.namespace == key.namespace
            && machine.stood_for
            && machine.owner.as_ref() == Some(&owner)
    });
    sets.filter_map(|(set, _)| facts.booted.get(set)).max_by_key(|it| it.created)
}

/// The stream metadata of the running release, or what is waited for.
pub fn current(facts: &Facts) -> (&[Catalogue], Option<String>) {
    let (Some(stamped), Some(running)) = (&facts.current, facts.running()) else {
        return (&[], None);
    };
    match (&stamped.release, &stamped.catalogues) {
        (Some(stamp), Ok(catalogues)) if *stamp == running.text => (catalogues, None),
        (Some(stamp), Ok(_)) => {
            let waits = format!(
                "ConfigMap {CATALOGUE} is stamped for {stamp}, and the cluster runs {}",
                running.text
            );
            (&[], Some(waits))
        }
        (None, _) => {
            (&[], Some(format!("ConfigMap {CATALOGUE} is not stamped for {} yet", running.text)))
        }
        (Some(_), Err(_)) => (&[], None),
    }
}

/// What an admin does about a resource.
pub fn remedy_of(facts: &Facts, key: &Key, machine: &Machine) -> Remedy {
    let resource = Resource {
        kind: machine.kind.to_ascii_lowercase(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        path: machine.path.to_owned(),
        owner: machine.owner.clone(),
    };
    let (catalogues, waits) = current(facts);
    let boots = boots(facts, key, machine);
    let nothing =
        waits.or_else(|| facts.current.as_ref().and_then(|it| it.catalogues.clone().err()));
    let nothing = nothing.unwrap_or_else(|| {
        format!("there is no ConfigMap {CATALOGUE} with the images of the running release")
    });
    let boots = boots.as_ref().map(|boots| *boots).map_err(String::as_str);
    let catalogues = match catalogues {
        [] => Err(nothing.as_str()),
        all => Ok(all),
    };
    let stream = stream_of(facts, key, machine, &cluster_stream(facts));
    remedy(&resource, boots, machine.arch, catalogues, &stream)
}

/// The stream that a resource is of: the one that it names, or that of its pool.
fn stream_of(facts: &Facts, key: &Key, machine: &Machine, cluster: &Stream) -> Stream {
    let of_pool = || {
        let user_data = boots(facts, key, machine).ok()?.user_data.as_deref()?;
        facts.stream_of_pool(user_data)
    };
    Stream::of_resource(machine.stream.as_deref().or_else(of_pool), cluster)
}

fn cluster_stream(facts: &Facts) -> Stream {
    let running = facts.running().and_then(|written| written.release);
    let installed = facts.installed().and_then(|(written, _)| written.release);
    Stream::of_cluster(installed.or(running))
}
