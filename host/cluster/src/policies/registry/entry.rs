//! What the registry knows of one policy: its newest version, the last good one, the
//! copy of the one that decides, and what was written of it.

use super::chosen::Chosen;
use super::last_good::{Good, Search};
use super::origin::Recipe;
use super::running::Running;
use crate::policies::choose::{Attempt, Deciding, Version};
use crate::policies::kept;
use crate::policies::load::Loaded;
use k8s_openapi::jiff::Timestamp;
use kube::api::Preconditions;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tread_engine::policy::Policy;
use tread_engine::sandbox::Module;
use tread_kube::api::disruption_policy::DisruptionPolicyStatus;
use tread_kube::api::{DisruptionPolicy, DisruptionPolicySpec};
use tread_model::description::Claim;
use tread_model::plan::PolicyIdentity;
use tread_model::verdict::{Failure, FailureKind, Layer};

/// Before a version that failed for lack of time or room is tried again: at
/// first, and at most.
const TRY_AGAIN: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(3600));

/// Before a copy that could not be written is tried again.
pub(super) const COPY_AGAIN: Duration = Duration::from_secs(30);

/// The newest version.
#[derive(Debug, Default)]
pub(super) enum Newest {
    /// None was tried yet.
    #[default]
    Untried,
    Tried(Box<Tried>),
}

/// A version that was tried.
#[derive(Debug)]
pub(super) struct Tried {
    pub(super) recipe: Recipe,
    pub(super) loaded: Loaded,
    /// When it is tried again, where it failed for lack of time or room.
    again: Option<Instant>,
}

/// A version that is being loaded.
#[derive(Debug, Default)]
pub(super) enum Loading {
    #[default]
    Idle,
    Runs {
        job: Box<Running<Recipe>>,
        /// Whether it is not the newest any more.
        is_outdated: bool,
        since: Instant,
    },
}

/// What has to be done for a version.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing: it was tried. When it is tried again, if it is.
    Tried(Option<Instant>),
    /// Nothing: it is being loaded, or a version is that differs only by a write of its ConfigMap.
    Runs,
    /// It has to be loaded.
    Load,
}

/// How it stands with the copy of the version that decides.
#[derive(Debug, Default)]
pub(super) enum Copy {
    /// None was needed.
    #[default]
    Nothing,
    Written {
        version: Version,
        place: String,
        /// As the API server has it.
        as_seen: Preconditions,
    },
    /// Tried again after that.
    Failed { version: Version, again: Instant, why: NotCopied },
}

/// Why a version could not be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotCopied {
    /// Its ConfigMap holds another one by now.
    Moved,
    /// It could not be written.
    Refused,
}

/// A status as it was written, and what the API server kept of it: one whose
/// definition is older drops what it does not know.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) wanted: DisruptionPolicyStatus,
    pub(super) kept: DisruptionPolicyStatus,
    pub(super) at: Instant,
}

/// A policy as it was published, in place of the one that was loaded, for as long as
/// it is made of the same.
#[derive(Debug, Default)]
enum Shown {
    #[default]
    AsItIs,
    Changed {
        of: Arc<Policy>,
        it: Arc<Policy>,
    },
    Broken {
        why: Failure,
        it: Arc<Policy>,
    },
}

/// What the registry knows of one policy.
#[derive(Debug)]
pub(super) struct Entry {
    /// Since when the object is known.
    pub(super) since: Instant,
    pub(super) newest: Newest,
    pub(super) loading: Loading,
    /// How often versions failed for lack of time or room, since one was good.
    tries: u32,
    /// A good version before the newest one, until a newer one decides.
    pub(super) last: Option<Good>,
    pub(super) search: Search,
    pub(super) copy: Copy,
    pub(super) copying: Option<Running<Version>>,
    /// The status as it was written last, and what the API server kept of it.
    pub(super) written: Option<Kept>,
    /// What was chosen at the last look.
    pub(super) before: Option<Chosen>,
    shown: Shown,
}

impl Entry {
    pub(super) fn new() -> Entry {
        Entry {
            since: Instant::now(),
            newest: Newest::default(),
            loading: Loading::default(),
            tries: 0,
            last: None,
            search: Search::default(),
            copy: Copy::default(),
            copying: None,
            written: None,
            before: None,
            shown: Shown::default(),
        }
    }

    /// Forgets all versions; what was written stays known.
    pub(super) fn forget(&mut self) {
        let (since, written) = (self.since, self.written.take());
        let (copy, copying) = (std::mem::take(&mut self.copy), self.copying.take());
        *self = Entry { since, written, copy, copying, ..Entry::new() };
    }

    /// The newest version that was tried.
    pub(super) fn tried(&self) -> Option<&Tried> {
        match &self.newest {
            Newest::Untried => None,
            Newest::Tried(tried) => Some(tried),
        }
    }

    /// What has to be done for the newest version.
    pub(super) fn due(&mut self, recipe: &Recipe, now: Instant) -> Due {
        let tried = self.tried().filter(|tried| tried.recipe == *recipe);
        if let Some(again) = tried.map(|tried| tried.again)
            && again.is_none_or(|again| now < again)
        {
            self.loading = Loading::Idle;
            return Due::Tried(again);
        }
        if let Loading::Runs { job, is_outdated, .. } = &mut self.loading {
            // The load goes on although its ConfigMap was written: constant writes would otherwise
            // keep the policy from ever being loaded, and an admin's settings from taking effect.
            *is_outdated = job.what != *recipe;
            if job.what.is_as_before(recipe) {
                return Due::Runs;
            }
        }
        Due::Load
    }

    /// Since when a version waits to be loaded, or is being loaded, while the one before
    /// it is known.
    pub(super) fn waits_behind_another(&self) -> Option<Instant> {
        let Loading::Runs { job, since, .. } = &self.loading else { return None };
        let before = self.tried()?;
        (before.recipe != job.what).then_some(*since)
    }

    /// Notes a version that was loaded, or not, if it is the one that was to be.
    pub(super) fn loaded(&mut self, recipe: Recipe, loaded: Loaded, now: Instant) {
        let is_outdated = match &self.loading {
            Loading::Runs { job, is_outdated, .. } if job.what == recipe => *is_outdated,
            _ => return,
        };
        // It may only be bad since its ConfigMap was written meanwhile.
        let is_bad = matches!(loaded.attempt, Attempt::Bad { .. });
        let is_as_before = |tried: &Tried| tried.recipe.is_as_before(&recipe);
        if is_outdated && is_bad && self.tried().is_some_and(is_as_before) {
            self.loading = Loading::Idle;
            return;
        }
        let again = match (&loaded.attempt, loaded.retry) {
            (_, Some(retry)) => {
                let wait = retry.at.duration_since(Timestamp::now());
                Some(now + Duration::try_from(wait).unwrap_or_default())
            }
            (Attempt::Bad { failure, .. }, _) if may_pass(failure) => {
                self.tries = self.tries.saturating_add(1);
                let times = 2_u32.saturating_pow(self.tries.min(16)) / 2;
                Some(now + TRY_AGAIN.0.saturating_mul(times).min(TRY_AGAIN.1))
            }
            _ => None,
        };
        self.put(Tried { recipe, loaded, again });
    }

    /// Notes a version of which there is nothing to load.
    pub(super) fn cannot_be_loaded(&mut self, recipe: Recipe, failure: Failure) {
        self.put(Tried { recipe, loaded: Loaded::bad(failure), again: None });
    }

    /// Puts a version in the place of the newest. A good one that it takes the place of
    /// stays at hand, if the newest is bad, or that one decided: the newest may have to wait.
    fn put(&mut self, tried: Tried) {
        self.loading = Loading::Idle;
        if matches!(self.search, Search::Lost(_)) {
            self.search = Search::Idle;
        }
        let is_good = tried.loaded.policy.is_some();
        let before = std::mem::replace(&mut self.newest, Newest::Tried(Box::new(tried)));
        if is_good {
            self.tries = 0;
        }
        let decided = |it: &Chosen| it.choice.deciding == Deciding::Newest;
        if self.last.is_none()
            && (!is_good || self.before.as_ref().is_some_and(decided))
            && let Newest::Tried(before) = before
            && let Tried { recipe, loaded, .. } = *before
            && let Loaded { attempt: Attempt::Good(version), policy, module, .. } = loaded
            && let Some(policy) = policy
        {
            self.last = Some(Good { version, policy, module, terms: recipe.terms });
        }
    }

    /// A module that need not be loaded again.
    pub(super) fn module(&self) -> Option<Module> {
        let newest = self.tried().and_then(|tried| tried.loaded.module.clone());
        newest.or_else(|| self.last.as_ref()?.module.clone())
    }

    /// Notes that a copy was written, under this name, or not.
    pub(super) fn copied(
        &mut self,
        version: Version,
        place: Result<(String, Preconditions), NotCopied>,
        now: Instant,
    ) {
        self.copying = None;
        self.copy = match place {
            Ok((place, as_seen)) => Copy::Written { version, place, as_seen },
            Err(why) => Copy::Failed { version, again: now + COPY_AGAIN, why },
        };
    }

    /// How it stands with the copy of a version.
    pub(super) fn copy_of(&self, version: &Version) -> &Copy {
        match &self.copy {
            Copy::Written { version: of, .. } | Copy::Failed { version: of, .. }
                if of == version =>
            {
                &self.copy
            }
            _ => &Copy::Nothing,
        }
    }

    /// Lets go of the copy of another version than the one at this place, if no status names
    /// it: where it is, and as which it was seen.
    pub(super) fn left_copy(
        &mut self,
        object: &DisruptionPolicy,
        place: &str,
    ) -> Option<(String, Preconditions)> {
        let (left, as_seen) = match &self.copy {
            Copy::Written { place, as_seen, .. } => (place.clone(), as_seen.clone()),
            // It may have been written all the same.
            Copy::Failed { version, why: NotCopied::Refused, .. } => {
                let uid = object.metadata.uid.as_deref()?;
                (kept::place(uid, version), Preconditions::default())
            }
            Copy::Failed { .. } | Copy::Nothing => return None,
        };
        let named = object.status.as_ref().and_then(|status| status.kept_in.as_ref());
        if left == place || named == Some(&left) || self.named() == Some(&left) {
            return None;
        }
        self.copy = Copy::Nothing;
        Some((left, as_seen))
    }

    /// The copy that the status names which was written last.
    pub(super) fn named(&self) -> Option<&String> {
        self.written.as_ref()?.wanted.kept_in.as_ref()
    }

    /// Notes which copies are gone.
    pub(super) fn removed(&mut self, places: &BTreeSet<String>) {
        if matches!(&self.copy, Copy::Written { place, .. } if places.contains(place)) {
            self.copy = Copy::Nothing;
        }
    }

    /// Forgets what it knows of copies: another replica writes and removes them now.
    pub(super) fn forget_copies(&mut self) {
        (self.copy, self.copying) = (Copy::Nothing, None);
    }

    /// A policy as it takes part in plans: under the name that it has there, and without the
    /// rights that an admin has taken back since it was loaded.
    pub(super) fn taking_part(
        &mut self,
        policy: &Arc<Policy>,
        name: &str,
        spec: &DisruptionPolicySpec,
    ) -> Arc<Policy> {
        let layer = match spec.layer().into() {
            Layer::Template => Layer::Template,
            Layer::Admin | Layer::Builtin => policy.identity.layer,
        };
        let may_relax = policy.may_relax && spec.may_relax;
        let read_secrets = policy.read_secrets && spec.read_secrets;
        let is_so = |it: &Policy| {
            it.identity.policy == name
                && (it.identity.layer, it.may_relax, it.read_secrets)
                    == (layer, may_relax, read_secrets)
        };
        if is_so(policy) {
            return Arc::clone(policy);
        }
        if let Shown::Changed { of, it } = &self.shown
            && Arc::ptr_eq(of, policy)
            && is_so(it)
        {
            return Arc::clone(it);
        }
        let (summary, claims) = (policy.summary.clone(), policy.claims.clone());
        let mut it = Policy::clone(policy).named(name.to_owned(), summary, claims);
        it.identity.layer = layer;
        (it.may_relax, it.read_secrets) = (may_relax, read_secrets);
        let it = Arc::new(it);
        self.shown = Shown::Changed { of: Arc::clone(policy), it: Arc::clone(&it) };
        it
    }

    /// In place of a policy that cannot decide: what it claims costs reboots.
    pub(super) fn broken(
        &mut self,
        identity: PolicyIdentity,
        claims: Vec<Claim>,
        failure: &Failure,
    ) -> Option<Arc<Policy>> {
        if let Shown::Broken { why, it } = &self.shown
            && (why, &it.identity, &it.claims) == (failure, &identity, &claims)
        {
            return Some(Arc::clone(it));
        }
        let made = Policy::broken(identity, claims, failure.clone());
        let made = made.inspect_err(|error| tracing::error!("a policy is left out: {error}"));
        let it = Arc::new(made.ok()?);
        self.shown = Shown::Broken { why: failure.clone(), it: Arc::clone(&it) };
        Some(it)
    }
}

/// Whether a failure may be another one at the next try, with the same bytes.
pub(super) fn may_pass(failure: &Failure) -> bool {
    // A compiler that the system gave no memory looks like one that crashed.
    use FailureKind::{CompileFailed, CompileTimeout, Deadline, NoRoom, Stack};
    matches!(failure.kind, CompileFailed | CompileTimeout | Deadline | NoRoom | Stack)
}

#[cfg(test)]
mod tests;
