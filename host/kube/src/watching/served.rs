//! Which version of a kind the API server serves, of a kind that has several: an
//! older one ends some day, and its objects go on.

use crate::api::machines::Kind;
use crate::asking::{Call, CallOutcome, Failed, SHORT_PATIENCE, ask_before};
use crate::metrics::Metrics;
use kube::Client;
use kube::api::ApiResource;
use tokio::time::Instant;

/// The kind in the newest version that is known and served. One of which the API server serves none
/// is asked for as it always was. An error if it does not say: a version is not to be taken for gone
/// then, with all its objects.
pub async fn served(
    client: &Client,
    metrics: &Metrics,
    kind: &Kind,
) -> Result<ApiResource, Failed> {
    for version in kind.versions() {
        let path = format!("{}/{version}", kind.group);
        let (answer_by, call) = (Instant::now() + SHORT_PATIENCE, Call::new("get", "apiresources"));
        let asked = client.list_api_group_resources(&path);
        let found = match ask_before(answer_by, metrics, call, asked).await {
            Err(failed) if failed.outcome == CallOutcome::Gone => continue,
            found => found?,
        };
        if found.resources.iter().any(|it| it.name == kind.plural) {
            return Ok(Kind { version, ..*kind }.resource());
        }
    }
    Ok(kind.resource())
}
