//! `tread policy inspect`: all that can be known of a file without asking it
//! about a change.

use anyhow::{Result, bail};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use tread_console::exit::{Exit, unless_nobody_reads};
use tread_console::print::{json, line, shown};
use tread_console::sentence::{effects, thousands};
use tread_console::table;
use tread_engine::inspect::Inspection;
use tread_engine::limits::Limits;
use tread_engine::policy::complete_settings;
use tread_engine::sandbox::{Sandbox, Spent};
use tread_loading::manifest::{self, Entry, LABEL};
use tread_loading::what::{What, what};
use tread_loading::{file, sandbox};
use tread_model::description::{Claim, Declarations, Description, SettingsDescription};
use tread_model::digest::Sha256;
use tread_model::packed;
use tread_model::read::Input;
use tread_model::verdict::{Failure, FailureKind};

const EXAMPLES: &str = "\
Examples:
  tread policy inspect chrony.wasm
  tread policy inspect chrony.yaml       what `tread policy pack` wrote
  tread policy inspect chrony.wasm -o json | jq -r .digest

The file is compiled, describes itself and checks its default settings, and those
that it is packed with, in the sandbox. It is not asked about any change.

Exit codes:
  0  a policy that tread can load
  1  anything else: the output says what it is, what is wrong, and what to do";

/// The arguments of `tread policy inspect`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct InspectArgs {
    /// The component, or a manifest with a packed one; or a file that should be
    /// one; - for standard input
    pub file: PathBuf,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Output::Human)]
    pub output: Output,
}

/// How to print a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// For a person
    Human,
    /// For a script
    Json,
}

/// Prints what is known of a file; done if it is a policy that can be loaded.
pub fn run(args: &InspectArgs, out: &mut impl Write) -> Result<Exit> {
    let bytes = file::read(&args.file)?;
    let limits = Limits::default();
    let sandbox = sandbox::for_one(limits.clone())?;
    let packed = packed(&args.file, &bytes)?;
    let module = packed.as_ref().map_or(bytes.as_slice(), |entry| &entry.bytes);
    let mut examined = Examined::new(&args.file, module, &sandbox);
    let mut settings = None;
    if let Some(entry) = &packed {
        let (read, failure) = packed_settings(entry, &examined, &sandbox);
        settings = read;
        examined.problems.extend(misfits(entry, &examined.inspection.digest));
        examined.problems.extend(failure);
    }
    let report = Report {
        notes: packed.iter().filter_map(unlabelled).collect(),
        packed_in: packed.map(|it| it.place()),
        packed_settings: settings,
        ..Report::new(&args.file, &examined)
    };
    unless_nobody_reads(match args.output {
        Output::Json => json(out, &report),
        Output::Human => human(out, &report, &limits),
    })?;
    Ok(if examined.problems.is_empty() { Exit::Done } else { Exit::Error })
}

/// The one module of a manifest, as `tread policy pack` writes it; none if the file is
/// something else.
fn packed(path: &Path, bytes: &[u8]) -> Result<Option<Entry>> {
    let name = shown(path);
    let mut modules = manifest::modules(&Input { name: &name, bytes })?;
    if modules.len() > 1 {
        let places: Vec<String> = modules.iter().map(Entry::place).collect();
        bail!(
            "{name} holds {} modules ({}): get the one that is meant with `tread policy unpack \
             {name}{}`, and inspect that",
            places.len(),
            places.join("; "),
            telling_apart(&modules)
        );
    }
    Ok(modules.pop())
}

/// The part of an entry that an option chooses by.
type Field = fn(&Entry) -> &str;

/// The options of `tread policy unpack` that choose one of these, as few as can.
fn telling_apart(modules: &[Entry]) -> String {
    let all: [(&str, Field); 3] = [
        (" --name NAME", |it| it.name.as_str()),
        (" --namespace NAMESPACE", |it| it.namespace.as_str()),
        (" --key KEY", |it| it.key.as_str()),
    ];
    let mut options = String::new();
    let mut told: Vec<Vec<&str>> = vec![Vec::new(); modules.len()];
    for (option, field) in all {
        let more: Vec<Vec<&str>> = told
            .iter()
            .zip(modules)
            .map(|(told, module)| [told.as_slice(), &[field(module)]].concat())
            .collect();
        if different(&more) > different(&told) {
            options.push_str(option);
            told = more;
        }
    }
    options
}

fn different(rows: &[Vec<&str>]) -> usize {
    rows.iter().collect::<BTreeSet<_>>().len()
}

/// Why a cluster would not take what is packed as it is packed.
fn misfits(entry: &Entry, digest: &Sha256) -> Vec<Failure> {
    let unfound = entry.is_loaded().err().map(|why| why.to_string());
    [(FailureKind::Missing, unfound), (FailureKind::DigestMismatch, entry.mismatch(digest))]
        .into_iter()
        .filter_map(|(kind, message)| Some(Failure { kind, message: message? }))
        .collect()
}

/// The settings that a module is packed with, and why the policy does not take them, as a cluster
/// finds out. What cannot be loaded is not asked.
fn packed_settings(
    entry: &Entry,
    examined: &Examined,
    sandbox: &Sandbox,
) -> (Option<Map<String, Value>>, Option<Failure>) {
    let Some(text) = &entry.settings else { return (None, None) };
    let settings = match packed::settings(text) {
        Ok(settings) => settings,
        Err(message) => {
            return (None, Some(Failure { kind: FailureKind::InvalidSettings, message }));
        }
    };
    let described = examined.inspection.description.as_ref();
    let failure = described
        .filter(|_| examined.problems.is_empty())
        .and_then(|it| check_settings(&entry.bytes, it, &settings, sandbox).err());
    (Some(settings), failure)
}

fn check_settings(
    bytes: &[u8],
    description: &Description,
    settings: &Map<String, Value>,
    sandbox: &Sandbox,
) -> Result<(), Failure> {
    let complete = complete_settings(description, settings)?;
    if description.settings.is_some() {
        sandbox.check_settings(&sandbox.load(bytes, None)?, &complete)?;
    }
    Ok(())
}

/// What to know of a ConfigMap that no cluster finds by itself.
fn unlabelled(entry: &Entry) -> Option<String> {
    (!entry.is_labelled).then(|| {
        format!(
            "{} has no label {LABEL}=true: a cluster loads it only where a DisruptionPolicy names \
             it",
            entry.config_map()
        )
    })
}

/// What was found out about a file.
pub(crate) struct Examined {
    pub(crate) inspection: Inspection,
    pub(crate) what: What,
    /// Why it cannot be loaded; empty if it can.
    pub(crate) problems: Vec<Failure>,
    /// Of a call that only describes it, if that works.
    empty_call: Option<Spent>,
}

impl Examined {
    /// Looks at the file, and loads it if nothing speaks against that.
    pub(crate) fn new(path: &Path, bytes: &[u8], sandbox: &Sandbox) -> Examined {
        let inspection = tread_engine::inspect::inspect(bytes, sandbox.limits());
        let what = what(path, bytes, &inspection);
        let mut problems = inspection.problems.clone();
        let mut empty_call = None;
        if problems.is_empty() {
            match load(bytes, inspection.description.as_ref(), sandbox) {
                Ok(spent) => empty_call = Some(spent),
                Err(failure) => problems.push(failure),
            }
        }
        Examined { inspection, what, problems, empty_call }
    }

    /// The first problem, with what the file is and what to do: for commands
    /// that need a policy.
    pub(crate) fn check(&self, path: &Path) -> Result<()> {
        let Some(problem) = self.problems.first() else { return Ok(()) };
        let name = path.display();
        let next = match (&self.what.advice, problem.kind) {
            (Some(advice), _) => format!("; {advice}"),
            // Of a contract that is not spoken the problem says what to do.
            (None, FailureKind::WrongWorld) => String::new(),
            _ => format!("; `tread policy inspect {name}` shows all that is known of it"),
        };
        let what = &self.what.title;
        let why = format!("{name} is {what}, and cannot be loaded: {problem}{next}");
        // A foreign file may say anything of itself.
        bail!(line(&why))
    }
}

fn load(
    bytes: &[u8],
    description: Option<&Description>,
    sandbox: &Sandbox,
) -> Result<Spent, Failure> {
    let module = sandbox.load(bytes, None)?;
    let spent = sandbox.empty_call(&module)?;
    if let Some(description) = description.filter(|it| it.settings.is_some()) {
        let defaults = complete_settings(description, &Map::new())?;
        sandbox.check_settings(&module, &defaults)?;
    }
    Ok(spent)
}

/// What is printed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'e> {
    file: String,
    /// Where in it, if it is a manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    packed_in: Option<String>,
    /// What it is packed with, over the defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    packed_settings: Option<Map<String, Value>>,
    /// What is no problem, and may not be meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// A stable name for what it is.
    kind: &'static str,
    /// What the file is, in words.
    what: &'e str,
    size: usize,
    digest: Sha256,
    /// `Loaded` or `Failed`.
    state: &'static str,
    problems: Vec<Problem<'e>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<&'e str>,
    #[serde(flatten)]
    described: Option<Described<'e>>,
    /// The version of the contract.
    #[serde(skip_serializing_if = "Option::is_none")]
    contract: Option<&'e str>,
    imports: &'e [String],
    exports: &'e [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    empty_call: Option<EmptyCall>,
}

/// What it says of itself.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Described<'e> {
    name: &'e str,
    version: &'e str,
    summary: &'e str,
    claims: &'e [Claim],
    settings: Option<Settings>,
    needs_secrets: bool,
    /// The sentences that it declares.
    reasons: &'e [String],
}

#[derive(Serialize)]
struct Settings {
    defaults: Map<String, Value>,
    schema: Map<String, Value>,
}

#[derive(Serialize)]
struct Problem<'e> {
    failure: &'static str,
    message: &'e str,
}

#[derive(Serialize)]
struct EmptyCall {
    /// The function that was called.
    function: &'static str,
    fuel: u64,
    memory: usize,
}

impl<'e> Report<'e> {
    fn new(path: &Path, examined: &'e Examined) -> Report<'e> {
        let Examined { inspection, what, problems, empty_call } = examined;
        Report {
            file: path.display().to_string(),
            packed_in: None,
            packed_settings: None,
            notes: Vec::new(),
            kind: what.kind,
            what: &what.title,
            size: inspection.size,
            digest: inspection.digest,
            state: if problems.is_empty() { "Loaded" } else { "Failed" },
            problems: problems
                .iter()
                .map(|it| Problem { failure: it.kind.name(), message: &it.message })
                .collect(),
            advice: what.advice.as_deref(),
            described: inspection
                .description
                .as_ref()
                .map(|it| described(it, &inspection.declarations)),
            contract: inspection.contract.as_deref(),
            imports: &inspection.imports,
            exports: &inspection.exports,
            empty_call: empty_call.map(|Spent { fuel, memory }| EmptyCall {
                function: "describe",
                fuel,
                memory,
            }),
        }
    }
}

fn described<'e>(
    description: &'e Description,
    Declarations { needs_secrets, reasons }: &'e Declarations,
) -> Described<'e> {
    let Description { name, version, summary, claims, settings } = description;
    let settings = settings.as_ref().map(settings_of);
    Described { name, version, summary, claims, settings, needs_secrets: *needs_secrets, reasons }
}

/// Texts that are no objects are a problem that stands elsewhere.
fn settings_of(settings: &SettingsDescription) -> Settings {
    let object = |text: &str| serde_json::from_str(text).unwrap_or_default();
    Settings { defaults: object(&settings.defaults), schema: object(&settings.schema) }
}

fn human(out: &mut impl Write, report: &Report<'_>, limits: &Limits) -> Result<()> {
    match &report.described {
        // What is broken may hold anything.
        Some(it) => {
            writeln!(out, "{}", line(&format!("{} {}: {}", it.name, it.version, it.summary)))?
        }
        None => writeln!(out, "{}: {}", line(&report.file), line(report.what))?,
    }
    let mut rows = Vec::new();
    if let Some(place) = &report.packed_in {
        rows.push(("packed in", line(place)));
    }
    rows.push(("digest", report.digest.to_string()));
    rows.push(("size", format!("{} bytes", thousands(report.size as u64))));
    if let Some(version) = report.contract {
        rows.push(("contract", format!("tread:policy@{version}")));
    }
    // What other worlds import and export stands in the title or in a problem.
    if report.contract.is_some() {
        rows.push(("imports", list(report.imports)));
        rows.push(("exports", list(report.exports)));
    }
    if let Some(call) = &report.empty_call {
        let fuel = format!(
            "{} of {} units of fuel, {} KiB of memory, to describe itself",
            thousands(call.fuel),
            thousands(limits.fuel),
            call.memory.div_ceil(1024)
        );
        rows.push(("empty call", fuel));
    }
    rows.push(("state", report.state.to_owned()));
    rows.extend(report.problems.iter().map(|it| {
        let Problem { failure, message } = it;
        ("problem", format!("{failure}: {message}"))
    }));
    rows.extend(report.notes.iter().map(|note| ("note", note.clone())));
    rows.extend(report.advice.map(|advice| ("next", advice.to_owned())));
    let rows: Vec<_> =
        rows.into_iter().map(|(name, text)| vec![format!("  {name}"), text]).collect();
    table::print(out, &rows)?;
    if let Some(described) = &report.described {
        writeln!(out, "\nclaims, and the range of the answers")?;
        let claims = described.claims.iter().map(|claim| {
            let beside = if claim.with_unchanged { "also what did not change" } else { "" };
            vec![format!("  {}", claim.changes), effects(claim), beside.to_owned()]
        });
        table::print(out, &claims.collect::<Vec<_>>())?;
        if described.needs_secrets {
            writeln!(
                out,
                "\nIt needs to read secrets: `--read-secrets {}` lets it, in a cluster \
                 `spec.readSecrets: true`.",
                line(described.name)
            )?;
        }
        if !described.reasons.is_empty() {
            writeln!(out, "\nreasons that are shown also where it was offered a secret")?;
            for reason in described.reasons {
                writeln!(out, "  {}", line(reason))?;
            }
        }
        if let Some(settings) = &described.settings {
            let packed = report.packed_settings.as_ref().filter(|it| !it.is_empty());
            let what = if packed.is_some() { ", and what it is packed with" } else { "" };
            writeln!(out, "\nsettings, with their defaults{what}")?;
            table::print(out, &settings_table(settings, packed))?;
        }
    }
    Ok(())
}

/// Name, default, what it is packed with if there is anything, what else it may be, and what the
/// schema says it is for.
fn settings_table(settings: &Settings, packed: Option<&Map<String, Value>>) -> Vec<Vec<String>> {
    let properties = settings.schema.get("properties");
    let row = |(name, default): (&String, &Value)| {
        let schema = properties.and_then(|it| it.get(name));
        let field = |field: &str| schema.and_then(|it| it.get(field));
        let text = field("description").and_then(Value::as_str).unwrap_or_default();
        let choice = field("enum").and_then(Value::as_array).map(|values| {
            let values: Vec<String> = values.iter().map(Value::to_string).collect();
            format!("one of {}", values.join(", "))
        });
        let kind = || field("type").and_then(Value::as_str).map(str::to_owned);
        let may_be = choice.or_else(kind).unwrap_or_default();
        let set = packed.map(|packed| match packed.get(name) {
            Some(value) => format!("packed: {value}"),
            None => String::new(),
        });
        let name = format!("  {}", line(name));
        let cells =
            [Some(name), Some(default.to_string()), set, Some(may_be), Some(text.to_owned())];
        cells.into_iter().flatten().collect()
    };
    // What only the manifest names has no default.
    let only_packed =
        packed.into_iter().flatten().filter(|(name, _)| !settings.defaults.contains_key(*name));
    let more = only_packed.map(|(name, value)| {
        vec![format!("  {}", line(name)), String::new(), format!("packed: {value}")]
    });
    settings.defaults.iter().map(row).chain(more).collect()
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_tells_modules_apart_is_asked_for() {
        let options = |all: &[[&str; 3]]| {
            let entry = |[namespace, name, key]: &[&str; 3]| Entry {
                namespace: (*namespace).to_owned(),
                name: (*name).to_owned(),
                key: (*key).to_owned(),
                keys: Vec::new(),
                named_key: None,
                bytes: Vec::new(),
                digest: None,
                settings: None,
                is_labelled: true,
            };
            telling_apart(&all.iter().map(entry).collect::<Vec<_>>())
        };
        assert_eq!(options(&[["n", "a", "k"], ["n", "b", "k"]]), " --name NAME");
        assert_eq!(options(&[["n", "a", "k"], ["m", "a", "k"]]), " --namespace NAMESPACE");
        assert_eq!(options(&[["n", "a", "k"], ["n", "a", "l"]]), " --key KEY");
        assert_eq!(options(&[["n", "a", "k"], ["m", "b", "l"]]), " --name NAME");
        let three = [["n", "a", "k"], ["n", "a", "l"], ["n", "b", "k"]];
        assert_eq!(options(&three), " --name NAME --key KEY");
    }

    #[test]
    fn a_setting_is_shown_with_its_default_and_what_else_it_may_be() {
        let settings = settings_of(&SettingsDescription {
            defaults: r#"{"drain":"never","limit":5,"plain":[]}"#.to_owned(),
            schema: r#"{"properties":{"drain":{"enum":["never","always"],"description":"When."},
                        "limit":{"type":"integer"}}}"#
                .to_owned(),
        });
        assert_eq!(
            settings_table(&settings, None),
            [
                ["  drain", "\"never\"", "one of \"never\", \"always\"", "When."],
                ["  limit", "5", "integer", ""],
                ["  plain", "[]", "", ""],
            ]
        );
        let packed = serde_json::from_str(r#"{"limit":7,"more":1}"#).unwrap();
        let rows = settings_table(&settings, Some(&packed));
        assert_eq!(rows[0][..3], ["  drain", "\"never\"", ""]);
        assert_eq!(rows[1][..3], ["  limit", "5", "packed: 7"]);
        assert_eq!(rows[3], ["  more", "", "packed: 1"]);
    }
}
