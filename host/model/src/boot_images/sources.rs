//! The sources that say which version a resource boots, by rank. The first one that
//! says anything is believed, even if what it says cannot be read.

use super::document::shown;
use super::version::{ImageVersion, Release};
use serde::{Deserialize, Serialize};

/// Who says which version an image has. The first is believed most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum KnownBy {
    /// An admin, by an annotation of the resource.
    Annotation,
    /// The stream metadata of a release.
    Catalogue,
    /// The name of the image.
    Name,
    /// What OpenShift's own updater recorded.
    Updater,
    /// A node that booted from it.
    Aleph,
    /// Assumed: the release that the cluster was installed with.
    Install,
    /// Nobody.
    Unknown,
}

impl KnownBy {
    /// As it is shown.
    pub fn as_str(self) -> &'static str {
        match self {
            KnownBy::Annotation => "Annotation",
            KnownBy::Catalogue => "Catalogue",
            KnownBy::Name => "Name",
            KnownBy::Updater => "Updater",
            KnownBy::Aleph => "Aleph",
            KnownBy::Install => "Install",
            KnownBy::Unknown => "Unknown",
        }
    }

    /// How a sentence goes on after the version.
    pub fn in_words(self) -> &'static str {
        match self {
            KnownBy::Annotation => "by its annotation tread.dev/boot-image",
            KnownBy::Catalogue => "by the stream metadata of that release",
            KnownBy::Name => "by the image's name",
            KnownBy::Updater => "by what OpenShift's boot image updater recorded",
            KnownBy::Aleph => "by the newest node that booted from it",
            KnownBy::Install => "assumed: the release that the cluster was installed with",
            KnownBy::Unknown => "nobody knows it",
        }
    }
}

/// What each source says of one image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// The annotation of the resource.
    pub annotation: Option<String>,
    /// The stream metadata in which the image is found.
    pub catalogues: Vec<ImageVersion>,
    /// Why the catalogue of the running release cannot be asked yet.
    pub catalogue_waits: Option<String>,
    /// Names that may hold a version.
    pub names: Vec<ImageVersion>,
    /// What the updater recorded, where it manages the resource: one version or both.
    pub updater: Vec<String>,
    /// What a node from it says of its first boot.
    pub aleph: Option<String>,
    /// The release that the cluster was installed with, for an image that a
    /// resource as old as the cluster has.
    pub install: Option<Release>,
    /// Why nothing is known, where it is not the image: a resource that cannot be read.
    pub problem: Option<String>,
}

/// Which version an image has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// This one.
    Version(KnownBy, ImageVersion),
    /// Something that is no version.
    Unreadable(KnownBy, String),
    /// It will be known: what it waits for.
    NotYet(String),
    /// Nobody knows, and why.
    Unknown(String),
}

impl Found {
    /// Who said so.
    pub fn by(&self) -> KnownBy {
        match self {
            Found::Version(by, _) | Found::Unreadable(by, _) => *by,
            Found::NotYet(_) | Found::Unknown(_) => KnownBy::Unknown,
        }
    }

    /// The version, if there is one.
    pub fn version(&self) -> Option<&ImageVersion> {
        match self {
            Found::Version(_, version) => Some(version),
            _ => None,
        }
    }
}

impl Sources {
    /// What the first source says that says anything.
    pub fn best(&self) -> Found {
        if let Some(text) = &self.annotation {
            return read(KnownBy::Annotation, text);
        }
        for (by, said) in [(KnownBy::Catalogue, &self.catalogues), (KnownBy::Name, &self.names)] {
            if let Some(version) = said.iter().cloned().reduce(ImageVersion::older_of) {
                return Found::Version(by, version);
            }
        }
        let recorded = self.updater.iter().map(|text| read(KnownBy::Updater, text));
        if let Some(found) = recorded.reduce(both) {
            return found;
        }
        if let Some(text) = &self.aleph {
            return read(KnownBy::Aleph, text);
        }
        // While the catalogue is still to be asked, the release of the installation is
        // not assumed in its place.
        if let (Some(waits), None) = (&self.catalogue_waits, &self.problem) {
            return Found::NotYet(waits.clone());
        }
        match (self.install, &self.problem) {
            (Some(release), _) => {
                Found::Version(KnownBy::Install, ImageVersion::of_release(release))
            }
            (None, Some(problem)) => Found::Unknown(problem.clone()),
            (None, None) => Found::Unknown(
                "it is in no stream metadata that tread knows, and its name holds no version"
                    .to_owned(),
            ),
        }
    }
}

/// Both records together: the older version counts. If one cannot be read, neither
/// counts.
fn both(one: Found, two: Found) -> Found {
    match (one, two) {
        (Found::Version(by, one), Found::Version(_, two)) => Found::Version(by, one.older_of(two)),
        (bad @ Found::Unreadable(..), _) | (_, bad) => bad,
    }
}

fn read(by: KnownBy, text: &str) -> Found {
    match ImageVersion::parse(text.trim()) {
        Some(version) => Found::Version(by, version),
        None => Found::Unreadable(by, shown(text)),
    }
}
