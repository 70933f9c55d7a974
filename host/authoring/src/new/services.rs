//! Which service reads a file, as far as names tell.

use std::cmp::Reverse;
use std::fmt::Write as _;
use tread_model::claim::Pattern;
use tread_model::touch::touch_gently;

/// Who reads the files of a policy.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Readers {
    /// One service reads the one file.
    One(String),
    /// Each claim on files, the closest first, with the service of it, if names tell that.
    Each(Vec<(String, Option<String>)>),
}

impl Readers {
    /// Of the policy `name`, with these claims on files and these units claimed beside them. One
    /// file is for the one service beside it, or for one of the policy's name.
    pub(super) fn guess(name: &str, files: &[&str], units: &[&str]) -> Readers {
        let services: Vec<&str> =
            units.iter().copied().filter(|unit| unit.ends_with(".service")).collect();
        let own = format!("{name}.service");
        let only = match services.as_slice() {
            [] => Some(own.as_str()),
            [only] => Some(*only),
            _ => None,
        };
        // What no policy may touch is no answer to give.
        let only = only.filter(|service| files.len() <= 1 && touch_gently(service).is_ok());
        if let Some(only) = only {
            return Readers::One(only.to_owned());
        }
        let of = |file: &&str| nearest(file, &services).or_else(|| nearest(file, &[&own]));
        let mut each: Vec<_> = files.iter().map(|file| ((*file).to_owned(), of(file))).collect();
        each.sort_by_key(|(file, _)| {
            Reverse(Pattern::parse(file).ok().map(|pattern| pattern.specificity()))
        });
        Readers::Each(each)
    }

    /// The service that the policy will name for a change of a file.
    pub(super) fn service_of(&self, id: &str) -> Option<&str> {
        let matches = |file: &str| Pattern::parse(file).is_ok_and(|pattern| pattern.matches(id));
        match self {
            Readers::One(service) => Some(service),
            Readers::Each(each) => each.iter().find(|(file, _)| matches(file))?.1.as_deref(),
        }
    }

    /// The lines of the table in the policy's source.
    pub(super) fn rows(&self) -> String {
        let Readers::Each(each) = self else { return String::new() };
        let mut rows = String::new();
        for (file, service) in each {
            let Some(glob) = file.strip_prefix("file:") else { continue };
            // Writing to a string cannot fail.
            let _ = writeln!(rows, "    ({glob:?}, {service:?}),");
        }
        rows
    }
}

/// The service whose words all stand in the path; of several the one with the most words, and
/// none if that are several, too.
fn nearest(file: &str, services: &[&str]) -> Option<String> {
    let path = words(&literal(file.strip_prefix("file:")?));
    let shared = |service: &str| {
        let words = words(service.strip_suffix(".service").unwrap_or(service));
        let all = words.iter().all(|word| path.iter().any(|other| is_same(word, other)));
        (all && touch_gently(service).is_ok()).then_some(words.len())
    };
    let most = services.iter().filter_map(|service| shared(service)).max().filter(|it| *it > 0)?;
    let mut best = services.iter().filter(|service| shared(service) == Some(most));
    best.next().filter(|_| best.next().is_none()).map(|service| (*service).to_owned())
}

/// The path without what stands for one of several.
fn literal(glob: &str) -> String {
    let mut depth = 0usize;
    let mut plain = String::new();
    for c in glob.chars() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain
}

fn words(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric());
    parts.filter(|part| !part.is_empty()).map(str::to_ascii_lowercase).collect()
}

/// `chronyd` serves what is named `chrony`.
fn is_same(one: &str, other: &str) -> bool {
    let stem = |word: &str| word.strip_suffix('d').unwrap_or(word).to_owned();
    one == other || (one.len() > 2 && other.len() > 2 && stem(one) == stem(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_for_the_service_that_its_path_names_and_for_no_other() {
        for (file, services, found) in [
            ("/etc/chrony.conf", &["chronyd.service", "keepalived.service"][..], "chronyd.service"),
            (
                "/etc/keepalived/*.conf",
                &["chronyd.service", "keepalived.service"],
                "keepalived.service",
            ),
            ("/etc/ssh/sshd_config", &["sshd.service"], "sshd.service"),
            (
                "/etc/systemd/journald.conf",
                &["systemd-journald.service"],
                "systemd-journald.service",
            ),
            ("/etc/systemd/other.conf", &["systemd-journald.service"], ""),
            (
                "/etc/NetworkManager/conf.d/**",
                &["NetworkManager.service"],
                "NetworkManager.service",
            ),
            ("/etc/chrony.conf", &["chrony-wait.service"], ""),
            ("/etc/{chrony,ntp}.conf", &["chronyd.service"], ""),
            ("/etc/app.conf", &["app@blue.service", "app@green.service"], ""),
            (
                "/etc/app/green.conf",
                &["app@blue.service", "app@green.service"],
                "app@green.service",
            ),
            ("/etc/chrony.conf", &["chrony.service", "chronyd.service"], ""),
            ("/etc/a-b.conf", &["a.service", "b.service"], ""),
            ("/etc/dbus/a.conf", &["dbus.service"], ""),
            ("/etc/**", &["a.service"], ""),
        ] {
            let nearest = nearest(&format!("file:{file}"), services).unwrap_or_default();
            assert_eq!(nearest, found, "{file} {services:?}");
        }
    }

    #[test]
    fn of_claims_that_match_a_file_the_closest_decides() {
        let files = ["file:/etc/**", "file:/etc/a.d/*", "file:/etc/a.d/b.conf"];
        let readers = Readers::guess("x", &files, &["a.service", "b.service"]);
        assert_eq!(
            readers.rows(),
            "    (\"/etc/a.d/b.conf\", None),\n    (\"/etc/a.d/*\", Some(\"a.service\")),\n    \
             (\"/etc/**\", None),\n"
        );
        assert_eq!(readers.service_of("file:/etc/a.d/c"), Some("a.service"));
        assert_eq!(readers.service_of("file:/etc/c"), None);
        // Two services fit as well.
        assert_eq!(readers.service_of("file:/etc/a.d/b.conf"), None);
    }

    #[test]
    fn what_no_policy_may_touch_is_not_named() {
        assert_eq!(
            Readers::guess("x", &["file:/etc/dbus.conf"], &["dbus.service"]),
            Readers::Each(vec![("file:/etc/dbus.conf".to_owned(), None)])
        );
        let readers = Readers::guess("dbus", &["file:/etc/dbus.conf"], &[]);
        assert_eq!(readers.service_of("file:/etc/dbus.conf"), None);
    }
}
