//! Units that systemd makes of what it is told, without a file.

use super::bus::Unanswered;
use super::manager::Manager;
use std::time::Duration;
use tokio::time::Instant;
use zbus::{OwnedObjectPath, Variant};

/// A unit's properties.
pub(crate) struct Properties<'p>(Vec<(&'static str, Variant<'p>)>);

impl<'p> Properties<'p> {
    /// A service that runs commands one after the other and ends after the last one. One
    /// that lasts longer is ended by systemd.
    pub(crate) fn once(description: &str, commands: Vec<Exec>, limit: Duration) -> Properties<'p> {
        let micros = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
        Properties::service(description, "oneshot", commands)
            .with("TimeoutStartUSec", micros)
            // From SIGTERM to SIGKILL.
            .with("TimeoutStopUSec", 10_000_000_u64)
    }

    /// A service of a type: `oneshot`, `exec`.
    pub(crate) fn service(description: &str, of_type: &str, commands: Vec<Exec>) -> Properties<'p> {
        Properties(Vec::new())
            .with("Description", description.to_owned())
            .with("Type", of_type.to_owned())
            .with("ExecStart", commands)
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Variant<'p>>) -> Self {
        self.0.push((name, value.into()));
        self
    }
}

/// A command as systemd takes it: the program, all words, and whether its failure counts
/// for nothing.
pub(crate) type Exec = (String, Vec<String>, bool);

pub(crate) fn exec(argv: &[&str], may_fail: bool) -> Exec {
    // Systemd puts variables in for `$`.
    let words: Vec<String> = argv.iter().map(|word| word.replace('$', "$$")).collect();
    let program = argv.first().copied().unwrap_or_default().to_owned();
    (program, words, may_fail)
}

impl Manager {
    /// Starts a unit that has no file. Its job is not waited for.
    pub(crate) async fn start_transient(
        &self,
        name: &str,
        properties: &Properties<'_>,
        deadline: Instant,
    ) -> Result<OwnedObjectPath, Unanswered> {
        let auxiliary: [(&str, Vec<(&str, Variant<'_>)>); 0] = [];
        let body = (name, "fail", &properties.0, &auxiliary[..]);
        self.call("StartTransientUnit", &body, deadline).await
    }
}
