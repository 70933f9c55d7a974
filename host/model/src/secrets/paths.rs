//! Files that count as secrets because of their path, whatever their mode: if a
//! mistake lets everybody on the node read one, its contents must not spread further.

/// Whether what stands at this path is a secret, whatever its mode. The path is
/// absolute and clean.
pub(super) fn is_known(path: &str) -> bool {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let parent = last(directory);
    is_credential(directory, parent, name)
        || is_private_key(directory, parent, name)
        || is_kubeconfig(directory, parent, name)
        || is_password_file(path, name)
}

/// What logs in to registries: pull secrets, and what podman, CRI-O, docker and
/// ostree keep.
fn is_credential(directory: &str, parent: &str, name: &str) -> bool {
    match name {
        "config.json" => directory == "/var/lib/kubelet" || parent == ".docker",
        "auth.json" => {
            matches!(parent, "ostree" | "containers" | ".containers")
                || is_below_containers(directory)
        }
        ".dockercfg" | ".dockerconfigjson" | ".netrc" | "pull-secret" | "pull-secret.json" => true,
        _ => false,
    }
}

/// `/run/containers/0`, where there is a directory for each user.
fn is_below_containers(directory: &str) -> bool {
    directory.rsplit_once('/').is_some_and(|(above, user)| {
        last(above) == "containers" && user.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Private keys of TLS, SSH, WireGuard and Kerberos, and stores of keys.
fn is_private_key(directory: &str, parent: &str, name: &str) -> bool {
    const ENDINGS: [&str; 9] =
        [".key", ".keytab", ".p12", ".pfx", ".jks", "-key.pem", "_key.pem", ".key.pem", ".keys"];
    let is_ssh_key =
        (directory == "/etc/ssh" && name.starts_with("ssh_host_") && name.ends_with("_key"))
            || (parent == ".ssh" && name.starts_with("id_") && !name.ends_with(".pub"));
    let is_pki = directory == "/etc/pki" || directory.starts_with("/etc/pki/");
    is_ssh_key
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || matches!(name, "key.pem" | "privkey.pem")
        || directory.split('/').any(|part| part == "private")
        // The kubelet keeps certificate and key in one file.
        || (directory == "/var/lib/kubelet/pki" && name.ends_with(".pem"))
        || (is_pki && name.contains("private"))
        || directory == "/etc/wireguard"
        || directory.starts_with("/etc/wireguard/")
}

/// What lets its reader act on a cluster.
fn is_kubeconfig(directory: &str, parent: &str, name: &str) -> bool {
    name == "kubeconfig"
        || name.ends_with(".kubeconfig")
        || name.ends_with("-kubeconfig")
        || name.starts_with("kubeconfig-")
        || name.starts_with("kubeconfig.")
        || (parent == ".kube" && name == "config")
        || (directory == "/etc/kubernetes" && name == "admin.conf")
        || (directory.starts_with("/etc/kubernetes/")
            && directory.split('/').any(|it| it == "secrets"))
}

/// Hashes and passwords in the clear.
fn is_password_file(path: &str, name: &str) -> bool {
    const FILES: [&str; 9] = [
        "/etc/shadow",
        "/etc/shadow-",
        "/etc/gshadow",
        "/etc/gshadow-",
        "/etc/security/opasswd",
        "/etc/ipsec.secrets",
        "/etc/sssd/sssd.conf",
        "/etc/ppp/chap-secrets",
        "/etc/ppp/pap-secrets",
    ];
    FILES.contains(&path)
        || path.starts_with("/etc/NetworkManager/system-connections/")
        || (path.starts_with("/etc/ipsec.d/") && name.ends_with(".secrets"))
}

fn last(directory: &str) -> &str {
    directory.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_logs_in_opens_or_proves_is_known_by_its_path() {
        for path in [
            "/var/lib/kubelet/config.json",
            "/root/.docker/config.json",
            "/home/core/.docker/config.json",
            "/root/.dockercfg",
            "/run/containers/0/auth.json",
            "/etc/containers/auth.json",
            "/root/.config/containers/auth.json",
            "/etc/ostree/auth.json",
            "/etc/pki/tls/private/node.pem",
            "/etc/pki/entitlement/123-key.pem",
            "/etc/pki/consumer/key.pem",
            "/etc/pki/ca/ca.key",
            "/etc/ssl/private/node.crt",
            "/etc/kubernetes/kubelet.key",
            "/var/lib/kubelet/pki/kubelet-client-current.pem",
            "/etc/ssh/ssh_host_ed25519_key",
            "/home/core/.ssh/id_ed25519",
            "/etc/krb5.keytab",
            "/etc/chrony.keys",
            "/etc/wireguard/wg0.conf",
            "/etc/kubernetes/kubeconfig",
            "/var/lib/kubelet/kubeconfig",
            "/etc/kubernetes/static-pod-resources/a/secrets/token",
            "/etc/kubernetes/node.kubeconfig",
            "/root/.kube/config",
            "/etc/kubernetes/admin.conf",
            "/etc/shadow",
            "/etc/NetworkManager/system-connections/wifi.nmconnection",
            "/etc/ipsec.d/site.secrets",
        ] {
            assert!(is_known(path), "{path}");
        }
    }

    #[test]
    fn what_everybody_may_know_is_not_taken_for_a_secret() {
        for path in [
            "/etc/containers/registries.conf",
            "/etc/containers/policy.json",
            "/etc/crio/crio.conf.d/config.json",
            "/etc/kubernetes/kubelet.conf",
            "/etc/kubernetes/kubelet-ca.crt",
            "/etc/kubernetes/cloud.conf",
            "/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt",
            "/etc/pki/tls/certs/node.pem",
            "/etc/pki/rpm-gpg/RPM-GPG-KEY-redhat-release",
            "/etc/ssh/ssh_host_ed25519_key.pub",
            "/etc/ssh/sshd_config",
            "/home/core/.ssh/id_ed25519.pub",
            "/home/core/.ssh/authorized_keys",
            "/etc/chrony.conf",
            "/etc/NetworkManager/conf.d/a.conf",
            "/etc/machine-config-daemon/no-reboot/containers-gpg.pub",
            "/etc/keyboard",
            "/etc/monkey",
            "/etc/passwd",
            "/",
            "",
        ] {
            assert!(!is_known(path), "{path}");
        }
    }
}
