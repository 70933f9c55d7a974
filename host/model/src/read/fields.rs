//! Walking through a parsed document by the names of its fields, collecting
//! every problem on the way with the path of the field.

use crate::config::Fault;
use crate::problem::{Problem, Problems};
use serde_json::{Map, Value};

/// More problems than these are counted, not listed.
const LISTED: usize = 100;

/// More problems of one document are not even kept: each is larger than what it
/// takes to be wrong.
const KEPT: usize = 1000;

/// What there is to be told of one document: its problems first of all.
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
            self.faults.push(Fault { id, field: path, reason: reason.into() });
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
        if self.problems.len() >= KEPT {
            self.more += 1;
            return;
        }
        self.problems.push(Problem {
            file: self.file.clone(),
            document: self.document.clone(),
            path: path.into(),
            message: message.into(),
        });
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
            problems.push(Problem { file, document, path: String::new(), message });
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
    // Of a document with very many they were not all counted here.
    let least = if problems.len() > KEPT { "at least " } else { "" };
    if more > 0 {
        problems.truncate(LISTED);
        problems.push(Problem {
            file: String::new(),
            document: String::new(),
            path: String::new(),
            message: format!(
                "… and {least}{more} more problems; mend the first ones and try again"
            ),
        });
    }
    Err(Problems(problems))
}

/// The fields of an object, and where it stands. A field that is null is
/// treated as absent; a field of the wrong type is reported and then treated
/// as absent.
#[derive(Debug, Clone)]
pub struct Fields<'v> {
    map: &'v Map<String, Value>,
    path: String,
}

impl<'v> Fields<'v> {
    /// The fields of `value`, which stands at `path` (empty for a document).
    pub fn object(value: &'v Value, path: &str, report: &mut Report) -> Option<Fields<'v>> {
        match value {
            Value::Object(map) => Some(Fields { map, path: path.to_owned() }),
            other => {
                report.problem(path, expected("an object", other));
                None
            }
        }
    }

    /// Where the object stands.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where its field stands.
    pub fn at(&self, name: &str) -> String {
        join(&self.path, name)
    }

    /// The names of all fields that are there, null or not.
    pub fn names(&self) -> impl Iterator<Item = &'v str> {
        self.map.keys().map(String::as_str)
    }

    /// A field of any type.
    pub fn get(&self, name: &str) -> Option<&'v Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// A field that is a string.
    pub fn string(&self, name: &str, report: &mut Report) -> Option<&'v str> {
        self.typed(name, "a string", Value::as_str, report)
    }

    /// A field that is a string, is there, and is not empty.
    pub fn required_string(&self, name: &str, report: &mut Report) -> Option<&'v str> {
        match self.get(name) {
            None => {
                report.problem(self.at(name), "is missing: expected a string");
                None
            }
            Some(Value::String(text)) if text.is_empty() => {
                report.problem(self.at(name), "is empty");
                None
            }
            Some(_) => self.string(name, report),
        }
    }

    /// A field that is true or false.
    pub fn boolean(&self, name: &str, report: &mut Report) -> Option<bool> {
        self.typed(name, "true or false", Value::as_bool, report)
    }

    /// A field that is a whole number.
    pub fn integer(&self, name: &str, report: &mut Report) -> Option<i64> {
        self.typed(name, "a whole number", Value::as_i64, report)
    }

    /// A field that is an object.
    pub fn child(&self, name: &str, report: &mut Report) -> Option<Fields<'v>> {
        Fields::object(self.get(name)?, &self.at(name), report)
    }

    /// A field that is a list; empty when it is absent.
    pub fn list(&self, name: &str, report: &mut Report) -> &'v [Value] {
        let list = self.typed(name, "a list", Value::as_array, report);
        list.map_or(&[], Vec::as_slice)
    }

    /// A field that is a list of objects, each with its index in the list.
    pub fn objects(&self, name: &str, report: &mut Report) -> Vec<(u32, Fields<'v>)> {
        self.items(name, report, Fields::object)
    }

    /// A field that is a list of strings, each with its index in the list.
    pub fn strings(&self, name: &str, report: &mut Report) -> Vec<(u32, &'v str)> {
        self.items(name, report, |item, path, report| {
            if item.as_str().is_none() {
                report.problem(path, expected("a string", item));
            }
            item.as_str()
        })
    }

    /// Reports each field that is not `known`, with the one that was probably
    /// meant.
    pub fn only(&self, known: &[&str], report: &mut Report) {
        for name in self.names().filter(|name| !known.contains(name)) {
            report.problem(self.at(name), unknown("field", name, known));
        }
    }

    fn items<T>(
        &self,
        name: &str,
        report: &mut Report,
        read: impl Fn(&'v Value, &str, &mut Report) -> Option<T>,
    ) -> Vec<(u32, T)> {
        let at = self.at(name);
        let items = (0u32..).zip(self.list(name, report));
        items
            .filter_map(|(index, item)| {
                Some((index, read(item, &format!("{at}[{index}]"), report)?))
            })
            .collect()
    }

    fn typed<T>(
        &self,
        name: &str,
        wanted: &str,
        read: impl Fn(&'v Value) -> Option<T>,
        report: &mut Report,
    ) -> Option<T> {
        let value = self.get(name)?;
        let typed = read(value);
        if typed.is_none() {
            report.problem(self.at(name), expected(wanted, value));
        }
        typed
    }
}

/// The path of a field of the object at `path`. Names that would be misread in
/// a path are quoted.
pub fn join(path: &str, name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/');
    if name.is_empty() || !name.chars().all(plain) {
        format!("{path}[{name:?}]")
    } else if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// What to say of a value of the wrong type. Texts are not repeated: they may
/// be secrets.
pub fn expected(wanted: &str, found: &Value) -> String {
    let found = match found {
        Value::Null => "null".to_owned(),
        Value::Bool(value) if wanted == "a string" => {
            format!("{value} (YAML reads yes, no, on, off, y and n so, unless they are in quotes)")
        }
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    };
    format!("expected {wanted}, found {found}")
}

/// What to say of a `name` (of a field, a kind, …) that is none of the `known`.
pub fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(near) => format!("unknown {what} {name:?}: did you mean {near:?}?"),
        None if known.is_empty() => format!("unknown {what} {name:?}: none is expected here"),
        None => format!("unknown {what} {name:?}: known here are {}", known.join(", ")),
    }
}

/// The one of `known` that `name` was probably meant to be.
fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    // Two typing errors in a very short name are another name.
    let limit = if name.chars().count() <= 3 { 1 } else { 2 };
    let near = known.iter().map(|candidate| (distance(name, candidate), *candidate));
    near.filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters have to be added, taken out or replaced; case counts
/// nothing.
fn distance(a: &str, b: &str) -> usize {
    if a.len().abs_diff(b.len()) > 8 {
        return usize::MAX;
    }
    let letters = |text: &str| text.to_lowercase().chars().collect::<Vec<_>>();
    let (a, b) = (letters(a), letters(b));
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (above, x) in a.iter().enumerate() {
        let mut diagonal = above;
        let mut left = above + 1;
        let mut next = vec![left];
        for (y, up) in b.iter().zip(row.iter().skip(1)) {
            left = (diagonal + usize::from(x != y)).min(left + 1).min(up + 1);
            diagonal = *up;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn problems(value: Value, read: impl Fn(&Fields<'_>, &mut Report)) -> Vec<String> {
        let mut report = Report::new("a.yaml", "2");
        if let Some(fields) = Fields::object(&value, "spec", &mut report) {
            read(&fields, &mut report);
        }
        report.into_problems().iter().map(Problem::to_string).collect()
    }

    #[test]
    fn a_wrong_type_names_the_path_and_what_was_expected_and_found() {
        let found = problems(json!({"a": 1, "b": "x", "c": [{}, "x"], "d": null}), |f, report| {
            assert_eq!(f.string("a", report), None);
            assert_eq!(f.integer("b", report), None);
            assert_eq!(f.objects("c", report).len(), 1);
            assert_eq!(f.boolean("d", report), None);
        });
        assert_eq!(
            found,
            [
                "a.yaml, document 2, spec.a: expected a string, found the number 1",
                "a.yaml, document 2, spec.b: expected a whole number, found a string",
                "a.yaml, document 2, spec.c[1]: expected an object, found a string",
            ]
        );
    }

    #[test]
    fn an_unknown_field_names_the_one_that_was_meant() {
        let known = ["contents", "mode", "path"];
        for (name, want) in [
            ("content", "did you mean \"contents\"?"),
            ("Mode", "did you mean \"mode\"?"),
            ("mdoe", "did you mean \"mode\"?"),
            ("owner", "known here are contents, mode, path"),
            ("x", "known here are contents, mode, path"),
        ] {
            let found = problems(json!({ name: 1 }), |f, report| f.only(&known, report));
            let [problem] = found.as_slice() else { panic!("{found:?}") };
            assert!(problem.ends_with(want), "{problem}");
        }
    }

    #[test]
    fn a_missing_or_empty_required_string_is_a_problem() {
        for value in [json!({}), json!({"a": null}), json!({"a": ""}), json!({"a": 3})] {
            let found = problems(value.clone(), |f, report| {
                f.required_string("a", report);
            });
            assert_eq!(found.len(), 1, "{value}: {found:?}");
        }
    }

    #[test]
    fn distances_are_those_of_the_textbook() {
        for (a, b, want) in
            [("kitten", "sitting", 3), ("", "ab", 2), ("same", "same", 0), ("Ab", "ab", 0)]
        {
            assert_eq!(distance(a, b), want, "{a} {b}");
        }
    }

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

    #[test]
    fn a_name_that_would_be_misread_is_quoted_in_the_path() {
        assert_eq!(join("metadata", "a.b"), "metadata[\"a.b\"]");
        assert_eq!(join("", "spec"), "spec");
        assert_eq!(join("spec", "config"), "spec.config");
    }
}
