//! Files of the node's network. Files for nmstate are read when the node boots, so
//! that they cost nothing and count from its next boot on; NetworkManager's own files
//! cost a boot.

use tread_guest_sdk::{Change, Claim, Context, Effect, Policy, Verdict, export, glob};

/// The policy `network`.
pub struct Network;

const NMSTATE: &str = "/etc/nmstate/openshift/**";
const NETWORK_MANAGER: &str = "/etc/NetworkManager/**";
const IFCFG: &str = "/etc/sysconfig/network-scripts/**";

// Why; connections hold passwords.
const NMSTATE_READ: &str = "nmstate files are read when the node boots: on a running node they change nothing, and its network is as they say from its next boot on at the earliest";
const CONNECTIONS_STAY: &str = "connections that are up keep their old settings, and activating them again would cut the node off in the middle of the change; at boot they all start anew";

impl Policy for Network {
    type Settings = ();
    const NAME: &'static str = "network";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str =
        "Network configuration: nmstate counts from the next boot on, NetworkManager costs one";
    const CLAIMS: &'static [Claim] = &[
        Claim::on("file:/etc/nmstate/openshift/**", Effect::None, Effect::None),
        Claim::on("file:/etc/NetworkManager/**", Effect::Reboot, Effect::Reboot),
        Claim::on("file:/etc/sysconfig/network-scripts/**", Effect::Reboot, Effect::Reboot),
    ];

    const REASONS: &'static [&'static str] = &[NMSTATE_READ, CONNECTIONS_STAY];

    fn classify((): &(), change: &Change, _: &Context<'_>) -> Verdict {
        let Some(path) = change.path() else { return Verdict::abstain() };
        if glob::matches(NMSTATE, path) {
            return Verdict::nothing(NMSTATE_READ);
        }
        if glob::matches(NETWORK_MANAGER, path) || glob::matches(IFCFG, path) {
            return Verdict::reboot(CONNECTIONS_STAY);
        }
        Verdict::abstain()
    }
}

export!(Network);

#[cfg(test)]
mod tests {
    use super::*;
    use tread_guest_sdk::test;

    #[test]
    fn nmstate_waits_for_the_next_boot_and_the_rest_costs_one() {
        for (path, effect) in [
            ("/etc/nmstate/openshift/cluster.yml", Effect::None),
            ("/etc/nmstate/openshift/worker-0.yml", Effect::None),
            ("/etc/NetworkManager/NetworkManager.conf", Effect::Reboot),
            ("/etc/NetworkManager/conf.d/99-keyfiles.conf", Effect::Reboot),
            ("/etc/NetworkManager/system-connections/eth0.nmconnection", Effect::Reboot),
            ("/etc/NetworkManager/dispatcher.d/30-resolv-prepender", Effect::Reboot),
            ("/etc/sysconfig/network-scripts/ifcfg-eth0", Effect::Reboot),
        ] {
            for change in [
                test::file(path, "a", "b"),
                test::file_added(path, "b"),
                test::file_removed(path, "a"),
            ] {
                let verdict = test::verdict::<Network>(change);
                assert_eq!(verdict.effect(), Some(effect), "{path}");
                let waits = verdict.reason().contains("from its next boot on");
                assert_eq!(waits, effect == Effect::None, "{path}: {}", verdict.reason());
            }
        }
    }
}
