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

/// `HOST:PORT` of a URL.
pub(super) fn of_url(url: &str) -> Option<String> {
    let (rest, port) = match url.split_once("://")? {
        ("https", rest) => (rest, 443),
        ("http", rest) => (rest, 80),
        _ => return None,
    };
    let host = rest.split('/').next().filter(|host| !host.is_empty())?;
    let after_brackets = host.rsplit_once(']').map_or(host, |(_, after)| after);
    Some(match after_brackets.contains(':') {
        true => host.to_owned(),
        false => format!("{host}:{port}"),
    })
}
