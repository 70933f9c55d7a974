//! What is to be installed.

use std::time::Duration;
use tread_model::object_name::is_possible;

/// What tread does in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// It lists, previews, warns and measures, and writes to no node, pool or config.
    #[default]
    Advise,
    /// It brings nodes to the configs of their pools, with an agent on each.
    Enforce,
}

impl Mode {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Advise => "advise",
            Mode::Enforce => "enforce",
        }
    }
}

/// What to install.
#[derive(Debug, Clone)]
pub struct Options {
    /// What it does.
    pub mode: Mode,
    /// Where it runs.
    pub namespace: String,
    /// Its image.
    pub image: String,
    /// With the definitions of MachineConfig and MachineConfigPool, for clusters
    /// that have none.
    pub with_inputs: bool,
    /// Without the definitions of tread's own objects: what is removed without
    /// them leaves all DisruptionPolicies there.
    pub without_definitions: bool,
    /// With what Prometheus' operator takes.
    pub with_monitoring: bool,
    /// With the right to hold back updates of OpenShift for boot images.
    pub block_upgrades: bool,
    /// In the mode enforce: with the right to delete pods whatever their budgets say, where a
    /// Rollout asks for it.
    pub delete_pods: bool,
    /// Where it runs outside of the cluster, as `https://HOST:PORT`: then only
    /// definitions, rights and the webhook are installed.
    pub outside: Option<String>,
    /// In the mode enforce: where machines that boot ask, as they reach it from outside of the
    /// cluster.
    pub ignition: Option<Ignition>,
    /// The namespace of the nodes' Leases.
    pub leases: String,
    /// In the mode enforce: for how long a node has to be Ready before it is done, unless that is
    /// as always.
    pub ready_for: Option<Duration>,
    /// In the mode enforce: how long a boot and what follows it may take, unless that is as always.
    pub boot_for: Option<Duration>,
    /// In the mode enforce: the Secret in which an admin gives the kubeconfig by which kubelets
    /// register, unless it is called as always.
    pub bootstrap: Option<String>,
    /// How they join: arguments of `tread serve`.
    pub joining: Vec<String>,
    /// What agents get of their hosts.
    pub host: OfHost,
}

/// Where machines ask that boot for the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignition {
    /// A name or an address.
    pub host: String,
    /// The port. One of those that Kubernetes gives to nodes is one of each node.
    pub port: u16,
}

impl Ignition {
    /// Reads `HOST:PORT`; an address of IPv6 stands in brackets.
    pub fn read(text: &str) -> Option<Ignition> {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok().filter(|port| *port > 0)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_good = match bare {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && is_possible(host),
        };
        is_good.then(|| Ignition { host: bare.unwrap_or(host).to_owned(), port })
    }

    /// Whether the port is one of each node.
    pub fn is_of_nodes(&self) -> bool {
        (30_000..=32_767).contains(&self.port)
    }
}

impl std::fmt::Display for Ignition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for (text, of_nodes) in [
            ("ignition.example:22623", false),
            ("192.0.2.1:30623", true),
            ("[2001:db8::1]:22623", false),
        ] {
            let read = Ignition::read(text).unwrap();
            assert_eq!((read.to_string().as_str(), read.is_of_nodes()), (text, of_nodes));
        }
        for bad in [
            "",
            "a",
            "a:",
            ":1",
            "a:0",
            "a:70000",
            "2001:db8::1:1",
            "https://a:1",
            "a/b:1",
            "[a]:1",
        ] {
            assert_eq!(Ignition::read(bad), None, "{bad}");
        }
    }
}

/// What an agent gets of its host.
#[derive(Debug, Clone, Default)]
pub struct OfHost {
    /// Paths of the host, which it sees under the same ones, and what Kubernetes calls
    /// each: `Socket`, `DirectoryOrCreate`.
    pub mounts: Vec<(&'static str, &'static str)>,
    /// Its user.
    pub user: u32,
    /// What that one may do besides.
    pub capabilities: Vec<&'static str>,
}
