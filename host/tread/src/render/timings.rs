//! How long a plan took, and each call of a policy for it.

use anyhow::Result;
use serde::Serialize;
use std::io::Write;
use std::time::Duration;
use tread_console::sentence::count;
use tread_engine::planner::{CallRecord, Used};

/// How long everything took.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Timings {
    /// Reading both sides.
    pub(crate) reading: Duration,
    /// Getting the policies and the sandbox ready.
    pub(crate) starting: Duration,
    /// Comparing, digests included.
    pub(crate) comparing: Duration,
    /// Each call of a policy.
    pub(crate) calls: Vec<CallRecord>,
    /// Each call for what policies in the shadow would have decided.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) shadow_calls: Vec<CallRecord>,
}

/// Prints them for a person.
pub(super) fn print_timings(out: &mut impl Write, timings: &Timings) -> Result<()> {
    let ms = |duration: Duration| format!("{:.3} ms", duration.as_secs_f64() * 1e3);
    writeln!(out, "reading    {}", ms(timings.reading))?;
    writeln!(out, "starting   {}", ms(timings.starting))?;
    writeln!(out, "comparing  {}", ms(timings.comparing))?;
    let calls = timings.calls.iter().map(|call| ("", call));
    let in_shadow = timings.shadow_calls.iter().map(|call| ("in the shadow, ", call));
    for (place, call) in calls.chain(in_shadow) {
        let used = match &call.used {
            Some(Used { call, fuel }) => format!("asking {}, fuel {fuel}", ms(*call)),
            None => "what it used is not shown, since it was offered a secret".to_owned(),
        };
        let (offered, load) = (count(call.offered, "change"), ms(call.load));
        writeln!(out, "{place}{}: {offered}, loading {load}, {used}", call.policy)?;
    }
    Ok(())
}
