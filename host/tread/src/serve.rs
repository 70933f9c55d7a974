//! `tread serve`: the service in a cluster. Wiring, and the order in which it
//! starts and stops.

mod checks;
mod enforcing;
mod listed;
mod machines;

use crate::acting::ActingArgs;
use crate::joining::JoiningArgs;
use crate::manifests::Mode;
use crate::shipped::shipped;
use anyhow::{Context as _, Result, anyhow};
use axum::Router;
use checks::{Known, Start, readiness};
use clap::Args;
use enforcing::Answers;
use futures::FutureExt as _;
use listed::Listed;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tread_cluster::plans::{self, Previewer, Retention};
use tread_cluster::policies::registry;
use tread_cluster::policies::snapshot::Room;
use tread_cluster::{boot_images, index, membership};
use tread_console::exit::{Exit, UsageError};
use tread_enforce::rollouts::{self, FirstBoots, JoiningSettings, Paces};
use tread_engine::limits::Limits;
use tread_front::admission::certificates::service_names;
use tread_front::admission::{Certificates, Purpose, Settings, Warn, webhook};
use tread_front::authority::{Authority, Clients};
use tread_front::http::{AgentReviewer, Port, Reviewer, lists, plain};
use tread_front::installations::{Met, STILL_ALONE, look_out};
use tread_front::manifests::Ignition;
use tread_front::manifests::workload::{AGENTS, HTTP, HTTPS, MACHINES_PORT};
use tread_front::manifests::{self, NAME, grants::LEASE};
use tread_front::names::{AGENT, AGENTS_SERVICE, agents_namespace};
use tread_front::shutdown::Shutdown;
use tread_kube::agents::FORM;
use tread_kube::events::Events;
use tread_kube::leadership::{Election, Timings};
use tread_kube::metrics::Metrics;
use tread_kube::review::Warned;
use tread_kube::watching::Watches;
use tread_loading::sandbox;

/// In a pod, so long the API server may still send requests here after the pod
/// was told to stop.
const STILL_ASKED: Duration = Duration::from_secs(3);

/// One for the API server's questions while the other is busy.
const THREADS: usize = 2;
/// How many policies run at the same time.
const SLOTS: u32 = 4;

const EXAMPLES: &str = "\
Examples:
  tread serve
      In a pod, as tread manifests installs it.
  tread serve --namespace tread-system --tls-name 192.0.2.1
      With the kubeconfig, outside of the cluster: tread manifests --outside https://192.0.2.1:8443
      prints what the cluster needs for that.
  tread serve --mode enforce
      Rolls out, with an agent on each node, as tread manifests --mode enforce installs it.
  TREAD_LOG=debug tread serve --listen 127.0.0.1:8080 --listen-tls 127.0.0.1:8443

Answers:
  --listen        /healthz, /readyz (with a line for each check) and /metrics
  --listen-tls    /warn/PATH, which only the API server is told; /v1/plans, /v1/plans/NAME,
                  /v1/policies and /v1/bootimages, as JSON, for whoever may read DisruptionPlans,
                  DisruptionPolicies and BootImages: Authorization: Bearer TOKEN
  --listen-agents /v1/agent/wait and /v1/agent/permit, in the mode enforce, for agents alone
  --listen-ignition  /config/POOL, and /first-boot/POOL for what they report (POST), in the mode enforce,
                  for machines that boot, with the pool's token

SIGTERM or SIGINT stops it in order; a second one at once.";

/// The arguments of `tread serve`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ServeArgs {
    /// What it does in the cluster
    #[arg(long, value_enum, default_value_t = Mode::Advise)]
    pub mode: Mode,
    /// Its own namespace [default: POD_NAMESPACE, or that of the kubeconfig]
    #[arg(long, value_parser = crate::namespace::namespace)]
    pub namespace: Option<String>,
    /// Where to answer how it is [default: port 8080 of all addresses]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// Where to answer by TLS [default: port 8443 of all addresses]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen_tls: Option<SocketAddr>,
    /// In the mode enforce, where agents ask, by TLS [default: port 8444 of all
    /// addresses]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen_agents: Option<SocketAddr>,
    /// In the mode enforce, where machines that boot ask, by TLS [default: port 22623 of all
    /// addresses]
    #[arg(long, value_name = "ADDRESS:PORT", requires = "ignition_address")]
    pub listen_ignition: Option<SocketAddr>,
    /// In the mode enforce, serve machines that boot, which reach it at this address
    #[arg(long, value_name = "HOST:PORT", value_parser = crate::manifests::ignition)]
    pub ignition_address: Option<Ignition>,
    /// How nodes are acted on.
    #[command(flatten)]
    pub acting: ActingArgs,
    /// How they join.
    #[command(flatten)]
    pub joining: JoiningArgs,
    /// A name or address by which others than the Service reach it, for its
    /// certificate (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub tls_name: Vec<String>,
    /// The Lease by which one of several replicas leads
    #[arg(long, value_name = "NAME", default_value = LEASE)]
    pub lease_name: String,
    /// Hold back minor and major updates of OpenShift while boot images are too
    /// old, by ClusterOperator tread; without it that is removed
    #[arg(long)]
    pub block_upgrades: bool,
}

/// Serves until it is told to stop.
pub fn run(args: &ServeArgs) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .context("cannot start the threads of the service")?;
    runtime.block_on(serve(args))
}

async fn serve(args: &ServeArgs) -> Result<Exit> {
    let shutdown = Shutdown::on_signals().context("cannot take signals")?;
    let plain_port = bind(args.listen, HTTP)?;
    let by_tread = args.mode == Mode::Enforce;
    if !by_tread {
        let given = [
            ("--ignition-address", args.ignition_address.is_some()),
            ("--listen-agents", args.listen_agents.is_some()),
        ];
        if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
            return Err(UsageError(format!("{option} is for --mode enforce")).into());
        }
        args.acting.fit_advise()?;
    }
    // Its text tells of both ways that were tried; its causes would tell it again.
    let config = tread_kube::client::config().await.map_err(|error| {
        anyhow!(
            "no cluster: set KUBECONFIG, name a context in ~/.kube/config, or run in a pod with a \
             service account: {error}"
        )
    })?;
    let namespace = args
        .namespace
        .clone()
        .or_else(|| variable("POD_NAMESPACE"))
        .unwrap_or_else(|| config.default_namespace.clone());
    let client = tread_kube::client::client(config).context("the kubeconfig cannot be used")?;
    let replica = replica();
    let metrics = Metrics::new();
    let (answer, answered) = watch::channel(true);
    let until = || {
        let mut answered = answered.clone();
        async move {
            // Dropping the sender says the same.
            let _ = answered.wait_for(|answer| !answer).await;
        }
    };
    // What writes, in the order in which it stops: the writers, then the Lease.
    let mut writers = JoinSet::new();
    let mut others = JoinSet::new();
    // From the first moment on it says how it is.
    let start = Start::default();
    let plain_at = plain_port.address();
    let plain_port = plain_port.counting(&metrics);
    others.spawn(plain_port.serve(plain(start.readiness(), metrics.clone()), until()));
    let acts = match by_tread {
        true => tokio::select! {
            acts = enforcing::begin(&client, &namespace, &args.acting, &metrics, &start) => Some(acts?),
            () = shutdown.begins() => {
                tracing::info!("stopped");
                return Ok(Exit::Done);
            }
        },
        false => None,
    };
    // Nobody is to wait here for answers that cannot be given yet.
    let tls_port = bind(args.listen_tls, HTTPS)?;
    let agents_port = match by_tread {
        true => Some(bind(args.listen_agents, AGENTS)?),
        false => None,
    };
    let machines_port = match (by_tread, &args.ignition_address) {
        (true, Some(_)) => Some(bind(args.listen_ignition, MACHINES_PORT)?),
        _ => None,
    };
    let (written, all_written) = oneshot::channel::<()>();
    let may_lead = watch::Sender::new(false);
    let election = Election {
        client: client.clone(),
        namespace: namespace.clone(),
        lease: args.lease_name.clone(),
        replica: replica.clone(),
        timings: Timings::default(),
        metrics: metrics.clone(),
        may_lead: may_lead.subscribe(),
    };
    let (leading, elected) = election.start(async {
        // Dropping the sender says the same.
        let _ = all_written.await;
    })?;
    let met = Met::default();
    let mut elected = {
        let (client, namespace) = (client.clone(), namespace.clone());
        let (metrics, met) = (metrics.clone(), met.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = look_out(client, &namespace, &metrics, &met, &may_lead, STILL_ALONE) => {}
                () = elected => {}
            }
        })
    };
    let certificates = {
        let mut names = service_names(NAME, &namespace);
        if by_tread {
            names.extend(service_names(AGENTS_SERVICE, &namespace));
        }
        names.extend(args.tls_name.iter().cloned());
        let settings = Settings {
            client: client.clone(),
            namespace: namespace.clone(),
            names,
            purpose: Purpose::Webhook,
            lives: Purpose::Webhook.lives(),
            leading: leading.clone(),
            metrics: metrics.clone(),
        };
        let (certificates, kept) = Certificates::start(settings, shutdown.begun())?;
        writers.spawn(kept);
        certificates
    };

    let watches = Watches::default();
    let sandbox = sandbox::for_many(Limits::default(), SLOTS)?;
    let leases = args.acting.lease_namespace();
    let (index, indexing) = index::start_where(&client, leases, &watches, &metrics, by_tread);
    let (policies, registry) = registry::start(registry::Settings {
        client: client.clone(),
        index: index.clone(),
        namespace: namespace.clone(),
        replica: replica.clone(),
        sandbox: sandbox.clone(),
        shipped: shipped()?,
        room: Room::default(),
        leads: leading.clone(),
        watches: watches.clone(),
        metrics: metrics.clone(),
        events: Events::new(client.clone(), &replica, "Load", &metrics),
    });
    let (previewer, planning) = plans::start(plans::Settings {
        client: client.clone(),
        index: index.clone(),
        sandbox,
        policies: policies.clone(),
        leads: leading.clone(),
        watches: watches.clone(),
        metrics: metrics.clone(),
        events: Events::new(client.clone(), &replica, "Plan", &metrics),
        keep: Retention::default(),
        by_tread,
    });
    let judges = boot_images::Settings {
        client: client.clone(),
        index: index.clone(),
        namespace: namespace.clone(),
        leads: leading.clone(),
        block_upgrades: args.block_upgrades,
        watches: watches.clone(),
        metrics: metrics.clone(),
        events: Events::new(client.clone(), &replica, "Judge", &metrics),
    };
    let (boot_images, judging) = boot_images::start(judges.clone());
    let membership = membership::start(membership::Settings {
        previewer: previewer.clone(),
        boot_images: boot_images.clone(),
        leads: leading.clone(),
        metrics: metrics.clone(),
        events: Events::new(client.clone(), &replica, "Judge", &metrics),
    });
    let listed = Listed {
        previewer: previewer.clone(),
        boot_images: boot_images.clone(),
        policies: index.policies.clone(),
    };
    let mut parts = vec![indexing, registry, planning, judging, membership];
    let machines = args.ignition_address.as_ref().filter(|_| acts.is_some()).map(|address| {
        let by = machines::By {
            client: &client,
            namespace: &namespace,
            leading: &leading,
            metrics: &metrics,
        };
        let (certificates, kept) = machines::certificates(address, by, shutdown.begun())?;
        let (heard, hearing) = boot_images::noting::start(judges, boot_images.clone());
        let events = Events::new(client.clone(), &replica, "Serve", &metrics);
        let (sent_away, reporting) = membership::sent_away::start(previewer.clone(), events);
        let reports = machines::Reports { first_boots: heard, sent_away };
        parts.extend([kept, hearing, reporting]);
        let first_boots = FirstBoots {
            images: boot_images.clone(),
            address: address.to_string(),
            authority: certificates.authority(),
        };
        anyhow::Ok((certificates, reports, first_boots))
    });
    let machines = machines.transpose()?;
    let joining = JoiningSettings {
        first_boots: machines.as_ref().map(|(_, _, first_boots)| first_boots.clone()),
        ..args.joining.settings()
    };
    let acts = acts.map(|acts| {
        let lost_after = acts.terms.lease.saturating_add(acts.terms.boot);
        let (agents, joining, rolling) = rollouts::start(rollouts::Settings {
            acts,
            index: index.clone(),
            previewer: previewer.clone(),
            policies: policies.clone(),
            leads: leading.clone(),
            own_node: variable("NODE_NAME"),
            watches: watches.clone(),
            events: Events::new(client.clone(), &replica, "Roll", &metrics),
            paces: Paces { lost_after, ..Paces::default() },
            joining,
            form: FORM,
        });
        let authority = Authority {
            clients: Clients::Agents,
            client: client.clone(),
            namespace: namespace.clone(),
            bundle: certificates.authority(),
            leading: leading.clone(),
            metrics: metrics.clone(),
        };
        let booted = agents.publish_booted(boot_images.clone());
        parts.extend([rolling, authority.keep().boxed(), booted]);
        (agents, joining)
    });
    let (agents, joining) = acts.unzip();
    let machines = machines.zip(joining).map(|((certificates, reports, _), joining)| {
        machines::serving(certificates, joining, reports, &metrics)
    });
    for part in parts {
        let stop = shutdown.begun();
        writers.spawn(async move {
            tokio::select! {
                () = part => {}
                () = stop => {}
            }
        });
    }

    let known = Known { watches, policies, previewer: previewer.clone(), met };
    start.runs(readiness(leading, certificates.clone(), shutdown.clone(), known));
    let of_agents = agents_namespace(&namespace);
    let agent_reviewer = AgentReviewer::new(client.clone(), &of_agents, AGENT, metrics.clone());
    let reviewer = Reviewer::new(client, &namespace, metrics.clone());
    let warn = warn_by(previewer, boot_images);
    let asked: Router = webhook(warn, metrics.clone(), certificates.paths())
        .merge(lists(reviewer, Arc::new(listed)));
    tracing::info!(
        namespace, replica,
        plain = %plain_at, tls = %tls_port.address(),
        mode = manifests::Mode::from(args.mode).name(), "serves",
    );
    let tls_port = tls_port.counting(&metrics);
    others.spawn(tls_port.serve_tls(certificates.tls(), asked, until()));
    if let Some((port, machines)) = machines_port.zip(machines) {
        let port = port.counting(&metrics);
        others.spawn(port.serve_machines(machines.certificates.tls(), machines.router, until()));
    }
    if let Some((port, agents)) = agents_port.zip(agents) {
        let asked = tread_front::http::agents(agent_reviewer, Arc::new(Answers(agents)));
        let port = port.counting(&metrics);
        others.spawn(port.serve_agents(certificates.tls(), asked, until()));
    }

    tokio::select! {
        // First: the others end because of it.
        biased;
        () = shutdown.begins() => {}
        // None of them ends by itself.
        ended = &mut elected => {
            return Err(anyhow!("the election ended: {ended:?}; please report it"));
        }
        Some(ended) = writers.join_next() => {
            // It may have been told to stop since this was asked above.
            if !shutdown.has_begun() {
                return Err(anyhow!("a part of the service ended: {ended:?}; please report it"));
            }
        }
        Some(ended) = others.join_next() => {
            ended.context("a server ended")?.context("a server ended")?;
            return Err(anyhow!("a server ended; please report it"));
        }
    }
    while writers.join_next().await.is_some() {}
    drop(written);
    let _ = elected.await;
    if variable("POD_NAME").is_some() {
        sleep(STILL_ASKED).await;
    }
    answer.send_replace(false);
    while others.join_next().await.is_some() {}
    tracing::info!("stopped");
    Ok(Exit::Done)
}

fn bind(given: Option<SocketAddr>, port: u16) -> Result<Port> {
    if let Some(address) = given {
        return Ok(Port::bind(address)?);
    }
    let any = |ip: IpAddr| Port::bind(SocketAddr::new(ip, port));
    // Where there is no IPv6, the first one fails.
    Ok(any(Ipv6Addr::UNSPECIFIED.into()).or_else(|_| any(Ipv4Addr::UNSPECIFIED.into()))?)
}

/// A variable that is set to something.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// What this replica is called: the pod, or the machine.
fn replica() -> String {
    let machine = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = variable("POD_NAME").or_else(machine).unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { NAME.to_owned() } else { name.to_owned() }
}

/// Says what a request would do to nodes.
fn warn_by(previewer: Previewer, boot_images: boot_images::Known) -> Warn {
    Arc::new(move |request| {
        let (previewer, boot_images) = (previewer.clone(), boot_images.clone());
        async move {
            let mut lines = boot_images.warnings(&request);
            lines.extend(membership::admit::warnings(&previewer, &boot_images, &request).await);
            let warned = previewer.warnings(request).await;
            lines.extend(warned.lines);
            Warned { lines, ..warned }
        }
        .boxed()
    })
}
