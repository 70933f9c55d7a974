//! The rule: whether an image is too old, and whether the cluster's images are.

use super::document::shown;
use super::limits::{Limits, Stream};
use super::sources::Found;
use super::version::{ImageVersion, Release, Rhel, parse_rhcos};
use serde::{Deserialize, Serialize};

/// How bad it is; the last is the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// Nothing is wrong, or nothing is asked.
    Passes,
    /// It is too old, and no update is held back for it.
    Warns,
    /// It will be told.
    Waits,
    /// It is too old for an update.
    Blocks,
}

impl Outcome {
    /// As it is shown and counted.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Passes => "Passes",
            Outcome::Warns => "Warns",
            Outcome::Waits => "Waits",
            Outcome::Blocks => "Blocks",
        }
    }
}

/// Why, as a stable word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reason {
    /// It is not older than the limit.
    WithinLimit,
    /// It is older.
    BelowLimit,
    /// Its RHEL is too many majors behind its stream.
    TooManyMajorsBehind,
    /// Nobody knows its version.
    VersionUnknown,
    /// Its version cannot be read.
    VersionUnreadable,
    /// No limit is known for it.
    NoLimit,
    /// It will be known.
    NotKnownYet,
    /// An admin takes the risk.
    ModeNone,
    /// A cluster of one node, one whose images come with each release, or one
    /// without a machine resource of its own stream.
    NothingToJudge,
    /// OpenShift's updater of boot images failed.
    UpdaterDegraded,
    /// OpenShift's updater of boot images is at work.
    UpdaterProgressing,
}

impl Reason {
    /// As it is shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::WithinLimit => "WithinLimit",
            Reason::BelowLimit => "BelowLimit",
            Reason::TooManyMajorsBehind => "TooManyMajorsBehind",
            Reason::VersionUnknown => "VersionUnknown",
            Reason::VersionUnreadable => "VersionUnreadable",
            Reason::NoLimit => "NoLimit",
            Reason::NotKnownYet => "NotKnownYet",
            Reason::ModeNone => "ModeNone",
            Reason::NothingToJudge => "NothingToJudge",
            Reason::UpdaterDegraded => "UpdaterDegraded",
            Reason::UpdaterProgressing => "UpdaterProgressing",
        }
    }
}

/// What the rule says, with the reason in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// How bad it is.
    pub outcome: Outcome,
    /// Why, as a stable word.
    pub reason: Reason,
    /// Why, in words.
    pub message: String,
}

impl Verdict {
    /// Whether it says that an image is too old, or counts as that, and not that
    /// nobody can tell.
    pub fn is_of_image(&self) -> bool {
        self.reason != Reason::UpdaterDegraded
    }

    fn new(outcome: Outcome, reason: Reason, message: String) -> Verdict {
        Verdict { outcome, reason, message }
    }
}

/// How images are judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// By what each resource boots.
    Automatic,
    /// By the oldest version in use, as an admin recorded it.
    Manual(Recorded),
    /// Not at all: an admin takes the risk.
    None,
}

/// The oldest version in use, as an admin recorded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// A release of OpenShift.
    Openshift(String),
    /// A version of RHCOS.
    Rhcos(String),
}

/// Whether one image is too old.
pub fn judge(found: &Found, limits: &Limits, stream: &Stream) -> Verdict {
    let bad = if limits.blocks && stream.own { Outcome::Blocks } else { Outcome::Warns };
    if limits.is_none() {
        let message = "no limit is known: set one in spec.limits of BootImages cluster";
        return Verdict::new(Outcome::Passes, Reason::NoLimit, message.to_owned());
    }
    let mut verdict = match found {
        Found::NotYet(waits) => {
            Verdict::new(Outcome::Waits, Reason::NotKnownYet, format!("not known yet: {waits}"))
        }
        Found::Unknown(why) => {
            let message = format!("its version is not known, and counts as too old: {why}");
            Verdict::new(bad, Reason::VersionUnknown, message)
        }
        Found::Unreadable(by, text) => {
            let message = format!(
                "its version cannot be read, and counts as too old: \"{text}\", {}; expected one \
                 like 4.13.0 or 9.2.20240115-0",
                by.in_words()
            );
            Verdict::new(bad, Reason::VersionUnreadable, message)
        }
        Found::Version(by, version) => {
            let said = format!("{}, {}", shown(&version.to_string()), by.in_words());
            compared(version, &said, limits, bad, stream)
        }
    };
    if let Some((major, minor)) = limits.as_of {
        verdict.message += &format!(
            "; the release is newer than this tread, which knows the limits up to {major}.{minor}"
        );
    }
    verdict
}

/// The verdict on one resource, given how the images of its cluster are judged. Where
/// the mode is None, nothing is asked of it. Where an admin recorded the oldest
/// version in use, that stands in for a version that is not known, and a known version
/// that is too old is only warned of.
pub fn judge_resource(
    mode: &Mode,
    nothing: Option<&str>,
    found: &Found,
    limits: &Limits,
    stream: &Stream,
) -> Verdict {
    match (mode, nothing) {
        (Mode::None, _) => {
            let message = "nothing is asked of it: spec.mode is None, the risk is an admin's";
            Verdict::new(Outcome::Passes, Reason::ModeNone, message.to_owned())
        }
        (Mode::Manual(recorded), _) => match found {
            Found::Unknown(_) | Found::NotYet(_) if stream.own => {
                judge_recorded(recorded, limits, stream)
            }
            _ => {
                let verdict = judge(found, limits, stream);
                let outcome = match verdict.outcome {
                    Outcome::Blocks => Outcome::Warns,
                    other => other,
                };
                Verdict { outcome, ..verdict }
            }
        },
        (Mode::Automatic, Some(why)) => {
            Verdict::new(Outcome::Passes, Reason::NothingToJudge, why.to_owned())
        }
        (Mode::Automatic, None) => judge(found, limits, stream),
    }
}

fn compared(
    version: &ImageVersion,
    said: &str,
    limits: &Limits,
    bad: Outcome,
    stream: &Stream,
) -> Verdict {
    let below = |what: &str, limit: String| {
        let message = format!("{said}: below the limit, {what} {limit}");
        Verdict::new(bad, Reason::BelowLimit, message)
    };
    if let Some((release, limit)) = version.openshift.zip(limits.openshift)
        && release < limit
    {
        return below("OpenShift", limit.to_string());
    }
    if let Some((rhel, limit)) = version.rhel.zip(limits.rhel)
        && rhel < limit
    {
        return below("RHEL", limit.to_string());
    }
    if let Some((rhel, least)) = version.rhel.zip(limits.least_major)
        && rhel.major < least
    {
        let message = format!(
            "{said}: too far behind the stream {}, which takes an image of RHEL {least} or newer",
            shown(&stream.name)
        );
        return Verdict::new(bad, Reason::TooManyMajorsBehind, message);
    }
    let by_release = version.openshift.is_some() && limits.openshift.is_some();
    let by_rhel = version.rhel.is_some() && (limits.rhel.is_some() || limits.least_major.is_some());
    if !by_release && !by_rhel {
        let message = format!(
            "{said}: cannot be held against the limit, {}, and counts as too old; name both \
             versions in spec.limits",
            limits.in_words()
        );
        return Verdict::new(bad, Reason::VersionUnknown, message);
    }
    let message = format!("{said}: not below the limit, {}", limits.in_words());
    Verdict::new(Outcome::Passes, Reason::WithinLimit, message)
}

/// Judges what an admin recorded: the one version that is given, as OpenShift does.
pub fn judge_recorded(recorded: &Recorded, limits: &Limits, stream: &Stream) -> Verdict {
    let version = match recorded {
        Recorded::Openshift(text) => Release::parse(text).map(ImageVersion::of_release),
        Recorded::Rhcos(text) => {
            parse_rhcos(text).map(|version| ImageVersion { openshift: None, ..version })
        }
    };
    let (Recorded::Openshift(text) | Recorded::Rhcos(text)) = recorded;
    let bad = if limits.blocks { Outcome::Blocks } else { Outcome::Warns };
    match version {
        None => {
            let message = format!(
                "the recorded version \"{}\" cannot be read, and counts as too old; expected one \
                 like 4.13.0 or 9.2.20240115-0",
                shown(text)
            );
            Verdict::new(bad, Reason::VersionUnreadable, message)
        }
        Some(_) if limits.is_none() => {
            let message = "no limit is known: set one in spec.limits of BootImages cluster";
            Verdict::new(Outcome::Passes, Reason::NoLimit, message.to_owned())
        }
        Some(version) => {
            let said = format!("{}, as recorded in spec.manual", shown(&version.to_string()));
            compared(&version, &said, limits, bad, stream)
        }
    }
}

/// How it stands with OpenShift's own updater of boot images.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Updater {
    /// It manages nothing, or is done.
    #[default]
    Quiet,
    /// It is at work, or has not begun.
    Progressing(String),
    /// It failed, with its own message.
    Degraded(String),
}

/// What is asked of a whole cluster.
#[derive(Debug, Clone)]
pub struct Question<'q> {
    /// How images are judged.
    pub mode: &'q Mode,
    /// Why there is nothing to judge; none where there is something.
    pub nothing: Option<&'q str>,
    /// OpenShift's updater.
    pub updater: &'q Updater,
    /// What is not listed yet.
    pub waits: &'q [String],
    /// Of the cluster's own stream.
    pub limits: &'q Limits,
    /// The cluster's own stream.
    pub stream: &'q Stream,
    /// Each resource's name, its stream and what was found of its image.
    pub images: &'q [(String, Stream, Found)],
}

/// Whether the cluster's images are too old. Those of another stream than the
/// cluster's never count.
pub fn judge_cluster(question: &Question<'_>) -> Verdict {
    if *question.mode == Mode::None {
        let message = "nothing is held back for old boot images: spec.mode is None, the risk is an \
                       admin's";
        return Verdict::new(Outcome::Passes, Reason::ModeNone, message.to_owned());
    }
    if let Mode::Manual(recorded) = question.mode {
        return judge_recorded(recorded, question.limits, question.stream);
    }
    if let Some(why) = question.nothing {
        return Verdict::new(Outcome::Passes, Reason::NothingToJudge, why.to_owned());
    }
    match question.updater {
        Updater::Degraded(message) => {
            let bad = if question.limits.blocks { Outcome::Blocks } else { Outcome::Warns };
            let message = format!(
                "OpenShift's updater of boot images is degraded: {}; see `oc get \
                 machineconfiguration cluster -o yaml`",
                shown(message)
            );
            return Verdict::new(bad, Reason::UpdaterDegraded, message);
        }
        Updater::Progressing(waits) => {
            let message = format!("waits for OpenShift's updater of boot images: {waits}");
            return Verdict::new(Outcome::Waits, Reason::UpdaterProgressing, message);
        }
        Updater::Quiet => {}
    }
    if !question.waits.is_empty() {
        let message = format!("waits for {}", question.waits.join("; "));
        return Verdict::new(Outcome::Waits, Reason::NotKnownYet, message);
    }
    let own = question.images.iter().filter(|(_, stream, _)| stream.own);
    let judged = own.map(|(name, stream, found)| (name, judge(found, question.limits, stream)));
    let worst = judged.reduce(|one, two| if two.1.outcome > one.1.outcome { two } else { one });
    match worst {
        None => {
            let message = "no machine resource boots nodes of the cluster's own stream";
            Verdict::new(Outcome::Passes, Reason::NothingToJudge, message.to_owned())
        }
        Some((_, verdict)) if verdict.outcome == Outcome::Passes => verdict,
        Some((name, verdict)) => {
            Verdict { message: format!("{name}: {}", verdict.message), ..verdict }
        }
    }
}

/// Which of two images is the older one, for a list that begins with the oldest:
/// an unknown one first.
pub fn by_age(one: &Found, two: &Found) -> std::cmp::Ordering {
    let key = |found: &Found| -> (u8, Option<Rhel>, Option<Release>) {
        match found {
            Found::Unreadable(..) | Found::Unknown(_) => (0, None, None),
            Found::Version(_, version) => (1, version.rhel, version.openshift),
            Found::NotYet(_) => (2, None, None),
        }
    };
    key(one).cmp(&key(two))
}
