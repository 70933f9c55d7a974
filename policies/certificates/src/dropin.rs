//! What the kubelet's drop-in for credential providers sets.

use std::collections::BTreeMap;
use tread_guest_sdk::{Change, State};

pub(crate) const PATH: &str =
    "/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf";

/// Whether both sides set nothing but the environment that names credential
/// providers. Anything else may change any flag of the kubelet.
pub(crate) fn is_about_providers(change: &Change) -> bool {
    [&change.before, &change.after].into_iter().all(|state| match state {
        State::Absent => true,
        state => state.as_text().is_some_and(only_providers),
    })
}

fn only_providers(text: &str) -> bool {
    // A backslash would join lines.
    if text.contains(['\\', '\r', '\0']) {
        return false;
    }
    settings(text).all(|(_, key, value)| key == "Environment" && names_providers(value))
}

const BLANK: [char; 2] = [' ', '\t'];

/// What a drop-in sets, with the line that begins the section. What stands before any section or sets
/// nothing, systemd passes over.
fn settings(text: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut section = None;
    text.split(['\n', '\r', '\0']).filter_map(move |line| {
        let line = line.trim_matches(BLANK);
        if line.starts_with(['#', ';']) {
            return None;
        }
        if line.starts_with('[') {
            // With a line that only begins as one of a section, systemd ends.
            section = section.filter(|line: &&str| !line.ends_with(']')).or(Some(line));
            return None;
        }
        let (section, (key, value)) = (section?, line.split_once('=')?);
        Some((section, key.trim_end_matches(BLANK), value.trim_start_matches(BLANK)))
    })
}

/// What a drop-in gives a service.
#[derive(Default)]
pub(crate) struct Said<'a> {
    /// The value of each variable, after others that it may have: systemd passes over an assignment with a
    /// specifier that is none.
    variables: BTreeMap<String, Vec<String>>,
    /// Where it says more than variables.
    others: Vec<(&'a str, &'a str)>,
    /// Whether there is an escape in it, which may stand for any letter.
    has_escapes: bool,
}

impl<'a> Said<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        let mut said = Said::default();
        if text.contains('\\') {
            // It may join lines, too, so that all of them count.
            let lines =
                text.split('\n').map(str::trim).filter(|line| !line.starts_with(['#', ';']));
            said.others = lines.map(|line| ("", line)).collect();
            said.has_escapes = true;
            return said;
        }
        for (_, key, value) in settings(text).filter(|(section, ..)| *section == "[Service]") {
            match (key, value) {
                ("Environment", "") => said.variables.clear(),
                ("Environment", value) => said.assign(value),
                (key, "") => said.others.retain(|(other, _)| *other != key),
                other => said.others.push(other),
            }
        }
        said
    }

    fn assign(&mut self, value: &str) {
        for word in words(value) {
            let Some((name, value)) = word.split_once('=') else { continue };
            let is_letter =
                |it: u8| it.is_ascii_alphanumeric() || it == b'_' || it == SPECIFIER as u8;
            let is_name = name.bytes().all(is_letter)
                && name.bytes().next().is_some_and(|first| !first.is_ascii_digit());
            if !is_name || value.contains(|it: char| it.is_ascii_control() && it != '\t') {
                continue;
            }
            let values = self.variables.entry(name.to_string()).or_default();
            if !word.contains(SPECIFIER) {
                values.clear();
            }
            values.push(value.to_string());
        }
    }

    fn values(&self) -> impl Iterator<Item = &str> {
        let others = self.others.iter().map(|(_, value)| *value);
        self.variables.values().flatten().map(String::as_str).chain(others)
    }

    /// Whether a path stands among it.
    pub(crate) fn names(&self, path: &str) -> bool {
        let path = parts(path);
        let mut words = self.values().flat_map(|it| it.split([' ', '\t', '\r', '"', '\'', '=']));
        words.any(|word| word.contains('/') && parts(word) == path)
    }

    /// Whether it may name more than can be read in it.
    pub(crate) fn may_name_any(&self) -> bool {
        let is_specifier = |name: &String| name.contains(SPECIFIER);
        self.has_escapes
            || self.variables.keys().any(is_specifier)
            || self.values().any(|value| value.contains(SPECIFIER))
    }

    /// Whether it gives the kubelet a config or a directory of them, and nothing that would change that.
    pub(crate) fn gives_a_config(&self) -> bool {
        self.others.is_empty() && self.values().any(gives_a_config)
    }
}

/// As in `%H`, which systemd puts something else for.
const SPECIFIER: char = '%';

fn gives_a_config(flags: &str) -> bool {
    let mut words = flags.split(BLANK).filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        let config = match word.strip_prefix("--image-credential-provider-config") {
            Some("") => words.next(),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        if config.is_some_and(|it| it.starts_with('/') && !it.contains(['"', '\''])) {
            return true;
        }
    }
    false
}

/// The assignments of a line, without their quotes. A quote without another ends them.
fn words(value: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in value.chars() {
        match quote {
            Some(open) if open == letter => quote = None,
            None if matches!(letter, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            None if BLANK.contains(&letter) => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word.filter(|_| quote.is_none()));
    words
}

/// The names in a path, as in the one that is written without detours.
fn parts(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts
}

/// Whether each variable that the drop-in gave before the change has the same value after it. Of one that may
/// not be read it is not known.
pub(crate) fn says_all(change: &Change) -> bool {
    match (&change.before, change.after.as_text()) {
        (State::Absent, _) => true,
        (before, after) => before.as_text().is_some_and(|before| {
            let after = Said::of(after.unwrap_or_default()).variables;
            Said::of(before).variables.iter().all(|(name, values)| after.get(name) == Some(values))
        }),
    }
}

/// `A=b`, `"A=b c"`, and several of them.
fn names_providers(value: &str) -> bool {
    let value = value.trim();
    let whole = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let inner = value.get(1..).and_then(|rest| rest.strip_suffix(quote));
            inner.filter(|inner| !inner.contains(['"', '\'']))
        }
        _ => Some(value).filter(|value| !value.contains([' ', '\t', '"', '\''])),
    };
    let Some((name, value)) = whole.and_then(|whole| whole.split_once('=')) else { return false };
    if name.contains(SPECIFIER) {
        return false;
    }
    let mut flags = value.split_ascii_whitespace().filter(|word| word.starts_with('-')).peekable();
    (name.contains("CREDENTIAL_PROVIDER") || flags.peek().is_some())
        && flags.all(|flag| flag.starts_with("--image-credential-provider-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_guest_sdk::test;

    fn names(text: &str, path: &str) -> bool {
        Said::of(text).names(path)
    }

    fn about(text: &str) -> bool {
        is_about_providers(&test::file_added(PATH, text))
    }

    #[test]
    fn the_environment_for_providers_is_known() {
        for text in [
            "",
            "# a comment\n[Service]\n",
            "Nice=1\n[Service]\nno setting\n",
            "[Service]\nEnvironment=CRIO_CREDENTIAL_PROVIDER_CONFIG=/etc/x.yaml\n",
            "[Service]\nEnvironment = \"FLAGS=--image-credential-provider-config=/a --image-credential-provider-bin-dir=/b\"\n",
            "[Service]\nEnvironment='CREDENTIAL_PROVIDER=a b'\n",
        ] {
            assert!(about(text), "{text}");
        }
    }

    #[test]
    fn a_path_is_found_among_flags_and_in_variables_and_not_in_comments() {
        for text in [
            "[Service]\nEnvironment=\"X=--image-credential-provider-config=/a/b.yaml --v=4\"\n",
            "[Service]\nEnvironment=\"X=--image-credential-provider-config /a/b.yaml\"\n",
            "[Service]\nEnvironment=CREDENTIAL_PROVIDER=/a/b.yaml\n",
            "[Service]\nEnvironment='CREDENTIAL_PROVIDER=/a/b.yaml/'\r\n",
            "[Service]\nExecStart=/usr/bin/kubelet \\\n  --image-credential-provider-config=/a/b.yaml \\\n",
        ] {
            assert!(names(text, "/a/b.yaml"), "{text}");
            assert!(!names(text, "/a/b"), "{text}");
        }
        for text in [
            "",
            "[Service]\n# Environment=X=/a/b.yaml\n",
            "[Service]\n; Environment=X=/a/b.yaml",
            "[Service]\nEnvironment=X=/c/a/b.yaml",
            "[Service]\nEnvironment=X=/a/b.yaml.old",
            "Environment=X=/a/b.yaml\n",
            "[Unit]\nEnvironment=X=/a/b.yaml\n",
            "[Service]\nEnvironment=X=/a/b.yaml\nEnvironment=X=\n",
            "[Service]\nEnvironment=X=/a/b.yaml X=/c\n",
            "[Service]\nEnvironment=X=/a/b.yaml \"X=/c d\"\n",
            "[Service]\nEnvironment=X=/a/b.yaml\nEnvironment=\n",
            "[Service]\nExecStart=/a/b.yaml\nExecStart=\nExecStart=/c\n",
            "[Service]\nEnvironment=X\n[Service\n[Service]\nEnvironment=X=/a/b.yaml\n",
        ] {
            assert!(!names(text, "/a/b.yaml"), "{text}");
        }
        for text in [
            "[Service]\nEnvironment=X=/c Y=/a/b.yaml\n",
            "[Service]\nEnvironment=X=/c\nEnvironment=X=/a/b.yaml\n",
            "[Service]\nEnvironment=X=/a/b.yaml\nEnvironment=1X=/c\nEnvironment=X\n",
            // Systemd passes over the second, if there is no such specifier.
            "[Service]\nEnvironment=X=/a/b.yaml\nEnvironment=X=%Q\n",
            "[Service]\nEnvironment=X=/a/b.yaml \"X=/c\n",
            "[Service]\nEnvironment=X=\"--a /a/b.yaml\"\n",
            "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --x=/a/b.yaml\n",
            "\u{feff}[Service]\nEnvironment=X=/a//./b.yaml\n",
            "[Unit]\r[Service]\rEnvironment=X=/a/b.yaml\r",
        ] {
            assert!(names(text, "/a/b.yaml"), "{text}");
        }
    }

    #[test]
    fn whatever_else_the_drop_in_sets_may_change_any_flag() {
        for text in [
            "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --cpu-manager-policy=static\n",
            "[Service]\nEnvironmentFile=/etc/kubernetes/CREDENTIAL_PROVIDER\n",
            "[Service]\nEnvironment=SYSTEM_RESERVED_CPU=1\n",
            "[Service]\nEnvironment=CREDENTIAL_PROVIDER=a SYSTEM_RESERVED_CPU=1\n",
            "[Service]\nEnvironment=\"CREDENTIAL_PROVIDER=a\" \"SYSTEM_RESERVED_CPU=1\"\n",
            "[Service]\nEnvironment=CREDENTIAL_PROVIDER=\\\n  SYSTEM_RESERVED_CPU=1\n",
            "[Service]\nEnvironment=CREDENTIAL_PROVIDER=--cpu-manager-policy=static\n",
            "[Service]\nEnvironment=\"X=--image-credential-provider-config=/a --v=4\"\n",
            "[Unit]\nRequires=x.service\n",
            "\u{feff}[Service]\nNice=1\n",
        ] {
            assert!(!about(text), "{text}");
        }
        let change = test::file(PATH, "[Service]\nNice=1\n", "");
        assert!(!is_about_providers(&change));
    }
}
