//! Extensions that not every kernel has.

use crate::config::{Fault, KernelType, NodeConfig};

/// The id of the change.
pub(super) const EXTENSIONS: &str = "extensions";

/// The field of a MachineConfig.
pub(crate) const FIELD: &str = "spec.extensions";

/// The extension that comes with the default kernel alone.
pub(crate) const KERNEL_DEVEL: &str = "kernel-devel";

/// Why a pool with this kernel cannot have these extensions: OpenShift's operator renders
/// nothing for it then.
pub(crate) fn why_not_beside<'e>(
    kernel_type: &str,
    mut extensions: impl Iterator<Item = &'e str>,
) -> Option<String> {
    if kernel_type == KernelType::Default.as_str() || !extensions.any(|it| it == KERNEL_DEVEL) {
        return None;
    }
    Some(format!(
        "{KERNEL_DEVEL} is for the default kernel, and the pool has kernelType {kernel_type}. \
         Take one of both out."
    ))
}

/// What is wrong with the extensions of a config.
pub(super) fn fault(config: &NodeConfig<'_>) -> Option<Fault> {
    let extensions = config.extensions.iter().map(AsRef::as_ref);
    let reason = why_not_beside(config.kernel_type.as_str(), extensions)?;
    Some(Fault { id: EXTENSIONS.to_owned(), field: FIELD.to_owned(), reason, by_parser: false })
}
