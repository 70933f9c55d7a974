//! What becomes of a `reload` or `restart` by how the unit is.

use super::facts::{Active, Load, UnitFacts};
use std::fmt;

/// What a step asks of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// To re-read its configuration.
    Reload,
    /// To be stopped and started.
    Restart,
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ask::Reload => "reload",
            Ask::Restart => "restart",
        })
    }
}

/// What is done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// This, with a note where it is not what was asked.
    Do(Ask, Option<&'static str>),
    /// Nothing, for this reason.
    Skip(&'static str),
    /// It is on its way from one state to another: this is chosen anew when it is there.
    Wait,
    /// It does not exist.
    Missing,
    /// Its file cannot be used.
    Unusable(String),
    /// It has no way to re-read its configuration.
    CannotReload,
}

/// What becomes of what is asked, by how the unit is.
pub fn choose(ask: Ask, unit: &UnitFacts) -> Choice {
    match &unit.load {
        Load::Masked => return Choice::Skip("the unit is masked"),
        Load::NotFound => return Choice::Missing,
        Load::Unusable(why) => return Choice::Unusable(why.clone()),
        Load::Loaded => {}
    }
    match unit.active {
        Active::Failed if ask == Ask::Reload => {
            Choice::Do(Ask::Restart, Some("the unit had failed, so it was restarted"))
        }
        Active::Failed => Choice::Do(Ask::Restart, None),
        Active::Inactive if ask == Ask::Restart && unit.runs_once() => {
            Choice::Do(Ask::Restart, None)
        }
        Active::Inactive => Choice::Skip("the unit is inactive"),
        Active::Active if ask == Ask::Reload && !unit.can_reload => Choice::CannotReload,
        Active::Active => Choice::Do(ask, None),
        _ if unit.restarts_by_itself() && ask == Ask::Reload => {
            Choice::Do(Ask::Restart, Some("the unit kept failing, so it was restarted"))
        }
        _ if unit.restarts_by_itself() => Choice::Do(Ask::Restart, None),
        _ => Choice::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(active: Active) -> UnitFacts {
        UnitFacts { load: Load::Loaded, active, can_reload: true, ..UnitFacts::default() }
    }

    #[test]
    fn what_is_done_follows_from_what_is_asked_and_how_the_unit_is() {
        use Ask::{Reload, Restart};
        let once = |active| UnitFacts { kind: "oneshot".to_owned(), ..unit(active) };
        let remaining = UnitFacts { remains: true, ..once(Active::Inactive) };
        let looping = UnitFacts { sub: "auto-restart".to_owned(), ..unit(Active::Activating) };
        let stubborn = UnitFacts { can_reload: false, ..unit(Active::Active) };
        let masked = UnitFacts { load: Load::Masked, ..unit(Active::Active) };
        let broken = UnitFacts { load: Load::Unusable("error".to_owned()), ..UnitFacts::default() };
        let inactive = Choice::Skip("the unit is inactive");
        let failed = Some("the unit had failed, so it was restarted");
        let kept_failing = Some("the unit kept failing, so it was restarted");
        for (facts, reload, restart) in [
            (unit(Active::Active), Choice::Do(Reload, None), Choice::Do(Restart, None)),
            (unit(Active::Failed), Choice::Do(Restart, failed), Choice::Do(Restart, None)),
            (unit(Active::Inactive), inactive.clone(), inactive.clone()),
            (once(Active::Inactive), inactive.clone(), Choice::Do(Restart, None)),
            (remaining, inactive.clone(), inactive),
            (looping, Choice::Do(Restart, kept_failing), Choice::Do(Restart, None)),
            (unit(Active::Activating), Choice::Wait, Choice::Wait),
            (once(Active::Activating), Choice::Wait, Choice::Wait),
            (unit(Active::Deactivating), Choice::Wait, Choice::Wait),
            (unit(Active::Reloading), Choice::Wait, Choice::Wait),
            (unit(Active::Other("new".to_owned())), Choice::Wait, Choice::Wait),
            (stubborn, Choice::CannotReload, Choice::Do(Restart, None)),
            (masked, Choice::Skip("the unit is masked"), Choice::Skip("the unit is masked")),
            (UnitFacts::default(), Choice::Missing, Choice::Missing),
            (broken, Choice::Unusable("error".to_owned()), Choice::Unusable("error".to_owned())),
        ] {
            assert_eq!(choose(Reload, &facts), reload, "reload, {facts:?}");
            assert_eq!(choose(Restart, &facts), restart, "restart, {facts:?}");
        }
    }
}
