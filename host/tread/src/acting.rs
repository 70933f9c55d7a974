//! How an installation acts on nodes, as `tread serve` and `tread manifests` are told.

use clap::Args;
use k8s_openapi::jiff::SignedDuration;
use std::time::Duration;
use tread_console::exit::UsageError;
use tread_kube::node_lease::NAMESPACE;

/// The longest that a node may be waited for until it has been Ready for long enough.
const LONGEST_READY: Duration = Duration::from_secs(60 * 60);
/// The least that a boot, the proof after it and the way back take: the proof may take ten
/// minutes, and the way back has one of its own.
const SHORTEST_BOOT: Duration = Duration::from_secs(25 * 60);
/// The longest: half an hour later a node that does not come back is taken for lost.
const LONGEST_BOOT: Duration = Duration::from_secs(24 * 60 * 60);

/// How nodes are acted on.
#[derive(Debug, Clone, Default, Args)]
pub struct ActingArgs {
    /// The namespace of the nodes' Leases [default: medik8s-leases]
    #[arg(long, value_name = "NAME", value_parser = crate::namespace::namespace)]
    pub lease_namespace: Option<String>,
    /// In the mode enforce, for how long a node has to be Ready before it is done
    /// [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = ready_for)]
    pub ready_for: Option<Duration>,
    /// In the mode enforce, how long a boot, the proof after it and the way back may
    /// take together, for which a node's Lease is held [default: 45m]
    #[arg(long, value_name = "TIME", value_parser = boot_for)]
    pub boot_for: Option<Duration>,
}

impl ActingArgs {
    /// The namespace of the nodes' Leases.
    pub(crate) fn lease_namespace(&self) -> &str {
        self.lease_namespace.as_deref().unwrap_or(NAMESPACE)
    }

    /// Whether they can be meant where nodes are not acted on.
    pub(crate) fn fit_advise(&self) -> Result<(), UsageError> {
        if self.ready_for.is_none() && self.boot_for.is_none() {
            return Ok(());
        }
        Err(UsageError("--ready-for and --boot-for are for --mode enforce".to_owned()))
    }
}

fn time(text: &str) -> Result<Duration, UsageError> {
    let span: Option<SignedDuration> = text.parse().ok();
    let span = span.and_then(|span| Duration::try_from(span).ok());
    span.ok_or_else(|| UsageError("expected a time such as 90s, 10m or 1h 30m".to_owned()))
}

fn ready_for(text: &str) -> Result<Duration, UsageError> {
    match time(text)? {
        time if time > LONGEST_READY => Err(UsageError("1h is the longest".to_owned())),
        time => Ok(time),
    }
}

fn boot_for(text: &str) -> Result<Duration, UsageError> {
    match time(text)? {
        time if time < SHORTEST_BOOT => Err(UsageError(
            "25m is the shortest: the proof after a boot may take 10m, and so may the one after \
             the way back"
                .to_owned(),
        )),
        time if time > LONGEST_BOOT => Err(UsageError("24h is the longest".to_owned())),
        time => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::{boot_for, ready_for};
    use std::time::Duration;

    #[test]
    fn times_are_read_as_people_write_them_and_held_within_what_can_be_meant() {
        assert_eq!(ready_for("0s").unwrap(), Duration::ZERO);
        assert_eq!(ready_for("1m 30s").unwrap(), Duration::from_secs(90));
        assert_eq!(boot_for("2h").unwrap(), Duration::from_secs(7200));
        for (text, why) in [("2h", "longest"), ("-5s", "such as"), ("soon", "such as")] {
            assert!(ready_for(text).unwrap_err().0.contains(why), "{text}");
        }
        for (text, why) in [("10m", "shortest"), ("25h", "longest"), ("", "such as")] {
            assert!(boot_for(text).unwrap_err().0.contains(why), "{text}");
        }
    }
}
