//! Why the operating system is not changed.

use super::extensions;
use crate::systemd::Problem;
use crate::tree::PathError;

/// Why the operating system is not changed. Each says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum OsError {
    /// There is nothing on this host that could do it.
    #[error(
        "{0} cannot be changed on this host: it is run by neither rpm-ostree nor bootc. Leave it out of this pool's configs, or change it with the tool that made the host"
    )]
    NoTool(String),
    /// bootc has no command for it.
    #[error(
        "{0} cannot be changed on this host: bootc has no command for it. Build it into the OS image, and name that image in the config"
    )]
    NotByBootc(&'static str),
    /// bootc does not tell what it would take to undo it.
    #[error(
        "os-image cannot be changed on this host: bootc does not keep its deployments with ostree here, and then cannot take one back that it staged. Install the image by hand"
    )]
    NoOstree,
    /// Nobody says which image.
    #[error(
        "the new config names no OS image, and the one before did: nobody knows which one is wanted. Name one by osImageURL"
    )]
    NoImage,
    /// Nobody knows what it is made of.
    #[error("extensions: {0} is none that tread knows; those are {known}", known = extensions::known())]
    Extension(String),
    /// It is not made for this processor.
    #[error("kernel-type: 64k-pages is a kernel for aarch64 only, and this node is {0}")]
    Processor(&'static str),
    /// Both kernels need their own.
    #[error("extensions: kernel-devel is of the default kernel, and the config has another one")]
    KernelDevel,
    /// The tool was not asked, or failed.
    #[error("{0}")]
    Tool(#[from] Problem),
    /// A file of the host cannot be looked at.
    #[error(transparent)]
    Path(#[from] PathError),
    /// What the tool says cannot be read.
    #[error("{0}")]
    Said(String),
    /// The tool ended well, and did not do it.
    #[error("{command} ended well, and what the next boot brings is not as it is to be: {missing}")]
    Idle {
        /// What was told.
        command: String,
        /// What is not as it is to be.
        missing: String,
    },
}
