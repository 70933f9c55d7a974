//! What the container runtime reads of certs.d when it pulls from a host: the
//! first directory of that host that exists, and no other.
//!
//! Every `.crt` in it is trusted beside the system's CAs; a `.cert` and the
//! `.key` of the same name are shown to the registry. If one of these cannot be
//! read, or its partner is missing, every pull from the host fails.

use crate::anchors::{certificates, is_plain};
use std::collections::{BTreeMap, BTreeSet};
use tread_guest_sdk::{Content, Context, State, Verdict};

/// Where directories of hosts are, in the order in which they are looked for.
const PLACES: [&str; 2] = ["/etc/containers/certs.d/", "/etc/docker/certs.d/"];
/// The file that OpenShift writes of a registry's CA in the second place: by
/// itself, so that no config has it.
const BY_OPENSHIFT: &str = "ca.crt";

/// Also where another directory is read: OpenShift writes into one of this name, and
/// what is read now may go.
const A_FILE: &str = "a file stands where the directory of this registry is looked for, so that neither its certificates nor OpenShift's can be there. Correct it";

pub(crate) const READ: &str = "certificates of registries are read at each pull";
pub(crate) const NOT_READ: &str = "in certs.d only directories of registries are read";
pub(crate) const GONE: &str =
    "certificates of registries are read at each pull, and without one a pull that worked may fail";
pub(crate) const CLIENT: &str = "client certificates and their keys are read at each pull; with others, or none, a pull that worked may fail";
pub(crate) const HIDES: &str = "with a directory of this registry in /etc/containers/certs.d the one in /etc/docker/certs.d is no longer read; OpenShift may have written a CA there that no config has, and without it a pull that worked may fail";

/// The files of a host in one place, by their path below its directory. If the
/// host's own path is a file, that has the path "".
type Files<'a> = BTreeMap<&'a str, &'a Content>;

/// The files of a host in both places.
#[derive(Default)]
pub(crate) struct Host<'a> {
    before: [Files<'a>; 2],
    after: [Files<'a>; 2],
}

/// A directory that is read: which of the places it is in, and what is in it.
#[derive(Clone, Copy)]
struct Directory<'f, 'a> {
    place: usize,
    files: &'f Files<'a>,
}

/// The host whose files a path is among.
pub(crate) fn host(path: &str) -> Option<&str> {
    locate(path).map(|(_, host, _)| host)
}

fn locate(path: &str) -> Option<(usize, &str, &str)> {
    let rest = |(place, start): (usize, &&str)| Some((place, path.strip_prefix(*start)?));
    let (place, rest) = PLACES.iter().enumerate().find_map(rest)?;
    match rest.split_once('/') {
        Some((host, name)) => Some((place, host, name)),
        None => is_host(rest).then_some((place, rest, "")),
    }
}

/// Whether images can be pulled from a host of this name, so that no file may
/// stand where its directory is looked for.
fn is_host(name: &str) -> bool {
    !name.starts_with('.') && (name.contains(['.', ':']) || name == "localhost")
}

/// All hosts that have files on either side.
pub(crate) fn hosts<'a>(context: &Context<'a>) -> BTreeMap<&'a str, Host<'a>> {
    let mut hosts: BTreeMap<&str, Host<'_>> = BTreeMap::new();
    let unchanged = context.unchanged.iter().map(|it| (it.path(), &it.state, &it.state));
    let changed = context.changes.iter().map(|it| (it.path(), &it.before, &it.after));
    for (path, before, after) in unchanged.chain(changed) {
        let Some((place, host, name)) = path.and_then(locate) else { continue };
        let host = hosts.entry(host).or_default();
        for (side, state) in [(&mut host.before, before), (&mut host.after, after)] {
            if let (Some(files), State::File(file)) = (side.get_mut(place), state) {
                files.insert(name, &file.content);
            }
        }
    }
    hosts
}

/// What becomes of pulls from a host, from the least disruptive.
enum Outcome {
    AsBefore,
    MayFail(&'static str),
    Fail(String),
}

impl Host<'_> {
    /// The verdict on all changes of the host's files.
    pub(crate) fn verdict(&self) -> Verdict {
        for (place, (before, after)) in PLACES.iter().zip(self.before.iter().zip(&self.after)) {
            if after.contains_key("") && !before.contains_key("") {
                return Verdict::refuse(["in ", place, ": ", A_FILE].concat());
            }
        }
        let [first, second] = &self.after;
        let after = [first, second].map(|files| (files, !files.is_empty()));
        let after: Vec<Directory<'_, '_>> = match after {
            [(files, true), _] => vec![Directory { place: 0, files }],
            // A directory may be left without files, and then is the one that is read.
            [(none, _), (files, _)] if !self.before[0].is_empty() => {
                vec![Directory { place: 0, files: none }, Directory { place: 1, files }]
            }
            [_, (files, _)] => vec![Directory { place: 1, files }],
        };
        let before = match &self.before {
            [first, second] if first.is_empty() => Directory { place: 1, files: second },
            [first, _] => Directory { place: 0, files: first },
        };
        let mut may_fail = None;
        for after in after {
            match compare(before, after) {
                Outcome::Fail(why) => return Verdict::refuse(why),
                Outcome::MayFail(why) => may_fail = may_fail.or(Some(why)),
                Outcome::AsBefore => {}
            }
        }
        may_fail.map_or_else(|| Verdict::nothing(READ), Verdict::drain)
    }
}

fn compare(before: Directory<'_, '_>, after: Directory<'_, '_>) -> Outcome {
    let is_same_place = before.place == after.place;
    let was_there = |name: &str| is_same_place && before.files.contains_key(name);
    for name in after.files.keys() {
        let Some(fault) = fault(after.files, name) else { continue };
        // A partner may have been brought by something else than the config.
        if !(was_there(name) && self::fault(before.files, name).as_ref() == Some(&fault)) {
            let place = PLACES.get(after.place).copied().unwrap_or_default();
            let tail = "; with that, every pull from this registry would fail. Correct it";
            let name = cut(name);
            let separator = if name.is_empty() { "" } else { ": " };
            return Outcome::Fail(["in ", place, ": ", name, separator, &fault, tail].concat());
        }
    }
    if clients(before.files) != clients(after.files) {
        return Outcome::MayFail(CLIENT);
    }
    let (trusted, trusts) = (authorities(before.files), authorities(after.files));
    if !trusted.is_subset(&trusts) {
        return Outcome::MayFail(GONE);
    }
    let may_hide = !is_same_place && !after.files.is_empty();
    if may_hide && !before.files.contains_key(BY_OPENSHIFT) {
        return Outcome::MayFail(HIDES);
    }
    Outcome::AsBefore
}

/// Why no image could be pulled with this file in the directory.
fn fault(files: &Files<'_>, name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("a file stands where the directory of this registry is looked for".into());
    }
    if let Some((directory, _)) = name.split_once('/') {
        let is_read = [".crt", ".cert", ".key"].iter().any(|end| directory.ends_with(end));
        let what =
            [cut(directory), " becomes a directory, but is read as a file because of its name"];
        return is_read.then(|| what.concat());
    }
    let (partner, what, begin, kind) = if let Some(base) = name.strip_suffix(".cert") {
        ([base, ".key"].concat(), "the key of this client certificate", CERTIFICATE, "certificate")
    } else if let Some(base) = name.strip_suffix(".key") {
        ([base, ".cert"].concat(), "the client certificate of this key", KEY, "private key")
    } else {
        return None;
    };
    if !files.contains_key(partner.as_str()) {
        return Some([what, ", ", cut(&partner), ", is missing"].concat());
    }
    let bytes = files.get(name).and_then(|content| content.bytes())?;
    let is_there = bytes.windows(begin.len()).any(|window| window == begin);
    (!is_there).then(|| ["it holds no ", kind, " in PEM"].concat())
}

/// Names longer than this are cut in texts.
const LONGEST: usize = 60;

fn cut(name: &str) -> &str {
    let end = name.char_indices().nth(LONGEST).map_or(name.len(), |(end, _)| end);
    name.get(..end).unwrap_or(name)
}

const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----";
const KEY: &[u8] = b"PRIVATE KEY-----";

/// Client certificates and their keys.
fn clients<'a>(files: &Files<'a>) -> Vec<(&'a str, &'a Content)> {
    let is_client =
        |name: &str| !name.contains('/') && (name.ends_with(".cert") || name.ends_with(".key"));
    files.iter().filter(|(name, _)| is_client(name)).map(|(name, file)| (*name, *file)).collect()
}

/// What a directory says about whom to trust.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Authority<'a> {
    Certificate(Vec<u8>),
    /// A file that may hold something other than plain certificates.
    Odd(&'a [u8]),
    /// One of which only a token is known.
    Hidden(&'a str),
    /// One whose content the config does not say.
    Unsaid(&'a str),
}

fn authorities<'a>(files: &Files<'a>) -> BTreeSet<Authority<'a>> {
    let mut all = BTreeSet::new();
    for (name, content) in files {
        if name.contains('/') || !name.ends_with(".crt") {
            continue;
        }
        match content {
            Content::Bytes(bytes) => match certificates(bytes).filter(|_| is_plain(bytes)) {
                Some(found) => all.extend(found.into_iter().map(Authority::Certificate)),
                None => all.extend([Authority::Odd(bytes)]),
            },
            Content::Digest(token) => all.extend([Authority::Hidden(token)]),
            Content::Absent => all.extend([Authority::Unsaid(name)]),
        }
    }
    all
}
