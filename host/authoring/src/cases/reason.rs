//! What a case expects of a reason.

use anyhow::{Result, ensure};

/// What a reason says: `/a pattern/`, or words that stand in it.
#[derive(Debug, Clone)]
pub struct Reason {
    /// As the case has it.
    pub(crate) written: String,
    pattern: Option<regex_lite::Regex>,
}

impl Reason {
    pub(super) fn new(written: String) -> Result<Reason> {
        ensure!(!written.is_empty(), "expected a /pattern/ or words");
        let pattern = written.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        let pattern = pattern.map(|it| regex_lite::Regex::new(&format!("(?i){it}"))).transpose()?;
        Ok(Reason { written, pattern })
    }

    /// Whether a reason says it; upper and lower case do not matter in a pattern.
    pub fn matches(&self, reason: &str) -> bool {
        match &self.pattern {
            Some(pattern) => pattern.is_match(reason),
            None => reason.contains(&self.written),
        }
    }
}

impl PartialEq for Reason {
    fn eq(&self, other: &Reason) -> bool {
        self.written == other.written
    }
}
