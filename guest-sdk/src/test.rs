//! Builders for unit tests, which need no WebAssembly.
//!
//! [`verdict`] and [`verdicts`] hold an answer to what tread itself would hold
//! it to, as far as the answer and the claims tell. What depends on all of a config,
//! or on secrets, is found by `tread policy test`.
//!
//! ```
//! use tread_guest_sdk::test;
//! let change = test::file("/etc/chrony.conf", "server a", "server b");
//! assert_eq!(change.id, "file:/etc/chrony.conf");
//! ```

use crate::units::touch_gently;
use crate::{Action, Change, Content, Context, Effect, Entry, File, Policy, State, Unit, Verdict};

/// A file of root's with mode 0644 whose text changed.
///
/// ```
/// use tread_guest_sdk::{Edit, test};
/// assert_eq!(test::file("/etc/motd", "old", "new").edit(), Edit::Changed);
/// ```
pub fn file(path: &str, before: &str, after: &str) -> Change {
    Change { id: format!("file:{path}"), before: file_state(before), after: file_state(after) }
}

/// A file that was not there before.
///
/// ```
/// use tread_guest_sdk::test;
/// assert!(test::file_added("/etc/motd", "new").before.is_absent());
/// ```
pub fn file_added(path: &str, after: &str) -> Change {
    Change { id: format!("file:{path}"), before: State::Absent, after: file_state(after) }
}

/// A file that is not there any more.
///
/// ```
/// use tread_guest_sdk::test;
/// assert!(test::file_removed("/etc/motd", "old").after.is_absent());
/// ```
pub fn file_removed(path: &str, before: &str) -> Change {
    Change { id: format!("file:{path}"), before: file_state(before), after: State::Absent }
}

/// A file of root's with mode 0644, for one side of a change.
///
/// ```
/// use tread_guest_sdk::test;
/// assert_eq!(test::file_state("text").as_text(), Some("text"));
/// ```
pub fn file_state(text: &str) -> State {
    State::File(File {
        content: Content::Bytes(text.as_bytes().to_vec()),
        mode: 0o644,
        user: "root".to_string(),
        group: "root".to_string(),
    })
}

/// A unit whose unit file changed.
///
/// ```
/// use tread_guest_sdk::test;
/// assert_eq!(test::unit("a.service", "[Unit]", "[Service]").name(), "a.service");
/// ```
pub fn unit(name: &str, before: &str, after: &str) -> Change {
    Change { id: format!("unit:{name}"), before: unit_state(before), after: unit_state(after) }
}

/// A unit with that unit file, neither enabled nor masked, for one side of a change.
///
/// ```
/// use tread_guest_sdk::test;
/// assert!(test::unit_state("[Unit]").as_unit().is_some_and(|unit| unit.dropins.is_empty()));
/// ```
pub fn unit_state(text: &str) -> State {
    State::Unit(Unit {
        contents: Content::Bytes(text.as_bytes().to_vec()),
        enabled: None,
        masked: false,
        dropins: Vec::new(),
    })
}

/// A change of a list: `kernel-arguments`, `extensions` or `ssh-keys:USER`. Without items it is absent,
/// as tread has it.
///
/// ```
/// use tread_guest_sdk::test;
/// let change = test::list("kernel-arguments", &["quiet"], &["quiet", "nosmt"]);
/// assert_eq!(change.after.as_list().len(), 2);
/// ```
pub fn list(id: &str, before: &[&str], after: &[&str]) -> Change {
    let state = |items: &[&str]| match items {
        [] => State::Absent,
        items => State::List(items.iter().map(ToString::to_string).collect()),
    };
    Change { id: id.to_string(), before: state(before), after: state(after) }
}

/// A change of a text: `kernel-type`, `os-image` or `password:USER`. An empty one is absent, as tread has
/// it.
///
/// ```
/// use tread_guest_sdk::test;
/// assert_eq!(test::text("kernel-type", "default", "realtime").after.as_text(), Some("realtime"));
/// ```
pub fn text(id: &str, before: &str, after: &str) -> Change {
    let state = |text: &str| match text {
        "" => State::Absent,
        text => State::Text(text.to_string()),
    };
    Change { id: id.to_string(), before: state(before), after: state(after) }
}

/// A file that is the same on both sides, for [`verdicts`].
///
/// ```
/// use tread_guest_sdk::test;
/// assert_eq!(test::unchanged_file("/etc/motd", "text").id, "file:/etc/motd");
/// ```
pub fn unchanged_file(path: &str, text: &str) -> Entry {
    Entry { id: format!("file:{path}"), state: file_state(text) }
}

/// The settings in a JSON object, read and checked as tread has it done.
///
/// # Errors
/// One sentence for each setting that is wrong.
///
/// ```no_run
/// # use tread_guest_sdk::{Policy, test};
/// # fn example<Chrony: Policy>() {
/// let errors = test::settings::<Chrony>(r#"{"unti": "chronyd.service"}"#).err().unwrap();
/// assert_eq!(errors, ["unti: there is no such setting; there are: unit"]);
/// # }
/// ```
pub fn settings<P: Policy>(json: &str) -> Result<P::Settings, Vec<String>> {
    let settings = crate::settings::read::<P>(json)?;
    P::check(&settings)?;
    Ok(settings)
}

/// The policy's verdict on one change, with its default settings.
///
/// # Panics
/// As [`verdicts`].
///
/// ```no_run
/// # use tread_guest_sdk::{Effect, Policy, test};
/// # fn example<Chrony: Policy>() {
/// let verdict = test::verdict::<Chrony>(test::file("/etc/chrony.conf", "server a", "server b"));
/// assert_eq!(verdict.effect(), Some(Effect::Restart));
/// # }
/// ```
pub fn verdict<P: Policy>(change: Change) -> Verdict {
    let mut verdicts = verdicts::<P>(&P::Settings::default(), vec![change], vec![]);
    verdicts.swap_remove(0)
}

/// The policy's verdicts on several changes, in the order of their ids, as
/// tread offers them.
///
/// # Panics
/// If the policy does not claim what it is offered, finds fault with the
/// settings, or gives an answer that tread would not accept: another number of
/// verdicts than changes, beyond the claim, without a reason, with a name that
/// is no unit's, with more than 64 actions, or with a boot without a drain.
///
/// ```no_run
/// # use tread_guest_sdk::{Policy, test};
/// # fn example<Chrony: Policy>() {
/// let verdicts = test::verdicts::<Chrony>(
///     &Default::default(),
///     vec![test::file("/etc/chrony.conf", "server a", "server b")],
///     vec![test::unchanged_file("/etc/chrony.d/more.conf", "server c")],
/// );
/// # }
/// ```
#[expect(clippy::panic, reason = "a failed check fails the test that made it")]
pub fn verdicts<P: Policy>(
    settings: &P::Settings,
    mut changes: Vec<Change>,
    mut unchanged: Vec<Entry>,
) -> Vec<Verdict> {
    if let Err(errors) = P::check(settings) {
        panic!("the settings are refused: {}", errors.join("; "));
    }
    changes.sort_by(|a, b| a.id.cmp(&b.id));
    unchanged.sort_by(|a, b| a.id.cmp(&b.id));
    for entry in &unchanged {
        let offered = |claim: &crate::Claim| claim.is_with_unchanged() && claim.matches(&entry.id);
        assert!(P::CLAIMS.iter().any(offered), "no claim offers {} unchanged", entry.id);
    }
    let context = Context { changes: &changes, unchanged: &unchanged };
    let verdicts = P::classify_all(settings, &context);
    assert_eq!(verdicts.len(), changes.len(), "one verdict for each change");
    for (change, verdict) in changes.iter().zip(&verdicts) {
        if let Err(fault) = accept::<P>(change, verdict) {
            panic!("{}: {fault}: {verdict:?}", change.id);
        }
    }
    verdicts
}

/// The actions of a verdict that tread takes.
const MOST_ACTIONS: usize = 64;

/// What tread would find wrong with a verdict.
fn accept<P: Policy>(change: &Change, verdict: &Verdict) -> Result<(), String> {
    let mut claims = P::CLAIMS.iter().filter(|claim| claim.matches(&change.id)).peekable();
    if claims.peek().is_none() {
        return Err("no claim matches".to_string());
    }
    let Some(effect) = verdict.effect() else { return Ok(()) };
    if !claims.any(|claim| (claim.least()..=claim.most()).contains(&effect)) {
        return Err("the answer is beyond the claim".to_string());
    }
    if verdict.reason().is_empty() {
        return Err("the verdict has no reason".to_string());
    }
    if verdict.reason().len() > 512 {
        return Err("the reason is longer than 512 bytes".to_string());
    }
    if verdict.actions().len() > MOST_ACTIONS {
        return Err(format!("a verdict may have {MOST_ACTIONS} actions"));
    }
    for action in verdict.actions() {
        match action {
            Action::Reload(unit) | Action::Restart(unit) => touch_gently(unit)
                .map_err(|why| format!("an action names {unit:?}, which {why}"))?,
            Action::RebootUndrained => {
                return Err("only the admin layer may ask for a boot without a drain".to_string());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Every verdict that `P` may give is at most `most`: for a test that keeps a
/// policy gentle.
///
/// ```no_run
/// # use tread_guest_sdk::{Effect, Policy, test};
/// # fn example<Chrony: Policy>() {
/// assert_eq!(test::most::<Chrony>(), Effect::Restart);
/// # }
/// ```
pub fn most<P: Policy>() -> Effect {
    P::CLAIMS.iter().map(crate::Claim::most).max().unwrap_or(Effect::None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Claim;

    struct Boots;

    impl Policy for Boots {
        type Settings = ();
        const NAME: &'static str = "boots";
        const VERSION: &'static str = "1.0.0";
        const SUMMARY: &'static str = "Boots";
        const CLAIMS: &'static [Claim] = &[Claim::on("file:/etc/*", Effect::None, Effect::Reboot)];

        fn classify((): &(), _: &Change, _: &Context<'_>) -> Verdict {
            Verdict::abstain()
        }
    }

    #[test]
    fn what_is_empty_is_absent_as_tread_offers_it() {
        let keys = list("ssh-keys:core", &["a"], &[]);
        assert_eq!((keys.edit(), &keys.after), (crate::Edit::Removed, &State::Absent));
        let image = text("os-image", "", "a");
        assert_eq!((image.edit(), &image.before), (crate::Edit::Added, &State::Absent));
    }

    #[test]
    fn what_tread_would_not_take_is_not_accepted() {
        let change = file("/etc/a", "a", "b");
        let reload = || Action::reload("a.service");
        for (actions, says) in [
            (vec![reload(); MOST_ACTIONS + 1], "64 actions"),
            (vec![Action::RebootUndrained], "only the admin layer"),
            (vec![Action::reload("poweroff.target")], "an action names \"poweroff.target\""),
        ] {
            let fault = accept::<Boots>(&change, &Verdict::act(actions, "because")).err();
            assert!(fault.unwrap_or_default().contains(says), "{says}");
        }
        assert!(accept::<Boots>(&change, &Verdict::act(vec![Action::Reboot], "a")).is_ok());
        assert!(accept::<Boots>(&change, &Verdict::act(vec![reload(); 64], "a")).is_ok());
    }
}
