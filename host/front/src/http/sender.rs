//! Who sends a request, as far as it says so itself.

use super::answer::Refused;
use super::connections::Peer;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr};

/// Tokens are no longer.
const LONGEST_TOKEN: usize = 16 * 1024;

/// Who asks: from where, and with which headers.
#[derive(Debug, Clone)]
pub struct Sender {
    pub(super) peer: IpAddr,
    headers: HeaderMap,
}

impl<S: Sync> FromRequestParts<S> for Sender {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Sender, Infallible> {
        // Requests that came by no connection are of one peer.
        let nowhere = IpAddr::from(Ipv6Addr::UNSPECIFIED);
        let peer = parts.extensions.get::<Peer>().map_or(nowhere, |peer| peer.0);
        Ok(Sender { peer, headers: parts.headers.clone() })
    }
}

impl Sender {
    /// The token that it sends; `advice` says which one it should, where it sends none.
    pub(super) fn token(&self, advice: &str) -> Result<&str, Refused> {
        bearer(&self.headers).ok_or_else(|| Refused::new(StatusCode::UNAUTHORIZED, advice))
    }
}

/// The token that these headers show.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?;
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    let is_one =
        scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= LONGEST_TOKEN;
    is_one.then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn sent(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn only_a_bearer_token_is_a_token() {
        assert_eq!(bearer(&sent("Bearer abc")), Some("abc"));
        assert_eq!(bearer(&sent("bearer  abc ")), Some("abc"));
        for bad in
            ["", "abc", "Bearer", "Bearer ", "Basic abc", &format!("Bearer {}", "a".repeat(20_000))]
        {
            assert_eq!(bearer(&sent(bad)), None, "{bad}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
        let bytes = HeaderMap::from_iter([(
            header::AUTHORIZATION,
            HeaderValue::from_bytes(b"Bearer \xff\xfe").unwrap(),
        )]);
        assert_eq!(bearer(&bytes), None);
    }
}
