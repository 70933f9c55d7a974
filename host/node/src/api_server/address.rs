//! Where an API server is.

use tokio_rustls::rustls::pki_types::ServerName;

/// Whether a text is `HOST:PORT`, and not, say, a URL.
pub(crate) fn is_address(text: &str) -> bool {
    let Some((host_of, port)) = text.rsplit_once(':') else { return false };
    let has_port = port.parse::<u16>().is_ok_and(|port| port > 0);
    let is_name = |name: &str| ServerName::try_from(name).is_ok();
    let is_host = match host_of.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        Some(number) => number.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host_of.contains(':') && is_name(host_of),
    };
    has_port && is_host
}

/// The host of `HOST:PORT`.
pub(super) fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

/// Where a URL leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// `HOST:PORT`.
    pub(super) address: String,
    /// Whether whoever is there has to prove who it is.
    pub(super) is_https: bool,
}

/// Where a URL leads, without whoever it says logs in. Without a scheme it is `https`, as kubelets
/// have it.
pub(super) fn of_url(url: &str) -> Option<Place> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
    let (port, is_https) = match scheme.to_ascii_lowercase().as_str() {
        "https" => (443, true),
        "http" => (80, false),
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if host.is_empty() {
        return None;
    }
    let after_brackets = host.rsplit_once(']').map_or(host, |(_, after)| after);
    let address = match after_brackets.contains(':') {
        true => host.to_owned(),
        false => format!("{host}:{port}"),
    };
    Some(Place { address, is_https })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_url_is_read_as_kubelets_read_it_and_nobody_who_logs_in_is_told() {
        for (url, address, is_https) in [
            ("https://api.example.com:6443", "api.example.com:6443", true),
            ("https://api.example.com/path", "api.example.com:443", true),
            ("HTTPS://api.example.com?x=1", "api.example.com:443", true),
            ("http://[fd00::1]#x", "[fd00::1]:80", false),
            ("HTTP://[fd00::1]:8080", "[fd00::1]:8080", false),
            ("https://user:secret@api.example.com:6443/x", "api.example.com:6443", true),
            ("api.example.com:6443", "api.example.com:6443", true),
        ] {
            let place = Place { address: address.to_owned(), is_https };
            assert_eq!(of_url(url), Some(place), "{url}");
        }
        for bad in ["", "ftp://api.example.com", "https:///x", "https://user@"] {
            assert_eq!(of_url(bad), None, "{bad}");
        }
    }
}
