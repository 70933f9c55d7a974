//! What `/readyz` says: whether the service knows what it has to, and what to do
//! where it does not.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tread_cluster::plans::Previewer;
use tread_cluster::policies::current::Published;
use tread_front::admission::Certificates;
use tread_front::http::{Check, Readiness};
use tread_front::installations::Met;
use tread_front::shutdown::Shutdown;
use tread_kube::advice::{INSTALL_AGAIN, INSTALL_INPUTS};
use tread_kube::leadership::Leading;
use tread_kube::watching::Watches;

/// How far the start has come: `/readyz` says that until the parts of the service run, and how these
/// stand from then on. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Start {
    waits: Arc<Mutex<String>>,
    runs: Arc<OnceLock<Readiness>>,
}

impl Start {
    /// Why the parts do not run yet. It is logged where it is another reason than before.
    pub(super) fn waits(&self, why: String) {
        let mut before = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        if *before != why {
            tracing::warn!("waits before it begins: {why}");
            *before = why;
        }
    }

    /// The parts run, and say themselves how they stand.
    pub(super) fn runs(&self, readiness: Readiness) {
        // It is called once.
        let _ = self.runs.set(readiness);
    }

    pub(super) fn readiness(&self) -> Readiness {
        let start = self.clone();
        Arc::new(move || match start.runs.get() {
            Some(readiness) => readiness(),
            None => vec![start.check()],
        })
    }

    fn check(&self) -> Check {
        let waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        Check::bad("start", if waits.is_empty() { "it begins" } else { waits.as_str() })
    }
}

/// What has to be known before anything can be said.
pub(super) struct Known {
    pub(super) watches: Watches,
    pub(super) policies: Published,
    pub(super) previewer: Previewer,
    pub(super) met: Met,
}

/// The definition without which nobody says who decides.
const POLICIES: &str = "disruptionpolicies";
/// What tread itself defines.
const OWN: [&str; 5] = ["bootimages", "disruptionplans", POLICIES, "nodeupdates", "rollouts"];
/// What nodes follow.
const INPUTS: [&str; 2] = ["machineconfigpools", "machineconfigs"];

impl Known {
    fn checks(&self) -> [Check; 5] {
        let missing = self.watches.not_installed();
        [
            watches(&self.watches.waiting(), &self.watches.failing(), &missing),
            policies(self.policies.borrow().settled, self.watches.reads(), &missing),
            plans(self.previewer.is_ready(), &self.previewer.unplanned()),
            match self.watches.not_written().as_slice() {
                [] => Check::good("writes", "nothing waits to be written"),
                // Until somebody grants it nothing is written at all.
                waiting if self.watches.lacks_rights() => {
                    Check::bad("writes", format!("forbidden: {}", waiting.join("; ")))
                }
                // Whoever asks is answered all the same.
                waiting => Check::good("writes", format!("tried again: {}", waiting.join("; "))),
            },
            definitions(self.watches.outdated(), &missing),
        ]
    }
}

/// Those of some kinds that are not installed.
fn among(missing: &[&'static str], kinds: &[&str]) -> Vec<&'static str> {
    missing.iter().copied().filter(|kind| kinds.contains(kind)).collect()
}

fn watches(waiting: &[String], failing: &[String], missing: &[&'static str]) -> Check {
    if !waiting.is_empty() {
        return Check::bad("watches", format!("waiting for {}", waiting.join("; ")));
    }
    let mut said = vec!["everything was listed".to_owned()];
    // OpenShift may bring them later.
    let inputs = among(missing, &INPUTS);
    if !inputs.is_empty() {
        said.push(format!(
            "not installed: {}, so no node follows any change: where OpenShift does not bring their \
             definitions, {INSTALL_INPUTS}",
            inputs.join(", ")
        ));
    }
    // What is known is better than nothing, so it goes on answering.
    if !failing.is_empty() {
        said.push(format!("not up to date: {}", failing.join("; ")));
    }
    Check::good("watches", said.join("; "))
}

fn policies(settled: bool, reads: Vec<String>, missing: &[&'static str]) -> Check {
    if missing.contains(&POLICIES) {
        let why = "none can be listed, so nobody decides: their definition is not installed";
        return Check::bad("policies", why);
    }
    if settled {
        return Check::good("policies", "each is loaded, or known to be bad");
    }
    let mut said = vec!["some are still being loaded".to_owned()];
    said.extend(reads);
    Check::bad("policies", said.join("; "))
}

fn plans(is_ready: bool, unplanned: &BTreeMap<String, String>) -> Check {
    if !is_ready {
        return Check::bad("plans", "what is pending is not planned yet");
    }
    let Some((pool, why)) = unplanned.iter().next() else {
        return Check::good("plans", "what is pending is planned");
    };
    let more = match unplanned.len() {
        1 => String::new(),
        all => format!("; and of {} more", all - 1),
    };
    // What was planned before is better than nothing, and says that it is stale.
    Check::good(
        "plans",
        format!("not planned as it is now: what is pending of pool {pool}: {why}{more}"),
    )
}

fn definitions(mut outdated: Vec<String>, missing: &[&'static str]) -> Check {
    let own = among(missing, &OWN);
    if !own.is_empty() {
        outdated.insert(0, format!("not installed: {}: {INSTALL_AGAIN}", own.join(", ")));
    }
    match outdated.is_empty() {
        true => Check::good("definitions", "the API server keeps all that is written"),
        false if own.contains(&POLICIES) => Check::bad("definitions", outdated.join("; ")),
        // What it keeps is of use.
        false => Check::good("definitions", outdated.join("; ")),
    }
}

pub(super) fn readiness(
    leading: Leading,
    certificates: Certificates,
    shutdown: Shutdown,
    known: Known,
) -> Readiness {
    Arc::new(move || {
        let leader = match known.met.why_not() {
            Some(why) => Check::bad("leader", why),
            None => election_check(&leading),
        };
        let mut checks = vec![leader, certificates.check()];
        checks.extend(known.checks());
        if shutdown.has_begun() {
            checks.push(Check::bad("running", "stops: another replica answers"));
        }
        checks
    })
}

fn election_check(leading: &Leading) -> Check {
    if let Some(problem) = leading.problem() {
        return Check::bad("leader", problem);
    }
    if leading.now() {
        return Check::good("leader", "this replica leads");
    }
    match leading.holder() {
        Some(holder) => Check::good("leader", format!("{holder} leads")),
        None => Check::bad("leader", "nobody leads yet"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn until_the_parts_run_it_is_not_ready_and_says_what_it_waits_for() {
        let start = Start::default();
        let readiness = start.readiness();
        assert_eq!(readiness(), [Check::bad("start", "it begins")]);
        start.waits("nobody answers".to_owned());
        assert_eq!(readiness(), [Check::bad("start", "nobody answers")]);
        start.runs(Arc::new(|| vec![Check::good("leader", "this replica leads")]));
        assert_eq!(readiness(), [Check::good("leader", "this replica leads")]);
    }

    #[test]
    fn what_is_not_installed_is_named_as_the_cause_with_what_to_do() {
        let all = watches(&[], &[], &[]);
        assert_eq!((all.ok, all.message.as_str()), (true, "everything was listed"));
        let inputs =
            watches(&[], &["nodes: no answer".to_owned()], &["machineconfigs", "machinesets"]);
        assert!(inputs.ok, "OpenShift may bring them");
        for part in ["not installed: machineconfigs, so", "--with-inputs", "date: nodes: no answer"]
        {
            assert!(inputs.message.contains(part), "{part}: {}", inputs.message);
        }
        let missing = ["bootimages", "disruptionplans", "disruptionpolicies"];
        let decide = policies(false, Vec::new(), &missing);
        assert!(!decide.ok && decide.message.contains("their definition is not installed"));
        let own = definitions(Vec::new(), &missing);
        assert!(!own.ok && own.message.contains(INSTALL_AGAIN), "{own:?}");
        // An upgrade that brings a kind goes on without it.
        let new = definitions(vec!["old".to_owned()], &["bootimages"]);
        assert!(new.ok && new.message.contains("not installed: bootimages"), "{new:?}");
        assert!(new.message.ends_with("; old"), "{new:?}");
        assert!(definitions(Vec::new(), &["machinesets"]).message.starts_with("the API server"));
    }
}
