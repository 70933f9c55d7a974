//! What a policy may use.

use crate::clock::Time;
use std::time::Duration;
use wasmtime::ResourceLimiter;

/// How many units a policy may name in all texts that it had before, if it names one after it was
/// offered a secret: with thousands to choose from, the choice spells the secret. `invalid-unit`
pub(crate) const UNITS_BESIDE_SECRETS: usize = 16;

/// How many reloads and restarts a verdict may hold in such a call, for the same reason.
/// `invalid-unit`
pub(crate) const TOUCHES_BESIDE_SECRETS: usize = 4;

/// How many sentences of an author are known to a policy in such a call: those that it declares, and
/// those in its settings that no admin wrote. It may declare as many.
pub(crate) const REASONS_BESIDE_SECRETS: usize = 256;

/// What a policy may use. Reaching a limit is a failure with a name of its own.
///
/// What depends on the input grows with it, so that fuel always runs out
/// before the clock does: a result is the same on a fast and on a slow machine,
/// and, because the time of its own thread is what counts, on a busy one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The size of a component. `too-large`
    pub module_bytes: usize,
    /// The size of its description as JSON. `bad-description`
    pub description_bytes: usize,
    /// Processor time of compiling it. `compile-timeout`
    pub compile_time: Duration,
    /// The memory of the process that compiles it, where that is one of its own.
    /// `compile-failed`
    pub compile_memory: u64,
    /// Memory for compiling besides, for each byte of the component.
    pub compile_memory_per_byte: u64,
    /// All linear memory of an instance. `memory`
    pub memory_bytes: usize,
    /// Elements of each table. `memory`
    pub table_elements: usize,
    /// Tables of a component. `memory`
    pub tables: u32,
    /// Core instances of a component. `memory`
    pub core_instances: u32,
    /// Native stack. `stack`
    pub stack_bytes: usize,
    /// Fuel of a call: about one unit an instruction. `out-of-fuel`
    pub fuel: u64,
    /// Fuel for each offered byte on top.
    pub fuel_per_byte: u64,
    /// Processor time of a call. `deadline`
    pub deadline: Duration,
    /// Processor time for each offered MiB on top.
    pub deadline_per_mib: Duration,
    /// The wall clock of a call and of compiling, in multiples of the processor
    /// time that they may take. It only ends what hangs.
    pub patience: u32,
    /// What an answer may take in the host's memory. `bad-output`
    pub output_bytes: usize,
    /// Bytes of output besides, for each change that is offered.
    pub output_bytes_per_change: usize,
    /// Actions of a verdict. `bad-output`
    pub actions: usize,
    /// A reason is cut after this.
    pub reason_bytes: usize,
    /// Lines that are kept of what it logs in a call.
    pub log_lines: usize,
    /// Bytes that are kept of what it logs in a call.
    pub log_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            module_bytes: 8 << 20,
            description_bytes: 256 << 10,
            compile_time: Duration::from_secs(10),
            compile_memory: 64 << 20,
            compile_memory_per_byte: 128,
            memory_bytes: 32 << 20,
            table_elements: 16_384,
            tables: 4,
            core_instances: 16,
            stack_bytes: 512 << 10,
            fuel: 200_000_000,
            fuel_per_byte: 100,
            deadline: Duration::from_secs(1),
            deadline_per_mib: Duration::from_millis(500),
            patience: 10,
            output_bytes: 1 << 20,
            output_bytes_per_change: 1 << 10,
            actions: 64,
            reason_bytes: 512,
            log_lines: 16,
            log_bytes: 4 << 10,
        }
    }
}

/// What one call may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    pub(crate) fuel: u64,
    pub(crate) time: Time,
    pub(crate) output_bytes: usize,
}

impl Limits {
    /// How long compiling may take.
    pub(crate) fn time_to_compile(&self) -> Time {
        Time::new(self.compile_time, self.patience)
    }

    /// For compiling a component of so many bytes.
    pub(crate) fn memory_to_compile(&self, bytes: usize) -> u64 {
        let extra = self.compile_memory_per_byte.saturating_mul(bytes as u64);
        self.compile_memory.saturating_add(extra)
    }

    /// For a call that is offered so many bytes in so many changes.
    pub(crate) fn budget(&self, bytes: usize, changes: usize) -> Budget {
        let bytes = bytes as u64;
        let extra = self.deadline_per_mib.as_nanos().saturating_mul(u128::from(bytes)) >> 20;
        let extra = Duration::from_nanos(u64::try_from(extra).unwrap_or(u64::MAX));
        Budget {
            fuel: self.fuel.saturating_add(self.fuel_per_byte.saturating_mul(bytes)),
            time: Time::new(self.deadline.saturating_add(extra), self.patience),
            output_bytes: self
                .output_bytes
                .saturating_add(self.output_bytes_per_change.saturating_mul(changes)),
        }
    }
}

/// A component wanted more than it may have.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Exceeded(pub(crate) String);

/// Holds an instance to its memory and tables.
#[derive(Debug)]
pub(crate) struct Limiter {
    /// Of all memories together.
    memory_left: usize,
    memory_taken: usize,
    table_elements: usize,
    tables: usize,
    core_instances: usize,
}

impl Limiter {
    pub(crate) fn new(limits: &Limits) -> Limiter {
        Limiter {
            memory_left: limits.memory_bytes,
            memory_taken: 0,
            table_elements: limits.table_elements,
            tables: limits.tables as usize,
            core_instances: limits.core_instances as usize,
        }
    }

    /// The memory that it has. A memory never shrinks, so that this is its peak.
    pub(crate) fn memory_taken(&self) -> usize {
        self.memory_taken
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let wanted = desired.saturating_sub(current);
        match self.memory_left.checked_sub(wanted) {
            Some(left) => {
                self.memory_left = left;
                self.memory_taken = self.memory_taken.saturating_add(wanted);
                Ok(true)
            }
            // Not `Ok(false)`, which the guest would see, and answer with a
            // trap that looks like any other.
            None => Err(wasmtime::Error::new(Exceeded(format!(
                "it asked for {wanted} more bytes of memory, and {} are left",
                self.memory_left
            )))),
        }
    }

    fn table_growing(
        &mut self,
        _: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired > self.table_elements {
            return Err(wasmtime::Error::new(Exceeded(format!(
                "it asked for a table of {desired} elements, and {} are allowed",
                self.table_elements
            ))));
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.core_instances
    }

    fn tables(&self) -> usize {
        self.tables
    }

    fn memories(&self) -> usize {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_grows_with_what_is_offered_and_never_overflows() {
        let limits = Limits { fuel: 10, fuel_per_byte: 3, ..Limits::default() };
        assert_eq!(limits.budget(0, 0).fuel, 10);
        assert_eq!(limits.budget(5, 1).fuel, 25);
        assert_eq!(limits.budget(0, 0).time, Time::new(limits.deadline, limits.patience));
        let two = limits.budget(2 << 20, 3);
        assert_eq!(two.time.processor, limits.deadline + 2 * limits.deadline_per_mib);
        assert_eq!(two.time.wall, two.time.processor * 10);
        assert_eq!(two.output_bytes, limits.output_bytes + 3 * limits.output_bytes_per_change);
        assert_eq!(limits.budget(usize::MAX, usize::MAX).fuel, u64::MAX);
    }

    #[test]
    fn all_memories_share_one_limit() {
        let mut limiter = Limiter::new(&Limits { memory_bytes: 3 << 16, ..Limits::default() });
        assert!(limiter.memory_growing(0, 1 << 16, None).unwrap());
        assert!(limiter.memory_growing(0, 1 << 16, None).unwrap());
        assert!(limiter.memory_growing(1 << 16, 2 << 16, None).unwrap());
        assert_eq!(limiter.memory_taken(), 3 << 16);
        let error = limiter.memory_growing(2 << 16, 3 << 16, None).unwrap_err();
        assert!(error.downcast_ref::<Exceeded>().is_some());
        assert_eq!(limiter.memory_taken(), 3 << 16, "what was refused was not taken");
    }
}
