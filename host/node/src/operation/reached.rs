//! Whether an operation can go back by itself where its config cuts the node off.

use super::node::Node;
use crate::api_server::Server;
use tread_model::text::one_line_within;

/// As it is told of an operation that begins.
pub(super) const BEFORE_WRITE: &str = "was not reached before the first write";

impl Node<'_> {
    /// Why a node that this change cuts off would not go back, as it is now; nothing where it
    /// would, or where there is no API server.
    pub async fn would_stay_cut_off(&self) -> Option<String> {
        self.asked_before("is not reached now").await.1
    }

    /// The API server that this node reaches; or, if it has one and does not reach it, what that
    /// means.
    pub(super) async fn asked_before(&self, is_not: &str) -> (Option<Server>, Option<String>) {
        let follows = "a node that is cut off by this change will not go back by itself";
        let server = match Server::of(&self.tree, self.terms.api_server.as_deref()) {
            Ok(Some(server)) => server,
            Ok(None) => return (None, None),
            Err(why) => {
                let why = format!("the kubelet's API server {is_not} ({why}): {follows}");
                return (None, Some(one_line_within(&why, 4096).0));
            }
        };
        match server.answers().await {
            Ok(()) => (Some(server), None),
            Err(why) => {
                let address = &server.address;
                let why = format!("the API server at {address} {is_not} ({why}): {follows}");
                (None, Some(one_line_within(&why, 4096).0))
            }
        }
    }
}
