//! From the bytes of a file to its documents: JSON or YAML, one or several,
//! lists taken apart.

use super::fields::{Fields, expected};
use super::report::{Report, unless};
use super::twice::twice;
use super::value::Strict;
use crate::problem::{Problem, Problems};
use serde_json::Value;

/// How deep YAML may be nested: far deeper than any config is, and far from the
/// end of the stack.
const YAML_DEPTH: usize = 40;

/// How deep JSON may be nested, which its reader decides.
pub const JSON_DEPTH: usize = 127;

/// More anchors, aliases and merge keys than anybody writes; what aliases add
/// up to is limited besides.
const YAML_ANCHORS: usize = 100_000;
const YAML_MERGE_KEYS: usize = 10_000;

/// One file. Whoever calls has read it.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// What the user calls it; `-` is standard input.
    pub name: &'a str,
    /// What is in it.
    pub bytes: &'a [u8],
}

/// A document of a file, or an item of a list that is one.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Which one of its file it is, as [`Problem::document`] says.
    pub label: String,
    /// What is in it.
    pub value: Value,
}

/// The kinds of objects that redirect image pulls to mirrors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MirrorKind {
    /// `operator.openshift.io/v1alpha1` ImageContentSourcePolicy
    Icsp,
    /// `config.openshift.io/v1` ImageDigestMirrorSet
    Idms,
    /// `config.openshift.io/v1` ImageTagMirrorSet
    Itms,
}

/// An object that redirects image pulls, to be rendered into registries.conf.
#[derive(Debug, Clone, PartialEq)]
pub struct MirrorObject {
    /// Which kind it is.
    pub kind: MirrorKind,
    /// `metadata.name`
    pub name: String,
    /// The whole object.
    pub value: Value,
    /// The file that it stands in, for errors.
    pub file: String,
    /// As [`Problem::document`], for errors.
    pub document: String,
}

/// Every document of a file; the items of `List` objects stand in for them.
/// A document that says nothing is left out.
pub fn document_values(input: &Input<'_>) -> Result<Vec<Document>, Problems> {
    let nothing = "holds no document: it is empty, or holds nothing but comments";
    let (documents, mut problems) = documents_and_problems(input, nothing);
    if documents.is_empty() && problems.is_empty() {
        problems.push(without_documents(input, nothing));
    }
    unless(problems, documents)
}

/// Whether a text can be read and has no document: it is empty, or holds nothing but comments.
pub fn has_no_document(input: &Input<'_>) -> bool {
    parse(input).is_ok_and(|whole| whole.iter().all(Value::is_null))
}

/// That a file has no document.
pub(super) fn without_documents(input: &Input<'_>, nothing: &str) -> Problem {
    Problem { file: input.name.to_owned(), message: nothing.to_owned(), ..Problem::default() }
}

/// As [`document_values`], with what could be read of a file that has problems.
/// `nothing` is what to say of a file without a document, unless that is a list without items.
pub(super) fn documents_and_problems(
    input: &Input<'_>,
    nothing: &str,
) -> (Vec<Document>, Vec<Problem>) {
    let mut documents = Vec::new();
    let mut problems = Vec::new();
    let whole = match parse(input) {
        Ok(whole) => whole,
        Err(problem) => return (documents, vec![problem]),
    };
    let several = whole.len() > 1;
    let has_list = whole.iter().any(|value| list_of(value).is_some());
    for (number, value) in (1usize..).zip(whole) {
        let label = if several { number.to_string() } else { String::new() };
        flatten(input.name, label, value, &mut documents, &mut problems);
    }
    if documents.is_empty() && problems.is_empty() && !has_list {
        problems.push(without_documents(input, nothing));
    }
    (documents, problems)
}

/// Adds a document, or the items of the list that it is.
fn flatten(
    file: &str,
    label: String,
    value: Value,
    documents: &mut Vec<Document>,
    problems: &mut Vec<Problem>,
) {
    if value.is_null() {
        return;
    }
    let Some(item_kind) = list_of(&value) else {
        documents.push(Document { label, value });
        return;
    };
    let item_kind = item_kind.to_owned();
    let mut report = Report::new(file, &label);
    if let Some(fields) = Fields::object(&value, "", &mut report) {
        fields.only(&["apiVersion", "items", "kind", "metadata"], &mut report);
        fields.list("items", &mut report);
    }
    problems.append(&mut report.into_problems());
    let Value::Object(mut list) = value else { return };
    let version = list.remove("apiVersion");
    let Some(Value::Array(items)) = list.remove("items") else { return };
    for (number, mut item) in (1usize..).zip(items) {
        let outer = if label.is_empty() { "1" } else { label.as_str() };
        let label = format!("{outer}, item {number}");
        match &mut item {
            // A typed list, as the API sends it, says the kind only once.
            Value::Object(map) if !item_kind.is_empty() => {
                if let (false, Some(version)) = (map.contains_key("apiVersion"), &version) {
                    map.insert("apiVersion".to_owned(), version.clone());
                }
                map.entry("kind").or_insert_with(|| Value::String(item_kind.clone()));
            }
            Value::Object(_) => {}
            other => {
                let mut report = Report::new(file, &label);
                report.problem("", expected("an object", other));
                problems.append(&mut report.into_problems());
                continue;
            }
        }
        flatten(file, label, item, documents, problems);
    }
}

/// The kind of the items of a list (empty for a list of anything); None if it
/// is none.
fn list_of(value: &Value) -> Option<&str> {
    let kind = value.get("kind")?.as_str()?;
    value.get("items")?;
    kind.strip_suffix("List")
}

/// Every document of a file as it stands there.
fn parse(input: &Input<'_>) -> Result<Vec<Value>, Problem> {
    let problem = |path: String, message: String| Problem {
        file: input.name.to_owned(),
        path,
        message,
        ..Problem::default()
    };
    let text = simdutf8::compat::from_utf8(input.bytes).map_err(|error| {
        let at = input.bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = memchr::memchr_iter(b'\n', at).count() + 1;
        problem(format!("line {line}"), "is not UTF-8 text".to_owned())
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let located = |fault: Fault| {
        let path = fault.at.map(|(line, column)| match column {
            // A line end that should not be there.
            0 => format!("line {line}"),
            column => format!("line {line}, column {column}"),
        });
        problem(path.unwrap_or_default(), fault.message)
    };
    if !text.trim_start().starts_with(['{', '[']) {
        return yaml(text).map_err(located);
    }
    match json(text) {
        // YAML may start like JSON, and JSON documents may be separated by
        // lines of YAML.
        Err(fault) if fault.syntax && !input.name.ends_with(".json") => {
            yaml(text).map_err(|_| located(fault))
        }
        result => result.map_err(located),
    }
}

/// Why a text cannot be read.
struct Fault {
    /// Line and column, from 1.
    at: Option<(u64, u64)>,
    message: String,
    /// It may be another language.
    syntax: bool,
}

fn json(text: &str) -> Result<Vec<Value>, Fault> {
    let documents = serde_json::Deserializer::from_str(text).into_iter::<Strict>();
    documents
        .map(|document| document.map(|Strict(value)| value))
        .collect::<Result<Vec<_>, serde_json::Error>>()
        .map_err(|error| {
            let whole = error.to_string();
            let position = format!(" at line {} column {}", error.line(), error.column());
            let message = match whole.strip_suffix(&position).unwrap_or(&whole) {
                "recursion limit exceeded" => &format!("it is nested more than {JSON_DEPTH} deep"),
                message => message,
            };
            Fault {
                at: (error.line() > 0).then_some((error.line() as u64, error.column() as u64)),
                message: format!("cannot be read as JSON: {message}"),
                syntax: error.is_syntax(),
            }
        })
}

fn yaml(text: &str) -> Result<Vec<Value>, Fault> {
    // No input is too large; what aliases make of it may be.
    let size = text.len();
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: YAML_DEPTH,
            max_events: size.saturating_mul(2).saturating_add(1000),
            max_nodes: size.saturating_add(1000),
            max_documents: size.saturating_add(1000),
            max_total_scalar_bytes: size.saturating_mul(2).saturating_add(1_000_000),
            max_aliases: YAML_ANCHORS,
            max_anchors: YAML_ANCHORS,
            max_merge_keys: YAML_MERGE_KEYS,
            enforce_alias_anchor_ratio: false,
        },
        legacy_octal_numbers: true,
        with_snippet: false,
    };
    let documents: Result<Vec<Strict>, _> = serde_saphyr::from_multiple_with_options(text, options);
    match documents {
        Ok(documents) => Ok(documents.into_iter().map(|Strict(value)| value).collect()),
        Err(error) => {
            let at = error.location().filter(|location| location.line() > 0);
            Err(Fault {
                at: at.map(|location| (location.line(), location.column())),
                message: format!("cannot be read as YAML: {}", in_words(&error)),
                syntax: true,
            })
        }
    }
}

/// What is wrong with a YAML text, without the position and without parts of
/// the text.
fn in_words(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::{Error, budget::BudgetBreach};
    match error {
        Error::DuplicateMappingKey { key, .. } => twice(key.as_deref().unwrap_or_default()),
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => {
            format!("it is nested more than {YAML_DEPTH} deep")
        }
        Error::Budget { breach, .. } => {
            let what = match breach {
                BudgetBreach::Anchors { .. } => {
                    format!("it has more than {YAML_ANCHORS} anchors (&NAME)")
                }
                BudgetBreach::Aliases { .. } => {
                    format!("it has more than {YAML_ANCHORS} aliases (*NAME)")
                }
                BudgetBreach::MergeKeys { .. } => {
                    format!("it has more than {YAML_MERGE_KEYS} merge keys (<<)")
                }
                BudgetBreach::RecordedAnchorEvents { .. }
                | BudgetBreach::RecordedAnchorBytes { .. } => {
                    "what its anchors (&NAME) mark is too large together".to_owned()
                }
                _ => "its aliases make it many times larger than it is".to_owned(),
            };
            format!("{what}: write out what they stand for, or convert the file to JSON first")
        }
        Error::AliasError { error, .. } => in_words(error),
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "an alias stands inside of what it is an alias of".to_owned()
        }
        Error::NonFiniteFloat { .. } => "a number that is not finite".to_owned(),
        other => {
            let whole = other.to_string();
            let words = whole.split(" at line ").next().and_then(|words| words.lines().next());
            words.unwrap_or_default().to_owned()
        }
    }
}
