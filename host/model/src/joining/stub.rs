//! What a machine is given as its user data: where its config is, and whom to trust there.

use crate::mirrors::data_url;
use serde_json::{Value, json};

/// The Ignition config that fetches the config of a pool from `address` (`HOST:PORT`). 3.1 is
/// the first version with headers.
pub fn stub(address: &str, pool: &str, token: &str, authority: &str) -> Value {
    let headers = json!([{"name": "Authorization", "value": format!("Bearer {token}")}]);
    let source = format!("https://{address}/config/{pool}");
    json!({
        "ignition": {
            "version": "3.1.0",
            "config": {"merge": [{"source": source, "httpHeaders": headers}]},
            "security": {"tls": {"certificateAuthorities": [{"source": data_url(authority)}]}},
        },
    })
}
