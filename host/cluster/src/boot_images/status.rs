//! What the status of BootImages says, and what is reported.

use super::first_boots;
use super::report::Report;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use tread_kube::api::boot_images::{BootImagesStatus, LISTED, OpenshiftCheck, SkewMode};
use tread_kube::api::conditions::{Finding, set};
use tread_kube::events::{self, Note};
use tread_model::boot_images::{Outcome, Reason, Verdict};

/// What an admin does, in words, for a verdict that holds updates back.
fn remedy(verdict: &Verdict) -> &'static str {
    match verdict.reason {
        Reason::VersionUnknown | Reason::VersionUnreadable => {
            "`tread bootimages` lists what each resource boots; say a version that you know by the \
             annotation tread.dev/boot-image, or see `tread bootimages patch RESOURCE`"
        }
        Reason::UpdaterDegraded => "mend the updater, or set managedBootImages otherwise",
        _ => {
            "`tread bootimages patch RESOURCE` says how to give it a newer image; with spec.mode: \
             None an admin takes the risk that new machines do not start"
        }
    }
}

fn held_back(report: &Report) -> Finding {
    let verdict = &report.verdict;
    let (status, message) = match verdict.outcome {
        Outcome::Passes => (Some(true), verdict.message.clone()),
        Outcome::Warns => {
            let text = format!("{}. Nothing is held back for it in this release", verdict.message);
            (Some(true), text)
        }
        Outcome::Waits => (None, verdict.message.clone()),
        Outcome::Blocks => {
            let (limit, message) = (&report.limit, &verdict.message);
            let what = if verdict.is_of_image() {
                format!(
                    "Boot images are too old for an update to the next minor or major version. \
                     {message}. An image has to be at least {limit}."
                )
            } else {
                format!(
                    "Whether boot images are new enough for an update to the next minor or major \
                     version cannot be told. {message}."
                )
            };
            let text = format!(
                "{what} Patch updates within this version are not held back. What to do: {}",
                remedy(verdict)
            );
            (Some(false), text)
        }
    };
    Finding { type_: "Upgradeable", status, reason: verdict.reason.as_str().to_owned(), message }
}

fn within(report: &Report) -> Finding {
    let verdict = &report.verdict;
    let status = match verdict.outcome {
        // An admin who does not want to know is not told that all is well.
        _ if report.mode == SkewMode::None => None,
        Outcome::Passes => Some(true),
        Outcome::Warns | Outcome::Blocks => Some(false),
        Outcome::Waits => None,
    };
    Finding {
        type_: "SkewWithinLimit",
        status,
        reason: verdict.reason.as_str().to_owned(),
        message: verdict.message.clone(),
    }
}

fn degraded(report: &Report) -> Finding {
    let (status, reason, message) = match report.problems.as_slice() {
        [] => {
            (false, "AsExpected", "everything that says something of images can be read".to_owned())
        }
        problems => (true, "Unreadable", problems.join("; ")),
    };
    Finding { type_: "Degraded", status: Some(status), reason: reason.to_owned(), message }
}

fn other_streams(report: &Report) -> Finding {
    let (status, reason, message) = match report.others() {
        None => {
            (Some(true), "NoOtherStream", "no machine resource is of another stream".to_owned())
        }
        Some(worst) if worst.verdict.reason == Reason::ModeNone => {
            (None, Reason::ModeNone.as_str(), worst.verdict.message.clone())
        }
        Some(worst) if worst.verdict.reason == Reason::NothingToJudge => {
            (Some(true), Reason::NothingToJudge.as_str(), worst.verdict.message.clone())
        }
        Some(worst) if worst.verdict.outcome == Outcome::Passes => (
            Some(true),
            "WithinLimit",
            "what is of another stream boots new enough images".to_owned(),
        ),
        Some(worst) => (
            Some(false),
            worst.verdict.reason.as_str(),
            format!(
                "{}/{}, of the stream {}: {}. That holds no update back",
                worst.key.namespace, worst.key.name, worst.shown.stream, worst.verdict.message
            ),
        ),
    };
    let type_ = "OtherStreamsWithinLimit";
    Finding { type_, status, reason: reason.to_owned(), message }
}

/// Whether images hold updates back. While nothing can be told, what was said
/// last stays.
pub fn holds_back(report: &Report, before: Option<&BootImagesStatus>) -> bool {
    match report.verdict.outcome {
        Outcome::Blocks => true,
        Outcome::Passes | Outcome::Warns => false,
        Outcome::Waits => before.is_some_and(|status| {
            status.conditions.iter().any(|it| it.type_ == "Upgradeable" && it.status == "False")
        }),
    }
}

/// Whether the images are new enough for an update. While nothing can be told, it stays what it was: that
/// nothing is held back only as it was said of what the object says now, as of its mode.
pub fn upgradeable(
    conditions: &mut Vec<Condition>,
    report: &Report,
    generation: i64,
    now: Timestamp,
) {
    let held = held_back(report);
    let is_known = |it: &Condition| match it.status.as_str() {
        "False" => true,
        "True" => it.observed_generation.is_none_or(|seen| seen == generation),
        _ => false,
    };
    let known = conditions.iter().any(|it| it.type_ == "Upgradeable" && is_known(it));
    if held.status.is_some() || !known {
        set(conditions, held, generation, now);
    }
}

/// The status as it is to be. What did not change keeps its times; while nothing
/// can be told, Upgradeable stays what it was.
pub fn status(
    report: &Report,
    before: &BootImagesStatus,
    generation: i64,
    now: Timestamp,
) -> BootImagesStatus {
    let mut conditions = before.conditions.clone();
    upgradeable(&mut conditions, report, generation, now);
    for finding in [within(report), degraded(report), other_streams(report)] {
        set(&mut conditions, finding, generation, now);
    }
    let first_boots = first_boots::standing(&before.first_boots, now);
    // Where nobody serves machines that boot, nothing is said of them.
    let is_of_first_boots = |it: &Condition| it.type_ == first_boots::FIRST_BOOTS_WITHIN_LIMIT;
    if !first_boots.is_empty() || conditions.iter().any(is_of_first_boots) {
        set(&mut conditions, first_boots::finding(&first_boots), generation, now);
    }
    let openshift = report.openshift.as_ref().map(|check| OpenshiftCheck {
        mode: check.mode.clone(),
        version: check.version.clone(),
        blocks: check.blocks,
        message: check.message.clone(),
    });
    BootImagesStatus {
        observed_generation: Some(generation),
        mode: Some(report.mode),
        oldest: report.oldest.clone(),
        limit: Some(report.limit.clone()).filter(|limit| !limit.is_empty()),
        resources: report.resources.iter().take(LISTED).map(|it| it.shown.clone()).collect(),
        count: i64::try_from(report.resources.len()).ok(),
        left_out: report.left_out.iter().take(LISTED).cloned().collect(),
        openshift,
        first_boots,
        conditions,
    }
}

/// What is reported where a verdict changed: an Event of the object.
pub fn news(before: &BootImagesStatus, after: &BootImagesStatus) -> Option<Note> {
    let of = |status: &BootImagesStatus| {
        let found = status.conditions.iter().find(|it| it.type_ == "SkewWithinLimit");
        found.map(|it| (it.status.clone(), it.reason.clone()))
    };
    let now = of(after)?;
    if of(before).as_ref() == Some(&now) || now.0 == "Unknown" && now.1 != "ModeNone" {
        return None;
    }
    let held = after.conditions.iter().find(|it| it.type_ == "Upgradeable")?;
    let (reason, warns) = match (now.0.as_str(), now.1.as_str()) {
        (_, "ModeNone") => (events::Reason::BootImagesNotJudged, true),
        ("True", _) => (events::Reason::BootImagesWithinLimit, false),
        _ => (events::Reason::BootImagesTooOld, true),
    };
    // The first word of all: that everything is well is no news.
    if !warns && of(before).is_none() {
        return None;
    }
    Some(Note { reason, warns, text: held.message.clone() })
}
