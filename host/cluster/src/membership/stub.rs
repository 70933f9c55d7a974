//! Which pool user data names: its stub of Ignition has the URL of a config.

use serde_json::Value;
use std::fmt;
use tread_model::config::Source;
use tread_model::contents::decode;
use tread_model::object_name::is_possible;

/// What stands before the pool's name in the URL.
const CONFIG: &str = "/config/";

/// Where user data asks for a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stub {
    /// Of which pool.
    pub pool: String,
    /// Whom it asks, as `HOST:PORT` or `HOST`.
    pub address: String,
    /// Whether it shows a token there, as who serves configs by a claim asks for.
    pub shows_token: bool,
}

/// The config that user data asks for; None: it names none. What else is in it is never shown.
pub fn read(user_data: &[u8]) -> Option<Stub> {
    let stub: Value = serde_json::from_slice(user_data).ok()?;
    sources(&stub).find_map(asks)
}

/// What user data shows whom it asks, and whom it trusts there.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Shown {
    /// The token.
    pub token: String,
    /// The certificates of authorities, each as the base64 of its PEM.
    pub authorities: Vec<String>,
}

/// A token is shown nowhere.
impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shown")
            .field("authorities", &self.authorities.len())
            .finish_non_exhaustive()
    }
}

/// What user data shows that asks for the config of this pool with a token; None: it does not.
pub fn shown(user_data: &[u8], pool: &str) -> Option<Shown> {
    let stub: Value = serde_json::from_slice(user_data).ok()?;
    let source = sources(&stub).find(|it| asks(it).is_some())?;
    asks(source).filter(|it| it.pool == pool)?;
    let headers = source.get("httpHeaders")?.as_array()?;
    let token = headers.iter().find(|header| is_token(header))?.get("value")?.as_str()?;
    let token = token.strip_prefix("Bearer ")?.trim().to_owned();
    let authorities = stub.pointer("/ignition/security/tls/certificateAuthorities");
    let authorities = authorities.and_then(Value::as_array).into_iter().flatten();
    let authorities = authorities.filter_map(|it| pem(it.get("source")?.as_str()?));
    let authorities = authorities.flat_map(|text| certificates(&text)).collect();
    Some(Shown { token, authorities })
}

/// The text of a data URL.
fn pem(url: &str) -> Option<String> {
    let source = Source { url: Some(url.into()), gzip: false };
    let bytes = decode(&source).ok()??;
    std::str::from_utf8(&bytes).ok().map(str::to_owned)
}

/// The certificates of a text in PEM, each as its base64.
pub fn certificates(pem: &str) -> Vec<String> {
    let parts = pem.split("-----BEGIN CERTIFICATE-----").skip(1);
    let bodies = parts.filter_map(|it| it.split("-----END").next());
    bodies.map(|it| it.split_whitespace().collect()).collect()
}

fn sources(stub: &Value) -> impl Iterator<Item = &Value> {
    let config = stub.pointer("/ignition/config");
    // Of Ignition 3, and of 2.
    let lists =
        ["merge", "append"].into_iter().filter_map(move |name| config?.get(name)?.as_array());
    let replaced = config.and_then(|config| config.get("replace")).into_iter();
    lists.flatten().chain(replaced)
}

fn asks(source: &Value) -> Option<Stub> {
    let url = source.get("source")?.as_str()?;
    let headers = source.get("httpHeaders").and_then(Value::as_array);
    let pool = named(url)?;
    let (_, rest) = url.split_once("://")?;
    Some(Stub {
        pool,
        address: rest.split('/').next()?.to_owned(),
        shows_token: headers.into_iter().flatten().any(is_token),
    })
}

fn is_token(header: &Value) -> bool {
    let text = |key: &str| header.get(key).and_then(Value::as_str).unwrap_or_default();
    text("name").eq_ignore_ascii_case("authorization") && text("value").starts_with("Bearer ")
}

fn named(url: &str) -> Option<String> {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let (_, name) = path.rsplit_once(CONFIG)?;
    let name = name.trim_end_matches('/');
    (!name.is_empty() && is_possible(name)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_pool_is_the_one_of_the_url_in_either_version_of_ignition() {
        let url = |url: &str| json!([{"source": url}]);
        for (config, expected) in [
            (json!({"merge": url("https://api-int.example:22623/config/infra")}), Some("infra")),
            (json!({"append": url("https://api-int.example:22623/config/infra")}), Some("infra")),
            (json!({"merge": url("https://10.0.0.1:22623/config/gpu/?a=b")}), Some("gpu")),
            (json!({"replace": {"source": "https://a/config/worker"}}), Some("worker")),
            (json!({"merge": url("https://a/other/infra")}), None),
            (json!({"merge": url("https://a/config/")}), None),
            (json!({"merge": url("https://a/config/\u{1b}[2J")}), None),
            (json!({}), None),
        ] {
            let stub = json!({"ignition": {"version": "3.1.0", "config": config}}).to_string();
            let found = read(stub.as_bytes());
            assert_eq!(found.as_ref().map(|it| it.pool.as_str()), expected, "{stub}");
            assert!(found.is_none_or(|it| !it.shows_token), "{stub}");
        }
        assert_eq!(read(b"#!/bin/sh"), None);
    }

    #[test]
    fn what_tread_prints_as_user_data_says_whom_it_asks_and_shows_its_token() {
        let printed = tread_model::joining::stub("tread.example:22623", "infra", "secret", "PEM");
        let expected = Stub {
            pool: "infra".to_owned(),
            address: "tread.example:22623".to_owned(),
            shows_token: true,
        };
        assert_eq!(read(printed.to_string().as_bytes()), Some(expected));
        let with = |header: Value| {
            let source = json!({"source": "https://a/config/infra", "httpHeaders": [header]});
            let stub = json!({"ignition": {"config": {"merge": [source]}}}).to_string();
            read(stub.as_bytes()).unwrap().shows_token
        };
        assert!(with(json!({"name": "authorization", "value": "Bearer x"})));
        assert!(!with(json!({"name": "Authorization", "value": "Basic x"})));
        assert!(!with(json!({"name": "Accept", "value": "Bearer x"})));
        assert!(!with(json!("Authorization")));
    }

    #[test]
    fn what_user_data_shows_is_read_and_no_token_is_printed() {
        let pem = |body: &str| {
            format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
        };
        let two = format!("{}{}", pem("AAAA\nBBBB"), pem("CCCC"));
        let printed = tread_model::joining::stub("a:1", "infra", "secret", &two).to_string();
        let found = shown(printed.as_bytes(), "infra").unwrap();
        assert_eq!(found.token, "secret");
        assert_eq!(found.authorities, ["AAAABBBB", "CCCC"]);
        assert!(!format!("{found:?}").contains("secret"));
        assert_eq!(shown(printed.as_bytes(), "worker"), None);
        for odd in [
            "",
            "{}",
            r#"{"ignition": {"config": {"merge": [{"source": "https://a/config/infra"}]}}}"#,
        ] {
            assert_eq!(shown(odd.as_bytes(), "infra"), None);
        }
    }
}
