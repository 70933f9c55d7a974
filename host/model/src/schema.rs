//! The settings of policies, held to their schema.
//!
//! A schema is JSON Schema, as far as settings need it, and every keyword in it
//! is enforced: one that is not known here is an error in the schema, so that
//! nobody relies on what nobody checks. There are no references. Reading and
//! checking take bounded work, whoever wrote schema and settings, and give the
//! same answer everywhere.

mod check;
mod pattern;
mod problem;
mod read;
mod same;

use read::Node;
use serde_json::Value;

/// A schema that was read.
#[derive(Debug, Clone)]
pub struct Schema(Node);

impl Schema {
    /// Reads a schema, which is a JSON object. The error names the keyword that
    /// is wrong, or that is not enforced.
    pub fn read(text: &str) -> Result<Schema, String> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| format!("the schema of the settings is no JSON: {error}"))?;
        if !value.is_object() {
            return Err("the schema of the settings is no JSON object".to_owned());
        }
        let node = read::node(&value).map_err(|problem| format!("the schema: {problem}"))?;
        Ok(Schema(node))
    }

    /// What is wrong with settings: a sentence for each, the first few of them.
    pub fn check(&self, settings: &Value) -> Result<(), Vec<String>> {
        check::check(&self.0, settings)
    }

    /// The same for one setting, whatever the others are.
    pub fn check_setting(&self, name: &str, value: &Value) -> Result<(), Vec<String>> {
        check::check_field(&self.0, name, value)
    }
}

#[cfg(test)]
mod tests;
