//! Which version of a policy decides.

use super::register::config_map_of;
use tread_kube::api::DisruptionPolicy;
use tread_kube::api::disruption_policy::{ClaimStatus, Layer, Mode, State};
use tread_model::claim::{approval, usable_claims};
use tread_model::description::Claim;
use tread_model::digest::Sha256;
use tread_model::verdict::{Failure, FailureKind};

/// A version of a policy that was loaded and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The name that it gives itself.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it does, in one line.
    pub summary: String,
    /// What it wants to decide on.
    pub claims: Vec<Claim>,
    /// Of its module.
    pub digest: Sha256,
    /// Of its settings.
    pub settings_digest: Sha256,
    /// What its author should look at again.
    pub warnings: Vec<String>,
}

/// How loading the newest version ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt {
    /// It could decide.
    Good(Version),
    /// It cannot.
    Bad {
        /// How it failed.
        failure: Failure,
        /// The digest of the module, where there was one.
        digest: Option<Sha256>,
        /// What it says that it claims, where that can be read.
        claims: Vec<Claim>,
    },
}

/// Who decides for a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deciding {
    /// Nobody, and it costs nothing.
    Nobody,
    /// The newest version.
    Newest,
    /// The one before it, whose bytes tread kept.
    LastGood,
    /// Nobody can: these claims cost reboots (law 2).
    Reboots(Vec<Claim>),
}

/// Who decides for a policy, and how that is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// How it is listed.
    pub state: State,
    /// Who decides.
    pub deciding: Deciding,
    /// Why an admin has to approve it first.
    pub needs_approval: Option<String>,
}

impl Choice {
    /// Who decides, in a stable word. Of a policy that is only tried nobody does, and it costs nothing.
    pub fn decides(&self, mode: Mode) -> &'static str {
        match &self.deciding {
            _ if mode != Mode::Enforce => "nobody",
            Deciding::Newest => "newest",
            Deciding::LastGood => "last-good",
            // Also where nothing is known of what it claims: it answers for nothing that it was made for.
            Deciding::Reboots(_) => "reboots",
            Deciding::Nobody => "nobody",
        }
    }
}

/// Whether a version that was loaded cannot decide before an admin approves it.
pub fn has_to_wait(object: &DisruptionPolicy, version: &Version, listed: Option<&str>) -> bool {
    needed(object, &version.claims, listed).is_some()
}

/// Which version of a policy decides. `kept` is the last good version whose
/// bytes tread kept, loaded again; `listed` are the claims that the namespace of
/// its ConfigMap lists.
pub fn choose(
    object: &DisruptionPolicy,
    newest: &Attempt,
    kept: Option<&Version>,
    listed: Option<&str>,
) -> Choice {
    if object.spec.mode == Mode::Disabled {
        return Choice { state: State::Disabled, deciding: Deciding::Nobody, needs_approval: None };
    }
    let approval = |claims: &[Claim]| needed(object, claims, listed);
    let decides = |version: &Version, state: State, deciding: Deciding| {
        let needs_approval = approval(&version.claims);
        match needs_approval {
            None => Choice { state, deciding, needs_approval },
            Some(_) => {
                Choice { state: State::NeedsApproval, deciding: Deciding::Nobody, needs_approval }
            }
        }
    };
    let (failure, claims) = match newest {
        Attempt::Good(version) => {
            let choice = decides(version, State::Loaded, Deciding::Newest);
            let before = kept.filter(|kept| {
                choice.needs_approval.is_some()
                    && may_decide_again(object, kept)
                    && approval(&kept.claims).is_none()
            });
            // While a new version waits for approval the last good one goes on deciding. So
            // shipping a version that has to wait cannot be used to switch off the one before.
            return match before {
                None => choice,
                Some(_) => {
                    Choice { state: State::LastGood, deciding: Deciding::LastGood, ..choice }
                }
            };
        }
        Attempt::Bad { failure, claims, .. } => (failure, claims),
    };
    if let Some(kept) = kept
        && failure.kind != FailureKind::Missing
        && may_decide_again(object, kept)
    {
        return decides(kept, State::LastGood, Deciding::LastGood);
    }
    // Nobody checked the claims of a bad module, and one invalid claim would break routing for all
    // policies: only usable ones are taken, after the claims that are known from before.
    let policies = policies_of(object);
    let declared = usable_claims(claims.iter().cloned(), policies);
    // What an admin would have to approve costs nothing before that.
    let has_to_wait = approval(&declared).is_some();
    let declared = if has_to_wait { Vec::new() } else { declared };
    let all = last_known(object, listed).into_iter().chain(declared);
    let claims = usable_claims(all, AT_MOST.saturating_mul(policies));
    let says_nothing = object.spec.rules.is_some() && failure.kind == FailureKind::InvalidSettings;
    let state = if says_nothing { State::Invalid } else { State::Failed };
    let deciding = match has_to_wait && claims.is_empty() {
        true => Deciding::Nobody,
        false => Deciding::Reboots(claims),
    };
    Choice { state, deciding, needs_approval: None }
}

/// The same while the last good version cannot be loaded for the moment: it is not lost. Where it would go
/// on until an admin approves the newest, what it claims costs reboots.
pub fn choose_meanwhile(
    object: &DisruptionPolicy,
    newest: &Attempt,
    listed: Option<&str>,
) -> Choice {
    let choice = choose(object, newest, None, listed);
    let claims = last_known(object, listed);
    if choice.state != State::NeedsApproval || needed(object, &claims, listed).is_some() {
        return choice;
    }
    let claims = usable_claims(claims, AT_MOST.saturating_mul(policies_of(object)));
    Choice { state: State::Failed, deciding: Deciding::Reboots(claims), ..choice }
}

/// However often a policy fails, each time with other claims, all of them together may cost no more
/// than the claims of this many policies.
const AT_MOST: usize = 2;

/// The rules of one object have as many patterns as the claims of this many policies.
const OF_RULES: usize = 4;

/// How many policies a policy counts as: what is no module is rules.
fn policies_of(object: &DisruptionPolicy) -> usize {
    if config_map_of(object).is_none() { OF_RULES } else { 1 }
}

/// Who decides for a policy whose object cannot be read: `claims` is what can be read of what it
/// claims. `listed` as in [`choose`].
pub fn choose_unreadable(
    object: &DisruptionPolicy,
    claims: &[Claim],
    listed: Option<&str>,
) -> Choice {
    let deciding = match object.spec.mode {
        Mode::Disabled => Deciding::Nobody,
        Mode::Enforce | Mode::Shadow => {
            let all = last_known(object, listed).into_iter().chain(claims.iter().cloned());
            Deciding::Reboots(usable_claims(all, AT_MOST.saturating_mul(policies_of(object))))
        }
    };
    Choice { state: State::Invalid, deciding, needs_approval: None }
}

/// Why an admin has to approve these claims of a policy first; None: nobody has to.
fn needed(object: &DisruptionPolicy, claims: &[Claim], listed: Option<&str>) -> Option<String> {
    if needs_no_approval(object) { None } else { approval::needed(claims, listed) }
}

/// Only what a namespace ships needs it: everything else an admin wrote.
fn needs_no_approval(object: &DisruptionPolicy) -> bool {
    object.spec.approved
        || object.spec.layer() != Layer::Template
        || config_map_of(object).is_none()
}

/// Whether the last good version is still the one that decided, and may.
fn may_decide_again(object: &DisruptionPolicy, kept: &Version) -> bool {
    let status = object.status.as_ref();
    let stands = |field: Option<&String>, digest: &Sha256| {
        field.is_some_and(|text| *text == digest.to_string())
    };
    let pinned = object.spec.digest.as_deref().is_none_or(|pin| pin == kept.digest.to_string());
    // Rules are data: what carries them out comes with tread, and may be newer.
    let rules = config_map_of(object).is_none();
    pinned
        && (rules || stands(status.and_then(|it| it.digest.as_ref()), &kept.digest))
        && stands(status.and_then(|it| it.settings_digest.as_ref()), &kept.settings_digest)
}

/// What a policy claimed when it last decided, or failed to.
fn last_known(object: &DisruptionPolicy, listed: Option<&str>) -> Vec<Claim> {
    let Some(status) = &object.status else { return Vec::new() };
    use State::{Disabled, Failed, Invalid, LastGood, Loaded};
    let claims = || status.claims.iter().map(claim_of).collect::<Vec<Claim>>();
    match status.state {
        Some(Loaded | LastGood | Failed | Invalid) => claims(),
        // The status of a policy that is switched off also holds claims that no admin approved.
        Some(Disabled) => {
            Some(claims()).filter(|it| needed(object, it, listed).is_none()).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// A claim of a status, as plans have it.
pub(super) fn claim_of(claim: &ClaimStatus) -> Claim {
    Claim {
        changes: claim.changes.clone(),
        least: claim.least,
        most: claim.most,
        with_unchanged: claim.with_unchanged,
    }
}

#[cfg(test)]
mod tests;
