//! What a policy is asked when it is measured: changes of cases, or changes
//! that are made up to match its claims.

use crate::cases::Case;
use anyhow::{Result, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use tread_engine::policy::Policy;
use tread_model::change::{Change, Content, Entry, FileState, State, Token, UnitState};
use tread_model::claim::{Kind, Pattern};
use tread_model::description::Claim;
use tread_model::diff::{compare, unchanged};
use tread_model::mirrors;
use tread_model::read::Input;
use tread_model::secrets::Tokens;

/// All that is offered to a policy in one call.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) title: String,
    pub(crate) changes: Vec<Change<'static>>,
    pub(crate) unchanged: Vec<Entry<'static>>,
}

/// What a case asks of a template policy; none if that claims nothing of it.
pub(crate) fn of_case(case: &Case, policy: &Policy) -> Result<Option<Question>> {
    let (old, new) = (objects("old", &case.old)?, objects("new", &case.new)?);
    let (old, new) = mirrors::sides(&inputs(&old), &inputs(&new))?;
    let comparison = compare(&old.config, &new.config)?;
    let all = patterns(&policy.claims, |_| true)?;
    let beside = patterns(&policy.claims, |claim| claim.with_unchanged)?;
    let matches = |patterns: &[Pattern], id: &str| patterns.iter().any(|it| it.matches(id));
    let mut tokens = Tokens::default();
    let changes: Vec<Change<'static>> = comparison
        .changes
        .iter()
        .filter(|change| matches(&all, &change.id))
        .map(|change| match case.read_secrets {
            true => owned_change(change),
            false => owned_change(&tokens.redact(change)),
        })
        .collect();
    if changes.is_empty() {
        return Ok(None);
    }
    let unchanged = unchanged(&old.config, &new.config, |id| matches(&beside, id))?;
    let entry = |entry: &Entry<'_>| match case.read_secrets {
        true => owned_entry(entry),
        false => owned_entry(&tokens.redact_entry(entry)),
    };
    let unchanged = unchanged.iter().map(entry).collect();
    Ok(Some(Question { title: case.title.clone(), changes, unchanged }))
}

pub(crate) fn patterns(claims: &[Claim], wanted: impl Fn(&Claim) -> bool) -> Result<Vec<Pattern>> {
    let claims = claims.iter().filter(|claim| wanted(claim));
    claims.map(|claim| Pattern::parse(&claim.changes).map_err(anyhow::Error::msg)).collect()
}

/// The objects of a side, each as a file.
pub(crate) fn objects(name: &str, side: &[Value]) -> Result<Vec<(String, Vec<u8>)>> {
    if side.is_empty() {
        let nothing = br#"{"ignition":{"version":"3.4.0"}}"#;
        return Ok(vec![("nothing".to_owned(), nothing.to_vec())]);
    }
    let named =
        |(number, object)| Ok((format!("{name}: object {number}"), serde_json::to_vec(object)?));
    (1usize..).zip(side).map(named).collect()
}

pub(crate) fn inputs(files: &[(String, Vec<u8>)]) -> Vec<Input<'_>> {
    files.iter().map(|(name, bytes)| Input { name, bytes }).collect()
}

pub(crate) fn owned_change(change: &Change<'_>) -> Change<'static> {
    Change { id: change.id.clone(), before: owned(&change.before), after: owned(&change.after) }
}

fn owned_entry(entry: &Entry<'_>) -> Entry<'static> {
    Entry { id: entry.id.clone(), state: owned(&entry.state), was_secret: entry.was_secret }
}

fn owned(state: &State<'_>) -> State<'static> {
    let text = |text: &str| text.to_owned().into();
    match state {
        State::Absent => State::Absent,
        State::File(file) => State::File(FileState {
            content: owned_content(&file.content),
            mode: file.mode,
            user: text(&file.user),
            group: text(&file.group),
        }),
        State::Unit(unit) => State::Unit(UnitState {
            contents: owned_content(&unit.contents),
            enabled: unit.enabled,
            masked: unit.masked,
            dropins: unit
                .dropins
                .iter()
                .map(|dropin| tread_model::change::DropinState {
                    name: text(&dropin.name),
                    contents: owned_content(&dropin.contents),
                })
                .collect(),
        }),
        State::List(list) => State::List(list.iter().map(|item| text(item)).collect()),
        State::Text(it) => State::Text(text(it)),
        State::Token(token) => State::Token(*token),
    }
}

fn owned_content(content: &Content<'_>) -> Content<'static> {
    match content {
        Content::Absent => Content::Absent,
        Content::Bytes(bytes) => Content::Bytes(bytes.to_vec().into()),
        Content::Token(token) => Content::Token(*token),
    }
}

/// So many changes, or as many as the claims can tell apart, of so many bytes
/// on each side; in the order of their ids.
pub(crate) fn made_up(claims: &[Claim], count: usize, bytes: usize) -> Result<Question> {
    let mut ids = BTreeSet::new();
    let patterns = patterns(claims, |_| true)?;
    // Each claim in turn, so that a few changes already touch them all.
    for round in 0..count {
        for (claim, pattern) in claims.iter().zip(&patterns) {
            let id = match pattern.exact() {
                Some(id) => id.to_owned(),
                None => instance(&claim.changes, round),
            };
            if ids.len() < count && pattern.matches(&id) {
                ids.insert(id);
            }
        }
    }
    if ids.is_empty() {
        bail!("no change can be made up for its claims: measure it with --cases");
    }
    let changes: Vec<Change<'static>> =
        ids.into_iter().filter_map(|id| change(id, bytes)).collect();
    let title = format!("made up, {0}+{0} KiB each", bytes >> 10);
    Ok(Question { title, changes, unchanged: Vec::new() })
}

/// An id that a pattern with a glob may match: one for each number.
pub(crate) fn instance(pattern: &str, number: usize) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars().peekable();
    let mut depth = 0usize;
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            '*' if chars.next_if_eq(&'*').is_some() => {
                out.push_str(&format!("made-up/{number:03}"));
            }
            '*' => out.push_str(&format!("{number:03}")),
            '?' => out.push(char::from_digit((number % 10) as u32, 10).unwrap_or('0')),
            '[' => {
                let mut members = String::new();
                while let Some(member) = chars.next() {
                    match member {
                        ']' if !members.is_empty() => break,
                        '\\' => members.extend(chars.next()),
                        member => members.push(member),
                    }
                }
                out.push(member(&members));
            }
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            // The first alternative stands for its group.
            ',' if depth > 0 => {
                let mut inner = 0usize;
                while let Some(next) = chars.peek().copied() {
                    match next {
                        '}' if inner == 0 => break,
                        '}' => inner -= 1,
                        '{' => inner += 1,
                        _ => {}
                    }
                    chars.next();
                }
            }
            c => out.push(c),
        }
    }
    // Only a unit of a type that systemd knows can be in a config.
    if pattern.starts_with("unit:") && !out.contains('.') { out + ".service" } else { out }
}

/// A character that a class has, or does not have if it is negated.
fn member(members: &str) -> char {
    match members.strip_prefix(['!', '^']) {
        None => members.chars().next().unwrap_or('a'),
        Some(without) => {
            ('a'..='z').chain('0'..='9').find(|c| !without.contains(*c)).unwrap_or('_')
        }
    }
}

/// A change of this id with so many bytes on each side, of which one line
/// differs; none for an id that nothing is known of.
fn change(id: String, bytes: usize) -> Option<Change<'static>> {
    let word = id.split(':').next().unwrap_or_default();
    let pattern = Pattern::parse(word).or_else(|_| Pattern::parse(&id)).ok()?;
    let kind = pattern.kind();
    let (before, after) = (state(kind, "before", bytes), state(kind, "after", bytes));
    Some(Change { id, before, after })
}

fn state(kind: Kind, side: &'static str, bytes: usize) -> State<'static> {
    let content = || Content::Bytes(text(side, bytes).into_bytes().into());
    match kind {
        Kind::File => State::File(FileState {
            content: content(),
            mode: 0o644,
            user: "root".into(),
            group: "root".into(),
        }),
        Kind::Unit => State::Unit(UnitState {
            contents: content(),
            enabled: Some(true),
            masked: None,
            dropins: Vec::new(),
        }),
        Kind::SshKeys => {
            // A key in base64 is about this long.
            let keys = (0..(bytes / 128).max(1))
                .map(|n| format!("ssh-ed25519 {} {n}@{side}", "A".repeat(100)).into());
            State::List(keys.collect())
        }
        Kind::KernelArguments => {
            let count = (bytes / 16).max(1);
            State::List((0..count).map(|n| format!("{side}{n:03}=value").into()).collect())
        }
        Kind::Extensions => State::List(vec![format!("extension-{side}").into()]),
        Kind::KernelType => {
            State::Text(if side == "after" { "realtime" } else { "default" }.into())
        }
        // A template policy sees tokens of passwords.
        Kind::Password => State::Token(Token(if side == "after" { 2 } else { 1 })),
        Kind::OsImage => {
            let digest = tread_model::digest::Digest::of(side.as_bytes());
            State::Text(format!("registry.example.com/os@{digest}").into())
        }
    }
}

/// Lines as configuration files have them, of which the last one differs.
fn text(side: &str, bytes: usize) -> String {
    let last = format!("changed = {side}\n");
    let mut text = String::with_capacity(bytes);
    let mut number = 0;
    while text.len() + last.len() < bytes {
        let line = format!("option_{number:03} = value {number}\n");
        number += 1;
        let room = bytes - text.len() - last.len();
        if line.len() > room {
            // A comment fills what is left.
            text.push_str(&"#".repeat(room - 1));
            text.push('\n');
        } else {
            text.push_str(&line);
        }
    }
    text + &last
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_model::effect::Effect;

    fn claim(changes: &str) -> Claim {
        Claim::on(changes, Effect::None, Effect::Reboot)
    }

    #[test]
    fn an_object_of_a_case_is_named_with_its_side() {
        let objects = objects("new", &[Value::Null, Value::Null]).unwrap();
        let names: Vec<&str> = objects.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["new: object 1", "new: object 2"]);
    }

    fn ids(claims: &[&str], count: usize) -> Vec<String> {
        let claims: Vec<Claim> = claims.iter().map(|it| claim(it)).collect();
        let made = made_up(&claims, count, 64).unwrap();
        made.changes.into_iter().map(|change| change.id).collect()
    }

    #[test]
    fn changes_are_made_up_for_every_form_of_a_claim() {
        for (pattern, id) in [
            ("file:/etc/chrony.conf", "file:/etc/chrony.conf"),
            ("file:/etc/chrony.d/*.conf", "file:/etc/chrony.d/000.conf"),
            ("file:/etc/**", "file:/etc/made-up/000"),
            ("file:/etc/**/*.conf", "file:/etc/made-up/000/000.conf"),
            ("file:/etc/a?[0-9][!x]", "file:/etc/a00a"),
            ("file:/etc/{a,{b,c}d}/{x,y}", "file:/etc/a/x"),
            ("file:/etc/{{a,b}c,d}", "file:/etc/ac"),
            ("file:/etc/\\*x,y", "file:/etc/*x,y"),
            ("unit:*", "unit:000.service"),
            ("unit:chronyd.service", "unit:chronyd.service"),
            ("unit:a-*.{timer,service}", "unit:a-000.timer"),
            ("ssh-keys:*", "ssh-keys:000"),
            ("password:core", "password:core"),
            ("kernel-arguments", "kernel-arguments"),
            ("kernel-type", "kernel-type"),
            ("os-image", "os-image"),
            ("extensions", "extensions"),
        ] {
            assert_eq!(ids(&[pattern], 1), [id], "{pattern}");
        }
    }

    #[test]
    fn there_are_as_many_changes_as_the_claims_can_tell_apart() {
        assert_eq!(ids(&["file:/etc/chrony.conf"], 100).len(), 1);
        assert_eq!(ids(&["file:/etc/a", "unit:b.service", "os-image"], 100).len(), 3);
        let many = ids(&["file:/etc/a", "file:/etc/b/*"], 100);
        assert_eq!(many.len(), 100);
        assert!(many.is_sorted(), "in the order of the contract");
        assert!(many.contains(&"file:/etc/a".to_owned()));
    }

    #[test]
    fn both_sides_differ_and_have_the_bytes_that_were_asked_for() {
        let patterns = [
            "file:/etc/a",
            "unit:a.service",
            "ssh-keys:core",
            "password:core",
            "kernel-arguments",
            "kernel-type",
            "os-image",
            "extensions",
        ];
        for pattern in patterns {
            let made = made_up(&[claim(pattern)], 1, 4096).unwrap();
            assert_ne!(made.changes[0].before, made.changes[0].after, "{pattern}");
        }
        for bytes in [32, 33, 100, 4095, 4096] {
            assert_eq!(text("before", bytes).len(), bytes);
            assert_eq!(text("after", bytes).len(), bytes);
        }
    }
}
