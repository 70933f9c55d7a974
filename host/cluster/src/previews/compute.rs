//! From what has to be compared to plans. It takes as long as comparing and
//! asking the policies does, and blocks.

use super::body::Bodies;
use super::causes::Part;
use super::parsed::Parsed;
use super::preview::{NoPlan, Preview, WayPlan, WayPlanned};
use super::reading::{Objects, ReadSide, differences, mean_the_same, said_of_units};
use super::registries;
use super::secrets::{Guessed, rejected};
use super::side::{Piece, Side};
use super::texts::gone;
use super::work::{Way, Work};
use crate::policies::current::Current;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use tread_engine::planner::{self, Answers, CallRecord, Sides, Together};
use tread_engine::sandbox::Sandbox;
use tread_model::mirrors::REGISTRIES_CONF;
use tread_model::operator::{self, Rendered, Topology};
use tread_model::plan::PlanOutcome;
use tread_model::refuse;

/// What making the plans of all ways came to.
#[derive(Default)]
struct Made {
    calls: Vec<CallRecord>,
    secrets: BTreeSet<String>,
    offered_secrets: bool,
}

/// All that plans are made with.
pub struct Asked<'w> {
    /// What MachineConfigs hold.
    pub bodies: &'w Bodies,
    /// The policies.
    pub current: &'w Current,
    /// The operator's own rules.
    pub operator: &'w operator::Policies,
    /// Where policies run.
    pub sandbox: &'w Sandbox,
    /// Those of all plans that are made together, with the same policies.
    pub answers: &'w Answers,
    /// What is parsed already.
    pub parsed: &'w Parsed,
    /// Whether secrets that are asked about count as new.
    pub hides_secrets: bool,
}

impl std::fmt::Debug for Asked<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asked").field("hides_secrets", &self.hides_secrets).finish_non_exhaustive()
    }
}

/// Plans what has to be compared.
pub fn compute(mut work: Work, asked: &Asked<'_>) -> Preview {
    let mut made = Made::default();
    let bodies = asked.bodies;
    let with_mirrors = registries::with_mirrors(&work.to, bodies);
    let (side, rendering) = match &with_mirrors {
        Ok(with_mirrors) => (&with_mirrors.side, with_mirrors.doubts.as_slice()),
        Err(_) => (&work.to, [].as_slice()),
    };
    let doubts: Vec<String> = work.doubt.iter().chain(rendering).cloned().collect();
    let objects = match &with_mirrors {
        Ok(_) => Objects::of(side, bodies, asked.parsed),
        Err(why) => Err(why.clone()),
    };
    let to = objects.as_ref().map_err(Clone::clone).and_then(|objects| {
        let read = objects.read()?;
        let rendered = work.operated.then(|| objects.rendered(&read));
        Ok(To { read, rendered })
    });
    let guessed = asked.hides_secrets.then(|| Guessed::of(&work.to, bodies, asked.parsed));
    let ways = work.ways.iter().map(|way| {
        let plan = to.as_ref().map_err(|why| NoPlan::from(why.clone())).and_then(|to| {
            let with = With { to, doubts: &doubts, guessed: guessed.as_ref() };
            asked.plan(&work, way, &with, &mut made)
        });
        WayPlanned { way: way.clone(), plan }
    });
    let ways: Vec<WayPlanned> = ways.collect();
    if asked.answers.has_ended() {
        return Preview::unplanned(work, "nobody waits for it any more");
    }
    let ids = attributed(&work.parts, &ways, |body| asked.says(body));
    // The operator may have rendered it in the same second.
    if let (Some((name, side)), Ok(to)) = (&work.target, &to) {
        let is_there = ways.iter().find(|way| way.way.from_name == *name);
        let same = match is_there.map(|way| &way.plan) {
            Some(Ok(way)) => way.plan.outcome == PlanOutcome::Nothing,
            _ => asked.mean_the_same(side, &to.read),
        };
        if same {
            work.to_name.clone_from(name);
        }
    }
    let Made { calls, secrets, offered_secrets } = made;
    Preview { work, ways, ids, calls, secrets, offered_secrets, earlier: None }
}

/// Where all ways go.
struct To<'w> {
    read: ReadSide<'w>,
    /// As the operator's daemon sees it, where it rolls this out.
    rendered: Option<Arc<Rendered>>,
}

/// What is the same for all ways.
struct With<'w> {
    to: &'w To<'w>,
    /// What could not be told of it.
    doubts: &'w [String],
    /// What is hidden of where they come from.
    guessed: Option<&'w Guessed>,
}

impl Asked<'_> {
    fn plan(
        &self,
        work: &Work,
        way: &Way,
        with: &With<'_>,
        made: &mut Made,
    ) -> Result<WayPlan, NoPlan> {
        let side = way.from.as_ref().ok_or_else(|| gone(&way.from_name))?;
        let objects = Objects::of(side, self.bodies, self.parsed)?;
        let mut old = objects.read()?;
        let To { read: new, rendered: to } = with.to;
        let mut rendered = to.as_ref().map(|to| (objects.rendered(&old), to));
        let mut new = Cow::Borrowed(new);
        let mut hidden = BTreeSet::new();
        if let Some(guessed) = with.guessed {
            let rendered = rendered.as_mut().map(|(from, _)| from);
            hidden = guessed.hide(&mut old, &mut new, rendered);
            made.secrets.extend(hidden.iter().cloned());
        }
        let (differences, units) = (differences(&old, &new), said_of_units(&old, &new));
        let (old, new) = (old.config(), new.config());
        let Current { policies, shadows, .. } = self.current;
        let (shadows, answers) = (shadows.as_ref(), self.answers);
        let sides = Sides { old, new, differences, units };
        let warnings = with.doubts.to_vec();
        let planned =
            planner::plan_together(self.sandbox, policies, shadows, answers, sides, warnings);
        let Together { plan, shadow, calls, offered_secrets } = planned?;
        made.calls.extend(calls);
        made.offered_secrets |= offered_secrets;
        let operator = rendered.map(|(from, to)| {
            let topology = match work.single_replica {
                true => Topology::SingleReplica,
                false => Topology::HighlyAvailable,
            };
            operator::unparsable(&refuse::unparsable(new))
                .or_else(|| rejected(&hidden))
                .unwrap_or_else(|| operator::forecast(&from, to, self.operator, topology))
        });
        Ok(WayPlan { plan, operator, shadow })
    }

    /// Whether a side differs in nothing from one that was read.
    fn mean_the_same(&self, side: &Side, other: &ReadSide<'_>) -> bool {
        let objects = Objects::of(side, self.bodies, self.parsed);
        objects.is_ok_and(|it| it.read().is_ok_and(|side| mean_the_same(&side, other)))
    }

    /// The ids of everything that a MachineConfig says anything of.
    fn says(&self, body: &Piece) -> Option<BTreeSet<String>> {
        let bytes = body.bytes(self.bodies)?;
        let config = self.parsed.of(body, self.bodies)?;
        config.says(body.name(), bytes).cloned()
    }
}

/// Which changes each part is the cause of.
///
/// A MachineConfig that is there is the cause of what it says anything of;
/// mirrors are of the file that they are rendered into; what nobody says
/// anything of any more is due to what is gone.
fn attributed(
    parts: &[Part],
    ways: &[WayPlanned],
    says: impl Fn(&Piece) -> Option<BTreeSet<String>>,
) -> Vec<Option<BTreeSet<String>>> {
    if let [_] = parts {
        return vec![None];
    }
    // If no way could be planned, that holds for each part: none of them counts as harmless.
    if ways.iter().all(|way| way.plan.is_err()) {
        return vec![None; parts.len()];
    }
    let said: Vec<Option<BTreeSet<String>>> =
        parts.iter().map(|part| part.body.as_ref().and_then(&says)).collect();
    let plans = ways.iter().filter_map(|way| way.plan.as_ref().ok());
    let all: BTreeSet<&str> =
        plans.flat_map(|way| &way.plan.changes).map(|change| change.id.as_str()).collect();
    let registries = format!("file:{REGISTRIES_CONF}");
    let mirrored = parts.iter().any(|part| part.mirrors);
    let is_of = |part: &Part, said: &Option<BTreeSet<String>>, id: &str| {
        said.as_ref().is_some_and(|said| said.contains(id)) || part.mirrors && id == registries
    };
    let claimed = |id: &str| parts.iter().zip(&said).any(|(part, said)| is_of(part, said, id));
    let open: BTreeSet<&str> =
        all.iter().copied().filter(|id| !(claimed(id) || mirrored && *id == registries)).collect();
    let is_whole = |part: &Part| part.cause.kind == tread_kube::api::POOL_KIND;
    // What is gone, or what a release brings, cannot be asked what it says.
    let silent: Vec<bool> =
        parts.iter().map(|part| part.body.is_none() && !part.mirrors && !is_whole(part)).collect();
    let any_silent = silent.contains(&true);
    let ids = parts.iter().zip(&said).zip(silent).map(|((part, said), silent)| {
        if is_whole(part) {
            return None;
        }
        let own = all.iter().copied().filter(|id| is_of(part, said, id));
        // It may also have said less than before.
        let rest = open.iter().copied().filter(|_| silent || !any_silent);
        Some(own.chain(rest).map(str::to_owned).collect())
    });
    ids.collect()
}
