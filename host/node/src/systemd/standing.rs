//! Whether a unit is well, by what systemd says of it.

use super::facts::{Active, UnitFacts};
use std::fmt;

/// Why a unit is not well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ill {
    /// It failed, in systemd's word: `exit-code`, `timeout`, `oom-kill`.
    Failed(String),
    /// Systemd had to restart it by itself. Once it has, the word is `success` whatever was before.
    KeepsFailing(String),
    /// It no longer runs, though it did not fail.
    Ended,
    /// It was not started in this boot: what it depends on failed, or nothing asked for it.
    NotStarted,
    /// A condition is not met, so systemd did not start it.
    Unmet,
    /// It is still neither here nor there.
    Undecided(String),
}

impl fmt::Display for Ill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ill::Failed(result) => write!(f, "failed (result {result})"),
            Ill::KeepsFailing(result) if result == "success" => {
                f.write_str("ended and was restarted by systemd")
            }
            Ill::KeepsFailing(result) => {
                write!(f, "ended and was restarted by systemd (result {result})")
            }
            Ill::Ended => f.write_str("ended, though it did not fail"),
            Ill::NotStarted => {
                f.write_str("was not started, as where a unit that it depends on failed")
            }
            Ill::Unmet => f.write_str("was not started, since a condition of it is not met"),
            Ill::Undecided(state) => write!(f, "was still {state}"),
        }
    }
}

/// How it stands with a unit that was told something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is well, and no time can change that.
    Well,
    /// It is well so far.
    SoFar,
    /// It is on its way somewhere.
    Changing,
    Ill(Ill),
}

/// How it stands with a unit that systemd had restarted by itself `before` times.
pub(crate) fn standing(before: u32, unit: &UnitFacts) -> Standing {
    if unit.restarts > before || unit.restarts_by_itself() {
        return Standing::Ill(Ill::KeepsFailing(unit.result.clone()));
    }
    match unit.active {
        Active::Failed => Standing::Ill(Ill::Failed(unit.result.clone())),
        // It has no process that could fail.
        Active::Active if unit.sub == "exited" => Standing::Well,
        Active::Active => Standing::SoFar,
        Active::Inactive if unit.unmet => Standing::Ill(Ill::Unmet),
        Active::Inactive if unit.runs_once() => Standing::Well,
        // It comes back when somebody needs it.
        Active::Inactive if unit.triggered => Standing::SoFar,
        Active::Inactive => Standing::Ill(Ill::Ended),
        Active::Activating | Active::Deactivating | Active::Reloading | Active::Other(_) => {
            Standing::Changing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_was_restarted_is_not_said_to_have_succeeded() {
        let says = |result: &str| Ill::KeepsFailing(result.to_owned()).to_string();
        assert_eq!(says("success"), "ended and was restarted by systemd");
        assert_eq!(says("exit-code"), "ended and was restarted by systemd (result exit-code)");
    }

    #[test]
    fn a_unit_is_well_while_it_runs_and_was_not_restarted_by_systemd() {
        let unit = |active| UnitFacts { active, restarts: 3, ..UnitFacts::default() };
        let with = |active, change: fn(&mut UnitFacts)| {
            let mut unit = unit(active);
            change(&mut unit);
            unit
        };
        let failed = |it: &mut UnitFacts| "exit-code".clone_into(&mut it.result);
        let ill = Standing::Ill;
        let keeps_failing = |result: &str| ill(Ill::KeepsFailing(result.to_owned()));
        for (unit, expected) in [
            (unit(Active::Active), Standing::SoFar),
            (with(Active::Active, |it| it.sub = "exited".to_owned()), Standing::Well),
            (with(Active::Active, |it| it.restarts = 4), keeps_failing("")),
            (with(Active::Activating, |it| it.sub = "auto-restart".to_owned()), keeps_failing("")),
            (with(Active::Failed, failed), ill(Ill::Failed("exit-code".to_owned()))),
            (unit(Active::Inactive), ill(Ill::Ended)),
            (with(Active::Inactive, |it| it.triggered = true), Standing::SoFar),
            (with(Active::Inactive, |it| it.unmet = true), ill(Ill::Unmet)),
            (with(Active::Inactive, |it| it.kind = "oneshot".to_owned()), Standing::Well),
            (
                with(Active::Inactive, |it| (it.kind, it.unmet) = ("oneshot".to_owned(), true)),
                ill(Ill::Unmet),
            ),
            (unit(Active::Activating), Standing::Changing),
            (unit(Active::Deactivating), Standing::Changing),
            (unit(Active::Reloading), Standing::Changing),
        ] {
            assert_eq!(standing(3, &unit), expected, "{unit:?}");
        }
    }
}
