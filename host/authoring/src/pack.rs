//! `tread policy pack`: a policy as a manifest that `kubectl` can carry.

use crate::in_cluster::warn_of_wide;
use crate::inspect::Examined;
use anyhow::{Context as _, Result, anyhow, bail, ensure};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};
use tread_console::exit::{Exit, UsageError};
use tread_console::outputs;
use tread_console::print::{shown, warn};
use tread_console::sentence::thousands;
use tread_engine::limits::Limits;
use tread_engine::policy::{Policy, Wishes};
use tread_engine::sandbox::Sandbox;
use tread_loading::builtins::check_name;
use tread_loading::manifest::{self, LABEL, MOST_ANNOTATIONS, MOST_DATA, Manifest};
use tread_loading::{file, sandbox};
use tread_model::object_name::{LONGEST, LONGEST_LABEL, is_label, is_name};
use tread_model::read::{Input, document_values};
use tread_model::verdict::Layer;

const EXAMPLES: &str = "\
Examples:
  tread policy pack chrony.wasm -n node-config --name chrony -o chrony.yaml
  tread policy pack chrony.wasm -n node-config --name chrony | kubectl apply -f -
  tread policy pack chrony.wasm -n node-config --name chrony --settings settings.yaml

The module is loaded and its settings are checked first; nothing is written of one
that tread could not load. `tread policy unpack` gets the module back.";

/// The arguments of `tread policy pack`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct PackArgs {
    /// The component; - for standard input
    pub file: PathBuf,
    /// The namespace of the ConfigMap
    #[arg(short, long, value_parser = namespace)]
    pub namespace: String,
    /// The name of the ConfigMap
    #[arg(long, value_parser = name)]
    pub name: String,
    /// Settings of the policy: a YAML or JSON file with an object
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,
    /// Where to write the manifest [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Writes the manifest, and says what it holds and how to apply it.
pub fn run(args: &PackArgs, out: &mut impl Write) -> Result<Exit> {
    check_arguments(args)?;
    let module = file::read(&args.file)?;
    let settings = args.settings.as_deref().map(read_settings).transpose()?;
    let of_settings = settings.as_ref().map_or(0, |it| it.text.len());
    // Settings of that size are not worth a look at what they say.
    if of_settings > module.len() {
        check_fits(module.len(), of_settings)?;
    }
    let policy = load(args, &module, settings.as_ref())?;
    check_fits(module.len(), of_settings)?;
    check_name(&policy.identity.policy, Some(policy.identity.digest))?;
    warn_of_wide(&policy.claims);
    let manifest = Manifest {
        namespace: &args.namespace,
        name: &args.name,
        version: format!("{} {}", policy.identity.policy, policy.identity.version),
        digest: policy.identity.digest,
        claims: policy.claims.iter().map(|claim| claim.changes.as_str()).collect(),
        module: &module,
        settings: settings.as_ref().map(|settings| settings.text.as_str()),
    };
    let yaml = manifest.yaml()?;
    check_round_trip(&manifest, &yaml)?;

    let target = args.output.as_deref().filter(|path| path.as_os_str() != "-");
    if let Some(warning) = too_large_to_apply(&manifest, target) {
        warn(&warning);
    }
    match target {
        None => out.write_all(yaml.as_bytes())?,
        Some(path) => {
            let file = shown(path);
            outputs::write(path, yaml.as_bytes())
                .with_context(|| format!("the manifest cannot be written to {file}"))?;
            let Manifest { namespace, name, version, digest, .. } = &manifest;
            writeln!(out, "{file}: ConfigMap {namespace}/{name} with {version}")?;
            writeln!(out, "  module  {} bytes, {digest}", thousands(module.len() as u64))?;
            writeln!(out, "  label   {LABEL}=true marks it as a policy for tread")?;
            writeln!(out, "  next    {}", apply(&manifest, &file))?;
        }
    }
    Ok(Exit::Done)
}

/// What has to be right before anything is read.
fn check_arguments(args: &PackArgs) -> Result<()> {
    let usage = |message: String| Err(UsageError(message).into());
    let read = [Some(&args.file), args.settings.as_ref()];
    file::check_standard_input(read.into_iter().flatten().map(PathBuf::as_path))?;
    // tread lists the policy as NAMESPACE.NAME, which is a name of that form too.
    let listed = args.namespace.len() + 1 + args.name.len();
    if listed > LONGEST {
        return usage(format!(
            "--namespace and --name: tread lists the policy as NAMESPACE.NAME, which would have \
             {listed} characters, and {LONGEST} are allowed: take a shorter --name"
        ));
    }
    for (what, input) in [("module", Some(&args.file)), ("settings", args.settings.as_ref())] {
        let (Some(output), Some(input)) = (&args.output, input) else { continue };
        if outputs::is_same(output, input) {
            let output = shown(output);
            return usage(format!("-o {output}: the manifest would be written over the {what}"));
        }
    }
    Ok(())
}

/// Settings as they were written, and what they say.
struct Settings {
    text: String,
    values: Map<String, Value>,
    name: String,
}

fn read_settings(path: &Path) -> Result<Settings> {
    let file = file::one(path)?;
    let documents = document_values(&Input { name: &file.name, bytes: &file.bytes })?;
    let found = documents.len();
    let values = match documents.into_iter().next().map(|document| document.value) {
        Some(Value::Object(values)) if found == 1 => values,
        _ => bail!(
            "{}: expected one object with the policy's settings, such as `drain: never`",
            file.name
        ),
    };
    let text = String::from_utf8(file.bytes)?;
    // Some editors begin a file with a mark that is none of its text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned();
    Ok(Settings { text, values, name: file.name })
}

/// The policy as the cluster will load it; whatever is wrong with it is an error.
fn load(args: &PackArgs, module: &[u8], settings: Option<&Settings>) -> Result<Policy> {
    let sandbox = sandbox::for_one(Limits::default())?;
    Examined::new(&args.file, module, &sandbox).check(&args.file)?;
    let policy = template(module, settings.map(|it| it.values.clone()), &sandbox);
    policy.map_err(|failure| match settings {
        Some(settings) => anyhow!("{}: {failure}", settings.name),
        None => anyhow!("{}: {failure}", shown(&args.file)),
    })
}

fn template(
    module: &[u8],
    settings: Option<Map<String, Value>>,
    sandbox: &Sandbox,
) -> Result<Policy> {
    let wishes = Wishes { packed: settings.unwrap_or_default(), ..Wishes::default() };
    let component = Cow::Owned(module.to_vec());
    let policy = Policy::new(component, None, Layer::Template, wishes, sandbox.limits())?;
    policy.check(sandbox).map_err(Clone::clone)?;
    Ok(policy)
}

/// Whether the API server takes so many bytes; what to make smaller is what has
/// the most of them.
fn check_fits(module: usize, settings: usize) -> Result<()> {
    const SMALLER_MODULE: &str = "Make the module smaller: opt-level = \"s\", lto = true, \
        codegen-units = 1, panic = \"abort\" and strip = true in [profile.release], and fewer \
        dependencies";
    const FEWER_SETTINGS: &str = "Write fewer or shorter settings";
    let bytes = module.saturating_add(settings);
    ensure!(
        bytes <= MOST_DATA,
        "the API server takes no ConfigMap with more than {} bytes of data, and this one would \
         have {} ({} of the module, {} of settings). Nothing was written. {}",
        thousands(MOST_DATA as u64),
        thousands(bytes as u64),
        thousands(module as u64),
        thousands(settings as u64),
        if settings > module { FEWER_SETTINGS } else { SMALLER_MODULE },
    );
    Ok(())
}

/// What was written has to be read as what was meant.
fn check_round_trip(manifest: &Manifest<'_>, yaml: &str) -> Result<()> {
    let input = Input { name: "the manifest", bytes: yaml.as_bytes() };
    let (entries, _) = manifest::entries(&input)?;
    let same = matches!(entries.as_slice(), [one] if one.bytes == manifest.module);
    ensure!(same, "the manifest does not hold the module as it is; this is a fault of tread");
    let settings = document_values(&input)?.pop().and_then(|document| {
        let settings = document.value.pointer("/data/settings")?;
        settings.as_str().map(str::to_owned)
    });
    ensure!(
        settings.as_deref() == manifest.settings,
        "the manifest does not hold the settings as they are: write them in plain ASCII"
    );
    Ok(())
}

/// A warning where `kubectl apply` by itself would fail.
fn too_large_to_apply(manifest: &Manifest<'_>, target: Option<&Path>) -> Option<String> {
    let bytes = manifest.applied_bytes();
    if bytes <= MOST_ANNOTATIONS {
        return None;
    }
    let file = target.map_or_else(|| "-".to_owned(), shown);
    Some(format!(
        "`kubectl apply -f {file}` would fail: it keeps a copy of the object in an annotation, \
         where {} bytes fit, and this needs {}. Use\n  \
         kubectl apply --server-side -f {file}\nor, the first time, `kubectl create -f {file}`, \
         and `kubectl replace -f {file}` from then on",
        thousands(MOST_ANNOTATIONS as u64),
        thousands(bytes as u64),
    ))
}

fn apply(manifest: &Manifest<'_>, file: &str) -> String {
    let fits = manifest.applied_bytes() <= MOST_ANNOTATIONS;
    format!("kubectl apply {}-f {file}", if fits { "" } else { "--server-side " })
}

const OF_A_PART: &str = "is lower-case letters, digits and -, with a letter or digit at both ends, such as \
    node-config";

fn namespace(text: &str) -> Result<String, String> {
    if text.len() > LONGEST_LABEL {
        return Err(format!("a namespace has {LONGEST_LABEL} characters at most"));
    }
    match is_label(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("a namespace {OF_A_PART}")),
    }
}

fn name(text: &str) -> Result<String, String> {
    if text.len() > LONGEST {
        return Err(format!("a name has {LONGEST} characters at most"));
    }
    match is_name(text) {
        true => Ok(text.to_owned()),
        false => {
            Err(format!("a name is made of parts with dots between them; each part {OF_A_PART}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_model::digest::Sha256;

    fn manifest(module: &[u8]) -> Manifest<'_> {
        Manifest {
            namespace: "ns",
            name: "chrony",
            version: "chrony 1.0.0".to_owned(),
            digest: Sha256::of(b""),
            claims: vec!["file:/etc/chrony.conf"],
            module,
            settings: None,
        }
    }

    #[test]
    fn names_are_those_that_the_api_server_takes() {
        let (long, longer) = ("a".repeat(63), "a".repeat(64));
        let dotted = format!("{0}.{0}.{0}.{1}", long, "b".repeat(61));
        for good in ["a", "0", "node-config", long.as_str()] {
            assert!(namespace(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a_b", "a.b", "a/b", "ü", "a b", longer.as_str()] {
            assert!(namespace(bad).is_err(), "{bad:?}");
        }
        assert_eq!(dotted.len(), LONGEST);
        for good in ["a", "a.b-c.0", longer.as_str(), dotted.as_str()] {
            assert!(name(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "a..b", "a.", "-a", "a.-b", "A", "../a", &format!("{dotted}c")] {
            assert!(name(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_the_api_server_takes_is_packed_to_the_last_byte() {
        assert!(check_fits(MOST_DATA, 0).is_ok());
        assert!(check_fits(1000, MOST_DATA - 1000).is_ok());
        for (module, settings, words) in [
            (MOST_DATA + 1, 0, ["1,048,576", "1,048,577", "opt-level"]),
            (MOST_DATA, 4, ["1,048,580", "4 of settings", "Make the module smaller"]),
            (60_000, 10_000_000, ["60,000 of the module", "10,000,000 of", "shorter settings"]),
        ] {
            let error = check_fits(module, settings).unwrap_err().to_string();
            for words in words {
                assert!(error.contains(words), "{words} in {error}");
            }
        }
    }

    #[test]
    fn a_warning_begins_where_the_annotation_is_full() {
        let most = (0..MOST_ANNOTATIONS)
            .rev()
            .step_by(3)
            .map(|length| vec![7; length * 3 / 4])
            .find(|module| manifest(module).applied_bytes() <= MOST_ANNOTATIONS)
            .unwrap();
        assert_eq!(too_large_to_apply(&manifest(&most), None), None);
        let more = [most.as_slice(), &[7; 3]].concat();
        let warning = too_large_to_apply(&manifest(&more), Some(Path::new("c.yaml"))).unwrap();
        for words in ["262,144", "kubectl apply --server-side -f c.yaml", "kubectl create"] {
            assert!(warning.contains(words), "{words} in {warning}");
        }
    }
}
