//! What the kubelet makes of a config of credential providers when it starts: it ends if one that it is told
//! to read is missing, or is no config with a provider in it.

use crate::dropin::{self, Said};
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
pub(crate) const NO_CONFIG: &str = "this file holds no CredentialProviderConfig with a provider; a kubelet that is told to read it does not start. Put what is no config into another directory";

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
    let before = if is_gone(&change.before) { None } else { Some(held(&change.before)) };
    let after = if is_gone(&change.after) { None } else { Some(held(&change.after)) };
    match after {
        // One that is empty is in its directory still.
        None if named == Named::Itself => Verdict::refuse(NAMED),
        None if named == Named::Directory && !change.after.is_absent() => Verdict::refuse(BROKEN),
        None if matches!(before, Some(Held::Config | Held::NotKnown)) => drain(GONE),
        Some(Held::Other) => no_config(path, before, named),
        _ => Verdict::restart(KUBELET, READ),
    }
}

/// The verdict on a file that is no config after the change.
fn no_config(path: &str, before: Option<Held>, named: Named) -> Verdict {
    let was_config = match before {
        Some(Held::Config) => true,
        Some(Held::NotKnown) => is_config_name(path),
        Some(Held::Other) | None => false,
    };
    let is_new = before.is_none() && is_config_name(path);
    match named {
        Named::Itself | Named::Directory => Verdict::refuse(BROKEN),
        // As of one that goes: kubelet.service itself may name it.
        Named::Another if was_config => drain(NO_CONFIG),
        Named::Not | Named::Perhaps if was_config => Verdict::refuse(BROKEN),
        Named::Perhaps if is_new => Verdict::refuse(BROKEN),
        Named::Not if is_new => drain(NO_CONFIG),
        // What was none before, the kubelet does not read: it would not have started.
        _ => Verdict::restart(KUBELET, READ),
    }
}

fn drain(reason: &'static str) -> Verdict {
    Verdict::drain(reason).and(Action::restart(KUBELET))
}

/// How the kubelet's drop-in tells it to read a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    /// It is not known that the kubelet is told of any.
    Not,
    Itself,
    /// With all others in its directory.
    Directory,
    /// Another is.
    Another,
    /// The drop-in may not be read, or not all of it is known.
    Perhaps,
}

fn named(path: &str, context: &Context<'_>) -> Named {
    let changed = context.changes.iter().find(|it| it.path() == Some(dropin::PATH));
    let same = context.unchanged.iter().find(|it| it.path() == Some(dropin::PATH));
    let dropin = changed.map(|it| &it.after).or(same.map(|it| &it.state));
    let Some(dropin) = dropin.filter(|it| !is_gone(it)) else { return Named::Not };
    let Some(said) = dropin.as_text().map(Said::of) else { return Named::Perhaps };
    if said.names(path) {
        Named::Itself
    } else if is_config_name(path) && said.names(DIRECTORY) {
        Named::Directory
    } else if said.may_name_any() {
        Named::Perhaps
    } else if said.gives_a_config() {
        Named::Another
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
