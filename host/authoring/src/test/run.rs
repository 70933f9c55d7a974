//! Running a case: what the policy says, what the plan is, and where that is
//! not what was expected.

use crate::cases::{Case, Given};
use crate::explain::{Scene, alike, matches, shortened};
use crate::questions::{inputs, objects};
use anyhow::{Result, ensure};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use tread_engine::planner;
use tread_engine::policy::{Policy, PolicySet, Wishes};
use tread_engine::sandbox::{Call, Module, Reply, Sandbox, Speaker};
use tread_loading::builtins;
use tread_model::change::Change;
use tread_model::diff::{compare, unchanged};
use tread_model::mirrors::{rendered, take_out_what_leaves};
use tread_model::plan::{ChangeOutcome, Plan};
use tread_model::read::{self, Input};
use tread_model::rules;
use tread_model::secrets::Tokens;
use tread_model::touch::OwnUnits;
use tread_model::verdict::{Failure, Layer};

/// The policy that is tested, loaded once.
pub(super) struct Subject {
    pub(super) sandbox: Sandbox,
    pub(super) module: Module,
    /// With its default settings.
    pub(super) policy: Policy,
    /// The directory of its crate.
    pub(super) source: Option<PathBuf>,
    component: Vec<u8>,
    /// All policies of a plan, by the settings and rules of a case.
    sets: RefCell<BTreeMap<String, Rc<WithWarnings>>>,
}

/// Policies, and what an admin should know of their rules.
type WithWarnings = (PolicySet, Vec<String>);

/// What came of a case.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Where it is not as expected, in lines; empty: it is.
    pub(super) problems: Vec<String>,
    /// What the policy said, by id; none if it could not be asked, or failed.
    pub(super) given: Option<BTreeMap<String, Given>>,
    /// The plan, if the case expects one.
    pub(super) plan: Option<Plan>,
    /// What stands in place of each reason that might quote a secret, if one does.
    pub(super) unshown: Option<String>,
}

impl Subject {
    pub(super) fn new(
        component: Vec<u8>,
        source: Option<PathBuf>,
        sandbox: Sandbox,
    ) -> Result<Subject> {
        let module = sandbox.load(&component, None)?;
        let policy = Policy::new(
            Cow::Owned(component.clone()),
            Some(module.digest()),
            Layer::Template,
            Wishes::default(),
            sandbox.limits(),
        )?
        .with_module(module.clone());
        Ok(Subject { sandbox, module, policy, source, component, sets: RefCell::default() })
    }

    pub(super) fn name(&self) -> &str {
        &self.policy.identity.policy
    }

    pub(super) fn scene(&self) -> Scene<'_> {
        Scene { claims: &self.policy.claims, source: self.source.as_deref() }
    }

    /// The policy as a case has it.
    fn with(&self, settings: Map<String, Value>, read_secrets: bool) -> Result<Policy, Failure> {
        let wishes = Wishes { settings, read_secrets, ..Wishes::default() };
        let component = Cow::Owned(self.component.clone());
        let digest = Some(self.module.digest());
        let policy =
            Policy::new(component, digest, Layer::Template, wishes, self.sandbox.limits())?;
        Ok(policy.with_module(self.module.clone()))
    }

    /// Asks, plans and compares. An error is never a pass.
    pub(super) fn run(&self, case: &Case) -> Found {
        self.found(case).unwrap_or_else(|error| Found {
            problems: format!("{error:#}").lines().map(str::to_owned).collect(),
            ..Found::default()
        })
    }

    fn found(&self, case: &Case) -> Result<Found> {
        let known = |name: &str| {
            name == self.name() || builtins::BUILTINS.iter().any(|builtin| builtin.name == name)
        };
        if let Some(other) = case.settings.keys().find(|name| !known(name)) {
            anyhow::bail!(
                "settings: {other} is neither {name} nor a built-in policy: settings stand below \
                 the name of their policy, as in {{{name}: {{key: value}}}}",
                name = self.name()
            );
        }
        let (old, new) = (objects("old", &case.old)?, objects("new", &case.new)?);
        let (old, mut new) = read::sides(&inputs(&old), &inputs(&new))?;
        take_out_what_leaves(&old, &mut new);
        let (old, new) = (rendered(old)?.config, rendered(new)?.config);

        let comparison = compare(&old, &new)?;
        let claims = &self.policy.claims;
        let claimed = |id: &str| claims.iter().any(|claim| matches(claim, id));
        let mut tokens = Tokens::default();
        let offered = comparison.changes.iter().filter(|it| claimed(&it.id));
        let changes: Vec<Cow<'_, Change<'_>>> = match case.read_secrets {
            true => offered.map(Cow::Borrowed).collect(),
            false => offered.map(|it| tokens.redact(it)).collect(),
        };
        let changes: Vec<&Change<'_>> = changes.iter().map(AsRef::as_ref).collect();
        ensure!(!changes.is_empty(), "{}", self.nothing_offered(&comparison.changes));
        let beside = |id: &str| claims.iter().any(|it| it.with_unchanged && matches(it, id));
        let entries = match claims.iter().any(|claim| claim.with_unchanged) {
            true => unchanged(&old, &new, beside)?,
            false => Vec::new(),
        };
        let entries: Vec<_> = match case.read_secrets {
            true => entries,
            false => entries.iter().map(|it| tokens.redact_entry(it).into_owned()).collect(),
        };

        let policy = self.with(settings_of(case, self.name())?, case.read_secrets)?;
        let call = Call {
            settings: &policy.settings,
            changes: &changes,
            unchanged: &entries,
            claims,
            layer: Layer::Template,
            speaker: Speaker::Policy,
            words: policy.words(),
        };
        let asked = match policy.check(&self.sandbox) {
            Err(failure) => Err(failure.clone()),
            Ok(()) => {
                let reply = self.sandbox.classify(&self.module, &call);
                let units = OwnUnits::of(&old, &new);
                reply.map_err(|failed| failed.failure).and_then(|reply| {
                    let verdicts = changes.iter().copied().zip(&reply.verdicts);
                    planner::touched_gently(verdicts, || &units).map(|()| reply)
                })
            }
        };
        let ids = changes.iter().map(|change| change.id.clone());
        let given: BTreeMap<String, Given> = match &asked {
            Ok(reply) => {
                ids.zip(reply.verdicts.iter().map(|it| Given::verdict(it.as_ref()))).collect()
            }
            Err(failure) => ids.map(|id| (id, Given::failure(failure))).collect(),
        };

        let mut problems = Vec::new();
        if case.expect.is_open() {
            problems.extend(nothing_expected(&given));
        }
        self.compare_verdicts(case, &given, &comparison.changes, &mut problems);
        let silent = given.iter().filter(|(_, it)| it.reason.is_empty() && it.answer != "abstain");
        problems.extend(silent.map(|(id, it)| {
            format!("{id}: answered {} without a reason, which a plan would show", it.answer)
        }));
        let plan = match case.expect.plan.is_some() {
            true => Some(self.plan(case, &old, &new)?),
            false => None,
        };
        problems.extend(plan.iter().flat_map(|plan| case.expect.differences(plan)));
        if let Err(failure) = &asked
            && (!problems.is_empty() || !expects_failure(case, failure))
        {
            problems.extend(self.scene().failure(failure, &changes));
        }
        let unshown = asked.as_ref().ok().and_then(|reply| self.unshown(&call, reply));
        let given = asked.is_ok().then_some(given);
        Ok(Found { problems, given, plan, unshown })
    }

    /// What tread says in place of a reason that might quote a secret: nothing else that it says
    /// differs from what the policy does. What that is stays here.
    fn unshown(&self, call: &Call<'_, '_>, reply: &Reply) -> Option<String> {
        if reply.spent.is_some() {
            return None;
        }
        let openly = self.sandbox.classify_openly(&self.module, call).ok()?;
        let mut both = reply.verdicts.iter().flatten().zip(openly.verdicts.iter().flatten());
        let (shown, _) = both.find(|(shown, own)| shown.reason != own.reason)?;
        Some(shown.reason.clone())
    }

    fn nothing_offered(&self, changes: &[Change<'_>]) -> String {
        let name = self.name();
        match changes {
            [] => format!("nothing changes from old to new that {name} could be offered"),
            [only] => format!("{name} is not asked: {}", self.scene().not_offered(&only.id)),
            [first, ..] => format!(
                "{name} is not asked about any of {}: {}",
                shortened(changes.iter().map(|change| change.id.as_str())),
                self.scene().not_offered(&first.id)
            ),
        }
    }

    fn compare_verdicts(
        &self,
        case: &Case,
        given: &BTreeMap<String, Given>,
        changes: &[Change<'_>],
        problems: &mut Vec<String>,
    ) {
        let Some(expected) = &case.expect.verdicts else { return };
        for (id, given) in given {
            match expected.get(id) {
                Some(expected) => expected.compare(id, given, problems),
                None => {
                    problems.push(format!("{id} is offered too, and nothing is expected of it"))
                }
            }
        }
        for id in expected.keys().filter(|id| !given.contains_key(*id)) {
            let why = match changes.iter().any(|change| change.id == *id) {
                true => self.scene().not_offered(id),
                false => match given.keys().max_by_key(|offered| alike(offered, id)) {
                    Some(near) => format!("it does not change here; the nearest is {near}"),
                    None => "it does not change here".to_owned(),
                },
            };
            problems.push(format!("{id} is not offered: {why}"));
        }
    }

    fn plan(
        &self,
        case: &Case,
        old: &tread_model::config::NodeConfig<'_>,
        new: &tread_model::config::NodeConfig<'_>,
    ) -> Result<Plan> {
        let set = self.set(case)?;
        let (policies, warnings) = &*set;
        Ok(planner::plan(&self.sandbox, policies, old, new, warnings.clone())?.plan)
    }

    /// The other built-in policies, those of the case's rules, and this one.
    fn set(&self, case: &Case) -> Result<Rc<WithWarnings>> {
        let key = serde_json::to_string(&(&case.settings, &case.rules, case.read_secrets))?;
        if let Some(set) = self.sets.borrow().get(&key) {
            return Ok(Rc::clone(set));
        }
        let limits = self.sandbox.limits();
        let wishes = |name: &str| Wishes {
            settings: settings_of(case, name).unwrap_or_default(),
            ..Wishes::default()
        };
        let mut all = builtins::load(limits, wishes)?;
        // A built-in policy that is tested stands in its own place.
        all.retain(|builtin| builtin.identity.policy != self.name());
        all.push(self.with(settings_of(case, self.name())?, case.read_secrets)?);
        let mut warnings = Vec::new();
        for rule in &case.rules {
            let bytes = serde_json::to_vec(rule)?;
            for read in rules::read(&Input { name: "rules", bytes: &bytes })? {
                let said = rules::warnings(&read);
                let wishes = Wishes {
                    settings: read.settings.as_object().cloned().unwrap_or_default(),
                    may_relax: read.may_relax,
                    ..Wishes::default()
                };
                let policy = builtins::load_rules(read.layer, wishes, limits)?;
                all.push(policy.named(read.name, String::new(), read.claims).by_rules());
                warnings.extend(said);
            }
        }
        let set = PolicySet::new(all).map_err(anyhow::Error::msg)?;
        let set = Rc::new((set, warnings));
        self.sets.borrow_mut().insert(key, Rc::clone(&set));
        Ok(set)
    }
}

/// What a case that expects nothing yet is told.
fn nothing_expected(given: &BTreeMap<String, Given>) -> Vec<String> {
    let answers = given.iter().map(|(id, given)| format!("{id}: {}", given.in_words()));
    let first = "nothing is expected yet: write `verdicts` or `plan` into `expect`, or let \
                 --update write down what it answers";
    std::iter::once(first.to_owned()).chain(answers).collect()
}

fn settings_of(case: &Case, name: &str) -> Result<Map<String, Value>> {
    match case.settings.get(name) {
        None => Ok(Map::new()),
        Some(Value::Object(settings)) => Ok(settings.clone()),
        Some(_) => anyhow::bail!("settings: {name}: expected an object, such as {{key: value}}"),
    }
}

/// Whether a case says that the policy fails like this.
fn expects_failure(case: &Case, failure: &Failure) -> bool {
    let verdicts = case.expect.verdicts.iter().flat_map(BTreeMap::values);
    let mut named = verdicts.filter_map(|expected| expected.answer.as_deref());
    let changes = case.expect.changes.iter().flat_map(BTreeMap::values);
    let mut outcomes = changes.filter_map(|expected| expected.outcome);
    named.any(|answer| answer == failure.kind.name())
        || outcomes.any(|outcome| outcome == ChangeOutcome::Failed)
}
