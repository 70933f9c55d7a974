//! Between the model's words and those of the contract.

use crate::v1;
use tread_model::change::{Change, Content, Entry, State, UnitState};
use tread_model::description::{Claim, Declarations, Description, SettingsDescription};
use tread_model::effect::Effect;
use tread_model::verdict::Action;

pub(crate) fn change<'a>(change: &'a Change<'_>) -> v1::Change<'a> {
    let (mut before, mut after) = (state(&change.before), state(&change.after));
    if let (State::Unit(old), State::Unit(new)) = (&change.before, &change.after) {
        // Where one side takes a mask of the image away, the other one leaves it.
        match (old.masked, new.masked) {
            (None, Some(false)) => mask(&mut before),
            (Some(false), None) => mask(&mut after),
            _ => {}
        }
    }
    v1::Change { id: &change.id, before, after }
}

fn mask(state: &mut v1::State<'_>) {
    if let v1::State::Unit(unit) = state {
        unit.masked = true;
    }
}

pub(crate) fn entry<'a>(entry: &'a Entry<'_>) -> v1::Entry<'a> {
    v1::Entry { id: &entry.id, state: state(&entry.state) }
}

fn state<'a>(state: &'a State<'_>) -> v1::State<'a> {
    match state {
        State::Absent => v1::State::Absent,
        State::File(file) => v1::State::File(v1::File {
            content: content(&file.content),
            mode: file.mode,
            user: &file.user,
            group: &file.group,
        }),
        State::Unit(it) => v1::State::Unit(unit(it)),
        State::List(list) => v1::State::List(list.iter().map(AsRef::as_ref).collect()),
        State::Text(text) => v1::State::Text(text),
        State::Token(token) => v1::State::Digest(token.to_string()),
    }
}

fn unit<'a>(unit: &'a UnitState<'_>) -> v1::Unit<'a> {
    let dropins = unit.dropins.iter();
    v1::Unit {
        contents: content(&unit.contents),
        enabled: unit.enabled,
        masked: unit.masked == Some(true),
        dropins: dropins
            .map(|it| v1::Dropin { name: &it.name, contents: content(&it.contents) })
            .collect(),
    }
}

fn content<'a>(content: &'a Content<'_>) -> v1::Content<'a> {
    match content {
        Content::Absent => v1::Content::Absent,
        Content::Bytes(bytes) => v1::Content::Bytes(bytes),
        Content::Token(token) => v1::Content::Digest(token.to_string()),
    }
}

/// How many bytes a state offers: what fuel and deadline grow with.
fn state_bytes(state: &v1::State<'_>) -> usize {
    match state {
        v1::State::Absent => 0,
        v1::State::File(file) => content_bytes(&file.content),
        v1::State::Unit(unit) => {
            let dropins = unit.dropins.iter();
            content_bytes(&unit.contents)
                + dropins.map(|it| it.name.len() + content_bytes(&it.contents)).sum::<usize>()
        }
        v1::State::List(list) => list.iter().map(|it| it.len()).sum(),
        v1::State::Text(text) => text.len(),
        v1::State::Digest(token) => token.len(),
    }
}

fn content_bytes(content: &v1::Content<'_>) -> usize {
    match content {
        v1::Content::Absent => 0,
        v1::Content::Bytes(bytes) => bytes.len(),
        v1::Content::Digest(token) => token.len(),
    }
}

/// How many bytes a call offers.
pub(crate) fn offered_bytes((settings, changes, unchanged): v1::ClassifyParams<'_>) -> usize {
    let change =
        |it: &v1::Change<'_>| it.id.len() + state_bytes(&it.before) + state_bytes(&it.after);
    let entry = |it: &v1::Entry<'_>| it.id.len() + state_bytes(&it.state);
    settings.len()
        + changes.iter().map(change).sum::<usize>()
        + unchanged.iter().map(entry).sum::<usize>()
}

pub(crate) fn action(action: v1::Action) -> Action {
    match action {
        v1::Action::Reload(unit) => Action::Reload(unit),
        v1::Action::Restart(unit) => Action::Restart(unit),
        v1::Action::DaemonReload => Action::DaemonReload,
        v1::Action::Drain => Action::Drain,
        v1::Action::Reboot => Action::Reboot,
        v1::Action::RebootUndrained => Action::RebootUndrained,
    }
}

pub(crate) fn description(description: v1::Description) -> Description {
    let claim = |it: v1::Claim| Claim {
        changes: it.changes,
        least: effect(it.least),
        most: effect(it.most),
        with_unchanged: it.with_unchanged,
    };
    Description {
        name: description.name,
        version: description.version,
        summary: description.summary,
        claims: description.claims.into_iter().map(claim).collect(),
        settings: description
            .settings
            .map(|it| SettingsDescription { defaults: it.defaults, schema: it.schema }),
    }
}

pub(crate) fn declarations(declared: v1::Declared) -> Declarations {
    Declarations { needs_secrets: declared.needs_secrets, reasons: declared.reasons }
}

fn effect(effect: v1::Effect) -> Effect {
    match effect {
        v1::Effect::None => Effect::None,
        v1::Effect::Reload => Effect::Reload,
        v1::Effect::Restart => Effect::Restart,
        v1::Effect::Drain => Effect::Drain,
        v1::Effect::Reboot => Effect::Reboot,
        v1::Effect::Refuse => Effect::Refuse,
    }
}
