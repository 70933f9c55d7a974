//! What a policy writes for its author in one call.

use crate::limits::Limits;
use tread_model::text::one_line_within;

/// The lines of one call. As many as the limits allow are kept, and the others are
/// counted. The default keeps nothing.
#[derive(Debug, Default)]
pub(crate) struct GuestLog {
    lines: Vec<String>,
    lines_left: usize,
    bytes_left: usize,
    dropped: usize,
    cut: bool,
}

impl GuestLog {
    pub(crate) fn new(limits: &Limits) -> GuestLog {
        GuestLog {
            lines: Vec::new(),
            lines_left: limits.log_lines,
            bytes_left: limits.log_bytes,
            dropped: 0,
            cut: false,
        }
    }

    /// Whether another line would be dropped.
    pub(crate) fn is_full(&self) -> bool {
        self.lines_left == 0 || self.bytes_left == 0
    }

    /// Drops a line unread.
    pub(crate) fn drop_line(&mut self) {
        self.dropped += 1;
    }

    pub(crate) fn push(&mut self, line: &str) {
        if self.is_full() {
            return self.drop_line();
        }
        let (kept, cut) = one_line_within(line, self.bytes_left);
        self.cut |= cut;
        self.lines_left -= 1;
        self.bytes_left = if cut { 0 } else { self.bytes_left.saturating_sub(kept.len()) };
        self.lines.push(kept);
    }

    /// What was written last: in a panic, its text.
    pub(crate) fn last(&self) -> Option<&str> {
        self.lines.last().map(String::as_str).filter(|line| !line.is_empty())
    }

    /// The lines, with a note if that is not all.
    pub(crate) fn into_lines(mut self) -> Vec<String> {
        match (self.dropped, self.cut) {
            (0, false) => {}
            (0, true) => self.lines.push("(the log was cut here)".to_owned()),
            (more, _) => self.lines.push(format!("({more} more lines were dropped)")),
        }
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(lines: usize, bytes: usize) -> GuestLog {
        GuestLog::new(&Limits { log_lines: lines, log_bytes: bytes, ..Limits::default() })
    }

    #[test]
    fn lines_beyond_the_limit_are_counted() {
        let mut log = log(2, 100);
        for line in ["one", "two", "three", "four"] {
            log.push(line);
        }
        assert_eq!(log.last(), Some("two"));
        assert_eq!(log.into_lines(), ["one", "two", "(2 more lines were dropped)"]);
    }

    #[test]
    fn bytes_beyond_the_limit_are_cut() {
        let mut log = log(16, 10);
        log.push("12345");
        log.push("1234567890");
        assert!(log.is_full());
        log.push("more");
        assert_eq!(log.into_lines(), ["12345", "12…", "(1 more lines were dropped)"]);
    }

    #[test]
    fn a_cut_without_dropped_lines_is_noted_too() {
        let mut log = log(16, 10);
        log.push("12345678901");
        assert_eq!(log.into_lines(), ["1234567…", "(the log was cut here)"]);
    }
}
