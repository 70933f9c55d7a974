//! Versions of boot images, in all the forms in which they are written.

use std::fmt;

/// The legacy form of a version names OpenShift from here on: `48.84.…` is 4.8.
const FIRST_LEGACY: u32 = 40;

/// Majors from here on are none of OpenShift's where a version is alone: `9.2.2024`
/// is a version of RHCOS that somebody mistyped.
const NO_OPENSHIFT: u32 = 8;

/// Majors of RHEL that a name can mean: an earlier one never was a boot image.
const RHEL_IN_NAMES: std::ops::Range<u32> = 8..FIRST_LEGACY;

/// A release of OpenShift. A pre-release counts as its release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// 4 in 4.13.0.
    pub major: u32,
    /// 13 in 4.13.0.
    pub minor: u32,
    /// 0 in 4.13.0.
    pub patch: u32,
}

impl Release {
    /// One of the table, or of a test.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Release {
        Release { major, minor, patch }
    }

    /// Reads `4.13.0`, and what has more behind it: `4.22.0-rc.1`.
    pub fn parse(text: &str) -> Option<Release> {
        let mut parts = numbers_of(text).split('.');
        let mut next = || parts.next().and_then(number);
        let release = Release { major: next()?, minor: next()?, patch: next()? };
        parts.next().is_none().then_some(release)
    }

    /// The same, and `4.22`, which a person may give as a target.
    pub fn parse_target(text: &str) -> Option<Release> {
        Release::parse(text).or_else(|| {
            let (major, minor) = numbers_of(text).split_once('.')?;
            Some(Release { major: number(major)?, minor: number(minor)?, patch: 0 })
        })
    }

    /// What counts for a limit: releases of one minor version have the same.
    pub fn line(self) -> (u32, u32) {
        (self.major, self.minor)
    }
}

fn numbers_of(text: &str) -> &str {
    text.split(['-', '+']).next().unwrap_or(text)
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// A version of RHEL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rhel {
    /// 9 in 9.2.
    pub major: u32,
    /// 2 in 9.2.
    pub minor: u32,
}

impl Rhel {
    /// One of the table, or of a test.
    pub const fn new(major: u32, minor: u32) -> Rhel {
        Rhel { major, minor }
    }

    /// Reads `9.2`.
    pub fn parse(text: &str) -> Option<Rhel> {
        let (major, minor) = text.split_once('.')?;
        Some(Rhel { major: number(major)?, minor: number(minor)? })
    }
}

impl fmt::Display for Rhel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// What is known of an image's version: at least one of both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageVersion {
    /// The release of OpenShift that it came with.
    pub openshift: Option<Release>,
    /// The RHEL in it.
    pub rhel: Option<Rhel>,
    /// As it was written.
    pub text: String,
}

impl ImageVersion {
    /// That of a release of OpenShift.
    pub fn of_release(release: Release) -> ImageVersion {
        ImageVersion { openshift: Some(release), rhel: None, text: release.to_string() }
    }

    /// Reads either form: `4.13.0`, or what [`parse_rhcos`] takes.
    pub fn parse(text: &str) -> Option<ImageVersion> {
        parse_rhcos(text).or_else(|| {
            let openshift = Release::parse(text).filter(|it| it.major < NO_OPENSHIFT)?;
            Some(ImageVersion { openshift: Some(openshift), rhel: None, text: text.to_owned() })
        })
    }

    /// What two sources of the same rank say: the older of each counts.
    pub fn older_of(self, other: ImageVersion) -> ImageVersion {
        let text = if other.is_older_than(&self) { other.text } else { self.text };
        let rhel = lesser(self.rhel, other.rhel);
        ImageVersion { openshift: lesser(self.openshift, other.openshift), rhel, text }
    }

    /// Whether it is older, by what is known of both.
    pub fn is_older_than(&self, other: &ImageVersion) -> bool {
        match (self.rhel.zip(other.rhel), self.openshift.zip(other.openshift)) {
            (Some((one, two)), _) if one != two => one < two,
            (_, Some((one, two))) => one < two,
            _ => false,
        }
    }
}

fn lesser<T: Ord>(one: Option<T>, two: Option<T>) -> Option<T> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    }
}

impl fmt::Display for ImageVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match (self.openshift, self.rhel) {
            (Some(release), Some(rhel)) => write!(f, " (OpenShift {release}, RHEL {rhel})"),
            (None, Some(rhel)) => write!(f, " (RHEL {rhel})"),
            _ => Ok(()),
        }
    }
}

/// Reads a version of RHCOS: `9.2.20240115-0`; the legacy `412.86.202308081056-0`,
/// which names OpenShift 4.12 and RHEL 8.6; and both as Azure shortens them, with
/// a stamp of 8 or 10 digits and no build.
pub fn parse_rhcos(text: &str) -> Option<ImageVersion> {
    let (numbers, build) = match text.split_once('-') {
        Some((numbers, build)) => (numbers, Some(build)),
        None => (text, None),
    };
    if build.is_some_and(|build| number(build).is_none()) {
        return None;
    }
    let mut parts = numbers.split('.');
    let (major, minor, stamp) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let (openshift, rhel) = versions(major, minor, stamp)?;
    Some(ImageVersion { openshift, rhel: Some(rhel), text: text.to_owned() })
}

fn versions(major: &str, minor: &str, stamp: &str) -> Option<(Option<Release>, Rhel)> {
    if !stamp.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let legacy = match stamp.len() {
        12 => true,
        8 | 10 => number(major)? >= FIRST_LEGACY,
        _ => return None,
    };
    if !legacy {
        return Some((None, Rhel { major: number(major)?, minor: number(minor)? }));
    }
    let (openshift, rhel) = (first_and_rest(major)?, first_and_rest(minor)?);
    // No RHEL below 7 and no OpenShift below 4 had such an image.
    let known = openshift.0 >= 4 && rhel.0 >= 7;
    known.then_some((
        Some(Release { major: openshift.0, minor: openshift.1, patch: 0 }),
        Rhel { major: rhel.0, minor: rhel.1 },
    ))
}

/// `412` is 4 and 12, `94` is 9 and 4, `810` is 8 and 10.
fn first_and_rest(digits: &str) -> Option<(u32, u32)> {
    let (first, rest) = digits.split_at_checked(1)?;
    Some((number(first)?, number(rest)?))
}

fn number(digits: &str) -> Option<u32> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

/// The version in a name, with dots or dashes: `rhcos-9-8-20260428-0-gcp-x86-64`,
/// `…/rhcos-412.86.202308081056-0-openstack.x86_64.qcow2.gz`. The older one,
/// where it has several.
pub fn in_name(name: &str) -> Option<ImageVersion> {
    let runs = digit_runs(name);
    let found = runs.windows(3).filter_map(|window| {
        let [major, minor, stamp] = window else { return None };
        let text = name.get(major.start..stamp.end)?;
        let joined = |one: &Digits, two: &Digits| {
            matches!(name.get(one.end..two.start), Some("." | "-" | "_"))
        };
        if !joined(major, minor)
            || !joined(minor, stamp)
            || !is_date(name.get(stamp.start..stamp.end)?)
        {
            return None;
        }
        let dotted: String = text.replace(['-', '_'], ".");
        let mut version = parse_rhcos(&dotted)?;
        let plausible = version.rhel.is_some_and(|rhel| RHEL_IN_NAMES.contains(&rhel.major));
        version.text = dotted;
        plausible.then_some(version)
    });
    found.reduce(ImageVersion::older_of)
}

struct Digits {
    start: usize,
    end: usize,
}

fn digit_runs(name: &str) -> Vec<Digits> {
    let mut runs: Vec<Digits> = Vec::new();
    for (at, byte) in name.bytes().enumerate() {
        if !byte.is_ascii_digit() {
            continue;
        }
        match runs.last_mut().filter(|run| run.end == at) {
            Some(run) => run.end = at + 1,
            None => runs.push(Digits { start: at, end: at + 1 }),
        }
    }
    runs
}

/// Whether a stamp begins with a day of this century.
fn is_date(stamp: &str) -> bool {
    let part = |range| stamp.get(range).and_then(number);
    stamp.starts_with("20")
        && part(4..6).is_some_and(|month| (1..=12).contains(&month))
        && part(6..8).is_some_and(|day| (1..=31).contains(&day))
}
