//! What the kernel does when a parameter changes while it runs.

use tread_guest_sdk::glob;

/// What a new value of a key needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Writing it: the kernel uses it from then on.
    Writing,
    /// A boot, because of what is said here.
    Boot(&'static str),
    /// Nobody has said.
    Unknown,
}

/// Of the key at this path below `/proc/sys`.
pub fn needs(path: &str) -> Needs {
    let is = |patterns: &[&str]| patterns.iter().any(|pattern| glob::matches(pattern, path));
    if let Some((_, why)) = BOOT.iter().find(|(patterns, _)| is(patterns)) {
        return Needs::Boot(why);
    }
    if is(WRITING) { Needs::Writing } else { Needs::Unknown }
}

/// What a running node should not, or cannot, change.
const BOOT: &[(&[&str], &str)] = &[
    (
        &[
            "kernel/modules_disabled",
            "kernel/kexec_load_disabled",
            "kernel/unprivileged_bpf_disabled",
            "kernel/yama/ptrace_scope",
        ],
        "once it is set, only a boot takes it back",
    ),
    (
        &["net/ipv4/ip_forward"],
        "setting it gives all other parameters of the IPv4 interfaces their defaults",
    ),
    (
        &[
            "net/ipv4/conf/*/forwarding",
            "net/ipv6/conf/*/forwarding",
            "net/ipv6/conf/*/disable_ipv6",
            "net/ipv6/conf/*/accept_ra",
            "net/bridge/*",
        ],
        "addresses, routes and the traffic of pods that run depend on it",
    ),
    (
        &["vm/nr_hugepages*", "vm/nr_overcommit_hugepages", "vm/hugetlb_*"],
        "huge pages are hard to find on a node that has run for a while, and the kubelet counts \
         them when it starts",
    ),
    (&["vm/overcommit_*"], "what runs may get no memory any more"),
    (
        &["fs/suid_dumpable", "kernel/randomize_va_space", "vm/mmap_min_addr", "vm/mmap_rnd_*"],
        "processes that run keep what they started with",
    ),
    (
        &["net/core/default_qdisc", "net/ipv4/conf/default/*", "net/ipv6/conf/default/*"],
        "network interfaces that are there keep what they started with",
    ),
    (
        &[
            "net/core/somaxconn",
            "net/core/{rmem,wmem}_default",
            "net/ipv4/tcp_rmem",
            "net/ipv4/tcp_wmem",
            "net/unix/max_dgram_qlen",
        ],
        "sockets that are there keep what they started with",
    ),
    (&["crypto/*"], "it is fixed at boot"),
];

/// What counts from the moment at which it is written.
const WRITING: &[&str] = &[
    "fs/aio-max-nr",
    "fs/file-max",
    "fs/inotify/*",
    "fs/protected_*",
    "kernel/core_*",
    "kernel/dmesg_restrict",
    "kernel/hung_task_*",
    "kernel/keys/*",
    "kernel/kptr_restrict",
    "kernel/msg{max,mnb,mni}",
    "kernel/numa_balancing",
    "kernel/panic",
    "kernel/panic_on_*",
    "kernel/perf_event_*",
    "kernel/pid_max",
    "kernel/printk*",
    "kernel/sched_*",
    "kernel/sem",
    "kernel/shm{all,max,mni}",
    "kernel/softlockup_*",
    "kernel/sysrq",
    "kernel/threads-max",
    "kernel/watchdog_thresh",
    "net/core/*",
    "net/ipv4/conf/*/{accept_redirects,accept_source_route,arp_announce,arp_ignore,log_martians}",
    "net/ipv4/conf/*/{rp_filter,secure_redirects,send_redirects}",
    "net/ipv4/icmp_*",
    "net/ipv4/igmp_*",
    "net/ipv4/ip_local_*",
    "net/ipv4/neigh/*/*",
    "net/ipv4/tcp_*",
    "net/ipv4/udp_*",
    "net/ipv6/neigh/*/*",
    "net/netfilter/nf_conntrack_*",
    "user/max_*",
    "vm/compaction_proactiveness",
    "vm/dirty_*",
    "vm/max_map_count",
    "vm/min_free_kbytes",
    "vm/oom_*",
    "vm/page-cluster",
    "vm/panic_on_oom",
    "vm/stat_interval",
    "vm/swappiness",
    "vm/vfs_cache_pressure",
    "vm/watermark_*",
    "vm/zone_reclaim_mode",
    "vm/{admin,user}_reserve_kbytes",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_is_needed_where_the_lists_overlap() {
        assert!(matches!(needs("net/core/somaxconn"), Needs::Boot(_)));
        assert_eq!(needs("net/core/rmem_max"), Needs::Writing);
    }

    #[test]
    fn what_sockets_and_processes_keep_needs_a_boot() {
        for path in [
            "fs/suid_dumpable",
            "net/core/rmem_default",
            "net/core/wmem_default",
            "net/ipv4/tcp_rmem",
            "net/ipv4/tcp_wmem",
            "net/unix/max_dgram_qlen",
        ] {
            assert!(matches!(needs(path), Needs::Boot(_)), "{path}");
        }
    }

    #[test]
    fn what_nobody_has_said_anything_of_is_unknown() {
        for path in ["kernel/new_thing", "vm/swappiness/more", "vm", ""] {
            assert_eq!(needs(path), Needs::Unknown, "{path}");
        }
    }
}
