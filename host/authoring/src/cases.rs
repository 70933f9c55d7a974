//! Cases: what a change of configuration is expected to cost, in a form that an
//! admin can read and write. The tests of the built-in policies are cases, and
//! the README's table of what costs what is made of them.
//!
//! A file holds several YAML documents, each a case:
//!
//! ```yaml
//! title: A log level is changed
//! costs: CRI-O's log level                # optional: a row of the README's table
//! settings: {registries: {drain: always}} # optional: by policy
//! readSecrets: true                       # optional: the policy that is tested may read secrets
//! rules: rules.yaml                       # optional: what --rules takes
//! old: {files: {/etc/crio/crio.conf.d/01-log: "[crio.runtime]\nlog_level = \"info\"\n"}}
//! new: {files: {/etc/crio/crio.conf.d/01-log: "[crio.runtime]\nlog_level = \"debug\"\n"}}
//! expect:
//!   plan: reload crio.service
//!   changes:                              # optional: then each change is named
//!     file:/etc/crio/crio.conf.d/01-log: {by: node-services, reason: "/log_level/"}
//! ```
//!
//! For `tread policy test` it may say, instead or as well, what the policy that
//! is tested answers, as the module `verdict` has it. A case that expects nothing
//! yet can be read, and fails wherever it is tried.
//!
//! A side, and `rules`, is a path relative to the case's file, an object as
//! `tread plan` takes it, or a list of these. A side may also be written in
//! short, as the module `shorthand` has it.

mod expect;
mod field;
mod reason;
mod shorthand;
mod verdict;

pub(crate) use expect::outcome_word;
pub use expect::{Expect, ExpectedChange, plan_line};
pub use reason::Reason;
pub use verdict::{ExpectedVerdict, Given, action_line};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use tread_console::inputs::{self, NamedBytes};
use tread_console::print::{line, shown};
use tread_model::read::{Input, document_values};

/// A change of configuration, and what it is expected to cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// What is changed, in a sentence; unique within its file.
    pub title: String,
    /// The words for it in the table of what costs what, if it is a row of it.
    pub costs: Option<String>,
    /// Settings, by the name of their policy.
    pub settings: BTreeMap<String, Value>,
    /// Whether the policy that is tested may read secrets.
    pub read_secrets: bool,
    /// DisruptionPolicies with rules, and MachineConfigurations.
    pub rules: Vec<Value>,
    /// The objects that say what the node has.
    pub old: Vec<Value>,
    /// The objects that say what it is to get.
    pub new: Vec<Value>,
    /// What it is expected to cost.
    pub expect: Expect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[serde(expecting = "a case: an object with title, old, new and expect")]
struct Written {
    title: String,
    costs: Option<String>,
    #[serde(default)]
    settings: BTreeMap<String, Value>,
    #[serde(default)]
    read_secrets: bool,
    rules: Option<Value>,
    old: Value,
    new: Value,
    expect: Option<expect::Written>,
}

/// The files with cases that a path names: itself, or those of a folder that end
/// in .yaml or .yml, in order of name.
pub fn files(path: &Path) -> Result<Vec<PathBuf>> {
    let name = shown(path);
    let metadata = fs::metadata(path)
        .with_context(|| format!("there are no cases at {name}: name them with --cases"))?;
    if !metadata.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).with_context(|| format!("cannot read {name}"))? {
        let path = entry.with_context(|| format!("cannot read {name}"))?.path();
        if path.extension().is_some_and(|it| it == "yaml" || it == "yml") {
            inputs::check_is_file(&path)?;
            files.push(path);
        }
    }
    files.sort();
    ensure!(
        !files.is_empty(),
        "{name} holds no cases: write one into a file there that ends in .yaml, as tread policy \
         test --help shows it"
    );
    Ok(files)
}

/// Reads all the cases of a file, in their order.
pub fn read_file(path: &Path) -> Result<Vec<Case>> {
    read_each(path)?.into_iter().collect()
}

/// The cases of a file, in their order, or what is wrong with each.
pub fn read_each(path: &Path) -> Result<Vec<Result<Case>>> {
    let name = shown(path);
    let documents = documents(inputs::read_file(path)?)?;
    let mut titles = BTreeSet::new();
    let mut cases = Vec::with_capacity(documents.len());
    for (number, document) in (1usize..).zip(documents) {
        let title = match document.get("title") {
            Some(Value::String(title)) => format!(" ({})", line(title)),
            _ => String::new(),
        };
        let case = case(document, path.parent().unwrap_or(Path::new(""))).and_then(|case| {
            let first = titles.insert(case.title.clone());
            ensure!(first, "another case of the file has this title");
            Ok(case)
        });
        cases.push(case.with_context(|| format!("{name}, document {number}{title}")));
    }
    Ok(cases)
}

fn case(document: Value, dir: &Path) -> Result<Case> {
    ensure!(
        document.is_object(),
        "expected a case: an object with title, old, new and expect, found something else"
    );
    let written: Written = field::read(document)?;
    ensure!(!written.title.trim().is_empty(), "title: expected a sentence, found nothing");
    let rules = written.rules.map(|rules| self::rules(rules, dir)).transpose().context("rules")?;
    Ok(Case {
        title: written.title,
        costs: written.costs,
        settings: written.settings,
        read_secrets: written.read_secrets,
        rules: rules.unwrap_or_default(),
        old: side(written.old, dir).context("old")?,
        new: side(written.new, dir).context("new")?,
        expect: Expect::new(written.expect.unwrap_or_default()).context("expect")?,
    })
}

/// One side of a change: a path, an object, a shorthand, or a list of them.
fn side(value: Value, dir: &Path) -> Result<Vec<Value>> {
    objects(value, dir, &|value| {
        let is_object =
            ["apiVersion", "kind", "ignition"].iter().any(|key| value.get(key).is_some());
        if is_object { Ok(vec![value]) } else { shorthand::expand(value) }
    })
}

fn rules(value: Value, dir: &Path) -> Result<Vec<Value>> {
    objects(value, dir, &|value| {
        ensure!(value.get("kind").is_some(), "expected a path or an object with a kind");
        Ok(vec![value])
    })
}

fn objects(
    value: Value,
    dir: &Path,
    object: &dyn Fn(Value) -> Result<Vec<Value>>,
) -> Result<Vec<Value>> {
    match value {
        Value::String(path) => documents(inputs::read_found(&dir.join(path))?),
        Value::Object(_) => object(value),
        Value::Array(list) => {
            let mut all = Vec::with_capacity(list.len());
            for (index, item) in list.into_iter().enumerate() {
                ensure!(!item.is_array(), "[{index}]: expected no list within a list");
                all.extend(objects(item, dir, object).with_context(|| format!("[{index}]"))?);
            }
            Ok(all)
        }
        _ => bail!("expected a path, an object or a list of them"),
    }
}

/// The documents of a file; the items of lists stand in for them.
fn documents(NamedBytes { name, bytes }: NamedBytes) -> Result<Vec<Value>> {
    let documents = document_values(&Input { name: &name, bytes: &bytes })?;
    Ok(documents.into_iter().map(|document| document.value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases of a file `cases.yaml` with this text, beside the other files.
    fn read(text: &str, others: &[(&str, &str)]) -> Result<Vec<Case>> {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in others.iter().chain(&[("cases.yaml", text)]) {
            fs::write(dir.path().join(name), text).unwrap();
        }
        read_file(&dir.path().join("cases.yaml"))
    }

    fn error(text: &str) -> String {
        format!("{:#}", read(text, &[]).unwrap_err())
    }

    #[test]
    fn a_file_of_several_documents_gives_a_case_for_each_in_their_order() {
        let text = "title: One\ncosts: Row\nold: {}\nnew: {}\nexpect: {plan: nothing}\n---\n\
                    title: Two\nsettings: {registries: {drain: always}}\nold: {}\nnew: {}\n\
                    expect: {plan: reboot}\n";
        let cases = read(text, &[]).unwrap();
        let titles: Vec<_> = cases.iter().map(|case| case.title.as_str()).collect();
        assert_eq!(titles, ["One", "Two"]);
        assert_eq!(cases[0].costs.as_deref(), Some("Row"));
        assert_eq!(cases[1].costs, None);
        assert_eq!(cases[1].settings["registries"]["drain"], "always");
    }

    #[test]
    fn a_side_is_a_path_an_object_a_shorthand_or_a_list_of_them() {
        let text = "title: T\nold: mirrors.yaml\n\
                    new:\n- mirrors.yaml\n- {kind: Own}\n- {ignition: {version: 3.4.0}}\n\
                    - {fips: true}\nexpect: {plan: nothing}\n";
        let case = read(text, &[("mirrors.yaml", "kind: A\n---\nkind: B\n")]).unwrap().remove(0);
        let kinds = |side: &[Value]| -> Vec<Option<String>> {
            side.iter().map(|value| value["kind"].as_str().map(str::to_owned)).collect()
        };
        let some = |kind: &str| Some(kind.to_owned());
        assert_eq!(kinds(&case.old), [some("A"), some("B")]);
        assert_eq!(
            kinds(&case.new),
            [some("A"), some("B"), some("Own"), None, some("MachineConfig")]
        );
        assert_eq!(case.new[3]["ignition"]["version"], "3.4.0");
        assert_eq!(case.new[4]["spec"]["fips"], true);
    }

    #[test]
    fn rules_are_objects_and_no_shorthand() {
        let with = |rules: &str| {
            let rest = "old: {}\nnew: {}\nexpect: {plan: nothing}";
            read(&format!("title: T\nrules: {rules}\n{rest}\n"), &[("r.yaml", "kind: R")])
        };
        assert_eq!(with("r.yaml").unwrap()[0].rules, [serde_json::json!({"kind": "R"})]);
        assert_eq!(with("{kind: X}").unwrap()[0].rules.len(), 1);
        assert!(format!("{:#}", with("{files: {}}").unwrap_err()).contains("rules"));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_file_document_and_place() {
        let good = "title: One\nold: {}\nnew: {}\nexpect: {plan: nothing}\n";
        for (second, parts) in [
            ("title: Two\nold: {}\nexpect: {plan: nothing}", vec!["(Two)", "new"]),
            ("title: Two\nold: {}\nnew: {}\nexpects: {}", vec!["expects"]),
            ("title: Two\nold: {fles: {}}\nnew: {}\nexpect: {plan: nothing}", vec!["old", "fles"]),
            ("- 1", vec!["expected a case: an object with title, old, new and expect"]),
            (
                "title: [a]\nold: {}\nnew: {}",
                vec!["title: invalid type: sequence, expected a string"],
            ),
            (
                "title: Two\nold: {files: 3}\nnew: {}",
                vec!["old: files: invalid type: integer `3`, expected a map"],
            ),
            (
                "title: Two\nold: {sshKeys: [3]}\nnew: {}",
                vec!["old: sshKeys[0]: invalid type: integer `3`, expected a string"],
            ),
            (
                "title: Two\nold: {files: {/a: {mode: rw}}}\nnew: {}",
                vec!["old: files: /a: mode: invalid type: string \"rw\""],
            ),
            ("title: Two\nold: {}\nnew: {}\nexpect: no", vec!["expect: ", "verdicts or plan"]),
            (
                "title: Two\nold: {}\nnew: {}\nexpect: {plan: nothing, changes: {x: 1}}",
                vec!["changes: x: ", "by, outcome, actions and reason"],
            ),
            (
                "title: Two\nold: {}\nnew: {}\nexpect: {verdicts: {x: act}}",
                vec!["verdicts: x: ", "answer, actions and reason"],
            ),
            (
                "title: Two\nold: {}\nnew: {}\nreadSecrets: mine",
                vec!["readSecrets: invalid type: string \"mine\", expected a boolean"],
            ),
            ("title: Two\nold: {}\nnew: nope.yaml\nexpect: {plan: nothing}", vec!["new", "nope"]),
            ("title: Two\nold: {}\nnew: [1]\nexpect: {plan: nothing}", vec!["new: [0]"]),
            ("title: ''\nold: {}\nnew: {}\nexpect: {plan: nothing}", vec!["title"]),
            ("title: One\nold: {}\nnew: {}\nexpect: {plan: nothing}", vec!["another case"]),
        ] {
            let text = format!("{good}---\n{second}\n");
            let message = error(&text);
            assert!(message.contains("cases.yaml, document 2"), "{message}");
            for part in parts {
                assert!(message.contains(part), "{part:?} in {message}");
            }
            // A type of this program is nothing that an author knows.
            assert!(!message.contains("struct "), "{message}");
        }
    }

    #[test]
    fn a_file_without_a_case_and_a_file_that_is_not_there_are_errors() {
        assert!(error("# nothing yet\n").contains("cases.yaml"));
        let missing = read_file(Path::new("nowhere/cases.yaml")).unwrap_err();
        assert!(missing.to_string().contains("nowhere/cases.yaml"), "{missing:#}");
    }
}
