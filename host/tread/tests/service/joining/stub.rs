//! What a machine has as its user data, and what it gets by it.

use super::cluster::KUBELET;
use axum::http::Request;
use kube::client::Body;
use kube::{Client, Config};
use serde_json::Value;
use tread_test_bed::{answered, eventually};

/// What a machine has as its user data.
pub(super) struct Stub {
    pub(super) url: String,
    pub(super) header: (String, String),
    pub(super) authority: String,
}

pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
}

impl Stub {
    pub(super) fn of(secret: &Value) -> Stub {
        let text = secret["stringData"]["userData"].as_str().unwrap();
        let config: Value = serde_json::from_str(text).unwrap();
        assert_eq!(config["ignition"]["version"], "3.1.0", "the first one with headers");
        let merge = &config["ignition"]["config"]["merge"][0];
        let header = &merge["httpHeaders"][0];
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        let authorities = &config["ignition"]["security"]["tls"]["certificateAuthorities"];
        Stub {
            url: word(&merge["source"]),
            header: (word(&header["name"]), word(&header["value"])),
            authority: decoded(authorities[0]["source"].as_str().unwrap()),
        }
    }

    pub(super) fn client(&self) -> Client {
        let host: Vec<&str> = self.url.splitn(4, '/').take(3).collect();
        let mut config = Config::new(host.join("/").parse().unwrap());
        let pieces = self.authority.split("-----END CERTIFICATE-----");
        let pieces = pieces.filter_map(|it| it.split_once("-----BEGIN CERTIFICATE-----"));
        let der = pieces.map(|(_, text)| {
            let text: String = text.split_whitespace().collect();
            base64_simd::STANDARD.decode_to_vec(text).unwrap()
        });
        config.root_cert = Some(der.collect());
        config.default_retry = false;
        Client::try_from(config).unwrap()
    }

    /// Asks as Ignition does, by the authority of the stub alone: again where a connection ends
    /// without an answer. On a busy machine a request is sent too late for the service.
    pub(super) async fn asks(&self, method: &str, accept: &str, token: &str) -> Answer {
        let client = self.client();
        let ask = async || client.send(self.request(method, accept, token)).await;
        let response = answered(ask).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect_bytes().await.unwrap();
        Answer { status, body: String::from_utf8(body.to_vec()).unwrap() }
    }

    fn request(&self, method: &str, accept: &str, token: &str) -> Request<Body> {
        let path = format!("/{}", self.url.splitn(4, '/').nth(3).unwrap());
        let mut request = Request::builder().method(method).uri(path);
        if !accept.is_empty() {
            request = request.header("Accept", accept);
        }
        if !token.is_empty() {
            request = request.header(self.header.0.as_str(), token);
        }
        request.body(Body::empty()).unwrap()
    }

    /// The config that a machine boots with, once there is one.
    pub(super) async fn boots(&self) -> Value {
        let accept = "application/vnd.coreos.ignition+json;version=3.4.0, */*;q=0.1";
        let answer = eventually("a machine is served", async || {
            let answer = self.asks("GET", accept, &self.header.1).await;
            // The service may see the pool's token a moment after whoever made the stub.
            assert!([200, 401, 503].contains(&answer.status), "{}", answer.body);
            (answer.status == 200).then_some(answer)
        })
        .await;
        serde_json::from_str(&answer.body).unwrap()
    }
}

/// What a data URL holds.
pub(super) fn decoded(url: &str) -> String {
    let source = tread_model::config::Source { url: Some(url.into()), gzip: false };
    let bytes = tread_model::contents::decode(&source).unwrap().unwrap();
    String::from_utf8(bytes.into_owned()).unwrap()
}

pub(super) fn file(config: &Value, path: &str) -> String {
    let files = config["storage"]["files"].as_array().unwrap();
    let file = files.iter().find(|file| file["path"] == path).unwrap();
    decoded(file["contents"]["source"].as_str().unwrap())
}

/// The claim in a kubelet's configuration.
pub(super) fn claim(config: &Value) -> String {
    let text = file(config, KUBELET);
    let (_, rest) = text.split_once("value: \"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}
