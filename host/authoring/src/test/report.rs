//! The results: for a person, and for machines.

use anyhow::Result;
use serde::Serialize;
use std::io::Write;
use tread_console::print::{json, line};
use tread_model::digest::Sha256;

/// What came of everything.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) policy: String,
    pub(super) version: String,
    pub(super) digest: Sha256,
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) updated: usize,
    /// Loading the policy.
    pub(super) load_nanos: u64,
    /// All cases, without loading and properties.
    pub(super) cases_nanos: u64,
    pub(super) results: Vec<Row>,
}

/// A case or a property.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    /// The file of the case; of a property, `properties`.
    pub(super) file: String,
    pub(super) title: String,
    pub(super) outcome: Outcome,
    /// Where it is not as expected, in lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) problems: Vec<String>,
    /// Of an expectation that was rewritten: what its author should know, in lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    Passed,
    Failed,
    /// Its expectation was rewritten.
    Updated,
}

/// How to print the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// For a person
    Human,
    /// For a script
    Json,
    /// JUnit's XML, for a pipeline
    Junit,
}

impl Report {
    /// Counts the results.
    pub(super) fn counted(mut self) -> Report {
        let count = |wanted: Outcome| self.results.iter().filter(|it| it.outcome == wanted).count();
        let (passed, failed) = (count(Outcome::Passed), count(Outcome::Failed));
        let updated = count(Outcome::Updated);
        (self.passed, self.failed, self.updated) = (passed, failed, updated);
        self
    }

    pub(super) fn print(&self, output: Output, out: &mut impl Write) -> Result<()> {
        match output {
            Output::Human => self.human(out),
            Output::Json => json(out, self),
            Output::Junit => self.junit(out),
        }
    }

    fn human(&self, out: &mut impl Write) -> Result<()> {
        for Row { file, title, outcome, problems, notes } in &self.results {
            let word = match outcome {
                Outcome::Passed => "ok     ",
                Outcome::Failed => "FAILED ",
                Outcome::Updated => "updated",
            };
            writeln!(out, "{word} {}: {}", line(file), line(title))?;
            for problem in problems {
                writeln!(out, "          {}", line(problem))?;
            }
            for note in notes {
                writeln!(out, "          note: {}", line(note))?;
            }
        }
        writeln!(out)?;
        if self.updated > 0 {
            writeln!(out, "{} updated: read what is expected now", self.updated)?;
        }
        writeln!(out, "{} passed, {} failed", self.passed + self.updated, self.failed)?;
        Ok(())
    }

    fn junit(&self, out: &mut impl Write) -> Result<()> {
        let counts = format!("tests=\"{}\" failures=\"{}\"", self.results.len(), self.failed);
        writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        writeln!(out, "<testsuites {counts}>")?;
        writeln!(out, "  <testsuite name=\"{}\" {counts} errors=\"0\">", xml(&self.policy))?;
        for row in &self.results {
            let (class, name) = (xml(&row.file), xml(&row.title));
            write!(out, "    <testcase classname=\"{class}\" name=\"{name}\"")?;
            match row.outcome {
                Outcome::Failed => {
                    let first = row.problems.first().map_or("", String::as_str);
                    let all = row.problems.join("\n");
                    writeln!(out, ">")?;
                    writeln!(
                        out,
                        "      <failure message=\"{}\">{}</failure>",
                        xml(first),
                        xml(&all)
                    )?;
                    writeln!(out, "    </testcase>")?;
                }
                Outcome::Passed | Outcome::Updated => writeln!(out, "/>")?,
            }
        }
        writeln!(out, "  </testsuite>\n</testsuites>")?;
        Ok(())
    }
}

/// Text for XML; what XML 1.0 cannot hold becomes U+FFFD.
fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' | '\r' => escaped.push_str(&format!("&#{};", u32::from(c))),
            c if c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let row = |title: &str, outcome, problems: &[&str]| Row {
            file: "cases/a.yaml".to_owned(),
            title: title.to_owned(),
            outcome,
            problems: problems.iter().map(|it| (*it).to_owned()).collect(),
            notes: Vec::new(),
        };
        let updated = row("new", Outcome::Updated, &["nothing is expected yet"]);
        let results = vec![
            row("fine", Outcome::Passed, &[]),
            row("a < b & \"c\"", Outcome::Failed, &["x: asked for <y>", "\u{1}second"]),
            Row { notes: vec!["x: look at it".to_owned()], ..updated },
        ];
        Report {
            policy: "chrony".to_owned(),
            version: "1.0.0".to_owned(),
            digest: Sha256::of(b""),
            passed: 0,
            failed: 0,
            updated: 0,
            load_nanos: 1,
            cases_nanos: 2,
            results,
        }
        .counted()
    }

    fn printed(output: Output) -> String {
        let mut out = Vec::new();
        report().print(output, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_person_reads_a_line_for_each_and_the_counts_last() {
        let text = printed(Output::Human);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "ok      cases/a.yaml: fine");
        assert_eq!(lines[1], "FAILED  cases/a.yaml: a < b & \"c\"");
        assert_eq!(lines[2].trim(), "x: asked for <y>");
        assert_eq!(lines[6].trim(), "note: x: look at it");
        assert_eq!(lines.last(), Some(&"2 passed, 1 failed"));
    }

    #[test]
    fn json_has_the_counts_and_every_result() {
        let json: serde_json::Value = serde_json::from_str(&printed(Output::Json)).unwrap();
        assert_eq!((&json["passed"], &json["failed"]), (&1.into(), &1.into()));
        assert_eq!(json["results"][1]["outcome"], "failed");
        assert_eq!(json["results"][1]["problems"][0], "x: asked for <y>");
        assert_eq!(json["results"][1].get("notes"), None);
        assert_eq!(json["results"][2]["notes"][0], "x: look at it");
    }

    #[test]
    fn junit_escapes_what_xml_would_misread() {
        let text = printed(Output::Junit);
        assert!(text.contains("<testsuite name=\"chrony\" tests=\"3\" failures=\"1\""), "{text}");
        assert!(text.contains("name=\"a &lt; b &amp; &quot;c&quot;\""), "{text}");
        assert!(text.contains("message=\"x: asked for &lt;y&gt;\""), "{text}");
        assert!(text.contains("&#10;\u{fffd}second</failure>"), "{text}");
        assert_eq!(text.matches("<testcase").count(), 3);
    }
}
