//! The operating system itself: its image, its kernel, the kernel's arguments and its
//! extensions. A tool of the host changes them, and only a boot brings them into effect.
//!
//! What a config wants of them is a [`Wish`]; what is there are [`Deployments`]; what an
//! operation has to bring about is a [`Due`], which its journal keeps. What a tool is told
//! follows from these by pure functions ([`rpm_ostree`], [`bootc`]); [`Os`] tells it.

pub mod arguments;
mod ask;
pub mod bootc;
mod deployments;
mod error;
pub mod extensions;
mod ostree;
pub mod rpm_ostree;
mod run;

pub use ask::{CMDLINE, Os, OsLimits, Tool};
pub use deployments::{Deployment, Deployments, Way};
pub use error::OsError;

use serde::{Deserialize, Serialize};
use tread_model::config::{KernelType, NodeConfig};

/// The changes that only such a tool can make.
pub const IDS: [&str; 4] = [ARGUMENTS, KERNEL, IMAGE, EXTENSIONS];
/// The kernel's arguments.
pub const ARGUMENTS: &str = "kernel-arguments";
/// The kernel.
pub const KERNEL: &str = "kernel-type";
/// The image.
pub const IMAGE: &str = "os-image";
/// The extensions.
pub const EXTENSIONS: &str = "extensions";

/// What a config wants of the operating system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wish {
    /// The image; empty for whatever is there.
    pub image: String,
    /// The kernel's arguments, one token each, in order.
    pub arguments: Vec<String>,
    /// The kernel, as MachineConfigs write it.
    pub kernel: String,
    /// The extensions, by name.
    pub extensions: Vec<String>,
}

impl Wish {
    /// Of a config.
    pub fn of(config: &NodeConfig<'_>) -> Wish {
        let owned = |texts: &[std::borrow::Cow<'_, str>]| {
            texts.iter().map(|text| text.to_string()).collect::<Vec<String>>()
        };
        Wish {
            image: config.os_image.to_string(),
            arguments: owned(&config.kernel_arguments),
            kernel: config.kernel_type.as_str().to_owned(),
            extensions: owned(&config.extensions),
        }
    }

    /// Whether it wants nothing that a host has not by itself.
    pub fn is_none(&self) -> bool {
        self.image.is_empty()
            && self.arguments.is_empty()
            && self.extensions.is_empty()
            && self.has_default_kernel()
    }

    /// Whether it wants the ordinary kernel.
    pub fn has_default_kernel(&self) -> bool {
        self.kernel.is_empty() || self.kernel == KernelType::Default.as_str()
    }
}

/// What an operation has to bring about, from what was there when it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Due {
    /// What the new config wants.
    pub to: Wish,
    /// What the config wanted that is in effect.
    pub from: Wish,
    /// What configs wanted in between, which was staged and never booted.
    #[serde(default)]
    pub passed: Vec<Wish>,
    /// The deployment that was booted.
    pub deployment: String,
    /// All arguments that it was booted with.
    pub arguments: Vec<String>,
}

impl Due {
    /// What was wanted before, the newest last.
    fn earlier(&self) -> impl Iterator<Item = &Wish> {
        std::iter::once(&self.from).chain(&self.passed)
    }

    /// All that configs wanted until now, the newest last: those of which this one's boot never
    /// came, too.
    pub fn over(self) -> Vec<Wish> {
        std::iter::once(self.from).chain(self.passed).chain([self.to]).collect()
    }

    /// As what the boot loader is to have.
    pub fn edit(&self) -> arguments::Edit<'_> {
        let earlier = self.earlier().map(|wish| wish.arguments.as_slice()).collect();
        arguments::Edit { booted: &self.arguments, earlier, to: &self.to.arguments }
    }

    /// The packages that earlier configs had installed, and the new one does not want.
    fn gone(&self) -> Vec<&'static str> {
        let wanted = extensions::packages(&self.to.extensions);
        let mut gone: Vec<&str> =
            self.earlier().flat_map(|wish| extensions::packages(&wish.extensions)).collect();
        gone.retain(|package| !wanted.contains(package));
        gone.sort_unstable();
        gone.dedup();
        gone
    }

    /// What is not as it is to be in a deployment, by what its tool says of it; nothing if
    /// all is.
    pub fn missing(&self, there: &Deployment) -> Option<String> {
        let Wish { image, extensions, .. } = &self.to;
        if !image.is_empty() && !there.has_image(image) {
            return Some(format!("{IMAGE}: it is {}, and not {image}", there.name()));
        }
        let (kernel, wanted) = (there.kernel(), self.kernel());
        if kernel != wanted {
            return Some(format!(
                "{KERNEL}: it is {}, and not {}",
                kernel.as_str(),
                wanted.as_str()
            ));
        }
        let has = |package: &&str| there.packages.iter().any(|it| it == package);
        if let Some(package) = extensions::packages(extensions).into_iter().find(|it| !has(it)) {
            return Some(format!("{EXTENSIONS}: {package} is not installed"));
        }
        let left = self.gone().into_iter().find(|it| has(it));
        left.map(|package| format!("{EXTENSIONS}: {package} is still installed"))
    }

    fn kernel(&self) -> KernelType {
        match self.to.kernel.as_str() {
            "realtime" => KernelType::Realtime,
            "64k-pages" => KernelType::Pages64k,
            _ => KernelType::Default,
        }
    }
}
