//! Compiling components side by side, before they are loaded one after another.

use super::Sandbox;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tread_model::digest::Sha256;

impl Sandbox {
    /// Compiles components that are about to be loaded, as many at a time as there are
    /// cores, so that several that compile too long do not add up. Says how long each took.
    ///
    /// Loading each of them finds what came of it, in the order in which they are loaded:
    /// which of them find no room does not depend on which was compiled first.
    pub(crate) fn compile_ahead(
        &self,
        mut components: Vec<(Sha256, &[u8])>,
    ) -> Vec<(Sha256, Duration)> {
        let Ok(serving) = self.serving() else { return Vec::new() };
        components.sort_by_key(|(digest, _)| *digest);
        components.dedup_by_key(|(digest, _)| *digest);
        let is_cached =
            |digest: &Sha256| self.cache().is_some_and(|cache| cache.has(digest, &serving.key));
        components.retain(|(digest, _)| !is_cached(digest));
        // One alone is compiled where it is loaded.
        if components.len() < 2 {
            return Vec::new();
        }
        let (next, took) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let compile = || {
            // More than there is room for is not held.
            while !self.0.ahead.is_over(self.0.options.code_bytes) {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some((digest, component)) = components.get(index) else { break };
                let begun = Instant::now();
                let compiled = self.compile(&self.0.options.compiler, serving, component);
                self.0.ahead.put(*digest, compiled);
                let mut took = took.lock().unwrap_or_else(PoisonError::into_inner);
                took.push((*digest, begun.elapsed()));
            }
        };
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        thread::scope(|scope| {
            for _ in 1..cores.min(components.len()) {
                // One that cannot be started is missed by nobody.
                let _ = thread::Builder::new().spawn_scoped(scope, compile);
            }
            compile();
        });
        took.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
