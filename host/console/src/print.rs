//! Output: for a person, and for a script.

use anyhow::{Context as _, Result};
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;
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

/// A path in a message: one line, whoever named the file.
pub fn shown(path: &Path) -> String {
    line(&path.display().to_string())
}

fn text_of(error: &anyhow::Error) -> String {
    match error.downcast_ref::<Problems>() {
        // A key that is wrong may have any characters, line breaks too.
        Some(Problems(problems)) if problems.len() > 1 => {
            let lines = problems.iter().map(|it| format!("\n  {}", line(&it.to_string())));
            format!("error: {} problems{}", problems.len(), lines.collect::<String>())
        }
        Some(_) => line(&format!("error: {error:#}")),
        None => format!("error: {error:#}"),
    }
}

/// Tells an admin something beside the output.
pub fn warn(message: &str) {
    // What a path or a config says must not drive the terminal.
    let _ = writeln!(io::stderr(), "warning: {}", fit(message));
}

/// Tells a line beside the output, which is no warning.
pub fn beside(text: &str) {
    let _ = writeln!(io::stderr(), "{}", line(text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_model::problem::Problem;

    #[test]
    fn each_problem_is_one_line_whatever_it_quotes() {
        let problem = || Problem {
            file: "a.yaml".to_owned(),
            message: "unknown field `x\nerror: forged`".to_owned(),
            ..Problem::default()
        };
        let said = "a.yaml: unknown field `x\u{fffd}error: forged`";
        let of = |problems| error(&anyhow::Error::from(Problems(problems)));
        assert_eq!(of(vec![problem()]), format!("error: {said}"));
        let two = of(vec![problem(), problem()]);
        assert_eq!(two, format!("error: 2 problems\n  {said}\n  {said}"));
        let within = anyhow::Error::from(Problems(vec![problem()])).context("settings");
        assert_eq!(error(&within), format!("error: settings: {said}"));
    }

    #[test]
    fn a_path_is_one_line() {
        assert_eq!(shown(Path::new("a\nwarning: forged.yaml")), "a\u{fffd}warning: forged.yaml");
    }
}
