//! What the journal keeps, and where.

/// Where tread keeps what it knows of the node, for root only.
pub const STATE: &str = "/var/lib/tread/node";
/// In it, the operation that is on its way.
pub(super) const OPERATION: &str = "operation";
/// And the one that waits for a boot, as long as the next one is not committed.
pub(super) const BESIDE: &str = "beside";
pub(super) const RECORD: &str = "record";
pub(super) const LOG: &str = "log";
/// So much room the log has also on a disk that fills up: that of hundreds of notes.
pub(super) const LOG_ROOM: u64 = 64 << 10;
pub(super) const LOCK: &str = "lock";
/// More than any record or log has: a file of this size is something else.
pub(super) const MOST: u64 = 256 << 20;

/// What the name of a stage begins with.
pub(crate) const STAGE: &str = ".tread-";
/// What that of one begins with that was kept for an admin.
const GIVEN_UP: &str = ".given-up-";

/// What stands in a stage, by the index of its entry.
pub(super) fn new_name(index: usize) -> String {
    format!("{index}.new")
}

pub(super) fn old_name(index: usize) -> String {
    format!("{index}.old")
}

/// A folder that is made, by its index among them.
pub(super) fn made_name(index: usize) -> String {
    format!("{index}.made")
}

/// Whether something in a stage was put there by tread.
pub(super) fn is_in_a_stage(name: &str) -> bool {
    let Some((index, what)) = name.split_once('.') else { return false };
    let is_index = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
    is_index && matches!(what, "new" | "old" | "made" | "moving" | "again")
}

/// On its way to or from a place.
pub(super) fn moving_name(index: usize) -> String {
    format!("{index}.moving")
}

/// What is put back into a file that changed meanwhile.
pub(super) fn again_name(index: usize) -> String {
    format!("{index}.again")
}

/// What a stage is called that holds what an admin has to put back by hand.
pub(super) fn given_up_name(stage: &str) -> String {
    let id = stage.strip_prefix(STAGE).unwrap_or(stage);
    format!("{GIVEN_UP}{id}")
}
