//! The cache of compiled policies: it saves time, and is never needed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::*;
use tread_engine::limits::Limits;
use tread_engine::policy::{Policy, Wishes, compile_ahead};
use tread_engine::sandbox::{Options, Sandbox};
use tread_model::digest::Sha256;
use tread_model::verdict::{FailureKind, Layer};

fn with_cache(dir: &Path, limits: Limits) -> Sandbox {
    let cache_dir = Some(dir.to_owned());
    Sandbox::new(Options { cache_dir, limits, slots: 1, ..Options::default() }).unwrap()
}

/// Nothing can be compiled with it: what loads was cached.
fn only_cached() -> Limits {
    Limits { compile_time: Duration::ZERO, ..Limits::default() }
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn what_was_verified_once_is_loaded_without_the_compiler() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    let component = Guest::default().component();
    // The limits are part of the key: both sandboxes have the same.
    let sandbox = with_cache(&cache, Limits::default());
    sandbox.load(&component, None).unwrap();
    let [entry] = &entries(&cache)[..] else { panic!("one entry") };
    let written = std::fs::read(entry).unwrap();
    let again = with_cache(&cache, Limits::default());
    let module = again.load(&component, None).unwrap();
    assert!(ask(&again, &module).is_ok());
    assert_eq!(std::fs::read(entry).unwrap(), written);
}

#[test]
fn what_was_compiled_ahead_does_not_wait_any_more_where_it_was_loaded_from_the_cache() {
    let dir = tempfile::tempdir().unwrap();
    let cache_dir = Some(dir.path().join("cache"));
    let with = |code_bytes| {
        let cache_dir = cache_dir.clone();
        Sandbox::new(Options { cache_dir, slots: 1, code_bytes, ..Options::default() }).unwrap()
    };
    // Once anything waits to be loaded, nothing else is compiled ahead.
    let (sandbox, other) = (with(1), with(usize::MAX));
    let components = [2, 3, 4, 5].map(|pages| Guest { pages, ..Guest::default() }.component());
    let policies = components.clone().map(|component| {
        let (wishes, limits) = (Wishes::default(), Limits::default());
        Policy::new(component.into(), None, Layer::Template, wishes, &limits).unwrap()
    });
    let (first, then) = policies.split_at(2);
    assert!(!compile_ahead(first, &sandbox).is_empty());
    assert!(compile_ahead(then, &sandbox).is_empty());
    for component in components.iter().take(2) {
        // Another program loads it first, and writes it into the cache.
        other.load(component, None).unwrap();
        sandbox.load_own(component, Sha256::of(component)).unwrap();
    }
    assert!(!compile_ahead(then, &sandbox).is_empty());
}

#[test]
fn other_limits_verify_again() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    let component = Guest::default().component();
    with_cache(&cache, Limits::default()).load(&component, None).unwrap();
    let failure = with_cache(&cache, only_cached()).load(&component, None).unwrap_err();
    assert_eq!(failure.kind, FailureKind::CompileTimeout);
    let small = Limits { memory_bytes: 65536, ..Limits::default() };
    let failure = with_cache(&cache, small).load(&component, None).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Memory);
}

#[test]
fn what_failed_is_not_cached() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    let sandbox = with_cache(&cache, Limits::default());
    let missing = Guest { section: None, ..Guest::default() }.component();
    for _ in 0..2 {
        let failure = sandbox.load(&missing, None).unwrap_err();
        assert_eq!(failure.kind, FailureKind::BadDescription);
    }
    assert_eq!(entries(&cache).len(), 0);
}

#[test]
fn a_damaged_entry_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    let component = Guest::default().component();
    let sandbox = with_cache(&cache, Limits::default());
    sandbox.load(&component, None).unwrap();
    let [entry] = &entries(&cache)[..] else { panic!("one entry") };
    let good = std::fs::read(entry).unwrap();
    let regions = 24;
    for region in 0..=regions {
        let at = (good.len() - 1) * region / regions;
        let mut flipped = good.clone();
        flipped[at] ^= 0x40;
        for damaged in [&flipped[..], &good[..at]] {
            std::fs::write(entry, damaged).unwrap();
            let module = sandbox.load(&component, None).unwrap();
            assert!(ask(&sandbox, &module).is_ok());
            let now = std::fs::read(entry).unwrap();
            assert_ne!(now, damaged, "the entry is written again");
        }
    }
}

#[test]
fn an_entry_of_another_program_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    let sandbox = with_cache(&cache, Limits::default());
    let (one, two) = (Guest::default(), classifying("(unreachable)"));
    sandbox.load(&one.component(), None).unwrap();
    let [first] = &entries(&cache)[..] else { panic!("one entry") };
    sandbox.load(&two.component(), None).unwrap();
    let second = entries(&cache).into_iter().find(|entry| entry != first).unwrap();
    // The one under the other's name is whole, but not what was asked for.
    std::fs::copy(&second, first).unwrap();
    let module = sandbox.load(&one.component(), None).unwrap();
    assert!(ask(&sandbox, &module).is_ok());
}

#[test]
fn a_directory_that_cannot_be_used_is_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let open = dir.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o755)).unwrap();
    for path in [&file, &file.join("below"), &open, Path::new("/proc/none"), Path::new("")] {
        let sandbox = with_cache(path, Limits::default());
        still_serves(&sandbox);
    }
    assert_eq!(entries(&open).len(), 0);
}
