//! `tread policy unpack`: the module of a manifest, byte for byte.

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use tread_console::exit::{Exit, UsageError};
use tread_console::print::shown;
use tread_console::sentence::thousands;
use tread_console::{inputs, outputs};
use tread_loading::manifest::{self, Entry, check_digest};
use tread_model::object_name::is_name;
use tread_model::read::Input;

const EXAMPLES: &str = "\
Examples:
  tread policy unpack chrony.yaml
  tread policy unpack all.yaml --name chrony -o chrony.wasm
  kubectl -n node-config get configmap chrony -o yaml | tread policy unpack - -o chrony.wasm";

/// The arguments of `tread policy unpack`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct UnpackArgs {
    /// YAML or JSON with a ConfigMap, among other objects too; - for standard input
    pub manifest: PathBuf,
    /// Where to write the module; - for standard output [default: the
    /// ConfigMap's name and .wasm, unless that is another file]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The key of binaryData [default: the one that a cluster loads, or the
    /// only one with a module]
    #[arg(long)]
    pub key: Option<String>,
    /// The ConfigMap, where there are several
    #[arg(long)]
    pub name: Option<String>,
    /// Its namespace, where there are several of that name
    #[arg(short, long)]
    pub namespace: Option<String>,
}

/// Writes the module, and says what it is.
pub fn run(args: &UnpackArgs, out: &mut impl Write) -> Result<Exit> {
    let path = &args.manifest;
    ensure!(!path.is_dir(), "{} is a directory: name the manifest in it", shown(path));
    let files = inputs::read(path)?.files;
    let Some(file) = files.first() else { bail!("{} cannot be read", shown(path)) };
    ensure!(!is_blank(&file.bytes), "{} holds nothing: expected a ConfigMap", file.name);
    let (entries, kinds) = manifest::entries(&Input { name: &file.name, bytes: &file.bytes })?;
    let entry = choose(&file.name, entries, &kinds, args)?;
    let digest =
        check_digest(&file.name, &entry).map_err(|why| anyhow!("{why}. Nothing was written"))?;
    let target = match &args.output {
        Some(path) => path.clone(),
        None => default_target(&entry)?,
    };
    if target.as_os_str() == "-" {
        let terminal = io::stdout().is_terminal();
        ensure!(!terminal, "a module is no text: name a file with -o, or use a pipe");
        out.write_all(&entry.bytes)?;
        return Ok(Exit::Done);
    }
    let to = shown(&target);
    if outputs::is_same(path, &target) {
        let message =
            format!("-o {to}: the module would be written over the manifest: name another file");
        return Err(UsageError(message).into());
    }
    outputs::write(&target, &entry.bytes)
        .with_context(|| format!("the module cannot be written to {to}"))?;
    writeln!(out, "{to}: {} bytes, {digest}", thousands(entry.bytes.len() as u64))?;
    let checked = if entry.digest.is_some() { "as its annotation says" } else { "not annotated" };
    writeln!(out, "  from {}; its digest is {checked}", entry.place())?;
    Ok(Exit::Done)
}

/// Whether there are only comments, and lines that separate documents.
fn is_blank(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.all(|line| line.is_empty() || line == b"---" || line.starts_with(b"#"))
}

/// The one entry that is meant; an error lists what there is.
fn choose(file: &str, entries: Vec<Entry>, kinds: &[String], args: &UnpackArgs) -> Result<Entry> {
    let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|it| it == found);
    let meant = |entry: &Entry| {
        let holds = match &args.key {
            // A key that is named may hold anything.
            Some(key) => *key == entry.key,
            None => entry.is_wasm() && entry.is_meant(),
        };
        holds && is(&args.name, &entry.name) && is(&args.namespace, &entry.namespace)
    };
    let all: Vec<String> = entries.iter().map(listed).collect();
    let mut found: Vec<Entry> = entries.into_iter().filter(meant).collect();
    if found.len() > 1 {
        let several: Vec<String> = found.iter().map(listed).collect();
        bail!(
            "{file} holds {} modules: say which one with --key, --name and --namespace\n{}",
            several.len(),
            several.join("\n")
        );
    }
    match found.pop() {
        Some(entry) => Ok(entry),
        None if all.is_empty() => bail!(
            "{file} holds no ConfigMap with binaryData, but: {}. \
             `tread policy pack` writes such a manifest",
            kinds.join(", ")
        ),
        None => bail!("{file} holds no module that fits. It holds\n{}", all.join("\n")),
    }
}

fn listed(entry: &Entry) -> String {
    let what = if entry.is_wasm() { "WebAssembly" } else { "no WebAssembly" };
    let named = if entry.is_named() { ", named as the module" } else { "" };
    format!("  {}: {} bytes, {what}{named}", entry.place(), thousands(entry.bytes.len() as u64))
}

/// A file named like the ConfigMap, as long as that loses nothing.
fn default_target(entry: &Entry) -> Result<PathBuf> {
    ensure!(
        is_name(&entry.name),
        "the ConfigMap's name {:?} gives no name for a file: name one with -o",
        entry.name
    );
    let target = Path::new(&format!("{}.wasm", entry.name)).to_owned();
    // A link is there too, also one that leads to nothing yet.
    if target.symlink_metadata().is_ok() {
        let same = inputs::read_found(&target).is_ok_and(|found| found.bytes == entry.bytes);
        ensure!(
            same,
            "{} is there already, and is another file: name it with -o to write over it",
            shown(&target)
        );
    }
    Ok(target)
}
