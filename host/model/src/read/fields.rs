//! Walking through a parsed document by the names of its fields, collecting
//! every problem on the way with the path of the field.

use super::report::Report;
use serde_json::{Map, Value};

/// What a field is expected to be.
const STRING: &str = "a string";
const WHOLE_NUMBER: &str = "a whole number";

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
        self.typed(name, STRING, Value::as_str, report)
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
        self.typed(name, WHOLE_NUMBER, Value::as_i64, report)
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
                report.problem(path, expected(STRING, item));
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

/// What to say of a value of the wrong type. It is not repeated: a password's hash, or
/// contents, may be written without quotes. Where a whole number is expected there is no
/// secret.
pub fn expected(wanted: &str, found: &Value) -> String {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) if wanted == STRING => {
            "true or false (YAML reads yes, no, on, off, y and n so, unless they are in quotes)"
        }
        Value::Bool(_) => "true or false",
        Value::Number(number) if wanted == WHOLE_NUMBER => &format!("the number {number}"),
        Value::Number(_) => "a number",
        Value::String(_) => STRING,
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
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

/// How many letters have to be added, taken out or replaced; capitals count as small
/// letters.
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
    use crate::problem::Problem;
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
        let value = json!({"a": 1, "b": "x", "c": [{}, "x"], "d": null});
        let found = problems(value, |f, report| {
            assert_eq!(f.string("a", report), None);
            assert_eq!(f.integer("b", report), None);
            assert_eq!(f.objects("c", report).len(), 1);
            assert_eq!(f.boolean("d", report), None);
        });
        assert_eq!(
            found,
            [
                "a.yaml, document 2, spec.a: expected a string, found a number",
                "a.yaml, document 2, spec.b: expected a whole number, found a string",
                "a.yaml, document 2, spec.c[1]: expected an object, found a string",
            ]
        );
    }

    #[test]
    fn a_value_is_repeated_only_where_a_whole_number_is_expected() {
        let yes =
            "true or false (YAML reads yes, no, on, off, y and n so, unless they are in quotes)";
        for (wanted, value, found) in [
            (WHOLE_NUMBER, json!(1.5), "the number 1.5"),
            (WHOLE_NUMBER, json!(true), "true or false"),
            (WHOLE_NUMBER, json!("123456"), "a string"),
            (STRING, json!(123456), "a number"),
            (STRING, json!(true), yes),
            (STRING, json!(false), yes),
            ("a list", json!(123456), "a number"),
            ("an object", json!(true), "true or false"),
            ("true or false", json!(123456), "a number"),
        ] {
            assert_eq!(expected(wanted, &value), format!("expected {wanted}, found {found}"));
        }
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
    fn a_name_that_would_be_misread_is_quoted_in_the_path() {
        assert_eq!(join("metadata", "a.b"), "metadata[\"a.b\"]");
        assert_eq!(join("", "spec"), "spec");
        assert_eq!(join("spec", "config"), "spec.config");
    }
}
