//! How systemd's jobs end.

use std::fmt;

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobResult {
    /// It was done, or there was nothing to do: an unmet condition is `done` too.
    Done,
    /// It failed, or took longer than the unit allows.
    Failed,
    /// Another job took its place, or somebody cancelled it.
    Canceled,
    /// It took longer than the job was allowed.
    Timeout,
    /// A unit that it needs did not start.
    Dependency,
    /// It did not apply to how the unit was.
    Skipped,
    /// The unit cannot do that.
    Invalid,
    /// An assertion of the unit was not met.
    Assert,
    /// Units of this kind are not supported here.
    Unsupported,
    /// The unit was no longer needed by anything.
    Collected,
    /// The unit ran already, and may run only once.
    Once,
    /// What a newer systemd says.
    Other(String),
    /// Its end was not heard, since the bus or systemd was started anew; it is gone.
    Unheard,
}

impl JobResult {
    pub(crate) fn of(word: &str) -> JobResult {
        match word {
            "done" => JobResult::Done,
            "failed" => JobResult::Failed,
            "canceled" => JobResult::Canceled,
            "timeout" => JobResult::Timeout,
            "dependency" => JobResult::Dependency,
            "skipped" => JobResult::Skipped,
            "invalid" => JobResult::Invalid,
            "assert" => JobResult::Assert,
            "unsupported" => JobResult::Unsupported,
            "collected" => JobResult::Collected,
            "once" => JobResult::Once,
            other => JobResult::Other(other.to_owned()),
        }
    }
}

impl fmt::Display for JobResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JobResult::Done => "was done",
            JobResult::Failed => "failed",
            JobResult::Canceled => "was cancelled by another job, or by somebody",
            JobResult::Timeout => "timed out",
            JobResult::Dependency => "did not begin, since a unit that this one needs failed",
            JobResult::Skipped => "was skipped, since the unit was in no state for it",
            JobResult::Invalid => "is nothing that this unit can do",
            JobResult::Assert => "did not begin, since an assertion of the unit was not met",
            JobResult::Unsupported => "is not supported for this kind of unit here",
            JobResult::Collected => "was dropped together with the unit",
            JobResult::Once => "did not begin, since the unit may run only once",
            JobResult::Unheard => "ended unheard while the bus or systemd was started anew",
            JobResult::Other(word) => return write!(f, "ended with `{word}`"),
        })
    }
}
