//! Reading an object together with the API server's own time.

use crate::asking::{Call, Failed, ask};
use crate::metrics::Metrics;
use http::{Request, Response, StatusCode, header};
use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::fmt::rfc2822;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tread_model::protocol::Time;

/// An object, and when the API server answered.
#[derive(Debug, Clone)]
pub struct Dated<T> {
    /// The object; nothing if it is not there.
    pub object: Option<T>,
    /// The `Date` of the answer: whole seconds, rounded down.
    pub at: Time,
}

/// Reads an object, and when the API server answered.
pub async fn read<T: DeserializeOwned>(
    client: &Client,
    metrics: &Metrics,
    call: Call,
    path: &str,
) -> Result<Dated<T>, Failed> {
    ask(metrics, call, read_from(client, path)).await
}

async fn read_from<T: DeserializeOwned>(client: &Client, path: &str) -> kube::Result<Dated<T>> {
    let request = Request::get(path).body(Body::empty()).map_err(kube::Error::HttpError)?;
    sent(client, request).await
}

/// Puts a question to the API server, such as a review; its answer, and when it answered.
pub async fn create<Q: Serialize, T: DeserializeOwned>(
    client: &Client,
    path: &str,
    question: &Q,
) -> kube::Result<Dated<T>> {
    let body = serde_json::to_vec(question).map_err(kube::Error::SerdeError)?;
    let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
    let request = request.body(Body::from(body)).map_err(kube::Error::HttpError)?;
    sent(client, request).await
}

async fn sent<T: DeserializeOwned>(
    client: &Client,
    request: Request<Body>,
) -> kube::Result<Dated<T>> {
    let answer = client.send(request).await?;
    let (code, at) = (answer.status(), date(&answer));
    let body = answer.into_body().collect_bytes().await?;
    let read = |bytes: &[u8]| serde_json::from_slice(bytes).map_err(kube::Error::SerdeError);
    let object = match code {
        StatusCode::NOT_FOUND => None,
        code if code.is_success() => Some(read(&body)?),
        code => return Err(refused(code, &body)),
    };
    match at {
        Some(at) => Ok(Dated { object, at }),
        None => Err(no_date()),
    }
}

fn refused(code: StatusCode, body: &[u8]) -> kube::Error {
    let status = serde_json::from_slice(body).unwrap_or_else(|_| Status {
        code: code.as_u16(),
        message: code.to_string(),
        ..Status::default()
    });
    kube::Error::Api(Box::new(status))
}

fn no_date() -> kube::Error {
    kube::Error::ReadEvents(std::io::Error::other("an answer without a Date: who answers there?"))
}

/// When an answer was made, by its header.
fn date<B>(answer: &Response<B>) -> Option<Time> {
    let text = answer.headers().get(header::DATE)?.to_str().ok()?;
    let at = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    time(at)
}

/// A time as the protocol has it; nothing before 1970.
pub fn time(at: Timestamp) -> Option<Time> {
    let since = Duration::try_from(at.duration_since(Timestamp::UNIX_EPOCH)).ok()?;
    Some(Time(since))
}

/// The same the other way; the latest there is, if it is later.
pub fn timestamp(at: Time) -> Timestamp {
    let micros = i64::try_from(at.0.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
}

/// A time for people: in whole seconds.
pub fn shown(at: Time) -> String {
    timestamp(Time(Duration::from_secs(at.0.as_secs()))).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_when_it_was_made() {
        let dated =
            |text: &str| date(&Response::builder().header(header::DATE, text).body(()).unwrap());
        let at = dated("Wed, 21 Oct 2026 07:28:00 GMT").unwrap();
        assert_eq!(timestamp(at).to_string(), "2026-10-21T07:28:00Z");
        assert_eq!(time(timestamp(at)), Some(at));
        for bad in ["", "yesterday", "Wed, 21 Oct 1926 07:28:00 GMT"] {
            assert_eq!(dated(bad), None, "{bad}");
        }
        assert_eq!(date(&Response::new(())), None);
    }
}
