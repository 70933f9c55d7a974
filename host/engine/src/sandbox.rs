//! Loading policies and asking them.

mod measure;
mod side_by_side;

use crate::ahead::Ahead;
use crate::cache::Cache;
use crate::call::{Ready, call};
use crate::check::{Offer, Ranges};
use crate::compile::Compiler;
use crate::discretion::Discretion;
use crate::failure::{failure, no_room};
use crate::limits::Limits;
use crate::room::{Room, Taken};
use crate::serving::Serving;
use crate::{convert, inspect, v1};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tread_model::claim::{validate_declarations, validate_description};
use tread_model::description::{Claim, DECLARATIONS, Declarations, Description, Difference};
use tread_model::digest::Sha256;
use tread_model::verdict::{Failure, FailureKind};
use wasmtime::component::Component;

pub use crate::cache::MOST_BYTES as MOST_CACHED_BYTES;
pub use crate::check::Speaker;
pub use crate::question::{Call, CallFailure, Reply, Spent};
pub use crate::serving::Allocator;
pub use crate::words::Words;

/// How a sandbox is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where compiled policies are kept. None: they are compiled each time.
    pub cache_dir: Option<PathBuf>,
    /// What a policy may use.
    pub limits: Limits,
    /// How many policies run at the same time; further calls wait.
    pub slots: u32,
    /// Where policies are compiled.
    pub compiler: Compiler,
    /// What the compiled code of all policies may take together that do not come
    /// with the program, in bytes. `no-room`
    pub code_bytes: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            cache_dir: None,
            limits: Limits::default(),
            slots: 8,
            compiler: Compiler::default(),
            code_bytes: 192 << 20,
        }
    }
}

/// Loads and runs policies. Clones share everything; nothing is set up before
/// the first policy is loaded.
#[derive(Debug, Clone)]
pub struct Sandbox(Arc<Inner>);

struct Inner {
    options: Options,
    serving: OnceLock<Arc<Serving>>,
    /// Whoever sets it up: two at once would reserve its memory twice.
    sets_up: Mutex<()>,
    cache: OnceLock<Option<Cache>>,
    room: Room,
    ahead: Ahead,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox").field("options", &self.options).finish_non_exhaustive()
    }
}

/// A policy that can be asked.
#[derive(Clone)]
pub struct Module(Arc<Loaded>);

struct Loaded {
    digest: Sha256,
    serving: Arc<Serving>,
    ready: Ready,
    /// For the claims of the last call: the next one mostly has the same.
    ranges: Mutex<Option<Arc<Ranges>>>,
    /// What its code takes, unless it comes with the program.
    _room: Option<Taken>,
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Module").field(&self.0.digest).finish()
    }
}

impl Sandbox {
    /// A sandbox in which nothing is set up yet.
    pub fn new(options: Options) -> anyhow::Result<Sandbox> {
        anyhow::ensure!(options.slots > 0, "a sandbox without slots runs nothing");
        let (serving, sets_up, cache) = (OnceLock::new(), Mutex::new(()), OnceLock::new());
        let room = Room::new(options.code_bytes);
        let ahead = Ahead::default();
        Ok(Sandbox(Arc::new(Inner { options, serving, sets_up, cache, room, ahead })))
    }

    /// The limits of all policies.
    pub fn limits(&self) -> &Limits {
        &self.0.options.limits
    }

    /// Where instances get their memory from. Sets up the engine.
    pub fn allocator(&self) -> Result<Allocator, Failure> {
        Ok(self.serving()?.allocator)
    }

    fn serving(&self) -> Result<&Arc<Serving>, Failure> {
        if let Some(serving) = self.0.serving.get() {
            return Ok(serving);
        }
        let _alone = self.0.sets_up.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(serving) = self.0.serving.get() {
            return Ok(serving);
        }
        let Options { limits, slots, .. } = &self.0.options;
        // What keeps it from being set up may pass: it is tried again at the next call.
        let serving = Serving::new(limits, *slots)
            .map_err(|error| no_room(format!("the sandbox cannot be set up: {error:#}")))?;
        Ok(self.0.serving.get_or_init(|| Arc::new(serving)))
    }

    fn cache(&self) -> Option<&Cache> {
        let dir = self.0.options.cache_dir.as_deref()?;
        self.0.cache.get_or_init(|| Cache::open(dir)).as_ref()
    }

    /// Makes a component ready to be asked, from the cache where it was
    /// verified before. `pin` is the digest that it has to have.
    pub fn load(&self, component: &[u8], pin: Option<&Sha256>) -> Result<Module, Failure> {
        inspect::check_size(component, self.limits())?;
        let digest = Sha256::of(component);
        if let Some(pin) = pin.filter(|pin| **pin != digest) {
            let message = format!("its digest is {digest}, and {pin} was pinned");
            return Err(failure(FailureKind::DigestMismatch, message));
        }
        let Options { compiler, .. } = &self.0.options;
        self.load_with(compiler, Some(&self.0.room), component, digest)
    }

    /// As [`Sandbox::load`], for components that come with the program with their
    /// digests, and need no process of their own to be compiled in.
    pub fn load_own(&self, component: &[u8], digest: Sha256) -> Result<Module, Failure> {
        inspect::check_size(component, self.limits())?;
        self.load_with(&Compiler::InProcess, None, component, digest)
    }

    fn load_with(
        &self,
        compiler: &Compiler,
        room: Option<&Room>,
        component: &[u8],
        digest: Sha256,
    ) -> Result<Module, Failure> {
        tracing::debug!("loading the policy {digest}");
        let serving = self.serving()?;
        let take = |compiled: &[u8]| room.map(|room| room.take(compiled.len())).transpose();
        // Also where the cache has it by now: nobody else would take it.
        let ahead = self.0.ahead.take(&digest);
        let (ready, room) = match self.cached(serving, &digest, take)? {
            Some(it) => it,
            None => {
                let compiled = match ahead {
                    Some(compiled) => compiled?,
                    None => self.compile(compiler, serving, component)?,
                };
                let room = take(&compiled)?;
                let ready = self.readied(serving, &compiled)?;
                self.verify(serving, component, &ready)?;
                if let Some(cache) = self.cache() {
                    cache.write(&digest, &serving.key, &compiled);
                }
                (ready, room)
            }
        };
        let (serving, ranges) = (Arc::clone(serving), Mutex::new(None));
        Ok(Module(Arc::new(Loaded { digest, serving, ready, ranges, _room: room })))
    }

    /// A component that was loaded before, by this version and under these
    /// limits: entries are only written of what was found good.
    fn cached(
        &self,
        serving: &Serving,
        digest: &Sha256,
        take: impl Fn(&[u8]) -> Result<Option<Taken>, Failure>,
    ) -> Result<Option<(Ready, Option<Taken>)>, Failure> {
        let read = self.cache().and_then(|cache| cache.read(digest, &serving.key));
        let Some(compiled) = read else { return Ok(None) };
        let room = take(&compiled)?;
        let component = deserialize(serving, &compiled)
            .inspect_err(|error| tracing::debug!("a cached policy is compiled anew: {error:#}"));
        let ready = component.ok().and_then(|component| Ready::new(serving, &component).ok());
        Ok(ready.map(|ready| (ready, room)))
    }

    fn compile(
        &self,
        compiler: &Compiler,
        serving: &Serving,
        component: &[u8],
    ) -> Result<Vec<u8>, Failure> {
        inspect::check(component, self.limits())?;
        tracing::debug!("compiling the policy {}", Sha256::of(component));
        compiler.compile(component, serving.allocator, self.limits())
    }

    fn readied(&self, serving: &Serving, compiled: &[u8]) -> Result<Ready, Failure> {
        // What the compiler has just made can only fail by being too large for an
        // instance.
        let component = deserialize(serving, compiled)
            .map_err(|error| failure(FailureKind::Memory, format!("{error:#}")))?;
        let needs = component.resources_required();
        if needs.is_none_or(|it| it.num_memories > 1 || it.num_tables > self.limits().tables) {
            let message = "it makes more memories or tables than a policy may have";
            return Err(failure(FailureKind::Memory, message));
        }
        Ready::new(serving, &component)
    }

    /// What loading has to find out once: whether it can be instantiated, has
    /// functions of the right types, and is what it says it is.
    fn verify(&self, serving: &Serving, component: &[u8], ready: &Ready) -> Result<(), Failure> {
        let declared = inspect::description(component, self.limits())?;
        let (exported, declarations) = self.exported(serving, ready)?;
        let bad = |message: String| failure(FailureKind::BadDescription, message);
        validate_description(&exported).map_err(bad)?;
        validate_declarations(&declarations).map_err(bad)?;
        if inspect::declarations(component, self.limits())? != declarations {
            return Err(bad(format!(
                "its custom section {DECLARATIONS} and its function declare different things: \
                 build it again"
            )));
        }
        match declared.difference(&exported) {
            None => Ok(()),
            Some(Difference { what, one, two }) => Err(bad(format!(
                "{what} is {one} in its custom section and {two} by its function `describe`: build \
                 it again"
            ))),
        }
    }

    fn exported(
        &self,
        serving: &Serving,
        ready: &Ready,
    ) -> Result<(Description, Declarations), Failure> {
        let limits = self.limits();
        let budget = limits.budget(0, 0);
        let fail = |failed: CallFailure| failed.failure;
        // Their types are compared here, so that a mismatch shows at load.
        ready.check_types(serving, limits)?;
        let done = call(serving, limits, ready, &ready.describe, (), budget).map_err(fail)?;
        let declarations = match &ready.declare {
            None => Declarations::default(),
            Some(declare) => {
                let done = call(serving, limits, ready, declare, (), budget).map_err(fail)?;
                convert::declarations(done.value)
            }
        };
        Ok((convert::description(done.value), declarations))
    }

    /// What a component exports as its description and its declarations,
    /// whatever its custom sections say: for whoever builds one.
    pub fn describe(&self, component: &[u8]) -> Result<(Description, Declarations), Failure> {
        let serving = self.serving()?;
        let compiled = self.compile(&self.0.options.compiler, serving, component)?;
        let ready = self.readied(serving, &compiled)?;
        let (exported, declarations) = self.exported(serving, &ready)?;
        validate_description(&exported)
            .and_then(|()| validate_declarations(&declarations))
            .map_err(|message| failure(FailureKind::BadDescription, message))?;
        Ok((exported, declarations))
    }

    /// Lets a policy check its settings: one complete JSON object.
    pub fn check_settings(&self, module: &Module, settings: &str) -> Result<(), Failure> {
        let invalid = |message: String| failure(FailureKind::InvalidSettings, message);
        if let Err(error) = serde_json::from_str::<serde_json::Map<_, serde_json::Value>>(settings)
        {
            return Err(invalid(format!("its settings are no JSON object: {error}")));
        }
        let Loaded { serving, ready, .. } = &*module.0;
        let budget = self.limits().budget(settings.len(), 0);
        let function = &ready.check_settings;
        let done = call(serving, self.limits(), ready, function, (settings,), budget)
            .map_err(|failed| failed.failure)?;
        done.value.map_err(|errors| match errors.as_slice() {
            [] => invalid("it refuses its settings without a reason".to_owned()),
            errors => invalid(errors.join("; ")),
        })
    }

    /// Asks a policy about changes. Without changes it is not run.
    pub fn classify(&self, module: &Module, call: &Call<'_, '_>) -> Result<Reply, CallFailure> {
        self.classify_within(module, call, self.limits())
    }

    /// As [`Sandbox::classify`], about contents that were made up for the policy's
    /// author: none of them is a secret, and nothing that it says is kept back.
    pub fn classify_openly(
        &self,
        module: &Module,
        call: &Call<'_, '_>,
    ) -> Result<Reply, CallFailure> {
        ask(module, call, self.limits(), Discretion::Free)
    }

    /// As [`Sandbox::classify`], with other limits on what the call may use. Its
    /// memory can only be less than what the sandbox was set up for.
    pub fn classify_within(
        &self,
        module: &Module,
        call: &Call<'_, '_>,
        limits: &Limits,
    ) -> Result<Reply, CallFailure> {
        ask(module, call, limits, Discretion::of(call))
    }
}

fn ask(
    module: &Module,
    call: &Call<'_, '_>,
    limits: &Limits,
    discretion: Discretion<'_>,
) -> Result<Reply, CallFailure> {
    if call.changes.is_empty() {
        let spent = Some(Spent::default());
        return Ok(Reply { verdicts: Vec::new(), spent, log: Vec::new() });
    }
    let Loaded { serving, ready, .. } = &*module.0;
    let ranges = module.ranges(call.claims).map_err(|message| {
        let failure = failure(FailureKind::BadDescription, message);
        CallFailure::new(failure, Spent::default(), Vec::new())
    })?;
    let changes: Vec<_> = call.changes.iter().map(|change| convert::change(change)).collect();
    let unchanged: Vec<_> = call.unchanged.iter().map(convert::entry).collect();
    let params: v1::ClassifyParams<'_> = (call.settings, &changes, &unchanged);
    let budget = limits.budget(convert::offered_bytes(params), changes.len());
    let offer = Offer {
        changes: call.changes,
        ranges: &ranges,
        layer: call.layer,
        speaker: call.speaker,
        limits,
    };
    let done = crate::call::call(serving, limits, ready, &ready.classify, params, budget)
        .and_then(|done| done.and_then(|verdicts| offer.check(verdicts)));
    discretion.of_answer(call.changes, done)
}

impl Module {
    /// The sha256 of the component.
    pub fn digest(&self) -> Sha256 {
        self.0.digest
    }

    fn ranges(&self, claims: &[Claim]) -> Result<Arc<Ranges>, String> {
        let mut last = self.0.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ranges) = last.as_ref().filter(|ranges| ranges.are_of(claims)) {
            return Ok(Arc::clone(ranges));
        }
        let ranges = Arc::new(Ranges::new(claims)?);
        *last = Some(Arc::clone(&ranges));
        Ok(ranges)
    }
}

/// Turns compiled code into a component.
#[allow(unsafe_code)]
fn deserialize(serving: &Serving, compiled: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: wasmtime runs these bytes as machine code, so they have to be
    // what its compiler wrote. They come from two places only. One is the
    // compiler of this program, called a moment ago. The other is the cache: a
    // directory that belongs to this user and that nobody else can enter, so
    // that only who may run any code as this user could have put bytes there;
    // they were read once, into memory of this process, and their digest,
    // which is bound to the component and to the version and settings of
    // program and engine, was verified over that copy.
    unsafe { Component::deserialize(&serving.engine, compiled) }
}
