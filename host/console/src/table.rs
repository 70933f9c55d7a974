//! Columns that line up.

use crate::print::line;
use std::io::{self, Write};

/// A row of heads, and the rows under it.
pub fn with_heads(heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Vec<Vec<String>> {
    let heads = heads.iter().map(|head| (*head).to_owned()).collect();
    std::iter::once(heads).chain(rows).collect()
}

/// Prints rows of cells, each column as wide as its widest cell. Cells may hold
/// strangers' words.
pub fn print(out: &mut impl Write, rows: &[Vec<String>]) -> io::Result<()> {
    let fit = |row: &Vec<String>| row.iter().map(|cell| line(cell)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(fit).collect();
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
            line.push_str(&format!("{cell:width$}   "));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_have_no_trailing_blanks() {
        let rows =
            with_heads(&["A", "B"], [vec!["long".into(), "x".into()], vec!["".into(), "".into()]]);
        let mut out = Vec::new();
        print(&mut out, &rows).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "A      B\nlong   x\n\n");
    }
}
