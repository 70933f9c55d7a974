//! How a host lets its trust store follow its anchors.

use super::choose::Ask;
use super::command::Command;
use super::facts::{Load, UnitFacts};
use super::manager::Manager;
use super::problem::{Problem, What};
use super::unit_step::Outcome;
use std::time::Duration;

/// OpenShift's unit.
const UNIT: &str = "coreos-update-ca-trust.service";
/// What distributions call the command: those of Red Hat, and Debian's.
const COMMANDS: [&str; 3] =
    ["/usr/bin/update-ca-trust", "/usr/sbin/update-ca-trust", "/usr/sbin/update-ca-certificates"];

/// What does it on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaTrust {
    /// This unit, by being restarted.
    Unit(&'static str),
    /// This command.
    Command(&'static str),
}

/// What does it here: OpenShift's unit where it is, else the distribution's command.
pub fn ca_trust(unit: &UnitFacts, is_there: impl Fn(&str) -> bool) -> Option<CaTrust> {
    if unit.load == Load::Loaded {
        return Some(CaTrust::Unit(UNIT));
    }
    COMMANDS.into_iter().find(|command| is_there(command)).map(CaTrust::Command)
}

impl Manager {
    /// What does it on this host; `is_there` is whether the host has a file.
    pub async fn ca_trust(
        &self,
        is_there: impl Fn(&str) -> bool,
    ) -> Result<Option<CaTrust>, Problem> {
        Ok(ca_trust(&self.facts(UNIT).await?, is_there))
    }

    /// The step `update-ca-trust` of an operation.
    pub async fn update_ca_trust(
        &self,
        operation: &str,
        is_there: impl Fn(&str) -> bool,
        limit: Duration,
    ) -> Result<Outcome, Problem> {
        match self.ca_trust(is_there).await? {
            Some(CaTrust::Unit(unit)) => self.unit_step(Ask::Restart, unit, limit).await,
            Some(CaTrust::Command(program)) => {
                let unit = Command::unit_of(operation, "update-ca-trust");
                self.command_anew(&Command { unit, argv: vec![program.to_owned()], limit }).await?;
                Ok(Outcome::Done { did: Ask::Restart, note: Some(format!("by {program}")) })
            }
            None => Err(Problem::new(
                "update-ca-trust",
                What::NoWay(format!(
                    "this host has neither {UNIT} nor one of {}. Install one of them",
                    COMMANDS.join(", ")
                )),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openshifts_unit_comes_before_the_distributions_command() {
        let there = UnitFacts { load: Load::Loaded, ..UnitFacts::default() };
        let masked = UnitFacts { load: Load::Masked, ..UnitFacts::default() };
        let debian = |path: &str| path == "/usr/sbin/update-ca-certificates";
        let command = Some(CaTrust::Command("/usr/sbin/update-ca-certificates"));
        assert_eq!(ca_trust(&there, |_| true), Some(CaTrust::Unit(UNIT)));
        assert_eq!(ca_trust(&masked, debian), command);
        assert_eq!(ca_trust(&UnitFacts::default(), debian), command);
        let first = Some(CaTrust::Command("/usr/bin/update-ca-trust"));
        assert_eq!(ca_trust(&UnitFacts::default(), |_| true), first);
        assert_eq!(ca_trust(&UnitFacts::default(), |_| false), None);
    }
}
