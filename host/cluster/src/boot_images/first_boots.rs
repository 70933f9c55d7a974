//! Machines that said at their first boot that their image is too old: what each is held
//! against, how long what it said stands, and what the condition says of all of them.

use super::facts::Facts;
use super::report::Report;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use std::time::Duration;
use tread_kube::api::boot_images::{FIRST_BOOTS, FirstBoot, SkewMode};
use tread_kube::api::conditions::Finding;
use tread_kube::events::{self, Note};
use tread_model::boot_images::{Limits, Reason, Stream, shown};
use tread_model::text::and_more;

/// The condition that names them.
pub const FIRST_BOOTS_WITHIN_LIMIT: &str = "FirstBootsWithinLimit";

/// How long a machine's report counts: by then its claim to be a node has expired.
const STANDS_FOR: SignedDuration = SignedDuration::from_hours(24);
/// How many are named.
const NAMED: usize = 5;

/// The limits for the image of a machine that boots into this pool; and, if a machine whose image
/// is too old joins all the same, why. None: there are no limits.
pub fn asked(facts: &Facts, report: &Report, pool: &str) -> Option<(Limits, Option<&'static str>)> {
    if report.mode == SkewMode::Automatic && facts.nothing().is_some() {
        return None;
    }
    let limits = report.limits(|own| Stream::of_resource(facts.stream_of(pool), own));
    let passing = match report.mode {
        SkewMode::None => Some("spec.mode of BootImages cluster is None"),
        _ if !limits.blocks => Some("no release before 4.22 keeps a machine out for its image"),
        _ => None,
    };
    (!limits.is_none()).then_some((limits, passing))
}

/// Those that still stand.
pub fn standing(all: &[FirstBoot], now: Timestamp) -> Vec<FirstBoot> {
    all.iter().filter(|it| now.duration_since(it.at.0) < STANDS_FOR).cloned().collect()
}

/// The same with what others said since: the newest first, and each machine once.
pub fn with(all: &[FirstBoot], new: &[FirstBoot], now: Timestamp) -> Vec<FirstBoot> {
    let mut list: Vec<FirstBoot> = Vec::new();
    for it in new.iter().rev().chain(&standing(all, now)) {
        let is_it = |other: &FirstBoot| (&other.pool, &other.machine) == (&it.pool, &it.machine);
        if list.len() < FIRST_BOOTS && !list.iter().any(is_it) {
            list.push(it.clone());
        }
    }
    list
}

/// How long it is until one of them stands no more.
pub fn next_end(all: &[FirstBoot], now: Timestamp) -> Option<Duration> {
    let left = all.iter().map(|it| STANDS_FOR - now.duration_since(it.at.0)).min()?;
    Some(Duration::try_from(left.min(STANDS_FOR)).unwrap_or_default())
}

/// Why, in words.
fn why(reason: &str) -> &'static str {
    let words = [
        (Reason::BelowLimit, "it is below the limit"),
        (Reason::TooManyMajorsBehind, "it is too many majors behind"),
        (Reason::VersionUnreadable, "its version cannot be read"),
    ];
    let found = words.into_iter().find(|(word, _)| word.as_str() == reason);
    found.map_or("its version is not known", |(_, why)| why)
}

/// What is said of one.
fn sentence(it: &FirstBoot) -> String {
    let joins =
        if it.stopped { "its kubelet does not start" } else { "it joins the cluster all the same" };
    format!(
        "machine {} ({}), of pool {}, booted from {}, which is too old: {}; {joins}",
        it.machine,
        it.address,
        it.pool,
        shown(&it.image),
        why(&it.reason)
    )
}

const REMEDY: &str = "Give what made it a newer image, and make it anew: `tread bootimages` lists what machines boot, and \
     `tread bootimages patch RESOURCE` says what to do";

/// The Event about a machine that said at its first boot that its image is too old.
pub fn note(it: &FirstBoot) -> Note {
    let text = format!("By its own word at its first boot: {}. {REMEDY}", sentence(it));
    Note { reason: events::Reason::MachineTooOld, warns: true, text }
}

/// What the condition says of all of them.
pub fn finding(all: &[FirstBoot]) -> Finding {
    let (status, reason, message) = match all {
        [] => (
            true,
            "AsExpected",
            "no machine said within the last day that its image is too old".to_owned(),
        ),
        all => {
            let named: Vec<String> = all.iter().take(NAMED).map(sentence).collect();
            let more = and_more(all.len(), NAMED);
            let is_stopped = all.iter().any(|it| it.stopped);
            let reason = if is_stopped { "MachineStopped" } else { "MachineWarned" };
            (false, reason, format!("{}{more}. {REMEDY}", named.join("; ")))
        }
    };
    let type_ = FIRST_BOOTS_WITHIN_LIMIT;
    Finding { type_, status: Some(status), reason: reason.to_owned(), message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    fn said(machine: &str, hours: i64, stopped: bool) -> FirstBoot {
        let at = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours);
        FirstBoot {
            machine: machine.to_owned(),
            address: "10.0.0.1".to_owned(),
            pool: "infra".to_owned(),
            image: "412.86.202308081056-0".to_owned(),
            reason: "BelowLimit".to_owned(),
            stopped,
            at: Time(at),
        }
    }

    #[test]
    fn what_machines_say_is_told_for_a_day_each_once_and_twenty_at_most() {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(30);
        let before = [said("b", 29, true), said("a", 7, true), said("old", 6, true)];
        assert_eq!(next_end(&before, now), Some(Duration::ZERO));
        let all = with(&before, &[said("a", 30, false), said("c", 30, true)], now);
        let names: Vec<_> = all.iter().map(|it| (it.machine.as_str(), it.stopped)).collect();
        assert_eq!(names, [("c", true), ("a", false), ("b", true)]);
        assert_eq!(next_end(&all, now), Some(Duration::from_hours(23)));
        let many: Vec<FirstBoot> = (0..50).map(|at| said(&at.to_string(), 30, true)).collect();
        let all = with(&all, &many, now);
        assert_eq!((all.len(), all[0].machine.as_str()), (20, "49"));
        // A clock that was set back keeps nothing for ever.
        assert!(next_end(&[said("later", 99, true)], now) <= Some(Duration::from_hours(24)));
    }

    #[test]
    fn the_condition_names_machine_address_and_what_to_do() {
        let finding_of = |all: &[FirstBoot]| finding(all);
        assert_eq!(finding_of(&[]).status, Some(true));
        let warned = finding_of(&[said("a", 1, false)]);
        assert_eq!((warned.status, warned.reason.as_str()), (Some(false), "MachineWarned"));
        let all: Vec<FirstBoot> = (0..7).map(|at| said(&format!("m{at}"), 1, at == 6)).collect();
        let stopped = finding_of(&all);
        assert_eq!(stopped.reason, "MachineStopped");
        for part in ["m0 (10.0.0.1)", "pool infra", "and 2 more", "tread bootimages patch"] {
            assert!(stopped.message.contains(part), "{}", stopped.message);
        }
    }
}
