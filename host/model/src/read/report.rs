//! What is found in one document: its problems, and what is to be known of it.

use crate::config::Fault;
use crate::problem::{Problem, Problems};

/// More problems than these are counted, not listed.
const LISTED: usize = 100;

/// More problems of one document are not kept: a problem takes more memory than the
/// mistake that it is about.
const KEPT: usize = 1000;

/// What is found in one document: its problems first of all.
#[derive(Debug)]
pub struct Report {
    file: String,
    document: String,
    problems: Vec<Problem>,
    more: usize,
    faults: Vec<Fault>,
    notes: Vec<String>,
}

impl Report {
    /// A report on a document (see [`Problem::document`]) of a file.
    pub fn new(file: &str, document: &str) -> Report {
        Report {
            file: file.to_owned(),
            document: document.to_owned(),
            problems: Vec::new(),
            more: 0,
            faults: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds what can be read, but not be applied to any node: of the change with
    /// this `id`, with the field at `path`.
    pub(super) fn fault(&mut self, id: String, path: String, reason: impl Into<String>) {
        if self.faults.len() < KEPT {
            let reason = reason.into();
            self.faults.push(Fault { id, field: path, reason, by_parser: true });
        }
    }

    /// Adds what an admin should know.
    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// The faults so far.
    pub(super) fn take_faults(&mut self) -> Vec<Fault> {
        std::mem::take(&mut self.faults)
    }

    /// The notes so far.
    pub(super) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Adds a problem with the field at `path`.
    pub fn problem(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.add(Problem { path: path.into(), message: message.into(), ..Problem::default() });
    }

    /// Adds that the object is of this kind, and another one was expected.
    pub fn other_kind(&mut self, path: String, kind: &str, message: String) {
        let found_kind = Some(kind.to_owned());
        self.add(Problem { path, message, found_kind, ..Problem::default() });
    }

    fn add(&mut self, problem: Problem) {
        if self.problems.len() >= KEPT {
            self.more += 1;
            return;
        }
        let (file, document) = (self.file.clone(), self.document.clone());
        self.problems.push(Problem { file, document, ..problem });
    }

    /// Whether nothing is wrong so far.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    /// All problems, in the order in which they were found.
    pub fn into_problems(self) -> Vec<Problem> {
        let Report { file, document, mut problems, more, .. } = self;
        if more > 0 {
            let message = format!("… and {more} more problems in this document");
            problems.push(Problem { file, document, message, ..Problem::default() });
        }
        problems
    }
}

/// `value` if there are no problems; else the first hundred of them, and how
/// many more there are.
pub fn unless<T>(mut problems: Vec<Problem>, value: T) -> Result<T, Problems> {
    if problems.is_empty() {
        return Ok(value);
    }
    let more = problems.len().saturating_sub(LISTED);
    // Of a document with very many problems not all of them are in this list.
    let least = if problems.len() > KEPT { "at least " } else { "" };
    if more > 0 {
        problems.truncate(LISTED);
        problems.push(Problem {
            message: format!(
                "… and {least}{more} more problems; mend the first ones and try again"
            ),
            ..Problem::default()
        });
    }
    Err(Problems(problems))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_a_hundred_problems_are_counted() {
        let mut report = Report::new("a.yaml", "");
        (0..130).for_each(|index| report.problem(format!("x[{index}]"), "is wrong"));
        let problems = unless(report.into_problems(), ()).unwrap_err();
        assert_eq!(problems.0.len(), 101);
        let last = problems.to_string();
        assert!(last.ends_with("\n… and 30 more problems; mend the first ones and try again"));
        let mut report = Report::new("a.yaml", "");
        (0..5_000_000).for_each(|_| report.problem("x", "is wrong"));
        assert!(!report.is_clean());
        let problems = report.into_problems();
        assert_eq!(problems.len(), KEPT + 1, "the rest is only counted");
        assert!(problems[KEPT].message.contains("4999000 more problems"));
        let last = unless(problems, ()).unwrap_err().to_string();
        assert!(last.contains("at least 901 more problems"), "{last}");
    }
}
