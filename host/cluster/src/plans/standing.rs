//! The plans that stand in the cluster, for whoever has not made them.

use super::write::PLANS;
use crate::previews::{Described, standing};
use kube::api::ListParams;
use kube::{Api, Client};
use tread_kube::api::DisruptionPlan;
use tread_kube::asking::{Call, Failed, ask};
use tread_kube::metrics::Metrics;
use tread_kube::watching::seen::{Seen, each_by_itself};

/// They are large.
const PAGE: u32 = 20;

/// Those that are not known to be over.
pub(super) async fn plans(client: &Client, metrics: &Metrics) -> Result<Vec<Described>, Failed> {
    let api = each_by_itself(Api::<DisruptionPlan>::all(client.clone()));
    let mut params = ListParams::default().limit(PAGE);
    let mut all = Vec::new();
    loop {
        let page = ask(metrics, Call::new("list", PLANS), api.list(&params)).await?;
        all.extend(page.items.into_iter().filter_map(Seen::read).filter_map(standing));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(all),
        }
    }
}
