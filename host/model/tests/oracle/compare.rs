//! What tread renders, beside what OpenShift's library renders of the same.

use crate::objects::{Case, names};
use crate::program::{Made, Program};
use serde_json::{Value, json};
use std::fmt;
use tread_model::contents::decode;
use tread_model::mirrors::{self, REGISTRIES_CONF, Rerendered, data_url, rerender};
use tread_model::read::{Input, Side, side};

/// The file of a node whose config says nothing of it.
const DELIVERED: &str =
    "unqualified-search-registries = [\"registry.access.redhat.com\", \"docker.io\"]\n";

/// How often what came out.
#[derive(Default)]
pub(crate) struct Tally {
    rendered: usize,
    refused: usize,
    inside_a_wildcard: usize,
    anew: usize,
    anew_without: usize,
    in_doubt: usize,
}

impl Tally {
    /// Whether all was met that has to be.
    pub(crate) fn is_varied(&self) -> bool {
        let all = [
            self.rendered,
            self.refused,
            self.inside_a_wildcard,
            self.anew,
            self.anew_without,
            self.in_doubt,
        ];
        all.iter().all(|count| *count > 0) && self.rendered > self.refused / 2
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "rendered alike: {}; by neither: {}, {} of them for what lies inside a wildcard; \
             rendered anew alike: {}, {} of them with nothing left, {} with a doubt",
            self.rendered,
            self.refused,
            self.inside_a_wildcard,
            self.anew,
            self.anew_without,
            self.in_doubt
        )
    }
}

/// Renders objects over a template.
pub(crate) fn over(program: &mut Program, case: &Case, tally: &mut Tally) -> Result<(), String> {
    let template = case.template.as_deref().unwrap_or(DELIVERED);
    let theirs = program.render(template, &case.objects, &[], &[]);
    let ours = ours(case.template.as_deref(), &case.objects);
    tally.inside_a_wildcard += usize::from(is_for_a_wildcard(&theirs));
    match (read(program, &theirs, &[]), read(program, &ours, &[])) {
        (Ok(expected), Ok(found)) if expected == found => tally.rendered += 1,
        (Err(_), Err(_)) => tally.refused += 1,
        _ => return Err(differ(&theirs, &ours)),
    }
    Ok(())
}

/// Renders objects in place of earlier ones, with what the image configuration says.
pub(crate) fn anew(program: &mut Program, case: &Case, tally: &mut Tally) -> Result<(), String> {
    let Case { objects, earlier, insecure, blocked, .. } = case;
    if is_named_by_both(earlier, insecure) {
        return Ok(());
    }
    let Ok(before) = program.render(DELIVERED, earlier, insecure, blocked) else { return Ok(()) };
    let theirs = program.render(DELIVERED, objects, insecure, blocked);
    let is_rejected = |scope: &str| blocked.iter().any(|it| it == scope);
    let text = written(None, objects);
    let objects = parsed(&text)?.mirrors;
    // The operator renders nothing of nothing.
    let is_before = !(blocked.is_empty() && insecure.is_empty() && earlier.is_empty());
    let before = Some(before.as_str()).filter(|_| is_before);
    let ours = rerender(before, Some(DELIVERED), is_rejected, &objects);
    if let Ok(Rerendered { text, doubts }) = &ours {
        tally.anew_without += usize::from(text.is_none());
        tally.in_doubt += usize::from(!doubts.is_empty());
    }
    let ours = ours.map_err(|problems| problems.to_string());
    let ours = ours.map(|rendered| rendered.text.unwrap_or_else(|| DELIVERED.to_owned()));
    // Entries that say the same twice may be gone, so that it is asked what they mean.
    let names = names();
    let pulls = |made: Result<Made, String>| made.map(|made| (made.search, made.pulls));
    match (pulls(read(program, &theirs, &names)), pulls(read(program, &ours, &names))) {
        (Ok(expected), Ok(found)) if expected == found => tally.anew += 1,
        (Err(_), Err(_)) => {}
        (Ok((_, expected)), Ok((_, found))) => {
            let all = names.iter().zip(expected.iter().zip(&found));
            let first = all.into_iter().find(|(_, (expected, found))| expected != found);
            let before = before.unwrap_or("nothing");
            return Err(format!("{first:?}\n{}\n---- before\n{before}", differ(&theirs, &ours)));
        }
        _ => return Err(differ(&theirs, &ours)),
    }
    Ok(())
}

/// Whether the image configuration calls a scope insecure inside another one, and an
/// object names mirrors of it: the file does not tell that from one that only the
/// object names.
fn is_named_by_both(objects: &[Value], insecure: &[String]) -> bool {
    let named = |scope: &str| {
        let sets = objects.iter().flat_map(|it| it["spec"].as_object().into_iter().flatten());
        let mut sets = sets.flat_map(|(_, sets)| sets.as_array().into_iter().flatten());
        sets.any(|set| set["source"] == scope)
    };
    insecure.iter().any(|scope| {
        named(scope) && insecure.iter().any(|outer| outer != scope && is_inside(scope, outer))
    })
}

fn is_inside(scope: &str, outer: &str) -> bool {
    let host = scope.split(['/', ':']).next().unwrap_or(scope);
    match outer.strip_prefix('*') {
        Some(domain) => host.ends_with(domain),
        None => scope.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/')),
    }
}

/// What the runtime makes of a file, if there is one.
fn read(
    program: &mut Program,
    file: &Result<String, String>,
    names: &[String],
) -> Result<Made, String> {
    program.read(file.as_ref().map_err(Clone::clone)?, names)
}

fn is_for_a_wildcard(theirs: &Result<String, String>) -> bool {
    theirs.as_ref().is_err_and(|error| error.contains("for a wildcard scope"))
}

fn differ(theirs: &Result<String, String>, ours: &Result<String, String>) -> String {
    let text = |file: &Result<String, String>| match file {
        Ok(text) => text.clone(),
        Err(error) => format!("nothing: {error}\n"),
    };
    format!(
        "they differ\n---- OpenShift renders\n{}---- tread renders\n{}",
        text(theirs),
        text(ours)
    )
}

/// The file that a side ends up with.
fn ours(template: Option<&str>, objects: &[Value]) -> Result<String, String> {
    let text = written(template, objects);
    let side = mirrors::rendered(parsed(&text)?).map_err(|problems| problems.to_string())?;
    let file = side.config.files.iter().find(|file| file.path == REGISTRIES_CONF);
    let Some(file) = file else { return Ok(DELIVERED.to_owned()) };
    let bytes = decode(&file.contents).expect("a data URL").expect("inline");
    Ok(String::from_utf8(bytes.into_owned()).expect("text"))
}

/// The objects beside a config with the template, as somebody would give them.
fn written(template: Option<&str>, objects: &[Value]) -> String {
    let files = template.map(|template| {
        json!({
            "path": REGISTRIES_CONF, "mode": 0o644, "overwrite": true,
            "contents": {"source": data_url(template)},
        })
    });
    let config = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": "rendered"},
        "spec": {"config": {
            "ignition": {"version": "3.4.0"},
            "storage": {"files": Vec::from_iter(files)},
        }},
    });
    let items = Vec::from_iter([&config].into_iter().chain(objects));
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

fn parsed(text: &str) -> Result<Side<'_>, String> {
    side("new", &[Input { name: "side.json", bytes: text.as_bytes() }])
        .map_err(|problems| problems.to_string())
}
