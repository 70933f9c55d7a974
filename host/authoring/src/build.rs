//! `tread policy build`: a policy's crate, or another compiler's module, as a
//! component.

mod module;
pub(crate) mod source;
mod toolchain;

use crate::in_cluster::warn_of_wide;
use anyhow::Result;
use serde_json::Map;
use source::Built;
use std::io::Write;
use std::path::PathBuf;
use tread_console::exit::Exit;
use tread_console::print::{line, warn};
use tread_engine::policy::complete_settings;
use tread_engine::sandbox::{Options, Sandbox};
use tread_loading::file;
use tread_model::verdict::Failure;

const EXAMPLES: &str = "\
Examples:
  tread policy build                     the crate in this directory
  tread policy build chrony -o chrony.wasm
  tread policy build --from module.wasm  what another compiler made, in any language

--from takes a core module that was built against wit/policy.wit (with
wit-bindgen, for example, or by hand: guest-sdk/OTHER_LANGUAGES.md), or a
component. Its description is written into it if it brings none, and it is
checked as it is when it is loaded.";

/// The arguments of `tread policy build`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct BuildArgs {
    /// The directory of the crate
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Make the policy of this core module or component instead; - for standard
    /// input
    #[arg(long, value_name = "FILE", conflicts_with = "dir")]
    pub from: Option<PathBuf>,
    /// Where to write the component [default: NAME.wasm in the directory; with
    /// --from, here]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Builds one policy, and says what came of it.
pub fn run(args: &BuildArgs, out: &mut impl Write) -> Result<Exit> {
    let output = args.output.as_deref();
    let built = match &args.from {
        Some(file) => module::build(file, output)?,
        None => source::build(&args.dir, output)?,
    };
    let description = &built.description;
    writeln!(out, "{} {}: {}", description.name, description.version, description.summary)?;
    for claim in &description.claims {
        writeln!(out, "  claims {} ({} to {})", claim.changes, claim.least, claim.most)?;
    }
    if built.declarations.needs_secrets {
        writeln!(out, "  needs to read secrets")?;
    }
    warn_of_wide(&description.claims);
    let imports = match built.imports.as_slice() {
        [] => "nothing".to_owned(),
        imports => imports.join(", "),
    };
    writeln!(out, "  imports {imports}")?;
    writeln!(out, "{}: {} bytes, {}", built.path.display(), built.size, built.digest)?;
    if let Some(failure) = refused_defaults(&built)? {
        warn(&format!(
            "it refuses its own default settings ({}), and fails wherever nobody sets others",
            line(&failure.message)
        ));
    }
    Ok(Exit::Done)
}

/// Why a policy does not take its default settings.
fn refused_defaults(built: &Built) -> Result<Option<Failure>> {
    if built.description.settings.is_none() {
        return Ok(None);
    }
    let defaults = match complete_settings(&built.description, &Map::new()) {
        Ok(defaults) => defaults,
        Err(failure) => return Ok(Some(failure)),
    };
    let bytes = file::read(&built.path)?;
    let sandbox = Sandbox::new(Options { slots: 1, ..Options::default() })?;
    let module = sandbox.load(&bytes, None)?;
    Ok(sandbox.check_settings(&module, &defaults).err())
}
