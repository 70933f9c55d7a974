//! Output: for a person, and for a script.

use anyhow::{Context as _, Result};
use serde::Serialize;
use std::io::{self, Write};
use tread_model::problem::Problems;
use tread_model::text::is_unfit;

/// One JSON document and a line break.
pub fn json(out: &mut impl Write, value: &impl Serialize) -> Result<()> {
    // As an I/O error it can be told apart from others.
    serde_json::to_writer_pretty(&mut *out, value).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

/// One YAML document, which ends with a line break.
pub fn yaml(out: &mut impl Write, value: &impl Serialize) -> Result<()> {
    let text = serde_saphyr::to_string(value).context("cannot write YAML")?;
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        writeln!(out)?;
    }
    Ok(())
}

/// An error with its causes, each problem of several on a line of its own.
pub fn error(error: &anyhow::Error) -> String {
    // It may name what stands in a file.
    fit(&text_of(error))
}

/// Lines in which nothing drives the terminal.
pub fn fit(text: &str) -> String {
    let fit = |c: char| if is_unfit(c) && c != '\n' { '\u{fffd}' } else { c };
    text.chars().map(fit).collect()
}

/// One line in which nothing drives the terminal, nor passes for another line.
pub fn line(text: &str) -> String {
    text.chars().map(|c| if is_unfit(c) { '\u{fffd}' } else { c }).collect()
}

fn text_of(error: &anyhow::Error) -> String {
    match error.downcast_ref::<Problems>() {
        Some(Problems(problems)) if problems.len() > 1 => {
            format!("error: {} problems\n{}", problems.len(), indented(&error.to_string()))
        }
        _ => format!("error: {error:#}"),
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// Tells an admin something beside the output.
pub fn warn(message: &str) {
    // What a path or a config says must not drive the terminal.
    let _ = writeln!(io::stderr(), "warning: {}", fit(message));
}
