//! One control plane for all the tests of a binary.

use std::sync::OnceLock;

use anyhow::{Result, anyhow};

use crate::{ControlPlane, Options};

/// A control plane that starts when it is first asked for, and ends with the
/// process: a static is not dropped, but its supervisor sees the process end.
///
/// ```no_run
/// use tread_test_bed::{ControlPlane, Shared};
///
/// static BED: Shared = Shared::new(|| ControlPlane::options().with_controllers());
///
/// fn a_test() -> anyhow::Result<()> {
///     let namespace = BED.get()?.namespace("a-test")?;
///     // …
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Shared {
    options: fn() -> Options,
    plane: OnceLock<Result<ControlPlane, String>>,
}

impl Shared {
    /// One to be started with these options.
    pub const fn new(options: fn() -> Options) -> Shared {
        Shared { options, plane: OnceLock::new() }
    }

    /// The control plane, started by the first who asks.
    ///
    /// # Errors
    /// It did not start; everybody gets to see why.
    pub fn get(&self) -> Result<&ControlPlane> {
        self.plane
            .get_or_init(|| (self.options)().start().map_err(|error| format!("{error:?}")))
            .as_ref()
            .map_err(|error| anyhow!("{error}"))
    }
}

/// The control plane with all its parts that the tests of this process share.
///
/// # Errors
/// As [`Shared::get`].
pub fn shared() -> Result<&'static ControlPlane> {
    static WHOLE: Shared =
        Shared::new(|| ControlPlane::options().with_scheduler().with_simulated_nodes());
    WHOLE.get()
}
