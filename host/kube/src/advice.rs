//! What an admin is told to do, in the same words wherever something is missing.

/// What brings an installation what it lacks. The plain command prints another one: in the mode
/// `advise`, in the namespace `tread-system`.
pub const INSTALL_AGAIN: &str = "apply what `tread manifests` of this version prints with the options \
    that tread was installed with, --mode and --namespace among them";

/// What brings the definitions of MachineConfig and MachineConfigPool.
pub const INSTALL_INPUTS: &str = "apply what `tread manifests` prints with --with-inputs and the options \
    that tread is installed with";
