//! OpenShift's default nodeDisruptionPolicy: the entries that are in force where an
//! admin has written no other.

use super::action::{CRIO, OperatorAction};
use crate::path::REGISTRIES_CONF;
use crate::plan::CA_TRUST_UNIT;
use OperatorAction::{DaemonReload, Special};
use std::borrow::Cow;

/// The paths that have an entry, in the operator's order.
pub(crate) fn paths() -> impl DoubleEndedIterator<Item = &'static str> + Clone {
    FILES.iter().map(|(path, _)| *path)
}

/// What is done for each of them.
pub(super) static FILES: [(&str, &[OperatorAction]); 13] = [
    ("/var/lib/kubelet/config.json", &[NOTHING]),
    ("/etc/machine-config-daemon/no-reboot/containers-gpg.pub", &[reload(CRIO)]),
    ("/etc/containers/policy.json", &[reload(CRIO)]),
    (REGISTRIES_CONF, &[Special]),
    ("/etc/containers/registries.d", &[reload(CRIO)]),
    ("/etc/crio/policies", &[reload(CRIO)]),
    ("/etc/nmstate/openshift", &[NOTHING]),
    (
        "/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt",
        &[restart(CA_TRUST_UNIT), restart(CRIO)],
    ),
    ("/etc/kubernetes/credential-providers", &[restart(KUBELET)]),
    (
        "/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf",
        &[DaemonReload, restart(KUBELET)],
    ),
    ("/etc/iri-registry", &[restart(UNIT)]),
    ("/usr/local/bin/load-registry-image.sh", &[restart(UNIT)]),
    ("/etc/pki/ca-trust/source/anchors/iri-root-ca.crt", &[restart(CA_TRUST_UNIT)]),
];

/// The one unit that has an entry.
pub(crate) const UNIT: &str = "iri-registry.service";
pub(super) const UNIT_ACTIONS: [OperatorAction; 2] = [DaemonReload, restart(UNIT)];

/// For the keys and the password of the one user.
pub(super) const SSH_KEYS_ACTIONS: [OperatorAction; 1] = [NOTHING];

const NOTHING: OperatorAction = OperatorAction::None;
const KUBELET: &str = "kubelet.service";

const fn reload(unit: &'static str) -> OperatorAction {
    OperatorAction::Reload(Cow::Borrowed(unit))
}

const fn restart(unit: &'static str) -> OperatorAction {
    OperatorAction::Restart(Cow::Borrowed(unit))
}
