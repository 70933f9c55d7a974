//! Contents that can be found again: whoever repeats them in a reason, a line of
//! the log or a panic shows them to everybody who sees the plan.
//!
//! Canaries stand where values do: behind keys, in comments, in items. The names
//! of keys may be told. What a policy encodes before it says it is not found: this
//! is for mistakes, and not for whoever wants to hide something.

use super::generate::Sample;
use tread_engine::sandbox::{CallFailure, Reply};
use tread_model::change::{Change, Content, DropinState, FileState, State, UnitState};
use tread_model::claim::Kind;

/// In place of words, and of numbers.
const WORD: &str = "zq7canary";
const NUMBER: &str = "1918273645";

/// Texts of cases that get canaries.
const SEEDS: usize = 8;

/// Changes whose contents hold canaries. `ids` and `seeds` as for all samples. With
/// `secrets`, those of files that others on the node cannot read too.
pub(super) fn samples(kind: Kind, ids: &[String], seeds: &[String], secrets: bool) -> Vec<Sample> {
    let mut pairs: Vec<(String, State<'static>, State<'static>)> = Vec::new();
    let mut all = states(kind, seeds, 0o644);
    if secrets && kind == Kind::File {
        let secret = states(kind, seeds, 0o600).into_iter();
        all.extend(
            secret.map(|(what, plain, marked)| (format!("a secret: {what}"), plain, marked)),
        );
    }
    for (label, plain, marked) in all {
        pairs.push((format!("from nothing to {label}"), State::Absent, marked.clone()));
        pairs.push((format!("from {label} to nothing"), marked.clone(), State::Absent));
        if plain != marked {
            pairs.push((format!("to {label}"), plain.clone(), marked.clone()));
            pairs.push((format!("from {label}"), marked, plain));
        }
    }
    let ids = ids.iter().cycle();
    let sample = |((label, before, after), id): (_, &String)| Sample {
        label,
        change: Change { id: id.clone(), before, after },
    };
    pairs.into_iter().zip(ids).map(sample).collect()
}

/// What a policy said that holds a canary, in words.
pub(super) fn quoted(asked: &Result<Reply, CallFailure>) -> Option<String> {
    let found = |what: &str, text: &str| holds(text).then(|| format!("{what}: {text}"));
    let (log, said) = match asked {
        Ok(reply) => {
            let mut reasons = reply.verdicts.iter().flatten().map(|verdict| &verdict.reason);
            (&reply.log, reasons.find_map(|reason| found("a reason", reason)))
        }
        Err(CallFailure { failure, log, .. }) => {
            (log, found("what it failed with", &failure.message))
        }
    };
    said.or_else(|| log.iter().find_map(|line| found("a line of its log", line)))
}

fn holds(text: &str) -> bool {
    text.to_lowercase().contains(WORD) || text.contains(NUMBER)
}

/// Each with what stands there without the canary.
fn states(
    kind: Kind,
    seeds: &[String],
    mode: u32,
) -> Vec<(String, State<'static>, State<'static>)> {
    let file = |text: String| {
        State::File(FileState {
            content: Content::Bytes(text.into_bytes().into()),
            mode,
            user: "root".into(),
            group: "root".into(),
        })
    };
    let bytes = |text: String| Content::Bytes(text.into_bytes().into());
    let unit = |contents, dropins| {
        State::Unit(UnitState { contents, enabled: Some(true), masked: None, dropins })
    };
    let dropin =
        |text: String| DropinState { name: "10-canary.conf".into(), contents: bytes(text) };
    let list =
        |items: &[&str]| State::List(items.iter().map(|it| (*it).to_owned().into()).collect());
    let label = |what: &str| format!("{what} with a canary");
    match kind {
        Kind::File => texts(seeds)
            .into_iter()
            .map(|(what, plain, marked)| (label(&what), file(plain), file(marked)))
            .collect(),
        Kind::Unit => {
            let service = |value: &str| format!("[Service]\nExecStart=/bin/a {value}\n");
            let plain = unit(bytes(service("plain")), Vec::new());
            let mut all: Vec<_> = texts(seeds)
                .into_iter()
                .map(|(what, plain, marked)| {
                    let (plain, marked) = (bytes(plain), bytes(marked));
                    (label(&what), unit(plain, Vec::new()), unit(marked, Vec::new()))
                })
                .collect();
            let marked = unit(bytes(service(WORD)), Vec::new());
            all.push((label("a command"), plain.clone(), marked));
            let marked = unit(bytes(service("plain")), vec![dropin(service(WORD))]);
            all.push((label("a drop-in"), plain, marked));
            all
        }
        Kind::SshKeys => {
            let key = format!("ssh-ed25519 AAAAC3Nz{WORD} {WORD}@example.com");
            let plain = "ssh-ed25519 AAAAC3Nza one@example.com";
            vec![(label("a key"), list(&[plain]), list(&[plain, &key]))]
        }
        Kind::KernelArguments => {
            let argument = format!("option={WORD}");
            vec![(label("an argument"), list(&["quiet"]), list(&["quiet", &argument]))]
        }
        Kind::Password => {
            let text = |text: String| State::Text(text.into());
            let (plain, marked) = ("$6$salt$hash".to_owned(), format!("$6${WORD}${WORD}"));
            vec![(label("a hash"), text(plain), text(marked))]
        }
        // Names that everybody on the node can see.
        Kind::Extensions | Kind::KernelType | Kind::OsImage => Vec::new(),
    }
}

/// Texts without and with canaries.
fn texts(seeds: &[String]) -> Vec<(String, String, String)> {
    let text =
        |what: &str, plain: &str, marked: String| (what.to_owned(), plain.to_owned(), marked);
    let mut all = vec![
        text("a word", "plain\n", format!("{WORD}\n")),
        text("a value", "option = plain\n", format!("option = {WORD}\n")),
        text("a number", "option = 12\n", format!("option = {NUMBER}\n")),
        text("a comment", "option = plain\n", format!("# {WORD}\noption = plain\n")),
        text("a section", "[a]\nb = plain\n", format!("[a]\nb = \"{WORD}\"\n")),
        text("a list of YAML", "a:\n- b: plain\n", format!("a:\n- b: {WORD}\n")),
        text("JSON", "{\"a\": [\"plain\"]}\n", format!("{{\"a\": [\"{WORD}\"]}}\n")),
    ];
    for (number, seed) in (1..).zip(seeds.iter().take(SEEDS)) {
        let words = values(seed);
        let what = format!("text {number} of the cases");
        // Every value of its own, so that the others are what the policy knows.
        for (start, end) in words.iter().take(8) {
            all.push((what.clone(), seed.clone(), replaced(seed, &[(*start, *end)])));
        }
        if words.len() > 1 {
            all.push((what, seed.clone(), replaced(seed, &words)));
        }
    }
    all
}

/// Where the values of a text are: all words of a line but its first, which is
/// the key, and those before a `:` or `=`, which are keys as well.
fn values(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let mut first = true;
        let mut start = None;
        for (at, c) in line.char_indices().chain([(line.len(), ' ')]) {
            // Of a key the dots and slashes belong to its name.
            let joins = matches!(c, '_' | '-') || (first && matches!(c, '.' | '/' | '*'));
            match (start, c.is_ascii_alphanumeric() || (start.is_some() && joins)) {
                (None, true) => start = Some(at),
                (Some(begin), false) => {
                    if !first && !is_key(line.get(at..).unwrap_or_default()) {
                        found.push((offset + begin, offset + at));
                    }
                    (first, start) = (false, None);
                }
                _ => {}
            }
        }
        offset += line.len();
    }
    found
}

/// Whether a word is a key, by what follows it.
fn is_key(rest: &str) -> bool {
    rest.trim_start_matches(['"', '\'']).trim_start_matches([' ', '\t']).starts_with([':', '='])
}

/// A text with canaries in these places, which follow each other.
fn replaced(text: &str, places: &[(usize, usize)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (start, end) in places {
        let word = text.get(*start..*end).unwrap_or_default();
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        out.push_str(text.get(done..*start).unwrap_or_default());
        out.push_str(if is_number { NUMBER } else { WORD });
        done = *end;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_model::secrets::is_secret;
    use tread_model::verdict::{Answer, Failure, FailureKind, Verdict};

    #[test]
    fn files_that_others_cannot_read_have_canaries_for_who_reads_them() {
        let secrets = |reads| {
            let made = samples(Kind::File, &["file:/etc/a".to_owned()], &[], reads);
            made.iter().filter(|it| is_secret(&it.change)).count()
        };
        assert_eq!(secrets(false), 0);
        assert!(secrets(true) > 10);
    }

    #[test]
    fn canaries_stand_in_the_place_of_values_and_never_of_keys() {
        for (text, values) in [
            ("server a.example.com iburst\n", &["a", "example", "com", "iburst"][..]),
            ("level = 1\n# why\n", &["1"]),
            ("key: value\n", &["value"]),
            ("net/ipv4.conf.all = 1\n", &["1"]),
            ("- name: a-b c\n", &["a-b", "c"]),
            ("{\"a\": {\"b\": \"c\", 'd' = 2}}\n", &["c", "2"]),
            ("alone\n", &[]),
            ("größe = groß\n", &["gro"]),
            ("", &[]),
        ] {
            let found: Vec<&str> = super::values(text)
                .into_iter()
                .filter_map(|(start, end)| text.get(start..end))
                .collect();
            assert_eq!(found, values, "{text:?}");
        }
        let text = "a = 12\nb = x\n";
        let marked = replaced(text, &values(text));
        assert_eq!(marked, format!("a = {NUMBER}\nb = {WORD}\n"));
    }

    #[test]
    fn the_contents_of_every_kind_that_may_be_a_secret_hold_them() {
        for (kind, id) in [
            (Kind::File, "file:/etc/a"),
            (Kind::Unit, "unit:a.service"),
            (Kind::SshKeys, "ssh-keys:core"),
            (Kind::Password, "password:core"),
            (Kind::KernelArguments, "kernel-arguments"),
        ] {
            let made = samples(kind, &[id.to_owned()], &["server a\n".to_owned()], true);
            assert!(made.len() >= 4, "{id}");
            for sample in made {
                assert_eq!(sample.change.id, id);
                assert_ne!(sample.change.before, sample.change.after, "{id}: {}", sample.label);
                let seen = format!("{:?}", canonical(&sample.change));
                assert!(holds(&seen), "{id}: {}: {seen}", sample.label);
            }
        }
        assert!(samples(Kind::File, &[], &[], true).is_empty());
    }

    /// With bytes as text.
    fn canonical(change: &Change<'_>) -> Vec<String> {
        let content = |content: &Content<'_>| match content {
            Content::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => format!("{other:?}"),
        };
        let state = |state: &State<'_>| match state {
            State::File(file) => content(&file.content),
            State::Unit(unit) => {
                let dropins = unit.dropins.iter().map(|dropin| content(&dropin.contents));
                dropins.chain([content(&unit.contents)]).collect::<String>()
            }
            other => format!("{other:?}"),
        };
        vec![state(&change.before), state(&change.after)]
    }

    #[test]
    fn whoever_repeats_one_is_found_wherever_it_is_said() {
        let reply = |reason: &str, log: &str| {
            let verdict = Verdict { answer: Answer::Abstain, reason: reason.to_owned() };
            let log = vec![log.to_owned()];
            Ok(Reply { verdicts: vec![None, Some(verdict)], spent: None, log })
        };
        let failed = |message: &str| {
            let failure = Failure { kind: FailureKind::Trap, message: message.to_owned() };
            Err(CallFailure { failure, spent: None, log: Vec::new(), reproducible: true })
        };
        assert_eq!(quoted(&reply("two lines", "fine")), None);
        assert_eq!(quoted(&failed("index out of bounds")), None);
        for (asked, words) in [
            (reply("it was ZQ7CANARY before", ""), "a reason: it was"),
            (reply("at most 1918273645", ""), "a reason: "),
            (reply("", "x=zq7canary"), "a line of its log: x="),
            (failed("panicked at src/lib.rs:1:1: zq7canary"), "what it failed with: "),
        ] {
            assert!(quoted(&asked).unwrap().starts_with(words), "{words}");
        }
    }
}
