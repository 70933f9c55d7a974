//! One call of a policy: a fresh instance, a budget, and an end.

use crate::clock::{Stopwatch, Time};
use crate::failure::{failure, no_room, of_error};
use crate::function::{Function, Signature};
use crate::guest_log::GuestLog;
use crate::limits::{Budget, Limiter, Limits};
use crate::question::{CallFailure, Spent};
use crate::serving::{Guest, Serving};
use crate::slots::Slot;
use crate::ticker::{Ticking, ticks};
use crate::v1;
use std::time::Instant;
use tread_model::verdict::{Failure, FailureKind};
use wasmtime::component::{Component, ComponentNamedList, InstancePre, Lift};
use wasmtime::{Store, UpdateDeadline};

/// For how many calls, one after the other, a call waits before it gives up: even if
/// each of them hangs.
const PATIENCE: u32 = 10;

/// A component that can be called.
pub(crate) struct Ready {
    pre: InstancePre<Guest>,
    pub(crate) describe: Function<v1::Describe>,
    pub(crate) check_settings: Function<v1::CheckSettings>,
    pub(crate) classify: Function<v1::Classify>,
    /// None: it was built against a contract without declarations.
    pub(crate) declare: Option<Function<v1::Declare>>,
}

impl Ready {
    pub(crate) fn new(serving: &Serving, component: &Component) -> Result<Ready, Failure> {
        let wrong_world = |message: String| failure(FailureKind::WrongWorld, message);
        let pre = serving
            .linker
            .instantiate_pre(component)
            .map_err(|error| wrong_world(format!("{error:#}")))?;
        let classifier = component
            .get_export_index(None, v1::CLASSIFIER)
            .ok_or_else(|| wrong_world(format!("it does not export {}", v1::CLASSIFIER)))?;
        let function = |name: &str| {
            component
                .get_export_index(Some(&classifier), name)
                .ok_or_else(|| wrong_world(format!("{} has no {name}", v1::CLASSIFIER)))
        };
        Ok(Ready {
            describe: Function::new(function("describe")?),
            check_settings: Function::new(function("check-settings")?),
            classify: Function::new(function("classify")?),
            declare: component
                .get_export_index(None, v1::DECLARATIONS)
                .and_then(|interface| component.get_export_index(Some(&interface), "declare"))
                .map(Function::new),
            pre,
        })
    }
}

impl Ready {
    /// A fresh instance that is not asked anything.
    pub(crate) fn instantiate(&self, serving: &Serving, limits: &Limits) -> Result<(), Failure> {
        let mut running = Running::begin(serving, limits, limits.budget(0, 0))?;
        let made = self.pre.instantiate(&mut running.store);
        made.map(|_| ()).map_err(|error| {
            of_error(&error, FailureKind::WrongWorld, running.store.data_mut().log.last())
        })
    }

    /// Whether all functions have the types of the contract. Instantiates it.
    pub(crate) fn check_types(&self, serving: &Serving, limits: &Limits) -> Result<(), Failure> {
        let mut running = Running::begin(serving, limits, limits.budget(0, 0))?;
        let store = &mut running.store;
        let checked = self.pre.instantiate(&mut *store).and_then(|instance| {
            self.describe.of(store, instance)?;
            self.check_settings.of(store, instance)?;
            if let Some(declare) = &self.declare {
                declare.of(store, instance)?;
            }
            self.classify.of(store, instance)?;
            Ok(())
        });
        checked.map_err(|error| {
            of_error(&error, FailureKind::WrongWorld, running.store.data_mut().log.last())
        })
    }
}

/// Room for one instance, and a clock. Fields are dropped in their order: the
/// store gives its memory back before the slot is free.
struct Running<'s> {
    store: Store<Guest>,
    _ticking: Ticking<'s>,
    _slot: Slot<'s>,
}

impl Running<'_> {
    fn begin<'s>(
        serving: &'s Serving,
        limits: &Limits,
        budget: Budget,
    ) -> Result<Running<'s>, Failure> {
        let slot = serving.slots.take(limits.budget(0, 0).time.wall.saturating_mul(PATIENCE));
        let slot = slot.ok_or_else(|| no_room("too many policies run at the same time"))?;
        let ticking = serving
            .ticker
            .begin(&serving.engine)
            .map_err(|error| no_room(format!("no clock can be started: {error}")))?;
        let guest = Guest { limiter: Limiter::new(limits), log: GuestLog::new(limits) };
        let mut store = Store::new(&serving.engine, guest);
        store.limiter(|guest| &mut guest.limiter);
        store.set_fuel(budget.fuel).map_err(|error| no_room(format!("{error:#}")))?;
        end_in_time(&mut store, budget.time);
        store.set_hostcall_fuel(budget.output_bytes);
        Ok(Running { store, _ticking: ticking, _slot: slot })
    }
}

/// Ends the call when it has taken its time: the clocks of this thread are looked at
/// each time the call could have reached a limit. Most calls end before the first tick. So the kernel
/// is asked only then for the processor time of this thread, which counts from there on.
fn end_in_time(store: &mut Store<Guest>, time: Time) {
    let began = Instant::now();
    let mut watch = None;
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(move |_| {
        let watch = watch.get_or_insert_with(|| Stopwatch::since(began));
        Ok(UpdateDeadline::Continue(ticks(time.left(watch.taken())?)))
    });
}

/// What a call came to.
#[derive(Debug)]
pub(crate) struct Done<T> {
    pub(crate) value: T,
    pub(crate) spent: Spent,
    pub(crate) log: Vec<String>,
}

impl<T> Done<T> {
    /// Checks the value, which may break a rule of the contract.
    pub(crate) fn and_then<U>(
        self,
        check: impl FnOnce(T) -> Result<U, Failure>,
    ) -> Result<Done<U>, CallFailure> {
        let Done { value, spent, log } = self;
        match check(value) {
            Ok(value) => Ok(Done { value, spent, log }),
            Err(failure) => {
                Err(CallFailure { failure, spent: Some(spent), log, reproducible: true })
            }
        }
    }
}

/// Calls one function of a fresh instance.
pub(crate) fn call<S: Signature>(
    serving: &Serving,
    limits: &Limits,
    ready: &Ready,
    function: &Function<S>,
    params: S::Params<'_>,
    budget: Budget,
) -> Result<Done<S::Value>, CallFailure>
where
    (S::Value,): ComponentNamedList + Lift,
{
    let mut running = Running::begin(serving, limits, budget)
        .map_err(|failure| CallFailure::new(failure, Spent::default(), Vec::new()))?;
    let result = invoke(&mut running.store, ready, function, params);
    let fuel = budget.fuel.saturating_sub(running.store.get_fuel().unwrap_or(0));
    let spent = Spent { fuel, memory: running.store.data().limiter.memory_taken() };
    let mut log = std::mem::take(&mut running.store.data_mut().log);
    match result {
        Ok(value) => Ok(Done { value, spent, log: log.into_lines() }),
        Err((error, otherwise)) => {
            let failure = of_error(&error, otherwise, log.last());
            Err(CallFailure::new(failure, spent, log.into_lines()))
        }
    }
}

/// The value; or an error, and the kind of failure that it is if it is no trap.
fn invoke<S: Signature>(
    store: &mut Store<Guest>,
    ready: &Ready,
    function: &Function<S>,
    params: S::Params<'_>,
) -> Result<S::Value, (wasmtime::Error, FailureKind)>
where
    (S::Value,): ComponentNamedList + Lift,
{
    let wrong_world = |error| (error, FailureKind::WrongWorld);
    let instance = ready.pre.instantiate(&mut *store).map_err(wrong_world)?;
    let function = function.of(store, instance).map_err(wrong_world)?;
    let (value,) = function.call(store, params).map_err(|error| (error, FailureKind::BadOutput))?;
    Ok(value)
}
