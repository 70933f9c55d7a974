//! The last step of a pass: the leader reports what changed, on policies, plans and
//! whatever else it concerns.

use super::super::compared::{Compared, Deciders};
use super::super::notes::{
    MOST_TRIES, Plans, SaidOn, Unreported, decisions, flagged, on_policies, policies_changed,
    troubles,
};
use super::super::settings::Settings;
use super::super::standing::Standing;
use crate::policies::current::Current;
use crate::previews::{Cluster, Described};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What was reported before, and what is still to be reported.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// What a change of policies made of the plans of each pool.
    compared: Compared,
    /// What cannot be planned as it is meant.
    troubles: BTreeSet<(String, String)>,
    /// Plans, and nodes on their way by them that somebody else has.
    flagged: BTreeSet<(String, String)>,
    /// How often each policy decides, and the policies of which that was said.
    decisions: Option<(BTreeMap<String, i64>, Arc<Current>)>,
    /// How often that was tried where a policy had no status yet.
    decisions_tries: u32,
    /// What is still to be reported on policies.
    unreported: Vec<Unreported>,
}

/// What it is reported of.
pub(super) struct Reporting<'t> {
    pub(super) cluster: &'t Cluster,
    pub(super) current: &'t Arc<Current>,
    /// The plans of the pools that were looked at.
    pub(super) wanted: &'t BTreeMap<String, Vec<Arc<Described>>>,
    /// The plans of all pools.
    pub(super) described: &'t [Arc<Described>],
    pub(super) standing: &'t BTreeMap<String, Standing>,
    /// How often each policy decides.
    pub(super) decisions: &'t BTreeMap<String, i64>,
}

/// Reports it; whether something is left to be reported in the next pass.
pub(super) async fn report(
    settings: &Settings,
    reporting: &Reporting<'_>,
    said: &mut Said,
) -> bool {
    let deciders = Arc::new(Deciders::of(reporting.current));
    said.compared.note(&deciders, reporting.wanted);
    said.compared.keep(|pool| reporting.cluster.pools.contains_key(pool));
    let mut is_left = false;
    if settings.leads.now() {
        troubles(settings, reporting.cluster, &mut said.troubles).await;
        flagged(settings, reporting.cluster, reporting.described, &mut said.flagged).await;
        let counts = reporting.decisions;
        let is_said = said.decisions.as_ref().is_some_and(|(said, current)| {
            // One that was made anew under its name has no count yet.
            said == counts && Arc::ptr_eq(current, reporting.current)
        });
        if !is_said {
            let all = decisions(settings, counts).await;
            said.decisions_tries = match all {
                SaidOn::Some => said.decisions_tries.saturating_add(1),
                SaidOn::All | SaidOn::Failed => 0,
            };
            // One that never gets a status is not waited for.
            if all == SaidOn::All || said.decisions_tries >= MOST_TRIES {
                said.decisions = Some((counts.clone(), Arc::clone(reporting.current)));
                said.decisions_tries = 0;
            } else {
                is_left = true;
            }
        }
        let plans = Plans { standing: reporting.standing, described: reporting.described };
        let changed = policies_changed(settings, &deciders, &mut said.compared, &plans).await;
        said.unreported.extend(changed);
        said.unreported = on_policies(settings, std::mem::take(&mut said.unreported)).await;
        is_left |= !said.unreported.is_empty();
    }
    // Whoever leads reports.
    if !settings.leads.now() {
        said.decisions = None;
        said.compared.unreported.clear();
        said.flagged.clear();
        said.unreported.clear();
    }
    is_left
}
