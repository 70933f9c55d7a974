//! What the API server said, for people: its own message, without the debug
//! output that kube appends; and the whole chain where no answer came.

/// An error of a request, in words.
pub fn in_words(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        return match (status.message.is_empty(), status.reason.is_empty()) {
            (false, _) => status.message.clone(),
            (true, false) => status.reason.clone(),
            (true, true) => format!("the API server answered with {}", status.code),
        };
    }
    with_causes(error)
}

/// An error with its causes in one line, each said once.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Many errors repeat the one below them.
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tread_test_bed::refusal;

    #[test]
    fn an_answer_is_told_in_the_words_of_the_api_server() {
        for (message, reason, code, expected) in [
            ("leases is forbidden", "Forbidden", 403, "leases is forbidden"),
            ("", "Forbidden", 403, "Forbidden"),
            ("", "", 502, "the API server answered with 502"),
        ] {
            let error = refusal(json!({"message": message, "reason": reason, "code": code}));
            assert_eq!(in_words(&error), expected);
        }
    }

    #[test]
    fn a_missing_answer_is_told_with_its_causes() {
        let refused = std::io::Error::other("connection refused");
        let error = kube::Error::ReadEvents(refused);
        assert_eq!(in_words(&error), "Error reading events stream: connection refused");
    }
}
