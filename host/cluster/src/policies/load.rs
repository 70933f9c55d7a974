//! Loading and checking a version of a policy: the only place here that runs a
//! stranger's code, and that blocks.

use super::choose::{Attempt, Version};
use super::material::{Material, Unusable};
use k8s_openapi::jiff::Timestamp;
use kube::Resource;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tread_engine::inspect;
use tread_engine::limits::Limits;
use tread_engine::policy::{Policy, Wishes, complete_settings};
use tread_engine::sandbox::{Module, Sandbox};
use tread_kube::api::disruption_policy::PolicyLimits;
use tread_kube::api::openshift::MACHINE_CONFIGURATION;
use tread_kube::api::{DisruptionPolicy, MachineConfiguration};
use tread_model::description::{Claim, Description};
use tread_model::digest::Sha256;
use tread_model::openshift;
use tread_model::problem::Problems;
use tread_model::read::Input;
use tread_model::rules;
use tread_model::verdict::{Failure, FailureKind, Layer};

/// Where an admin's settings stand, and those of a module's owner.
const ADMINS_SETTINGS: &str = "spec.settings";
const OWNERS_SETTINGS: &str = "data.settings of the ConfigMap";

/// A component that comes with tread.
#[derive(Debug, Clone, Copy)]
pub struct Shipped {
    /// What it is called.
    pub name: &'static str,
    /// The component.
    pub component: &'static [u8],
    /// Its sha256.
    pub digest: Sha256,
}

/// Everything that comes with tread.
#[derive(Debug, Clone)]
pub struct AllShipped {
    /// Those that decide on every plan.
    pub builtins: Vec<Shipped>,
    /// The one that carries out rules.
    pub rules: Shipped,
}

/// What a version is made of.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// Somebody's component.
    Module(Material),
    /// One that comes with tread, by its name.
    Builtin(String),
    /// Inline rules.
    Rules(Value),
    /// The nodeDisruptionPolicy of OpenShift's MachineConfiguration.
    NodeDisruptionPolicy(Value),
}

/// What an admin says of a policy, whichever version decides.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// Who speaks.
    pub layer: Layer,
    /// What it may use.
    pub limits: Option<PolicyLimits>,
    /// See [`Policy::may_relax`].
    pub may_relax: bool,
    /// See [`Policy::read_secrets`].
    pub read_secrets: bool,
}

/// A version to load.
#[derive(Debug, Clone)]
pub struct Job {
    /// The DisruptionPolicy.
    pub object: String,
    /// What it is made of.
    pub body: Body,
    /// Settings over those that come with the module.
    pub settings: Map<String, Value>,
    /// The digest that the module has to have.
    pub pin: Option<String>,
    /// What an admin says of it.
    pub terms: Terms,
    /// A module that is loaded already: if it is the same, it is not loaded again.
    pub loaded: Option<Module>,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// For the status.
    pub attempt: Attempt,
    /// The policy, if it can decide.
    pub policy: Option<Arc<Policy>>,
    /// Its module, where it is a stranger's.
    pub module: Option<Module>,
    /// When it is tried again, where it failed to compile.
    pub retry: Option<Retry>,
}

/// When bytes that failed to compile are tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Not before that.
    pub at: Timestamp,
    /// How often they failed.
    pub tries: u32,
}

impl Loaded {
    /// A version that cannot decide.
    pub fn bad(failure: Failure) -> Loaded {
        let attempt = Attempt::Bad { failure, digest: None, claims: Vec::new() };
        Loaded { attempt, policy: None, module: None, retry: None }
    }
}

/// Loads versions of policies.
#[derive(Debug)]
pub struct Loader {
    sandbox: Sandbox,
    shipped: AllShipped,
    /// The module that carries out rules, for all of them, once it could be loaded.
    rules: OnceLock<Module>,
}

/// What is known of a version also when it cannot be loaded.
#[derive(Default)]
struct Known {
    digest: Option<Sha256>,
    claims: Vec<Claim>,
    warnings: Vec<String>,
}

impl Loader {
    /// Loads nothing yet.
    pub fn new(sandbox: Sandbox, shipped: AllShipped) -> Loader {
        Loader { sandbox, shipped, rules: OnceLock::new() }
    }

    /// The names of the policies that come with tread.
    pub fn builtins(&self) -> Vec<String> {
        self.shipped.builtins.iter().map(|it| it.name.to_owned()).collect()
    }

    /// Loads and checks a version. Takes as long as compiling does.
    pub fn load(&self, job: Job) -> Loaded {
        let mut known = Known::default();
        match self.try_load(job, &mut known) {
            Ok((policy, module)) => {
                let version = Version {
                    name: policy.identity.policy.clone(),
                    version: policy.identity.version.clone(),
                    summary: policy.summary.clone(),
                    claims: policy.claims.clone(),
                    digest: policy.identity.digest,
                    settings_digest: policy.identity.settings_digest,
                    warnings: known.warnings,
                };
                let policy = Some(Arc::new(policy));
                Loaded { attempt: Attempt::Good(version), policy, module, retry: None }
            }
            Err(failure) => {
                let Known { digest, claims, .. } = known;
                let attempt = Attempt::Bad { failure, digest, claims };
                Loaded { attempt, policy: None, module: None, retry: None }
            }
        }
    }

    /// A module that is known to fail, and is not tried.
    pub fn not_tried(&self, component: &[u8], digest: Sha256, failure: Failure) -> Loaded {
        self.bad(failure, Some(digest), [component])
    }

    /// A ConfigMap of which no version can be made: what its module says that it claims is known
    /// all the same, and of several that could be meant what each of them says.
    pub fn unusable(&self, it: Unusable) -> Loaded {
        self.bad(it.failure, it.digest, it.components.iter().map(Vec::as_slice))
    }

    fn bad<'c>(
        &self,
        failure: Failure,
        digest: Option<Sha256>,
        components: impl IntoIterator<Item = &'c [u8]>,
    ) -> Loaded {
        let limits = self.sandbox.limits();
        let described =
            components.into_iter().filter_map(|it| inspect::description(it, limits).ok());
        let claims = described.flat_map(|it| it.claims).collect();
        let attempt = Attempt::Bad { failure, digest, claims };
        Loaded { attempt, policy: None, module: None, retry: None }
    }

    fn try_load(&self, job: Job, known: &mut Known) -> Result<(Policy, Option<Module>), Failure> {
        let limits = self.sandbox.limits();
        let Terms { layer, may_relax, read_secrets, .. } = job.terms;
        let wishes = |settings, packed: &_| Wishes {
            settings,
            packed: Map::clone(packed),
            may_relax,
            read_secrets,
        };
        let (admins, mut owners, mut described) = (job.settings.clone(), Map::new(), None);
        let (policy, module) = match job.body {
            Body::Module(Material { component, settings }) => {
                let digest = Sha256::of(&component);
                known.digest = Some(digest);
                described = inspect::description(&component, limits).ok();
                if let Some(description) = &described {
                    known.claims.clone_from(&description.claims);
                }
                let pin = job.pin.as_deref().map(pin).transpose()?;
                let loaded = job.loaded.filter(|module| module.digest() == digest);
                let module = match loaded {
                    Some(module) if pin.is_none_or(|pin| pin == digest) => module,
                    _ => self.sandbox.load(&component, pin.as_ref())?,
                };
                owners = settings;
                let wishes = wishes(job.settings, &owners);
                let component = Cow::Owned(component);
                let policy = Policy::new(component, Some(digest), layer, wishes, limits)?;
                // From here on its bytes are not needed any more.
                (policy.with_module(module.clone()), Some(module))
            }
            Body::Builtin(name) => {
                let found = self.shipped.builtins.iter().find(|it| it.name == name);
                let Some(it) = found else {
                    let message = format!(
                        "no built-in policy is named {name}: there are {}",
                        self.builtins().join(", ")
                    );
                    return Err(Failure { kind: FailureKind::Missing, message });
                };
                known.digest = Some(it.digest);
                let component = Cow::Borrowed(it.component);
                let digest = Some(it.digest);
                described = inspect::description(it.component, limits).ok();
                let wishes = wishes(job.settings, &owners);
                let policy = Policy::new(component, digest, layer, wishes, limits)?;
                (policy, None)
            }
            Body::Rules(rules) => {
                known.claims = rules::claimed(&rules);
                let spec = json!({"layer": layer.as_str(), "mayRelax": may_relax, "rules": rules});
                let object = manifest::<DisruptionPolicy>(&job.object, &spec);
                (self.rules(&object, known)?, None)
            }
            Body::NodeDisruptionPolicy(rules) => {
                known.claims = openshift::claimed(&rules);
                let spec = json!({"nodeDisruptionPolicy": rules});
                let object = manifest::<MachineConfiguration>(MACHINE_CONFIGURATION, &spec);
                (self.rules(&object, known)?, None)
            }
        };
        known.claims.clone_from(&policy.claims);
        let policy = match &job.terms.limits {
            Some(own) => policy.within(own_limits(limits, own)),
            None => policy,
        };
        policy
            .check(&self.sandbox)
            .map_err(|failure| located(failure.clone(), described.as_ref(), (&owners, &admins)))?;
        if policy.misses_secrets() {
            known.warnings.push(
                "It needs to read secrets, and abstains on them: `spec.readSecrets: true` lets it."
                    .to_owned(),
            );
        }
        Ok((policy, module))
    }

    fn rules(&self, object: &Value, known: &mut Known) -> Result<Policy, Failure> {
        let invalid = |message: String| Failure { kind: FailureKind::InvalidSettings, message };
        let text = object.to_string();
        let read = rules::read(&Input { name: "object", bytes: text.as_bytes() })
            .map_err(|problems| invalid(in_the_object(&problems)))?;
        let [read] = <[_; 1]>::try_from(read).map_err(|_| invalid("holds no rules".to_owned()))?;
        known.claims.clone_from(&read.claims);
        known.warnings = rules::warnings(&read);
        let settings = match read.settings {
            Value::Object(settings) => settings,
            _ => Map::new(),
        };
        let Shipped { component, digest, .. } = self.shipped.rules;
        // What keeps it from being loaded, such as a limit of processes, may pass.
        let module = match self.rules.get() {
            Some(module) => module.clone(),
            None => {
                let module = self.sandbox.load_own(component, digest)?;
                self.rules.get_or_init(|| module).clone()
            }
        };
        let wishes = Wishes { settings, may_relax: read.may_relax, ..Wishes::default() };
        let limits = self.sandbox.limits();
        let component = Cow::Borrowed(component);
        let policy = Policy::new(component, Some(digest), read.layer, wishes, limits)?;
        let policy =
            policy.named(read.name, "Rules of an admin".to_owned(), read.claims).by_rules();
        Ok(policy.with_module(module))
    }
}

/// Problems with their fields; the object is the one on which they are said.
fn in_the_object(problems: &Problems) -> String {
    let said = problems.0.iter().map(|it| match it.path.as_str() {
        "" => it.message.clone(),
        path => format!("{path}: {}", it.message),
    });
    said.collect::<Vec<_>>().join("; ")
}

/// Says of bad settings where they stand: on the object, where an admin wrote
/// them, or in the ConfigMap, beside the module.
fn located(
    failure: Failure,
    description: Option<&Description>,
    (owners, admins): (&Map<String, Value>, &Map<String, Value>),
) -> Failure {
    let Some(description) = description.filter(|_| failure.kind == FailureKind::InvalidSettings)
    else {
        return failure;
    };
    // A value that an admin replaces does no harm.
    let mut counted = owners.clone();
    counted.retain(|key, _| !admins.contains_key(key));
    let parts = [(ADMINS_SETTINGS, admins), (OWNERS_SETTINGS, &counted)];
    let bad = parts.into_iter().filter_map(|(place, settings)| {
        let why = complete_settings(description, settings).err()?;
        Some(format!("{place}: {}", why.message))
    });
    let named = failure.setting().unwrap_or_default();
    let message = match bad.collect::<Vec<_>>().as_slice() {
        // The module itself says so.
        [] if admins.contains_key(named) => format!("{ADMINS_SETTINGS}: {}", failure.message),
        [] if owners.contains_key(named) => format!("{OWNERS_SETTINGS}: {}", failure.message),
        [] if admins.is_empty() => format!("{OWNERS_SETTINGS}: {}", failure.message),
        [] if owners.is_empty() => format!("{ADMINS_SETTINGS}: {}", failure.message),
        [] => format!("{ADMINS_SETTINGS} over {OWNERS_SETTINGS}: {}", failure.message),
        bad => bad.join("; "),
    };
    Failure { message, ..failure }
}

fn manifest<K: Resource<DynamicType = ()>>(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": {"name": name},
        "spec": spec})
}

fn pin(text: &str) -> Result<Sha256, Failure> {
    Sha256::parse(text).ok_or_else(|| {
        let message = format!("the digest {text:?} was pinned, which is none");
        Failure { kind: FailureKind::DigestMismatch, message }
    })
}

/// What a policy may use, where an admin says so.
fn own_limits(all: &Limits, own: &PolicyLimits) -> Limits {
    let unsigned = |value: i64| u64::try_from(value).unwrap_or_default();
    let mut limits = all.clone();
    if let Some(fuel) = own.fuel {
        limits.fuel = unsigned(fuel);
    }
    if let Some(milliseconds) = own.deadline_milliseconds {
        limits.deadline = Duration::from_millis(unsigned(milliseconds));
    }
    if let Some(bytes) = own.memory_bytes.and_then(|bytes| usize::try_from(bytes).ok()) {
        limits.memory_bytes = bytes.min(all.memory_bytes);
    }
    limits
}
