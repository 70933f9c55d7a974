//! When chronyd has to be restarted: only if what it is told changes, and not
//! because a comment does. A file that takes the place of the system's own costs a
//! boot.
//!
//! chronyd reads its configuration when it starts. `chronyc reload sources` and
//! `chronyc rekey` can tell it to read parts of it again, but they are commands,
//! and its unit has no reload: a restart is the gentlest that a node can be
//! asked for. It takes a moment, and the clock goes on meanwhile.

mod command_line;
mod config;

use config::Config;
use serde::{Deserialize, Serialize};
use tread_guest_sdk::{
    Change, Claim, Content, Context, Edit, Effect, Policy, State, Verdict, diff, export,
};

/// The policy.
pub struct ChronyPolicy;

/// What an admin can set, with the defaults below.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The unit that runs chronyd: `chrony.service` on Debian and Ubuntu.
    pub service: String,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { service: "chronyd.service".to_owned() }
    }
}

const CONF: &str = "/etc/chrony.conf";
const KEYS: &str = "/etc/chrony.keys";
/// Options of its command line, which its unit reads.
const OPTIONS: &str = "/etc/sysconfig/chronyd";

impl Policy for ChronyPolicy {
    type Settings = Settings;
    const NAME: &'static str = env!("CARGO_PKG_NAME");
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str =
        "Restarts chronyd only when its time sources or directives change";
    const CLAIMS: &'static [Claim] = &[
        // Unchanged as well: it says which of the others are read at all.
        Claim::on("file:/etc/chrony.conf", Effect::None, Effect::Reboot).with_unchanged(),
        Claim::on("file:/etc/chrony.d/*.{conf,sources}", Effect::None, Effect::Restart),
        Claim::on("file:/etc/chrony.keys", Effect::None, Effect::Restart),
        // Unchanged as well: it says whether chrony.conf is read.
        Claim::on("file:/etc/sysconfig/chronyd", Effect::None, Effect::Reboot).with_unchanged(),
    ];

    fn check(settings: &Settings) -> Result<(), Vec<String>> {
        if settings.service.ends_with(".service") {
            return Ok(());
        }
        Err(vec!["service: expected a complete unit name such as chronyd.service".to_owned()])
    }

    fn classify(settings: &Settings, change: &Change, context: &Context<'_>) -> Verdict {
        let main = main_file(context);
        // What chrony.conf includes may name more.
        let needless = |used: &dyn Fn(&Config<'_>) -> bool| {
            let may_be_used = |side: &Config<'_>| used(side) || side.reads_others();
            main.as_ref().is_some_and(|sides| !sides.iter().any(may_be_used))
        };
        let answer = match change.path() {
            Some(CONF) => directives(change),
            Some(KEYS) if needless(&|main| main.has_keys_in(KEYS)) => {
                Some(Answer::Nothing("chrony.conf names no key file at this place"))
            }
            Some(KEYS) => keys(change),
            Some(OPTIONS) => options(change),
            Some(path) if needless(&|main| main.reads(path)) => {
                Some(Answer::Nothing("chrony.conf names neither this file nor its directory"))
            }
            _ => directives(change),
        };
        match answer {
            // What cannot be read is better left to others than guessed.
            None => Verdict::abstain(),
            Some(Answer::Nothing(why)) => Verdict::nothing(why),
            Some(Answer::Restart(why)) => Verdict::restart(settings.service.clone(), why),
            Some(Answer::Reboot(why)) => Verdict::reboot(why),
        }
    }
}

export!(ChronyPolicy);

/// What a change of a file needs, and why.
enum Answer {
    Nothing(&'static str),
    Restart(String),
    Reboot(&'static str),
}

/// Both sides of chrony.conf. None where it is not known what it says, or whether
/// chronyd reads it: it is the system's own, cannot be read here, or the options may
/// name another configuration.
fn main_file<'a>(context: &Context<'a>) -> Option<Vec<Config<'a>>> {
    let leaves_it = |state: &State| {
        // The system's own options name no other.
        state.is_absent() || state.as_text().is_some_and(command_line::reads_chrony_conf)
    };
    if !sides(context, OPTIONS).into_iter().all(leaves_it) {
        return None;
    }
    let texts: Option<Vec<&str>> = sides(context, CONF).into_iter().map(State::as_text).collect();
    texts.filter(|texts| !texts.is_empty())?.into_iter().map(Config::read).collect()
}

/// How a file stands on both sides: once if it stays the same, and not at all if the
/// configuration does not bring it.
fn sides<'a>(context: &Context<'a>, path: &str) -> Vec<&'a State> {
    let changed = context.changes.iter().filter(|change| change.path() == Some(path));
    let same = context.unchanged.iter().filter(|entry| entry.path() == Some(path));
    let changed = changed.flat_map(|change| [&change.before, &change.after]);
    changed.chain(same.map(|entry| &entry.state)).collect()
}

/// A file of directives: chrony.conf, or one that it reads. None: what it says is not
/// known.
fn directives(change: &Change) -> Option<Answer> {
    let read = |state| match text(state)? {
        Some(text) => Config::read(text).map(Some),
        None => Some(None),
    };
    let (Some(before), Some(after)) = (read(&change.before)?, read(&change.after)?) else {
        return Some(come_or_go(change, "chronyd reads it when it starts"));
    };
    let changed: Vec<String> = before.changed(&after).into_iter().collect();
    Some(match changed.as_slice() {
        [] => {
            Answer::Nothing("no directive changes: only comments, layout or the order of sources")
        }
        names => Answer::Restart(format!("chronyd takes up {} when it starts", listed(names))),
    })
}

/// The keys, of which mostly only a token is known: others must not read them.
fn keys(change: &Change) -> Option<Answer> {
    let lines = match (&change.before, &change.after) {
        (State::File(before), State::File(after)) if before.content == after.content => {
            return Some(Answer::Nothing(
                "the keys stay the same: only the mode or the owner changes",
            ));
        }
        (State::File(before), State::File(after)) => {
            before.content.text().zip(after.content.text())
        }
        _ => return Some(come_or_go(change, "chronyd reads its keys when it starts")),
    };
    Some(match lines {
        Some((before, after)) if diff::lines_without(before, after, COMMENTS).is_empty() => {
            Answer::Nothing("the keys stay the same: only comments or layout change")
        }
        _ => Answer::Restart("the keys change, which chronyd reads when it starts".to_owned()),
    })
}

const COMMENTS: &[&str] = &["#", "!", ";", "%"];

/// The environment of its unit.
fn options(change: &Change) -> Option<Answer> {
    let (before, after) = (text(&change.before)?, text(&change.after)?);
    let (Some(before), Some(after)) = (before, after) else {
        return Some(come_or_go(change, "the unit passes its options on when it starts"));
    };
    Some(match diff::lines_without(before, after, &["#", ";"]).is_empty() {
        true => Answer::Nothing("no option changes: only comments or layout"),
        false => Answer::Restart("the options of chronyd's command line change".to_owned()),
    })
}

/// The text of a side; `Some(None)` where there is no file. None: it is no text,
/// or a secret.
fn text(state: &State) -> Option<Option<&str>> {
    match state {
        State::Absent => Some(None),
        // The configuration sets its mode, and leaves its content to the system.
        State::File(file) if file.content == Content::Absent => None,
        state => state.as_text().map(Some),
    }
}

/// What a file needs that comes or goes. The operating system brings a chrony.conf and a
/// sysconfig/chronyd. On some clouds the node looks at each boot whether both are still as
/// the system brought them. If they are, chronyd reads a configuration in /run in their
/// place until the next boot, and a restart would not make it read a new file in /etc.
fn come_or_go(change: &Change, why: &str) -> Answer {
    match (change.path(), change.edit()) {
        (Some(CONF | OPTIONS), _) => Answer::Reboot(
            "the file takes the place of the system's own, or gives it back; on some clouds the \
             system chooses by that, when the node boots, what chronyd reads",
        ),
        (_, Edit::Removed) => Answer::Restart(format!(
            "the file goes, and perhaps the system's own comes back; {why}"
        )),
        _ => Answer::Restart(format!("the file is new here; {why}")),
    }
}

/// `a, b and c`
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_guest_sdk::{Entry, test};

    fn verdict(changes: Vec<Change>, unchanged: Vec<Entry>) -> Verdict {
        test::verdicts::<ChronyPolicy>(&Settings::default(), changes, unchanged).swap_remove(0)
    }

    #[test]
    fn chronyd_is_restarted_only_if_it_would_do_something_else() {
        for (before, after, effect) in [
            ("server a\n", "# ours\nserver a\n", Some(Effect::None)),
            ("server a\nserver b\n", "server b\nserver a\n", Some(Effect::None)),
            ("server a\n", "server b\n", Some(Effect::Restart)),
            ("server a\n", "server a\nmakestep 1 3\n", Some(Effect::Restart)),
            ("server a\n", "server a\nmakestop 1 3\n", None),
        ] {
            let verdict = verdict(vec![test::file(CONF, before, after)], vec![]);
            assert_eq!(verdict.effect(), effect, "{before:?} to {after:?}");
        }
    }

    #[test]
    fn a_file_that_comes_or_goes_restarts_chronyd() {
        for path in [KEYS, "/etc/chrony.d/a.conf"] {
            for change in [test::file_added(path, ""), test::file_removed(path, "")] {
                assert_eq!(verdict(vec![change], vec![]).effect(), Some(Effect::Restart), "{path}");
            }
        }
    }

    #[test]
    fn a_file_in_place_of_the_systems_own_costs_a_boot_since_the_platforms_time_is_set_up_then() {
        for path in [CONF, OPTIONS] {
            for change in [test::file_added(path, ""), test::file_removed(path, "")] {
                let verdict = verdict(vec![change], vec![]);
                assert_eq!(verdict.effect(), Some(Effect::Reboot), "{path}");
                assert!(verdict.reason().contains("when the node boots"), "{}", verdict.reason());
            }
        }
    }

    #[test]
    fn what_chrony_conf_does_not_name_needs_nothing() {
        let one = |text: &str| vec![test::unchanged_file(CONF, text)];
        for (path, main, effect) in [
            ("/etc/chrony.d/a.conf", "confdir /etc/chrony.d", Effect::Restart),
            ("/etc/chrony.d/a.conf", "server a", Effect::None),
            ("/etc/chrony.d/a.sources", "sourcedir /etc/chrony.d", Effect::Restart),
            ("/etc/chrony.d/a.sources", "server a", Effect::None),
            // A file in the directory may name it.
            ("/etc/chrony.d/a.sources", "confdir /etc/chrony.d", Effect::Restart),
            (KEYS, "confdir /etc/chrony.d", Effect::Restart),
            (KEYS, "include /etc/chrony-more.conf", Effect::Restart),
            (KEYS, "keyfile /etc/chrony.keys", Effect::Restart),
            (KEYS, "keyfile /etc//chrony.keys", Effect::Restart),
            (KEYS, "server a", Effect::None),
            (KEYS, "an unknown directive", Effect::Restart),
        ] {
            let change = test::file(path, "server a", "server b");
            assert_eq!(verdict(vec![change], one(main)).effect(), Some(effect), "{path} of {main}");
        }
        // The system's own chrony.conf may name anything.
        let change = test::file("/etc/chrony.d/a.conf", "server a", "server b");
        assert_eq!(verdict(vec![change], vec![]).effect(), Some(Effect::Restart));
    }

    #[test]
    fn where_the_options_name_another_configuration_nothing_is_taken_for_unread() {
        let no_other = "OPTIONS=\"-F 2\"\n";
        let another = "OPTIONS=\"-f /etc/chrony.d/a.conf\"\n";
        let conf = || test::unchanged_file(CONF, "server a");
        for path in ["/etc/chrony.d/a.conf", KEYS] {
            let change = || test::file(path, "server a", "server b");
            for (options, effect) in [
                (no_other, Effect::None),
                (another, Effect::Restart),
                ("OPTIONS=\"'confdir /etc/chrony.d'\"\n", Effect::Restart),
            ] {
                let beside = vec![conf(), test::unchanged_file(OPTIONS, options)];
                let verdict = verdict(vec![change()], beside);
                assert_eq!(verdict.effect(), Some(effect), "{path} beside {options}");
            }
            // What is running was started with the options of before.
            for (before, after, effect) in [
                (no_other, "OPTIONS=\"\"\n", Effect::None),
                (no_other, another, Effect::Restart),
                (another, no_other, Effect::Restart),
            ] {
                let changes = vec![change(), test::file(OPTIONS, before, after)];
                let verdict = verdict(changes, vec![conf()]);
                assert_eq!(verdict.effect(), Some(effect), "{path}: {before} to {after}");
            }
            // Options that cannot be read may name any.
            let mut secret = test::unchanged_file(OPTIONS, "");
            if let State::File(file) = &mut secret.state {
                file.content = Content::Digest("secret:1".to_owned());
            }
            let verdict = verdict(vec![change()], vec![conf(), secret]);
            assert_eq!(verdict.effect(), Some(Effect::Restart), "{path}");
        }
    }

    #[test]
    fn of_secret_keys_the_tokens_are_compared() {
        let state = |text: &str, mode: u32| {
            let mut state = test::file_state("");
            if let State::File(file) = &mut state {
                file.content = Content::Digest(format!("sha256:{text}"));
                file.mode = mode;
            }
            state
        };
        for (before, after, effect) in [
            (state("a", 0o640), state("b", 0o640), Effect::Restart),
            (state("a", 0o640), state("a", 0o600), Effect::None),
        ] {
            let change = Change { id: format!("file:{KEYS}"), before, after };
            assert_eq!(verdict(vec![change], vec![]).effect(), Some(effect));
        }
    }

    #[test]
    fn another_unit_is_restarted_where_an_admin_says_so() {
        let settings = Settings { service: "chrony.service".to_owned() };
        let change = test::file(CONF, "server a", "server b");
        let verdicts = test::verdicts::<ChronyPolicy>(&settings, vec![change], vec![]);
        assert_eq!(verdicts[0].actions(), [tread_guest_sdk::Action::restart("chrony.service")]);
        let errors = test::settings::<ChronyPolicy>(r#"{"service": "chronyd"}"#).err().unwrap();
        assert!(errors[0].starts_with("service: "), "{errors:?}");
    }
}
