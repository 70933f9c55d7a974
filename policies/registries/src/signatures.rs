//! Whether the runtime would take a signature policy: as strict as it is,
//! which refuses what it does not know.

use crate::name::{is_digest, is_domain, is_path, is_reference, is_tagged};
use std::collections::BTreeMap;
use tread_guest_sdk::json;

/// What is wrong with a `policy.json`, as far as pulls would fail with it.
pub(crate) fn fault(bytes: &[u8]) -> Option<String> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Some("it is no JSON, which is written in UTF-8".to_string());
    };
    if let Err(error) = json::check(text) {
        return Some(["line ", &error.line().unwrap_or(1).to_string(), " is not JSON"].concat());
    }
    policy(text).err().map(str::to_string)
}

type Result<T, E = &'static str> = std::result::Result<T, E>;
type Fields<'a> = BTreeMap<String, &'a str>;

const UNKNOWN: &str =
    "it sets a key that is not known there; the runtime takes none that it does not know";

fn policy(text: &str) -> Result<()> {
    let fields = object(text)?;
    let Some(default) = fields.get("default") else {
        return Err("it has no \"default\", which says what holds for all other images");
    };
    if fields.keys().any(|key| key != "default" && key != "transports") {
        return Err("it may have \"default\" and \"transports\" only");
    }
    if let Some(transports) = fields.get("transports") {
        for (transport, scopes) in object(transports)
            .map_err(|_| "its \"transports\" is no object, or sets a key twice")?
        {
            for (scope, wanted) in object(scopes)
                .map_err(|_| "one of its transports is no object, or sets a key twice")?
            {
                if !scope.is_empty() && !is_scope(&transport, &scope) {
                    return Err("a transport has a scope that is not of its form");
                }
                requirements(wanted)?;
            }
        }
    }
    requirements(default)
}

/// Whether a transport may have a scope. Those of transports that are not known,
/// and of `docker`, are not looked at: one that is no name holds for no image.
fn is_scope(transport: &str, scope: &str) -> bool {
    match transport {
        "dir" | "oci" | "oci-archive" | "sif" => is_clean_path(scope),
        "docker-archive" | "tarball" => false,
        "docker-daemon" => !is_digest(scope),
        "atomic" => is_stream(scope),
        "containers-storage" => is_store(scope),
        _ => true,
    }
}

/// An absolute path as tools write it, and not the root.
fn is_clean_path(path: &str) -> bool {
    path.strip_prefix('/')
        .is_some_and(|rest| !rest.split('/').any(|part| matches!(part, "" | "." | "..")))
}

/// A part of `HOST/NAMESPACE/STREAM:TAG`, from the left.
fn is_stream(scope: &str) -> bool {
    let mut parts = scope.split('/').skip(1);
    let (namespace, stream) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    parts.next().is_none() && !namespace.contains(':') && stream.split(':').count() <= 2
}

/// A place where containers are stored, whole: `[DRIVER@PATH]`.
fn is_store(scope: &str) -> bool {
    let Some((store, name)) = scope.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return false;
    };
    let path = store.split_once('@').map_or(store, |(driver, path)| match driver {
        "" => "",
        _ => path,
    });
    let ids: Vec<&str> = name.split('@').skip(1).collect();
    let is_id = |id: &str| is_digest(&["sha256:", id].concat());
    let is_name = match ids.as_slice() {
        [] => true,
        [id] => is_id(id) || is_digest(id),
        [digest, id] => is_digest(digest) && is_id(id),
        _ => false,
    };
    path.starts_with('/') && is_name
}

fn requirements(text: &str) -> Result<()> {
    const REQUIREMENTS: &str = "each scope needs a list of requirements, at least one, each with a \"type\"; \
        to allow nothing, write reject";
    let items = json::items(text).map_err(|_| REQUIREMENTS)?;
    if items.is_empty() {
        return Err(REQUIREMENTS);
    }
    for item in items {
        let fields = object(item).map_err(|_| "a requirement is no object, or sets a key twice")?;
        match kind(&fields).ok_or(REQUIREMENTS)?.as_str() {
            "insecureAcceptAnything" | "reject" => exactly(&fields, &[])?,
            "signedBy" => signed_by(&fields)?,
            "signedBaseLayer" => {
                exactly(&fields, &["baseLayerIdentity"])?;
                identity(&fields, "baseLayerIdentity")?;
            }
            "sigstoreSigned" => sigstore_signed(&fields)?,
            _ => return Err("a requirement has a type that is not known"),
        }
    }
    Ok(())
}

fn signed_by(fields: &Fields<'_>) -> Result<()> {
    only(fields, &["keyType", "keyPath", "keyPaths", "keyData", "signedIdentity"])?;
    let known = ["GPGKeys", "signedByGPGKeys", "X509Certificates", "signedByX509CAs"];
    match fields.get("keyType").map(|text| json::read::<String>(text)) {
        Some(Ok(kind)) if known.contains(&kind.as_str()) => {}
        _ => {
            return Err(
                "a requirement signedBy needs a \"keyType\"; nearly always that is GPGKeys",
            );
        }
    }
    let keys = ["keyPath", "keyPaths", "keyData"];
    let given = text(fields, "keyPath")?
        || texts(fields, "keyPaths")?.is_some()
        || data(fields, "keyData")?;
    if !given || count(fields, &keys) != 1 {
        return Err(
            "a requirement signedBy needs one of keyPath, keyPaths and keyData, and only one",
        );
    }
    identity(fields, "signedIdentity")
}

fn sigstore_signed(fields: &Fields<'_>) -> Result<()> {
    const LOGS: [&str; 4] =
        ["rekorPublicKeyPath", "rekorPublicKeyPaths", "rekorPublicKeyData", "rekorPublicKeyDatas"];
    const KEYS: [&str; 4] = ["keyPath", "keyPaths", "keyData", "keyDatas"];
    let mut known = vec!["fulcio", "pki", "signedIdentity"];
    known.extend(KEYS);
    known.extend(LOGS);
    only(fields, &known)?;
    let keys = sources(fields, KEYS)?;
    let logs = sources(fields, LOGS)?;
    let (fulcio, pki) = (fields.get("fulcio"), fields.get("pki"));
    if let Some(text) = fulcio {
        authority(text, "caPath", "caData", &["oidcIssuer", "subjectEmail"], &[])?;
    }
    if let Some(text) = pki {
        let optional =
            ["caIntermediatesPath", "caIntermediatesData", "subjectEmail", "subjectHostname"];
        authority(text, "caRootsPath", "caRootsData", &[], &optional)?;
    }
    if keys + usize::from(fulcio.is_some()) + usize::from(pki.is_some()) != 1 {
        return Err(
            "a requirement sigstoreSigned needs one of keyPath, keyPaths, keyData, keyDatas, \
                    fulcio and pki, and only one",
        );
    }
    if logs > 1 || (fulcio.is_some() && logs == 0) || (pki.is_some() && logs > 0) {
        return Err(
            "of the four rekorPublicKey… there may be one: with fulcio it must be there, with \
                    pki it must not",
        );
    }
    identity(fields, "signedIdentity")
}

/// How many of a path, paths, data and several data say something.
fn sources(fields: &Fields<'_>, names: [&str; 4]) -> Result<usize> {
    let [path, paths, one, all] = names;
    let lists = [texts(fields, paths)?, datas(fields, all)?];
    if lists.contains(&Some(0))
        || [paths, all].iter().any(|name| fields.get(*name) == Some(&"null"))
    {
        return Err("a list of keys is empty");
    }
    let lists = lists.iter().filter(|list| list.is_some()).count();
    Ok(lists + usize::from(text(fields, path)?) + usize::from(data(fields, one)?))
}

/// Who vouches for keys: a path or data of its own, texts that must be there,
/// and some that may.
fn authority(
    object_text: &str,
    path: &str,
    bytes: &str,
    needed: &[&str],
    optional: &[&str],
) -> Result<()> {
    const WRONG: &str = "\"fulcio\" needs caPath or caData, oidcIssuer and subjectEmail; \"pki\" needs \
        caRootsPath or caRootsData, and subjectEmail or subjectHostname";
    let fields = object(object_text)?;
    let known = [&[path, bytes], needed, optional].concat();
    if fields.keys().any(|key| !known.contains(&key.as_str())) {
        return Err(UNKNOWN);
    }
    let mut subject = !needed.is_empty();
    for name in needed {
        if !text(&fields, name)? {
            return Err(WRONG);
        }
    }
    let mut between = 0;
    for name in optional {
        match name.ends_with("Data") {
            true => between += usize::from(data(&fields, name)?),
            false if name.ends_with("Path") => between += usize::from(text(&fields, name)?),
            false => subject |= text(&fields, name)?,
        }
    }
    let one = text(&fields, path)? != data(&fields, bytes)?;
    if one && between < 2 && subject { Ok(()) } else { Err(WRONG) }
}

/// Which name the signature must be for: `name` may be left out where it is
/// not asked for by [`exactly`].
fn identity(fields: &Fields<'_>, name: &str) -> Result<()> {
    const WRONG: &str =
        "an identity that a signature must have is not written as the runtime knows it";
    let Some(object_text) = fields.get(name) else { return Ok(()) };
    let fields = object(object_text).map_err(|_| WRONG)?;
    let value = |name: &str| {
        let text = fields.get(name).ok_or(WRONG)?;
        let text = if *text == "null" { Ok(String::new()) } else { json::read(text) };
        text.map_err(|_| WRONG)
    };
    let scope = |text: &str| {
        is_domain(text)
            || text.split_once('/').is_some_and(|(domain, path)| is_domain(domain) && is_path(path))
    };
    let fine = match kind(&fields).ok_or(WRONG)?.as_str() {
        "matchExact" | "matchRepoDigestOrExact" | "matchRepository" => {
            exactly(&fields, &[]).is_ok()
        }
        "exactReference" => {
            exactly(&fields, &["dockerReference"])?;
            is_tagged(&value("dockerReference")?)
        }
        "exactRepository" => {
            exactly(&fields, &["dockerRepository"])?;
            is_reference(&value("dockerRepository")?)
        }
        "remapIdentity" => {
            exactly(&fields, &["prefix", "signedPrefix"])?;
            scope(&value("prefix")?) && scope(&value("signedPrefix")?)
        }
        _ => false,
    };
    if fine { Ok(()) } else { Err(WRONG) }
}

fn object(text: &str) -> Result<Fields<'_>> {
    json::fields(text).map_err(|_| "it is no object, or sets a key twice")
}

fn kind(fields: &Fields<'_>) -> Option<String> {
    json::read(fields.get("type")?).ok()
}

/// No other keys, besides the type.
fn only(fields: &Fields<'_>, known: &[&str]) -> Result<()> {
    let fine = |key: &String| key == "type" || known.contains(&key.as_str());
    if fields.keys().all(fine) { Ok(()) } else { Err(UNKNOWN) }
}

/// These keys and no others, besides the type.
fn exactly(fields: &Fields<'_>, known: &[&str]) -> Result<()> {
    only(fields, known)?;
    let all = known.iter().all(|key| fields.contains_key(*key));
    if all { Ok(()) } else { Err("a key is missing that must be there") }
}

fn count(fields: &Fields<'_>, names: &[&str]) -> usize {
    names.iter().filter(|name| fields.contains_key(**name)).count()
}

/// Whether a text is there and not empty. As everywhere, null is as nothing.
fn text(fields: &Fields<'_>, name: &str) -> Result<bool> {
    match fields.get(name) {
        None | Some(&"null") => Ok(false),
        Some(text) => json::read::<String>(text)
            .map(|text| !text.is_empty())
            .map_err(|_| "a value that must be a text is none"),
    }
}

/// How many texts a list has, if it is there.
fn texts(fields: &Fields<'_>, name: &str) -> Result<Option<usize>> {
    list(fields, name, |_| true)
}

/// How many pieces of data a list has, if it is there.
fn datas(fields: &Fields<'_>, name: &str) -> Result<Option<usize>> {
    list(fields, name, is_base64)
}

fn list(fields: &Fields<'_>, name: &str, fine: impl Fn(&str) -> bool) -> Result<Option<usize>> {
    let items = match fields.get(name) {
        None | Some(&"null") => return Ok(None),
        Some(items) => json::items(items).map_err(|_| "a value that must be a list is none")?,
    };
    let is_fine =
        |item: &&str| *item == "null" || json::read::<String>(item).is_ok_and(|text| fine(&text));
    if items.iter().all(is_fine) {
        Ok(Some(items.len()))
    } else {
        Err("a list of texts holds something else, or data that is no base64")
    }
}

/// Whether data is there.
fn data(fields: &Fields<'_>, name: &str) -> Result<bool> {
    match fields.get(name) {
        None | Some(&"null") => Ok(false),
        Some(text) if json::read::<String>(text).is_ok_and(|text| is_base64(&text)) => Ok(true),
        Some(_) => Err("the data of a key is no base64"),
    }
}

/// As Go decodes it: with padding, newlines wherever they are.
fn is_base64(text: &str) -> bool {
    let mut length = 0;
    let mut padding = 0;
    for byte in text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')) {
        let digit = byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
        if !(digit && padding == 0) && byte != b'=' {
            return false;
        }
        padding += usize::from(byte == b'=');
        length += 1;
    }
    length % 4 == 0 && padding <= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_the_runtime_takes_has_no_fault() {
        for policy in [
            r#"{"default":[{"type":"insecureAcceptAnything"}]}"#,
            r#"{"default":[{"type":"reject"}],"transports":{"docker":{"quay.io":[{"type":"signedBy","keyType":"GPGKeys","keyPath":"/x"}]}}}"#,
            r#"{"default":[{"type":"reject"}],"transports":{"docker-daemon":{"":[{"type":"insecureAcceptAnything"}]}}}"#,
            r#"{"default":[{"type":"signedBy","keyType":"GPGKeys","keyPaths":["/x","/y"],"signedIdentity":{"type":"matchExact"}}]}"#,
            r#"{"default":[{"type":"signedBy","keyType":"GPGKeys","keyData":"Zm9v","signedIdentity":{"type":"exactReference","dockerReference":"quay.io/a:1"}}]}"#,
            r#"{"default":[{"type":"signedBaseLayer","baseLayerIdentity":{"type":"exactRepository","dockerRepository":"busybox"}}]}"#,
            r#"{"default":[{"type":"sigstoreSigned","keyPath":"/x","rekorPublicKeyPath":"/r"}]}"#,
            r#"{"default":[{"type":"sigstoreSigned","keyDatas":["Zm9v","YmE="],"rekorPublicKeyDatas":["Zm9v"]}]}"#,
            r#"{"default":[{"type":"sigstoreSigned","fulcio":{"caPath":"/c","oidcIssuer":"i","subjectEmail":"e"},"rekorPublicKeyData":"Zm9v"}]}"#,
            r#"{"default":[{"type":"sigstoreSigned","pki":{"caRootsPath":"/c","subjectHostname":"h"}}]}"#,
            r#"{"default":[{"type":"sigstoreSigned","keyData":"","signedIdentity":{"type":"remapIdentity","prefix":"a.io:5000","signedPrefix":"b.io/c"}}]}"#,
        ] {
            assert_eq!(fault(policy.as_bytes()), None, "{policy}");
        }
    }

    #[test]
    fn one_that_would_fail_every_pull_has_one() {
        for policy in [
            "",
            "{",
            "{}",
            "[]",
            r#"{"default":null}"#,
            r#"{"default":{}}"#,
            r#"{"default":[]}"#,
            r#"{"default":[{}]}"#,
            r#"{"default":[{"type":"reject"}],"default":[{"type":"reject"}]}"#,
            r#"{"default":[{"type":"reject"}],"other":1}"#,
            r#"{"default":[{"type":"reject"}],"transports":{"docker":{"a":[]}}}"#,
            r#"{"default":[{"type":"reject"}]} x"#,
            r#"{"default":[{"type":"accept"}]}"#,
            r#"{"default":[{"Type":"reject"}]}"#,
            r#"{"default":[{"type":"reject","type":"reject"}]}"#,
            r#"{"default":[{"type":"reject","keyPath":"/x"}]}"#,
            r#"{"default":[{"type":"reject"}],"transports":null}"#,
            r#"{"default":[{"type":"reject"}],"transports":{"docker":{"a":[{"type":"reject"}],"a":[{"type":"reject"}]}}}"#,
            r#"{"default":[{"type":"signedBy","keyPath":"/x"}]}"#,
            r#"{"default":[{"type":"signedBy","keyType":"PGP","keyPath":"/x"}]}"#,
            r#"{"default":[{"type":"signedBy","keyType":"GPGKeys"}]}"#,
            r#"{"default":[{"type":"signedBy","keyType":"GPGKeys","keyPath":""}]}"#,
            r#"{"default":[{"type":"signedBy","keyType":"GPGKeys","keyPath":1}]}"#,
            r#"{"default":[{"type":"signedBy","keyType":"GPGKeys","keyPath":"/x","keyData":"Zm9v"}]}"#,
            r#"{"default":[{"type":"signedBy","keyType":"GPGKeys","keyPath":"/x","keyData":null}]}"#,
            r#"{"default":[{"type":"signedBy","keyType":"GPGKeys","keyData":"no base64"}]}"#,
            r#"{"default":[{"type":"signedBy","keyType":"GPGKeys","keyPath":"/x","keyDatas":["Zm9v"]}]}"#,
            r#"{"default":[{"type":"signedBy","keyType":"GPGKeys","keyPath":"/x","signedIdentity":null}]}"#,
            r#"{"default":[{"type":"signedBy","keyType":"GPGKeys","keyPath":"/x","signedIdentity":{"type":"exactReference","dockerReference":"quay.io/a"}}]}"#,
            r#"{"default":[{"type":"signedBaseLayer"}]}"#,
            r#"{"default":[{"type":"signedBaseLayer","baseLayerIdentity":{"type":"exactRepository","dockerRepository":"Org/app"}}]}"#,
            r#"{"default":[{"type":"signedBaseLayer","baseLayerIdentity":{"type":"exactReference","dockerReference":"[fd00::1]:5000/a:1"}}]}"#,
            r#"{"default":[{"type":"signedBaseLayer","baseLayerIdentity":{"type":"remapIdentity","prefix":"[fd00::1]","signedPrefix":"a.io"}}]}"#,
            r#"{"default":[{"type":"sigstoreSigned"}]}"#,
            r#"{"default":[{"type":"sigstoreSigned","keyPaths":[]}]}"#,
            r#"{"default":[{"type":"sigstoreSigned","keyPath":"/x","rekorPublicKeyPath":"/r","rekorPublicKeyData":"Zm9v"}]}"#,
            r#"{"default":[{"type":"sigstoreSigned","fulcio":{"caPath":"/c","oidcIssuer":"i","subjectEmail":"e"}}]}"#,
            r#"{"default":[{"type":"sigstoreSigned","fulcio":{"caPath":"/c","oidcIssuer":"i"},"rekorPublicKeyPath":"/r"}]}"#,
            r#"{"default":[{"type":"sigstoreSigned","pki":{"caRootsPath":"/c"}}]}"#,
        ] {
            assert!(fault(policy.as_bytes()).is_some(), "{policy}");
        }
    }

    #[test]
    fn scopes_are_of_the_form_of_their_transport() {
        let digest = ["sha256:", &"0".repeat(64)].concat();
        for (transport, scope, fine) in [
            ("docker", "[fd00::1]:5000/no:name", true),
            ("unknown", "anything", true),
            ("dir", "", true),
            ("dir", "/var/lib/images", true),
            ("dir", "/", false),
            ("dir", "images", false),
            ("oci", "/var/../lib", false),
            ("oci-archive", "/var//lib", false),
            ("sif", "/var/lib/", false),
            ("docker-archive", "/a", false),
            ("tarball", "a", false),
            ("docker-daemon", "a:1", true),
            ("docker-daemon", &digest, false),
            ("atomic", "host:5000/namespace/stream:tag", true),
            ("atomic", "host/name:space", false),
            ("atomic", "host/namespace/stream:tag/more", false),
            ("containers-storage", "[overlay@/var/lib/containers]", true),
            ("containers-storage", "[/var/lib/containers]docker.io/library/a:1", true),
            ("containers-storage", &format!("[/var]a@{digest}"), true),
            ("containers-storage", "[/var]a@1", false),
            ("containers-storage", "[overlay@var]", false),
            ("containers-storage", "docker.io/library/a", false),
        ] {
            let policy = format!(
                r#"{{"default":[{{"type":"reject"}}],"transports":{{"{transport}":{{"{scope}":[{{"type":"reject"}}]}}}}}}"#
            );
            assert_eq!(fault(policy.as_bytes()).is_none(), fine, "{transport} {scope}");
        }
    }

    #[test]
    fn what_is_no_utf_8_has_a_fault() {
        let bytes = b"{\"default\":[{\"type\":\"reject\"}],\"transports\":{\"\xff\":{}}}";
        assert!(fault(bytes).is_some_and(|fault| fault.contains("UTF-8")));
        assert!(fault(b"\xff\xfe{\0}\0").is_some());
    }
}
