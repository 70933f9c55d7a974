//! What a request to the API server would change.

use super::flagged;
use super::previewer::Previewer;
use super::takes::{says, taken};
use super::undrained;
use crate::previews::{Edit, Line, Preview, line, lines};
use kube::core::DynamicObject;
use kube::core::admission::Operation;
use std::sync::Arc;
use tread_kube::api::disruption_plan::{Cause, CauseEvent};
use tread_kube::review::{Asked, Warned};
use tread_kube::whole::Whole;

/// The kinds of objects that redirect image pulls.
pub const MIRROR_KINDS: [&str; 3] =
    ["ImageContentSourcePolicy", "ImageDigestMirrorSet", "ImageTagMirrorSet"];

impl Previewer {
    /// What a request would do to nodes: a line for each pool. Whoever drops this
    /// ends the work for it.
    pub async fn warnings(&self, asked: Asked) -> Warned {
        if let Some(lines) = self.taken(&asked) {
            return lines.into();
        }
        let deleted = asked.operation == Operation::Delete;
        let Some(object) = asked.object else { return Warned::default() };
        let Some((change, cause)) = change_of(&asked.kind, &object, deleted) else {
            return Warned::default();
        };
        drop(object);
        if !self.is_ready() {
            let why = "tread: still starting, so what this does to nodes is not known";
            return vec![why.to_owned()].into();
        }
        let to_line = move |preview: Preview| (preview.offered_secrets, line(&preview, &cause));
        match self.preview_redacted(&change, Arc::new(to_line)).await {
            Ok(all) if all.is_empty() => {
                let unselected = self.unselected(&change).map(|why| format!("tread: {why}"));
                unselected.into_iter().collect::<Vec<_>>().into()
            }
            Ok(all) => {
                let offered_secrets = all.iter().any(|(offered, _)| *offered);
                let mut all: Vec<Line> = all.into_iter().filter_map(|(_, line)| line).collect();
                let cluster = self.snapshot();
                undrained::reword(&cluster, &mut all);
                let undrained = undrained::lines(&cluster, all.iter().filter_map(Line::drains));
                let flagged = flagged::lines(&cluster, all.iter().filter_map(Line::concerns));
                Warned { offered_secrets, lines: [lines(all), undrained, flagged].concat() }
            }
            Err(why) => vec![format!("tread: what this does to nodes is not known: {why}")].into(),
        }
    }

    /// What is said of a request that takes a node, or lets changes come to those that somebody
    /// has; None if it is neither.
    fn taken(&self, asked: &Asked) -> Option<Vec<String>> {
        let taken = taken(asked)?;
        // Who still starts knows of no change.
        let lines = self.is_ready().then(|| says(&taken, &self.snapshot(), &self.plans()));
        Some(lines.unwrap_or_default())
    }
}

/// What an object changes that is written, or deleted; None if it is none that
/// nodes follow.
pub fn change(kind: &str, object: &DynamicObject, deleted: bool) -> Option<(Edit, Cause)> {
    change_of(kind, &Whole::of(object).ok()?, deleted)
}

fn change_of(kind: &str, object: &Whole, deleted: bool) -> Option<(Edit, Cause)> {
    let mut name = object.name.clone();
    if name.is_empty() {
        // The API server makes one up later.
        name = format!("{}…", object.generate_name);
    }
    let body = || Arc::clone(&object.body);
    let event = if deleted { CauseEvent::Deleted } else { CauseEvent::Changed };
    let cause = Cause { kind: kind.to_owned(), name: name.clone(), event };
    if let Some(kind) = MIRROR_KINDS.iter().find(|known| **known == kind) {
        let key = (*kind, name);
        let change = match deleted {
            true => Edit::NoMirror(key),
            false => Edit::Mirror(key, body()),
        };
        return Some((change, cause));
    }
    if kind != "MachineConfig" || object.is_of_pool {
        return None;
    }
    let change = match deleted {
        true => Edit::NoMachineConfig(name),
        false => Edit::MachineConfig { name, labels: object.labels.clone(), body: body() },
    };
    Some((change, cause))
}
