//! Write a tread policy in a few lines of Rust.
//!
//! A policy says how gently a running node can take a change of its
//! configuration. It is one type that implements [`Policy`], and one line that
//! makes it a component:
//!
//! ```
//! use tread_guest_sdk::{Change, Claim, Context, Effect, Policy, Verdict, diff};
//!
//! struct Chrony;
//!
//! impl Policy for Chrony {
//!     type Settings = ();
//!     const NAME: &'static str = "chrony";
//!     const VERSION: &'static str = "1.0.0";
//!     const SUMMARY: &'static str = "Restarts chronyd when its configuration changes";
//!     const CLAIMS: &'static [Claim] =
//!         &[Claim::on("file:/etc/chrony.conf", Effect::None, Effect::Restart)];
//!
//!     fn classify(_: &(), change: &Change, _: &Context<'_>) -> Verdict {
//!         let (Some(before), Some(after)) = (change.before.as_text(), change.after.as_text()) else {
//!             return Verdict::abstain();
//!         };
//!         if diff::lines_without(before, after, &["#"]).is_empty() {
//!             return Verdict::nothing("only comments differ");
//!         }
//!         Verdict::restart("chronyd.service", "chronyd reads its configuration only when it starts")
//!     }
//! }
//!
//! tread_guest_sdk::export!(Chrony);
//!
//! # use tread_guest_sdk::test;
//! let change = test::file("/etc/chrony.conf", "server a", "# ours\nserver a");
//! assert_eq!(test::verdict::<Chrony>(change).effect(), Some(Effect::None));
//! ```
//!
//! # The way
//!
//! 1. `tread policy new chrony --claim file:/etc/chrony.conf` makes a crate like
//!    this, with settings, unit tests and cases; nothing has to be deleted.
//! 2. [`Policy::CLAIMS`] says which changes it wants to see, each with the range
//!    of its answers; [`Policy::classify`] compares both sides of a [`Change`]
//!    and gives a [`Verdict`]. [`diff`] and [`json`], with a feature `toml`, help
//!    to compare what a file means; [`Context`] holds what else changes or stays.
//! 3. `cargo test` runs it natively: [`mod@test`] makes changes, and holds the
//!    answers to what tread itself would hold them to.
//! 4. `tread policy test` builds the component and runs its cases in the sandbox;
//!    `tread plan --policy chrony.wasm old.yaml new.yaml` shows it at work.
//! 5. `tread policy pack` makes a ConfigMap of it.
//!
//! [`good_policies`] is what to keep in mind meanwhile.
//!
//! # What holds in the sandbox
//!
//! - A change that a policy has no opinion on is left to others with
//!   [`Verdict::abstain`]; what nobody answers for costs a reboot.
//! - A panic, an endless loop or an answer beyond the claim costs a reboot for
//!   all that was offered, and the panic's text reaches the admin.
//! - There is no clock, no file and no network in there, and nothing is
//!   remembered from one call to the next.
//! - In place of files that others on the node cannot read a policy mostly sees a
//!   token: see [`Content`], [`Policy::NEEDS_SECRETS`] and [`Policy::REASONS`].
//!
//! # The crate's manifest
//!
//! It needs `crate-type = ["cdylib", "rlib"]` and, for a small and quick
//! component, a release profile with `lto = true`, `panic = "abort"`,
//! `strip = true` and `codegen-units = 1`. `tread policy new` writes all that.

#[cfg(any(test, target_arch = "wasm32"))]
mod bump;
mod change;
pub mod diff;
pub mod glob;
/// What makes a good policy.
///
#[doc = include_str!("../GOOD_POLICIES.md")]
pub mod good_policies {}
pub mod json;
mod policy;
mod settings;
mod settings_macro;
// Public for tread, which builds the same file.
#[doc(hidden)]
pub mod units;
mod verdict;

#[cfg(target_arch = "wasm32")]
mod allocator;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod component;
#[cfg(not(target_arch = "wasm32"))]
pub mod test;
#[cfg(feature = "toml")]
pub mod toml;

pub use change::{Change, Content, Context, Dropin, Edit, Entry, File, State, Unit};
pub use policy::{Claim, Policy};
#[doc(hidden)]
pub use serde;
#[doc(hidden)]
pub use settings_macro::field_name;
pub use verdict::{Action, Answer, Effect, Verdict};

/// Makes a [`Policy`] what this crate's component exports. Once a crate. On
/// any other target than WebAssembly it does nothing.
///
/// ```
/// # use tread_guest_sdk::{Change, Claim, Context, Policy, Verdict};
/// # struct Quiet;
/// # impl Policy for Quiet {
/// #     type Settings = ();
/// #     const NAME: &'static str = "quiet";
/// #     const VERSION: &'static str = "1.0.0";
/// #     const SUMMARY: &'static str = "Says nothing";
/// #     const CLAIMS: &'static [Claim] = &[];
/// #     fn classify(_: &(), _: &Change, _: &Context<'_>) -> Verdict { Verdict::abstain() }
/// # }
/// tread_guest_sdk::export!(Quiet);
/// ```
#[macro_export]
macro_rules! export {
    ($policy:ty) => {
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code)]
        const _: () = {
            type Component = $crate::component::Component<$policy>;
            $crate::component::bindings::export_component!(
                Component with_types_in $crate::component::bindings
            );
        };
    };
}
