//! Which pool user data names: its stub of Ignition has the URL of a config.

use serde_json::Value;
use tread_model::object_name::is_possible;

/// What stands before the pool's name in the URL.
const CONFIG: &str = "/config/";

/// The pool whose config user data asks for; None: it names none. What else is in it is
/// never shown.
pub fn pool(user_data: &[u8]) -> Option<String> {
    let stub: Value = serde_json::from_slice(user_data).ok()?;
    let config = stub.pointer("/ignition/config")?;
    // Of Ignition 3, and of 2.
    let lists = ["merge", "append"].into_iter().filter_map(|name| config.get(name)?.as_array());
    let replaced = config.get("replace").into_iter();
    let sources = lists.flatten().chain(replaced).filter_map(|it| it.get("source")?.as_str());
    sources.filter_map(named).next()
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
            assert_eq!(pool(stub.as_bytes()).as_deref(), expected, "{stub}");
        }
        assert_eq!(pool(b"#!/bin/sh"), None);
    }
}
