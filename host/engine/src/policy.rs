//! A policy that takes part in plans, and the set of all of them.

use crate::failure::failure;
use crate::inspect;
use crate::limits::Limits;
use crate::sandbox::{Module, Sandbox, Speaker, Words};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tread_model::claim::{Router, validate_declarations, validate_description};
use tread_model::description::{Claim, Declarations, Description};
use tread_model::digest::Sha256;
use tread_model::plan::PolicyIdentity;
use tread_model::schema::Schema;
use tread_model::verdict::{Failure, FailureKind, Layer};

/// A policy that takes part in plans: what is known of it without running it,
/// and its module, which is loaded when the first change is routed to it.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Name, layer, version and digests.
    pub identity: PolicyIdentity,
    /// One line on what it does.
    pub summary: String,
    /// What it is asked about, and the range of its answers.
    pub claims: Vec<Claim>,
    /// Its settings: one complete JSON object, keys sorted.
    pub settings: String,
    /// Whether its actions stand against the built-ins' verdicts (law 4).
    pub may_relax: bool,
    /// Whether it may read what others on the node cannot (law 10).
    pub read_secrets: bool,
    /// What it declares on secrets.
    pub declarations: Declarations,
    /// The size of its component.
    pub size: usize,
    /// Of its settings, those that an admin wrote.
    admins: Map<String, Value>,
    /// Of its description.
    texts: Vec<String>,
    words: OnceLock<Words>,
    /// Whether its settings are rules, and so its answers their author's words.
    by_rules: bool,
    with_unchanged: Router,
    limits: Option<Limits>,
    body: Body,
    loaded: OnceLock<Result<Module, Failure>>,
}

#[derive(Debug, Clone)]
enum Body {
    /// Borrowed if it is part of the program.
    Component(Cow<'static, [u8]>),
    /// Loaded already.
    Loaded(Module),
    /// It cannot be loaded, but it is known what it claims.
    Broken(Failure),
}

/// What an admin says of a policy.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// Settings over those that it was packed with.
    pub settings: Map<String, Value>,
    /// What its owner packed with it: settings over the policy's defaults.
    pub packed: Map<String, Value>,
    /// See [`Policy::may_relax`].
    pub may_relax: bool,
    /// See [`Policy::read_secrets`].
    pub read_secrets: bool,
}

impl Policy {
    /// A policy from the bytes of its component, which is not run yet. `digest`
    /// is the sha256 of the bytes where the caller knows it already.
    ///
    /// What is wrong with its settings is a failure of the policy (law 2); a
    /// component that does not even say what it claims is an error.
    pub fn new(
        component: Cow<'static, [u8]>,
        digest: Option<Sha256>,
        layer: Layer,
        wishes: Wishes,
        limits: &Limits,
    ) -> Result<Policy, Failure> {
        let description = inspect::description(&component, limits)?;
        validate_description(&description).map_err(bad_description)?;
        let declarations = inspect::declarations(&component, limits)?;
        validate_declarations(&declarations).map_err(bad_description)?;
        let digest = digest.unwrap_or_else(|| Sha256::of(&component));
        let Wishes { settings: admins, packed: mut wished, may_relax, read_secrets } = wishes;
        // An admin's settings over those of the module's owner, key by key.
        wished.extend(admins.clone());
        let (settings, body) = match complete_settings(&description, &wished) {
            Ok(settings) => (settings, None),
            Err(failure) => ("{}".to_owned(), Some(Body::Broken(failure))),
        };
        let texts = texts_of(&description);
        let Description { name, version, summary, claims, .. } = description;
        Ok(Policy {
            identity: PolicyIdentity {
                policy: name,
                layer,
                version,
                digest,
                settings_digest: Sha256::of(settings.as_bytes()),
            },
            summary,
            by_rules: false,
            with_unchanged: with_unchanged(&claims)?,
            claims,
            settings,
            admins,
            may_relax: may_relax && layer == Layer::Template,
            read_secrets,
            declarations,
            texts,
            words: OnceLock::new(),
            size: component.len(),
            limits: None,
            body: body.unwrap_or(Body::Component(component)),
            loaded: OnceLock::new(),
        })
    }

    /// A policy whose module is gone. All that is known is what it was and what it
    /// claimed: it fails on all of that (law 2). `message` says where the module
    /// should be.
    pub fn missing(
        identity: PolicyIdentity,
        claims: Vec<Claim>,
        message: String,
    ) -> Result<Policy, Failure> {
        Policy::broken(identity, claims, failure(FailureKind::Missing, message))
    }

    /// A policy that is known to be bad, and to claim this: it fails on all of
    /// that (law 2).
    pub fn broken(
        identity: PolicyIdentity,
        claims: Vec<Claim>,
        failure: Failure,
    ) -> Result<Policy, Failure> {
        Ok(Policy {
            identity,
            summary: String::new(),
            by_rules: false,
            with_unchanged: with_unchanged(&claims)?,
            claims,
            settings: "{}".to_owned(),
            admins: Map::new(),
            may_relax: false,
            read_secrets: false,
            declarations: Declarations::default(),
            texts: Vec::new(),
            words: OnceLock::new(),
            size: 0,
            limits: None,
            body: Body::Broken(failure),
            loaded: OnceLock::new(),
        })
    }

    /// The same policy under another name, with claims that the host computed
    /// in place of the declared ones: for rules.
    pub fn named(mut self, name: String, summary: String, claims: Vec<Claim>) -> Policy {
        self.identity.policy = name;
        self.summary = summary;
        self.claims = claims;
        self
    }

    /// The same policy, whose settings are rules: it answers in the words of
    /// whoever wrote them.
    pub fn by_rules(mut self) -> Policy {
        self.by_rules = true;
        self
    }

    /// Whether secrets are kept from it (law 10).
    pub fn is_blind(&self) -> bool {
        self.identity.layer == Layer::Template && !self.read_secrets
    }

    /// Whether it needs secrets that are kept from it.
    pub fn misses_secrets(&self) -> bool {
        self.is_blind() && self.declarations.needs_secrets
    }

    /// What it can say when it is offered a secret.
    pub fn words(&self) -> &Words {
        self.words.get_or_init(|| {
            Words::new(&self.declarations, &self.texts, &self.settings, &self.admins)
        })
    }

    /// Whose words its answers hold.
    pub fn speaker(&self) -> Speaker {
        match self.by_rules && self.identity.layer == Layer::Admin {
            true => Speaker::AdminsRules,
            false => Speaker::Policy,
        }
    }

    /// The same policy with a module that was loaded from its component before:
    /// for whoever asks one component with many settings.
    pub fn with_module(mut self, module: Module) -> Policy {
        if matches!(self.body, Body::Component(_)) && module.digest() == self.identity.digest {
            self.body = Body::Loaded(module);
        }
        self
    }

    /// The same policy with limits of its own on what a call may use.
    pub fn within(mut self, limits: Limits) -> Policy {
        self.limits = Some(limits);
        self
    }

    /// What its answers depend on besides: limits of its own, and why it cannot
    /// decide.
    pub fn condition(&self) -> String {
        let failure = match &self.body {
            Body::Broken(failure) => Some(failure),
            Body::Component(_) | Body::Loaded(_) => None,
        };
        format!("{:?} {failure:?}", self.limits)
    }

    /// What a call may use, where that is not what every call may.
    pub(crate) fn limits(&self) -> Option<&Limits> {
        self.limits.as_ref()
    }

    /// Whether it wants to see this also when it did not change.
    pub(crate) fn sees_unchanged(&self) -> bool {
        self.claims.iter().any(|claim| claim.with_unchanged)
    }

    pub(crate) fn wants_unchanged(&self, id: &str) -> bool {
        self.with_unchanged.is_claimed(id)
    }

    /// Its module, loaded now if it was not; settings are checked then too.
    pub(crate) fn module(&self, sandbox: &Sandbox) -> Result<&Module, &Failure> {
        self.loaded.get_or_init(|| self.load(sandbox)).as_ref()
    }

    fn load(&self, sandbox: &Sandbox) -> Result<Module, Failure> {
        match &self.body {
            Body::Broken(failure) => Err(failure.clone()),
            Body::Component(component) => {
                let digest = self.identity.digest;
                let module = match component {
                    Cow::Borrowed(own) => sandbox.load_own(own, digest)?,
                    Cow::Owned(foreign) => sandbox.load(foreign, Some(&digest))?,
                };
                self.with_settings(module, sandbox)
            }
            Body::Loaded(module) => self.with_settings(module.clone(), sandbox),
        }
    }

    /// A component of somebody else that is not loaded yet.
    fn unloaded(&self) -> Option<(Sha256, &[u8])> {
        match &self.body {
            Body::Component(Cow::Owned(component)) if self.loaded.get().is_none() => {
                Some((self.identity.digest, component))
            }
            Body::Component(_) | Body::Broken(_) | Body::Loaded(_) => None,
        }
    }

    fn with_settings(&self, module: Module, sandbox: &Sandbox) -> Result<Module, Failure> {
        if self.settings != "{}" {
            sandbox.check_settings(&module, &self.settings)?;
        }
        Ok(module)
    }

    /// Whether it can decide: loads it, and checks its settings.
    pub fn check(&self, sandbox: &Sandbox) -> Result<(), &Failure> {
        self.module(sandbox).map(|_| ())
    }
}

/// Compiles side by side what of several policies is not compiled yet: each of them is
/// loaded quickly after that. Says how long each took.
pub fn compile_ahead<'p>(
    policies: impl IntoIterator<Item = &'p Policy>,
    sandbox: &Sandbox,
) -> Vec<(Sha256, Duration)> {
    let unloaded: Vec<_> = policies.into_iter().filter_map(Policy::unloaded).collect();
    // Nothing is set up where there is nothing to gain.
    if unloaded.len() < 2 { Vec::new() } else { sandbox.compile_ahead(unloaded) }
}

fn with_unchanged(claims: &[Claim]) -> Result<Router, Failure> {
    let claims: Vec<Claim> = claims.iter().filter(|claim| claim.with_unchanged).cloned().collect();
    Router::new([(0, claims.as_slice())]).map_err(bad_description)
}

/// The texts that may name units which it restarts.
fn texts_of(description: &Description) -> Vec<String> {
    let settings = description.settings.iter();
    let settings = settings.flat_map(|it| [it.defaults.clone(), it.schema.clone()]);
    let claims = description.claims.iter().map(|claim| claim.changes.clone());
    settings.chain(claims).chain([description.summary.clone()]).collect()
}

fn bad_description(message: String) -> Failure {
    failure(FailureKind::BadDescription, message)
}

/// The defaults with the admin's values over them, as canonical JSON, which is
/// what the schema asks for.
pub fn complete_settings(
    description: &Description,
    wished: &Map<String, Value>,
) -> Result<String, Failure> {
    let invalid = |message: String| failure(FailureKind::InvalidSettings, message);
    let Some(settings) = &description.settings else {
        return match wished.keys().next() {
            None => Ok("{}".to_owned()),
            Some(key) => Err(invalid(format!(
                "{} takes no settings, but {key} is set: remove it",
                description.name
            ))),
        };
    };
    let mut complete: Map<String, Value> = serde_json::from_str(&settings.defaults)
        .map_err(|error| invalid(format!("the defaults of {}: {error}", description.name)))?;
    for (key, value) in wished {
        complete.insert(key.clone(), value.clone());
    }
    let complete = Value::Object(complete);
    let schema = Schema::read(&settings.schema).map_err(bad_description)?;
    schema.check(&complete).map_err(|problems| invalid(problems.join("; ")))?;
    Ok(complete.to_string())
}

/// All policies of a plan, in the order of layer and name, with the way from a
/// change to those that claim it.
#[derive(Debug, Default)]
pub struct PolicySet {
    policies: Vec<Arc<Policy>>,
    router: Router,
}

impl PolicySet {
    /// Puts policies together. Two of one name, be they of two layers, are an
    /// error: whoever reads a plan, or gives a policy settings by its name,
    /// could not tell them apart.
    pub fn new(policies: Vec<Policy>) -> Result<PolicySet, String> {
        PolicySet::of(policies.into_iter().map(Arc::new).collect())
    }

    /// These and others; one of them that has the layer and name of another
    /// stands in its place. What is loaded is not loaded again.
    pub fn with(&self, others: Vec<Policy>) -> Result<PolicySet, String> {
        let replaced = |own: &Arc<Policy>| others.iter().any(|other| key(other) == key(own));
        let mut all: Vec<_> = self.policies.iter().filter(|own| !replaced(own)).cloned().collect();
        all.extend(others.into_iter().map(Arc::new));
        PolicySet::of(all)
    }

    /// As [`PolicySet::new`], of policies that may be in other sets too.
    pub fn of(mut policies: Vec<Arc<Policy>>) -> Result<PolicySet, String> {
        policies.sort_by(|a, b| key(a).cmp(&key(b)));
        let mut names: BTreeMap<&str, Layer> = BTreeMap::new();
        for PolicyIdentity { policy, layer, .. } in policies.iter().map(|policy| &policy.identity) {
            if let Some(other) = names.insert(policy, *layer) {
                return Err(same_name(policy, other, *layer));
            }
        }
        let claims = policies.iter().enumerate().map(|(index, policy)| (index, &*policy.claims));
        let router = Router::new(claims)?;
        Ok(PolicySet { policies, router })
    }

    /// The policies, by layer and name.
    pub fn policies(&self) -> &[Arc<Policy>] {
        &self.policies
    }

    /// The way from changes to claims.
    pub(crate) fn router(&self) -> &Router {
        &self.router
    }
}

fn same_name(name: &str, one: Layer, two: Layer) -> String {
    match (one, two) {
        (one, two) if one == two => {
            format!(
                "two policies of the {one} layer are named {name}: rename one, or leave one out"
            )
        }
        (other, Layer::Builtin) => format!(
            "a policy of the {other} layer is named {name}, which is the name of a built-in one: \
             rename yours (`NAME` in its source, `metadata.name` of rules), and build it again"
        ),
        (one, two) => format!(
            "a policy of the {one} layer and one of the {two} layer are both named {name}: \
             rename one (`NAME` in its source, `metadata.name` of rules), or leave one out"
        ),
    }
}

fn key(policy: &Policy) -> (Layer, &str) {
    (policy.identity.layer, &policy.identity.policy)
}
