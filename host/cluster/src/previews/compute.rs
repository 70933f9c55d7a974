//! From what has to be compared to plans. It takes as long as comparing and
//! asking the policies does, and blocks.

use super::body::Bodies;
use super::causes::Part;
use super::parsed::{Config, Parsed};
use super::preview::{Preview, WayPlan, WayPlanned};
use super::registries;
use super::secrets::Guessed;
use super::side::{Piece, Side};
use super::texts::{Text, gone, inputs};
use super::work::{Way, Work};
use crate::policies::current::Current;
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use tread_engine::planner::{self, Answers, CallRecord};
use tread_engine::sandbox::Sandbox;
use tread_model::diff;
use tread_model::mirrors::{self, REGISTRIES_CONF};
use tread_model::operator::{self, Rendered, Topology};
use tread_model::plan::PlanOutcome;
use tread_model::read;
use tread_model::refuse;

/// What making the plans of all ways came to.
#[derive(Default)]
struct Made {
    calls: Vec<CallRecord>,
    secrets: BTreeSet<String>,
    offered_secrets: bool,
}

/// With what is planned.
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
    let anew = registries::anew(&work.to, bodies);
    let (side, rendering) = match &anew {
        Ok(anew) => (&anew.side, anew.doubts.as_slice()),
        Err(_) => (&work.to, [].as_slice()),
    };
    let doubts: Vec<String> = work.doubt.iter().chain(rendering).cloned().collect();
    let to = match &anew {
        Ok(_) => asked.texts(side),
        Err(why) => Err(why.clone()),
    };
    let rendered = work.operated.then(|| to.as_ref().ok().map(|to| asked.rendered(side, to)));
    let rendered = rendered.flatten();
    let guessed = asked.hides_secrets.then(|| Guessed::of(&work.to, bodies));
    let ways = work.ways.iter().map(|way| {
        let plan = to.as_ref().map_err(Clone::clone).and_then(|to| {
            let with =
                With { rendered: rendered.as_ref(), doubts: &doubts, guessed: guessed.as_ref() };
            asked.plan(&work, way, to, &with, &mut made)
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
            _ => asked.texts(side).is_ok_and(|target| mean_the_same(&target, to)),
        };
        if same {
            work.to_name.clone_from(name);
        }
    }
    let Made { calls, secrets, offered_secrets } = made;
    Preview { work, ways, ids, calls, secrets, offered_secrets, earlier: None }
}

/// What is the same for all ways.
struct With<'w> {
    /// What they go to, as the operator's daemon sees it.
    rendered: Option<&'w Rendered>,
    /// What could not be told of it.
    doubts: &'w [String],
    /// What is hidden of where they come from.
    guessed: Option<&'w Guessed>,
}

impl Asked<'_> {
    /// Everything that a side is made of, in the order in which it is merged.
    fn texts<'b>(&'b self, side: &'b Side) -> Result<Vec<Text<'b>>, String> {
        let mut texts = Vec::new();
        if let Some(key) = &side.os_image_of
            && let Some(rendered) = self.bodies.get(key)
            && let Some(text) = os_image(&key.0, rendered)
        {
            texts.push((key.0.clone(), Cow::Owned(text)));
        }
        for piece in side.configs.iter().chain(&side.mirrors) {
            let bytes = piece.bytes(self.bodies).ok_or_else(|| gone(piece.name()))?;
            texts.push((piece.name().to_owned(), Cow::Borrowed(bytes)));
        }
        // A pool without any MachineConfig is one that says nothing.
        if texts.is_empty() {
            texts.push((NO_CONFIG.to_owned(), Cow::Owned(no_config())));
        }
        Ok(texts)
    }

    fn plan(
        &self,
        work: &Work,
        way: &Way,
        to: &[Text<'_>],
        with: &With<'_>,
        made: &mut Made,
    ) -> Result<WayPlan, String> {
        let side = way.from.as_ref().ok_or_else(|| gone(&way.from_name))?;
        let from = self.texts(side)?;
        let (mut old, mut new) = read::sides_in_order(&inputs(&from), &inputs(to))
            .map_err(|problems| problems.to_string())?;
        for side in [&mut old, &mut new].into_iter().filter(|side| !side.mirrors.is_empty()) {
            mirrors::apply(&mut side.config, &side.mirrors)
                .map_err(|problems| problems.to_string())?;
        }
        let mut rendered = with.rendered.map(|to| (self.rendered(side, &from), to));
        if let Some(guessed) = with.guessed {
            let rendered = rendered.as_mut().map(|(from, _)| from);
            made.secrets.extend(guessed.hide(&mut old.config, &mut new.config, rendered));
        }
        let (old, new) = (&old.config, &new.config);
        let Current { policies, shadows, .. } = self.current;
        let (shadows, answers) = (shadows.as_ref(), self.answers);
        let sides = (old, new);
        let warnings = with.doubts.to_vec();
        let planned =
            planner::plan_together(self.sandbox, policies, shadows, answers, sides, warnings);
        let (planned, shadow) = planned.map_err(|why| why.to_string())?;
        made.calls.extend(planned.calls);
        made.offered_secrets |= planned.offered_secrets;
        let operator = rendered.map(|(from, to)| {
            let topology = match work.single_replica {
                true => Topology::SingleReplica,
                false => Topology::HighlyAvailable,
            };
            operator::unparsable(&refuse::unparsable(new))
                .unwrap_or_else(|| operator::forecast(&from, to, self.operator, topology))
        });
        Ok(WayPlan { plan: planned.plan, operator, shadow })
    }

    /// A side as the operator's daemon sees it.
    fn rendered(&self, side: &Side, texts: &[Text<'_>]) -> Rendered {
        let first = side.os_image_of.as_ref().and_then(|key| {
            let (name, bytes) = texts.first().filter(|(name, _)| *name == key.0)?;
            let is_own = side.configs.iter().all(|piece| piece.name() != name);
            is_own.then(|| Arc::new(Config::of(bytes)))
        });
        let configs = side.configs.iter();
        let configs = configs.filter_map(|piece| piece.config(self.bodies, self.parsed));
        let configs: Vec<Arc<Config>> = first.into_iter().chain(configs).collect();
        let layers = configs.iter().filter_map(|config| config.layer.as_ref());
        let rendered = Rendered::merged(layers);
        if side.mirrors.is_empty() {
            return rendered;
        }
        match registries_conf(texts) {
            Some(text) => rendered.with_file(REGISTRIES_CONF, &text),
            None => rendered,
        }
    }

    /// The ids of everything that a MachineConfig says anything of.
    fn says(&self, body: &Piece) -> Option<BTreeSet<String>> {
        let bytes = body.bytes(self.bodies)?;
        let config = body.config(self.bodies, self.parsed)?;
        config.says(body.name(), bytes).cloned()
    }
}

fn mean_the_same(one: &[Text<'_>], other: &[Text<'_>]) -> bool {
    let Ok((mut one, mut other)) = read::sides_in_order(&inputs(one), &inputs(other)) else {
        return false;
    };
    for side in [&mut one, &mut other].into_iter().filter(|side| !side.mirrors.is_empty()) {
        if mirrors::apply(&mut side.config, &side.mirrors).is_err() {
            return false;
        }
    }
    diff::compare(&one.config, &other.config)
        .is_ok_and(|it| it.changes.is_empty() && it.refusals.is_empty() && it.settled.is_empty())
}

/// What a side is called that no MachineConfig says anything of.
const NO_CONFIG: &str = "no-machine-config";

/// A MachineConfig that says nothing.
fn no_config() -> Vec<u8> {
    let config = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": NO_CONFIG},
        "spec": {},
    });
    config.to_string().into_bytes()
}

/// A MachineConfig that says of the OS image what a rendered one says.
fn os_image(name: &str, rendered: &[u8]) -> Option<Vec<u8>> {
    #[derive(serde::Deserialize)]
    struct Body<'b> {
        #[serde(borrow)]
        spec: Spec<'b>,
    }
    #[derive(serde::Deserialize)]
    struct Spec<'b> {
        #[serde(rename = "osImageURL", default, borrow)]
        os_image: Cow<'b, str>,
    }
    let body: Body<'_> = serde_json::from_slice(rendered).ok()?;
    let image = body.spec.os_image;
    let config = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": format!("os-image-of-{name}")},
        "spec": {"osImageURL": image},
    });
    (!image.is_empty()).then(|| config.to_string().into_bytes())
}

/// What the mirror objects of a side make of its registries.conf.
fn registries_conf(texts: &[Text<'_>]) -> Option<String> {
    let (mut side, _) = read::sides_in_order(&inputs(texts), &inputs(texts)).ok()?;
    mirrors::apply(&mut side.config, &side.mirrors).ok()?;
    let file = side.config.files.iter().find(|file| file.path == REGISTRIES_CONF)?;
    let bytes = tread_model::contents::decode(&file.contents).ok()??;
    String::from_utf8(bytes.into_owned()).ok()
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
    // Where nothing can be told, that is so for each: none is without effect.
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
