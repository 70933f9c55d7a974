//! Declares what it needs and what it says.
use tread_guest_sdk::{Change, Claim, Context, Effect, Policy, Verdict, export};

pub struct Declares;

const READ_AT_START: &str = "declares.service reads it when it starts";
const SAME: &str = "it says the same as before";

impl Policy for Declares {
    type Settings = ();
    const NAME: &'static str = "declares";
    const VERSION: &'static str = "1.0.0";
    const SUMMARY: &'static str = "Declares what it needs and what it says";
    const CLAIMS: &'static [Claim] =
        &[Claim::on("file:/etc/declares/*", Effect::None, Effect::Restart)];
    const NEEDS_SECRETS: bool = true;
    const REASONS: &'static [&'static str] = &[READ_AT_START, SAME];

    fn classify((): &(), change: &Change, _: &Context<'_>) -> Verdict {
        match (change.before.as_text(), change.after.as_text()) {
            (Some(before), Some(after)) if before.trim() == after.trim() => Verdict::nothing(SAME),
            (Some(_), Some(_)) => Verdict::restart("declares.service", READ_AT_START),
            _ => Verdict::abstain(),
        }
    }
}

export!(Declares);
