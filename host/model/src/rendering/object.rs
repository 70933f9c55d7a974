//! The rendered MachineConfig as an object of the API server.

use super::source::MachineConfig;
use crate::digest::Digest;
use crate::object_name::LONGEST;
use crate::read::{MACHINE_CONFIG_API, POOL_KIND, canonical_json};
use crate::text::and_more;
use serde_json::{Value, json};

/// The annotation of a MachineConfig that tread rendered: who did it.
pub const RENDERED_BY: &str = "tread.dev/rendered-by";

/// The annotation that names what it was rendered from, in the order in which it was
/// merged: `NAME/UID`, with commas between them.
pub const SOURCES: &str = "tread.dev/sources";

/// More sources than these are counted: an object's annotations have 256 KiB together.
const NAMED: usize = 500;

/// What is hashed. Another form of what is rendered has to have other names.
const FORM: &[u8] = b"tread rendered 1\0";

/// As many digits as the names have that OpenShift's operator gives: who knows a pool by
/// the name of a config knows it by both. Both hash all that they render, with other
/// functions, so that no name is given by both.
const DIGITS: usize = 32;

const PREFIX: &str = "rendered-";

/// A MachineConfigPool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pool<'a> {
    /// `metadata.name`
    pub name: &'a str,
    /// `metadata.uid`
    pub uid: &'a str,
}

/// The name of what was rendered: the same wherever the same was rendered for a pool of
/// this name. A name that would be too long is cut in the middle.
pub(super) fn name(pool: &Pool<'_>, spec: &Value) -> String {
    let mut pieces = Digest::of_pieces();
    for piece in [FORM, pool.name.as_bytes(), b"\0", canonical_json(spec).as_bytes()] {
        pieces.add(piece);
    }
    let hash: String = pieces.finish().hex().chars().take(DIGITS).collect();
    let room = LONGEST - PREFIX.len() - 1 - DIGITS;
    // The names of pools are of ASCII alone.
    let short = pool.name.char_indices().take_while(|(at, c)| at + c.len_utf8() <= room);
    let short: String = short.map(|(_, c)| c).collect();
    format!("{PREFIX}{}-{hash}", short.trim_end_matches(['.', '-']))
}

/// The object, owned by its pool as one of OpenShift's operator is. That it blocks the deletion of its
/// pool is not said: on OpenShift that would take a right to the pool's finalizers.
pub(super) fn object(
    pool: &Pool<'_>,
    name: &str,
    spec: Value,
    sources: &[MachineConfig<'_>],
) -> Value {
    json!({
        "apiVersion": MACHINE_CONFIG_API,
        "kind": "MachineConfig",
        "metadata": {
            "name": name,
            "annotations": {
                RENDERED_BY: concat!("tread ", env!("CARGO_PKG_VERSION")),
                SOURCES: named(sources),
            },
            "ownerReferences": [{
                "apiVersion": MACHINE_CONFIG_API,
                "kind": POOL_KIND,
                "name": pool.name,
                "uid": pool.uid,
                "controller": true,
            }],
        },
        "spec": spec,
    })
}

fn named(sources: &[MachineConfig<'_>]) -> String {
    let one = |source: &MachineConfig<'_>| match &source.uid {
        Some(uid) => format!("{}/{uid}", source.name),
        None => source.name.clone(),
    };
    let all: Vec<String> = sources.iter().take(NAMED).map(one).collect();
    format!("{}{}", all.join(","), and_more(sources.len(), NAMED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object_name::is_name;

    #[test]
    fn the_name_of_any_pool_makes_one_that_the_api_server_takes() {
        let long = format!("{}.{}", "a".repeat(210), "b".repeat(42));
        let longer = format!("{}.{}", "a".repeat(210), "c".repeat(42));
        let name = |pool: &str| name(&Pool { name: pool, uid: "1" }, &json!({}));
        for pool in ["worker", "a.b", "0", &"a".repeat(211), &"a".repeat(253), &long] {
            let name = name(pool);
            assert!(is_name(&name), "{name}");
            assert!(name.len() <= LONGEST && name.starts_with("rendered-"), "{name}");
            let (start, hash) = name.rsplit_once('-').unwrap();
            assert_eq!(hash.len(), DIGITS, "{name}");
            assert!(pool.starts_with(start.strip_prefix(PREFIX).unwrap()), "{name}");
        }
        assert_ne!(name(&long), name(&longer), "also where they are cut");
        assert_eq!(name("worker").len(), "rendered-worker-".len() + DIGITS);
    }

    #[test]
    fn a_name_depends_on_all_that_is_rendered_and_not_on_how_it_is_written() {
        let pool = Pool { name: "worker", uid: "1" };
        let of = |text: &str| name(&pool, &serde_json::from_str(text).unwrap());
        let one = of(r#"{"a": [1, {"b": 1, "c": 2}], "d": "x"}"#);
        assert_eq!(one, of(r#"{"d":"x","a":[1,{"c":2,"b":1}]}"#));
        for other in [
            r#"{"a": [1, {"b": 1, "c": 3}], "d": "x"}"#,
            r#"{"a": [{"b": 1, "c": 2}, 1], "d": "x"}"#,
            r#"{"a": [1, {"b": 1, "c": 2}], "d": "y"}"#,
            r#"{"a": [1, {"b": 1, "c": 2}], "d": "x", "e": ""}"#,
        ] {
            assert_ne!(one, of(other), "{other}");
        }
        assert_eq!(
            name(&Pool { name: "worker", uid: "2" }, &json!({})),
            name(&Pool { name: "worker", uid: "3" }, &json!({})),
        );
    }
}
