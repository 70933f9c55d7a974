//! From what wasmtime reports to failures with stable names: by type, never by
//! the text of an error.

use crate::clock::TooLong;
use crate::limits::Exceeded;
use tread_model::text::one_line_within;
use tread_model::verdict::{Failure, FailureKind};
use wasmtime::{PoolConcurrencyLimitError, Trap};

/// Messages are cut after this.
const MESSAGE_BYTES: usize = 2048;

/// A failure whose message may quote the policy.
pub(crate) fn failure(kind: FailureKind, message: impl AsRef<str>) -> Failure {
    Failure { kind, message: one_line_within(message.as_ref(), MESSAGE_BYTES).0 }
}

/// The host's own fault.
pub(crate) fn no_room(message: impl AsRef<str>) -> Failure {
    failure(FailureKind::NoRoom, message)
}

/// Whether the same inputs fail like this everywhere.
pub(crate) fn is_reproducible(kind: FailureKind) -> bool {
    use FailureKind::{CompileTimeout, Deadline, NoRoom, Stack};
    !matches!(kind, CompileTimeout | Deadline | NoRoom | Stack)
}

/// The failure for an error that ended a running guest. An error that is no trap broke
/// the rules of passing values: its kind is `otherwise`. `said` is the last line of
/// the guest's log.
pub(crate) fn of_error(
    error: &wasmtime::Error,
    otherwise: FailureKind,
    said: Option<&str>,
) -> Failure {
    if let Some(exceeded) = error.downcast_ref::<Exceeded>() {
        return failure(FailureKind::Memory, &exceeded.0);
    }
    if let Some(too_long) = error.downcast_ref::<TooLong>() {
        return failure(FailureKind::Deadline, too_long.to_string());
    }
    if error.downcast_ref::<PoolConcurrencyLimitError>().is_some() {
        return no_room(format!("too many policies run at the same time: {error:#}"));
    }
    let Some(trap) = error.downcast_ref::<Trap>() else {
        let text = format!("{error:#}");
        return match otherwise {
            FailureKind::BadOutput => failure(otherwise, unreadable(&text)),
            _ => failure(otherwise, text),
        };
    };
    match trap {
        Trap::OutOfFuel => failure(
            FailureKind::OutOfFuel,
            "it used all the fuel that its input allows: look for a loop that does not end, \
             or for work that grows faster than the input",
        ),
        Trap::Interrupt => failure(FailureKind::Deadline, "it was interrupted"),
        Trap::StackOverflow => failure(
            FailureKind::Stack,
            "its calls went too deep for its stack: look for a function that calls itself without \
             an end, or once for each level or item of its input",
        ),
        Trap::StringOutOfBounds
        | Trap::ListOutOfBounds
        | Trap::InvalidDiscriminant
        | Trap::UnalignedPointer
        | Trap::InvalidChar => failure(otherwise, unreadable(&trap.to_string())),
        trap => match said {
            Some(text) => failure(FailureKind::Trap, text),
            None => failure(FailureKind::Trap, trap.to_string()),
        },
    }
}

/// What wasmtime says where it cannot read what a policy returned, and what that
/// means to who wrote the policy. It has no types for these errors, so that here alone words are
/// looked for: they choose the sentence, and never the failure's name.
const UNREADABLE: [(&str, &str); 7] = [
    (
        "too much data",
        "it takes more memory of the host than an answer may: one verdict for each change, with \
         one sentence as its reason, is enough",
    ),
    (
        "discriminant",
        "it holds a case that the contract does not have, of a variant, an enum, an \
      option or a result: was it built against another wit/policy.wit?",
    ),
    ("out of bounds", "an address or a length in it leads out of the policy's memory"),
    ("aligned", "an address in it is none at which such a value can lie"),
    ("overflow", "a length in it is more than any memory has"),
    ("too large", "a length in it is more than any memory has"),
    ("utf-8", "a text in it is no UTF-8"),
];

/// The words for an answer that is no value of the contract. Its name does not
/// depend on what wasmtime says.
fn unreadable(said: &str) -> String {
    let found = UNREADABLE.iter().find(|(part, _)| said.contains(part));
    let why = found.map_or_else(String::new, |(_, why)| format!(": {why}"));
    // A number in it tells which case, and where a text stops.
    let said = match said.contains("too much data") {
        true => String::new(),
        false => format!(" ({said})"),
    };
    format!("what it returned cannot be read as the contract has it{why}{said}")
}
