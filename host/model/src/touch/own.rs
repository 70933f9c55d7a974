//! Units that the configs bring along, and what they do to the system when they
//! are touched.

mod by_name;
mod commands;
mod directives;
mod expanded;
mod kernel;
mod lines;
mod names;
mod needed;
mod next;
mod places;
mod programs;
mod reasons;
mod relations;
mod says;
mod systemctl;
mod written;

use crate::canonical::{self, units_look_equal};
use crate::config::{File, NodeConfig, Unit};
use crate::contents;
use crate::digest::Digest;
use crate::secrets::is_secret_file;
use crate::unit_name::is_template;
use by_name::{ByName, Named};
use commands::units_begun;
use lines::{settings, settings_among};
use names::{Known, Pattern, instance_of, is_beginning, is_family, names_for};
use needed::is_the_systems;
use next::{How, Next, Visit};
use places::{Starts, places, unit_at};
use reasons::{MORE, harsh, in_a_sentence, in_words, of_hidden};
use relations::{Does, Relation, Relations, begun_by_name};
use says::{Why, ends, handed_on, is_harsh};
use std::borrow::Cow;
use std::collections::BTreeSet;
use written::{Hidden, PER_UNIT, Place, Text};

pub use written::ROOM;

/// And so much for each name of others of which only systemd can tell a part.
const PER_PATTERN: usize = 16;
/// So many names of other units are kept.
const MOST_NAMES: usize = 100_000;

/// Of what systemd makes mounts besides units.
const FSTAB: &str = "/etc/fstab";

/// What two configs say of their units.
#[derive(Debug, Default)]
pub struct OwnUnits<'c> {
    /// Of unit files and drop-ins, by the name that they are written for.
    texts: ByName<'c, Text<'c>>,
    /// What happens to other units when one is touched, by what their texts or links say of it.
    comes: ByName<'c, Coming<'c>>,
    /// The same for names with a part that only systemd can resolve.
    patterns: Vec<(Pattern, Coming<'c>)>,
    /// Units of which a link says something that is not in the configs.
    elsewhere: BTreeSet<String>,
    /// A config has an fstab, from which systemd makes mounts.
    has_fstab: bool,
    /// An fstab has options of systemd's, by which its mounts may start units.
    has_fstab_of_units: bool,
    /// There is more than is looked at.
    too_much: bool,
}

/// What is gathered of the configs, before it is put in order.
#[derive(Default)]
struct Gathered<'c> {
    texts: Named<'c, Text<'c>>,
    comes: Named<'c, Coming<'c>>,
    patterns: Vec<(Pattern, Coming<'c>)>,
    /// How many bytes of text are known, and of names that were made of it.
    bytes: usize,
    /// How many names they hold of other units.
    named: usize,
    too_much: bool,
}

/// What comes of a unit when another one is touched.
#[derive(Debug, Clone)]
struct Coming<'c> {
    does: Does,
    unit: Cow<'c, str>,
    hidden: Option<Hidden<'c>>,
}

impl<'c> OwnUnits<'c> {
    /// Of the two configs that are compared.
    pub fn of(old: &'c NodeConfig<'_>, new: &'c NodeConfig<'_>) -> OwnUnits<'c> {
        let (mut all, mut found) = (OwnUnits::default(), Gathered::default());
        for pair in canonical::join(old.units.iter(), new.units.iter(), |unit| unit.name.as_ref()) {
            let (before, after) = pair.sides();
            // Most units are the same on both sides: what they say is looked at once.
            let is_same = before.zip(after).is_some_and(|(old, new)| units_look_equal(old, new));
            for unit in before.into_iter().chain(after.filter(|_| !is_same)) {
                texts_of(unit).for_each(|text| found.add(Cow::Borrowed(&unit.name), text));
            }
        }
        for config in [old, new] {
            let places = places(config);
            found.too_much |= places.too_much;
            for (unit, file) in places.files {
                found.named += 1;
                if found.too_much {
                    break;
                }
                text_of(file).into_iter().for_each(|text| found.add(unit.clone(), text));
            }
            for (one, other) in
                places.same.into_iter().map(|(one, other)| (one.into(), other.into()))
            {
                found.comes(Cow::clone(&one), Does::Be, Cow::clone(&other), None);
                found.comes(other, Does::Be, one, None);
            }
            for Starts { unit, started, requires } in places.starts {
                let (unit, started) = (Cow::Owned(unit), Cow::Owned(started));
                if requires {
                    found.comes(Cow::clone(&started), Does::Restart, Cow::clone(&unit), None);
                }
                found.comes(unit, Does::Start, started, None);
            }
            all.elsewhere.extend(places.elsewhere);
            for file in config.files.iter().filter(|file| file.path == FSTAB) {
                all.has_fstab = true;
                all.has_fstab_of_units |=
                    text_of(file).is_none_or(|text| text.text.contains("x-systemd."));
            }
        }
        let Gathered { texts, comes, patterns, too_much, .. } = found;
        OwnUnits { texts: ByName::of(texts), comes: ByName::of(comes), patterns, too_much, ..all }
    }

    /// Why touching a unit would not be gentle, by what either config says of it,
    /// as the rest of a sentence that begins with its name. It quotes no value. What
    /// is looked at is taken from `room`.
    pub fn why_not_gentle(&self, name: &str, room: &mut usize) -> Option<String> {
        if self.too_much {
            return Some(MORE.to_owned());
        }
        let mut next = Next::default();
        next.add(name, Does::Restart, How::default());
        while let Some(visit) = next.visits.pop() {
            if let Some(why) = self.why_not_at(&visit, room) {
                return Some(why);
            }
            self.add_named(&visit, &mut next, room);
            let Visit { unit, comes, how } = visit;
            for other in begun_by_name(&unit).iter().filter(|_| comes != Does::Reload) {
                next.add(other, Does::Start, how.then(in_words(Does::Start), None));
            }
            for Coming { does: said, unit: other, hidden } in self.coming(&unit, room) {
                let Some(does) = said.after(comes) else { continue };
                let stops = said != Does::Be && matches!(does, Does::Restart | Does::Stop);
                let many = stops && is_beginning(&other);
                let is_own = does == Does::Restart && self.is_own_target(&other);
                let how = how.then(in_words(said), hidden);
                if many || is_harsh(said, does, &other) && !is_own {
                    return Some(match how.hidden {
                        Some(hidden) => of_hidden(hidden),
                        None => format!("would not be touched gently: {}", harsh(said, &other)),
                    });
                }
                next.add(&other, does, how);
            }
            if is_family(&unit) {
                for member in self.members(&unit, room) {
                    next.add(member, comes, how);
                }
            }
        }
        next.too_much.then(|| MORE.to_owned())
    }

    /// Adds the units that the texts of one name, with what comes of them.
    fn add_named(
        &self,
        Visit { unit, comes, how }: &Visit<'c>,
        next: &mut Next<'c>,
        room: &mut usize,
    ) {
        for text in self.texts(unit) {
            for setting in settings(&text.text) {
                let hidden = text.hidden(setting.line);
                if setting.key.starts_with("Exec") {
                    let Some(line) = handed_on(&setting.value, unit, room) else {
                        next.too_much = true;
                        return;
                    };
                    for other in units_begun(&line) {
                        next.add(
                            &other,
                            Does::Restart,
                            how.then("which it starts or stops", hidden),
                        );
                    }
                }
                let Some(relations) = relations::of(&setting, unit) else { continue };
                let Some(to) = relations.relation.to else { continue };
                let Some(does) = to.after(*comes) else { continue };
                let how = how.then(in_words(to), hidden);
                for other in &relations.named.units {
                    next.add(other, does, how);
                }
                for pattern in relations.named.patterns {
                    if let Known::Template(template) = pattern.known() {
                        next.add(&template, does, how);
                    }
                }
            }
        }
    }

    /// Why it is not gentle if this comes of a unit, by what is said of it.
    fn why_not_at(&self, visit: &Visit<'_>, room: &mut usize) -> Option<String> {
        let Visit { unit, comes, how } = visit;
        let (names, texts) = (names_for(unit), self.texts(unit));
        let takes = PER_UNIT + PER_PATTERN * self.patterns.len();
        let takes = takes + names.iter().map(String::len).sum::<usize>();
        let takes = takes + texts.iter().map(|text| text.text.len()).sum::<usize>();
        let Some(left) = room.checked_sub(takes) else { return Some(MORE.to_owned()) };
        *room = left;
        let which = match how.words {
            "" => "its unit".to_owned(),
            words => format!("{unit}, {words},"),
        };
        let hidden = how.hidden.map(of_hidden);
        if names.iter().any(|name| self.elsewhere.contains(name)) {
            return hidden.or_else(|| {
                Some(format!(
                    "may not be touched gently: a link leads from {which} to what the configs do \
                     not hold, which is more than is looked at"
                ))
            });
        }
        let says = self.has_fstab_of_units || self.has_fstab && *comes != Does::Start;
        if says && unit.ends_with(".mount") {
            return hidden.or_else(|| {
                Some(format!(
                    "may not be touched gently: {which} is a mount, and the configs hold {FSTAB}, \
                     which is more than is looked at"
                ))
            });
        }
        let found = texts.iter().filter_map(|text| {
            let is_own_target = |unit: &str| self.is_own_target(unit);
            Some((ends(&text.text, unit, *comes, room, is_own_target)?, text))
        });
        // What is known says more than what is not.
        let (why, text) = found.min_by_key(|(why, _)| matches!(why, Why::More { .. }))?;
        hidden.or_else(|| Some(in_a_sentence(why, &which, text)))
    }

    /// What comes of other units when this one is touched, by what they say.
    fn coming(&self, name: &str, room: &mut usize) -> Vec<Coming<'c>> {
        let names = names_for(name);
        let exact = names.iter().flat_map(|name| self.comes.get(name)).cloned();
        let meant = self.patterns.iter().filter_map(|(pattern, coming)| {
            let unit = match pattern.meant(name)? {
                "" => coming.unit.clone(),
                instance if is_template(&coming.unit) => {
                    Cow::Owned(instance_of(&coming.unit, instance)?)
                }
                _ => coming.unit.clone(),
            };
            Some(Coming { unit, ..*coming })
        });
        let coming: Vec<Coming<'c>> = exact.chain(meant).collect();
        *room = room.saturating_sub(coming.len().saturating_mul(PER_PATTERN));
        coming
    }

    /// Whether a unit is a target that the configs bring: they say what stands on it.
    fn is_own_target(&self, name: &str) -> bool {
        let is_whole = |text: &Text<'_>| !matches!(text.place, Place::DropIn(_));
        name.ends_with(".target") && !is_the_systems(name) && self.texts.get(name).any(is_whole)
    }

    /// The units with texts of their own to which a name for many units applies, such as a
    /// template's.
    fn members(&self, family: &str, room: &mut usize) -> Vec<&str> {
        let members: Vec<&str> = self.texts.names().collect();
        let takes = members.iter().map(|member| PER_PATTERN + member.len()).sum();
        *room = room.saturating_sub(takes);
        let members = members.into_iter().filter(|name| *name != family);
        members.filter(|name| names_for(name).iter().any(|it| it == family)).collect()
    }

    /// Everything that is written of a unit: of it, of its template, and of all
    /// units whose names begin or end alike.
    fn texts(&self, name: &str) -> Vec<&Text<'c>> {
        let names = names_for(name);
        names.iter().flat_map(|name| self.texts.get(name)).collect()
    }
}

impl<'c> Gathered<'c> {
    /// A text, with what it says of other units.
    fn add(&mut self, unit: Cow<'c, str>, text: Text<'c>) {
        self.bytes = self.bytes.saturating_add(text.text.len());
        if self.bytes > ROOM || self.too_much {
            self.too_much = true;
            return;
        }
        let hidden = |line| text.hidden(line);
        match &text.text {
            Cow::Borrowed(text) => self.add_relations(unit.clone(), text, hidden, |name| name),
            Cow::Owned(text) => {
                let kept = |name: Cow<'_, str>| Cow::Owned(name.into_owned());
                self.add_relations(unit.clone(), text, hidden, kept);
            }
        }
        self.texts.push((unit, text));
    }

    fn add_relations<'t>(
        &mut self,
        unit: Cow<'c, str>,
        text: &'t str,
        hidden: impl Fn(usize) -> Option<Hidden<'c>>,
        kept: impl Fn(Cow<'t, str>) -> Cow<'c, str>,
    ) {
        // A `for` would copy each setting on its way here.
        settings_among(text, relations::may_name).try_for_each(|setting| {
            let Some(Relations { relation: Relation { from: Some(does), .. }, named }) =
                relations::of(&setting, &unit)
            else {
                return Some(());
            };
            self.named += named.units.len() + named.patterns.len();
            if named.too_many || self.named > MOST_NAMES || self.bytes > ROOM {
                self.too_much = true;
                return None;
            }
            let hidden = hidden(setting.line);
            for other in named.units {
                self.comes(kept(other), does, unit.clone(), hidden);
            }
            for pattern in named.patterns {
                self.patterns.push((pattern, Coming { does, unit: unit.clone(), hidden }));
            }
            Some(())
        });
    }

    /// What comes of the unit `of` when another one is touched.
    fn comes(
        &mut self,
        touched: Cow<'c, str>,
        does: Does,
        of: Cow<'c, str>,
        hidden: Option<Hidden<'c>>,
    ) {
        let is_made = |name: &&Cow<'c, str>| matches!(name, Cow::Owned(_));
        let made = [&touched, &of].into_iter().filter(is_made).map(|name| name.len()).sum();
        self.bytes = self.bytes.saturating_add(made);
        self.comes.push((touched, Coming { does, unit: of, hidden }));
    }
}

/// A digest of all that a config says of units: configs with equal digests are judged alike here.
/// `files` and `units` are the digests of its entries, in order. None: links may lead to any file.
pub(crate) fn said_of_units(
    config: &NodeConfig<'_>,
    files: &[Digest],
    units: &[Digest],
) -> Option<Digest> {
    if config.fixed.iter().any(|fixed| fixed.id == crate::refuse::LINKS) {
        return None;
    }
    let among_units = |file: &File<'_>| file.path == FSTAB || unit_at(&file.path).is_some();
    let files = config.files.iter().zip(files).filter(|(file, _)| among_units(file));
    let files: Vec<&Digest> = files.map(|(_, digest)| digest).collect();
    Some(Digest::of_value(&(files, units)))
}

fn texts_of<'c>(unit: &'c Unit<'_>) -> impl Iterator<Item = Text<'c>> {
    let text = |text, place| Text { text: Cow::Borrowed(text), place, is_secret: false };
    let dropins = unit.dropins.iter().filter_map(move |dropin| {
        Some(text(canonical::text(&dropin.contents)?, Place::DropIn(&dropin.name)))
    });
    let own = canonical::text(&unit.contents).map(|it| text(it, Place::Unit));
    own.into_iter().chain(dropins)
}

fn text_of<'c>(file: &'c File<'_>) -> Option<Text<'c>> {
    let text = match contents::decode(&file.contents).ok()?? {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    };
    let is_secret = is_secret_file(&file.path, file.mode);
    Some(Text { text, place: Place::File(&file.path), is_secret })
}

#[cfg(test)]
mod tests;
