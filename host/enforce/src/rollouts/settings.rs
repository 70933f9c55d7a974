//! What rolling out works with.

use crate::settings::Settings as Acts;
use std::time::Duration;
use tokio::sync::watch;
use tread_cluster::boot_images::Known as Images;
use tread_cluster::index::Index;
use tread_cluster::plans::Previewer;
use tread_cluster::policies::current::Published;
use tread_kube::events::Events;
use tread_kube::leadership::Leading;
use tread_kube::watching::Watches;
use tread_model::joining::{BOOTSTRAP_SECRET, KUBELET};

/// What rolling out works with.
#[derive(Clone)]
pub struct Settings {
    /// How nodes are acted upon.
    pub acts: Acts,
    /// What is known of the cluster.
    pub index: Index,
    /// What is known of pools, and what plans come to.
    pub previewer: Previewer,
    /// The policies, whenever they change.
    pub policies: Published,
    /// Whether this replica acts.
    pub leads: Leading,
    /// The node that this replica runs on: it is the last of its pool.
    pub own_node: Option<String>,
    /// How it stands with the watches.
    pub watches: Watches,
    /// Where Events go.
    pub events: Events,
    /// How soon what changed is looked at again.
    pub paces: Paces,
    /// How machines join.
    pub joining: JoiningSettings,
    /// The form of the orders that agents are given.
    pub form: u32,
}

/// Machines of a site that has few hands may wait for somebody to approve certificates.
const LASTS: Duration = Duration::from_secs(24 * 3600);
/// How long machines may take to register their nodes.
const REGISTERS_WITHIN: Duration = Duration::from_secs(30 * 60);

/// How machines join.
#[derive(Debug, Clone)]
pub struct JoiningSettings {
    /// Where the kubelet finds its configuration.
    pub kubelet: String,
    /// The Secret, in tread's namespace, in which an admin gives the kubeconfig by which kubelets
    /// register.
    pub bootstrap: String,
    /// For so long after it was served a claim lasts.
    pub lasts: Duration,
    /// For so long a machine that was served may take to register its node.
    pub registers_within: Duration,
    /// What machines are held against at their first boot; none: nothing.
    pub first_boots: Option<FirstBoots>,
}

/// What machines are held against at their first boot, and whom they report to.
#[derive(Debug, Clone)]
pub struct FirstBoots {
    /// What is known of boot images.
    pub images: Images,
    /// Where they report: `HOST:PORT`.
    pub address: String,
    /// Whom they are to trust there, as PEM; empty as long as it is not known.
    pub authority: watch::Receiver<String>,
}

impl Default for JoiningSettings {
    fn default() -> JoiningSettings {
        JoiningSettings {
            kubelet: KUBELET.to_owned(),
            bootstrap: BOOTSTRAP_SECRET.to_owned(),
            lasts: LASTS,
            registers_within: REGISTERS_WITHIN,
            first_boots: None,
        }
    }
}

/// How soon something is looked at again.
#[derive(Debug, Clone, Copy)]
pub struct Paces {
    /// For so long nothing of what a pool is made of has to change before it is rendered: what
    /// one command applies is rolled out together.
    pub render_after: Duration,
    /// After so long a node is looked at again that is being drained or proves itself.
    pub again: Duration,
    /// How often rendered configs that nobody names any more are looked for.
    pub tidy: Duration,
    /// After so long an agent that has not ended its order is taken for lost.
    pub lost_after: Duration,
}

impl Default for Paces {
    fn default() -> Paces {
        Paces {
            render_after: Duration::from_secs(5),
            again: Duration::from_secs(5),
            tidy: Duration::from_secs(600),
            lost_after: Duration::from_secs(75 * 60),
        }
    }
}
