//! The attributes that a file keeps when its contents change: its label, its access list, notes.

use super::entry::Entry;
use crate::tree::{Attribute, Folder, Found, Kind, Owner};
use std::io;

/// The attribute that lets users and groups in whom the mode does not name.
const ACCESS_LIST: &[u8] = b"system.posix_acl_access";

/// What the kernel and its policies set by themselves.
const OF_POLICIES: &[u8] = b"security.";

/// The attributes of a file that the one in its place gets, by the owners of both.
pub(crate) fn kept(
    folder: &Folder,
    name: &str,
    old: &Owner,
    new: &Found,
) -> io::Result<Vec<Attribute>> {
    let mut kept = folder.lasting_attributes(name)?;
    let keeps_owner = matches!(new, Found::File { owner: new, .. } if new == old);
    // Its entries were made for the owner and the mode that the file had.
    kept.retain(|attribute| keeps_owner || attribute.name != ACCESS_LIST);
    Ok(kept)
}

/// Gives a staged file the attributes that the file in whose place it goes has by now: it may have
/// been long since it was staged.
pub(super) fn renew(
    folder: &Folder,
    stage: &Folder,
    entry: &Entry,
    staged: &str,
) -> io::Result<()> {
    let Found::File { owner: old, .. } = &entry.old else { return Ok(()) };
    let Found::File { owner: new, .. } = &entry.new else { return Ok(()) };
    // Something else in its place is found where the names change.
    if folder.stat(&entry.name)?.map(|stat| stat.kind) != Some(Kind::File) {
        return Ok(());
    }
    let wanted = kept(folder, &entry.name, old, &entry.new)?;
    let there = stage.lasting_attributes(staged)?;
    let differ: Vec<Attribute> = wanted.iter().filter(|it| !there.contains(it)).cloned().collect();
    let is_to_go = |it: &&Attribute| {
        !it.name.starts_with(OF_POLICIES) && !wanted.iter().any(|other| other.name == it.name)
    };
    let gone: Vec<&[u8]> = there.iter().filter(is_to_go).map(|it| it.name.as_slice()).collect();
    if differ.is_empty() && gone.is_empty() {
        return Ok(());
    }
    stage.set_attributes(staged, *new, (&differ, &gone))?;
    stage.sync_file(staged)
}
