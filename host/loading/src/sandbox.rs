//! The sandbox of this process, and the process that compiles for it.

use anyhow::{Context as _, Result};
use std::path::PathBuf;
use tread_engine::compile::{self, Compiler};
use tread_engine::limits::Limits;
use tread_engine::sandbox::{Options, Sandbox};

/// The command of this program that compiles a module.
pub const COMPILE_MODULE: &str = "compile-module";

/// The sandbox, with its compiled modules kept where the user keeps caches.
pub fn for_one(limits: Limits) -> Result<Sandbox> {
    sandbox_in(cache_dir(), limits, 1)
}

/// A sandbox for many who ask at the same time.
pub fn for_many(limits: Limits, slots: u32) -> Result<Sandbox> {
    sandbox_in(cache_dir(), limits, slots)
}

/// A sandbox that compiles each module anew.
pub fn without_cache(limits: Limits) -> Result<Sandbox> {
    sandbox_in(None, limits, 1)
}

fn sandbox_in(cache_dir: Option<PathBuf>, limits: Limits, slots: u32) -> Result<Sandbox> {
    // A hostile module may take long to compile, and much memory: it gets a
    // process of its own, which can be killed.
    let compiler = match std::env::current_exe() {
        Ok(program) => Compiler::Child { program, args: vec![COMPILE_MODULE.into()] },
        Err(_) => Compiler::InProcess,
    };
    let options = Options { cache_dir, limits, slots, compiler, ..Options::default() };
    Sandbox::new(options).context("cannot set up the sandbox")
}

fn cache_dir() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    set("TREAD_CACHE_DIR").map(PathBuf::from).or_else(|| {
        let base = set("XDG_CACHE_HOME").map(PathBuf::from);
        let base = base.or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".cache")))?;
        Some(base.join("tread"))
    })
}

/// The other side of compiling in a process of its own.
pub fn compile_module() -> Result<()> {
    compile::serve(&Limits::default())
}
