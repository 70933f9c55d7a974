//! The cache of compiled policies never harms: at worst it is as if it were
//! empty.

use crate::configs::{core_user, files};
use crate::schema::checked;
use crate::support::{Bench, Ran, run};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// Plans something that a policy decides, with this cache.
fn plan(bench: &Bench, cache: &Path) -> Ran {
    let mut command = bench.command(&["plan", "old.json", "new.json", "-o", "json"]);
    command.env("TREAD_CACHE_DIR", cache);
    run(command, b"")
}

/// A bench with a change, and what its plan has to be.
fn prepared() -> (Bench, String) {
    let bench = Bench::new();
    let plan = bench.plan(files(&[]), core_user(&["ssh-ed25519 AAAA"], None), &["-o", "json"]);
    let plan = checked(&plan);
    assert_eq!(plan["changes"][0]["outcome"], "decided", "{plan:#}");
    (bench, plan["digest"].as_str().unwrap().to_owned())
}

#[track_caller]
fn assert_same(ran: &Ran, digest: &str, what: &str) {
    assert_eq!(ran.code(), 0, "{what}: {}", ran.err());
    assert_eq!(checked(ran)["digest"], *digest, "{what}");
}

fn entries(cache: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> =
        fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

#[test]
fn what_was_compiled_is_kept_and_used_again() {
    let (bench, digest) = prepared();
    let cache = bench.dir.path().join("deep/cache");
    assert_same(&plan(&bench, &cache), &digest, "cold");
    let kept = entries(&cache);
    assert_eq!(kept.len(), 1, "only what the change needs: {kept:?}");
    let written = fs::metadata(&kept[0]).unwrap().modified().unwrap();
    assert_same(&plan(&bench, &cache), &digest, "warm");
    assert_eq!(entries(&cache), kept);
    assert_eq!(fs::metadata(&kept[0]).unwrap().modified().unwrap(), written, "not written again");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&cache), mode(&kept[0])), (0o700, 0o600), "this user's only");
}

#[test]
fn a_cache_that_cannot_be_used_is_not_and_says_so() {
    let (bench, digest) = prepared();
    let dir = bench.dir.path();
    fs::write(dir.join("file"), "garbage").unwrap();
    fs::create_dir(dir.join("open")).unwrap();
    fs::set_permissions(dir.join("open"), fs::Permissions::from_mode(0o777)).unwrap();
    fs::create_dir(dir.join("real")).unwrap();
    symlink(dir.join("real"), dir.join("link")).unwrap();
    for (cache, what) in [
        (dir.join("file"), "a file"),
        (dir.join("file/below"), "below a file"),
        (PathBuf::from("/proc/no/such"), "where nothing can be made"),
        (dir.join("open"), "open to all"),
        (dir.join("link"), "a link"),
        (foreign(dir), "of another user"),
    ] {
        let ran = plan(&bench, &cache);
        assert_same(&ran, &digest, what);
        assert!(ran.err().contains(cache.to_str().unwrap()), "{what}: {}", ran.err());
        assert!(ran.err().contains("compiled anew each time"), "{what}: {}", ran.err());
    }
    assert_eq!(entries(&dir.join("open")).len() + entries(&dir.join("real")).len(), 0);
}

/// A directory of another user: root can give one away, and to anybody else
/// the root directory is one.
fn foreign(dir: &Path) -> PathBuf {
    let given = dir.join("foreign");
    fs::create_dir(&given).unwrap();
    fs::set_permissions(&given, fs::Permissions::from_mode(0o700)).unwrap();
    match std::os::unix::fs::chown(&given, Some(4711), Some(4711)) {
        Ok(()) => given,
        Err(_) => PathBuf::from("/"),
    }
}

#[test]
fn a_spoiled_entry_is_compiled_again() {
    let (bench, digest) = prepared();
    let cache = bench.dir.path().join("cache");
    assert_same(&plan(&bench, &cache), &digest, "cold");
    let [entry] = entries(&cache).try_into().unwrap();
    let good = fs::read(&entry).unwrap();
    let other = [&good[..good.len() / 2], b"x", &good[good.len() / 2 + 1..]].concat();
    for (bytes, what) in [
        (Vec::new(), "empty"),
        (b"garbage".to_vec(), "garbage"),
        (good[..good.len() - 1].to_vec(), "cut"),
        (good[1..].to_vec(), "shifted"),
        (other, "one byte"),
        ([&good[..], &good].concat(), "twice"),
    ] {
        fs::write(&entry, &bytes).unwrap();
        let ran = plan(&bench, &cache);
        assert_same(&ran, &digest, what);
        assert_eq!(ran.err(), "", "{what}");
        assert_eq!(fs::read(&entry).unwrap(), good, "{what}: mended");
    }
    let elsewhere = bench.dir.path().join("elsewhere");
    fs::rename(&entry, &elsewhere).unwrap();
    symlink(&elsewhere, &entry).unwrap();
    assert_same(&plan(&bench, &cache), &digest, "a link");
    fs::remove_file(&entry).unwrap();
    fs::create_dir(&entry).unwrap();
    fs::write(entry.join("x"), "x").unwrap();
    assert_same(&plan(&bench, &cache), &digest, "a directory");
}

#[test]
fn the_cache_is_where_users_keep_caches_and_none_is_needed() {
    let (bench, digest) = prepared();
    let dir = bench.dir.path();
    let with = |variables: &[(&str, PathBuf)]| {
        let mut command = bench.command(&["plan", "old.json", "new.json", "-o", "json"]);
        for name in ["TREAD_CACHE_DIR", "XDG_CACHE_HOME", "HOME"] {
            command.env_remove(name);
        }
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        run(command, b"")
    };
    assert_same(&with(&[]), &digest, "none");
    assert_same(&with(&[("HOME", dir.join("home"))]), &digest, "HOME");
    assert_eq!(entries(&dir.join("home/.cache/tread")).len(), 1);
    let both = [("HOME", dir.join("other")), ("XDG_CACHE_HOME", dir.join("xdg"))];
    assert_same(&with(&both), &digest, "XDG_CACHE_HOME");
    assert_eq!(entries(&dir.join("xdg/tread")).len(), 1);
    assert!(!dir.join("other").exists());
}
