//! What holds for whatever is rendered.

use serde_json::Value;
use tread_model::config_digest::digests;
use tread_model::diff::compare;
use tread_model::digest::Digest;
use tread_model::mirrors::render_side;
use tread_model::object_name::is_name;
use tread_model::read::{Input, Side, side_in_order};
use tread_model::refuse::unparsable;
use tread_model::rendering::{Pool, Rendered, Unrendered, render};

pub(crate) const POOL: Pool<'_> = Pool { name: "worker", uid: "pool-uid" };

const ROLE: &str = "/metadata/labels/machineconfiguration.openshift.io~1role";

pub(crate) fn inputs(texts: &[String]) -> Vec<Input<'_>> {
    texts.iter().map(|text| Input { name: name_of(text), bytes: text.as_bytes() }).collect()
}

/// The name of an object, as it is written in its text.
fn name_of(text: &str) -> &str {
    let object: Value = serde_json::from_str(text).unwrap();
    let name = object["metadata"]["name"].as_str().unwrap_or("?");
    let found = text.find(&format!("{name:?}"));
    found.and_then(|at| text.get(at + 1..at + 1 + name.len())).unwrap_or("?")
}

pub(crate) fn rendered(sources: &[String], mirrors: &[String]) -> Result<Rendered, Unrendered> {
    render(&POOL, &inputs(sources), &inputs(mirrors))
}

/// As they are merged: those of the worker role first, by name.
pub(crate) fn in_order(sources: &[String]) -> Vec<String> {
    let mut sources = sources.to_vec();
    sources.sort_by_key(|text| {
        let object: Value = serde_json::from_str(text).unwrap();
        let is_worker = object.pointer(ROLE).is_some_and(|role| role == "worker");
        (!is_worker, object["metadata"]["name"].as_str().unwrap().to_owned())
    });
    sources
}

/// What plans know of the sources.
pub(crate) fn as_plans_read(sources: &[String], mirrors: &[String]) -> Side<'static> {
    let all = [in_order(sources), mirrors.to_vec()].concat();
    let mut side = tread_model::read::side_diagnosed("sources", &inputs(&all)).unwrap();
    render_side(&mut side).unwrap();
    side
}

fn digest(side: &Side<'_>) -> Digest {
    digests(&side.config).unwrap().config
}

/// Holds what was rendered against all that it was rendered from.
pub(crate) fn holds(rendered: &Rendered, sources: &[String], mirrors: &[String]) {
    assert!(is_name(&rendered.name), "{}", rendered.name);
    assert_eq!(rendered.object["metadata"]["name"], rendered.name.as_str());
    assert!(rendered.object["metadata"].get("labels").is_none(), "a pool would select it");
    let from = as_plans_read(sources, mirrors);
    let text = rendered.object.to_string();
    let read = [Input { name: "rendered", bytes: text.as_bytes() }];
    let read = side_in_order("rendered", &read).unwrap();
    assert_eq!(read.makeup.pool(), Some("worker"));
    assert_eq!(rendered.digest, digest(&from), "{text}");
    assert_eq!(rendered.digest, digest(&read), "{text}");
    assert_eq!(unparsable(&read.config), [], "{text}");
    let difference = compare(&from.config, &read.config).unwrap();
    assert_eq!(difference.changes, [], "{text}");
    // What plans refuse of a file is refused of what is rendered, in the same words.
    let empty = tread_model::config::NodeConfig::default();
    let [of_sources, of_rendered] = [&from, &read].map(|side| {
        let refusals = compare(&empty, &side.config).unwrap().refusals;
        refusals.into_iter().map(|it| (it.id, it.reason)).collect::<Vec<_>>()
    });
    assert_eq!(of_sources, of_rendered, "{text}");
}
