//! A plan as it fits into an object.

use super::transition::{LONGEST_WORDS, MOST_WARNINGS};
use tread_kube::api::conditions;
use tread_kube::api::disruption_plan::DisruptionPlanStatus;

/// An object has to stay below 1 MiB, with what others add to it.
pub(super) const LARGEST: usize = 768 << 10;
/// How many ways an object lists.
pub(super) const MOST_TRANSITIONS: usize = 20;
/// How many changes a way lists at most.
const MOST_CHANGES: usize = 400;
/// So many warnings a way lists, however much there is.
const LEAST_WARNINGS: usize = 3;

/// The status as it fits into an object: long lists are cut, and say how much is
/// left out. Steps never are: where those of a way are too many for an object,
/// the way as a whole is left out.
pub fn cut(mut status: DisruptionPlanStatus) -> DisruptionPlanStatus {
    let shorten = |words: &mut Option<String>| {
        *words = words.take().map(|words| conditions::cut(words, LONGEST_WORDS));
    };
    shorten(&mut status.effect);
    shorten(&mut status.tread);
    shorten(&mut status.because);
    for way in &mut status.transitions {
        way.summary = conditions::cut(std::mem::take(&mut way.summary), LONGEST_WORDS);
        shorten(&mut way.operator);
    }
    status.transitions_left_out += shortened(&mut status.transitions, MOST_TRANSITIONS);
    let mut most = MOST_CHANGES;
    loop {
        let warnings = (most * MOST_WARNINGS / MOST_CHANGES).max(LEAST_WARNINGS);
        for way in &mut status.transitions {
            way.changes_left_out += shortened(&mut way.changes, most);
            way.operator_because_left_out += shortened(&mut way.operator_because, most);
            // Those that tread puts before all others count besides.
            way.warnings_left_out += shortened(&mut way.warnings, warnings + 2);
        }
        let size = serde_json::to_vec(&status).map_or(0, |text| text.len());
        if size <= LARGEST {
            return status;
        }
        match most {
            0 if status.transitions.pop().is_none() => return status,
            0 => status.transitions_left_out = status.transitions_left_out.saturating_add(1),
            _ => most /= 2,
        }
    }
}

/// Cuts a list; how much was left out.
fn shortened<T>(list: &mut Vec<T>, most: usize) -> i64 {
    let left_out = list.len().saturating_sub(most);
    list.truncate(most);
    i64::try_from(left_out).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
