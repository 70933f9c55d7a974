//! The power fails: whatever was not synced may be on the disk, or not.

use super::disk::{self, Bed, Recorded, Recorder};
use super::{Journal, bed, beside, both_states, settle, write, write_ready};
use crate::tree::{Syscall, Witness};
use proptest::prelude::*;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::sync::Arc;

/// The folder that a path stands in.
fn folder(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((folder, _)) => folder,
    }
}

/// Whether something that was done is on the disk for certain, by what was synced after
/// it.
fn is_certain(done: &Recorded, after: &[Recorded]) -> bool {
    let synced = |path: &str| after.contains(&Recorded::SyncFolder(folder(path).to_owned()));
    match done {
        Recorded::Create(path, _)
        | Recorded::Symlink(path, _)
        | Recorded::Remove(path)
        | Recorded::MakeFolder(path)
        | Recorded::RemoveFolder(path)
        | Recorded::Link(_, path) => synced(path),
        Recorded::Append(path, _) => after.contains(&Recorded::Sync(path.clone())),
        // One change of a file system's own journal: both names, or none.
        Recorded::Exchange(one, other) | Recorded::Move(one, other) => synced(one) || synced(other),
        Recorded::Sync(_) | Recorded::SyncFolder(_) => true,
    }
}

/// Does what was done again. What it needs may be lost: then it is lost too.
fn redo(bed: &Bed, done: &Recorded, contents_are_certain: bool) {
    let at = |path: &String| bed.path(path);
    let _ = match done {
        Recorded::Create(path, bytes) => {
            let bytes: &[u8] = if contents_are_certain { bytes } else { b"" };
            fs::write(at(path), bytes)
        }
        Recorded::Append(path, bytes) => {
            let there = fs::read(at(path)).unwrap_or_default();
            fs::write(at(path), [there.as_slice(), bytes].concat())
        }
        Recorded::Link(from, to) => fs::hard_link(at(from), at(to)),
        Recorded::Exchange(one, other) => {
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            let cwd = rustix::fs::CWD;
            rustix::fs::renameat_with(cwd, at(one), cwd, at(other), flags).map_err(Into::into)
        }
        Recorded::Move(from, to) => fs::rename(at(from), at(to)),
        Recorded::Symlink(path, target) => symlink(target, at(path)),
        Recorded::Remove(path) => fs::remove_file(at(path)),
        Recorded::MakeFolder(path) => fs::create_dir(at(path)),
        Recorded::RemoveFolder(path) => fs::remove_dir(at(path)),
        Recorded::Sync(_) | Recorded::SyncFolder(_) => Ok(()),
    };
}

/// What is on the disk when the power fails after so much was done, where chance decides
/// on each thing that was not synced, from a certain one on.
fn replayed(done: &[Recorded], from: usize, mut is_lost: impl FnMut() -> bool) -> Bed {
    let bed = bed();
    for (index, one) in done.iter().enumerate() {
        let after = &done[index + 1..];
        if index >= from && !is_certain(one, after) && is_lost() {
            continue;
        }
        let contents_are_certain = match one {
            Recorded::Create(path, _) => {
                index < from || after.contains(&Recorded::Sync(path.clone())) || !is_lost()
            }
            _ => true,
        };
        redo(&bed, one, contents_are_certain);
    }
    bed
}

fn recorded() -> Vec<Recorded> {
    let recorder = Arc::new(Recorder::default());
    assert!(write(&bed(), recorder.clone()));
    recorder.all()
}

#[test]
fn when_the_power_fails_the_old_or_the_new_state_comes_back_whatever_was_not_synced() {
    let (old, new) = both_states();
    let done = recorded();
    let committed = done.iter().rposition(|it| matches!(it, Recorded::Sync(_))).unwrap();
    let cases = std::env::var("TREAD_POWER_CUTS").ok().and_then(|it| it.parse().ok());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: cases.unwrap_or(2_000),
        ..ProptestConfig::default()
    });
    // More cuts where names change and the commit is written, which is where it matters.
    let at = prop_oneof![0..=done.len(), done.len() - 30..=done.len()];
    runner
        .run(&(at, proptest::collection::vec(any::<bool>(), 200)), |(at, chances)| {
            let mut chances = chances.into_iter().cycle();
            let bed = replayed(&done[..at], 0, || chances.next().unwrap());
            settle(&bed);
            let found = bed.snapshot();
            let differs = || disk::difference(&old, &new, &found);
            prop_assert!(found == old || found == new, "at {}: {}", at, differs());
            prop_assert!(at <= committed || found == new, "at {}: a commit was lost", at);
            Ok(())
        })
        .unwrap();
}

#[test]
fn when_the_power_fails_at_the_end_of_an_operation_it_is_not_taken_back() {
    let (_, new) = both_states();
    let recorder = Arc::new(Recorder::default());
    let bed = bed();
    assert!(write(&bed, recorder.clone()));
    let committed = recorder.all().len();
    Journal::open(&bed.witnessed(recorder.clone())).unwrap().finish().unwrap();
    let done = recorder.all();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 500,
        ..ProptestConfig::default()
    });
    let chances = proptest::collection::vec(any::<bool>(), 200);
    runner
        .run(&(committed..=done.len(), chances), |(at, chances)| {
            let mut chances = chances.into_iter().cycle();
            let bed = replayed(&done[..at], committed, || chances.next().unwrap());
            settle(&bed);
            let found = bed.snapshot();
            prop_assert!(found == new, "at {}: {}", at, disk::difference(&new, &new, &found));
            Ok(())
        })
        .unwrap();
}

#[test]
fn when_the_power_fails_during_the_next_one_what_waits_for_a_boot_stands_again_or_goes_along() {
    let (_, waits) = both_states();
    let recorder = Arc::new(Recorder::default());
    let bed = beside::waiting_with(recorder.clone());
    let before = recorder.all().len();
    assert!(write_ready(&bed, &beside::next(&bed), recorder.clone()));
    let (new, done) = (bed.snapshot(), recorder.all());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 1_000,
        ..ProptestConfig::default()
    });
    let chances = proptest::collection::vec(any::<bool>(), 200);
    runner
        .run(&(before..=done.len(), chances), |(at, chances)| {
            let mut chances = chances.into_iter().cycle();
            let bed = replayed(&done[..at], before, || chances.next().unwrap());
            let is_next = beside::stands(&bed).record.id == "2";
            let (there, found) = (if is_next { &new } else { &waits }, bed.snapshot());
            let differs = || disk::difference(&waits, &new, &found);
            prop_assert!(found == *there, "at {}, next: {}: {}", at, is_next, differs());
            Ok(())
        })
        .unwrap();
}

/// Whether something comes in its order with what follows from it: all that it touches is in tread's own
/// stage or in a folder that goes, or it is such a folder.
fn comes_in_order(done: &Recorded) -> bool {
    let going = ["/etc/deep/", "/etc/systemd/system/multi-user.target.wants/"];
    let is_there =
        |path: &String| path.contains("/.tread-") || going.iter().any(|it| path.starts_with(it));
    match done {
        Recorded::Link(_, path) | Recorded::Remove(path) => is_there(path),
        Recorded::Exchange(one, other) | Recorded::Move(one, other) => {
            is_there(one) && is_there(other)
        }
        Recorded::RemoveFolder(_) => true,
        _ => false,
    }
}

/// Writes down what is done until so much was; then the process is killed.
struct Until(Arc<Recorder>, usize);

impl Witness for Until {
    fn before(&self, _: &Syscall<'_>) -> io::Result<()> {
        match self.0.all().len() < self.1 {
            true => Ok(()),
            false => Err(io::Error::other("killed")),
        }
    }

    fn after(&self, syscall: &Syscall<'_>) -> io::Result<()> {
        self.0.after(syscall)
    }
}

#[test]
fn what_a_settler_put_back_before_it_was_killed_is_on_the_disk_once_the_operation_is_forgotten() {
    let (old, _) = both_states();
    let done = recorded();
    let committed = done.iter().rposition(|it| matches!(it, Recorded::Append(..))).unwrap();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 500,
        ..ProptestConfig::default()
    });
    let chances = proptest::collection::vec(any::<bool>(), 200);
    runner
        .run(&(committed - 30..committed, 1..20_usize, chances), |(at, more, chances)| {
            let (bed, recorder) = (bed(), Arc::new(Recorder::default()));
            assert!(!write(&bed, Arc::new(Until(recorder.clone(), at))));
            let killed = Arc::new(Until(recorder.clone(), recorder.all().len() + more));
            let _ = Journal::open(&bed.witnessed(killed)).unwrap().settle();
            Journal::open(&bed.witnessed(recorder.clone())).unwrap().settle().unwrap();
            let mut chances = chances.into_iter().cycle();
            let done = recorder.all();
            let bed = self::bed();
            for (index, one) in done.iter().enumerate() {
                let is_certain = comes_in_order(one) || is_certain(one, &done[index + 1..]);
                if is_certain || !chances.next().unwrap() {
                    redo(&bed, one, true);
                }
            }
            settle(&bed);
            let found = bed.snapshot();
            prop_assert!(found == old, "at {}: {}", at, disk::difference(&old, &old, &found));
            Ok(())
        })
        .unwrap();
}
