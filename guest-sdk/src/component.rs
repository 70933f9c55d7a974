//! What a component exports, for any policy.

use crate::{Change, Context, Entry, Policy, settings};
use bindings::exports::tread::policy::classifier::Guest;
use bindings::exports::tread::policy::declarations::{Declared, Guest as Declaring};
use bindings::tread::policy::characters::put;
use std::fmt::{self, Write as _};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

/// The words of the contract: tread's own types where they are the same, so
/// that nothing is converted on the way in.
pub mod wire {
    pub use crate::{Action, Answer, Change, Content, Dropin, Effect, Entry, File, State, Unit};

    /// `claim`
    pub struct Claim {
        pub changes: String,
        pub least: Effect,
        pub most: Effect,
        pub with_unchanged: bool,
    }

    /// `settings-description`
    pub struct SettingsDescription {
        pub defaults: String,
        pub schema: String,
    }

    /// `description`
    pub struct Description {
        pub name: String,
        pub version: String,
        pub summary: String,
        pub claims: Vec<Claim>,
        pub settings: Option<SettingsDescription>,
    }

    /// `verdict`
    pub struct Verdict {
        pub change: u32,
        pub answer: Answer,
        pub reason: String,
    }
}

// Lifting and lowering reads and writes raw memory by the canonical ABI. The
// code is generated from the contract, by a tool that no policy has to compile:
// `tests/bindings.rs` holds it against what the tool makes.
#[rustfmt::skip]
#[allow(unsafe_code, missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
pub mod bindings;
#[allow(unsafe_code)]
pub mod rt;

/// The component of the policy `P`.
pub struct Component<P>(PhantomData<P>);

impl<P: Policy> Declaring for Component<P> {
    fn declare() -> Declared {
        carry_panics_out();
        Declared {
            needs_secrets: P::NEEDS_SECRETS,
            reasons: P::REASONS.iter().map(ToString::to_string).collect(),
        }
    }
}

impl<P: Policy> Guest for Component<P> {
    fn describe() -> wire::Description {
        carry_panics_out();
        let claim = |claim: &crate::Claim| wire::Claim {
            changes: claim.changes().to_string(),
            least: claim.least(),
            most: claim.most(),
            with_unchanged: claim.is_with_unchanged(),
        };
        wire::Description {
            name: P::NAME.to_string(),
            version: P::VERSION.to_string(),
            summary: P::SUMMARY.to_string(),
            claims: P::CLAIMS.iter().map(claim).collect(),
            settings: settings::described::<P>()
                .map(|(defaults, schema)| wire::SettingsDescription { defaults, schema }),
        }
    }

    fn check_settings(text: String) -> Result<(), Vec<String>> {
        carry_panics_out();
        P::check(&settings::read::<P>(&text)?)
    }

    fn classify(text: String, changes: Vec<Change>, unchanged: Vec<Entry>) -> Vec<wire::Verdict> {
        carry_panics_out();
        // The instance ends with this call: freeing one by one would be work
        // for nothing.
        let (changes, unchanged) = (ManuallyDrop::new(changes), ManuallyDrop::new(unchanged));
        let settings = ManuallyDrop::new(settings_of_call::<P>(&text));
        let verdicts =
            P::classify_all(&settings, &Context { changes: &changes, unchanged: &unchanged });
        assert_eq!(verdicts.len(), changes.len(), "classify_all: one verdict for each change");
        let number = |(change, verdict): (u32, crate::Verdict)| {
            let (answer, reason) = verdict.into_parts();
            wire::Verdict { change, answer, reason }
        };
        (0..).zip(verdicts).map(number).collect()
    }
}

/// They were checked before; so they are read straight into their type, and
/// only if that fails with the care that finds the reason.
#[allow(clippy::panic)] // The only way to say it: the contract has no other error here.
fn settings_of_call<P: Policy>(text: &str) -> P::Settings {
    if !settings::taken::<P>() {
        return P::Settings::default();
    }
    crate::json::read(text)
        .or_else(|_| settings::read::<P>(text))
        .unwrap_or_else(|errors| panic!("settings: {}", errors.join("; ")))
}

/// From here on a panic's text and place reach tread.
fn carry_panics_out() {
    std::panic::set_hook(Box::new(|panic| {
        // A character is always taken.
        let _ = write!(Line, "{panic}");
    }));
}

/// A line of the log, which ends with the call: a panic is the end of it. It goes over character by
/// character, since a policy without the function that takes a text is called faster.
struct Line;

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().map(|it| if it == '\n' { ' ' } else { it }).for_each(put);
        Ok(())
    }
}
