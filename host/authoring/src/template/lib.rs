//! How gently a running node can take a change of what the policy `@NAME@` claims.

use tread_guest_sdk::{@IMPORTS@};

/// The policy.
pub struct @TYPE@;

settings! {
    /// What an admin can set, with the defaults.
    #[derive(Debug)]
    pub struct Settings {
@FIELDS@    }
}

impl Policy for @TYPE@ {
    type Settings = Settings;
    const NAME: &'static str = env!("CARGO_PKG_NAME");
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "@SUMMARY@";
    // Each claim with the least and the most disruptive answer that it may get:
    // whoever installs the policy reads there what it can do at most.
    const CLAIMS: &'static [Claim] = &[
@CLAIMS@    ];

@CHECK@    fn classify(settings: &Settings, change: &Change, _: &Context<'_>) -> Verdict {
@CLASSIFY@    }
}

export!(@TYPE@);
