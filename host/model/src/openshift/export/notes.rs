//! Where OpenShift's object means something else than it does in tread.

use super::entry::{Act, runs_something};
use super::exporting::Exporting;
use super::object::NodeDisruptionPolicy;
use super::voice::Says;
use crate::description::Claim;
use crate::effect::Effect;

impl Exporting<'_> {
    pub(super) fn notes(&self, policy: &NodeDisruptionPolicy) -> Vec<String> {
        let mut notes = Vec::new();
        let lists = policy.files.iter().map(|it| &it.actions);
        let lists = lists.chain(policy.units.iter().map(|it| &it.actions));
        let running = lists.filter(|list| runs_something(list)).count();
        if running > 1 {
            notes.push(
                "Where several entries match one change, OpenShift runs the actions of each, in no \
                 fixed order and as often as they stand there; tread runs each once, in order."
                    .to_owned(),
            );
        }
        let lists = policy.files.iter().map(|it| &it.actions);
        let lists = lists.chain(policy.units.iter().map(|it| &it.actions));
        if lists.chain(policy.sshkey.iter().map(|it| &it.actions)).any(|it| *it == [Act::Reboot]) {
            notes.push(
                "An entry that says Reboot keeps a wider one, or a default of OpenShift's, from \
                 deciding on what is below it: do not remove it alone."
                    .to_owned(),
            );
        }
        if self.needless {
            notes.push(
                "What costs a reboot has no entry where none is needed: OpenShift reboots for \
                 whatever no entry names."
                    .to_owned(),
            );
        }
        if policy.sshkey.is_some() {
            notes.push(
                "sshkey is for the keys and for the password of core: OpenShift has one answer for \
                 both."
                    .to_owned(),
            );
        }
        let mut policies: Vec<&str> = self
            .voices
            .iter()
            .filter(
                |voice| matches!(&voice.says, Says::Claims(claims) if claims.iter().any(is_free)),
            )
            .map(|voice| voice.name.as_str())
            .collect();
        policies.sort_unstable();
        if !policies.is_empty() {
            notes.push(format!(
                "A policy may abstain on a single change, which then costs a reboot; what is \
                 exported of {} does not ask it any more.",
                policies.join(", ")
            ));
        }
        notes
    }
}

fn is_free(claim: &Claim) -> bool {
    claim.least == Effect::None && claim.most == Effect::None
}
