//! Where signatures are kept: the files of registries.d, which the runtime
//! reads for every pull, whatever image it is for.

use crate::files::{File, bytes};
use tread_policy_formats::{Map, Table, Value, yaml};

/// Where these files are.
pub(crate) const DIR: &str = "/etc/containers/registries.d/";

/// Whether the runtime reads a file, or the directory that it is in as one. Other
/// directories are passed over.
pub(crate) fn is_read(path: &str) -> bool {
    path.strip_prefix(DIR).is_some_and(|name| entry(name).0.ends_with(".yaml"))
}

/// What is right in the directory, and what is below that.
fn entry(name: &str) -> (&str, Option<&str>) {
    name.split_once('/').map_or((name, None), |(entry, below)| (entry, Some(below)))
}

/// What the files to come do to pulls.
pub(crate) enum Trouble<'a> {
    /// With this file no image can be pulled, for this reason.
    Broken(&'a str, String),
    /// Of this one only a token is known.
    Hidden(&'a str),
}

type Result<T, E = String> = std::result::Result<T, E>;

/// What RHCOS comes with: a file's name, and its namespace; without one it sets
/// `default-docker`. They are taken to be on each node, unless the config has a
/// file of that name.
const DELIVERED: [(&str, Option<&str>); 3] = [
    ("default.yaml", None),
    ("registry.access.redhat.com.yaml", Some("registry.access.redhat.com")),
    ("registry.redhat.io.yaml", Some("registry.redhat.io")),
];

/// The file that says something.
#[derive(Clone, Copy)]
struct Origin<'a> {
    /// Its name, by which it is found beside the other.
    name: &'a str,
    is_delivered: bool,
}

impl Origin<'_> {
    /// What is wrong with a file that says the same.
    fn conflict(self, what: &str) -> String {
        let start = [what, ", and so does ", cut(self.name)].concat();
        if !self.is_delivered {
            return start;
        }
        [&start, " (taken to be there, since RHCOS comes with it; a file of that name replaces it)"]
            .concat()
    }
}

/// Whether the runtime loads the files to come, all together.
pub(crate) fn check<'a>(files: &[File<'a>]) -> Result<(), Trouble<'a>> {
    let mut hidden = None;
    let mut default: Option<Origin<'_>> = None;
    let mut namespaces: Map<Origin<'_>> = Map::new();
    for (name, namespace) in DELIVERED {
        if files.iter().any(|file| file.is_to_come() && self::name(file.path) == name) {
            continue;
        }
        let origin = Origin { name, is_delivered: true };
        match namespace {
            None => default = Some(origin),
            Some(namespace) => namespaces.insert(namespace.to_string(), origin),
        }
    }
    for file in files {
        let path = file.path;
        let broken = |what| Trouble::Broken(path, what);
        if let (directory, Some(_)) = entry(name(path)) {
            if file.after.is_some() {
                return Err(broken(is_directory(directory)));
            }
            continue;
        }
        let text = match bytes(path, file.after) {
            Ok(None) => continue,
            Ok(Some(bytes)) => std::str::from_utf8(bytes),
            Err(_) => {
                hidden = Some(path);
                continue;
            }
        };
        let text = text.map_err(|_| broken("it is not written in UTF-8".to_string()))?;
        let table = yaml::read(text).map_err(|error| broken(unread(error)))?;
        let (has_default, names) = says(&table).map_err(broken)?;
        let origin = Origin { name: name(path), is_delivered: false };
        if has_default && let Some(other) = default.replace(origin) {
            return Err(broken(other.conflict("it sets default-docker")));
        }
        for namespace in names {
            if let Some(other) = namespaces.get(namespace) {
                let what = ["it has the namespace ", cut(namespace)].concat();
                return Err(broken(other.conflict(&what)));
            }
            namespaces.insert(namespace.to_string(), origin);
        }
    }
    hidden.map_or(Ok(()), |path| Err(Trouble::Hidden(path)))
}

/// What is wrong with a file that makes its directory stand where a file is read.
pub(crate) fn is_directory(name: &str) -> String {
    [cut(name), " becomes a directory, but is read as a file because of its name"].concat()
}

fn name(path: &str) -> &str {
    path.strip_prefix(DIR).unwrap_or(path)
}

/// Names longer than this are cut in texts.
const LONGEST: usize = 90;

fn cut(name: &str) -> &str {
    let end = name.char_indices().nth(LONGEST).map_or(name.len(), |(end, _)| end);
    name.get(..end).unwrap_or(name)
}

fn unread(error: yaml::Error) -> String {
    let line = error.line.to_string();
    ["line ", &line, " is not plain YAML: ", error.what].concat()
}

/// Whether a file sets `default-docker`, and the namespaces that it has.
fn says(table: &Table) -> Result<(bool, Vec<&str>)> {
    let mut has_default = false;
    let mut names = Vec::new();
    for (key, value) in table.iter() {
        match (key, value) {
            ("default-docker" | "docker", value) if is_null(value) => {}
            ("default-docker", Value::Table(namespace)) => {
                check_namespace(namespace).map_err(|what| ["default-docker: ", &what].concat())?;
                has_default = true;
            }
            ("docker", Value::Table(all)) => {
                for (name, value) in all.iter() {
                    check_value(value)
                        .map_err(|what| ["namespace ", cut(name), ": ", &what].concat())?;
                    names.push(name);
                }
            }
            ("default-docker" | "docker", _) => {
                return Err([key, " is no mapping"].concat());
            }
            _ => {}
        }
    }
    Ok((has_default, names))
}

fn check_value(value: &Value) -> Result<()> {
    match value {
        value if is_null(value) => Ok(()),
        Value::Table(namespace) => check_namespace(namespace),
        _ => Err("it is no mapping".to_string()),
    }
}

fn check_namespace(namespace: &Table) -> Result<()> {
    for (key, value) in namespace.iter() {
        let wrong = match key {
            _ if is_null(value) => None,
            "lookaside" | "sigstore" if !value.as_text().is_some_and(is_place) => {
                Some(" is no URL that signatures can be read from (https, http or file)")
            }
            "lookaside-staging" | "sigstore-staging" if is_collection(value) => Some(" is no text"),
            "use-sigstore-attachments" if !is_boolean(value) => Some(" is neither true nor false"),
            _ => None,
        };
        if let Some(wrong) = wrong {
            return Err([key, wrong].concat());
        }
    }
    Ok(())
}

fn is_null(value: &Value) -> bool {
    matches!(value, Value::Other(text) if text == "null")
}

fn is_collection(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Table(_))
}

/// Go takes the words of YAML 1.1 too, quoted or not.
fn is_boolean(value: &Value) -> bool {
    const WORDS: [&str; 16] = [
        "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off",
        "OFF",
    ];
    match value {
        Value::Bool(_) => true,
        Value::Text(text) | Value::Other(text) => WORDS.contains(&text.as_str()),
        _ => false,
    }
}

/// Whether signatures can be read from there: nothing, which means the default,
/// or a URL that leaves no doubt. Go takes some odd ones more.
fn is_place(url: &str) -> bool {
    if url.is_empty() {
        return true;
    }
    let Some((scheme, rest)) = url.split_once(':') else { return false };
    let is_web = ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            rest.split_at_checked(end).unwrap_or((rest, ""))
        }
        None => ("", rest),
    };
    let scheme = match is_web {
        true => !authority.is_empty(),
        false => scheme.eq_ignore_ascii_case("file") && path.starts_with('/'),
    };
    scheme && (authority.is_empty() || is_authority(authority)) && is_escaped(path)
}

/// `[user@]host[:port]`.
fn is_authority(authority: &str) -> bool {
    let (user, address) = authority.rsplit_once('@').unwrap_or(("", authority));
    let part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_host = match address.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((address, port))) => {
            let port = port.strip_prefix(':').unwrap_or(port);
            is_ipv6(address) && is_port(port)
        }
        Some(None) => false,
        None => {
            let (host, port) = address.split_once(':').unwrap_or((address, ""));
            !host.is_empty() && host.bytes().all(part) && is_port(port)
        }
    };
    is_host && user.bytes().all(|byte| part(byte) || byte == b':')
}

/// Eight groups of up to four digits; `::` stands for some that are zero.
fn is_ipv6(address: &str) -> bool {
    let count = |groups: &str| -> Option<usize> {
        let is_group = |group: &str| {
            (1..=4).contains(&group.len()) && group.bytes().all(|b| b.is_ascii_hexdigit())
        };
        match groups {
            "" => Some(0),
            groups => groups.split(':').all(is_group).then(|| groups.split(':').count()),
        }
    };
    match address.split_once("::") {
        Some((start, end)) => count(start).zip(count(end)).is_some_and(|(a, b)| a + b < 8),
        None => count(address) == Some(8),
    }
}

/// Printable ASCII, with a `%` before two digits only.
fn is_escaped(path: &str) -> bool {
    let mut parts = path.split('%');
    let is_plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_graphic());
    let is_code =
        |part: &str| part.len() >= 2 && part.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    parts.next().is_some_and(is_plain) && parts.all(|part| is_code(part) && is_plain(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_read_from_urls() {
        for url in [
            "",
            "https://a.io/signatures",
            "http://10.0.0.1:8080",
            "HTTPS://user:pass@a-b.io/x%20y?z#f",
            "file:///var/lib/signatures",
            "file:/var/lib/signatures",
            "https://[fd00::1]:8080/x",
            "https://[::]",
            "https://[1:2:3:4:5:6:7:8]",
        ] {
            assert!(is_place(url), "{url}");
        }
        for url in [
            "a.io/signatures",
            "/var/lib/signatures",
            "ftp://a.io",
            "https://",
            "https:a.io",
            "https://a.io:x",
            "https://a.io/%zz",
            "https://a.io/%1",
            "https://[fd00::1",
            "https://[fd00::g]",
            "https://[1:2:3:4:5:6:7]",
            "https://[1::2::3]",
            "https://[1:2:3:4::5:6:7:8]",
            "https://[12345::]",
            "https://a io",
            "https://a.io/x y",
            "file://",
            "%",
        ] {
            assert!(!is_place(url), "{url}");
        }
    }
}
