//! ostree, which keeps the deployments of either tool: what is told to it itself.

/// The program.
pub(super) const PROGRAM: &str = "/usr/bin/ostree";

/// What has what is staged forgotten: bootc has no command for that itself.
pub(super) fn unstage() -> Vec<String> {
    ["admin", "undeploy", "0"].map(str::to_owned).to_vec()
}

/// What lets the next boot bring one of the deployments, by its place in their order.
pub(super) fn set_default(place: usize) -> Vec<String> {
    ["admin", "set-default", &place.to_string()].map(str::to_owned).to_vec()
}
