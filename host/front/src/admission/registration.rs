//! The webhook's configuration: `tread manifests` installs it, and only whom to
//! trust and at which path to ask is filled in here, and again when somebody takes
//! it away.

use super::{PATH, WEBHOOK, WEBHOOK_OF_NODES};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingWebhookConfiguration, WebhookClientConfig,
};
use serde_json::{Value, json};
use std::fmt;
use tread_kube::advice::INSTALL_AGAIN;

/// How it stands with the configuration.
#[derive(Debug, Clone, PartialEq)]
pub enum Registration {
    /// It was not seen yet.
    Unknown,
    /// There is none, or none with the webhook in it: nobody is warned.
    Missing,
    /// The API server was told whom to trust, and where to ask.
    Current,
    /// This patch tells it.
    Differs(Value),
}

impl Registration {
    /// Whether all clients there are were told whom to trust.
    pub fn is_known(&self) -> bool {
        matches!(self, Registration::Missing | Registration::Current)
    }
}

impl fmt::Display for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Registration::Unknown => f.write_str("whether warnings are asked for is not known yet"),
            Registration::Missing => write!(
                f,
                "nobody is warned at admission: tread's ValidatingWebhookConfiguration is missing: \
                 {INSTALL_AGAIN}"
            ),
            Registration::Current => f.write_str("warnings are asked for"),
            Registration::Differs(_) => {
                f.write_str("the leader has to tell the API server whom to trust and where to ask")
            }
        }
    }
}

/// The host at which the API server asks, where it asks at an address.
pub fn host(found: Option<&ValidatingWebhookConfiguration>) -> Option<String> {
    let webhooks = found.and_then(|found| found.webhooks.as_deref()).unwrap_or_default();
    let ours = webhooks.iter().find(|webhook| webhook.name == WEBHOOK)?;
    let url: axum::http::Uri = ours.client_config.url.as_deref()?.parse().ok()?;
    Some(url.host()?.trim_matches(['[', ']']).to_owned())
}

fn is_own(name: &str) -> bool {
    [WEBHOOK, WEBHOOK_OF_NODES].contains(&name)
}

/// Compares what there is with what clients are to trust, and with the path at
/// which they are to ask. `found`: None if it was not seen yet.
pub fn look(
    found: Option<Option<&ValidatingWebhookConfiguration>>,
    bundle: &str,
    path: &str,
) -> Registration {
    let Some(found) = found else { return Registration::Unknown };
    let webhooks = found.and_then(|found| found.webhooks.as_deref()).unwrap_or_default();
    let ours = webhooks.iter().enumerate().filter(|(_, webhook)| is_own(&webhook.name));
    let mut patch = Vec::new();
    let mut any = false;
    for (at, webhook) in ours {
        any = true;
        let trusts = webhook.client_config.ca_bundle.as_ref();
        let is_trusted = trusts.is_some_and(|trusts| trusts.0 == bundle.as_bytes());
        let asks = elsewhere(&webhook.client_config, path);
        if is_trusted && asks.is_none() {
            continue;
        }
        // The list of webhooks may have changed: the patch checks that this is still
        // the right one.
        patch.push(
            json!({"op": "test", "path": format!("/webhooks/{at}/name"), "value": webhook.name}),
        );
        if !is_trusted {
            let bundle = k8s_openapi::ByteString(bundle.as_bytes().to_vec());
            let path = format!("/webhooks/{at}/clientConfig/caBundle");
            patch.push(json!({"op": "add", "path": path, "value": bundle}));
        }
        if let Some((field, value)) = asks {
            let path = format!("/webhooks/{at}/clientConfig/{field}");
            patch.push(json!({"op": "add", "path": path, "value": value}));
        }
    }
    // With the version that it is based on: a replica that was paused before it sent
    // this does not overwrite what the next leader wrote.
    let seen = found.and_then(|found| found.metadata.resource_version.as_ref());
    if let Some(seen) = seen.filter(|_| !patch.is_empty()) {
        patch.insert(0, json!({"op": "add", "path": "/metadata/resourceVersion", "value": seen}));
    }
    match (any, patch.is_empty()) {
        (false, _) => Registration::Missing,
        (true, true) => Registration::Current,
        (true, false) => Registration::Differs(Value::Array(patch)),
    }
}

/// The field that says where to ask, and what it should hold; none if it holds that
/// already.
fn elsewhere(config: &WebhookClientConfig, path: &str) -> Option<(&'static str, String)> {
    if let Some(service) = &config.service {
        let is_there = service.path.as_deref() == Some(path);
        return (!is_there).then(|| ("service/path", path.to_owned()));
    }
    let url = config.url.as_deref()?;
    let parsed: axum::http::Uri = url.parse().ok()?;
    // The part of the path before it is chosen by an admin.
    let before = parsed.path().rsplit_once(PATH).map_or("", |(before, _)| before);
    let wanted = format!("{}://{}{before}{path}", parsed.scheme_str()?, parsed.authority()?);
    (url != wanted).then_some(("url", wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::ByteString;
    use k8s_openapi::api::admissionregistration::v1::{ServiceReference, ValidatingWebhook};

    const ASKED: &str = "/warn/0123";

    fn configured(webhooks: &[(&str, Option<&str>)]) -> ValidatingWebhookConfiguration {
        let webhooks = webhooks.iter().map(|(name, bundle)| {
            let mut webhook = ValidatingWebhook { name: (*name).to_owned(), ..Default::default() };
            webhook.client_config.ca_bundle = bundle.map(|b| ByteString(b.as_bytes().to_vec()));
            webhook.client_config.service =
                Some(ServiceReference { path: Some(ASKED.to_owned()), ..Default::default() });
            webhook
        });
        ValidatingWebhookConfiguration { webhooks: Some(webhooks.collect()), ..Default::default() }
    }

    #[test]
    fn the_host_at_which_it_is_asked_is_that_of_its_own_webhook() {
        let mut found = configured(&[("other.example.com", None), (WEBHOOK, None)]);
        assert_eq!(host(Some(&found)), None, "a Service has its own names");
        for (url, at) in [
            ("https://127.0.0.1:8443/warn", "127.0.0.1"),
            ("https://[::1]:8443/warn", "::1"),
            ("https://tread.example.com/warn", "tread.example.com"),
        ] {
            let webhooks = found.webhooks.as_mut().unwrap();
            webhooks[0].client_config.url = Some("https://elsewhere/".to_owned());
            webhooks[1].client_config.url = Some(url.to_owned());
            assert_eq!(host(Some(&found)).as_deref(), Some(at));
        }
    }

    #[test]
    fn only_the_own_webhook_and_only_whom_it_trusts_is_written() {
        for trusted in [None, Some(""), Some("another")] {
            let mut found = configured(&[("other.example.com", None), (WEBHOOK, trusted)]);
            found.metadata.resource_version = Some("7".to_owned());
            let Registration::Differs(patch) = look(Some(Some(&found)), "ca", ASKED) else {
                panic!("{trusted:?}")
            };
            assert_eq!(
                patch,
                json!([
                    {"op": "add", "path": "/metadata/resourceVersion", "value": "7"},
                    {"op": "test", "path": "/webhooks/1/name", "value": WEBHOOK},
                    {"op": "add", "path": "/webhooks/1/clientConfig/caBundle", "value": "Y2E="}
                ])
            );
        }
        assert_eq!(
            look(Some(Some(&configured(&[(WEBHOOK, Some("ca"))]))), "ca", ASKED),
            Registration::Current
        );
    }

    #[test]
    fn each_of_its_webhooks_is_told_by_its_own_name() {
        let mut found = configured(&[(WEBHOOK, None), ("a.b.c", None), (WEBHOOK_OF_NODES, None)]);
        found.metadata.resource_version = Some("7".to_owned());
        let Registration::Differs(patch) = look(Some(Some(&found)), "ca", ASKED) else {
            panic!("{found:?}")
        };
        let paths: Vec<&str> =
            patch.as_array().unwrap().iter().filter_map(|it| it["path"].as_str()).collect();
        assert_eq!(
            paths[1..],
            [
                "/webhooks/0/name",
                "/webhooks/0/clientConfig/caBundle",
                "/webhooks/2/name",
                "/webhooks/2/clientConfig/caBundle"
            ]
        );
        assert_eq!(patch[3]["value"], WEBHOOK_OF_NODES);
    }

    #[test]
    fn where_it_is_asked_is_written_and_what_stands_before_it_stays() {
        let mut found = configured(&[(WEBHOOK, Some("ca"))]);
        let at = |found: &mut ValidatingWebhookConfiguration, service: Option<&str>, url: &str| {
            let config = &mut found.webhooks.as_mut().unwrap()[0].client_config;
            config.service = service.map(|path| ServiceReference {
                path: Some(path.to_owned()).filter(|path| !path.is_empty()),
                ..ServiceReference::default()
            });
            config.url = Some(url.to_owned()).filter(|url| !url.is_empty());
            match look(Some(Some(found)), "ca", ASKED) {
                Registration::Differs(patch) => patch[1].clone(),
                other => json!(other.to_string()),
            }
        };
        for path in ["", "/warn", "/warn/4567"] {
            let add = json!({
                "op": "add", "path": "/webhooks/0/clientConfig/service/path", "value": ASKED,
            });
            assert_eq!(at(&mut found, Some(path), ""), add);
        }
        for (url, wanted) in [
            ("https://a.example:8443/warn", "https://a.example:8443/warn/0123"),
            ("https://a.example:8443/warn/4567", "https://a.example:8443/warn/0123"),
            ("https://[::1]:8443", "https://[::1]:8443/warn/0123"),
            ("https://a.example/tread/warn/4567", "https://a.example/tread/warn/0123"),
        ] {
            let add = json!({"op": "add", "path": "/webhooks/0/clientConfig/url", "value": wanted});
            assert_eq!(at(&mut found, None, url), add);
            assert_eq!(at(&mut found, None, wanted), "warnings are asked for");
        }
    }

    #[test]
    fn what_is_not_installed_is_missing_and_what_was_not_seen_is_not_known() {
        assert_eq!(look(None, "ca", ASKED), Registration::Unknown);
        assert_eq!(look(Some(None), "ca", ASKED), Registration::Missing);
        let others = configured(&[("other.example.com", None)]);
        assert_eq!(look(Some(Some(&others)), "ca", ASKED), Registration::Missing);
        assert!(!Registration::Unknown.is_known());
        assert!(Registration::Missing.is_known());
    }
}
