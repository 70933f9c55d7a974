//! Regular expressions of a stranger: small, and matched without going back.

use regex_lite::{Regex, RegexBuilder};

/// A regular expression, and what it takes to match it.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    regex: Regex,
    /// The steps for each character of a text, at most.
    steps: usize,
}

/// No pattern has more characters.
const LONGEST: usize = 1000;

/// What a compiled pattern may take, in bytes. The least that is enough says
/// how much work the pattern makes.
const SIZES: [usize; 4] = [1 << 10, 4 << 10, 16 << 10, 64 << 10];

/// No state of a compiled pattern takes less.
const STATE_BYTES: usize = 8;

impl Pattern {
    pub(super) fn read(text: &str) -> Result<Pattern, String> {
        if text.len() > LONGEST {
            return Err(format!("it has {} characters, and {LONGEST} are allowed", text.len()));
        }
        let mut failed = String::new();
        for size in SIZES {
            match RegexBuilder::new(text).size_limit(size).build() {
                Ok(regex) => return Ok(Pattern { regex, steps: size / STATE_BYTES }),
                Err(error) => failed = error.to_string(),
            }
        }
        Err(format!(
            "{failed}; look-around, references back and classes of Unicode are not enforced, nor \
             is what repeats too often"
        ))
    }

    pub(super) fn text(&self) -> &str {
        self.regex.as_str()
    }

    /// What matching this text takes, at most.
    pub(super) fn cost(&self, text: &str) -> usize {
        self.steps.saturating_mul(text.len().saturating_add(1))
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}
