//! Answers of an API server that no control plane needs to give.

use serde_json::Value;

/// What kube makes of an answer with this Status.
///
/// # Panics
/// It is no Status.
#[expect(clippy::panic, reason = "it fails the test that wrote it")]
pub fn refusal(status: Value) -> kube::Error {
    match serde_json::from_value(status) {
        Ok(status) => kube::Error::Api(Box::new(status)),
        Err(error) => panic!("no Status: {error}"),
    }
}
