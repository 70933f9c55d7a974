//! What a parser says of JSON, without what it found there: that may be a secret.

/// Where it cannot be read.
pub(crate) fn place(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    match error.classify() {
        serde_json::error::Category::Data => format!(
            "a field that is not known or not as it should be, at line {line}, column {column}"
        ),
        _ => format!("it is no JSON, at line {line}, column {column}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn what_stands_there_is_not_repeated() {
        let error = serde_json::from_str::<u8>("\"secret\"").unwrap_err();
        assert!(error.to_string().contains("secret"), "{error}");
        let place = place(&error);
        assert!(place.contains("at line 1, column 8") && !place.contains("secret"), "{place}");
    }
}
