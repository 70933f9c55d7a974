//! A node that its own config cuts off from its API server: it goes back, also while it waits for
//! a permit that nobody can give it any more.

use super::going::Going;
use super::node::{Kept, OperationError};
use crate::api_server::{Server, answers_within};
use crate::journal::Note;
use crate::permits::{Act, Permit};
use std::future::pending;
use std::time::Duration;

impl Going<'_> {
    /// Asks for a permit; from what the node is cut off, if that is found out meanwhile. Once it
    /// reached the API server, it waits for the permit alone.
    pub(super) async fn permit_unless_cut_off(
        &self,
        act: Act,
    ) -> Result<Result<Permit, String>, OperationError> {
        let cut_off = async {
            if let Some(why) = self.cut_off().await {
                return why;
            }
            self.reporting.message("");
            pending().await
        };
        tokio::select! {
            // What is answered at once needs no API server.
            biased;
            permit = self.node.permit(&self.reporting, act) => Ok(Ok(permit?)),
            why = cut_off => Ok(Err(why)),
        }
    }

    /// The API server that was reached in the minute before the first write, and whether it
    /// proved that it is one.
    fn reached_before(&self) -> Option<(&String, &bool)> {
        let noted = self.standing.notes.iter().rev().find_map(|note| match note {
            Note::Unreached => Some(None),
            Note::Reached { address, proven } => Some(Some((address, proven))),
            _ => None,
        });
        let Kept { reached, proven, .. } = &self.kept;
        noted.unwrap_or_else(|| reached.as_ref().map(|address| (address, proven)))
    }

    /// Why the node has to go back since it is cut off from an API server that it reached
    /// before, if it is so.
    pub(super) async fn cut_off(&self) -> Option<String> {
        let terms = &self.kept.terms;
        let (address, proven) = self.reached_before()?;
        // By which authority it is known is read anew: the config may have brought another one.
        let server = || {
            let server = Server::at(&self.node.tree, address);
            match server.is_known() || !*proven {
                true => Ok(server),
                false => {
                    Err("no kubeconfig names the authority of its certificate any more".to_owned())
                }
            }
        };
        if answers_within(Duration::ZERO, server).await.is_ok() {
            return None;
        }
        self.reporting.message(&format!("waiting for the API server at {address}"));
        let seconds = terms.cut_off;
        let why = answers_within(Duration::from_secs(seconds), server).await.err()?;
        Some(format!(
            "the API server at {address} was reached before, and since then for {seconds} s it was not: {why}"
        ))
    }
}
