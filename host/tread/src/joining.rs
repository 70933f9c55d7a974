//! How machines join, as it is said to `tread serve`, and by `tread manifests` for it.

use clap::Args;
use k8s_openapi::jiff::SignedDuration;
use std::time::Duration;
use tread_console::exit::UsageError;
use tread_enforce::rollouts::JoiningSettings;
use tread_front::names::{MACHINES_SECRET, SECRET};
use tread_model::joining::{KEYS_SECRET, TOKENS_SECRET};
use tread_model::object_name::is_name;

/// Nobody registers within less.
const SHORTEST: Duration = Duration::from_secs(600);
/// What was served is kept for so long.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

/// How machines join that boot for the first time.
#[derive(Debug, Clone, Args)]
pub struct JoiningArgs {
    /// For how long a machine that was served may register: until somebody has approved its
    /// certificates, where that is done by hand [default: 24h]
    #[arg(long, value_name = "DURATION", value_parser = span, requires = "ignition_address")]
    pub claims_last: Option<Duration>,
    /// Where the kubelet of machines that boot finds its configuration, into which their claim is
    /// written [default: /etc/kubernetes/kubelet.conf]
    #[arg(long, value_name = "PATH", value_parser = path, requires = "ignition_address")]
    pub kubelet_config: Option<String>,
    /// The Secret, in tread's namespace, in whose key kubeconfig an admin gives what kubelets of
    /// machines that boot register with [default: tread-bootstrap]
    #[arg(long, value_name = "NAME", value_parser = secret, requires = "ignition_address")]
    pub bootstrap_secret: Option<String>,
}

impl JoiningArgs {
    /// As it is served by.
    pub fn settings(&self) -> JoiningSettings {
        let usual = JoiningSettings::default();
        JoiningSettings {
            kubelet: self.kubelet_config.clone().unwrap_or(usual.kubelet),
            bootstrap: self.bootstrap_secret.clone().unwrap_or(usual.bootstrap),
            lasts: self.claims_last.unwrap_or(usual.lasts),
            ..usual
        }
    }

    /// As arguments of `tread serve`.
    pub fn words(&self) -> Vec<String> {
        let lasts = self.claims_last.map(|it| format!("--claims-last={}s", it.as_secs()));
        let kubelet = self.kubelet_config.as_ref().map(|it| format!("--kubelet-config={it}"));
        let bootstrap = self.bootstrap_secret.as_ref();
        let bootstrap = bootstrap.map(|it| format!("--bootstrap-secret={it}"));
        lasts.into_iter().chain(kubelet).chain(bootstrap).collect()
    }
}

fn span(text: &str) -> Result<Duration, UsageError> {
    let span: Option<SignedDuration> = text.parse().ok();
    let span = span.and_then(|span| Duration::try_from(span).ok());
    span.filter(|span| (SHORTEST..=LONGEST).contains(span))
        .ok_or_else(|| UsageError("expected a time from 10m to 30 days, such as 24h".to_owned()))
}

fn path(text: &str) -> Result<String, UsageError> {
    let is_clean = text.len() <= 4096
        && text.bytes().all(|b| b.is_ascii_graphic())
        && text.split('/').skip(1).all(|part| !matches!(part, "" | "." | ".."));
    match text.starts_with('/') && is_clean {
        true => Ok(text.to_owned()),
        false => Err(UsageError("expected a path such as /etc/kubernetes/kubelet.conf".to_owned())),
    }
}

/// A name of a Secret that is not one of tread's own.
fn secret(text: &str) -> Result<String, UsageError> {
    if !is_name(text) {
        return Err(UsageError(
            "expected the name of a Secret: at most 253 lower-case letters, digits, dashes and dots, with a \
             letter or digit at both ends, such as site-bootstrap"
                .to_owned(),
        ));
    }
    if [KEYS_SECRET, TOKENS_SECRET, MACHINES_SECRET, SECRET].contains(&text) {
        return Err(UsageError(format!(
            "the Secret {text} is tread's own: choose another name, such as site-bootstrap"
        )));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_joining_comes_to_the_service_as_it_was_said() {
        let args = JoiningArgs {
            claims_last: Some(span("48h").unwrap()),
            kubelet_config: Some(path("/etc/kubelet.conf").unwrap()),
            bootstrap_secret: Some(secret("site.bootstrap-1").unwrap()),
        };
        assert_eq!(
            args.words(),
            [
                "--claims-last=172800s",
                "--kubelet-config=/etc/kubelet.conf",
                "--bootstrap-secret=site.bootstrap-1"
            ]
        );
        let settings = args.settings();
        assert_eq!(settings.bootstrap, "site.bootstrap-1");
        assert_eq!(settings.lasts, span("172800s").unwrap());
        assert_eq!(settings.kubelet, "/etc/kubelet.conf");
        for bad in ["", "1", "1m", "-24h", "31d", "1000h"] {
            assert!(span(bad).is_err(), "{bad}");
        }
        for bad in ["", "Site", "a b", "a/b", "-a", "a.", "a..b", "..", "a\n"] {
            assert!(secret(bad).is_err(), "{bad}");
        }
        assert!(secret(&"a".repeat(253)).is_ok() && secret(&"a".repeat(254)).is_err());
        for own in ["tread-joining-keys", "tread-joining-tokens", "tread-ignition", "tread-webhook"]
        {
            assert!(secret(own).unwrap_err().to_string().contains("tread's own"), "{own}");
        }
        for bad in ["", "etc/a", "/", "/etc/../a", "/etc//a", "/etc/a b", "/etc/"] {
            assert!(path(bad).is_err(), "{bad}");
        }
    }
}
