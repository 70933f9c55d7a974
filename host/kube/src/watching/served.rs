//! Which version of a kind the API server serves, of a kind that has several: an
//! older one ends some day, and its objects go on.

use crate::api::machines::Kind;
use kube::Client;
use kube::api::ApiResource;
use std::time::Duration;
use tokio::time::timeout;

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(5);

/// The kind in the newest version that is known and served. One of which nobody
/// says anything is asked for as it always was.
pub async fn served(client: &Client, kind: &Kind) -> ApiResource {
    for version in kind.versions() {
        let path = format!("{}/{version}", kind.group);
        let asked = timeout(ANSWER, client.list_api_group_resources(&path)).await;
        let Ok(Ok(found)) = asked else { continue };
        if found.resources.iter().any(|it| it.name == kind.plural) {
            return Kind { version, ..*kind }.resource();
        }
    }
    kind.resource()
}
