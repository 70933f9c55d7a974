//! What policies answer.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A policy's answer for one change, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// No opinion.
    Abstain,
    /// These actions make the change take effect; none at all: writing the
    /// files is enough.
    Act(Vec<Action>),
    /// The change must not be applied.
    Refuse,
}

/// An answer, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The answer.
    pub answer: Answer,
    /// One sentence for a tired admin, cleaned and cut.
    pub reason: String,
}

/// What has to be done so that a change takes effect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Ask a unit to re-read its configuration.
    Reload(String),
    /// Stop and start a unit.
    Restart(String),
    /// Let systemd re-read its units.
    DaemonReload,
    /// Move the node's pods elsewhere before anything is written.
    Drain,
    /// Boot the node; it is drained first.
    Reboot,
    /// Boot the node without draining it: for the admin layer only.
    RebootUndrained,
}

/// Who speaks. The order is the order of deciding: the admin first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// A cluster admin.
    Admin,
    /// The owner of the template that wrote a file.
    Template,
    /// tread itself.
    Builtin,
}

impl Layer {
    /// The word for it in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Layer::Admin => "admin",
            Layer::Template => "template",
            Layer::Builtin => "builtin",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a policy failed. The name of each is stable: it stands in plans,
/// statuses and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Which way of failing it was.
    pub kind: FailureKind,
    /// What happened, in words, for the policy's author: cleaned and cut.
    pub message: String,
}

impl Failure {
    /// The setting that is invalid: a policy's sentences on settings begin with its name, as
    /// those of the host do. What follows is not looked at.
    pub fn setting(&self) -> Option<&str> {
        let is_of_settings = self.kind == FailureKind::InvalidSettings;
        self.message.split([':', '.', '[']).next().filter(|_| is_of_settings)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.message)
    }
}

impl std::error::Error for Failure {}

macro_rules! failure_kinds {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// Every way in which a policy can fail.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FailureKind {
            $($(#[$doc])* $variant,)*
        }

        impl FailureKind {
            /// All of them.
            pub const ALL: &'static [FailureKind] = &[$(FailureKind::$variant,)*];

            /// The stable name.
            pub fn name(self) -> &'static str {
                match self {
                    $(FailureKind::$variant => $name,)*
                }
            }
        }
    };
}

failure_kinds! {
    /// It used up its fuel.
    OutOfFuel => "out-of-fuel",
    /// It took too much time: the backstop behind fuel.
    Deadline => "deadline",
    /// It asked for more memory or table space than it may have.
    Memory => "memory",
    /// It ran out of native stack.
    Stack => "stack",
    /// It panicked, or trapped in another way.
    Trap => "trap",
    /// Its answer breaks the contract: two verdicts for one change, too long,
    /// not valid text.
    BadOutput => "bad-output",
    /// It answered for a change that it was not offered.
    UnknownChange => "unknown-change",
    /// An action names something that is no systemd unit.
    InvalidUnit => "invalid-unit",
    /// An answer outside the range that its claim declares.
    BeyondClaim => "beyond-claim",
    /// It refused its settings, or they are no JSON object.
    InvalidSettings => "invalid-settings",
    /// It imports a function that does not write a log.
    ForbiddenImport => "forbidden-import",
    /// The module is larger than allowed.
    TooLarge => "too-large",
    /// It is no WebAssembly component, or a broken one.
    NotAComponent => "not-a-component",
    /// Compiling it took longer than allowed.
    CompileTimeout => "compile-timeout",
    /// The compiler refused it.
    CompileFailed => "compile-failed",
    /// Its bytes are not those that were pinned.
    DigestMismatch => "digest-mismatch",
    /// It does not export the interface of a version that tread speaks.
    WrongWorld => "wrong-world",
    /// It has no description, a malformed one, or one that differs from what
    /// it exports.
    BadDescription => "bad-description",
    /// Its module is gone.
    Missing => "missing",
    /// The host had no room to run it.
    NoRoom => "no-room",
}
