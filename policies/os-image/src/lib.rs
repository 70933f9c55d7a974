//! The OS image and its extensions: both are laid out as a new deployment of
//! the operating system, which the node boots into.

use tread_guest_sdk::{Change, Claim, Context, Effect, Policy, Verdict, export};

/// The policy `os-image`.
pub struct OsImage;

impl Policy for OsImage {
    type Settings = ();
    const NAME: &'static str = "os-image";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "The node boots into another OS image or set of extensions";
    const CLAIMS: &'static [Claim] = &[
        Claim::on("os-image", Effect::Reboot, Effect::Reboot),
        Claim::on("extensions", Effect::Reboot, Effect::Reboot),
    ];

    fn classify((): &(), change: &Change, _: &Context<'_>) -> Verdict {
        match change.kind() {
            "os-image" => Verdict::reboot(format!(
                "the node boots into another OS image: {}",
                image_change(change.before.as_text(), change.after.as_text())
            )),
            "extensions" => Verdict::reboot(format!(
                "the node boots into an OS with other extensions: {}",
                extensions(change.before.as_list(), change.after.as_list())
            )),
            _ => Verdict::abstain(),
        }
    }
}

export!(OsImage);

/// An image reference in its parts.
#[derive(Debug, PartialEq, Eq)]
struct Image<'a> {
    /// `quay.io/openshift/rhel-coreos`
    repository: &'a str,
    /// The tag, or what a person needs of a digest.
    version: &'a str,
}

impl<'a> Image<'a> {
    fn of(reference: &'a str) -> Image<'a> {
        let reference = reference.split_once("://").map_or(reference, |(_, rest)| rest);
        if let Some((repository, digest)) = reference.split_once('@') {
            let hex = digest.split_once(':').map_or(digest, |(_, hex)| hex);
            return Image {
                repository: without_tag(repository).0,
                version: hex.get(..12).unwrap_or(hex),
            };
        }
        let (repository, tag) = without_tag(reference);
        Image { repository, version: tag.unwrap_or("latest") }
    }
}

/// The tag stands behind a colon in the last component; one further in front
/// is a port.
fn without_tag(reference: &str) -> (&str, Option<&str>) {
    match reference.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, Some(tag)),
        _ => (reference, None),
    }
}

fn image_change(before: Option<&str>, after: Option<&str>) -> String {
    if let (Some(before), Some(after)) = (before, after)
        && Image::of(before) == Image::of(after)
    {
        // What a person needs of both is the same: `quay.io/os` and `quay.io/os:latest`.
        return format!("from {before} to {after}");
    }
    match (before.map(Image::of), after.map(Image::of)) {
        (Some(old), Some(new)) if old.repository == new.repository => {
            format!("{} from {} to {}", new.repository, old.version, new.version)
        }
        (Some(old), Some(new)) => {
            format!("from {} {} to {} {}", old.repository, old.version, new.repository, new.version)
        }
        (None, Some(new)) => format!("{} {}, where none was set", new.repository, new.version),
        (Some(old), None) => format!(
            "the configuration no longer sets one, it was {} {}",
            old.repository, old.version
        ),
        (None, None) => "what it is cannot be read".to_string(),
    }
}

fn extensions(before: &[String], after: &[String]) -> String {
    let beyond = |these: &[String], others: &[String]| -> Vec<String> {
        these.iter().filter(|name| !others.contains(name)).cloned().collect()
    };
    let (added, removed) = (beyond(after, before), beyond(before, after));
    match (added.is_empty(), removed.is_empty()) {
        (false, true) => format!("with {}", added.join(", ")),
        (true, false) => format!("without {}", removed.join(", ")),
        _ => format!("with {}, without {}", added.join(", "), removed.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_guest_sdk::{State, test};

    const OLD: &str = "sha256:aaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    const NEW: &str = "sha256:ccccccccccccdddddddddddddddddddddddddddddddddddddddddddddddddddd";

    fn image(before: &str, after: &str) -> String {
        let verdict = test::verdict::<OsImage>(test::text("os-image", before, after));
        assert_eq!(verdict.effect(), Some(Effect::Reboot));
        let start = "the node boots into another OS image: ";
        verdict.reason().strip_prefix(start).unwrap().to_string()
    }

    #[test]
    fn images_are_named_by_repository_and_short_digest() {
        assert_eq!(
            image(&format!("quay.io/os/coreos@{OLD}"), &format!("quay.io/os/coreos@{NEW}")),
            "quay.io/os/coreos from aaaaaaaaaaaa to cccccccccccc"
        );
        assert_eq!(
            image("registry:5000/os", &format!("quay.io/os:9.6@{NEW}")),
            "from registry:5000/os latest to quay.io/os cccccccccccc"
        );
        assert_eq!(
            image("ostree-unverified-registry://quay.io/os:9.6", "quay.io/os:9.8"),
            "quay.io/os from 9.6 to 9.8"
        );
        assert_eq!(
            image("quay.io/os", "quay.io/os:latest"),
            "from quay.io/os to quay.io/os:latest"
        );
    }

    #[test]
    fn an_image_may_come_or_go() {
        let change = |before, after| Change { id: "os-image".to_string(), before, after };
        let new = State::Text("quay.io/os:1".to_string());
        let came = test::verdict::<OsImage>(change(State::Absent, new.clone()));
        assert!(came.reason().ends_with("quay.io/os 1, where none was set"), "{}", came.reason());
        let went = test::verdict::<OsImage>(change(new, State::Absent));
        assert!(went.reason().contains("no longer sets one"), "{}", went.reason());
    }

    #[test]
    fn odd_references_are_no_trouble() {
        for odd in ["", "@", ":", "://", "é@sha256:é", "a@b@c"] {
            image(odd, "quay.io/os:1");
        }
    }

    #[test]
    fn extensions_are_named_as_they_come_and_go() {
        for (before, after, expected) in [
            (&["ipsec"][..], &["ipsec", "usbguard"][..], "with usbguard"),
            (&["ipsec", "usbguard"], &["usbguard"], "without ipsec"),
            (&["ipsec"], &["sysstat", "usbguard"], "with sysstat, usbguard, without ipsec"),
            (&[], &["ipsec"], "with ipsec"),
        ] {
            let verdict = test::verdict::<OsImage>(test::list("extensions", before, after));
            assert_eq!(verdict.effect(), Some(Effect::Reboot));
            assert!(verdict.reason().ends_with(&format!("extensions: {expected}")), "{verdict:?}");
        }
    }
}
