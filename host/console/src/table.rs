//! Columns that line up.

use crate::print::line;
use std::io::{self, Write};
use tread_model::text::shortened;

/// A cell ends after this many characters: as many as a path on a node has at most. Whoever needs
/// more asks for JSON.
const LONGEST_CELL: usize = 4096;

/// A row of heads, and the rows under it.
pub fn with_heads(heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Vec<Vec<String>> {
    let heads = heads.iter().map(|head| (*head).to_owned()).collect();
    std::iter::once(heads).chain(rows).collect()
}

/// Prints rows of cells, each column as wide as its widest cell. Cells may hold
/// strangers' words, however long.
pub fn print(out: &mut impl Write, rows: &[Vec<String>]) -> io::Result<()> {
    let fit = |cell: &String| shortened(&line(cell), LONGEST_CELL);
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(fit).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            // A width in a format may be 65,535 at most, and panics beyond.
            let blanks = width.saturating_sub(cell.chars().count()).saturating_add(3);
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', blanks));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(rows: &[Vec<String>]) -> String {
        let mut out = Vec::new();
        print(&mut out, rows).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_line_up_and_lines_have_no_trailing_blanks() {
        let rows =
            with_heads(&["A", "B"], [vec!["long".into(), "x".into()], vec!["".into(), "".into()]]);
        assert_eq!(printed(&rows), "A      B\nlong   x\n\n");
    }

    #[test]
    fn a_cell_of_any_length_is_printed_and_cut_where_nobody_reads_on() {
        let rows = with_heads(&["A", "B"], [vec!["ä".repeat(70_000), "x".into()]]);
        let cut = format!("{}…", "ä".repeat(4096));
        assert_eq!(printed(&rows), format!("A{}B\n{cut}   x\n", " ".repeat(4099)));
        let whole = with_heads(&[], [vec!["ä".repeat(4096), "x".into()]]);
        assert_eq!(printed(&whole), format!("\n{}   x\n", "ä".repeat(4096)));
    }
}
