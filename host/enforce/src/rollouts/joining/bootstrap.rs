//! The kubeconfig by which kubelets register: an admin gives it, in a Secret.

use k8s_openapi::api::core::v1::Secret;
use std::sync::Arc;
use tread_kube::api::conditions::Finding;
use tread_model::joining::BOOTSTRAP;

/// The condition of a Rollout that says whether machines get one.
pub(super) const SERVES: &str = "Serves";
/// The key of the Secret.
const KEY: &str = "kubeconfig";
/// Each machine gets all of it; those of a cluster have a few kilobytes.
const LONGEST: usize = 64 << 10;

/// Why nothing can be served of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    NoSecret,
    /// Or there is nothing in it.
    NoKey,
    NoText,
    TooLong,
}

/// The kubeconfig that a Secret holds.
pub(super) fn read(secret: &Secret) -> Result<Arc<str>, Flaw> {
    let bytes = secret.data.as_ref().and_then(|data| data.get(KEY)).ok_or(Flaw::NoKey)?;
    if bytes.0.len() > LONGEST {
        return Err(Flaw::TooLong);
    }
    let text = std::str::from_utf8(&bytes.0).map_err(|_| Flaw::NoText)?;
    match text.trim().is_empty() {
        true => Err(Flaw::NoKey),
        false => Ok(Arc::from(text)),
    }
}

impl Flaw {
    fn word(self) -> &'static str {
        match self {
            Flaw::NoSecret => "NoBootstrapSecret",
            Flaw::NoKey => "NoKubeconfig",
            Flaw::NoText | Flaw::TooLong => "KubeconfigUnreadable",
        }
    }

    /// What is wrong, and what to do about it.
    pub(super) fn says(self, (namespace, secret): (&str, &str)) -> String {
        let wrong = match self {
            Flaw::NoSecret => format!("there is no Secret {secret} in namespace {namespace}"),
            Flaw::NoKey => {
                format!("the Secret {secret} in namespace {namespace} has nothing in its key {KEY}")
            }
            Flaw::NoText => format!(
                "the key {KEY} of the Secret {secret} in namespace {namespace} is no text in UTF-8"
            ),
            Flaw::TooLong => format!(
                "the key {KEY} of the Secret {secret} in namespace {namespace} has more than {LONGEST} bytes"
            ),
        };
        let first = if self == Flaw::NoSecret { "" } else { "remove it, then " };
        format!(
            "{wrong}: {first}kubectl create secret generic {secret} -n {namespace} --from-file={KEY}=FILE, where FILE is the \
             kubeconfig by which kubelets register"
        )
    }
}

/// What is found of a pool. `brings`: its config has a kubeconfig itself.
pub(super) fn found(flaw: Option<Flaw>, brings: bool, named: (&str, &str)) -> Finding {
    let (status, reason, message) = match flaw {
        None => {
            let (namespace, secret) = named;
            let message = format!(
                "machines that boot get the kubeconfig of the Secret {secret} in namespace {namespace}"
            );
            (true, "Bootstraps", message)
        }
        Some(_) if brings => {
            (true, "ConfigBrings", format!("the config of the pool brings {BOOTSTRAP} itself"))
        }
        Some(flaw) => (
            false,
            flaw.word(),
            format!(
                "machines that boot get no kubeconfig to register with: {}; or bring {BOOTSTRAP} by a \
                 MachineConfig of the pool",
                flaw.says(named)
            ),
        ),
    };
    Finding { type_: SERVES, status: Some(status), reason: reason.to_owned(), message }
}

/// Whether a config has a file there.
pub(super) fn brings(config: &[u8]) -> bool {
    let config: serde_json::Value = serde_json::from_slice(config).unwrap_or_default();
    let files = config.pointer("/spec/config/storage/files").and_then(|it| it.as_array());
    files.into_iter().flatten().any(|file| file.get("path").is_some_and(|it| it == BOOTSTRAP))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::ByteString;
    use std::collections::BTreeMap;

    const NAMED: (&str, &str) = ("tread-system", "site-bootstrap");

    fn secret(key: &str, bytes: &[u8]) -> Secret {
        let data = BTreeMap::from([(key.to_owned(), ByteString(bytes.to_vec()))]);
        Secret { data: Some(data), ..Secret::default() }
    }

    #[test]
    fn a_kubeconfig_is_text_of_a_bearable_length_under_its_key() {
        assert_eq!(read(&secret(KEY, b"users: []")).as_deref(), Ok("users: []"));
        assert!(read(&secret(KEY, &[b'a'; LONGEST])).is_ok());
        for (secret, flaw) in [
            (Secret::default(), Flaw::NoKey),
            (secret("config", b"users: []"), Flaw::NoKey),
            (secret(KEY, b""), Flaw::NoKey),
            (secret(KEY, b" \n"), Flaw::NoKey),
            (secret(KEY, b"\xff\xfe"), Flaw::NoText),
            (secret(KEY, &[b'a'; LONGEST + 1]), Flaw::TooLong),
        ] {
            assert_eq!(read(&secret), Err(flaw));
        }
    }

    #[test]
    fn a_pool_says_what_its_machines_lack_and_the_command_that_mends_it() {
        for (flaw, reason) in [
            (Flaw::NoSecret, "NoBootstrapSecret"),
            (Flaw::NoKey, "NoKubeconfig"),
            (Flaw::NoText, "KubeconfigUnreadable"),
            (Flaw::TooLong, "KubeconfigUnreadable"),
        ] {
            let found = found(Some(flaw), false, NAMED);
            assert_eq!((found.status, found.reason.as_str()), (Some(false), reason));
            let command = "kubectl create secret generic site-bootstrap -n tread-system --from-file=kubeconfig=";
            assert!(found.message.contains(command), "{}", found.message);
            assert!(found.message.contains(BOOTSTRAP), "{}", found.message);
        }
        assert_eq!(found(Some(Flaw::NoSecret), true, NAMED).reason, "ConfigBrings");
        let well = found(None, true, NAMED);
        assert_eq!((well.status, well.reason.as_str()), (Some(true), "Bootstraps"));
    }

    #[test]
    fn a_config_brings_it_by_a_file_at_its_path_alone() {
        let config = |path: &str| {
            let files = serde_json::json!([{"path": "/etc/a"}, {"path": path}]);
            let config = serde_json::json!({"spec": {"config": {"storage": {"files": files}}}});
            config.to_string()
        };
        assert!(brings(config(BOOTSTRAP).as_bytes()));
        for odd in [config("/etc/b").as_str(), "{}", "[]", "", r#"{"spec": {"config": 1}}"#] {
            assert!(!brings(odd.as_bytes()), "{odd}");
        }
    }
}
