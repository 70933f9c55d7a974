//! `tread policy test`: the cases of a policy, and what every policy must keep.

mod generate;
mod properties;
mod quotes;
mod report;
mod run;
mod together;
mod update;

use crate::build::source;
use crate::cases::{self, Case};
use crate::explain;
use crate::in_cluster::warn_of_wide;
use anyhow::{Context as _, Result, ensure};
use properties::Property;
use report::{Outcome, Report, Row};
use run::{Found, Subject};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tread_console::exit::{Exit, unless_nobody_reads};
use tread_console::{inputs, print};
use tread_engine::limits::Limits;
use tread_loading::builtins::check_name;
use tread_loading::sandbox;

pub use report::Output;
pub(crate) use update::scalar;

const EXAMPLES: &str = "\
Examples:
  tread policy test                      the crate in this directory, and its cases/
  tread policy test chrony.wasm --cases cases/
  tread policy test -o junit > report.xml
  tread policy test --update             write what is found into the cases

A case is a YAML document; a file holds several, with --- between them:
  title: A server is added
  settings: {chrony: {restart: true}}    # optional, by policy
  readSecrets: true                      # optional: this policy may read secrets
  old: {files: {/etc/chrony.conf: \"server a\\n\"}}
  new: {files: {/etc/chrony.conf: \"server a\\nserver b\\n\"}}
  expect:
    verdicts:                            # of this policy: all that it is offered
      file:/etc/chrony.conf: {answer: act, actions: [restart chronyd.service], reason: server}
    plan: restart chronyd.service        # of all, with the built-in policies
    changes:                             # optional: then every change is named
      file:/etc/chrony.conf: {by: chrony}

One of verdicts and plan is needed; --update writes verdicts where there is neither. An
answer is act, abstain, refuse or the name of a failure, such as trap; a reason is words
that stand in it, or a /pattern/. A plan is what is done besides writing, such as `drain,
reload crio.service`; `no action` where writing is enough, `nothing` where nothing
differs, `reboot` or `refuse`. A side is a path, a MachineConfig, a list, or short: files,
units, sshKeys, passwordHash, kernelArguments, kernelType, osImage, extensions. A case
that changes nothing that the policy claims fails.

--update rewrites the block `expect:` of cases that are not as expected, and nothing
else; comments within that block are lost. Failures are never written.

Besides, the policy is asked about some hundred made-up changes for each claim, one by one
and several in one call: it must answer them all, twice the same, within its limits and its
claims, with a reason that quotes nothing of what it was offered.

Exit codes:
  0  everything passed
  1  something failed, or could not be tried";

/// The arguments of `tread policy test`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct TestArgs {
    /// The directory of the crate, which is built first; or a component
    #[arg(value_name = "DIR|FILE.wasm", default_value = ".")]
    pub policy: PathBuf,
    /// The cases: a directory or a file [default: cases beside it]
    #[arg(long, value_name = "DIR|FILE")]
    pub cases: Option<PathBuf>,
    /// How to print the results
    #[arg(short, long, value_enum, default_value_t = Output::Human)]
    pub output: Output,
    /// Rewrite what the cases expect
    #[arg(long)]
    pub update: bool,
}

/// The name under which properties are listed.
const PROPERTIES: &str = "properties";

/// Tests, prints, and fails if anything did.
pub fn run(args: &TestArgs, out: &mut impl Write) -> Result<Exit> {
    let name = args.policy.display();
    ensure!(
        args.policy.exists(),
        "there is no {name}: name the directory of a policy's crate, or its .wasm file"
    );
    if args.policy.is_dir() {
        source::check_crate(&args.policy)?;
    }
    let files = cases::files(&folder(args))?;
    let (component, source) = match args.policy.is_dir() {
        true => (source::built(&args.policy)?.0, Some(fs::canonicalize(&args.policy)?)),
        false => {
            let source = explain::crate_of(&args.policy).map(Path::to_owned);
            (inputs::read_file(&args.policy)?.bytes, source)
        }
    };
    let start = Instant::now();
    let sandbox = sandbox::for_one(Limits::default())?;
    let subject = Subject::new(component, source, sandbox)
        .with_context(|| format!("{name} cannot be loaded: see tread policy inspect {name}"))?;
    let load_nanos = nanos(start);
    let identity = &subject.policy.identity;
    check_name(&identity.policy, Some(identity.digest))?;
    warn_of_wide(&subject.policy.claims);

    let start = Instant::now();
    let mut results = Vec::new();
    let mut all: Vec<Case> = Vec::new();
    for file in &files {
        results.extend(of_file(&subject, file, args.update, &mut all));
    }
    let cases_nanos = nanos(start);
    for Property { title, problems } in properties::check(&subject, &all, &told) {
        let (file, outcome) = (PROPERTIES.to_owned(), outcome(&problems));
        results.push(Row { file, title, outcome, problems, notes: Vec::new() });
    }
    let identity = &subject.policy.identity;
    let report = Report {
        policy: identity.policy.clone(),
        version: identity.version.clone(),
        digest: identity.digest,
        passed: 0,
        failed: 0,
        updated: 0,
        load_nanos,
        cases_nanos,
        results,
    }
    .counted();
    unless_nobody_reads(report.print(args.output, out))?;
    Ok(if report.failed > 0 { Exit::Error } else { Exit::Done })
}

/// Tells whoever waits at a terminal what is being tried: it can take long.
fn told(what: &str) {
    if io::stderr().is_terminal() {
        print::beside(what);
    }
}

fn nanos(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn outcome(problems: &[String]) -> Outcome {
    if problems.is_empty() { Outcome::Passed } else { Outcome::Failed }
}

/// Where the cases are.
fn folder(args: &TestArgs) -> PathBuf {
    match (&args.cases, args.policy.is_dir()) {
        (Some(cases), _) => cases.clone(),
        (None, true) if args.policy.as_os_str() == "." => PathBuf::from("cases"),
        (None, true) => args.policy.join("cases"),
        (None, false) => args.policy.parent().unwrap_or(Path::new("")).join("cases"),
    }
}

/// All cases of a file; one failed result where it cannot be read.
fn of_file(subject: &Subject, path: &Path, update: bool, all: &mut Vec<Case>) -> Vec<Row> {
    let file = path.display().to_string();
    let row = |title: &str, problems: Vec<String>| Row {
        file: file.clone(),
        title: title.to_owned(),
        outcome: outcome(&problems),
        problems,
        notes: Vec::new(),
    };
    let (mut cases, mut unread) = (Vec::new(), Vec::new());
    match cases::read_each(path) {
        Err(error) => unread.extend(lines(&error)),
        Ok(each) if each.is_empty() => {
            return vec![row("it holds cases", vec!["there is none in it".to_owned()])];
        }
        Ok(each) => {
            for case in each {
                case.map_or_else(|error| unread.extend(lines(&error)), |case| cases.push(case));
            }
        }
    }
    let mut rows = Vec::new();
    if !unread.is_empty() {
        rows.push(row("its cases can be read", unread));
    }
    let first = rows.len();
    let (mut blocks, mut notes) = (BTreeMap::new(), BTreeMap::new());
    for case in &cases {
        let found: Found = subject.run(case);
        if update
            && !found.problems.is_empty()
            && let Some(new) = update::expectation(case, &found)
        {
            blocks.insert(case.title.clone(), new.block);
            notes.insert(case.title.clone(), new.notes);
        }
        rows.push(row(&case.title, found.problems));
    }
    if !blocks.is_empty() {
        match update::rewrite(path, &cases, &blocks) {
            Ok(()) => rows.iter_mut().skip(first).for_each(|row| {
                if let Some(notes) = notes.remove(&row.title) {
                    (row.outcome, row.notes) = (Outcome::Updated, notes);
                }
            }),
            Err(error) => rows.push(row("its expectations can be rewritten", lines(&error))),
        }
    }
    all.extend(cases);
    rows
}

fn lines(error: &anyhow::Error) -> Vec<String> {
    format!("{error:#}").lines().map(str::to_owned).collect()
}
