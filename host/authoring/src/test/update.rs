//! Rewriting what cases expect: only the block `expect:` of a document, as
//! text, so that all else in the file stays as it was written.

use super::run::Found;
use crate::cases::{self, Case, Expect, Given, Reason, outcome_word, plan_line};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use tread_console::outputs;
use tread_model::plan::{Plan, PlannedChange, Step};
use tread_model::read::{Input, document_values};

/// What a case is to expect from now on.
#[derive(Debug, Default)]
pub(super) struct Expectation {
    /// The block `expect:`.
    pub(super) block: String,
    /// What its author should know of it, in lines.
    pub(super) notes: Vec<String>,
}

/// What was found, as far as the case looked at it before. None if the policy could not be
/// asked, or failed: that is never written.
pub(super) fn expectation(case: &Case, found: &Found) -> Option<Expectation> {
    let given = found.given.as_ref()?;
    let Expect { plan, changes, verdicts } = &case.expect;
    let (block, notes) = (String::from("expect:\n"), Vec::new());
    let mut new = Expectation { block, notes };
    if plan.is_some() {
        let plan = found.plan.as_ref()?;
        // Writing to a string cannot fail.
        let _ = writeln!(new.block, "  plan: {}", scalar(&plan_line(plan)));
        if changes.is_some() {
            new.changes_of(case, found, plan);
        }
    }
    if verdicts.is_some() || case.expect.is_open() {
        new.verdicts_of(case, found, given);
    }
    Some(new)
}

impl Expectation {
    fn changes_of(&mut self, case: &Case, found: &Found, plan: &Plan) {
        let before = |change: &PlannedChange| case.expect.changes.as_ref()?.get(&change.id);
        self.block += "  changes:\n";
        for change in &plan.changes {
            let before = before(change);
            let new = before.is_none();
            let mut fields = Vec::new();
            if let Some(by) = change.decided_by.as_ref()
                && before.is_none_or(|it| it.by.is_some())
            {
                fields.push(("by", scalar(&by.policy)));
            }
            if before.is_some_and(|it| it.outcome.is_some()) || (new && change.decided_by.is_none())
            {
                fields.push(("outcome", outcome_word(change.outcome).to_owned()));
            }
            if before.is_none_or(|it| it.actions.is_some()) {
                fields.push(("actions", list(change.actions.iter().map(Step::to_string))));
            }
            if let Some(reason) = before.and_then(|it| it.reason.as_ref()) {
                let reason = self.reason(&change.id, Some(reason), &change.reason, found);
                fields.extend(reason.map(|reason| ("reason", reason)));
            }
            self.push(&change.id, &fields);
        }
    }

    fn verdicts_of(&mut self, case: &Case, found: &Found, given: &BTreeMap<String, Given>) {
        self.block += "  verdicts:\n";
        for (id, given) in given {
            let before = case.expect.verdicts.as_ref().and_then(|verdicts| verdicts.get(id));
            let mut fields = vec![("answer", given.answer.to_owned())];
            if given.answer == "act" {
                fields.push(("actions", list(given.actions.iter().cloned())));
            }
            let reason = before.and_then(|it| it.reason.as_ref());
            if !given.reason.is_empty() && (reason.is_some() || case.expect.is_open()) {
                let reason = self.reason(id, reason, &given.reason, found);
                fields.extend(reason.map(|reason| ("reason", reason)));
            }
            self.push(id, &fields);
        }
    }

    /// The reason to expect: the one that was, where it still fits. None, and a note, where tread
    /// says something in place of the policy's own.
    fn reason(
        &mut self,
        id: &str,
        before: Option<&Reason>,
        now: &str,
        found: &Found,
    ) -> Option<String> {
        if found.unshown.as_ref().is_some_and(|unshown| now.contains(unshown)) {
            let note = format!(
                "{id}: its reason is not shown beside a secret, so none is expected: declare the \
                 sentence among the policy's reasons (REASONS in the SDK), and write it here"
            );
            self.notes.extend((!self.notes.contains(&note)).then_some(note));
            return None;
        }
        let kept = before.filter(|reason| reason.matches(now));
        Some(quoted(kept.map_or(now, |reason| &reason.written)))
    }

    fn push(&mut self, id: &str, fields: &[(&str, String)]) {
        let fields: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let _ = writeln!(self.block, "    {}: {{{}}}", scalar(id), fields.join(", "));
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.map(|item| scalar(&item)).collect::<Vec<_>>().join(", "))
}

/// A scalar of YAML: plain where nothing in it can be misread, also in a list.
pub(crate) fn scalar(text: &str) -> String {
    let fine = |c: char| c.is_ascii_alphanumeric() || "/_.-@: ".contains(c);
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(fine)
        && !text.contains(": ")
        && !text.ends_with([':', ' '])
        && !["true", "false", "null", "yes", "no", "on", "off"].contains(&text);
    if plain { text.to_owned() } else { quoted(text) }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Writes other expectations, by title, into the file of the cases that were tested. Documents
/// that are no case that can be read stay as they are.
pub(super) fn rewrite(
    path: &Path,
    tested: &[Case],
    blocks: &BTreeMap<String, String>,
) -> Result<()> {
    let text = fs::read_to_string(path)?;
    let is_as_tested =
        cases::read_each(path).is_ok_and(|now| now.iter().flatten().eq(tested.iter()));
    ensure!(
        is_as_tested,
        "it was changed while its cases ran, and nothing was written: run this again"
    );
    let new = rewritten(&text, blocks)?;
    outputs::write(path, new.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}

/// The file with other expectations, by title.
fn rewritten(text: &str, blocks: &BTreeMap<String, String>) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut left: Vec<&str> = blocks.keys().map(String::as_str).collect();
    for piece in documents(text) {
        let before = values(piece)?;
        let title = match before.as_slice() {
            [only] => only.get("title").and_then(Value::as_str),
            _ => None,
        };
        let Some((title, block)) = title.and_then(|title| blocks.get_key_value(title)) else {
            out.push_str(piece);
            continue;
        };
        ensure!(
            left.contains(&title.as_str()),
            "{title}: two documents have this title, and nothing was written: give each its own"
        );
        let new = replaced(piece, block)
            .and_then(|new| check_read_back(&before, &values(&new)?, block).map(|()| new))
            .with_context(|| format!("{title}: write this by hand:\n{block}"))?;
        out.push_str(&new);
        left.retain(|other| other != title);
    }
    ensure!(left.is_empty(), "no document of its own has the title {}", left.join(", "));
    Ok(out)
}

/// The documents of a file, each with the line that begins it.
fn documents(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut rest, mut at) = (text, 0);
    for line in text.split_inclusive('\n') {
        let starts = line.trim_end() == "---" || line.starts_with("--- ");
        if starts && at > 0 {
            let (piece, tail) = rest.split_at(at);
            pieces.push(piece);
            (rest, at) = (tail, 0);
        }
        at += line.len();
    }
    pieces.push(rest);
    pieces
}

fn values(piece: &str) -> Result<Vec<Value>> {
    let meaningful = |line: &str| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#') && line != "---"
    };
    if !piece.lines().any(meaningful) {
        return Ok(Vec::new());
    }
    let documents = document_values(&Input { name: "", bytes: piece.as_bytes() })?;
    Ok(documents.into_iter().map(|document| document.value).collect())
}

/// One document with another block `expect:`, behind all else if it has none.
/// Comments within the old block go with it.
fn replaced(piece: &str, block: &str) -> Result<String> {
    let lines: Vec<&str> = piece.split_inclusive('\n').collect();
    let line_end = if lines.iter().any(|line| line.ends_with("\r\n")) { "\r\n" } else { "\n" };
    let block = block.replace('\n', line_end);
    let Some(start) = lines.iter().position(|line| line.starts_with("expect:")) else {
        let written = piece.trim_end();
        let blank = piece.strip_prefix(written).unwrap_or_default();
        let blank = blank.strip_prefix(line_end).unwrap_or(blank);
        return Ok(format!("{written}{line_end}{block}{blank}"));
    };
    let end = start + 1 + length_of_block(lines.get(start + 1..).unwrap_or_default());
    let before = lines.iter().take(start).copied();
    let after = lines.iter().skip(end).copied();
    Ok(before.chain([block.as_str()]).chain(after).collect())
}

/// How many lines belong to the block that began before them: up to the last one that is
/// indented or closes a bracket. What is blank or a comment behind it belongs to what follows;
/// a comment between lines of the block stands in it, however little it is indented.
fn length_of_block(lines: &[&str]) -> usize {
    let says_nothing = |line: &&&str| line.trim().is_empty() || line.starts_with('#');
    let is_within = |line: &&&str| line.starts_with([' ', '\t', '}', ']']) || says_nothing(line);
    let within = lines.iter().take_while(is_within).count();
    let behind = lines.iter().take(within).rev().take_while(says_nothing).count();
    within - behind
}

/// Whether the document says the same as before, and expects what the block says.
fn check_read_back(before: &[Value], after: &[Value], block: &str) -> Result<()> {
    let apart = |values: &[Value]| -> (Vec<Value>, Vec<Value>) {
        let mut values = values.to_vec();
        let objects = values.iter_mut().filter_map(Value::as_object_mut);
        let expected = objects.filter_map(|value| value.remove("expect")).collect();
        (values, expected)
    };
    let ((before, _), (after, found)) = (apart(before), apart(after));
    let is_so = before == after && found == apart(&values(block)?).1;
    ensure!(is_so, "`expect:` cannot be replaced as text here");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
# Cases of chrony
title: One   # the first
old: {}
new: {}
expect:
  # what it was
  verdicts:
    file:/etc/a: {answer: act, actions: [reboot]}

# Behind it
---
title: Two
expect: {verdicts: {file:/etc/a: {answer: abstain}}}
old: {files: {/etc/a: \"x\"}}
new: {}
";

    fn blocks(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(title, block)| ((*title).to_owned(), (*block).to_owned())).collect()
    }

    #[test]
    fn only_the_expectation_of_the_named_case_is_replaced() {
        let new = rewritten(FILE, &blocks(&[("One", "expect:\n  plan: reboot\n")])).unwrap();
        let expected = FILE.replace(
            "  # what it was\n  verdicts:\n    file:/etc/a: {answer: act, actions: [reboot]}\n",
            "  plan: reboot\n",
        );
        assert_eq!(new, expected);
        let new = rewritten(FILE, &blocks(&[("Two", "expect:\n  plan: reboot\n")])).unwrap();
        let old = "expect: {verdicts: {file:/etc/a: {answer: abstain}}}\n";
        assert_eq!(new, FILE.replace(old, "expect:\n  plan: reboot\n"));
    }

    #[test]
    fn what_cannot_be_replaced_as_text_is_left_alone_and_shown() {
        let block = "expect:\n  plan: reboot\n";
        for text in [
            "{title: One, old: {}, new: {}, expect: {plan: nothing}}\n",
            "  title: One\n  old: {}\n  new: {}\n  expect: {plan: nothing}\n",
        ] {
            let error = format!("{:#}", rewritten(text, &blocks(&[("One", block)])).unwrap_err());
            assert!(error.contains("plan: reboot"), "{error}");
        }
        let error = rewritten(FILE, &blocks(&[("Three", block)])).unwrap_err().to_string();
        assert!(error.contains("Three"), "{error}");
    }

    #[test]
    fn of_two_documents_with_one_title_neither_is_written() {
        let block = "expect:\n  plan: reboot\n";
        let text = format!("{FILE}---\ntitle: One\nold: {{}}\n");
        let error = rewritten(&text, &blocks(&[("One", block)])).unwrap_err().to_string();
        assert!(error.contains("One: two documents have this title"), "{error}");
        assert!(error.contains("give each its own"), "{error}");
        rewritten(&text, &blocks(&[("Two", block)])).unwrap();
    }

    #[test]
    fn what_is_no_case_that_can_be_read_keeps_no_other_from_being_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cases.yaml");
        let case = |title: &str| format!("title: {title}\nold: {{}}\nnew: {{}}\n");
        let broken = format!("{}expected: {{}}\n---\n- 1\n", case("Broken"));
        let text = |plan: &str| {
            let open = case("Two");
            format!("{}expect:\n  plan: {plan}\n---\n{broken}---\n{open}", case("One"))
        };
        fs::write(&path, text("nothing")).unwrap();
        let tested: Vec<Case> = cases::read_each(&path).unwrap().into_iter().flatten().collect();
        assert_eq!(tested.len(), 2);
        rewrite(&path, &tested, &blocks(&[("One", "expect:\n  plan: reboot\n")])).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text("reboot"));

        // Its cases are no longer those that were tested.
        let mended = text("reboot").replace("expected", "expect");
        for other in [mended, text("no action")] {
            fs::write(&path, &other).unwrap();
            let again = blocks(&[("One", "expect:\n  plan: drain\n")]);
            let error = rewrite(&path, &tested, &again).unwrap_err().to_string();
            assert!(error.contains("it was changed while its cases ran"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), other);
        }
    }

    #[test]
    fn a_comment_at_the_margin_does_not_end_the_block_that_goes_on_behind_it() {
        let text = "title: One\nold: {}\nnew: {}\nexpect:\n  plan: reboot\n# why\n\n  # so\n  \
                    changes:\n# more\n    file:/etc/a: {by: x}\n\n# Behind it\n---\ntitle: Two\n";
        let block = "expect:\n  plan: no action\n";
        let new = rewritten(text, &blocks(&[("One", block)])).unwrap();
        let head = "title: One\nold: {}\nnew: {}\n";
        assert_eq!(new, format!("{head}{block}\n# Behind it\n---\ntitle: Two\n"));
    }

    #[test]
    fn lines_end_as_they_did() {
        let block = "expect:\n  plan: reboot\n";
        for text in [
            "title: One\r\nexpect:\r\n# why\r\n  plan: nothing\r\n\r\nold: {}\r\n",
            "title: One\r\nold: {}\r\n\r\n",
            "title: One\r\nold: {}",
        ] {
            let new = rewritten(text, &blocks(&[("One", block)])).unwrap();
            let as_usual = rewritten(&text.replace('\r', ""), &blocks(&[("One", block)]));
            assert_eq!(new, as_usual.unwrap().replace('\n', "\r\n"));
        }
    }

    #[test]
    fn a_document_that_would_expect_something_else_is_not_written() {
        let of = |expect: &str| values(&format!("title: One\nexpect: {expect}\n")).unwrap();
        let block = "expect:\n  plan: reboot\n";
        let check = |after: &str| check_read_back(&of("{plan: nothing}"), &of(after), block);
        check("{plan: reboot}").unwrap();
        for other in ["{plan: nothing}", "{plan: reboot, verdicts: {}}", "null"] {
            check(other).unwrap_err();
        }
        assert!(check_read_back(&of("null"), &[], block).is_err());
    }

    #[test]
    fn a_case_without_an_expectation_gets_one_behind_all_else() {
        let block = "expect:\n  plan: reboot\n";
        let text = "title: One\nold: {}\nnew: {}\n# the last\n\n---\ntitle: Two\nold: {}";
        let new = rewritten(text, &blocks(&[("One", block), ("Two", block)])).unwrap();
        let expected = format!(
            "title: One\nold: {{}}\nnew: {{}}\n# the last\n{block}\n---\ntitle: Two\nold: {{}}\n{block}"
        );
        assert_eq!(new, expected);
        let text = "title: One\nold: {}\nexpect:\n---\ntitle: Two\nexpect:\nold: {}\n";
        let new = rewritten(text, &blocks(&[("One", block), ("Two", block)])).unwrap();
        let expected = format!("title: One\nold: {{}}\n{block}---\ntitle: Two\n{block}old: {{}}\n");
        assert_eq!(new, expected);
    }

    #[test]
    fn a_file_of_other_line_ends_and_empty_documents_is_taken() {
        let text = "---\n# nothing\n---\ntitle: One\nold: {}\nnew: {}\nexpect: {\n  plan: x\n}";
        let new = rewritten(text, &blocks(&[("One", "expect:\n  plan: reboot\n")])).unwrap();
        assert!(new.ends_with("new: {}\nexpect:\n  plan: reboot\n"), "{new}");
        assert!(new.starts_with("---\n# nothing\n---\ntitle: One\n"), "{new}");
    }

    #[test]
    fn a_scalar_is_plain_only_where_nothing_can_be_misread() {
        for plain in ["file:/etc/a", "restart a@b.service", "no action", "/etc/x-1.conf"] {
            assert_eq!(scalar(plain), plain);
        }
        for other in ["file:/etc/{a}", "a: b", "a:", "no", "1", "", "größe", "a, b", "- a"] {
            assert_eq!(scalar(other), quoted(other), "{other}");
        }
    }
}
