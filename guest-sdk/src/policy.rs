//! What a policy author writes.

use crate::{Change, Context, Effect, Verdict};
use serde::{Serialize, de::DeserializeOwned};

/// Changes that a policy wants to see, and the range of its answers.
///
/// ```
/// use tread_guest_sdk::{Claim, Effect};
/// const CLAIM: Claim = Claim::on("file:/etc/chrony.conf", Effect::None, Effect::Restart);
/// assert!(CLAIM.matches("file:/etc/chrony.conf"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    changes: &'static str,
    least: Effect,
    most: Effect,
    with_unchanged: bool,
}

impl Claim {
    /// A claim on `KIND` or `KIND:GLOB`, with the least and the most
    /// disruptive answer that the policy may give. An answer outside the range
    /// counts as a failure of the policy and costs a reboot; abstaining is
    /// always within it.
    ///
    /// In the glob `*` and `?` stay within one path component, `**` crosses
    /// components, `[]` and `{}` are as usual.
    ///
    /// ```
    /// use tread_guest_sdk::{Claim, Effect};
    /// let claim = Claim::on("ssh-keys:*", Effect::None, Effect::None);
    /// assert_eq!(claim.changes(), "ssh-keys:*");
    /// ```
    pub const fn on(changes: &'static str, least: Effect, most: Effect) -> Claim {
        Claim { changes, least, most, with_unchanged: false }
    }

    /// Offers what this claim matches also when it did not change, as
    /// [`Context::unchanged`]: for policies that compare a whole made of
    /// several files.
    ///
    /// ```
    /// use tread_guest_sdk::{Claim, Effect};
    /// let claim = Claim::on("file:/etc/app.d/*", Effect::None, Effect::Reload).with_unchanged();
    /// assert!(claim.is_with_unchanged());
    /// ```
    #[must_use]
    pub const fn with_unchanged(mut self) -> Claim {
        self.with_unchanged = true;
        self
    }

    /// Which changes.
    ///
    /// ```
    /// use tread_guest_sdk::{Claim, Effect};
    /// assert_eq!(Claim::on("unit:*", Effect::None, Effect::Reboot).changes(), "unit:*");
    /// ```
    pub const fn changes(&self) -> &'static str {
        self.changes
    }

    /// The least disruptive answer.
    ///
    /// ```
    /// use tread_guest_sdk::{Claim, Effect};
    /// assert_eq!(Claim::on("unit:*", Effect::None, Effect::Reboot).least(), Effect::None);
    /// ```
    pub const fn least(&self) -> Effect {
        self.least
    }

    /// The most disruptive answer.
    ///
    /// ```
    /// use tread_guest_sdk::{Claim, Effect};
    /// assert_eq!(Claim::on("unit:*", Effect::None, Effect::Reboot).most(), Effect::Reboot);
    /// ```
    pub const fn most(&self) -> Effect {
        self.most
    }

    /// Whether what did not change is offered too.
    ///
    /// ```
    /// use tread_guest_sdk::{Claim, Effect};
    /// assert!(!Claim::on("unit:*", Effect::None, Effect::Reboot).is_with_unchanged());
    /// ```
    pub const fn is_with_unchanged(&self) -> bool {
        self.with_unchanged
    }

    /// Whether a change with this id is claimed.
    ///
    /// ```
    /// use tread_guest_sdk::{Claim, Effect};
    /// let claim = Claim::on("file:/etc/app.d/*", Effect::None, Effect::Reload);
    /// assert!(claim.matches("file:/etc/app.d/a.conf"));
    /// assert!(!claim.matches("file:/etc/app.d/more/a.conf"));
    /// assert!(!claim.matches("unit:app.service"));
    /// ```
    pub fn matches(&self, id: &str) -> bool {
        match (self.changes.split_once(':'), id.split_once(':')) {
            (Some((kind, glob)), Some((of, name))) => {
                kind == of && crate::glob::matches(glob, name)
            }
            _ => self.changes == id,
        }
    }
}

/// A policy: how gently a running node can take the changes that it claims.
///
/// Implement it on a unit struct and hand that to [`export!`](crate::export).
///
/// ```
/// use tread_guest_sdk::{Change, Claim, Context, Effect, Policy, Verdict, test};
///
/// struct Chrony;
///
/// impl Policy for Chrony {
///     type Settings = ();
///     const NAME: &'static str = "chrony";
///     const VERSION: &'static str = "1.0.0";
///     const SUMMARY: &'static str = "Restarts chronyd when its configuration changes";
///     const CLAIMS: &'static [Claim] =
///         &[Claim::on("file:/etc/chrony.conf", Effect::Restart, Effect::Restart)];
///
///     fn classify(_: &(), _: &Change, _: &Context<'_>) -> Verdict {
///         Verdict::restart("chronyd.service", "chronyd reads its configuration only when it starts")
///     }
/// }
///
/// tread_guest_sdk::export!(Chrony);
///
/// let verdict = test::verdict::<Chrony>(test::file("/etc/chrony.conf", "server a", "server b"));
/// assert_eq!(verdict.effect(), Some(Effect::Restart));
/// ```
pub trait Policy {
    /// The settings that an admin can give: a struct whose serde form is a JSON
    /// object that holds every field, with the defaults as its [`Default`].
    /// `()` for a policy that takes none.
    ///
    /// A setting that the struct does not have is an error before the policy
    /// is used, one that is left out has its default.
    type Settings: DeserializeOwned + Serialize + Default;

    /// Lower-case letters, digits and `-`, 63 characters at most.
    const NAME: &'static str;
    /// A semantic version: `1.4.0`.
    const VERSION: &'static str;
    /// One line for the person who lists the policies.
    const SUMMARY: &'static str;
    /// What the policy wants to see: at least one claim, 256 at most.
    const CLAIMS: &'static [Claim];

    /// Whether it can say nothing of a secret without reading it: of files that
    /// others on the node cannot read, and of passwords. A plan says then what an
    /// admin can allow.
    const NEEDS_SECRETS: bool = false;
    /// Reasons that hold no contents, word by word as the verdicts say them. Of a
    /// call in which the policy could read a secret only these are shown.
    const REASONS: &'static [&'static str] = &[];

    /// The JSON Schema of the settings. Without one of your own, it is made
    /// from the types of the defaults.
    ///
    /// ```
    /// use tread_guest_sdk::{Change, Claim, Context, Policy, Verdict};
    ///
    /// #[derive(Default, serde::Serialize, serde::Deserialize)]
    /// struct Settings {
    ///     drain: String,
    /// }
    ///
    /// struct Careful;
    ///
    /// impl Policy for Careful {
    ///     type Settings = Settings;
    ///     const NAME: &'static str = "careful";
    ///     const VERSION: &'static str = "1.0.0";
    ///     const SUMMARY: &'static str = "Drains when it is told to";
    ///     const CLAIMS: &'static [Claim] = &[];
    ///
    ///     fn schema() -> Option<String> {
    ///         let drain = r#"{"enum": ["never", "always"], "description": "When pods move first."}"#;
    ///         Some(format!(r#"{{"type": "object", "properties": {{"drain": {drain}}}}}"#))
    ///     }
    ///
    ///     fn classify(_: &Settings, _: &Change, _: &Context<'_>) -> Verdict {
    ///         Verdict::abstain()
    ///     }
    /// }
    /// assert!(Careful::schema().unwrap().contains("never"));
    /// ```
    fn schema() -> Option<String> {
        None
    }

    /// Checks what the types cannot say. Each error is one sentence that names
    /// the setting and what it may be.
    ///
    /// # Errors
    /// What is wrong with the settings.
    ///
    /// ```
    /// # use tread_guest_sdk::{Change, Claim, Context, Policy, Verdict, test};
    /// # struct App;
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Settings {
    ///     service: String,
    /// }
    /// # impl Default for Settings {
    /// #     fn default() -> Settings { Settings { service: "app.service".into() } }
    /// # }
    ///
    /// impl Policy for App {
    /// #     const NAME: &'static str = "app";
    /// #     const VERSION: &'static str = "1.0.0";
    /// #     const SUMMARY: &'static str = "Restarts the app";
    /// #     const CLAIMS: &'static [Claim] = &[];
    /// #     fn classify(_: &Settings, _: &Change, _: &Context<'_>) -> Verdict { Verdict::abstain() }
    ///     type Settings = Settings;
    ///     fn check(settings: &Settings) -> Result<(), Vec<String>> {
    ///         match settings.service.ends_with(".service") {
    ///             true => Ok(()),
    ///             false => Err(vec!["service: expected a unit such as app.service".into()]),
    ///         }
    ///     }
    ///     // ...
    /// }
    /// assert!(test::settings::<App>(r#"{"service": "app"}"#).is_err());
    /// ```
    fn check(settings: &Self::Settings) -> Result<(), Vec<String>> {
        let _ = settings;
        Ok(())
    }

    /// Answers for one change. `context` holds the others that are claimed.
    ///
    /// ```
    /// use tread_guest_sdk::{Change, Context, Edit, Verdict};
    ///
    /// fn classify(_: &(), change: &Change, _: &Context<'_>) -> Verdict {
    ///     match change.edit() {
    ///         Edit::Removed => Verdict::abstain(),
    ///         _ => Verdict::reload("app.service", "the app reads its configuration again"),
    ///     }
    /// }
    /// # use tread_guest_sdk::test;
    /// # let change = test::file("/etc/app.conf", "a", "b");
    /// # let context = Context { changes: &[], unchanged: &[] };
    /// # assert_eq!(classify(&(), &change, &context).actions().len(), 1);
    /// ```
    fn classify(settings: &Self::Settings, change: &Change, context: &Context<'_>) -> Verdict;

    /// Answers for all changes, one verdict for each, in their order. Write it
    /// only if the changes must be seen together.
    ///
    /// ```
    /// use tread_guest_sdk::{Context, Verdict};
    ///
    /// fn classify_all(_: &(), context: &Context<'_>) -> Vec<Verdict> {
    ///     // One by one nobody can see how many there are.
    ///     let many = context.changes.len() > 10;
    ///     let verdict = |_| match many {
    ///         true => Verdict::restart("app.service", "starting anew is quicker for so many files"),
    ///         false => Verdict::reload("app.service", "the app reads the file again"),
    ///     };
    ///     context.changes.iter().map(verdict).collect()
    /// }
    /// # let changes = [tread_guest_sdk::test::file("/etc/app.d/a", "a", "b")];
    /// # assert_eq!(classify_all(&(), &Context { changes: &changes, unchanged: &[] }).len(), 1);
    /// ```
    fn classify_all(settings: &Self::Settings, context: &Context<'_>) -> Vec<Verdict> {
        context.changes.iter().map(|change| Self::classify(settings, change, context)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_matches_its_own_kind_only() {
        for (claim, id, matches) in [
            ("kernel-arguments", "kernel-arguments", true),
            ("kernel-arguments", "kernel-type", false),
            ("ssh-keys:*", "ssh-keys:core", true),
            ("ssh-keys:*", "password:core", false),
            ("unit:getty@*.service", "unit:getty@tty1.service", true),
            ("file:/etc/**", "file:/etc/a/b", true),
            ("file:/etc/*", "file:/etc/a/b", false),
            ("file:/etc/[ab].conf", "file:/etc/b.conf", true),
            ("file:/etc/{x,y}.conf", "file:/etc/y.conf", true),
            ("file:/etc/Motd", "file:/etc/motd", false),
        ] {
            let claim = Claim::on(claim, Effect::None, Effect::Refuse);
            assert_eq!(claim.matches(id), matches, "{} {id}", claim.changes());
        }
    }
}
