//! What changes for the pulls of a node when its registries change.

use crate::config::{Config, searched};
use crate::findings::{Found, Given, Outcome, Subject, ambiguous, describe, gain};
use crate::law::harm;
use crate::lengths::Span;
use crate::lookup::{
    Asked, By, Match, Side, Source, Spoiler, fits, is_alike, room, room_behind, too_long,
};
use crate::name::is_canonical;
use crate::names::{in_order, pieces_in_order};
use crate::probe::{Probes, Words, any_shorts};
use crate::scopes::{Difference, is_same};
use crate::{Mirrors, Settings, ShortNames};

/// More names than this, and one more for so many entries of both sides, are not
/// looked up one by one: it would take longer than a policy has.
const MOST: usize = 2_000;
const ENTRIES_FOR_A_NAME: usize = 4;

/// Compares two configurations by where each image is looked for.
pub(crate) fn compare<'a>(before: &Config<'a>, after: &Config<'a>, settings: Settings) -> Outcome {
    let sides = [&Side::of(before), &Side::of(after)];
    let difference = Difference::between(sides);
    if difference.prefixes.is_empty() && before.settings == after.settings {
        return Outcome::Same(Given::default());
    }
    let Settings { mirrors, longest_name, short_names, .. } = settings;
    let words = Words::of([before, after], longest_name.into());
    let most = MOST + (before.registries.len() + after.registries.len()) / ENTRIES_FOR_A_NAME;
    let found = Found::default();
    let mut comparison = Comparison { sides, mirrors, short_names, difference, words, most, found };
    let looked_up = comparison.names().and_then(|moved| comparison.shorts(&moved));
    if looked_up.is_none() {
        let text = "too many names may be concerned to look all of them up";
        return Outcome::Harmful(text.to_string());
    }
    comparison.helpers();
    comparison.found.outcome()
}

struct Comparison<'s, 'a> {
    sides: [&'s Side<'s, 'a>; 2],
    mirrors: Mirrors,
    short_names: ShortNames,
    difference: Difference<'a>,
    words: Words,
    most: usize,
    found: Found,
}

impl<'s, 'a> Comparison<'s, 'a> {
    /// Compares complete names. Returns those whose first sources are others than
    /// before, or none if there are too many names.
    fn names(&mut self) -> Option<Vec<String>> {
        let sides = self.sides;
        let words = self.words.clone();
        let mut probes = Probes::new(&words);
        let mut moved = Vec::new();
        for (scope, entries) in self.difference.scopes(sides) {
            let name = words.name(scope);
            let mut found = [None, None];
            for ((found, side), entry) in found.iter_mut().zip(sides).zip(entries) {
                // A wildcard may be as long as a host, and no longer than anything else.
                *found = match entry {
                    Some(entry) if scope.contains('/') || !side.config.wildcards => {
                        Some((scope.len(), entry))
                    }
                    _ => side.find(&name),
                };
            }
            let [old, new] = found;
            let most = words.most_in(&name);
            let mut alike = is_alike(&name, new, most);
            self.difference.pull_back(scope, &name, new, &mut probes);
            if !is_found_alike(old, new) {
                alike = alike && is_alike(&name, old, most);
                self.difference.pull_back(scope, &name, old, &mut probes);
            }
            if !alike {
                probes.add(scope);
            } else if self.look_up(&name, found, Span::EXACT, Side::sources_of_all) {
                moved.push(words.below(&name));
            }
            if alike && !name.contains(['/', ':']) {
                probes.add_port(&name);
            }
            if probes.len() > self.most {
                return None;
            }
        }
        for name in probes.into_names() {
            let Some(span) = words.span(&name) else { continue };
            let found = sides.map(|side| side.find(&name));
            if self.look_up(&name, found, span, Side::sources) {
                moved.push(name);
            }
        }
        Some(moved)
    }

    /// Compares the sources of a name, which stands for names of all lengths of the
    /// span. Returns whether the first ones are others.
    fn look_up<'n>(
        &mut self,
        name: &'n str,
        found: [Match<'a>; 2],
        span: Span,
        sources: impl Fn(&Side<'s, 'a>, Asked<'n>, Match<'a>) -> Result<Vec<Source<'n>>, Spoiler<'a>>,
    ) -> bool {
        let [before, after] = self.sides;
        let [old, new] = found;
        // What one entry blocks may be a source of any other.
        if !before.config.blocks && !after.config.blocks && is_found_alike(old, new) {
            return false;
        }
        let mut moves = false;
        for longer in span.tried(found.into_iter().flat_map(|found| room(name, found))) {
            for by in [By::Tag, By::Digest] {
                let asked = Asked { name, longer, by };
                let was = sources(before, asked, old).unwrap_or_default();
                let is = sources(after, asked, new);
                let spoiler = is.as_ref().err().copied();
                let is = is.unwrap_or_default();
                if was == is {
                    continue;
                }
                if !span.counts(longer) {
                    moves = true;
                    continue;
                }
                moves |= self.is_ordered(by);
                let length = self.words.length_of(name, longer);
                self.note(
                    Subject { scope: self.words.scope(name), by, length },
                    &was,
                    &is,
                    spoiler,
                );
            }
        }
        moves
    }

    /// Whether it matters which source is asked first.
    fn is_ordered(&self, by: By) -> bool {
        by == By::Tag || self.mirrors == Mirrors::Untrusted
    }

    /// Compares short names: their sources are those of all names that they may
    /// stand for, one after the other. Only as long as no complete name comes to
    /// harm, and only those that may when no complete name does.
    fn shorts(&mut self, moved: &[String]) -> Option<()> {
        if !self.found.harms.is_empty() {
            return Some(());
        }
        let [before, after] = self.sides.map(|side| side.config);
        let aliases = |side: &Config<'a>, other: &Config<'a>| -> Vec<String> {
            let others = &other.settings.aliases;
            let differs = |(short, target): &(&str, &_)| others.get(short) != Some(*target);
            side.settings
                .aliases
                .iter()
                .filter(differs)
                .map(|(short, _)| short.to_string())
                .collect()
        };
        self.look_up_shorts([aliases(before, after), aliases(after, before)].concat());
        let mut scopes: Vec<&str> = Vec::new();
        if before.search() != after.search() {
            self.look_up_shorts(any_shorts(&self.words));
            if !self.found.harms.is_empty() {
                return Some(());
            }
            let [old, new] = [before, after].map(|config| self.answering(config.search()));
            if !new.starts_with(&old) || self.may_lose_all() {
                scopes.push("");
            }
        } else if before.search().len() <= 1 {
            return Some(());
        }
        if self.short_names == ShortNames::Enforcing && before.search().len() > 1 {
            // None of these could be pulled.
            self.found.given.short_names |= !scopes.is_empty() || !moved.is_empty();
            return Some(());
        }
        let starts = self.starts();
        for start in &starts {
            let met = moved.iter().filter_map(|name| self.words.within(start, name));
            // Of Docker's own images every short name may be meant.
            scopes.extend(met.map(|scope| if scope == "library" { "" } else { scope }));
        }
        pieces_in_order(&mut scopes);
        let shorts = self.below(&scopes, &starts)?;
        self.look_up_shorts(shorts);
        Some(())
    }

    /// Whether CRI-O may pull no short name any more that has no alias.
    fn may_lose_all(&self) -> bool {
        let [before, after] = self.sides.map(|side| side.config.search().len());
        self.short_names != ShortNames::Disabled && before == 1 && after > 1
    }

    /// The search registries without those that have no image for anybody.
    fn answering(&self, search: &[&'a str]) -> Vec<&'a str> {
        let answers = |registry: &&&str| {
            let start = searched(registry);
            let mut probes = Probes::new(&self.words);
            let scope = start.trim_end_matches('/');
            self.difference.probe(self.sides, &self.words, scope, &mut probes);
            let names = probes.into_names();
            self.sides.iter().any(|side| {
                let mut inside = side.config.registries.with_start(&start);
                // Of all names the shortest one fits behind most places.
                let has_sources = |name: &String| {
                    let found = side.find(name);
                    let longer = self.words.span(name).map_or(0, Span::least);
                    [By::Tag, By::Digest].into_iter().any(|by| {
                        let sources = side.sources(Asked { name, longer, by }, found);
                        sources.is_ok_and(|sources| !sources.is_empty())
                    })
                };
                inside.next().is_some() || names.iter().any(has_sources)
            })
        };
        search.iter().filter(answers).copied().collect()
    }

    /// What the names start with that short names may stand for.
    fn starts(&self) -> Vec<String> {
        let lists = self.sides.map(|side| side.config.search());
        let mut starts: Vec<String> = lists.concat().into_iter().map(searched).collect();
        in_order(&mut starts);
        starts
    }

    /// The short names in the scopes, or none if there are too many.
    fn below(&self, scopes: &[&str], starts: &[String]) -> Option<Vec<String>> {
        let mut shorts = Vec::new();
        for start in starts {
            let mut probes = Probes::new(&self.words);
            for short in scopes {
                let scope = [start.as_str(), short].concat();
                let scope = scope.trim_end_matches('/');
                self.difference.probe(self.sides, &self.words, scope, &mut probes);
                let inside = [scope, "/"].concat();
                for side in self.sides {
                    for scope in side.config.registries.with_start(&inside) {
                        self.difference.probe(self.sides, &self.words, scope, &mut probes);
                    }
                    if probes.len() + shorts.len() > self.most {
                        return None;
                    }
                }
            }
            for name in probes.into_names() {
                let Some(short) = name.strip_prefix(start.as_str()) else { continue };
                // Docker's own images may be written without their `library/`.
                let library = short
                    .strip_prefix("library/")
                    .filter(|short| start == "docker.io/" && !short.contains('/'));
                shorts.extend(library.map(str::to_string));
                shorts.push(short.to_string());
            }
        }
        Some(shorts)
    }

    fn look_up_shorts(&mut self, mut shorts: Vec<String>) {
        in_order(&mut shorts);
        for short in shorts {
            let scope = match self.words.written(&short) {
                "" => "short names".to_string(),
                _ => ["the short name ", &self.words.scope(&short)].concat(),
            };
            let names = self.sides.map(|side| {
                let names = side.config.candidates(&short).into_iter();
                names.map(|name| (side.find(&name), name)).collect::<Vec<_>>()
            });
            let all = || names.iter().flatten();
            let more = all().map(|(_, name)| name.len().saturating_sub(short.len())).min();
            let Some(span) = self.words.span_of_short(&short, more.unwrap_or_default()) else {
                continue;
            };
            let rooms =
                all().flat_map(|(found, name)| room(name, *found).chain([room_behind(name.len())]));
            let ([before, after], [old, new]) = (self.sides, &names);
            let several = [old, new].map(|names| names.len() > 1);
            let tried = span.tried(rooms).into_iter().filter(|longer| span.counts(*longer));
            for longer in tried {
                for by in [By::Tag, By::Digest] {
                    let was = sources_of_short(before, old, longer, by).unwrap_or_default();
                    let is = sources_of_short(after, new, longer, by);
                    let spoiler = is.as_ref().err().copied();
                    let is = is.unwrap_or_default();
                    let length = self.words.length_of(&short, longer);
                    let subject = Subject { scope: scope.clone(), by, length };
                    self.note_short(subject, [&was, &is], several, spoiler);
                }
            }
        }
    }

    /// Notes what becomes of a short name: whether it may stand for several names, and what the sources of
    /// all of them are.
    fn note_short(
        &mut self,
        subject: Subject,
        [was, is]: [&[Source<'_>]; 2],
        [stood_for_several, stands_for_several]: [bool; 2],
        spoiler: Option<Spoiler<'_>>,
    ) {
        let does_harm = was != is && harm(subject.by, self.mirrors, was, is).is_some();
        let is_lost = !stood_for_several && stands_for_several && !was.is_empty();
        let (was, is) = match self.short_names {
            ShortNames::Unknown if is_lost && !does_harm => return self.lose(subject),
            ShortNames::Enforcing if is_lost => return self.lose(subject),
            ShortNames::Enforcing => {
                (of_one(was, stood_for_several), of_one(is, stands_for_several))
            }
            ShortNames::Unknown | ShortNames::Disabled => (was, is),
        };
        self.found.given.short_names |= match self.short_names {
            ShortNames::Unknown => false,
            ShortNames::Enforcing => stood_for_several && does_harm,
            ShortNames::Disabled => is_lost,
        };
        if was != is {
            self.note(subject, was, is, spoiler);
        }
    }

    /// Notes a short name that CRI-O pulls no more, or may not.
    fn lose(&mut self, subject: Subject) {
        let short_names = self.short_names;
        self.found.harms.add(subject, |subject| ambiguous(subject, short_names));
    }

    /// Notes what the sources of a name, that are others than before, bring.
    fn note(
        &mut self,
        subject: Subject,
        before: &[Source<'_>],
        after: &[Source<'_>],
        spoiler: Option<Spoiler<'_>>,
    ) {
        let words = &self.words;
        let by = subject.by;
        match harm(by, self.mirrors, before, after) {
            Some(harm) => {
                self.found
                    .harms
                    .add(subject, |subject| describe(words, subject, &harm, after, spoiler));
            }
            None => {
                let found = &mut self.found;
                found.given.mirrors = found.given.mirrors
                    || by == By::Digest && harm(by, Mirrors::Untrusted, before, after).is_some();
                self.found.news.add(subject, |subject| gain(words, subject, before, after));
            }
        }
    }

    fn helpers(&mut self) {
        let [before, after] = self.sides.map(|side| side.config);
        let harms = &mut self.found.harms;
        if before.credential_helpers() != after.credential_helpers() {
            harms.add_other("the credential helpers", "credentials come from other helpers");
        }
        if before.settings.layer_store_helper != after.settings.layer_store_helper {
            let text = "the layer store gets credentials from another helper";
            harms.add_other("the layer store", text);
        }
    }
}

/// The sources of a short name where CRI-O pulls none that may stand for several names.
fn of_one<'s, 'n>(sources: &'s [Source<'n>], is_of_several: bool) -> &'s [Source<'n>] {
    if is_of_several { &[] } else { sources }
}

/// The sources of all names that a short one may stand for.
fn sources_of_short<'n, 'a: 'n>(
    side: &Side<'_, 'a>,
    names: &'n [(Match<'a>, String)],
    longer: isize,
    by: By,
) -> Result<Vec<Source<'n>>, Spoiler<'n>> {
    let is_name = |name: &str| fits(name, longer) && is_canonical(name);
    if let Some((_, name)) = names.iter().find(|(_, name)| !is_name(name)) {
        return Err(Spoiler { location: name, too_long: too_long(name, longer) });
    }
    // A name without sources leaves the others theirs.
    let sources = names
        .iter()
        .filter_map(|(found, name)| side.sources(Asked { name, longer, by }, *found).ok());
    Ok(sources.flatten().collect())
}

fn is_found_alike(before: Match<'_>, after: Match<'_>) -> bool {
    match (before, after) {
        (None, None) => true,
        (Some((old_end, old)), Some((new_end, new))) => old_end == new_end && is_same(old, new),
        _ => false,
    }
}
