//! The policies that decide, for everybody who plans.

use super::chosen::Chosen;
use super::entry::Entry;
use super::state::Registry;
use crate::policies::choose::{Attempt, Deciding};
use crate::policies::current::Current;
use crate::policies::names::{Named, names};
use kube::ResourceExt as _;
use std::collections::BTreeMap;
use std::sync::Arc;
use tread_engine::planner::Shadows;
use tread_engine::policy::{Policy, PolicySet};
use tread_kube::api::DisruptionPolicy;
use tread_kube::api::disruption_policy::{Mode, State};
use tread_kube::metrics::StateOf;
use tread_model::digest::Sha256;
use tread_model::plan::PolicyIdentity;
use tread_model::plan::compare::ShadowPolicy;
use tread_model::verdict::Failure;

impl Registry {
    /// Gives each the name that it has in plans.
    pub(super) fn give_names(&self, listed: &mut [Chosen]) {
        let declared = |it: &Chosen| match (&it.choice.deciding, &it.attempt, &it.kept) {
            (Deciding::Newest, Attempt::Good(version), _) => Some(version.name.clone()),
            (Deciding::LastGood, _, Some((version, _))) => Some(version.name.clone()),
            (Deciding::Reboots(claims), ..) if !claims.is_empty() => {
                let known = it.object.status.as_ref().and_then(|status| status.name.clone());
                Some(known.unwrap_or_else(|| it.object.name_any()))
            }
            _ => None,
        };
        let wanted = listed.iter().filter_map(|it| {
            let created = it.object.creation_timestamp().map_or(0, |time| time.0.as_second());
            let layer = it.object.spec.layer().into();
            Some(Named::new(layer, created, &it.object.name_any(), &declared(it)?))
        });
        let given: BTreeMap<String, String> =
            names(wanted.collect()).into_iter().map(|(named, name)| (named.object, name)).collect();
        for it in listed {
            let own = match &it.attempt {
                Attempt::Good(version) => version.name.clone(),
                Attempt::Bad { .. } => it.object.name_any(),
            };
            it.name = given.get(&it.object.name_any()).cloned().unwrap_or(own);
        }
    }

    /// Publishes who decides, if that is not what was published.
    pub(super) fn publish(&mut self, listed: &[Chosen], settled: bool) {
        let (mut deciding, mut tried) = (Vec::new(), Vec::new());
        for it in listed {
            let Some(entry) = it.object.uid().and_then(|uid| self.entries.get_mut(&uid)) else {
                continue;
            };
            let policy = policy(entry, it);
            match it.object.spec.mode {
                Mode::Enforce => deciding.extend(policy),
                Mode::Shadow => tried.extend(policy.map(|policy| (policy, it))),
                Mode::Disabled => {}
            }
        }
        let all = || deciding.iter().chain(tried.iter().map(|(policy, _)| policy)).cloned();
        let sets = PolicySet::of(deciding.clone())
            .and_then(|policies| Ok((policies, PolicySet::of(all().collect())?)));
        let (policies, with) = match sets {
            Ok(sets) => sets,
            Err(message) => {
                tracing::error!("the policies before go on deciding: {message}");
                return;
            }
        };
        let shadows = (!tried.is_empty()).then(|| Shadows {
            with,
            policies: tried
                .iter()
                .map(|(policy, it)| {
                    let costs_reboots = matches!(it.choice.deciding, Deciding::Reboots(_));
                    let failure = costs_reboots.then(|| failure(it)).flatten();
                    ShadowPolicy::new(&policy.identity, false, failure)
                })
                .collect(),
            warnings: Vec::new(),
        });
        self.publish.send_if_modified(|current| {
            let same = current.settled == settled
                && same(current.policies.policies(), policies.policies())
                && match (&current.shadows, &shadows) {
                    (None, None) => true,
                    (Some(one), Some(other)) => same(one.with.policies(), other.with.policies()),
                    _ => false,
                };
            if !same {
                *current = Arc::new(Current::new(policies, shadows, settled));
            }
            !same
        });
        let all = deciding.iter().chain(tried.iter().map(|(policy, _)| policy));
        let names = all.map(|policy| policy.identity.policy.as_str()).collect();
        self.settings.metrics.keep_policies(&names);
    }

    /// Counts policies by state, and says of each its state, and who decides for it.
    pub(super) fn count(&self, listed: &[Chosen], waiting: &[Arc<DisruptionPolicy>]) {
        let of_listed = listed.iter().map(|it| {
            let Chosen { object, choice, .. } = it;
            (object.name_any(), (choice.state, choice.decides(object.spec.mode)))
        });
        let of_waiting =
            waiting.iter().map(|object| (object.name_any(), (State::Loading, "nobody")));
        let states: BTreeMap<String, (State, &'static str)> = of_listed.chain(of_waiting).collect();
        self.settings.metrics.set_states(states.into_iter().map(|(name, (state, decides))| {
            let word = State::ALL.iter().find(|(it, _)| *it == state).map_or("", |(_, word)| word);
            StateOf { name, state: word, decides }
        }));
    }
}

/// Who decides, under the name that was given, and with no more rights than its object gives.
fn policy(entry: &mut Entry, it: &Chosen) -> Option<Arc<Policy>> {
    match &it.choice.deciding {
        Deciding::Nobody => None,
        Deciding::Newest | Deciding::LastGood => {
            let decides = it.decides.as_ref();
            decides.map(|policy| entry.taking_part(policy, &it.name, &it.object.spec))
        }
        Deciding::Reboots(claims) => {
            let failure = failure(it)?;
            let identity = PolicyIdentity {
                policy: it.name.clone(),
                layer: it.object.spec.layer().into(),
                version: String::new(),
                digest: digest(it).unwrap_or_else(|| Sha256::of(b"")),
                settings_digest: Sha256::of(b"{}"),
            };
            (!claims.is_empty()).then(|| entry.broken(identity, claims.clone(), failure))?
        }
    }
}

/// Why nobody can decide: the newest version is bad, or waits while the one before cannot be loaded.
fn failure(it: &Chosen) -> Option<&Failure> {
    match &it.attempt {
        Attempt::Bad { failure, .. } => Some(failure),
        Attempt::Good(_) => it.not_now.as_ref(),
    }
}

/// The digest of the version that would decide.
fn digest(it: &Chosen) -> Option<Sha256> {
    match &it.attempt {
        Attempt::Bad { digest, .. } => *digest,
        Attempt::Good(_) => Sha256::parse(it.object.status.as_ref()?.digest.as_deref()?),
    }
}

fn same(before: &[Arc<Policy>], after: &[Arc<Policy>]) -> bool {
    let alike = |(one, other): (&Arc<Policy>, &Arc<Policy>)| Arc::ptr_eq(one, other);
    before.len() == after.len() && before.iter().zip(after).all(alike)
}
