//! How a host lets its trust store follow its anchors.

use super::choose::Ask;
use super::command::Command;
use super::manager::Manager;
use super::problem::{Problem, What};
use super::unit_step::Outcome;
use std::time::Duration;

/// What distributions call the command: those of Red Hat, and Debian's.
const COMMANDS: [&str; 3] =
    ["/usr/bin/update-ca-trust", "/usr/sbin/update-ca-trust", "/usr/sbin/update-ca-certificates"];

/// The command that does it on a host; `is_there` is whether the host has a file.
/// CoreOS has a unit for it, `coreos-update-ca-trust.service`. Systemd skips that in each boot but
/// the first, and where the last anchor went, and calls it done: so the command that it runs is run
/// here instead.
pub fn ca_trust(is_there: impl Fn(&str) -> bool) -> Option<&'static str> {
    COMMANDS.into_iter().find(|command| is_there(command))
}

impl Manager {
    /// The step `update-ca-trust` of an operation.
    pub async fn update_ca_trust(
        &self,
        operation: &str,
        is_there: impl Fn(&str) -> bool,
        limit: Duration,
    ) -> Result<Outcome, Problem> {
        let Some(program) = ca_trust(is_there) else {
            let why = format!("this host has none of {}. Install one of them", COMMANDS.join(", "));
            return Err(Problem::new("update-ca-trust", What::NoWay(why)));
        };
        let unit = Command::unit_of(operation, "update-ca-trust");
        self.command_anew(&Command { unit, argv: vec![program.to_owned()], limit }).await?;
        Ok(Outcome::Done { did: Ask::Restart, note: Some(format!("by {program}")) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trust_store_follows_by_the_distributions_command() {
        let debian = |path: &str| path == "/usr/sbin/update-ca-certificates";
        assert_eq!(ca_trust(debian), Some("/usr/sbin/update-ca-certificates"));
        assert_eq!(ca_trust(|_| true), Some("/usr/bin/update-ca-trust"));
        assert_eq!(ca_trust(|_| false), None);
    }
}
