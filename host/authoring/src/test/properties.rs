//! What every policy must keep, whatever it is for: shown over generated
//! changes of all that it claims.

use super::generate::{Sample, samples};
use super::quotes;
use super::run::Subject;
use super::together::{Offered, Pool, calls};
use crate::cases::Case;
use crate::questions::{inputs, instance, objects};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;
use tread_console::sentence::thousands;
use tread_engine::sandbox::{Call, CallFailure, Module, Reply, Sandbox, Speaker};
use tread_model::change::{Change, Content, Entry, State};
use tread_model::claim::{Kind, Pattern};
use tread_model::description::Claim;
use tread_model::diff::compare;
use tread_model::read;
use tread_model::secrets::Tokens;
use tread_model::verdict::{Answer, Failure, FailureKind, Layer, Verdict};

/// A property, and what breaks it.
#[derive(Debug)]
pub(super) struct Property {
    pub(super) title: String,
    /// In lines; empty: it holds.
    pub(super) problems: Vec<String>,
}

const ANSWERS: &str = "every change that it claims gets an answer";
const AGREES: &str = "the same change gets the same answer twice";
const FUEL: &str = "every answer takes less than the limits of fuel, time and memory";
const RANGE: &str = "no answer goes beyond its claim";
const TOGETHER: &str = "several changes in one call get their answers too";
const REASONS: &str = "every answer has a reason";
const QUOTES: &str = "no reason, no line of the log and no panic quotes contents";

/// Calls that ran into a limit, each of which takes long: then no more are made.
const ENOUGH: usize = 8;

/// Ids of a claim with a glob.
const IDS: usize = 4;

/// Asks about everything that can be made up, and what the cases hold. Before that `told` gets
/// a line that says what is tried.
pub(super) fn check(subject: &Subject, cases: &[Case], told: &dyn Fn(&str)) -> Vec<Property> {
    if let Err(failure) = subject.policy.check(&subject.sandbox) {
        let mut problems = vec!["with its default settings it cannot be asked anything".to_owned()];
        problems.extend(subject.scene().failure(failure, &[]));
        return vec![Property { title: ANSWERS.to_owned(), problems }];
    }
    let seeds = seeds(cases);
    let claims = || {
        let claims = subject.policy.claims.iter();
        claims.filter_map(|claim| Some((claim, Pattern::parse(&claim.changes).ok()?)))
    };
    let pools: Vec<Pool> =
        claims().map(|(claim, pattern)| pool(subject, claim, pattern.kind(), &seeds)).collect();
    let calls = calls(&pools);
    told(&trying(subject, &pools, calls.len()));
    let mut run = Run::new(subject);
    claims().zip(&pools).for_each(|((claim, _), pool)| run.ask_each(claim, pool));
    run.beside.sort_by(|a, b| a.id.cmp(&b.id));
    run.beside.dedup_by(|a, b| a.id == b.id);
    calls.iter().for_each(|call| run.ask_together(call));
    found(run)
}

/// What can be made up for a claim.
fn pool(subject: &Subject, claim: &Claim, kind: Kind, seeds: &[String]) -> Pool {
    let ids = ids(&claim.changes);
    let mut samples = samples(kind, &ids, seeds);
    let reads_secrets = subject.policy.declarations.needs_secrets;
    samples.extend(quotes::samples(kind, &ids, seeds, reads_secrets));
    Pool { ids, samples }
}

/// What is tried, in a line.
fn trying(subject: &Subject, pools: &[Pool], calls: usize) -> String {
    let changes: usize = pools.iter().map(|pool| pool.samples.len()).sum();
    format!(
        "trying what every policy must keep: {} is asked about {} made-up changes, and in {} calls \
         about several, each twice",
        subject.name(),
        thousands(changes as u64),
        thousands(calls as u64)
    )
}

/// What came of all that was asked.
fn found(run: Run<'_>) -> Vec<Property> {
    let Run { broken, asked, together, .. } = run;
    let Broken { answers, together: several, agrees, fuel, range, reasons, quotes } = broken;
    let one = format!("{asked} made-up changes");
    let all = format!("{one}, {together} calls with several");
    [
        (ANSWERS, &one, answers),
        (TOGETHER, &format!("{together} calls"), several),
        (AGREES, &all, agrees),
        (FUEL, &all, fuel),
        (RANGE, &all, range),
        (REASONS, &all, reasons),
        (QUOTES, &all, quotes),
    ]
    .map(|(title, of, found)| Property {
        title: format!("{title} ({of})"),
        problems: found.lines(),
    })
    .into()
}

struct Run<'s> {
    subject: &'s Subject,
    broken: Broken,
    /// Changes that were asked about one by one.
    asked: usize,
    /// Calls with several.
    together: usize,
    /// What is claimed `with-unchanged`.
    beside: Vec<Entry<'static>>,
}

/// What was found that breaks each property.
#[derive(Default)]
struct Broken {
    answers: Counted,
    together: Counted,
    agrees: Counted,
    fuel: Counted,
    range: Counted,
    reasons: Counted,
    quotes: Counted,
}

/// The first of several, and how many there are.
#[derive(Debug, Default)]
struct Counted {
    first: Vec<String>,
    count: usize,
}

impl Counted {
    fn add(&mut self, lines: Vec<String>) {
        if self.count == 0 {
            self.first = lines;
        }
        self.count += 1;
    }

    fn lines(mut self) -> Vec<String> {
        if self.count > 1 {
            self.first.push(format!("and {} more like it", self.count - 1));
        }
        self.first
    }
}

/// How a policy is asked.
type Ask = fn(&Sandbox, &Module, &Call<'_, '_>) -> Result<Reply, CallFailure>;

impl<'s> Run<'s> {
    fn new(subject: &'s Subject) -> Run<'s> {
        Run { subject, broken: Broken::default(), asked: 0, together: 0, beside: Vec::new() }
    }

    /// About each change that was made up for a claim.
    fn ask_each(&mut self, claim: &Claim, pool: &Pool) {
        if pool.samples.is_empty() {
            let line = format!("no change could be made up for the claim on {}", claim.changes);
            self.broken.answers.add(vec![line, "a simpler glob can be tested".to_owned()]);
        }
        if claim.with_unchanged {
            self.beside.extend(known(pool));
        }
        pool.samples.iter().for_each(|sample| self.ask(sample));
    }

    fn ask(&mut self, sample: &Sample) {
        if self.broken.fuel.count >= ENOUGH {
            return;
        }
        self.asked += 1;
        let what = format!("{}, {}", sample.change.id, sample.label);
        self.call(&what, &[&sample.change]);
    }

    /// Several changes, as a plan offers them.
    fn ask_together(&mut self, offered: &Offered) {
        if self.broken.fuel.count >= ENOUGH {
            return;
        }
        self.together += 1;
        let changes: Vec<&Change<'_>> = offered.changes.iter().collect();
        self.call(&offered.label, &changes);
    }

    fn call(&mut self, what: &str, changes: &[&Change<'_>]) {
        let asked = self.classify(changes, Sandbox::classify);
        let offered_secrets = match &asked {
            Ok(reply) => reply.spent.is_none(),
            Err(failed) => failed.spent.is_none(),
        };
        // What it says of a secret is shown nowhere, nor to its author above.
        let openly = offered_secrets.then(|| self.classify(changes, Sandbox::classify_openly));
        if let Some(quoted) = quotes::quoted(openly.as_ref().unwrap_or(&asked)) {
            self.broken.quotes.add(vec![
                format!("{what}: contents that were offered stand in {quoted}"),
                "reasons are shown in the cluster: they name keys and count, and quote nothing"
                    .to_owned(),
            ]);
        }
        match asked {
            Err(CallFailure { failure, .. }) => self.note(what, &failure, changes),
            Ok(one) => {
                let silent = changes.iter().zip(&one.verdicts).find(|(_, it)| is_silent(it));
                if let Some((change, _)) = silent {
                    self.broken.reasons.add(vec![
                        format!("{what}: the answer for {} has none", change.id),
                        "a reason is what a plan shows to whoever asks why".to_owned(),
                    ]);
                }
                match self.classify(changes, Sandbox::classify) {
                    Ok(two) if two.verdicts == one.verdicts => {}
                    _ => self.broken.agrees.add(vec![format!("{what}: two answers that differ")]),
                }
            }
        }
    }

    fn classify(&self, changes: &[&Change<'_>], ask: Ask) -> Result<Reply, CallFailure> {
        let Subject { sandbox, module, policy, .. } = self.subject;
        let changed = |id: &str| changes.iter().any(|change| change.id == id);
        let beside: Vec<Entry<'_>> =
            self.beside.iter().filter(|entry| !changed(&entry.id)).cloned().collect();
        // As it will be offered them.
        let mut tokens = (!policy.declarations.needs_secrets).then(Tokens::default);
        let mut seen = |change| match &mut tokens {
            Some(tokens) => tokens.redact(change),
            None => Cow::Borrowed(change),
        };
        let changes: Vec<Cow<'_, Change<'_>>> = changes.iter().map(|it| seen(it)).collect();
        let changes: Vec<&Change<'_>> = changes.iter().map(AsRef::as_ref).collect();
        let call = Call {
            settings: &policy.settings,
            changes: &changes,
            unchanged: &beside,
            claims: &policy.claims,
            layer: Layer::Template,
            speaker: Speaker::Policy,
            words: policy.words(),
        };
        ask(sandbox, module, &call)
    }

    fn note(&mut self, what: &str, failure: &Failure, changes: &[&Change<'_>]) {
        let mut lines = vec![format!("{what}:")];
        lines.extend(self.subject.scene().failure(failure, changes));
        let property = match failure.kind {
            FailureKind::OutOfFuel
            | FailureKind::Deadline
            | FailureKind::Memory
            | FailureKind::Stack => &mut self.broken.fuel,
            FailureKind::BeyondClaim => &mut self.broken.range,
            _ if changes.len() > 1 => &mut self.broken.together,
            _ => &mut self.broken.answers,
        };
        property.add(lines);
    }
}

/// What did not change, of the last of several names, so that the others have it beside them.
fn known(pool: &Pool) -> Option<Entry<'static>> {
    let last = pool.samples.iter().filter(|sample| Some(&sample.change.id) == pool.ids.last());
    let change = last.map(|sample| &sample.change).find(|it| it.after != State::Absent)?;
    Some(Entry { id: change.id.clone(), state: change.after.clone(), was_secret: false })
}

/// Whether an answer says nothing of why. Without an opinion there is nothing to say.
fn is_silent(verdict: &Option<Verdict>) -> bool {
    let opinion = verdict.as_ref().filter(|it| it.answer != Answer::Abstain);
    opinion.is_some_and(|it| it.reason.is_empty())
}

/// Changes that a claim matches.
fn ids(claim: &str) -> Vec<String> {
    let Ok(pattern) = Pattern::parse(claim) else { return Vec::new() };
    if let Some(id) = pattern.exact() {
        return vec![id.to_owned()];
    }
    let made = (0..IDS).map(|number| instance(claim, number));
    let mut ids: Vec<String> = made.filter(|id| pattern.matches(id)).collect();
    ids.dedup();
    ids
}

/// The texts that the cases hold: what the policy is for is in there.
fn seeds(cases: &[Case]) -> Vec<String> {
    let mut seeds = BTreeSet::new();
    for case in cases {
        texts_of(&case.old, &case.new, &mut seeds);
    }
    seeds.into_iter().collect()
}

fn texts_of(old: &[Value], new: &[Value], seeds: &mut BTreeSet<String>) {
    let (Ok(old), Ok(new)) = (objects("old", old), objects("new", new)) else { return };
    let Ok((old, new)) = read::sides(&inputs(&old), &inputs(&new)) else { return };
    let Ok(comparison) = compare(&old.config, &new.config) else { return };
    let states = comparison.changes.iter().flat_map(|change| [&change.before, &change.after]);
    for state in states {
        let content = match state {
            State::File(file) => &file.content,
            State::Unit(unit) => &unit.contents,
            _ => continue,
        };
        if let Content::Bytes(bytes) = content
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            seeds.insert(text.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_with_a_glob_is_tested_with_several_names() {
        assert_eq!(ids("file:/etc/a"), ["file:/etc/a"]);
        assert_eq!(ids("file:/etc/a.d/*").len(), IDS);
        assert_eq!(ids("unit:*").len(), IDS);
        assert_eq!(ids("kernel-arguments"), ["kernel-arguments"]);
        assert!(!ids("file:/etc/{a,b}").is_empty());
    }

    #[test]
    fn of_many_faults_the_first_is_told_and_the_rest_counted() {
        let mut found = Counted::default();
        assert!(Counted::default().lines().is_empty());
        found.add(vec!["one".to_owned()]);
        found.add(vec!["two".to_owned()]);
        found.add(vec!["three".to_owned()]);
        assert_eq!(found.lines(), ["one", "and 2 more like it"]);
    }
}
