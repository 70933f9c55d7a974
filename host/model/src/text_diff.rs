//! A readable difference of two texts, for people.

use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

/// The largest text that is compared.
pub const MAX_BYTES: usize = 1 << 20;

/// Lines of both sides together that are compared, not counting those that
/// start or end both sides alike.
pub const MAX_LINES: usize = 4_000;

/// A line of the difference, without its line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// The same on both sides.
    Context(String),
    /// Only in the text before.
    Removed(String),
    /// Only in the text after.
    Added(String),
    /// Equal lines are left out here.
    Gap,
    /// The texts are too large to compare line by line.
    TooLong {
        /// Lines before.
        before: usize,
        /// Lines after.
        after: usize,
    },
}

/// The lines in which two texts differ, each with up to `context` equal lines
/// around it. Empty if they do not differ.
pub fn line_diff(before: &str, after: &str, context: usize) -> Vec<Line> {
    if before == after {
        return Vec::new();
    }
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let too_long = Line::TooLong { before: old.len(), after: new.len() };
    if before.len().max(after.len()) > MAX_BYTES {
        return vec![too_long];
    }

    let alike = |a: &(&&str, &&str)| a.0 == a.1;
    let start = old.iter().zip(&new).take_while(alike).count();
    let shorter = old.len().min(new.len());
    let end =
        old.iter().rev().zip(new.iter().rev()).take(shorter - start).take_while(alike).count();
    // The comparison takes quadratic time where everything differs.
    if old.len() + new.len() - 2 * (start + end) > MAX_LINES {
        return vec![too_long];
    }

    let groups = group_diff_ops(capture_diff_slices(Algorithm::Myers, &old, &new), context);
    let last_old = groups.last().and_then(|group| group.last()).map(|op| op.old_range().end);
    let mut lines = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let starts_late = group.first().is_some_and(|op| op.old_range().start > 0);
        if index > 0 || starts_late {
            lines.push(Line::Gap);
        }
        for op in group {
            push(op, &old, &new, &mut lines);
        }
    }
    if last_old.is_some_and(|end| end < old.len()) {
        lines.push(Line::Gap);
    }
    lines
}

fn push(op: &DiffOp, old: &[&str], new: &[&str], lines: &mut Vec<Line>) {
    let removed = old.get(op.old_range()).unwrap_or_default();
    let added = new.get(op.new_range()).unwrap_or_default();
    match op {
        DiffOp::Equal { .. } => lines.extend(removed.iter().map(|l| Line::Context(shown(l)))),
        _ => {
            lines.extend(removed.iter().map(|l| Line::Removed(shown(l))));
            lines.extend(added.iter().map(|l| Line::Added(shown(l))));
        }
    }
}

/// A last line without its line break differs from one with it, so it says so.
fn shown(line: &str) -> String {
    match line.strip_suffix('\n') {
        Some(line) => line.to_owned(),
        None => format!("{line} (no line break at the end)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: &str, after: &str, context: usize) -> String {
        let line = |line: Line| match line {
            Line::Context(text) => format!(" {text}\n"),
            Line::Removed(text) => format!("-{text}\n"),
            Line::Added(text) => format!("+{text}\n"),
            Line::Gap => "~\n".to_owned(),
            Line::TooLong { before, after } => format!("{before} to {after}\n"),
        };
        line_diff(before, after, context).into_iter().map(line).collect()
    }

    #[test]
    fn texts_that_are_equal_have_no_lines() {
        assert_eq!(shown("a\nb\n", "a\nb\n", 3), "");
    }

    #[test]
    fn a_changed_line_stands_between_its_neighbours() {
        let before = "1\n2\n3\n4\n5\n6\n7\n";
        assert_eq!(shown(before, "1\n2\n3\nx\n5\n6\n7\n", 1), "~\n 3\n-4\n+x\n 5\n~\n");
        assert_eq!(shown(before, "1\n2\n3\nx\n5\n6\n7\n", 9), " 1\n 2\n 3\n-4\n+x\n 5\n 6\n 7\n");
    }

    #[test]
    fn far_changes_are_apart_and_near_ones_are_not() {
        let before = "1\n2\n3\n4\n5\n6\n";
        assert_eq!(shown(before, "x\n2\n3\n4\n5\ny\n", 1), "-1\n+x\n 2\n~\n 5\n-6\n+y\n");
        assert_eq!(shown(before, "1\nx\n3\ny\n5\n6\n", 1), " 1\n-2\n+x\n 3\n-4\n+y\n 5\n~\n");
    }

    #[test]
    fn a_text_that_comes_or_goes_is_all_added_or_removed() {
        assert_eq!(shown("", "a\nb\n", 3), "+a\n+b\n");
        assert_eq!(shown("a\nb\n", "", 3), "-a\n-b\n");
    }

    #[test]
    fn a_missing_line_break_at_the_end_is_visible() {
        assert_eq!(shown("a\nb", "a\nb\n", 0), "~\n-b (no line break at the end)\n+b\n");
    }

    #[test]
    fn texts_that_are_too_long_are_only_counted() {
        let line = "x".repeat(99) + "\n";
        let large = line.repeat(MAX_BYTES / 100 + 1);
        assert_eq!(shown(&large, "", 3), format!("{} to 0\n", MAX_BYTES / 100 + 1));
        let many =
            |from: usize| (from..from + MAX_LINES).map(|n| format!("{n}\n")).collect::<String>();
        assert_eq!(shown(&many(0), &many(MAX_LINES), 3), "4000 to 4000\n");
    }

    #[test]
    fn a_small_change_in_many_lines_is_still_shown() {
        let many: String = (0..20_000).map(|n| format!("{n}\n")).collect();
        let after = many.replace("\n777\n", "\nx\n");
        assert_eq!(shown(&many, &after, 0), "~\n-777\n+x\n~\n");
    }
}
