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
//! - A change that a policy has no opinion on is left to others with
//!   [`Verdict::abstain`]; what nobody answers for costs a reboot.
//! - A panic, an endless loop or an answer beyond the claim costs a reboot for
//!   all that was offered, and the panic's text reaches the admin.
//! - There is no clock, no file and no network in there, and nothing is
//!   remembered from one call to the next.
//! - [`mod@test`] checks answers natively, with `cargo test`; `tread policy build`
//!   makes the component.
//!
//! The crate's manifest needs `crate-type = ["cdylib", "rlib"]` and, for a
//! small and quick component, a release profile with `lto = true`,
//! `panic = "abort"`, `strip = true` and `codegen-units = 1`.

#[cfg(any(test, target_arch = "wasm32"))]
mod bump;
mod change;
pub mod diff;
pub mod glob;
pub mod json;
mod policy;
mod settings;
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
