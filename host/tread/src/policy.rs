//! `tread policy …`

pub mod bench;
pub mod build;
mod explain;
mod from;
pub(crate) mod in_cluster;
pub mod inspect;
pub(crate) mod manifest;
pub mod new;
pub mod pack;
pub mod prebuilt;
mod questions;
pub mod rules;
pub mod test;
mod toolchain;
pub mod unpack;
pub(crate) mod what;

use crate::Exit;
use anyhow::Result;
use serde_json::Map;
use std::io::{self, Write};
use std::path::Path;
use tread_engine::compile;
use tread_engine::limits::Limits;
use tread_engine::policy::complete_settings;
use tread_engine::sandbox::{Options, Sandbox};
use tread_model::verdict::Failure;

/// Builds one policy, and says what came of it.
pub fn run_build(
    dir: &Path,
    from: Option<&Path>,
    output: Option<&Path>,
    out: &mut impl Write,
) -> Result<Exit> {
    let built = match from {
        Some(file) => from::build(file, output)?,
        None => build::build(dir, output)?,
    };
    let description = &built.description;
    writeln!(out, "{} {}: {}", description.name, description.version, description.summary)?;
    for claim in &description.claims {
        writeln!(out, "  claims {} ({} to {})", claim.changes, claim.least, claim.most)?;
    }
    if built.declarations.needs_secrets {
        writeln!(out, "  needs to read secrets")?;
    }
    in_cluster::warn_of_wide(&description.claims)?;
    let imports = match built.imports.as_slice() {
        [] => "nothing".to_owned(),
        imports => imports.join(", "),
    };
    writeln!(out, "  imports {imports}")?;
    writeln!(out, "{}: {} bytes, {}", built.path.display(), built.size, built.digest)?;
    if let Some(failure) = refused_defaults(&built)? {
        writeln!(
            io::stderr(),
            "warning: it refuses its own default settings ({}), and fails wherever nobody sets \
             others",
            failure.message
        )?;
    }
    Ok(Exit::Done)
}

/// Why a policy does not take its default settings.
fn refused_defaults(built: &build::Built) -> Result<Option<Failure>> {
    if built.description.settings.is_none() {
        return Ok(None);
    }
    let defaults = match complete_settings(&built.description, &Map::new()) {
        Ok(defaults) => defaults,
        Err(failure) => return Ok(Some(failure)),
    };
    let bytes = inspect::read(&built.path)?;
    let sandbox = Sandbox::new(Options { slots: 1, ..Options::default() })?;
    let module = sandbox.load(&bytes, None)?;
    Ok(sandbox.check_settings(&module, &defaults).err())
}

/// Builds the built-in policies of a source tree again, or checks them.
pub fn run_prebuilt(
    tree: &Path,
    check: bool,
    into: Option<&Path>,
    out: &mut impl Write,
) -> Result<Exit> {
    if check {
        let count = prebuilt::check(tree)?;
        writeln!(out, "{count} built-in policies are what their source gives")?;
        return Ok(Exit::Done);
    }
    let mut lines = Vec::new();
    prebuilt::refresh(tree, into, |built| {
        let changed = if built.changed { "changed" } else { "as before" };
        lines.push(format!("{:<20} {:>7} bytes, {changed}", built.name, built.size));
    })?;
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    Ok(Exit::Done)
}

/// The other side of compiling in a process of its own.
pub fn run_compile_module() -> Result<Exit> {
    compile::serve(&Limits::default())?;
    Ok(Exit::Done)
}
