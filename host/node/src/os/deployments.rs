//! What a host can boot, in the same words whatever tool says it.

use super::extensions;
use tread_model::config::KernelType;

/// What a host can boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployments {
    /// What it is booted into.
    pub booted: Deployment,
    /// What the next boot is to bring; nothing if that is what is booted.
    pub next: Option<Deployment>,
    /// The ids of all others.
    pub others: Vec<String>,
}

/// One of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deployment {
    /// What it is called, for as long as it is there.
    pub id: String,
    /// The image that it was made of, without the way that it came; empty where that is none.
    pub image: String,
    /// The digest of that image: `sha256:…`.
    pub digest: String,
    /// Whether it becomes bootable only when the node goes down in order.
    pub staged: bool,
    /// The packages that somebody asked for besides.
    pub packages: Vec<String>,
    /// The packages of the image that somebody took away.
    pub removed: Vec<String>,
}

impl Deployments {
    /// What the next boot brings, as far as is known now.
    pub fn at_next_boot(&self) -> &Deployment {
        self.next.as_ref().unwrap_or(&self.booted)
    }

    /// Another one that the next boot brings, which was not made of what is booted now: as after
    /// a rollback.
    pub fn queued(&self) -> Option<&Deployment> {
        self.next.as_ref().filter(|next| !next.staged)
    }
}

impl Deployment {
    /// Whether it was made of an image: of the same digest, where that is named.
    pub fn has_image(&self, wanted: &str) -> bool {
        match wanted.rsplit_once('@') {
            Some((_, digest)) => {
                self.digest == digest
                    || self.image.rsplit_once('@').is_some_and(|(_, own)| own == digest)
            }
            None => self.image == wanted,
        }
    }

    /// What it is called in a sentence.
    pub fn name(&self) -> &str {
        if self.image.is_empty() { &self.id } else { &self.image }
    }

    /// The kernel, by the packages that it has.
    pub fn kernel(&self) -> KernelType {
        let has = |kernel: KernelType| {
            let mut of_it = extensions::kernel(kernel).iter().copied();
            of_it.next().is_some_and(|first| self.packages.iter().any(|it| it == first))
        };
        match () {
            () if has(KernelType::Realtime) => KernelType::Realtime,
            () if has(KernelType::Pages64k) => KernelType::Pages64k,
            () => KernelType::Default,
        }
    }
}

/// A reference without the way that the image comes.
pub(super) fn without_transport(reference: &str) -> &str {
    let reference = ["ostree-unverified-registry:", "ostree-unverified-image:"]
        .iter()
        .chain(&["ostree-image-signed:", "registry:"])
        .find_map(|way| reference.strip_prefix(way))
        .unwrap_or(reference);
    let reference = match reference.strip_prefix("ostree-remote-registry:") {
        Some(rest) => rest.split_once(':').map_or(rest, |(_, image)| image),
        None => reference,
    };
    reference.strip_prefix("docker://").unwrap_or(reference)
}
