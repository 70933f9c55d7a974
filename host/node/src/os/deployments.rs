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
    /// The ids of all that its tool tells of, in their order: the first is what the next boot
    /// brings.
    pub order: Vec<String>,
}

/// What lets the next boot bring a deployment that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The tool's `rollback`.
    Rollback,
    /// `ostree admin set-default`, with its place.
    Default(usize),
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

    /// What lets the next boot bring one of them; nothing where it is not there.
    pub fn way_to(&self, id: &str) -> Option<Way> {
        let place = self.order.iter().position(|it| it == id)?;
        Some(if self.after_rollback() == id { Way::Rollback } else { Way::Default(place) })
    }

    /// What the tool's `rollback` brings: what stands behind what is booted, also where that is not
    /// what was there before; or what is booted, where nothing does.
    fn after_rollback(&self) -> &str {
        let behind = self.order.iter().skip_while(|it| **it != self.booted.id).nth(1);
        behind.map_or(&self.booted.id, String::as_str)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollback_is_the_way_only_where_nothing_else_stands_behind_what_is_booted() {
        for (order, booted, id, expected) in [
            // As after its own boot, with what was there before behind it.
            ("new old", "new", "old", Some(Way::Rollback)),
            ("new old pinned", "new", "old", Some(Way::Rollback)),
            ("new pinned old", "new", "old", Some(Way::Default(2))),
            // As chosen in the boot menu.
            ("new old", "old", "old", Some(Way::Rollback)),
            ("new old pinned", "old", "old", Some(Way::Default(1))),
            ("new pinned old", "old", "old", Some(Way::Rollback)),
            ("new old pinned", "pinned", "old", Some(Way::Default(1))),
            ("new pinned", "new", "old", None),
        ] {
            let booted = Deployment { id: booted.to_owned(), ..Deployment::default() };
            let all = order.split(' ').map(str::to_owned).collect();
            let there = Deployments { booted, next: None, order: all };
            assert_eq!(there.way_to(id), expected, "{order}, in {}", there.booted.id);
        }
    }
}
