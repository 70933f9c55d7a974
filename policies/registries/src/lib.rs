//! Where a node looks for its images, and which it trusts.
//!
//! CRI-O re-reads all of this when it is reloaded, so it is always reloaded.
//! The node is drained first only if a pull that worked could now fail or give
//! another image: see the table in `law.rs`. What CRI-O, or a release of it,
//! would not load is refused.

mod compare;
mod config;
mod fields;
mod files;
mod findings;
mod law;
mod lengths;
mod load;
mod lookaside;
mod lookup;
mod name;
mod names;
mod probe;
mod scopes;
mod signatures;

use compare::compare;
use files::{
    Trouble, config_after, config_before, files, in_place_of_the_systems, is_lookup, load_after,
    load_before, read_after, read_before,
};
use findings::Outcome;
use serde::{Deserialize, Serialize};
use tread_guest_sdk::{
    Action, Change, Claim, Content, Context, Effect, Policy, State, Verdict, export,
};

/// The policy `registries`.
pub struct Registries;

/// What an admin can set.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// When to drain for a change of where images are looked up.
    pub drain: Drain,
    /// Whether mirrors have whole images.
    pub mirrors: Mirrors,
    /// How many characters images' names have at most, without tag and digest.
    pub longest_name: u8,
    /// What CRI-O does with a short name for which several registries are searched.
    pub short_names: ShortNames,
}

/// Half of what the runtime takes, and more than any name has that is in use.
/// With all of it, hardly any mirror could be added without a drain: behind each
/// location that is longer than what it stands for, the longest names are too long.
const LONGEST_NAME: u8 = 128;

impl Default for Settings {
    fn default() -> Self {
        let (drain, mirrors) = (Drain::default(), Mirrors::default());
        let short_names = ShortNames::default();
        Settings { drain, mirrors, longest_name: LONGEST_NAME, short_names }
    }
}

/// When to drain for a change of where images are looked up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Drain {
    /// If a pull that worked could now fail or give another image.
    #[default]
    WhenNeeded,
    /// For every change.
    Always,
    /// For none.
    Never,
}

/// Whether mirrors have whole images: the first one that has an image's manifest
/// has to have its layers and signatures too, since no other one is asked for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mirrors {
    /// They have. One in front of what worked does no harm to pulls by digest.
    #[default]
    Trusted,
    /// They may not have. One in front of what worked is drained for.
    Untrusted,
}

/// What CRI-O does with a short name without an alias for which several registries are searched: its
/// `short_name_mode`. In registries.conf that mode says nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShortNames {
    /// Either of the two. What does harm with one of them is drained for.
    #[default]
    Unknown,
    /// It pulls none. That is CRI-O's own default since 1.34.
    Enforcing,
    /// It asks all of these registries in turn, as OpenShift has it, and all releases before 1.34.
    Disabled,
}

const CRIO: &str = "crio.service";
/// Where signature policies of namespaces are, each in the file `NAMESPACE.json`.
const POLICIES: &str = "/etc/crio/policies/";
const RE_READ: &str = "CRI-O reads this again when it is reloaded";

impl Policy for Registries {
    type Settings = Settings;
    const NAME: &'static str = "registries";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str =
        "Reloads CRI-O for new registries and mirrors; drains only if a pull that worked may fail";
    const CLAIMS: &'static [Claim] = &[
        Claim::on("file:/etc/containers/registries.conf", Effect::Reload, Effect::Refuse)
            .with_unchanged(),
        Claim::on("file:/etc/containers/registries.conf.d/*.conf", Effect::Reload, Effect::Refuse)
            .with_unchanged(),
        Claim::on("file:/etc/containers/policy.json", Effect::Reload, Effect::Refuse),
        Claim::on("file:/etc/containers/registries.d/**", Effect::None, Effect::Refuse)
            .with_unchanged(),
        Claim::on("file:/etc/crio/policies/**", Effect::Reload, Effect::Refuse),
        Claim::on(
            "file:/etc/machine-config-daemon/no-reboot/containers-gpg.pub",
            Effect::Reload,
            Effect::Reload,
        ),
    ];

    fn schema() -> Option<String> {
        Some(
            r#"{"type":"object","additionalProperties":false,"properties":{"drain":{"description":"When to drain for a change of where images are looked up: if a pull that worked could now fail or give another image, for every change, or for none.","enum":["when-needed","always","never"],"default":"when-needed"},"mirrors":{"description":"Whether every mirror that has an image's manifest has its layers and signatures too; CRI-O asks no other one for them. If untrusted, the node is drained when a mirror is put in front of what worked.","enum":["trusted","untrusted"],"default":"trusted"},"longest-name":{"description":"How many characters images' names have at most, without tag and digest. CRI-O takes 255; behind a location that is longer than what it stands for, such a name becomes too long, and the pull fails. So with 255 the node is drained for each such mirror.","type":"integer","minimum":1,"maximum":255,"default":128},"short-names":{"description":"CRI-O's short_name_mode. If enforcing, which is its own default since 1.34, CRI-O pulls no short name without an alias for which several registries are searched; if disabled, as OpenShift sets it, it asks all of them in turn. If unknown, the node is drained where a pull that worked may fail with either of the two.","enum":["unknown","enforcing","disabled"],"default":"unknown"}}}"#
                .to_string(),
        )
    }

    fn classify(settings: &Settings, change: &Change, context: &Context<'_>) -> Verdict {
        match change.path() {
            Some(path) if is_lookup(path) => lookup(*settings, context),
            Some(path) if lookaside::is_read(path) => lookaside(settings.drain, context),
            Some(path) => others(path, change),
            None => Verdict::abstain(),
        }
    }

    fn classify_all(settings: &Settings, context: &Context<'_>) -> Vec<Verdict> {
        let (mut registries, mut signatures) = (None, None);
        let mut verdict = |change: &Change| match change.path() {
            Some(path) if is_lookup(path) => {
                registries.get_or_insert_with(|| lookup(*settings, context)).clone()
            }
            Some(path) if lookaside::is_read(path) => {
                signatures.get_or_insert_with(|| lookaside(settings.drain, context)).clone()
            }
            _ => Self::classify(settings, change, context),
        };
        context.changes.iter().map(&mut verdict).collect()
    }
}

/// The verdict on registries.conf and its drop-ins, which count together.
fn lookup(settings: Settings, context: &Context<'_>) -> Verdict {
    let drain = settings.drain;
    let files = files(context, is_lookup);
    let mut read_after = read_after(&files);
    let trouble = read_after.trouble.take();
    let after = match load_after(&files, &read_after) {
        Ok(after) => after,
        Err(trouble) => return not_to_come(drain, trouble),
    };
    if let Some(trouble) = trouble {
        return not_to_come(drain, trouble);
    }
    let mut read_before = read_before(&files, &read_after);
    let trouble = read_before.trouble.take();
    let before = match load_before(&files, &read_before) {
        Ok(before) => before,
        Err(trouble) => return not_known(drain, &trouble),
    };
    if let Some(trouble) = trouble {
        return not_known(drain, &trouble);
    }
    let before = match config_before(&files, &before, &after) {
        Ok(before) => before,
        Err(trouble) => return not_known(drain, &trouble),
    };
    if let Some(path) = in_place_of_the_systems(&files) {
        let tail = " takes the place of a file of the system, or gives that back, and which short \
                    names the system's has is not known here";
        return decide(drain, true, &[path, tail].concat());
    }
    match compare(&before, &config_after(&files, &after), settings) {
        Outcome::Same(given) => {
            let end = given.text(settings.short_names);
            decide(drain, false, &["every image is looked up as before", &end].concat())
        }
        Outcome::Safe(given, news) => {
            let end = given.text(settings.short_names);
            decide(
                drain,
                false,
                &["whatever could be pulled still can", &end, "; ", &news].concat(),
            )
        }
        Outcome::Harmful(harm) => decide(drain, true, &harm),
    }
}

/// The verdict on the files of registries.d, which count together too.
fn lookaside(drain: Drain, context: &Context<'_>) -> Verdict {
    match lookaside::check(&files(context, lookaside::is_read)) {
        Ok(()) => {
            Verdict::reload(CRIO, "CRI-O reads where signatures are kept when it is reloaded")
        }
        Err(lookaside::Trouble::Broken(path, what)) => {
            let tail = "; pulls fail if CRI-O cannot use a file of registries.d. Correct it";
            Verdict::refuse([path, ": ", &what, tail].concat())
        }
        Err(lookaside::Trouble::Hidden(path)) => unknown(drain, path, "is to come"),
    }
}

/// The side to come says nothing.
fn not_to_come(drain: Drain, trouble: Trouble<'_>) -> Verdict {
    match trouble {
        Trouble::Broken(path, problem) => {
            let place = problem.at.map_or(String::new(), |at| [", ", &at].concat());
            let tail = "; CRI-O would not load it. Correct the file";
            Verdict::refuse([path, &place, ": ", problem.what, tail].concat())
        }
        Trouble::Hidden(path) => unknown(drain, path, "is to come"),
    }
}

/// The side that is there says nothing.
fn not_known(drain: Drain, trouble: &Trouble<'_>) -> Verdict {
    match trouble {
        Trouble::Broken(path, _) => unknown(drain, path, "CRI-O has loaded"),
        Trouble::Hidden(path) => unknown(drain, path, "is there now"),
    }
}

/// A side of which a file cannot be read: whatever changes may do harm.
fn unknown(drain: Drain, path: &str, what: &str) -> Verdict {
    let reason = [path, " cannot be read here, so what ", what, " is not known"].concat();
    decide(drain, true, &reason)
}

fn decide(drain: Drain, needed: bool, reason: &str) -> Verdict {
    let drains = drain == Drain::Always || (needed && drain == Drain::WhenNeeded);
    let (start, end) = match (drain, needed) {
        (Drain::WhenNeeded, true) => ("; drained first, because ", ""),
        (Drain::Never, true) => ("; ", "; it would be drained, but the setting is drain: never"),
        (Drain::Always, _) => ("; ", "; drained first, because the setting is drain: always"),
        _ => ("; ", ""),
    };
    let reason = [RE_READ, start, reason, end].concat();
    if drains {
        Verdict::drain(reason).and(Action::reload(CRIO))
    } else {
        Verdict::reload(CRIO, reason)
    }
}

const OF_NAMESPACE: &str = "CRI-O reads which signatures a namespace wants when it is reloaded; containers that run go on \
    running, and those of this namespace that start from now on follow the new rules, also in pods that run and of \
    images that are here";

/// The verdict on what decides which images are trusted.
fn others(path: &str, change: &Change) -> Verdict {
    if path.starts_with(lookaside::DIR) {
        return Verdict::nothing("only *.yaml files right in registries.d are read");
    }
    if let Some(directory) = directory_of_namespace(path)
        && !change.after.is_absent()
    {
        let tail = "; with it pulls for this namespace would fail. Put the file elsewhere";
        return Verdict::refuse([path, ": ", &lookaside::is_directory(directory), tail].concat());
    }
    if path.ends_with(".json")
        && let State::File(file) = &change.after
        && let Content::Bytes(bytes) = &file.content
        && let Some(fault) = signatures::fault(bytes)
    {
        let tail = "; with this file pulls would fail. Correct it";
        return Verdict::refuse([path, ": ", &fault, tail].concat());
    }
    // CRI-O holds each container that it makes against the policy of its namespace.
    if path.ends_with(".json") && path.starts_with(POLICIES) {
        return Verdict::reload(CRIO, OF_NAMESPACE);
    }
    if path.ends_with(".json") {
        return Verdict::reload(
            CRIO,
            "CRI-O reads which signatures it wants when it is reloaded; pods that run go on running, \
             new pulls follow the new rules",
        );
    }
    Verdict::reload(CRIO, "CRI-O reads the keys of signatures when it is reloaded")
}

/// The directory that CRI-O would take for the signature policy of a namespace.
fn directory_of_namespace(path: &str) -> Option<&str> {
    let (directory, _) = path.strip_prefix(POLICIES)?.split_once('/')?;
    directory.ends_with(".json").then_some(directory)
}

export!(Registries);
