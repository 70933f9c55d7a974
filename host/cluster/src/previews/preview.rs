//! What a pool's nodes will go through, as it was planned.

use super::described::Described;
use super::work::{Way, Work};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tread_engine::planner::{CallRecord, Unplanned};
use tread_model::operator::Forecast;
use tread_model::plan::compare::Shadow;
use tread_model::plan::{Plan, PlanOutcome};

/// What a pool's nodes will go through.
#[derive(Debug, Clone)]
pub struct Preview {
    /// What was compared.
    pub work: Work,
    /// Each way with its plan.
    pub ways: Vec<WayPlanned>,
    /// Which of the changes each part is the cause of, by id, in the order of
    /// `work.parts`; None: of all.
    pub ids: Vec<Option<BTreeSet<String>>>,
    /// Each call of a policy.
    pub calls: Vec<CallRecord>,
    /// The ids of secrets that count as new, whether they are or not.
    pub secrets: BTreeSet<String>,
    /// Whether a policy was offered a secret: nobody is told how long it took.
    pub offered_secrets: bool,
    /// What is pending from before, where nodes do not say what they have and whoever
    /// asks has not watched what became of them.
    pub earlier: Option<Vec<Described>>,
}

/// A way that some nodes go, and the plan for it.
#[derive(Debug, Clone)]
pub struct WayPlanned {
    /// The way.
    pub way: Way,
    /// The plan, or why there is none.
    pub plan: Result<WayPlan, NoPlan>,
}

/// Why there is no plan for a way, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoPlan {
    /// There is more than is looked at: it is a reboot, whoever asks and however often.
    TooMuch(String),
    /// It cannot be told.
    Untold(String),
}

impl NoPlan {
    /// In words.
    pub fn why(&self) -> &str {
        match self {
            NoPlan::TooMuch(why) | NoPlan::Untold(why) => why,
        }
    }

    /// Whether there is more than is looked at.
    pub fn is_too_much(&self) -> bool {
        matches!(self, NoPlan::TooMuch(_))
    }
}

impl std::fmt::Display for NoPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.why())
    }
}

impl From<String> for NoPlan {
    fn from(why: String) -> NoPlan {
        NoPlan::Untold(why)
    }
}

impl From<Unplanned> for NoPlan {
    fn from(why: Unplanned) -> NoPlan {
        let words = why.to_string();
        match why {
            Unplanned::TooMany { .. } => NoPlan::TooMuch(words),
            Unplanned::Problems(_) | Unplanned::Ended => NoPlan::Untold(words),
        }
    }
}

/// The plan for a way.
#[derive(Debug, Clone)]
pub struct WayPlan {
    /// What tread does.
    pub plan: Arc<Plan>,
    /// What OpenShift's operator does, where it rolls this out.
    pub operator: Option<Forecast>,
    /// What the policies in the shadow would make of it.
    pub shadow: Option<Shadow>,
}

impl Preview {
    /// Whether it is planned, and nothing changes.
    pub fn is_nothing(&self) -> bool {
        let nothing = |way: &WayPlanned| {
            way.plan.as_ref().is_ok_and(|plan| plan.plan.outcome == PlanOutcome::Nothing)
        };
        self.ways.iter().all(nothing)
    }

    /// Whether the same would be planned at any other moment: no policy lacked time or room.
    pub fn lasts(&self) -> bool {
        let mut ways = self.ways.iter().filter_map(|way| way.plan.as_ref().ok());
        ways.all(|way| {
            way.plan.reproducible
                && way.shadow.as_ref().is_none_or(|shadow| shadow.plan.reproducible)
        })
    }

    /// Of what is not planned, for a reason.
    pub fn unplanned(work: Work, why: &str) -> Preview {
        Preview::without_plans(work, &NoPlan::Untold(why.to_owned()))
    }

    /// Of what is more than is looked at, in words.
    pub fn too_much(work: Work, why: &str) -> Preview {
        Preview::without_plans(work, &NoPlan::TooMuch(why.to_owned()))
    }

    fn without_plans(work: Work, why: &NoPlan) -> Preview {
        let unplanned = |way: &Way| WayPlanned { way: way.clone(), plan: Err(why.clone()) };
        let ways = work.ways.iter().map(unplanned).collect();
        let ids = vec![None; work.parts.len()];
        Preview {
            work,
            ways,
            ids,
            calls: Vec::new(),
            secrets: BTreeSet::new(),
            offered_secrets: false,
            earlier: None,
        }
    }
}

/// How often each policy decided, in the plans of some previews.
pub fn decisions<'p>(previews: impl IntoIterator<Item = &'p Preview>) -> BTreeMap<String, i64> {
    let mut counts = BTreeMap::new();
    let ways = previews.into_iter().flat_map(|preview| &preview.ways);
    for change in ways.filter_map(|way| way.plan.as_ref().ok()).flat_map(|way| &way.plan.changes) {
        if let Some(policy) = &change.decided_by {
            *counts.entry(policy.policy.clone()).or_default() += 1;
        }
    }
    counts
}
