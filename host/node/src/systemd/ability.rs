//! Before the first write: what of a plan's units cannot be carried out.

use super::choose::{Ask, Choice, choose};
use super::facts::{Active, Load, UnitFacts};
use std::fmt;
use tread_model::plan::Step;

/// What the new config says of a unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InConfig {
    /// It has the unit's own text.
    pub defines: bool,
    /// It masks the unit.
    pub masks: bool,
    /// Its text or drop-ins of the unit are others than those of the config before.
    pub changes: bool,
    /// They say how to reload it: see [`says_reload`].
    pub can_reload: bool,
}

/// A unit of a plan for which something cannot be done, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unable {
    /// The step.
    pub step: Step,
    /// Why it cannot be carried out.
    pub why: String,
}

impl fmt::Display for Unable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.why)
    }
}

/// The steps of a plan that cannot be carried out as they are, by what systemd says of
/// the units now, and what the new config says of them. Where there is one, no unit is told of
/// anything, and the node boots instead.
///
/// `ca_trust` is whether this host has a way to let its trust store follow its anchors.
pub fn cannot(
    steps: &[Step],
    now: impl Fn(&str) -> UnitFacts,
    new: impl Fn(&str) -> InConfig,
    ca_trust: bool,
) -> Vec<Unable> {
    let unable = |step: &Step| {
        let why = match step {
            Step::Reload { unit } => why_not(Ask::Reload, &now(unit), new(unit)),
            Step::Restart { unit } => why_not(Ask::Restart, &now(unit), new(unit)),
            Step::UpdateCaTrust if !ca_trust => Some(
                "this host has no command that updates its trust store (update-ca-trust, \
                 update-ca-certificates)"
                    .to_owned(),
            ),
            _ => None,
        };
        why.map(|why| Unable { step: step.clone(), why })
    };
    steps.iter().filter_map(unable).collect()
}

fn why_not(ask: Ask, now: &UnitFacts, new: InConfig) -> Option<String> {
    if new.masks {
        return None;
    }
    // The new text decides if it is the whole unit; if not, the unit as it is now counts too.
    let can_reload = match new {
        InConfig { defines: true, changes: true, can_reload, .. } => can_reload,
        InConfig { can_reload, .. } => can_reload || now.can_reload,
    };
    // A unit that is on its way somewhere may be active when its step comes.
    let active = if now.changes() { Active::Active } else { now.active.clone() };
    let load = match &now.load {
        Load::NotFound | Load::Unusable(_) if new.defines => Load::Loaded,
        // It may be unmasked when its step comes.
        Load::Masked if new.defines && new.changes => Load::Loaded,
        load => load.clone(),
    };
    let then = UnitFacts { load, active, can_reload, ..now.clone() };
    match choose(ask, &then) {
        Choice::Missing => Some("the unit exists neither now nor in the new config".to_owned()),
        Choice::Unusable(state) => Some(format!(
            "systemd cannot use the unit's file ({state}), and the new config has no other one"
        )),
        Choice::CannotReload => {
            Some("the unit has no way to reload (systemd: CanReload=no)".to_owned())
        }
        Choice::Do(Ask::Restart, _)
            if now.load == Load::Loaded && !now.can_start && !new.changes =>
        {
            Some("the unit cannot be started by hand (systemd: CanStart=no)".to_owned())
        }
        Choice::Do(..) | Choice::Skip(_) | Choice::Wait => None,
    }
}

/// Whether a unit's text, or one of its drop-ins, says how to reload it.
pub fn says_reload(text: &str) -> bool {
    text.lines().filter_map(|line| line.split_once('=')).any(|(key, value)| {
        let value = value.trim();
        match key.trim() {
            "ExecReload" => !value.is_empty(),
            "Type" => value == "notify-reload",
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word_for(ask: Ask, now: &UnitFacts, new: InConfig) -> &'static str {
        match why_not(ask, now, new).as_deref() {
            None => "",
            Some(why) if why.contains("neither now") => "missing",
            Some(why) if why.contains("CanReload") => "no reload",
            Some(why) if why.contains("CanStart") => "no start",
            Some(why) if why.contains("file (") => "unusable",
            Some(_) => "?",
        }
    }

    #[test]
    fn what_cannot_be_done_is_known_before_the_first_write() {
        let running = UnitFacts {
            load: Load::Loaded,
            active: Active::Active,
            can_start: true,
            can_reload: true,
            ..UnitFacts::default()
        };
        let with = |change: fn(&mut UnitFacts)| {
            let mut unit = running.clone();
            change(&mut unit);
            unit
        };
        let absent = UnitFacts::default();
        let stubborn = with(|it| it.can_reload = false);
        let starting = with(|it| (it.active, it.can_reload) = (Active::Activating, false));
        let failed = with(|it| (it.active, it.can_reload) = (Active::Failed, false));
        let inactive = with(|it| (it.active, it.can_reload) = (Active::Inactive, false));
        let not_by_hand = with(|it| it.can_start = false);
        let masked = with(|it| (it.load, it.can_reload) = (Load::Masked, false));
        let broken = with(|it| it.load = Load::Unusable("bad-setting".to_owned()));
        let none = InConfig::default();
        let same = InConfig { defines: true, ..none };
        let rewritten = InConfig { changes: true, ..same };
        let with_reload = InConfig { can_reload: true, ..rewritten };
        let drop_in = InConfig { changes: true, can_reload: true, ..none };
        let masks = InConfig { masks: true, changes: true, ..none };
        for (what, unit, new, reload, restart) in [
            ("runs", &running, none, "", ""),
            ("exists nowhere", &absent, none, "missing", "missing"),
            ("exists nowhere, masked", &absent, masks, "", ""),
            ("will exist", &absent, with_reload, "", ""),
            ("cannot reload", &stubborn, none, "no reload", ""),
            ("cannot reload, as before", &stubborn, same, "no reload", ""),
            ("will reload by a drop-in", &stubborn, drop_in, "", ""),
            ("will reload by its text", &stubborn, with_reload, "", ""),
            ("will no longer reload", &running, rewritten, "no reload", ""),
            ("will be masked", &stubborn, masks, "", ""),
            ("starts, and cannot reload", &starting, none, "no reload", ""),
            ("failed: it is restarted", &failed, none, "", ""),
            ("inactive: it is skipped", &inactive, none, "", ""),
            ("masked: it is skipped", &masked, none, "", ""),
            ("masked until now, and cannot reload", &masked, rewritten, "no reload", ""),
            ("not by hand", &not_by_hand, none, "", "no start"),
            ("not by hand, but it changes", &not_by_hand, with_reload, "", ""),
            ("broken", &broken, none, "unusable", "unusable"),
            ("broken until now", &broken, with_reload, "", ""),
        ] {
            assert_eq!(word_for(Ask::Reload, unit, new), reload, "reload: {what}");
            assert_eq!(word_for(Ask::Restart, unit, new), restart, "restart: {what}");
        }
    }

    #[test]
    fn each_step_that_cannot_be_done_is_named_and_no_other() {
        let restart = Step::Restart { unit: "gone.service".to_owned() };
        let steps = [Step::Drain, Step::Write, Step::UpdateCaTrust, restart, Step::Uncordon];
        let found = |ca_trust| {
            let found = cannot(&steps, |_| UnitFacts::default(), |_| InConfig::default(), ca_trust);
            found.iter().map(Unable::to_string).collect::<Vec<_>>()
        };
        let missing = "restart gone.service: the unit exists neither now nor in the new config";
        assert_eq!(found(true), [missing]);
        assert_eq!(found(false).len(), 2);
        assert!(found(false)[0].starts_with("update-ca-trust: this host has no command"));
    }

    #[test]
    fn a_text_says_how_to_reload_by_a_command_or_by_its_type() {
        for (text, expected) in [
            ("[Service]\nExecReload=/bin/kill -HUP $MAINPID\n", true),
            ("[Service]\n  ExecReload = /bin/true\n", true),
            ("[Service]\nType=notify-reload\n", true),
            ("[Service]\nExecReload=\n", false),
            ("[Service]\n#ExecReload=/bin/true\nType=notify\n", false),
            ("", false),
        ] {
            assert_eq!(says_reload(text), expected, "{text:?}");
        }
    }
}
