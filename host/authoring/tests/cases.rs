//! Every case of `tests/cases/policies` is a test, with the policies in the
//! sandbox: those of the binary, or those that were just built from source, in
//! the directory that `TREAD_REBUILT` names.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tread_authoring::cases::{self, Case};
use tread_engine::limits::Limits;
use tread_engine::planner;
use tread_engine::policy::{Policy, PolicySet, Wishes};
use tread_engine::sandbox::{Options, Sandbox};
use tread_loading::builtins;
use tread_model::mirrors;
use tread_model::plan::Plan;
use tread_model::read::Input;
use tread_model::rules;
use tread_model::verdict::Layer;

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/policies");
    for path in cases::files(&folder).unwrap() {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let cases = cases::read_file(&path).unwrap_or_else(|error| panic!("{error:#}"));
        for case in cases {
            trials.push(Trial::test(format!("{stem}: {}", case.title), move || run(&case)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn run(case: &Case) -> Result<(), Failed> {
    let plan = plan(case).map_err(|error| Failed::from(format!("{error:#}")))?;
    let differences = case.expect.differences(&plan);
    if differences.is_empty() {
        return Ok(());
    }
    let shown = serde_json::to_string_pretty(&plan).unwrap();
    Err(format!("{}\n{shown}", differences.join("\n")).into())
}

fn plan(case: &Case) -> anyhow::Result<Plan> {
    let bytes = |objects: &[serde_json::Value]| -> Vec<(String, Vec<u8>)> {
        let named = |(index, object): (usize, &serde_json::Value)| {
            (format!("object {}", index + 1), serde_json::to_vec(object).unwrap())
        };
        let mut bytes: Vec<_> = objects.iter().enumerate().map(named).collect();
        if bytes.is_empty() {
            let empty = br#"{"ignition":{"version":"3.4.0"}}"#.to_vec();
            bytes.push(("nothing".to_owned(), empty));
        }
        bytes
    };
    let (old, new) = (bytes(&case.old), bytes(&case.new));
    let (old, new) = mirrors::sides(&inputs(&old), &inputs(&new))?;
    let (policies, warnings) = policies(case)?;
    Ok(planner::plan(sandbox(), &policies, &old.config, &new.config, warnings)?.plan)
}

fn inputs(files: &[(String, Vec<u8>)]) -> Vec<Input<'_>> {
    files.iter().map(|(name, bytes)| Input { name, bytes }).collect()
}

fn policies(case: &Case) -> anyhow::Result<(PolicySet, Vec<String>)> {
    let limits = Limits::default();
    let rebuilt = std::env::var_os("TREAD_REBUILT").map(PathBuf::from);
    let wishes = |name: &str| Wishes {
        settings: case
            .settings
            .get(name)
            .and_then(|it| it.as_object().cloned())
            .unwrap_or_default(),
        ..Wishes::default()
    };
    let mut policies = match &rebuilt {
        Some(dir) => builtins::load_from(dir, &limits, wishes)?,
        None => builtins::load(&limits, wishes)?,
    };
    let mut warnings = Vec::new();
    for (name, bytes) in bytes_of(&case.rules) {
        for read in rules::read(&Input { name: &name, bytes: &bytes })? {
            let wishes = Wishes {
                settings: read.settings.as_object().cloned().unwrap_or_default(),
                may_relax: read.may_relax,
                ..Wishes::default()
            };
            let policy: Policy = match &rebuilt {
                Some(dir) => builtins::load_rules_from(dir, read.layer, wishes, &limits)?,
                None => builtins::load_rules(read.layer, wishes, &limits)?,
            };
            warnings.extend(read.warnings);
            policies.push(policy.named(read.name, String::new(), read.claims).by_rules());
        }
    }
    assert!(policies.iter().any(|policy| policy.identity.layer == Layer::Builtin));
    Ok((PolicySet::new(policies).map_err(anyhow::Error::msg)?, warnings))
}

fn bytes_of(objects: &[serde_json::Value]) -> Vec<(String, Vec<u8>)> {
    objects.iter().map(|it| ("rules".to_owned(), serde_json::to_vec(it).unwrap())).collect()
}

/// One for all cases: compiling is what takes time.
fn sandbox() -> &'static Sandbox {
    static SANDBOX: OnceLock<(Sandbox, Arc<tempfile::TempDir>)> = OnceLock::new();
    let (sandbox, _) = SANDBOX.get_or_init(|| {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        let options = Options { cache_dir: Some(dir.path().join("cache")), ..Options::default() };
        (Sandbox::new(options).unwrap(), dir)
    });
    sandbox
}
