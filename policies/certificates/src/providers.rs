//! What the kubelet makes of a config of credential providers when it starts: it ends if one that it is told
//! to read is missing, or is no config with a provider in it.

use crate::dropin;
use crate::state::{bytes, is_gone};
use tread_guest_sdk::{Action, Change, Context, State, Verdict};
use tread_policy_formats::{Table, Value, yaml};

pub(crate) const KUBELET: &str = "kubelet.service";
const DIRECTORY: &str = "/etc/kubernetes/credential-providers";
const KIND: &str = "CredentialProviderConfig";
const GROUP: &str = "kubelet.config.k8s.io/";

pub(crate) const READ: &str = "the kubelet reads its credential providers when it starts";
pub(crate) const GONE: &str = "the kubelet reads its credential providers when it starts; without this file a pull that worked may fail, and a kubelet that is still told to read it does not start";
pub(crate) const NAMED: &str = "the kubelet's drop-in for credential providers names this file, and the kubelet would not start without it. Keep the file, or take its name out of the drop-in";
pub(crate) const BROKEN: &str = "this file holds no CredentialProviderConfig with a provider; a kubelet that is told to read it would not start. Correct it, or put what is no config into another directory";

/// What a side of a file holds, as far as that can be told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Config,
    Other,
    NotKnown,
}

/// The verdict on a file below the directory of configs.
pub(crate) fn verdict(path: &str, change: &Change, context: &Context<'_>) -> Verdict {
    let named = named(path, context);
    let before = held(&change.before);
    let after = if is_gone(&change.after) { None } else { Some(held(&change.after)) };
    match after {
        // One that is empty is in its directory still.
        None if named == Named::Itself => Verdict::refuse(NAMED),
        None if named == Named::Directory && !change.after.is_absent() => Verdict::refuse(BROKEN),
        None if !is_gone(&change.before) && before != Held::Other => {
            Verdict::drain(GONE).and(Action::restart(KUBELET))
        }
        Some(Held::Other) if named != Named::Not => Verdict::refuse(BROKEN),
        // What was none before, the kubelet does not read: it would not have started.
        Some(Held::Other)
            if is_config_name(path) && (is_gone(&change.before) || before != Held::Other) =>
        {
            Verdict::refuse(BROKEN)
        }
        _ => Verdict::restart(KUBELET, READ),
    }
}

/// How the kubelet's drop-in tells it to read a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    Not,
    Itself,
    /// With all others in its directory.
    Directory,
}

fn named(path: &str, context: &Context<'_>) -> Named {
    let changed = context.changes.iter().find(|it| it.path() == Some(dropin::PATH));
    let same = context.unchanged.iter().find(|it| it.path() == Some(dropin::PATH));
    let dropin = changed.map(|it| &it.after).or(same.map(|it| &it.state));
    let Some(text) = dropin.and_then(State::as_text) else { return Named::Not };
    if dropin::names(text, path) {
        Named::Itself
    } else if is_config_name(path) && dropin::names(text, DIRECTORY) {
        Named::Directory
    } else {
        Named::Not
    }
}

/// Whether a file is called as configs are: the kubelet passes over others in a directory.
fn is_config_name(path: &str) -> bool {
    let name = path.strip_prefix(DIRECTORY).and_then(|path| path.strip_prefix('/'));
    let is_one = |name: &str| {
        !name.contains('/') && [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end))
    };
    name.is_some_and(is_one)
}

fn held(state: &State) -> Held {
    let Some(bytes) = bytes(state) else { return Held::NotKnown };
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    match yaml::parse(text) {
        Some(table) if !text.is_empty() => of_table(&table),
        // A backslash may stand for any letter.
        _ if has(bytes, KIND.as_bytes()) || bytes.contains(&b'\\') => Held::NotKnown,
        _ => Held::Other,
    }
}

fn of_table(table: &Table) -> Held {
    let text = |key: &str| table.get(key).and_then(Value::as_text).unwrap_or_default();
    let has_providers = matches!(table.get("providers"), Some(Value::List(all)) if !all.is_empty());
    if text("kind") == KIND && text("apiVersion").starts_with(GROUP) && has_providers {
        Held::Config
    } else {
        Held::Other
    }
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
