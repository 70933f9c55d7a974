//! What the kubelet's drop-in for credential providers sets.

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
    settings(text).all(|(key, value)| key == "Environment" && names_providers(value))
}

/// What a drop-in sets. What stands before any section or sets nothing, systemd passes over.
fn settings(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.split('\n').map(str::trim).skip_while(|line| !line.starts_with('['));
    let lines = lines.filter(|line| !line.starts_with(['#', ';', '[']));
    lines.filter_map(|line| line.split_once('=')).map(|(key, value)| (key.trim_end(), value.trim()))
}

/// Whether all that the drop-in said before the change it says after it, too. Of one that may not be read it
/// is not known.
pub(crate) fn says_all(change: &Change) -> bool {
    match (&change.before, change.after.as_text()) {
        (State::Absent, _) => true,
        (before, after) => before.as_text().is_some_and(|before| {
            let has = |it| settings(after.unwrap_or_default()).any(|other| it == other);
            settings(before).all(has)
        }),
    }
}

/// Whether a path stands among what a drop-in sets.
pub(crate) fn names(text: &str, path: &str) -> bool {
    let lines = text.split('\n').map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    let mut words = lines.flat_map(|line| line.split([' ', '\t', '\r', '"', '\'', '=']));
    words.any(|word| word.trim_end_matches('/') == path)
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
    let mut flags = value.split_ascii_whitespace().filter(|word| word.starts_with('-')).peekable();
    (name.contains("CREDENTIAL_PROVIDER") || flags.peek().is_some())
        && flags.all(|flag| flag.starts_with("--image-credential-provider-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_guest_sdk::test;

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
        for text in
            ["", "[Service]\n# X=/a/b.yaml\n", "; /a/b.yaml", "X=/c/a/b.yaml", "X=/a/b.yaml.old"]
        {
            assert!(!names(text, "/a/b.yaml"), "{text}");
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
        ] {
            assert!(!about(text), "{text}");
        }
        let change = test::file(PATH, "[Service]\nNice=1\n", "");
        assert!(!is_about_providers(&change));
    }
}
