//! What a policy costs before it decides anything: for its author.

use super::{Module, Sandbox};
use crate::call::call;
use crate::question::Spent;
use tread_model::verdict::Failure;

impl Sandbox {
    /// What the least call uses: a fresh instance says what it is. `classify`
    /// is not run.
    pub fn empty_call(&self, module: &Module) -> Result<Spent, Failure> {
        let loaded = &*module.0;
        let (serving, ready, limits) = (&loaded.serving, &loaded.ready, self.limits());
        let budget = limits.budget(0, 0);
        let done = call(serving, limits, ready, &ready.describe, (), budget)
            .map_err(|failed| failed.failure)?;
        Ok(done.spent)
    }

    /// Makes a fresh instance and gives it back, without asking it anything:
    /// the part of each call that does not depend on the question.
    pub fn instantiate(&self, module: &Module) -> Result<(), Failure> {
        module.0.ready.instantiate(&module.0.serving, self.limits())
    }
}
