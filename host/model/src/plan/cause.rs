//! Which changes make a plan as disruptive as it is, and who decided so.

use super::schema::{ChangeOutcome, Plan, PlannedChange, PolicyIdentity};
use super::steps::{Step, needs_daemon_reload};
use crate::effect::Effect;
use crate::text::listed;
use std::fmt;

/// Changes that cost something for the same cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause<'p> {
    /// Their ids, in order.
    pub ids: Vec<&'p str>,
    /// Who decided so.
    pub by: By<'p>,
}

/// Who decided what a change costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By<'p> {
    /// No policy answered: the fallback.
    Nobody,
    /// A policy failed.
    Failure(&'p PolicyIdentity),
    /// A policy answered.
    Answer(&'p PolicyIdentity),
    /// systemd has to re-read its units, whoever decided on the change.
    Systemd,
}

/// The changes that by themselves cost what `counts`, those of one cause
/// together: first those that nobody decided on, which somebody can mend. A
/// refused change costs nothing: it is not applied.
pub fn causes<'p>(plan: &'p Plan, counts: impl Fn(Effect) -> bool) -> Vec<Cause<'p>> {
    let mut causes: Vec<Cause<'p>> = Vec::new();
    for change in &plan.changes {
        let Some(by) = cause(change, &counts, plan.reboot) else { continue };
        match causes.iter_mut().find(|cause| cause.by == by) {
            Some(cause) => cause.ids.push(&change.id),
            None => causes.push(Cause { ids: vec![&change.id], by }),
        }
    }
    causes.sort_by_key(|cause| match cause.by {
        By::Nobody | By::Failure(_) => 0,
        By::Answer(_) => 1,
        By::Systemd => 2,
    });
    causes
}

fn cause<'p>(
    change: &'p PlannedChange,
    counts: impl Fn(Effect) -> bool,
    reboots: bool,
) -> Option<By<'p>> {
    if change.outcome == ChangeOutcome::Refused {
        return None;
    }
    let own = change.actions.iter().map(Step::effect).max().unwrap_or(Effect::None);
    if counts(own) {
        return Some(match (&change.decided_by, change.outcome) {
            (Some(policy), ChangeOutcome::Failed) => By::Failure(policy),
            (Some(policy), _) => By::Answer(policy),
            (None, ChangeOutcome::Decided) => return None,
            (None, _) => By::Nobody,
        });
    }
    // A reboot absorbs it.
    let re_read = !reboots && needs_daemon_reload(&change.id) && counts(Effect::Reload);
    re_read.then_some(By::Systemd)
}

impl Cause<'_> {
    /// The ids, of many the first few and a count.
    pub fn listed(&self) -> String {
        const MOST: usize = 3;
        listed(&self.ids, MOST)
    }

    /// Who could make it cost less, and how.
    pub fn way_out(&self) -> String {
        let them = if self.ids.len() == 1 { "it" } else { "them" };
        match self.by {
            By::Nobody => format!(
                "if less is enough, an admin can say so with a rule for {them} (--rules), or the \
                 owner of the template with a policy (--policy)"
            ),
            By::Failure(policy) => format!(
                "mend {}, or have an admin decide with a rule for {them} (--rules)",
                policy.policy
            ),
            By::Answer(policy) if policy.layer == crate::verdict::Layer::Admin => {
                format!("the admin who set {} can change that", policy.policy)
            }
            By::Answer(policy) => format!(
                "only an admin can overrule {}, with a rule for {them} (--rules); or leave {them} \
                 out of this change",
                policy.policy
            ),
            By::Systemd => format!("leave {them} out of this change: nobody can spare it that"),
        }
    }
}

impl fmt::Display for Cause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.listed();
        match self.by {
            By::Nobody => write!(f, "{ids} (no policy answers)"),
            By::Failure(policy) => write!(f, "{ids} (the policy {} failed)", policy.policy),
            By::Answer(policy) => write!(f, "{ids} (decided by {})", policy.policy),
            By::Systemd => write!(f, "{ids} (systemd has to read its units again)"),
        }
    }
}

/// Advice for whoever has a command line, for whoever has a cluster.
pub fn in_a_cluster(advice: &str) -> String {
    advice.replace(" (--rules)", " in a DisruptionPolicy").replace(" (--policy)", " in a ConfigMap")
}

#[cfg(test)]
mod tests;
