//! What the status of a DisruptionPolicy says, and which Events tell of it.

use super::choose::{Attempt, Choice, Deciding, Version, claim_of};
use super::load::Retry;
use super::register::{config_map_of, said};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use tread_kube::api::conditions::{self, Finding};
use tread_kube::api::disruption_policy::{ClaimStatus, FailureStatus, Mode, State};
use tread_kube::api::words::LOST_ANNOTATION;
use tread_kube::api::{DisruptionPolicy, DisruptionPolicyStatus};
use tread_kube::clean::cleaned;
use tread_kube::events::{Note, Reason};
use tread_model::description::Claim;
use tread_model::digest::Sha256;
use tread_model::effect::Effect;
use tread_model::text::and_more;
use tread_model::verdict::{Failure, FailureKind};

/// The reason of a policy that waits to be loaded.
pub const WAITING: &str = "Waiting";

/// What a column has room for.
const LONGEST_SUMMARY: usize = 60;

/// What was found out of a policy.
#[derive(Debug, Clone, Copy)]
pub struct Found<'f> {
    /// Who decides.
    pub choice: &'f Choice,
    /// The newest version.
    pub newest: &'f Attempt,
    /// The last good version that tread keeps, and where.
    pub kept: Option<(&'f Version, &'f str)>,
    /// What it is called in plans.
    pub name: &'f str,
    /// When the newest version is tried again, where it failed to compile.
    pub retry: Option<Retry>,
}

/// The status of a policy, and what to tell of it if that is new.
pub fn status(
    object: &DisruptionPolicy,
    found: Found<'_>,
    now: Timestamp,
) -> (DisruptionPolicyStatus, Option<Note>) {
    let before = object.status.clone().unwrap_or_default();
    let Found { choice, newest, kept, name, retry } = found;
    let generation = object.metadata.generation.unwrap_or_default();
    let version = match (&choice.deciding, newest) {
        (Deciding::LastGood, _) => kept.map(|(version, _)| version),
        // The newest waits, and what is known is known of the one before.
        (Deciding::Reboots(_), _) => None,
        (_, Attempt::Good(version)) => Some(version),
        _ => None,
    };
    let decides = matches!(choice.deciding, Deciding::Newest | Deciding::LastGood);
    let claims = match (&choice.deciding, version) {
        (Deciding::Reboots(claims), _) => claims.as_slice(),
        (_, Some(version)) => version.claims.as_slice(),
        _ => &[],
    };
    let mut status = DisruptionPolicyStatus {
        observed_generation: Some(generation),
        state: Some(choice.state),
        layer: Some(object.spec.layer()),
        source: Some(source(object)),
        name: (version.is_some() || !claims.is_empty()).then(|| name.to_owned()),
        version: version.map(|version| version.version.clone()),
        summary: version.map(|version| version.summary.clone()),
        digest: version.map(|version| version.digest.to_string()),
        newest_digest: newest_digest(object, newest).map(|digest| digest.to_string()),
        settings_digest: version.map(|version| version.settings_digest.to_string()),
        kept_in: kept_in(&before, version.filter(|_| decides), kept),
        claims: claims.iter().map(ClaimStatus::from).collect(),
        claims_summary: Some(claims_summary(claims)),
        effects: Some(match &choice.deciding {
            // Not the range of answers that it declares, since the policy does not answer.
            Deciding::Reboots(claims) if !claims.is_empty() => Effect::Reboot.to_string(),
            _ => effects(claims),
        }),
        decisions: before.decisions,
        failure: None,
        pending_plans: before.pending_plans.clone(),
        last_change: before.last_change.clone(),
        conditions: before.conditions.clone(),
    };
    if version.is_none() && before.kept_in.is_some() && !is_gone(newest) {
        // A policy that is switched off, or cannot be had for a moment, may be needed again: the
        // status still names its copy and its digests.
        status.kept_in.clone_from(&before.kept_in);
        status.digest.clone_from(&before.digest);
        status.settings_digest.clone_from(&before.settings_digest);
    }
    if version.is_none() && choice.state == State::Disabled && !is_gone(newest) {
        // Nobody looked at it: what it claimed is what is known of it.
        let claims: Vec<Claim> = before.claims.iter().map(claim_of).collect();
        status.claims_summary = Some(claims_summary(&claims));
        status.effects = Some(effects(&claims));
        status.claims.clone_from(&before.claims);
    }
    let loaded = match newest {
        _ if choice.state == State::Disabled => {
            (None, "Disabled".to_owned(), "An admin switched it off: it is not asked.".to_owned())
        }
        Attempt::Good(version) => {
            let said = ["It was loaded and checked."].into_iter();
            let said: Vec<&str> = said.chain(version.warnings.iter().map(String::as_str)).collect();
            (Some(true), "Loaded".to_owned(), said.join(" ") + &named(object, newest))
        }
        Attempt::Bad { failure, digest, .. } => {
            let same = |earlier: &&FailureStatus| {
                earlier.name == failure.kind.name()
                    && earlier.digest == digest.map(|digest| digest.to_string())
            };
            let since = before.failure.as_ref().filter(same).and_then(|it| it.since.clone());
            status.failure = Some(FailureStatus {
                name: failure.kind.name().to_owned(),
                message: failure.message.clone(),
                digest: digest.map(|digest| digest.to_string()),
                since: since.or(Some(Time(now))),
                tries: retry.map(|retry| retry.tries.into()),
                retry_at: retry.map(|retry| Time(retry.at)),
            });
            let message = consequence(object, newest, choice, version) + &named(object, newest);
            (Some(false), reason(object, failure, choice), message)
        }
    };
    let mut find = |type_, (status_, reason, message): (Option<bool>, String, String)| {
        let finding = Finding { type_, status: status_, reason, message };
        conditions::set(&mut status.conditions, finding, generation, now);
    };
    find("Loaded", loaded);
    let approved = match &choice.needs_approval {
        Some(why) => {
            let meanwhile = meanwhile(object, choice, version);
            let message = approval(object, why, newest, &meanwhile);
            (Some(false), "NeedsApproval".to_owned(), message)
        }
        None => (Some(true), "Approved".to_owned(), "Nobody has to approve what it claims.".into()),
    };
    let (is_approved, word, mut message) = approved;
    message.push_str(&lost(object));
    let approved = (is_approved, word, message);
    find("Approved", approved);
    if !same_decision(&before, &status) {
        status.last_change = Some(Time(now));
    }
    let status = cleaned(status);
    let note = note(&before, &status);
    (status, note)
}

/// The status of a policy that never decided, and waits to be loaded behind so
/// many others.
pub fn waiting(object: &DisruptionPolicy, others: usize, now: Timestamp) -> DisruptionPolicyStatus {
    let mut status = object.status.clone().unwrap_or_default();
    let is_said = status.state == Some(State::Loading)
        && status.observed_generation == object.metadata.generation;
    // How many others wait changes all the time: it is said once.
    if is_said {
        return status;
    }
    let generation = object.metadata.generation.unwrap_or_default();
    status.observed_generation = Some(generation);
    status.state = Some(State::Loading);
    status.layer = Some(object.spec.layer());
    status.source = Some(source(object));
    let finding = Finding {
        type_: "Loaded",
        status: None,
        reason: WAITING.to_owned(),
        message: format!(
            "It waits for its turn to be fetched and compiled; {others} others wait. Until then it \
             decides nothing, and costs nothing."
        ),
    };
    conditions::set(&mut status.conditions, finding, generation, now);
    cleaned(status)
}

/// The status of a policy whose new version waits to be loaded: what decided before goes
/// on, and its condition says what is waited for.
pub fn waiting_behind(
    object: &DisruptionPolicy,
    others: usize,
    now: Timestamp,
) -> DisruptionPolicyStatus {
    let mut status = object.status.clone().unwrap_or_default();
    let is_said = |it: &Condition| it.type_ == "Loaded" && it.reason == WAITING;
    if status.conditions.iter().any(is_said) {
        return status;
    }
    let meanwhile = match status.state {
        Some(State::Loaded | State::LastGood) => {
            let version = status.version.as_deref().unwrap_or("it");
            format!("Until then {version} {}.", goes_on(object))
        }
        _ => "Until then nothing changes.".to_owned(),
    };
    let finding = Finding {
        type_: "Loaded",
        status: None,
        reason: WAITING.to_owned(),
        message: format!(
            "A new version waits for its turn to be fetched and compiled; {others} others wait. \
             {meanwhile}"
        ),
    };
    let generation = object.metadata.generation.unwrap_or_default();
    conditions::set(&mut status.conditions, finding, generation, now);
    cleaned(status)
}

/// Of the module that was tried, where it comes from a ConfigMap.
fn newest_digest(object: &DisruptionPolicy, newest: &Attempt) -> Option<Sha256> {
    config_map_of(object)?;
    match newest {
        Attempt::Good(version) => Some(version.digest),
        Attempt::Bad { digest, .. } => *digest,
    }
}

/// Which module a condition is about.
fn named(object: &DisruptionPolicy, newest: &Attempt) -> String {
    let digest = newest_digest(object, newest);
    digest.map(|digest| format!(" Its digest is {digest}.")).unwrap_or_default()
}

/// Whether its ConfigMap is gone, which takes it away: what is switched off was
/// not even looked for, and has no message.
fn is_gone(newest: &Attempt) -> bool {
    matches!(newest, Attempt::Bad { failure, .. }
        if failure.kind == FailureKind::Missing && !failure.message.is_empty())
}

/// Whether what decides is the same.
fn same_decision(before: &DisruptionPolicyStatus, after: &DisruptionPolicyStatus) -> bool {
    before.state == after.state
        && before.layer == after.layer
        && before.digest == after.digest
        && before.settings_digest == after.settings_digest
        && before.claims == after.claims
}

/// Where the version that decides is kept, also if another replica kept it.
fn kept_in(
    before: &DisruptionPolicyStatus,
    decides: Option<&Version>,
    kept: Option<(&Version, &str)>,
) -> Option<String> {
    let decides = decides?;
    if let Some((version, place)) = kept
        && version.digest == decides.digest
        && version.settings_digest == decides.settings_digest
    {
        return Some(place.to_owned());
    }
    let same = before.digest == Some(decides.digest.to_string())
        && before.settings_digest == Some(decides.settings_digest.to_string());
    before.kept_in.clone().filter(|_| same)
}

/// How the newest version failed, in a word: rules are what their object says.
fn reason(object: &DisruptionPolicy, failure: &Failure, choice: &Choice) -> String {
    let of_rules = object.spec.rules.is_some() && failure.kind == FailureKind::InvalidSettings;
    match choice.state == State::Invalid || of_rules {
        true => "Invalid".to_owned(),
        false => failure.kind.name().to_owned(),
    }
}

/// What a policy means that an admin only tries.
const COSTS_NOTHING: &str = "it decides nothing, and costs nothing.";

/// Whether a policy decides nothing, and plans only say what it would have changed.
fn is_tried(object: &DisruptionPolicy) -> bool {
    object.spec.mode == Mode::Shadow
}

/// What a version does that stays.
fn goes_on(object: &DisruptionPolicy) -> &'static str {
    if is_tried(object) { "goes on being tried" } else { "goes on deciding" }
}

/// What a failure means now, for the admin, and what it was, for the author.
fn consequence(
    object: &DisruptionPolicy,
    newest: &Attempt,
    choice: &Choice,
    decides: Option<&Version>,
) -> String {
    let Attempt::Bad { failure, digest, .. } = newest else { return String::new() };
    let is_of_settings = failure.kind == FailureKind::InvalidSettings;
    let then = match (&choice.deciding, decides) {
        (Deciding::LastGood, Some(last)) if is_tried(object) => {
            format!("The version before, {}, goes on being tried: {COSTS_NOTHING}", last.version)
        }
        (Deciding::Reboots(claims), _) if is_tried(object) && !claims.is_empty() => {
            format!("It is only tried: {COSTS_NOTHING}")
        }
        (Deciding::LastGood, Some(_)) if is_of_settings && object.spec.rules.is_some() => {
            "The rules before go on deciding.".to_owned()
        }
        // It is the same module.
        (Deciding::LastGood, Some(last)) if is_of_settings && *digest == Some(last.digest) => {
            "The settings before go on deciding.".to_owned()
        }
        (Deciding::LastGood, Some(last)) => {
            format!("The version before, {}, goes on deciding.", last.version)
        }
        (Deciding::Reboots(claims), _) if !claims.is_empty() => {
            "Until that is mended, every change that it claims costs a reboot.".to_owned()
        }
        _ => "It decides nothing.".to_owned(),
    };
    let message = failure.message.trim_end_matches('.');
    match message.ends_with(['?', '!']) {
        true => format!("{message} {then}"),
        false => format!("{message}. {then}"),
    }
}

/// Who decides in place of a version that waits for approval.
fn meanwhile(object: &DisruptionPolicy, choice: &Choice, before: Option<&Version>) -> String {
    let goes_on = goes_on(object);
    match (&choice.deciding, before) {
        (Deciding::LastGood, Some(before)) => {
            format!(" The version before, {}, {goes_on}.", before.version)
        }
        (Deciding::Reboots(_), _) => {
            let costs = "every change that it claims costs a reboot.";
            let costs = if is_tried(object) { COSTS_NOTHING } else { costs };
            format!(
                " The version before cannot be loaded for the moment, and {goes_on} as soon as it \
                 can be; until then {costs}"
            )
        }
        _ => String::new(),
    }
}

/// What an admin has to approve, and who decides until then.
fn approval(object: &DisruptionPolicy, why: &str, newest: &Attempt, meanwhile: &str) -> String {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let it = match newest {
        Attempt::Good(newest) if !meanwhile.is_empty() => {
            format!("The new version, {},", newest.version)
        }
        _ => "It".to_owned(),
    };
    let is_not = if is_tried(object) { "is not tried" } else { "decides nothing" };
    format!(
        "{it} {is_not} until an admin approves it, because {why}: `kubectl patch \
         disruptionpolicy {name} --type merge -p '{{\"spec\":{{\"approved\":true}}}}'`. That holds \
         for later versions too, unless spec.digest names this one.{meanwhile}"
    )
}

/// What an admin had said in the object before this one, and not in this one.
fn lost(object: &DisruptionPolicy) -> String {
    let Some(fields) = object.annotations().get(LOST_ANNOTATION) else { return String::new() };
    let again = said(object);
    let lost: Vec<String> = fields
        .split(',')
        .filter(|field| !again.contains(field))
        .map(|field| format!("spec.{field}"))
        .collect();
    if lost.is_empty() {
        return String::new();
    }
    format!(
        " An admin had said {} in the object before this one, which went with its ConfigMap, or \
         with the label of its namespace: say it again if it is still meant, or remove the \
         annotation {LOST_ANNOTATION}.",
        lost.join(", ")
    )
}

/// Where a policy comes from, for a column.
fn source(object: &DisruptionPolicy) -> String {
    if let Some(map) = config_map_of(object) {
        return format!("{}/{}", map.namespace, map.name);
    }
    match &object.spec.source {
        Some(source) if source.builtin.is_some() => "builtin".to_owned(),
        Some(_) => "nodeDisruptionPolicy".to_owned(),
        None => "rules".to_owned(),
    }
}

fn claims_summary(claims: &[Claim]) -> String {
    let mut shown = String::new();
    for (index, claim) in claims.iter().enumerate() {
        let more = format!("{}{}", if index == 0 { "" } else { ", " }, claim.changes);
        if index > 0 && shown.len() + more.len() > LONGEST_SUMMARY {
            return format!("{shown}{}", and_more(claims.len(), index));
        }
        shown.push_str(&conditions::cut(more, LONGEST_SUMMARY));
    }
    shown
}

fn effects(claims: &[Claim]) -> String {
    let least = claims.iter().map(|claim| claim.least).min();
    let most = claims.iter().map(|claim| claim.most).max();
    match (least, most) {
        (Some(least), Some(most)) if least == most => least.to_string(),
        (Some(least), Some(most)) => format!("{least}..{most}"),
        _ => String::new(),
    }
}

/// An Event for what is new, and nothing for what was said before.
fn note(before: &DisruptionPolicyStatus, after: &DisruptionPolicyStatus) -> Option<Note> {
    let failure = |status: &DisruptionPolicyStatus| {
        status.failure.as_ref().map(|it| (it.name.clone(), it.digest.clone()))
    };
    let same = before.state == after.state
        && before.digest == after.digest
        && before.settings_digest == after.settings_digest
        && failure(before) == failure(after);
    if same {
        return None;
    }
    let said = |type_: &str| {
        let condition = after.conditions.iter().find(|condition| condition.type_ == type_);
        condition.map(|condition| condition.message.clone()).unwrap_or_default()
    };
    let failed = || {
        let name = after.failure.as_ref().map_or("", |failure| failure.name.as_str());
        format!("{name}: {}", said("Loaded"))
    };
    let waits = || (Reason::PolicyNeedsApproval, true, said("Approved"));
    let (reason, warns, text) = match after.state? {
        State::Loaded => {
            let version = after.version.as_deref().unwrap_or_default();
            let name = after.name.as_deref().unwrap_or_default();
            let loaded = said("Loaded");
            let loaded = loaded.strip_prefix("It ").unwrap_or(&loaded);
            (Reason::PolicyLoaded, false, format!("{name} {version} {loaded}"))
        }
        State::LastGood | State::Failed if after.failure.is_none() => waits(),
        State::LastGood => (Reason::PolicyLastGood, true, failed()),
        State::Failed | State::Invalid => (Reason::PolicyFailed, true, failed()),
        State::NeedsApproval => waits(),
        State::Disabled => (Reason::PolicyDisabled, false, said("Loaded")),
        State::Loading => return None,
    };
    Some(Note { reason, warns, text })
}

#[cfg(test)]
mod tests;
