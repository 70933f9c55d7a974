//! What a policy writes for its author in one call.

use crate::limits::Limits;
use tread_model::text::one_line_within;

/// The lines of one call. As many as the limits allow are kept, and the others are
/// counted. The default keeps nothing.
#[derive(Debug, Default)]
pub(crate) struct GuestLog {
    lines: Vec<String>,
    /// What was put of a line that has not ended.
    begun: String,
    lines_left: usize,
    bytes_left: usize,
    dropped: usize,
    cut: bool,
}

impl GuestLog {
    pub(crate) fn new(limits: &Limits) -> GuestLog {
        GuestLog {
            lines: Vec::new(),
            begun: String::new(),
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

    /// Adds a character to the line that is being written.
    pub(crate) fn put(&mut self, character: char) {
        if character == '\n' {
            self.end_line();
        } else if self.begun.len() <= self.bytes_left {
            // Up to one character more than is kept, so that `push` sees that the line is too long.
            self.begun.push(character);
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.begun);
        self.push(&line);
    }

    /// Ends a line of which something was put.
    fn end_begun(&mut self) {
        if !self.begun.is_empty() {
            self.end_line();
        }
    }

    /// What was written last: in a panic, its text.
    pub(crate) fn last(&mut self) -> Option<&str> {
        self.end_begun();
        self.lines.last().map(String::as_str).filter(|line| !line.is_empty())
    }

    /// The lines, with a note if that is not all.
    pub(crate) fn into_lines(mut self) -> Vec<String> {
        self.end_begun();
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
    fn a_line_is_put_together_of_its_characters_and_ends_with_the_call() {
        let put = |text: &str| {
            let mut log = log(2, 10);
            text.chars().for_each(|it| log.put(it));
            log.into_lines()
        };
        assert_eq!(put("one\ntwo"), ["one", "two"]);
        assert_eq!(put("one\ntwo\n"), ["one", "two"]);
        assert_eq!(put("a\tb\u{1b}[1m"), ["a b [1m"]);
        assert_eq!(put("1234567890"), ["1234567890"]);
        assert_eq!(put("12345678901234567890"), ["1234567…", "(the log was cut here)"]);
        assert_eq!(put("1\n2\n3\n4"), ["1", "2", "(2 more lines were dropped)"]);
        assert_eq!(put(""), [""; 0]);
        let mut mixed = log(4, 100);
        mixed.put('a');
        assert_eq!(mixed.last(), Some("a"));
        mixed.put('b');
        mixed.push("c");
        assert_eq!(mixed.into_lines(), ["a", "c", "b"], "a line stands where it ended");
    }

    #[test]
    fn what_is_put_without_an_end_takes_no_more_memory_than_is_kept() {
        let mut log = log(2, 10);
        (0..100_000).for_each(|_| log.put('é'));
        assert!(log.begun.len() < 10 + 'é'.len_utf8() + 1, "{}", log.begun.len());
    }

    #[test]
    fn a_cut_without_dropped_lines_is_noted_too() {
        let mut log = log(16, 10);
        log.push("12345678901");
        assert_eq!(log.into_lines(), ["1234567…", "(the log was cut here)"]);
    }
}
