//! What is wrong with an input: every problem names the file, the document,
//! the field and what was expected, and several are reported together.

use std::fmt;

/// One thing that is wrong with an input.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Problem {
    /// The file as the user named it; `-` is standard input. Empty where the
    /// message is about no file, and then says all.
    pub file: String,
    /// Which document of the file, from 1; for items of a `List` followed by
    /// the item: `2, item 3`. Empty where the file has only one.
    pub document: String,
    /// The path of the field: `spec.config.storage.files[3].mode`; or a line
    /// and column where the text cannot be read at all. May be empty.
    pub path: String,
    /// What was expected, what was found, and what to do next.
    pub message: String,
    /// The kind of the object, where another one was expected: for whoever knows where
    /// such an object belongs.
    #[serde(skip)]
    pub found_kind: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.file.is_empty() {
            return f.write_str(&self.message);
        }
        f.write_str(&self.file)?;
        if !self.document.is_empty() {
            write!(f, ", document {}", self.document)?;
        }
        if !self.path.is_empty() {
            write!(f, ", {}", self.path)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// All that is wrong with the inputs. Never empty when returned as an error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
