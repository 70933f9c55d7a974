//! What extensions and kernels are made of: the packages that OpenShift installs for them.

use tread_model::config::KernelType;

/// The packages of each extension.
const EXTENSIONS: [(&str, &[&str]); 8] = [
    ("ipsec", &["NetworkManager-libreswan", "libreswan"]),
    ("kerberos", &["krb5-workstation", "libkadm5"]),
    ("kernel-devel", &["kernel-devel", "kernel-headers"]),
    ("sandboxed-containers", &["kata-containers"]),
    ("sysstat", &["sysstat"]),
    ("two-node-ha", &["pacemaker", "pcs", "fence-agents-all"]),
    ("usbguard", &["usbguard"]),
    ("wasm", &["crun-wasm"]),
];

/// Those of the ordinary kernel, which another one takes the place of.
pub const DEFAULT_KERNEL: [&str; 5] =
    ["kernel", "kernel-core", "kernel-modules", "kernel-modules-core", "kernel-modules-extra"];

/// The packages of a kernel, beside those of the ordinary one.
pub fn kernel(kernel: KernelType) -> &'static [&'static str] {
    match kernel {
        KernelType::Default => &[],
        KernelType::Realtime => &["kernel-rt-core", "kernel-rt-modules", "kernel-rt-modules-extra"],
        KernelType::Pages64k => &[
            "kernel-64k-core",
            "kernel-64k-modules",
            "kernel-64k-modules-core",
            "kernel-64k-modules-extra",
        ],
    }
}

fn of(name: &str) -> Option<&'static [&'static str]> {
    EXTENSIONS.iter().find(|(it, _)| *it == name).map(|(_, packages)| *packages)
}

/// The packages of some extensions, sorted, each once.
pub fn packages(names: &[String]) -> Vec<&'static str> {
    let mut all: Vec<&str> = names.iter().filter_map(|name| of(name)).flatten().copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// An extension that nobody knows the packages of.
pub fn unknown(names: &[String]) -> Option<&str> {
    names.iter().map(String::as_str).find(|name| of(name).is_none())
}

/// Those that there are, for a sentence.
pub fn known() -> String {
    EXTENSIONS.map(|(name, _)| name).join(", ")
}
