//! The engine that runs policies.

use crate::guest_log::GuestLog;
use crate::limits::{Limiter, Limits};
use crate::slots::Slots;
use crate::ticker::Ticker;
use crate::v1;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use tread_model::digest::{Digest, Fields};
use wasmtime::component::{Linker, WasmStr};
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, StoreContextMut,
};

/// Where instances get their memory from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocator {
    /// From a pool that is reserved once: quick.
    Pooling,
    /// From the system, for each call anew: for hosts that do not grant the
    /// pool's address space.
    OnDemand,
}

/// What the host keeps of a running instance.
pub(crate) struct Guest {
    pub(crate) limiter: Limiter,
    pub(crate) log: GuestLog,
}

/// The engine that runs policies, and what belongs to it.
pub(crate) struct Serving {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<Guest>,
    pub(crate) allocator: Allocator,
    pub(crate) slots: Slots,
    pub(crate) ticker: Ticker,
    /// What compiled code has to fit.
    pub(crate) key: Digest,
}

/// What linear memory keeps of its pages between two calls: the data and the
/// heap of a small policy.
const MEMORY_KEPT: usize = 16 << 20;
/// The same where there is memory for many policies, so that hostile ones together do not
/// keep more.
const MEMORY_KEPT_OF_MANY: usize = 2 << 20;
const TABLE_KEPT: usize = 64 << 10;

/// A charge for each line of a log, which is work for the host.
const LOG_FUEL: u64 = 1_000;

/// The same for each character that is written by itself.
const CHARACTER_FUEL: u64 = 100;

/// The address space of a memory where there is no pool.
const ON_DEMAND_RESERVATION: u64 = 64 << 20;
const ON_DEMAND_GUARD: u64 = 64 << 10;

/// Raised when compiled code changes although wasmtime's own version and
/// settings do not, and when loading begins to check more than before.
const REVISION: &str = "tread compiled policy 1";

/// What compiling and serving have to agree on. Anything that would make a
/// result depend on the machine is off.
pub(crate) fn shared_config(allocator: Allocator) -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .wasm_features(wasmtime::WasmFeatures::THREADS, false)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .wasm_custom_page_sizes(false)
        // Nobody reads a backtrace: a policy's panic text goes through its log.
        .wasm_backtrace_max_frames(None)
        .generate_address_map(false)
        .native_unwind_info(false);
    if allocator == Allocator::OnDemand {
        config
            .memory_reservation(ON_DEMAND_RESERVATION)
            .memory_reservation_for_growth(0)
            .memory_guard_size(ON_DEMAND_GUARD);
    }
    config
}

impl Serving {
    pub(crate) fn new(limits: &Limits, slots: u32) -> wasmtime::Result<Serving> {
        match Serving::with(Allocator::Pooling, limits, slots) {
            Ok(serving) => Ok(serving),
            Err(error) => {
                tracing::warn!(
                    "policies run slower: the memory for them cannot be reserved in advance \
                     ({error:#}). Is the address space of this process limited (ulimit -v)?"
                );
                Serving::with(Allocator::OnDemand, limits, slots)
            }
        }
    }

    fn with(allocator: Allocator, limits: &Limits, slots: u32) -> wasmtime::Result<Serving> {
        let mut config = shared_config(allocator);
        config.enable_compiler(false).max_wasm_stack(limits.stack_bytes);
        if allocator == Allocator::Pooling {
            config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(limits, slots)));
        }
        let engine = Engine::new(&config)?;
        let mut linker = Linker::new(&engine);
        linker.instance(v1::HOST)?.func_wrap("log", log)?;
        linker.instance(v1::CHARACTERS)?.func_wrap("put", put)?;
        let key = key(&engine, limits);
        let (slots, ticker) = (Slots::new(slots), Ticker::default());
        Ok(Serving { engine, linker, allocator, slots, ticker, key })
    }
}

/// So many modules may be dropped at the same time while all slots are taken.
const ROOM_FOR_CLEARING: u32 = 16;

/// How many memories there are where several policies run at a time. A policy that gets the same
/// memory for each call is asked twice as fast as one that gets another policy's, which has to be
/// mapped anew. From 128 on the pool is divided among threads, and a policy has memory in none or
/// in several of the parts.
const MEMORIES_OF_MANY: u32 = 127;

fn pool(limits: &Limits, slots: u32) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    let (memories, kept) = match slots {
        0 | 1 => (0, MEMORY_KEPT),
        _ => (MEMORIES_OF_MANY, MEMORY_KEPT_OF_MANY),
    };
    // The slots say how many may run. Whoever drops a module borrows room for a
    // moment too, one after another, to clear what was kept for it.
    let slots = slots.saturating_add(ROOM_FOR_CLEARING).max(memories);
    pool.max_unused_warm_slots(slots);
    pool.total_component_instances(slots)
        .total_core_instances(slots.saturating_mul(limits.core_instances))
        .max_core_instances_per_component(limits.core_instances)
        .total_memories(slots)
        .max_memories_per_component(1)
        .max_memories_per_module(1)
        .max_memory_size(limits.memory_bytes)
        .total_tables(slots.saturating_mul(limits.tables))
        .max_tables_per_component(limits.tables)
        .max_tables_per_module(limits.tables)
        .table_elements(limits.table_elements)
        .linear_memory_keep_resident(kept)
        .table_keep_resident(TABLE_KEPT)
        // With it, a page that one call wrote could be seen by the next one.
        .pagemap_scan(Enabled::No);
    pool
}

/// What a policy can import: a line for its author.
fn log(mut store: StoreContextMut<'_, Guest>, (line,): (WasmStr,)) -> wasmtime::Result<()> {
    charge(&mut store, LOG_FUEL)?;
    if store.data().log.is_full() {
        store.data_mut().log.drop_line();
        return Ok(());
    }
    let line = line.to_str(&store)?.into_owned();
    store.data_mut().log.push(&line);
    Ok(())
}

/// What a policy can import in its place: a character of a line.
fn put(mut store: StoreContextMut<'_, Guest>, (character,): (char,)) -> wasmtime::Result<()> {
    charge(&mut store, CHARACTER_FUEL)?;
    store.data_mut().log.put(character);
    Ok(())
}

fn charge(store: &mut StoreContextMut<'_, Guest>, fuel: u64) -> wasmtime::Result<()> {
    let left = store.get_fuel()?;
    store.set_fuel(left.saturating_sub(fuel))
}

/// Compiled code of another wasmtime, or of other settings, has another key;
/// limits are part of it, because loading holds a policy to them once.
fn key(engine: &Engine, limits: &Limits) -> Digest {
    let mut settings = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut settings);
    let mut key = Fields::new(REVISION);
    key.field(env!("CARGO_PKG_VERSION").as_bytes());
    key.field(v1::VERSIONS.as_bytes());
    key.number(settings.finish());
    key.field(format!("{limits:?}").as_bytes());
    key.finish()
}
