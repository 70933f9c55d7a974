//! How old a boot image may be, by release and stream. The table is reviewed
//! with each new release of OpenShift; `tests/cases/boot-images/limits.yaml`
//! shows what it says.

use super::version::{Release, Rhel};

/// A row of the table. From the release `from` on, an image for the stream of RHEL
/// `stream` has to be as new as the release `openshift` with the RHEL `rhel`; `blocks`
/// says whether OpenShift holds updates back for an older one.
struct Row {
    from: (u32, u32),
    stream: u32,
    openshift: Release,
    rhel: Rhel,
    blocks: bool,
}

const fn row(from: (u32, u32), stream: u32, blocks: bool) -> Row {
    Row { from, stream, openshift: Release::new(4, 13, 0), rhel: Rhel::new(9, 2), blocks }
}

const TABLE: [Row; 4] =
    [row((0, 0), 9, false), row((0, 0), 10, false), row((4, 22), 9, true), row((4, 22), 10, true)];

/// The last release that was looked at.
const LAST: (u32, u32) = (5, 2);

/// How many majors of RHEL an image may be behind the cluster's own stream, and
/// behind a stream that only a pool has. Nothing permits two.
const BEHIND_OWN: u32 = 1;
const BEHIND_OTHER: u32 = 0;

/// A stream of the operating system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// `rhel-9`; empty where it has no name.
    pub name: String,
    /// The cluster's own.
    pub own: bool,
}

impl Stream {
    /// The stream of a cluster that was installed with this release. Without a
    /// release it has no name.
    pub fn of_cluster(installed: Option<Release>) -> Stream {
        let name = match installed {
            None => "",
            Some(release) if release.major < 5 => "rhel-9",
            Some(_) => "rhel-10",
        };
        Stream { name: name.to_owned(), own: true }
    }

    /// The stream of a resource that bears this label, or none.
    pub fn of_resource(label: Option<&str>, cluster: &Stream) -> Stream {
        match label.filter(|label| !label.is_empty() && *label != cluster.name) {
            Some(label) => Stream { name: label.to_owned(), own: false },
            None => cluster.clone(),
        }
    }

    /// 9 of `rhel-9`.
    pub(super) fn major(&self) -> Option<u32> {
        let digits =
            self.name.strip_prefix("rhel-").or_else(|| self.name.strip_prefix("centos-"))?;
        digits.split(['-', '.']).next()?.parse().ok()
    }
}

/// What an admin asks for beyond the table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tighter {
    /// For which stream; none: the cluster's own.
    pub stream: Option<String>,
    /// The least release of OpenShift.
    pub openshift: Option<Release>,
    /// The least RHEL.
    pub rhel: Option<Rhel>,
}

/// What an image has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The least release of OpenShift.
    pub openshift: Option<Release>,
    /// The least RHEL.
    pub rhel: Option<Rhel>,
    /// The least major of RHEL, for its distance from the stream's.
    pub least_major: Option<u32>,
    /// Whether an older image holds updates back; otherwise it is only warned of.
    pub blocks: bool,
    /// Where the release is newer than the table: the newest release that the table
    /// has.
    pub as_of: Option<(u32, u32)>,
}

impl Limits {
    /// Those of a release of OpenShift, or only an admin's where there is none.
    pub fn of(release: Option<Release>, stream: &Stream, tighter: &[Tighter]) -> Limits {
        let mut limits = release.map_or_else(Limits::none, |release| of_table(release, stream));
        for asked in tighter.iter().filter(|asked| concerns(asked, stream)) {
            limits.openshift = limits.openshift.max(asked.openshift);
            limits.rhel = limits.rhel.max(asked.rhel);
            limits.blocks |= release.is_none();
        }
        limits
    }

    fn none() -> Limits {
        Limits { openshift: None, rhel: None, least_major: None, blocks: false, as_of: None }
    }

    /// Whether it asks for anything.
    pub fn is_none(&self) -> bool {
        self.openshift.is_none() && self.rhel.is_none() && self.least_major.is_none()
    }

    /// `OpenShift 4.13.0, RHEL 9.2`; empty if it asks for nothing.
    pub fn in_words(&self) -> String {
        let openshift = self.openshift.map(|release| format!("OpenShift {release}"));
        let least = self.least_major.map(|major| Rhel { major, minor: 0 });
        let rhel = self.rhel.max(least).map(|rhel| format!("RHEL {rhel}"));
        openshift.into_iter().chain(rhel).collect::<Vec<_>>().join(", ")
    }
}

fn concerns(asked: &Tighter, stream: &Stream) -> bool {
    match &asked.stream {
        Some(name) => *name == stream.name,
        None => stream.own,
    }
}

fn of_table(release: Release, stream: &Stream) -> Limits {
    let major = stream.major();
    // A stream without a row of its own has the limits of the newest that has one.
    let newest = TABLE.iter().map(|row| row.stream).max();
    let known = TABLE.iter().map(|row| row.stream).find(|row| Some(*row) == major).or(newest);
    let rows = TABLE.iter().filter(|row| Some(row.stream) == known && row.from <= release.line());
    let behind = if stream.own { BEHIND_OWN } else { BEHIND_OTHER };
    Limits {
        least_major: major.map(|major| major.saturating_sub(behind)),
        as_of: (release.line() > LAST).then_some(LAST),
        ..rows.max_by_key(|row| row.from).map_or_else(Limits::none, |row| Limits {
            openshift: Some(row.openshift),
            rhel: Some(row.rhel),
            blocks: row.blocks,
            ..Limits::none()
        })
    }
}
