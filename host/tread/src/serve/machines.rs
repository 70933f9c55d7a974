//! What machines are served that boot for the first time.

use anyhow::Result;
use axum::Router;
use axum::http::StatusCode;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use std::sync::Arc;
use tread_cluster::boot_images::noting::FirstBoots;
use tread_cluster::membership::sent_away::{self, Why};
use tread_enforce::rollouts::{Joining, NotServed};
use tread_front::admission::{Certificates, Purpose, Settings};
use tread_front::authority::{Authority, Clients};
use tread_front::http::{
    Fetch, FirstBoot, Machine, Machines, Refused, SentAway, WhySentAway, first_boots, machines,
};
use tread_front::manifests::Ignition;
use tread_kube::api::boot_images::FirstBoot as Said;
use tread_kube::leadership::Leading;
use tread_kube::metrics::Metrics;
use tread_model::joining::Unserved;

/// What serves them.
pub(super) struct Serves {
    pub(super) router: Router,
    pub(super) certificates: Certificates,
}

/// By what.
#[derive(Clone, Copy)]
pub(super) struct By<'a> {
    pub(super) client: &'a Client,
    pub(super) namespace: &'a str,
    pub(super) leading: &'a Leading,
    pub(super) metrics: &'a Metrics,
}

/// The certificates for machines that ask at this address, and what keeps them, for as long as it
/// is polled.
pub(super) fn certificates(
    address: &Ignition,
    by: By<'_>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(Certificates, BoxFuture<'static, ()>)> {
    let settings = Settings {
        client: by.client.clone(),
        namespace: by.namespace.to_owned(),
        names: vec![address.host.clone()],
        purpose: Purpose::Machines,
        lives: Purpose::Machines.lives(),
        leading: by.leading.clone(),
        metrics: by.metrics.clone(),
    };
    let (certificates, kept) = Certificates::start(settings, stop)?;
    let authority = Authority {
        clients: Clients::Machines(address.to_string()),
        client: by.client.clone(),
        namespace: by.namespace.to_owned(),
        bundle: certificates.authority(),
        leading: by.leading.clone(),
        metrics: by.metrics.clone(),
    };
    let kept = async move {
        tokio::select! {
            () = kept => {}
            () = authority.keep() => {}
        }
    };
    Ok((certificates, kept.boxed()))
}

/// What serves them.
pub(super) fn serving(
    certificates: Certificates,
    joining: Joining,
    reports: Reports,
    metrics: &Metrics,
) -> Serves {
    let answers = Arc::new(Answers { joining, reports });
    let router = machines(answers.clone(), metrics).merge(first_boots(answers, metrics));
    Serves { router, certificates }
}

/// Where it is reported what is heard of machines.
pub(super) struct Reports {
    pub(super) first_boots: FirstBoots,
    pub(super) sent_away: sent_away::SentAway,
}

/// What machines ask is answered by what lets their nodes join.
struct Answers {
    joining: Joining,
    reports: Reports,
}

impl Machines for Answers {
    fn admit(&self, pool: &str, token: &str) -> Option<bool> {
        self.joining.admit(pool, token)
    }

    fn serve(&self, fetch: Fetch, token: &str) -> BoxFuture<'static, Result<Machine, Refused>> {
        let joining = self.joining.shown(token);
        async move {
            match joining.serve(&fetch.pool, fetch.minor).await {
                Ok(boots) => {
                    let (pool, from) = (&fetch.pool, fetch.from);
                    if fetch.whole {
                        joining.fetched(&boots, from);
                        tracing::info!(pool, %from, "a machine boots with its config");
                    } else {
                        tracing::debug!(pool, %from, "somebody asks whether machines are served");
                    }
                    Ok(Machine { head: boots.head, claim: boots.claim, tail: boots.tail })
                }
                Err(why) => {
                    tracing::warn!(pool = fetch.pool, from = %fetch.from, error = %why, "a machine is not served");
                    // Ignition asks again by itself, until somebody has mended it; but not where that is no
                    // use.
                    let status = match why {
                        NotServed::Unserved(Unserved::Version(_)) => StatusCode::NOT_ACCEPTABLE,
                        _ => StatusCode::SERVICE_UNAVAILABLE,
                    };
                    Err(Refused::new(status, why.to_string()))
                }
            }
        }
        .boxed()
    }

    fn hear(&self, FirstBoot { pool, from, report }: FirstBoot) -> Result<(), Refused> {
        let said = Said {
            machine: report.machine,
            address: from.to_canonical().to_string(),
            pool,
            image: report.image,
            reason: report.reason.as_str().to_owned(),
            stopped: report.stopped,
            at: Time(Timestamp::now()),
        };
        if self.reports.first_boots.take(said) {
            return Ok(());
        }
        let sentence = "too much that machines said is still to be written; say it again";
        Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, sentence))
    }

    fn sent_away(&self, SentAway { pool, from, why }: SentAway) {
        let why = match why {
            WhySentAway::NoToken => Why::NoToken,
            WhySentAway::OtherToken => Why::OtherToken,
            WhySentAway::Version(sentence) => Why::Version(sentence),
        };
        self.reports.sent_away.report(sent_away::Machine { pool, from, why });
    }
}
