//! `tread policy rules`: checks rules that need no code, and takes them from and
//! to OpenShift's nodeDisruptionPolicy.

use anyhow::{Result, bail};
use serde::{Deserialize as _, Serialize};
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use tread_console::exit::{Exit, UsageError};
use tread_console::inputs::{self, NamedBytes};
use tread_console::print::{self, json, yaml};
use tread_console::table;
use tread_engine::limits::Limits;
use tread_engine::policy::Policy;
use tread_loading::args::PolicyArgs;
use tread_loading::builtins::check_name;
use tread_loading::policies;
use tread_model::effect::Effect;
use tread_model::openshift::{self, Export, Says, Voice};
use tread_model::plan::{Step, effect_of};
use tread_model::problem::{Problem, Problems};
use tread_model::read::{Input, document_values};
use tread_model::rules::{self, RuleAction, RuleSet, RulesPolicy, Then};
use tread_model::verdict::{Action, Layer};

const EXAMPLES: &str = "\
Examples:
  tread policy rules rules.yaml
      Checks DisruptionPolicy manifests, and lists what they match and answer.
  oc get machineconfiguration cluster -o yaml | tread policy rules - > rules.yaml
      Makes a DisruptionPolicy of OpenShift's nodeDisruptionPolicy.
  tread policy rules --to-openshift rules.yaml > machineconfiguration.yaml
      Makes a nodeDisruptionPolicy of these rules and of the built-in policies.
  tread policy rules --to-openshift --policy chrony.wasm -o json
      The same of a policy, with what is left out, for a script.

A manifest goes to standard output; what it leaves out, and where it means
something else, to standard error.

Exit codes:
  0  the rules are valid
  1  they are not: every problem is named
  2  the command line is wrong";

/// The arguments of `tread policy rules`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct RulesArgs {
    /// DisruptionPolicies with inline rules, or OpenShift's MachineConfiguration:
    /// files, directories, or - for standard input
    #[arg(value_name = "FILE", required_unless_present = "to_openshift")]
    pub files: Vec<PathBuf>,
    /// Print a MachineConfiguration whose nodeDisruptionPolicy says whatever
    /// these rules and the built-in policies decide without looking at contents
    #[arg(long)]
    pub to_openshift: bool,
    /// A policy of a template owner to export too (may be repeated)
    #[arg(long, value_name = "FILE.wasm", requires = "to_openshift")]
    pub policy: Vec<PathBuf>,
    /// Let what this policy answers stand against the built-in policies
    #[arg(long, value_name = "POLICY", requires = "to_openshift")]
    pub may_relax: Vec<String>,
    /// How to print it; a manifest is YAML unless this says json
    #[arg(short, long, value_enum, default_value_t = Output::Human)]
    pub output: Output,
}

/// How to print rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// For a person
    Human,
    /// For a script
    Json,
    /// For a script
    Yaml,
}

/// Checks, converts or exports.
pub fn run(args: &RulesArgs, out: &mut impl Write) -> Result<Exit> {
    let mut files = Vec::new();
    for path in &args.files {
        files.extend(inputs::read(path)?.files);
    }
    if args.to_openshift {
        return to_openshift(args, &files, out);
    }
    let all = read_all(&files, rules::read_any)?;
    let (theirs, ours): (Vec<_>, Vec<_>) =
        all.iter().partition(|it| it.policy.name == openshift::POLICY_NAME);
    match (theirs.as_slice(), ours.as_slice()) {
        ([], []) => bail!(
            "there are no rules in {}: expected a DisruptionPolicy with spec.rules, or OpenShift's \
             MachineConfiguration",
            names(&files)
        ),
        ([], ours) => check(args.output, ours, out)?,
        ([theirs], []) => from_openshift(args.output, &theirs.policy, out)?,
        _ => {
            let message = "a MachineConfiguration is converted, and a DisruptionPolicy is checked: \
                           give them one at a time";
            return Err(UsageError(message.to_owned()).into());
        }
    }
    Ok(Exit::Done)
}

fn names(files: &[NamedBytes]) -> String {
    files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// A policy of rules, and where it stands.
struct Given<'f> {
    file: &'f str,
    mode: Mode,
    policy: RulesPolicy,
}

/// Whether a policy decides, as its manifest says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum Mode {
    Enforce,
    Shadow,
    Disabled,
}

impl Mode {
    /// That of a manifest whose mode was read before, and is known.
    fn of(manifest: &Value) -> Mode {
        match manifest.pointer("/spec/mode").and_then(Value::as_str) {
            Some("Shadow") => Mode::Shadow,
            Some("Disabled") => Mode::Disabled,
            _ => Mode::Enforce,
        }
    }

    /// What stands behind the layer.
    fn in_words(self) -> &'static str {
        match self {
            Mode::Enforce => "",
            Mode::Shadow => ", mode Shadow: it is only tried, and decides nothing",
            Mode::Disabled => ", mode Disabled: it is not asked, and decides nothing",
        }
    }
}

/// How rules are read.
type Read = fn(&Input<'_>) -> Result<Vec<RulesPolicy>, Problems>;

/// The policies of a file, each with its mode.
fn read_with_modes(input: &Input<'_>, read: Read) -> Result<Vec<(Mode, RulesPolicy)>, Problems> {
    let policies = read(input)?;
    // Each document is one policy, in this order: any other would have been a problem.
    let documents = document_values(input)?;
    let modes = documents.iter().map(|document| Mode::of(&document.value));
    Ok(modes.zip(policies).collect())
}

/// The policies of all files; all problems together.
fn read_all(files: &[NamedBytes], read: Read) -> Result<Vec<Given<'_>>, Problems> {
    let mut problems = Vec::new();
    let mut all: Vec<Given<'_>> = Vec::new();
    for file in files {
        match read_with_modes(&Input { name: &file.name, bytes: &file.bytes }, read) {
            Err(Problems(more)) => problems.extend(more),
            Ok(policies) => {
                for (mode, policy) in policies {
                    // Whatever the layers: plans name a policy by its name alone.
                    let same = all.iter().find(|it| it.policy.name == policy.name);
                    let twice = same.map(|Given { file: earlier, .. }| {
                        format!(
                            "{:?} is the name of a policy in {earlier} too: rename one, or leave \
                             one out",
                            policy.name
                        )
                    });
                    let taken = check_name(&policy.name, None).err().map(|why| why.to_string());
                    problems.extend(twice.or(taken).map(|message| Problem {
                        file: file.name.clone(),
                        path: "metadata.name".to_owned(),
                        message,
                        ..Problem::default()
                    }));
                    all.push(Given { file: &file.name, mode, policy });
                }
            }
        }
    }
    if problems.is_empty() { Ok(all) } else { Err(Problems(problems)) }
}

/// A policy of rules as it is listed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Checked<'p> {
    file: &'p str,
    policy: &'p str,
    layer: Layer,
    mode: Mode,
    may_relax: bool,
    rules: Vec<Listed>,
    warnings: Vec<String>,
}

/// A rule as it is listed.
#[derive(Serialize)]
struct Listed {
    r#match: Vec<String>,
    /// `act`, `refuse` or `abstain`.
    answer: &'static str,
    actions: Vec<Step>,
    effect: Option<Effect>,
    /// What the answer is, for a person.
    #[serde(skip)]
    words: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

fn listed(rule: rules::Rule) -> Listed {
    let (answer, actions, effect, words, reason) = match rule.then {
        Then::Act { actions, reason } => {
            let undrained = actions.contains(&RuleAction::RebootUndrained);
            let actions: Vec<Action> = actions.iter().map(RuleAction::action).collect();
            let effect = effect_of(&actions);
            let actions: Vec<Step> = actions.iter().map(Step::from).collect();
            let words = match actions.as_slice() {
                [] => "no action".to_owned(),
                _ if undrained => "reboot without a drain".to_owned(),
                all => all.iter().map(Step::to_string).collect::<Vec<_>>().join(", "),
            };
            ("act", actions, Some(effect), words, Some(reason))
        }
        Then::Refuse { reason } => {
            let words = format!("refuse: {reason}");
            ("refuse", Vec::new(), Some(Effect::Refuse), words, Some(reason))
        }
        Then::Abstain => ("abstain", Vec::new(), None, "abstain".to_owned(), None),
    };
    Listed { r#match: rule.r#match, answer, actions, effect, words, reason }
}

fn check(output: Output, policies: &[&Given<'_>], out: &mut impl Write) -> Result<()> {
    let checked: Vec<Checked<'_>> = policies
        .iter()
        .map(|Given { file, mode, policy }| Checked {
            file,
            policy: &policy.name,
            layer: policy.layer,
            mode: *mode,
            may_relax: policy.may_relax,
            rules: rules_of(policy).into_iter().map(listed).collect(),
            warnings: rules::warnings(policy),
        })
        .collect();
    match output {
        Output::Json => json(out, &checked),
        Output::Yaml => yaml(out, &checked),
        Output::Human => human(out, &checked),
    }
}

fn rules_of(policy: &RulesPolicy) -> Vec<rules::Rule> {
    RuleSet::deserialize(&policy.settings).unwrap_or_default().rules
}

fn human(out: &mut impl Write, checked: &[Checked<'_>]) -> Result<()> {
    for (index, policy) in checked.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let relaxes = policy.may_relax && policy.layer == Layer::Template;
        let relax = if relaxes { ", may relax the built-in policies" } else { "" };
        let file = print::line(policy.file);
        let mode = policy.mode.in_words();
        writeln!(out, "{file}: {} (layer {}{relax}{mode})", policy.policy, policy.layer)?;
        let rows = (1..).zip(&policy.rules).flat_map(|(number, rule): (usize, &Listed)| {
            rule.r#match.iter().enumerate().map(move |(at, pattern)| {
                let first = |text: String| if at == 0 { text } else { String::new() };
                vec![first(number.to_string()), pattern.clone(), first(rule.words.clone())]
            })
        });
        table::print(out, &table::with_heads(&["RULE", "MATCHES", "ANSWER"], rows))?;
        for warning in &policy.warnings {
            writeln!(out, "warning: {}", print::line(warning))?;
        }
    }
    Ok(())
}

/// What the manifest of OpenShift's entries is called.
const NAME: &str = "node-disruption-policy";

fn from_openshift(output: Output, policy: &RulesPolicy, out: &mut impl Write) -> Result<()> {
    let manifest = rules::manifest(policy, NAME);
    if rules_of(policy).is_empty() {
        bail!(
            "MachineConfiguration/cluster has no nodeDisruptionPolicy entry: no rules come of it"
        );
    }
    match output {
        Output::Json => json(out, &manifest)?,
        Output::Human | Output::Yaml => yaml(out, &manifest)?,
    }
    openshift::differences(policy).iter().for_each(|note| print::beside(note));
    Ok(())
}

fn to_openshift(args: &RulesArgs, files: &[NamedBytes], out: &mut impl Write) -> Result<Exit> {
    let exported = PolicyArgs {
        policy: args.policy.clone(),
        rules: Vec::new(),
        settings: Vec::new(),
        may_relax: args.may_relax.clone(),
        read_secrets: Vec::new(),
    };
    let (set, _) = policies::named(&exported, &Limits::default())?;
    let read = read_all(files, rules::read)?;
    let mut voices: Vec<Voice> = read.iter().map(|it| Voice::from(&it.policy)).collect();
    voices.extend(set.policies().iter().map(|policy| voice(policy)));
    let export = openshift::export(&voices);
    let warnings: Vec<String> = read.iter().flat_map(|it| rules::warnings(&it.policy)).collect();
    match args.output {
        Output::Json => {
            json(out, &Exported { export: &export, warnings })?;
            return Ok(Exit::Done);
        }
        Output::Human | Output::Yaml => yaml(out, &export.manifest)?,
    }
    let Export { left_out, notes: more, .. } = &export;
    let left_out = left_out
        .iter()
        .map(|left| format!("not exported: {} of {}: {}.", left.pattern, left.policy, left.reason));
    let warnings = warnings.iter().map(|warning| format!("warning: {warning}"));
    // A manifest would not be one with these lines in it.
    warnings.chain(more.iter().cloned()).chain(left_out).for_each(|note| print::beside(&note));
    Ok(Exit::Done)
}

/// An export as it is printed for a script.
#[derive(Serialize)]
struct Exported<'e> {
    #[serde(flatten)]
    export: &'e Export,
    /// What is probably not meant in the rules themselves.
    warnings: Vec<String>,
}

fn voice(policy: &Policy) -> Voice {
    Voice {
        name: policy.identity.policy.clone(),
        layer: policy.identity.layer,
        may_relax: policy.may_relax,
        says: Says::Claims(policy.claims.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(name: &str, spec: &str) -> String {
        format!(
            "{{apiVersion: tread.dev/v1alpha1, kind: DisruptionPolicy, metadata: {{name: {name}}}, \
             spec: {{{spec}, rules: [{{match: ['file:/etc/a'], actions: []}}]}}}}\n"
        )
    }

    #[test]
    fn what_passes_here_is_taken_by_a_plan_and_what_a_plan_refuses_does_not_pass() {
        let long = "a".repeat(254);
        for (name, files, part) in [
            ("fine", &[manifest("time", "layer: admin")][..], None),
            ("dots", &[manifest("a.b-c", "layer: template, mayRelax: true")], None),
            ("no effect", &[manifest("time", "layer: admin, mayRelax: true")], None),
            ("enforced", &[manifest("time", "mode: Enforce")], None),
            ("built-in", &[manifest("registries", "layer: admin")], Some("a built-in one")),
            ("two dots", &[manifest("a..b", "layer: admin")], Some("beside each .")),
            ("dash", &[manifest("a-", "layer: admin")], Some("is no name")),
            ("long", &[manifest(&long, "layer: admin")], Some("is no name")),
            (
                "two layers",
                &[manifest("time", "layer: admin"), manifest("time", "layer: template")],
                Some("rename one"),
            ),
            (
                "two files",
                &[manifest("time", "layer: admin"), manifest("time", "layer: admin")],
                Some("rename one"),
            ),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let paths: Vec<PathBuf> =
                (0..files.len()).map(|index| dir.path().join(format!("{index}.yaml"))).collect();
            for (path, text) in paths.iter().zip(files) {
                std::fs::write(path, text).unwrap();
            }
            let exported = PolicyArgs {
                policy: Vec::new(),
                rules: paths.clone(),
                settings: Vec::new(),
                may_relax: Vec::new(),
                read_secrets: Vec::new(),
            };
            let plan = policies::named(&exported, &Limits::default());
            let args = RulesArgs {
                files: paths,
                to_openshift: false,
                policy: Vec::new(),
                may_relax: Vec::new(),
                output: Output::Human,
            };
            let mut out = Vec::new();
            let checked = run(&args, &mut out);
            let said = match &checked {
                Ok(_) => String::from_utf8(out).unwrap(),
                Err(error) => format!("{error:#}"),
            };
            assert_eq!(checked.is_ok(), plan.is_ok(), "{name}: {said}");
            assert_eq!(checked.is_ok(), part.is_none(), "{name}: {said}");
            assert!(said.contains(part.unwrap_or("layer")), "{name}: {said}");
            let Ok((_, warnings)) = plan else { continue };
            for warning in &warnings {
                assert!(
                    said.contains(&format!("warning: {warning}")),
                    "{name}: {warning} in {said}"
                );
            }
            assert_eq!(warnings.len(), usize::from(name == "no effect"), "{name}: {warnings:?}");
            let relaxes = said.contains("may relax the built-in");
            assert_eq!(relaxes, name == "dots", "{name}: {said}");
            assert!(!said.contains("mode"), "{name}: {said}");
        }
    }

    #[test]
    fn each_policy_of_a_file_has_the_mode_of_its_own_manifest() {
        let of = |name: &str, mode: &str| manifest(name, &format!("layer: template{mode}"));
        let [a, b, c] = [of("a", ", mode: Disabled"), of("b", ""), of("c", ", mode: Shadow")];
        let list = format!(
            "{{apiVersion: v1, kind: List, items: [{}, {}, {}]}}",
            a.trim(),
            b.trim(),
            c.trim()
        );
        for text in [format!("{a}---\n# nothing\n---\n{b}---\n{c}"), list] {
            let input = Input { name: "rules.yaml", bytes: text.as_bytes() };
            let read = read_with_modes(&input, rules::read_any).unwrap();
            let found: Vec<_> = read.iter().map(|(mode, it)| (it.name.as_str(), *mode)).collect();
            let expected = [("a", Mode::Disabled), ("b", Mode::Enforce), ("c", Mode::Shadow)];
            assert_eq!(found, expected, "{text}");
        }
    }
}
