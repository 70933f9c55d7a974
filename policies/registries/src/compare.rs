//! What changes for the pulls of a node when its registries change.

use crate::Mirrors;
use crate::config::{Config, searched};
use crate::law::harm;
use crate::lookup::{By, Match, Side, Source, is_alike};
use crate::probe::{Probes, Words, any_shorts};
use crate::scopes::{Difference, is_same};
use crate::told::{Found, Outcome, describe, gain};

/// More names than this, and one more for so many entries of both sides, are not
/// looked up one by one: it would take longer than a policy has.
const MOST: usize = 2_000;
const ENTRIES_FOR_A_NAME: usize = 4;

/// Compares two configurations by where each image is looked for.
pub(crate) fn compare<'a>(before: &Config<'a>, after: &Config<'a>, mirrors: Mirrors) -> Outcome {
    let sides = [&Side::of(before), &Side::of(after)];
    let difference = Difference::between(sides);
    if difference.prefixes.is_empty() && before.settings == after.settings {
        return Outcome::Same;
    }
    let words = Words::of([before, after]);
    let most = MOST + (before.registries.len() + after.registries.len()) / ENTRIES_FOR_A_NAME;
    let mut comparison =
        Comparison { sides, mirrors, difference, words, most, found: Found::default() };
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
            let mut alike = !words.is_long() && is_alike(&name, new);
            self.difference.pull_back(scope, &name, new, &mut probes);
            if !is_found_alike(old, new) {
                alike = alike && is_alike(&name, old);
                self.difference.pull_back(scope, &name, old, &mut probes);
            }
            if !alike {
                probes.add(scope);
            } else if self.look_up(&name, found, Side::sources_of_all) {
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
            let found = sides.map(|side| side.find(&name));
            if self.look_up(&name, found, Side::sources) {
                moved.push(name);
            }
        }
        Some(moved)
    }

    /// Compares the sources of a name. Returns whether the first ones are others.
    fn look_up<'n>(
        &mut self,
        name: &'n str,
        found: [Match<'a>; 2],
        sources: impl Fn(&Side<'s, 'a>, &'n str, Match<'a>, By) -> Vec<Source<'n>>,
    ) -> bool {
        let [before, after] = self.sides;
        let [old, new] = found;
        // What one entry blocks may be a source of any other.
        if !before.config.blocks && !after.config.blocks && is_found_alike(old, new) {
            return false;
        }
        let mut moves = false;
        for by in [By::Tag, By::Digest] {
            let (was, is) = (sources(before, name, old, by), sources(after, name, new, by));
            if was == is {
                continue;
            }
            moves |= self.is_ordered(by);
            // Only the first harm is told.
            let told = is.is_empty() && self.found.harms.is_empty();
            let spoiler = if told { after.spoiler(name, by) } else { None };
            let scope = self.words.scope(name);
            self.note(scope, by, &was, &is, spoiler);
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
            if !new.starts_with(&old) {
                scopes.push("");
            }
        } else if before.search().len() <= 1 {
            return Some(());
        }
        let starts = self.starts();
        for start in &starts {
            let met = moved.iter().filter_map(|name| self.words.within(start, name));
            // Of Docker's own images every short name may be meant.
            scopes.extend(met.map(|scope| if scope == "library" { "" } else { scope }));
        }
        scopes.sort_unstable();
        scopes.dedup();
        let shorts = self.below(&scopes, &starts)?;
        self.look_up_shorts(shorts);
        Some(())
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
                let has_sources = |name: &String| {
                    let found = side.find(name);
                    [By::Tag, By::Digest]
                        .iter()
                        .any(|by| !side.sources(name, found, *by).is_empty())
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
        starts.sort_unstable();
        starts.dedup();
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
        shorts.sort_unstable();
        shorts.dedup();
        for short in shorts {
            let scope = match self.words.written(&short) {
                "" => "short names".to_string(),
                _ => ["the short name ", &self.words.scope(&short)].concat(),
            };
            let [old, new] = self.sides.map(|side| (side, side.config.candidates(&short)));
            for by in [By::Tag, By::Digest] {
                let [was, is] = [&old, &new].map(|(side, names)| -> Vec<Source<'_>> {
                    names.iter().flat_map(|name| side.sources(name, side.find(name), by)).collect()
                });
                if was != is {
                    self.note(scope.clone(), by, &was, &is, None);
                }
            }
        }
    }

    /// Notes what the sources of a name, that are others than before, bring.
    fn note(
        &mut self,
        scope: String,
        by: By,
        before: &[Source<'_>],
        after: &[Source<'_>],
        spoiler: Option<&str>,
    ) {
        let words = &self.words;
        match harm(by, self.mirrors, before, after) {
            Some(harm) => {
                let text = |scope: &str| describe(words, scope, by, &harm, spoiler);
                self.found.harms.add(scope, text);
            }
            None => {
                let found = &mut self.found;
                found.if_whole = found.if_whole
                    || by == By::Digest && harm(by, Mirrors::Untrusted, before, after).is_some();
                self.found.news.add(scope, |scope| gain(words, scope, by, before, after));
            }
        }
    }

    fn helpers(&mut self) {
        let [before, after] = self.sides.map(|side| side.config);
        let harms = &mut self.found.harms;
        if before.credential_helpers() != after.credential_helpers() {
            harms.add("the credential helpers".to_string(), |_| {
                "credentials come from other helpers".to_string()
            });
        }
        if before.settings.layer_store_helper != after.settings.layer_store_helper {
            harms.add("the layer store".to_string(), |_| {
                "the layer store gets credentials from another helper".to_string()
            });
        }
    }
}

fn is_found_alike(before: Match<'_>, after: Match<'_>) -> bool {
    match (before, after) {
        (None, None) => true,
        (Some((old_end, old)), Some((new_end, new))) => old_end == new_end && is_same(old, new),
        _ => false,
    }
}
