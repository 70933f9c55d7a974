//! Has no opinion, on anything.
use tread_guest_sdk::{Change, Claim, Context, Effect, Policy, Verdict, export};

pub struct Abstains;

impl Policy for Abstains {
    type Settings = ();
    const NAME: &'static str = "abstains";
    const VERSION: &'static str = "1.0.0";
    const SUMMARY: &'static str = "Has no opinion";
    const CLAIMS: &'static [Claim] = &[
        Claim::on("file:/**", Effect::None, Effect::None),
        Claim::on("unit:*", Effect::None, Effect::None),
        Claim::on("ssh-keys:*", Effect::None, Effect::None),
        Claim::on("password:*", Effect::None, Effect::None),
        Claim::on("kernel-arguments", Effect::None, Effect::None),
        Claim::on("kernel-type", Effect::None, Effect::None),
        Claim::on("os-image", Effect::None, Effect::None),
        Claim::on("extensions", Effect::None, Effect::None),
    ];

    fn classify((): &(), _: &Change, _: &Context<'_>) -> Verdict {
        Verdict::abstain()
    }
}

export!(Abstains);
