//! All that an agent gets of its host. The manifest and the tests are made of this list.

/// Something of the host that an agent sees, under the same path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mount {
    /// The path, on the host and in the container.
    pub path: &'static str,
    /// What Kubernetes calls it: `Socket`, `DirectoryOrCreate`.
    pub kind: &'static str,
}

/// The system bus, by which systemd is asked, and tread's own folder.
pub const MOUNTS: [Mount; 2] = [
    Mount { path: "/run/dbus/system_bus_socket", kind: "Socket" },
    Mount { path: "/var/lib/tread", kind: "DirectoryOrCreate" },
];

/// Root, since systemd takes orders from root alone.
pub const USER: u32 = 0;

/// None: what root may do by capabilities, an agent does not do.
pub const CAPABILITIES: [&str; 0] = [];
