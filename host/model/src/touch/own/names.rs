//! The names of units in what units say: with quotes, escapes and specifiers.

use crate::unit_name::{self, is_unit_name, kind_of_unit};
use std::borrow::Cow;

/// A unit that names more units than this is not looked into, and counts as the worst.
pub(super) const MOST_NAMED: usize = 4096;

/// And a value is no longer than they could be. Systemd reads no longer lines either.
pub(super) const LONGEST: usize = MOST_NAMED * 256;

/// Whether no unit has a name that long: it is more than is looked at. What is made of a name, such as
/// those that begin alike, grows with the square of its length.
pub(super) fn is_too_long(name: &str) -> bool {
    name.len() > unit_name::LONGEST
}

/// The units that a value names.
#[derive(Default)]
pub(super) struct Named<'v> {
    pub(super) units: Vec<Cow<'v, str>>,
    /// Names in which something stands that only systemd can tell.
    pub(super) patterns: Vec<Pattern>,
    /// There are more than are looked at.
    pub(super) too_many: bool,
}

impl Named<'_> {
    /// What is not looked at.
    pub(super) fn beyond() -> Named<'static> {
        Named { too_many: true, ..Named::default() }
    }

    pub(super) fn into_owned(self) -> Named<'static> {
        let units = self.units.into_iter().map(|unit| Cow::Owned(unit.into_owned())).collect();
        Named { units, patterns: self.patterns, too_many: self.too_many }
    }
}

/// The units that a value names in the text of the unit `name`.
pub(super) fn named<'v>(value: &'v str, name: &str) -> Named<'v> {
    match resolved(value, name) {
        None => Named::beyond(),
        Some(Cow::Borrowed(value)) if memchr::memchr2(b'"', b'\'', value.as_bytes()).is_none() => {
            plainly_named(value)
        }
        Some(value) => plainly_named(&value.replace(['"', '\''], "")).into_owned(),
    }
}

fn plainly_named(value: &str) -> Named<'_> {
    let mut found = Named::default();
    for (at, word) in value.split_whitespace().enumerate() {
        if at == MOST_NAMED || is_too_long(word) {
            found.too_many = true;
            break;
        }
        match word.contains('%') {
            true => found.patterns.push(Pattern::of(word)),
            false => {
                found.units.push(of_quadlet(word));
                // Names are escaped themselves, so that both may be meant.
                if let Cow::Owned(unescaped) = unescaped(word) {
                    found.units.push(Cow::Owned(unescaped));
                }
            }
        }
    }
    found
}

/// What Quadlet makes of the name of its file: that of a service. Other names stay.
pub(super) fn of_quadlet(name: &str) -> Cow<'_, str> {
    let (stem, kind) = name.rsplit_once('.').unwrap_or((name, ""));
    match (stem, kind) {
        (_, "container" | "kube") => Cow::Owned(format!("{stem}.service")),
        // What is meant by all of a kind, or of those that begin alike, is known of
        // services only.
        (stem, "pod" | "volume" | "network" | "image" | "build" | "artifact")
            if stem.ends_with('-') =>
        {
            Cow::Owned(format!("{stem}.service"))
        }
        (_, "pod" | "volume" | "network" | "image" | "build" | "artifact") => {
            Cow::Owned(format!("{stem}-{kind}.service"))
        }
        (
            "container" | "kube" | "pod" | "volume" | "network" | "image" | "build" | "artifact",
            "",
        ) => Cow::Borrowed("service"),
        _ => Cow::Borrowed(name),
    }
}

/// A value with the specifiers that follow from the unit's name; others stay. None: it is longer than
/// is looked at.
pub(super) fn resolved<'v>(value: &'v str, name: &str) -> Option<Cow<'v, str>> {
    if value.len() > LONGEST {
        return None;
    }
    if !value.contains('%') {
        return Some(Cow::Borrowed(value));
    }
    let specifiers = Specifiers::of(name);
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, behind)) = rest.split_once('%') {
        out.push_str(before);
        let meant = behind.chars().next().and_then(|it| Some((it, specifiers.meant(it)?)));
        rest = match meant {
            Some((specifier, stands_for)) => {
                out.push_str(&stands_for);
                behind.get(specifier.len_utf8()..).unwrap_or_default()
            }
            None => {
                out.push('%');
                behind
            }
        };
        if out.len() > LONGEST {
            return None;
        }
    }
    out.push_str(rest);
    (out.len() <= LONGEST).then_some(Cow::Owned(out))
}

/// What the specifiers stand for that follow from a unit's name.
struct Specifiers<'n> {
    name: &'n str,
    stem: &'n str,
    prefix: &'n str,
    instance: &'n str,
    /// What stands behind the last dash of the prefix.
    last: &'n str,
    /// The name stands for many units.
    is_many: bool,
}

impl Specifiers<'_> {
    fn of(name: &str) -> Specifiers<'_> {
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
        let last = prefix.rsplit('-').next().unwrap_or(prefix);
        Specifiers { name, stem, prefix, instance, last, is_many: is_family(name) }
    }

    /// What `%` and this letter stand for; None: only systemd can tell.
    fn meant(&self, specifier: char) -> Option<Cow<'_, str>> {
        // What is written of many units follows from each one's name, which may be any.
        let is_of_prefix = matches!(specifier, 'p' | 'P' | 'j' | 'J');
        if self.is_many && !(is_of_prefix && self.stem.ends_with('@')) {
            return None;
        }
        // Letters in capitals stand for the part of the name without its escapes.
        Some(match specifier {
            'n' => Cow::Borrowed(self.name),
            'N' => Cow::Borrowed(self.stem),
            'p' => Cow::Borrowed(self.prefix),
            'P' => unescaped(self.prefix),
            'i' => Cow::Borrowed(self.instance),
            'I' => unescaped(self.instance),
            'j' => Cow::Borrowed(self.last),
            'J' => unescaped(self.last),
            _ => return None,
        })
    }
}

/// A value with its characters in place of what stands for them: `\x65`, `\145`,
/// `\s`, `\n`.
pub(super) fn unescaped(value: &str) -> Cow<'_, str> {
    if !value.contains('\\') {
        return Cow::Borrowed(value);
    }
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    let mut is_second = false;
    while let Some((before, behind)) = rest.split_once('\\') {
        out.push_str(before);
        let (digits, radix, from) = match behind.as_bytes().first() {
            Some(b'x') => (2, 16, 1),
            Some(b'u') => (4, 16, 1),
            Some(b'U') => (8, 16, 1),
            Some(b'0'..=b'7') => (3, 8, 0),
            _ => (0, 0, 0),
        };
        let code = behind.get(from..from + digits).filter(|_| digits > 0);
        let character = code.and_then(|code| u32::from_str_radix(code, radix).ok());
        rest = match character.and_then(char::from_u32) {
            Some(character) => {
                out.push(character);
                behind.get(from + digits..).unwrap_or_default()
            }
            None => match behind.chars().next().zip(behind.get(1..)) {
                Some(('n', behind)) => {
                    out.push('\n');
                    behind
                }
                // A space, also in place of a tab: it parts words alike. Behind two backslashes the letter is
                // a shell's, which begins a word with it.
                Some(('s' | 't', behind)) if !is_second => {
                    out.push(' ');
                    behind
                }
                _ => behind,
            },
        };
        is_second = !is_second && behind.starts_with('\\');
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The names under which systemd looks for what is written of a unit: its own, its
/// template's, those that it shares with others that begin alike, and its type.
pub(super) fn names_for(name: &str) -> Vec<String> {
    let mut names = vec![name.to_owned()];
    let Some((stem, kind)) = name.rsplit_once('.') else { return names };
    let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
    if stem.contains('@') {
        names.push(format!("{prefix}@.{kind}"));
    }
    for (end, _) in prefix.match_indices('-') {
        let Some(begin) = prefix.get(..=end) else { continue };
        names.push(format!("{begin}.{kind}"));
        if stem.contains('@') {
            names.push(format!("{begin}@.{kind}"));
            names.push(format!("{begin}@{instance}.{kind}"));
        }
    }
    names.push(kind.to_owned());
    let mut known = std::collections::BTreeSet::new();
    names.retain(|name| known.insert(name.clone()));
    names
}

/// Whether a name stands for many units: a template, a beginning, or a type.
pub(super) fn is_family(name: &str) -> bool {
    is_beginning(name) || name.rsplit_once('.').is_some_and(|(stem, _)| stem.ends_with('@'))
}

/// Whether a name stands for all units that begin alike, or are of a type.
pub(super) fn is_beginning(name: &str) -> bool {
    name.rsplit_once('.').is_none_or(|(stem, _)| {
        let prefix = stem.split_once('@').map_or(stem, |(prefix, _)| prefix);
        prefix.ends_with('-') && prefix != "-"
    })
}

/// A unit's name in which something stands that only systemd can tell.
#[derive(Debug)]
pub(super) struct Pattern {
    /// What stands between.
    parts: Vec<String>,
    /// All that is not known is one instance.
    is_instance: bool,
}

impl Pattern {
    fn of(word: &str) -> Pattern {
        let mut specifiers = Vec::new();
        let mut parts = Vec::new();
        let mut rest = word;
        while let Some((before, behind)) = rest.split_once('%') {
            parts.push(before.to_owned());
            let specifier = behind.chars().next();
            specifiers.push(specifier);
            rest = behind.get(specifier.map_or(0, char::len_utf8)..).unwrap_or_default();
        }
        parts.push(rest.to_owned());
        let is_instance = matches!(specifiers.as_slice(), [Some('i' | 'I')]);
        Pattern { parts, is_instance }
    }

    /// If this pattern can mean `name`: what `name` has in the unknown place, or an empty text if
    /// that is not known.
    pub(super) fn meant<'n>(&self, name: &'n str) -> Option<&'n str> {
        let (first, rest) = self.parts.split_first()?;
        let (last, between) = rest.split_last()?;
        let inner = name.strip_prefix(first.as_str())?.strip_suffix(last.as_str())?;
        if self.is_instance {
            return (!inner.is_empty()).then_some(inner);
        }
        let mut left = inner;
        for part in between {
            left = left.split_once(part.as_str())?.1;
        }
        Some("")
    }

    /// What is known of the unit that is meant: that nothing comes of it, which
    /// template it is of, or nothing.
    pub(super) fn known(&self) -> Known {
        let (first, last) = (self.parts.first(), self.parts.last());
        let kind = last.and_then(|last| kind_of_unit(last));
        let template = first.and_then(|first| first.split_once('@'));
        match (kind, template) {
            // Devices come and go by themselves.
            (Some("device"), _) => Known::Nothing,
            (Some(kind), Some((prefix, _))) => Known::Template(format!("{prefix}@.{kind}")),
            _ => Known::No,
        }
    }
}

/// What is known of a unit of which only systemd can tell the name.
pub(super) enum Known {
    /// Nothing comes of it.
    Nothing,
    /// It is an instance of a template.
    Template(String),
    No,
}

/// An instance whose name holds so many others is none that anybody has.
const MOST_NESTED: usize = 2;

/// The instance of a template.
pub(super) fn instance_of(template: &str, instance: &str) -> Option<String> {
    let (prefix, kind) = template.split_once("@.")?;
    (!instance.is_empty() && instance.matches('@').count() < MOST_NESTED)
        .then(|| format!("{prefix}@{instance}.{kind}"))
}

/// Mounts are not looked for further below the root.
const DEEPEST: usize = 16;

/// The mounts that a path lies in, as systemd names them: those of the path and of all
/// above it but the root.
pub(super) fn mounts_of(path: &str) -> Vec<String> {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let deepest = parts.len().min(DEEPEST);
    let mounts = (1..=deepest).filter_map(|depth| Some(escaped(&parts.get(..depth)?.join("/"))));
    mounts.filter(|mount| is_unit_name(mount)).collect()
}

fn escaped(path: &str) -> String {
    use std::fmt::Write as _;
    let mut name = String::with_capacity(path.len() + 8);
    for (at, byte) in path.bytes().enumerate() {
        match byte {
            b'/' => name.push('-'),
            b'.' if at == 0 => name.push_str("\\x2e"),
            b'_' | b'.' | b':' => name.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => name.push(char::from(byte)),
            byte => drop(write!(name, "\\x{byte:02x}")),
        }
    }
    name + ".mount"
}
