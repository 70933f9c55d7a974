//! Which version of a kind the API server serves, of a kind that has several: an
//! older one ends some day, and its objects go on.

use crate::api::machines::Kind;
use crate::asking::{Call, SHORT_PATIENCE, ask_before};
use crate::metrics::Metrics;
use kube::Client;
use kube::api::ApiResource;
use tokio::time::Instant;

/// The kind in the newest version that is known and served. One of which nobody
/// says anything is asked for as it always was.
pub async fn served(client: &Client, metrics: &Metrics, kind: &Kind) -> ApiResource {
    for version in kind.versions() {
        let path = format!("{}/{version}", kind.group);
        let (answer_by, call) = (Instant::now() + SHORT_PATIENCE, Call::new("get", "apiresources"));
        let asked = client.list_api_group_resources(&path);
        let Ok(found) = ask_before(answer_by, metrics, call, asked).await else { continue };
        if found.resources.iter().any(|it| it.name == kind.plural) {
            return Kind { version, ..*kind }.resource();
        }
    }
    kind.resource()
}
