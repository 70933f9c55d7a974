//! One look at everything: start what has to be loaded, choose who decides, have
//! that published, and say what has to be written.

use super::chosen::{Chosen, idle};
use super::entry::{COPY_AGAIN, Copy, Due, Entry, Loading, NotCopied};
use super::last_good::{Last, Search, Searched, Sought};
use super::origin::{Origin, Recipe};
use super::recipe::Over;
use super::running::Running;
use super::state::Registry;
use super::sweep::Sweep;
use super::write::{Wanted, Write, writes};
use crate::policies::choose::{
    Attempt, Deciding, Version, choose, choose_meanwhile, choose_unreadable, has_to_wait,
};
use crate::policies::kept;
use crate::policies::load::{Body, Loaded, Terms};
use crate::policies::read::Policy as Read;
use crate::policies::register::{Ignored, Registration, config_map_of, register};
use crate::policies::snapshot::Snapshot;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tread_kube::api::DisruptionPolicy;
use tread_kube::api::disruption_policy::{Mode, State};
use tread_kube::api::words::LOST_ANNOTATION;
use tread_model::digest::Sha256;
use tread_model::verdict::{Failure, FailureKind};

/// Before it is reported of a namespace again that it has ConfigMaps that are no
/// policies, where there are others than before.
const REPORTED_AGAIN: Duration = Duration::from_secs(600);

/// A policy that is not loaded by then is said to wait for it.
const SAID_TO_WAIT: Duration = Duration::from_secs(3);

impl Registry {
    #[tracing::instrument(name = "policies", skip_all)]
    pub(super) fn pass(&mut self) -> Vec<Write> {
        let snapshot = self.snapshot();
        let mut registration = register(&snapshot);
        remember_lost(&mut self.lost, &snapshot, &mut registration);
        let uids: BTreeSet<String> =
            snapshot.policies.values().filter_map(|object| object.uid()).collect();
        self.entries.retain(|uid, _| uids.contains(uid));
        self.spare_used(&snapshot);

        let mut settled = registration.create.iter().all(|object| {
            object.spec.source.as_ref().is_none_or(|source| source.builtin.is_none())
        });
        let over = self.beyond_room(&snapshot);
        let (mut listed, mut waiting, mut behind) = (Vec::new(), Vec::new(), Vec::new());
        let all: Vec<Read> = self.known.policies().map(|(_, it)| it.clone()).collect();
        for read in all {
            let name = read.object.name_any();
            // What is going away decides nothing any more.
            if registration.withdraw.iter().any(|gone| gone.name == name) {
                continue;
            }
            let Some(uid) = read.object.uid() else { continue };
            let mut entry = self.entries.remove(&uid).unwrap_or_else(Entry::new);
            let found = match registration.idle.get(&name) {
                None => self.consider(&snapshot, &read, &mut entry, over.get(&uid)),
                Some(why) => {
                    entry.forget();
                    Some(idle(&read.object, why))
                }
            };
            let (since, waits_behind) = (entry.since, entry.waits_behind_another());
            self.entries.insert(uid, entry);
            settled &= found.is_some() || is_new(&read.object);
            if found.is_none() && is_new(&read.object) {
                match since + SAID_TO_WAIT {
                    due if due <= Instant::now() => waiting.push(Arc::clone(&read.object)),
                    due => self.look_by(due),
                }
            }
            if let (Some(found), Some(since)) = (&found, waits_behind)
                && !found.is_final
            {
                match since + SAID_TO_WAIT {
                    due if due <= Instant::now() => behind.push(Arc::clone(&read.object)),
                    due => self.look_by(due),
                }
            }
            listed.extend(found);
        }
        self.give_names(&mut listed);
        self.publish(&listed, settled);
        self.count(&listed, &waiting);
        if !self.leads() {
            self.swept = Sweep::default();
            self.entries.values_mut().for_each(Entry::forget_copies);
            // Whoever leads says what waits to be written.
            self.settings.watches.unwritten("policies", None);
            return Vec::new();
        }
        let unreported = self.unreported(&registration.ignored);
        let Registration { create, withdraw, .. } = registration;
        let before_them = self.hands.turns.waiting();
        let wanted = Wanted { create, withdraw, listed, waiting, behind, before_them, unreported };
        let mut writes = writes(&self.entries, &snapshot, wanted);
        writes.extend(self.sweep());
        self.due(writes)
    }

    /// What was not reported yet: of a namespace once, and again when there is more,
    /// but not often.
    fn unreported(&mut self, ignored: &[Ignored]) -> Vec<Ignored> {
        let key = |it: &Ignored| (it.namespace.clone(), it.reason.word());
        let there: BTreeSet<_> = ignored.iter().map(key).collect();
        self.reported.retain(|key, _| there.contains(key));
        let mut unreported = Vec::new();
        for it in ignored {
            match self.reported.get(&key(it)) {
                Some((uid, _)) if *uid == it.uid => {}
                Some((_, at)) if at.elapsed() < REPORTED_AGAIN => {
                    self.look_by(*at + REPORTED_AGAIN)
                }
                _ => unreported.push(it.clone()),
            }
        }
        unreported
    }

    /// What is chosen for one policy; None: that is not known yet.
    fn consider(
        &mut self,
        snapshot: &Snapshot,
        read: &Read,
        entry: &mut Entry,
        over: Option<&Over>,
    ) -> Option<Chosen> {
        let object = &read.object;
        let listed = |attempt, choice| Chosen {
            object: Arc::clone(object),
            attempt,
            choice,
            decides: None,
            name: object.name_any(),
            kept: None,
            is_final: true,
            retry: None,
            not_now: None,
        };
        let claims = config_map_of(object).and_then(|it| snapshot.claims_of(&it.namespace));
        if let Some(failure) = &read.unreadable {
            entry.forget();
            let choice = choose_unreadable(object, &read.claims, claims);
            return Some(listed(Loaded::bad(failure.clone()).attempt, choice));
        }
        if object.spec.mode == Mode::Disabled {
            entry.forget();
            let failure = Failure { kind: FailureKind::Missing, message: String::new() };
            let attempt = Loaded::bad(failure).attempt;
            let choice = choose(object, &attempt, None, claims);
            return Some(listed(attempt, choice));
        }
        let recipe = self.recipe(snapshot, object);
        self.load(object, entry, &recipe);
        let too_large = over.and_then(|over| over.newest.as_ref());
        let attempt = attempt(entry, &recipe, too_large).or_else(|| as_it_was_said(object))?;
        let mut is_final = entry.tried().is_some_and(|tried| tried.recipe == recipe);
        let cannot_decide = match &attempt {
            Attempt::Bad { failure, .. } => failure.kind != FailureKind::Missing,
            // If the version that has to wait for approval is the kept one itself, there is no
            // other to look for.
            Attempt::Good(version) => {
                has_to_wait(object, version, claims) && !stands(object, version)
            }
        };
        let is_itself = too_large.is_some() && is_named(object, &attempt);
        let last = match over.and_then(|over| over.last.as_ref()) {
            _ if !cannot_decide || is_itself => Last::Nobody,
            Some(why) => Last::NotNow(why.clone()),
            None => match self.last_good(object, entry, &recipe.terms) {
                Ok(last) => last,
                Err(Pending) => {
                    let before = entry.before.clone()?;
                    if let Some(why) = pinned_away(object, &before) {
                        let choice = choose_meanwhile(object, &attempt, claims);
                        let found = listed(attempt, choice);
                        return Some(Chosen { is_final: false, not_now: Some(why), ..found });
                    }
                    // What decided before goes on until its copy was looked for.
                    let object = Arc::clone(object);
                    let before = Chosen { object, is_final: false, ..before };
                    return Some(before.if_approved(claims));
                }
            },
        };
        let (kept, not_now) = match last {
            Last::Good(good) => (Some(good), None),
            Last::NotNow(why) => (None, Some(why)),
            Last::Nobody => (None, None),
        };
        let choice = match &not_now {
            Some(_) => choose_meanwhile(object, &attempt, claims),
            None => choose(object, &attempt, kept.as_ref().map(|it| &it.version), claims),
        };
        let decides = match (&choice.deciding, &kept) {
            (Deciding::Newest, _) => entry.tried().and_then(|it| it.loaded.policy.clone()),
            (Deciding::LastGood, Some(good)) => Some(Arc::clone(&good.policy)),
            _ => None,
        };
        if choice.deciding == Deciding::Newest {
            entry.last = None;
        }
        let place = object.status.as_ref().and_then(|status| status.kept_in.clone());
        let mut kept = kept.and_then(|good| Some((good.version, place?)));
        if let (Attempt::Good(version), Deciding::Newest) = (&attempt, &choice.deciding)
            && is_final
        {
            match entry.copy_of(version) {
                Copy::Written { place, .. } => kept = Some((version.clone(), place.clone())),
                Copy::Failed { again, why, .. } if Instant::now() < *again => {
                    // The ConfigMap already holds a newer version, which is on its way.
                    is_final = *why != NotCopied::Moved;
                    self.look_by(*again);
                }
                _ if !self.leads() || !is_kept(&recipe.origin) => {}
                _ if stands(object, version) => {}
                again => {
                    // The first time, the status waits until the copy is written: the status tells
                    // every replica which copy to fall back to.
                    is_final = matches!(again, Copy::Failed { why: NotCopied::Refused, .. });
                    self.copy(object, entry, &recipe);
                }
            }
        }
        let retry = entry.tried().and_then(|tried| tried.loaded.retry);
        let found = Chosen { decides, kept, is_final, retry, not_now, ..listed(attempt, choice) };
        entry.before = Some(found.clone());
        Some(found)
    }

    /// Loads a version, unless it was, or is being loaded.
    fn load(&mut self, object: &DisruptionPolicy, entry: &mut Entry, recipe: &Recipe) {
        match entry.due(recipe, Instant::now()) {
            Due::Tried(again) => return again.into_iter().for_each(|at| self.look_by(at)),
            Due::Runs => return,
            Due::Load => {}
        }
        if let Origin::Nothing(failure) = &recipe.origin {
            return entry.cannot_be_loaded(recipe.clone(), failure.clone());
        }
        let Some(uid) = object.uid() else { return };
        let module = entry.module();
        let mut takes_long = entry.tried().is_some_and(|it| it.loaded.retry.is_some());
        if let Some(said) = object.status.as_ref().and_then(|status| status.failure.as_ref()) {
            self.hands.hopeless.learn(said, Timestamp::now());
            takes_long |= said.retry_at.is_some();
        }
        let hands = self.hands.clone();
        let job = hands.load(uid, object.name_any(), recipe.clone(), module, takes_long);
        let task = self.jobs.spawn(job);
        let job = Box::new(Running { what: recipe.clone(), task });
        entry.loading = Loading::Runs { job, is_outdated: false, since: Instant::now() };
    }

    /// The last good version of a policy whose newest is bad; an error if that
    /// is still being found out.
    fn last_good(
        &mut self,
        object: &DisruptionPolicy,
        entry: &mut Entry,
        terms: &Terms,
    ) -> Result<Last, Pending> {
        let Some(sought) = Sought::of(object, terms) else { return Ok(Last::Nobody) };
        // A version that does not match the pin never decides, not even while it is looked for.
        if object.spec.digest.as_ref().is_some_and(|pin| *pin != sought.digest) {
            return Ok(Last::Nobody);
        }
        if let Some(last) = entry.last.as_ref().filter(|last| sought.is(last)) {
            return Ok(Last::Good(Box::new(last.clone())));
        }
        // After a first try that failed, what it claims costs reboots until it is loaded.
        let not_now = entry.search.why_not_now().cloned().map(Last::NotNow);
        let tries = match entry.search.of(&sought, Instant::now()) {
            Searched::Lost => return Ok(Last::Nobody),
            Searched::Waits(again) => {
                self.look_by(again);
                return not_now.ok_or(Pending);
            }
            Searched::Runs { tries: 0 } => return Err(Pending),
            Searched::Runs { .. } => return not_now.ok_or(Pending),
            Searched::Due { tries } => tries,
        };
        let why = entry.search.why_not_now().filter(|_| tries > 0).cloned();
        let uid = object.uid().unwrap_or_default();
        let namespace = config_map_of(object).map(|it| it.namespace);
        let job = self.hands.clone().restore(uid, object.name_any(), namespace, sought.clone());
        let task = self.jobs.spawn(job);
        entry.search = Search::Runs { job: Running { what: sought, task }, tries, why };
        not_now.filter(|_| tries > 0).ok_or(Pending)
    }

    fn copy(&mut self, object: &Arc<DisruptionPolicy>, entry: &mut Entry, recipe: &Recipe) {
        // One that is cut off may have been written, and nobody would know of it.
        if entry.copying.is_some() {
            return;
        }
        let Some(tried) = entry.tried() else { return };
        let Loaded { attempt: Attempt::Good(version), policy: Some(policy), .. } = &tried.loaded
        else {
            return;
        };
        let (version, settings) = (version.clone(), policy.settings.clone());
        // What is being removed is written anew after that.
        let uid = object.uid().unwrap_or_default();
        let place = kept::place(&uid, &version);
        if self.removing.iter().any(|it| kept::is_of(it, &uid)) {
            return;
        }
        // Versions may come faster than statuses are written: of the copies that no status names,
        // one goes before the next one is written.
        self.swept.copies.extend(entry.left_copy(object, &place));
        if self.swept.holds_any_of(&uid) {
            self.look_by(Instant::now() + COPY_AGAIN);
            return;
        }
        let (origin, object) = (recipe.origin.clone(), Arc::clone(object));
        let job = self.hands.clone().copy(object, origin, version.clone(), settings);
        let task = self.jobs.spawn(job);
        entry.copying = Some(Running { what: version, task });
    }
}

/// Says on an object that comes anew what was lost with the one before it. `lost` is what admins had
/// said in objects that were withdrawn, by name.
fn remember_lost(
    lost: &mut BTreeMap<String, String>,
    snapshot: &Snapshot,
    registration: &mut Registration,
) {
    let is_told = |name: &String| {
        let object = snapshot.policies.get(name);
        object.is_some_and(|object| object.annotations().contains_key(LOST_ANNOTATION))
    };
    for gone in &registration.withdraw {
        match gone.lost.as_slice() {
            [] if is_told(&gone.name) => {}
            // An admin has removed the annotation.
            [] => {
                lost.remove(&gone.name);
            }
            fields => {
                lost.insert(gone.name.clone(), fields.join(","));
            }
        }
    }
    for object in &mut registration.create {
        if let Some(fields) = lost.get(&object.name_any()) {
            let annotations = object.metadata.annotations.get_or_insert_default();
            annotations.insert(LOST_ANNOTATION.to_owned(), fields.clone());
        }
    }
}

/// Whether it comes from a ConfigMap and never decided: others do not wait for
/// it, however long it takes to load.
fn is_new(object: &DisruptionPolicy) -> bool {
    let state = object.status.as_ref().and_then(|status| status.state);
    let undecided = matches!(state, None | Some(State::NeedsApproval | State::Loading));
    config_map_of(object).is_some() && undecided
}

/// The failure of the newest version, as the status has it: until this replica has tried that
/// version, it counts as failed, and nobody waits for it.
fn as_it_was_said(object: &DisruptionPolicy) -> Option<Attempt> {
    config_map_of(object)?;
    let said = object.status.as_ref()?.failure.as_ref()?;
    let kind = *FailureKind::ALL.iter().find(|kind| kind.name() == said.name)?;
    let failure = Failure { kind, message: said.message.clone() };
    let digest = said.digest.as_deref().and_then(Sha256::parse);
    Some(Attempt::Bad { failure, digest, claims: Vec::new() })
}

/// It is still being found out.
struct Pending;

/// Why what decided before does not, where an admin has pinned another module since.
fn pinned_away(object: &DisruptionPolicy, before: &Chosen) -> Option<Failure> {
    let (pin, decides) = (object.spec.digest.as_ref()?, before.decider()?.digest.to_string());
    (*pin != decides).then(|| not_pinned(&decides, pin))
}

fn not_pinned(digest: &str, pin: &str) -> Failure {
    let message = format!("its digest is {digest}, and {pin} was pinned");
    Failure { kind: FailureKind::DigestMismatch, message }
}

/// Whether the module of the newest version is the one that the status names.
fn is_named(object: &DisruptionPolicy, newest: &Attempt) -> bool {
    let digest = match newest {
        Attempt::Good(version) => Some(version.digest),
        Attempt::Bad { digest, .. } => *digest,
    };
    let named = object.status.as_ref().and_then(|status| status.digest.as_deref());
    named.is_some() && named.and_then(Sha256::parse) == digest
}

/// How the newest version did, as far as it is known.
fn attempt(entry: &Entry, recipe: &Recipe, over: Option<&Failure>) -> Option<Attempt> {
    let loaded = &entry.tried()?.loaded;
    let Attempt::Good(version) = &loaded.attempt else { return Some(loaded.attempt.clone()) };
    let pinned = recipe.pin.as_ref().filter(|pin| **pin != version.digest.to_string());
    let failure = match (pinned, over) {
        // The right one may be on its way; this one does not decide meanwhile.
        (Some(pin), _) => not_pinned(&version.digest.to_string(), pin),
        (None, Some(over)) => over.clone(),
        (None, None) => return Some(loaded.attempt.clone()),
    };
    let (digest, claims) = (Some(version.digest), version.claims.clone());
    Some(Attempt::Bad { failure, digest, claims })
}

fn is_kept(origin: &Origin) -> bool {
    !matches!(origin, Origin::Nothing(_) | Origin::Here(Body::Builtin(_)))
}

/// Whether the status says already where this version is kept.
fn stands(object: &DisruptionPolicy, version: &Version) -> bool {
    object.status.as_ref().is_some_and(|status| {
        status.kept_in.is_some()
            && status.digest == Some(version.digest.to_string())
            && status.settings_digest == Some(version.settings_digest.to_string())
    })
}

#[cfg(test)]
mod tests;
