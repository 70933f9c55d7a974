//! What somebody else wrote while a name changed. An exchange gets out of its place whatever
//! stands there at that instant; where that is neither old nor new, it goes back, also if the
//! process was killed in between.

use super::names::{again_name, moving_name, new_name, old_name};
use crate::tree::{Folder, Stat};
use std::io;

/// Puts back what an exchange got out of a place, where this was put. If somebody wrote there
/// once more meanwhile, that comes out, and goes back in turn: what was written last stays.
pub(super) fn exchange_back(
    folder: &Folder,
    name: &str,
    stage: &Folder,
    moving: &str,
    mut put: Option<Stat>,
) -> io::Result<()> {
    loop {
        let back = stage.stat(moving)?;
        match stage.exchange(moving, folder, name) {
            // Somebody removed it, and did so last.
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            exchanged => exchanged?,
        }
        if stage.stat(moving)? == put {
            break;
        }
        put = back;
    }
    stage.remove(moving)
}

/// Puts back what was moved out of a place, unless somebody wrote there once more meanwhile.
pub(super) fn rename_back(
    folder: &Folder,
    name: &str,
    stage: &Folder,
    moving: &str,
) -> io::Result<()> {
    match stage.rename(moving, folder, name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => stage.remove(moving),
        renamed => renamed,
    }
}

/// Whether a stage holds what a process got out of a place that was killed before it had looked at
/// it. What is tread's own there is a second name of what is staged.
pub(super) fn is_there(stage: &Folder, index: usize) -> io::Result<bool> {
    match stage.stat(&moving_name(index))? {
        Some(out) => Ok(!is_own(stage, index, &out)?),
        None => Ok(false),
    }
}

fn is_own(stage: &Folder, index: usize, stat: &Stat) -> io::Result<bool> {
    for name in [new_name(index), old_name(index), again_name(index)] {
        if stage.stat(&name)?.is_some_and(|own| own.is_same_file(stat)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Puts back what is there of somebody else's. Whether it is in its place now: not where they wrote
/// once more, and did so last.
pub(super) fn put_back(
    folder: &Folder,
    name: &str,
    stage: &Folder,
    index: usize,
) -> io::Result<bool> {
    let moving = moving_name(index);
    let Some(out) = stage.stat(&moving)? else { return Ok(false) };
    match folder.stat(name)? {
        None => rename_back(folder, name, stage, &moving)?,
        Some(there) if is_own(stage, index, &there)? || out.is_later(&there) => {
            exchange_back(folder, name, stage, &moving, Some(there))?;
        }
        // It must not come back over what is put there later.
        Some(_) => {
            stage.remove(&moving)?;
            return Ok(false);
        }
    }
    Ok(true)
}
