//! Nodes as they change: on a terminal a table that stays, elsewhere a line for each change.

use super::row::{HEADS, Row};
use crate::render::output::ListOutput;
use anyhow::Result;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Write};
use terminal_size::{Height, Width, terminal_size};
use tread_console::print::line;
use tread_console::table;
use tread_model::text::shortened;

/// Clears the screen, and begins at its top.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";
/// Where the terminal does not say.
const SIZE: (usize, usize) = (80, 24);

/// What was shown last.
pub(super) struct View {
    output: ListOutput,
    is_terminal: bool,
    shown: BTreeMap<String, Row>,
    /// Whether heads were printed.
    is_begun: bool,
}

impl View {
    pub(super) fn new(output: ListOutput) -> View {
        let is_terminal = io::stdout().is_terminal();
        View { output, is_terminal, shown: BTreeMap::new(), is_begun: false }
    }

    /// Shows what is there now.
    pub(super) fn show(&mut self, out: &mut impl Write, rows: Vec<Row>) -> Result<()> {
        match self.output {
            ListOutput::Human | ListOutput::Wide if self.is_terminal => {
                let size = terminal_size();
                let size = size.map(|(Width(w), Height(h))| (w.into(), h.into())).unwrap_or(SIZE);
                write!(out, "{CLEAR}{}", screen(rows, size)?)?;
            }
            _ => self.lines(out, rows)?,
        }
        out.flush()?;
        Ok(())
    }

    /// A line for each node that changed.
    fn lines(&mut self, out: &mut impl Write, rows: Vec<Row>) -> Result<()> {
        let is_human = matches!(self.output, ListOutput::Human | ListOutput::Wide);
        let rows: BTreeMap<String, Row> =
            rows.into_iter().map(|row| (row.node.clone(), row)).collect();
        let changed: Vec<&Row> =
            rows.values().filter(|row| self.shown.get(&row.node) != Some(*row)).collect();
        if is_human && !self.is_begun {
            table::print(out, &table::with_heads(&HEADS, changed.iter().map(|row| row.cells())))?;
        } else {
            for row in changed {
                match self.output {
                    ListOutput::Json => writeln!(out, "{}", serde_json::to_string(row)?)?,
                    ListOutput::Yaml => write!(out, "---\n{}", serde_saphyr::to_string(row)?)?,
                    _ => writeln!(out, "{}", line(&row.cells().join("   ")))?,
                }
            }
        }
        for gone in self.shown.keys().filter(|node| !rows.contains_key(*node)) {
            match self.output {
                ListOutput::Human | ListOutput::Wide => writeln!(out, "{} is gone", line(gone))?,
                ListOutput::Json => writeln!(out, "{}", serde_json::json!({"gone": gone}))?,
                ListOutput::Yaml => writeln!(out, "---\ngone: {}", serde_json::json!(gone))?,
            }
        }
        self.is_begun = true;
        self.shown = rows;
        Ok(())
    }
}

/// As much as fits, those first that are under way.
fn screen(mut rows: Vec<Row>, (width, height): (usize, usize)) -> Result<String> {
    rows.sort_by_key(Row::rank);
    let under_way = rows.iter().filter(|row| row.rank() == 0).count();
    let waiting = rows.iter().filter(|row| row.rank() == 1).count();
    let mut text = Vec::new();
    let most = height.saturating_sub(4).max(1);
    let cells = rows.iter().take(most).map(Row::cells);
    table::print(&mut text, &table::with_heads(&HEADS, cells))?;
    let said = format!("{} nodes: {under_way} under way, {waiting} not yet", rows.len());
    let more = match rows.len().saturating_sub(most) {
        0 => String::new(),
        more => format!("; {more} more are not shown"),
    };
    let text = String::from_utf8_lossy(&text);
    let said = format!("{said}{more}");
    let lines = text.lines().chain(["", &said]);
    // What is longer would go on in the next line.
    let lines = lines.map(|line| shortened(line, width.saturating_sub(1)));
    Ok(lines.collect::<Vec<_>>().join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(node: &str, config: &str, is_under_way: bool) -> Row {
        let row = serde_json::json!({"node": node, "pool": "worker", "config": config,
            "wanted": "new", "isUnderWay": is_under_way});
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn a_screen_shows_first_what_is_under_way_and_how_many_are_not_shown() {
        let mut rows: Vec<Row> =
            (0..50).map(|it| row(&format!("done-{it}"), "new", false)).collect();
        rows.push(row("waits", "old", false));
        rows.push(row("busy", "old", true));
        let screen = screen(rows, (40, 10)).unwrap();
        let lines: Vec<&str> = screen.lines().collect();
        assert!(lines[1].starts_with("busy ") && lines[2].starts_with("waits "), "{screen}");
        assert_eq!(lines.len(), 9, "{screen}");
        assert!(lines.iter().all(|line| line.chars().count() <= 40), "{screen}");
        assert!(lines[8].starts_with("52 nodes: 1 under way, 1 not yet; 46 mo"), "{screen}");
    }

    #[test]
    fn where_nobody_looks_each_change_is_a_line_and_nothing_else_is() {
        let mut view = View { is_terminal: false, ..View::new(ListOutput::Human) };
        let mut shown = |rows: Vec<Row>| {
            let mut out = Vec::new();
            view.show(&mut out, rows).unwrap();
            String::from_utf8(out).unwrap()
        };
        let first = shown(vec![row("a", "old", false), row("b", "old", false)]);
        assert_eq!(first.lines().count(), 3, "{first}");
        assert_eq!(shown(vec![row("a", "old", false), row("b", "old", false)]), "");
        let changed = shown(vec![row("a", "new", false), row("b", "old", false)]);
        assert_eq!(changed, "a   worker   -   -   new   new   -   -   -\n");
        assert_eq!(shown(vec![row("a", "new", false)]), "b is gone\n");
    }
}
