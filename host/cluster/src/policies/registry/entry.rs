//! What the registry knows of one policy.

use super::pass::Listed;
use crate::policies::choose::{Attempt, Version};
use crate::policies::load::{Body, Loaded, Terms};
use crate::policies::snapshot::Place;
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tread_engine::policy::Policy;
use tread_engine::sandbox::Module;
use tread_kube::api::DisruptionPolicy;
use tread_kube::api::disruption_policy::DisruptionPolicyStatus;
use tread_model::description::Claim;
use tread_model::plan::PolicyIdentity;
use tread_model::verdict::{Failure, FailureKind};

/// All that makes a version what it is: as long as it is the same, there is
/// nothing to load.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Recipe {
    pub(super) origin: Origin,
    pub(super) settings: Map<String, Value>,
    pub(super) pin: Option<String>,
    pub(super) terms: Terms,
}

/// Where a version comes from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Origin {
    /// A ConfigMap, as it was written last.
    ConfigMap { place: Place, uid: String, resource_version: String, key: Option<String> },
    /// It is at hand.
    Here(Body),
    /// There is nothing to load.
    Nothing(Failure),
}

impl Recipe {
    /// Whether at most the ConfigMap was written in between: where it is and all
    /// that an admin says is the same.
    pub(super) fn is_as_before(&self, other: &Recipe) -> bool {
        let same_origin = match (&self.origin, &other.origin) {
            (Origin::ConfigMap { place, .. }, Origin::ConfigMap { place: other, .. }) => {
                place == other
            }
            (origin, other) => origin == other,
        };
        same_origin
            && self.settings == other.settings
            && self.pin == other.pin
            && self.terms == other.terms
    }
}

/// A last good version: what the status says of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sought {
    pub(super) place: String,
    pub(super) digest: String,
    pub(super) settings_digest: String,
    pub(super) terms: Terms,
}

/// A version that is good, and could decide again.
#[derive(Debug, Clone)]
pub(super) struct Good {
    pub(super) version: Version,
    pub(super) policy: Arc<Policy>,
    pub(super) module: Option<Module>,
    pub(super) terms: Terms,
}

/// How it stands with the copy of the version that decides.
#[derive(Debug)]
pub(super) enum Copy {
    Written {
        version: Version,
        place: String,
    },
    /// Tried again after that.
    Failed {
        version: Version,
        again: Instant,
        why: NotCopied,
    },
}

/// Why a version could not be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotCopied {
    /// Its ConfigMap holds another one by now.
    Moved,
    /// It could not be written.
    Refused,
}

/// Why a last good version could not be loaded from its copy.
#[derive(Debug)]
pub(super) enum NotRestored {
    /// There is no copy, or it is not what was kept.
    Lost,
    /// For lack of time or room, which there may be at the next try.
    NotNow(Failure),
}

/// Ends a job with its entry, or when another takes its place.
#[derive(Debug)]
pub(super) struct Running<T> {
    pub(super) what: T,
    pub(super) task: AbortHandle,
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the registry knows of one policy.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// Since when the object is known.
    pub(super) since: Option<Instant>,
    /// The newest version that was tried.
    pub(super) newest: Option<(Recipe, Loaded)>,
    pub(super) loading: Option<Running<Recipe>>,
    /// Whether what is being loaded is not the newest any more.
    pub(super) outdated: bool,
    /// When the newest version, which failed for lack of time or room, is tried
    /// again, and how often it was.
    pub(super) again: Option<Instant>,
    pub(super) tries: u32,
    /// A good version before the newest one.
    pub(super) last: Option<Good>,
    pub(super) restoring: Option<Running<Sought>>,
    /// What was looked for, and is not kept any more.
    pub(super) lost: Option<Sought>,
    /// What was looked for and could not be loaded: when it is tried again, and how
    /// often it was.
    pub(super) not_restored: Option<(Sought, Instant, u32)>,
    pub(super) copy: Option<Copy>,
    pub(super) copying: Option<Running<Version>>,
    /// The status as it was written last, and what the API server kept of it.
    pub(super) written: Option<Kept>,
    /// What was chosen at the last look.
    pub(super) before: Option<Listed>,
    /// What was published, as long as it is made of the same.
    renamed: Option<(Arc<Policy>, Arc<Policy>)>,
    broken: Option<Broken>,
}

type Broken = (Failure, Arc<Policy>);

/// A status as it was written, and what the API server kept of it: one whose
/// definition is older drops what it does not know.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) wanted: DisruptionPolicyStatus,
    pub(super) kept: DisruptionPolicyStatus,
    pub(super) at: Instant,
}

impl Entry {
    /// Forgets all versions; what was written stays known.
    pub(super) fn forget(&mut self) {
        let (since, written) = (self.since, self.written.take());
        *self = Entry { since, written, ..Entry::default() };
    }

    /// Notes a version that was tried. A good one that it takes the place of
    /// stays at hand, as long as the newest is bad.
    pub(super) fn tried(&mut self, recipe: Recipe, loaded: Loaded) {
        self.loading = None;
        self.lost = None;
        let is_good = loaded.policy.is_some();
        let before = self.newest.replace((recipe, loaded));
        if is_good {
            self.last = None;
            self.tries = 0;
        } else if let Some((recipe, Loaded { attempt: Attempt::Good(version), policy, module, .. })) =
            before
            && let Some(policy) = policy
        {
            self.last = Some(Good { version, policy, module, terms: recipe.terms });
        }
    }

    /// A module that need not be loaded again.
    pub(super) fn module(&self) -> Option<Module> {
        let newest = self.newest.as_ref().and_then(|(_, loaded)| loaded.module.clone());
        newest.or_else(|| self.last.as_ref()?.module.clone())
    }

    /// The version whose copy was written, or cannot be.
    pub(super) fn copied(&self, version: &Version) -> Option<&Copy> {
        self.copy.as_ref().filter(|copy| match copy {
            Copy::Written { version: of, .. } | Copy::Failed { version: of, .. } => of == version,
        })
    }

    /// A policy under the name that it has in plans.
    pub(super) fn renamed(&mut self, policy: &Arc<Policy>, name: &str) -> Arc<Policy> {
        if policy.identity.policy == name {
            return Arc::clone(policy);
        }
        match &self.renamed {
            Some((of, renamed)) if Arc::ptr_eq(of, policy) && renamed.identity.policy == name => {
                Arc::clone(renamed)
            }
            _ => {
                let (summary, claims) = (policy.summary.clone(), policy.claims.clone());
                let it = Policy::clone(policy).named(name.to_owned(), summary, claims);
                let it = Arc::new(it);
                self.renamed = Some((Arc::clone(policy), Arc::clone(&it)));
                it
            }
        }
    }

    /// In place of a policy that cannot decide: what it claims costs reboots.
    pub(super) fn broken(
        &mut self,
        identity: PolicyIdentity,
        claims: Vec<Claim>,
        failure: &Failure,
    ) -> Option<Arc<Policy>> {
        if let Some((why, policy)) = &self.broken
            && (why, &policy.identity, &policy.claims) == (failure, &identity, &claims)
        {
            return Some(Arc::clone(policy));
        }
        let made = Policy::broken(identity, claims, failure.clone());
        let made = made.inspect_err(|error| tracing::error!("a policy is left out: {error}"));
        let made = Arc::new(made.ok()?);
        self.broken = Some((failure.clone(), Arc::clone(&made)));
        Some(made)
    }
}

impl Sought {
    /// The last good version that the status names.
    pub(super) fn of(object: &DisruptionPolicy, terms: &Terms) -> Option<Sought> {
        let status: &DisruptionPolicyStatus = object.status.as_ref()?;
        Some(Sought {
            place: status.kept_in.clone()?,
            digest: status.digest.clone()?,
            settings_digest: status.settings_digest.clone()?,
            terms: terms.clone(),
        })
    }

    /// Whether this is it.
    pub(super) fn is(&self, good: &Good) -> bool {
        // What carries out rules comes with tread, and may be newer.
        (good.module.is_none() || self.digest == good.version.digest.to_string())
            && self.settings_digest == good.version.settings_digest.to_string()
            && self.terms == good.terms
    }
}

/// Whether a failure may be another one at the next try, with the same bytes.
pub(super) fn may_pass(failure: &Failure) -> bool {
    // A compiler that was killed from outside looks like one that crashed.
    use FailureKind::{CompileFailed, CompileTimeout, Deadline, NoRoom, Stack};
    matches!(failure.kind, CompileFailed | CompileTimeout | Deadline | NoRoom | Stack)
}
