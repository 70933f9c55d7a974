//! How long a token lives, by what it says of itself. The API server verifies it.

use serde::Deserialize;
use std::time::Duration;

/// Until when a token is good, since 1970; nothing where it does not say so.
pub(super) fn ends(token: &str) -> Option<Duration> {
    #[derive(Deserialize)]
    struct Claims {
        exp: u64,
    }
    let claims = token.split('.').nth(1)?;
    let claims = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(claims).ok()?;
    let Claims { exp } = serde_json::from_slice(&claims).ok()?;
    Some(Duration::from_secs(exp))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(claims: &str) -> String {
        format!("e30.{}.c2ln", base64_simd::URL_SAFE_NO_PAD.encode_to_string(claims))
    }

    #[test]
    fn a_token_says_when_it_ends_or_nobody_knows() {
        let good = token(r#"{"aud":["tread.dev/agents"],"exp":1763884800,"sub":"x"}"#);
        assert_eq!(ends(&good), Some(Duration::from_secs(1_763_884_800)));
        for bad in [
            String::new(),
            "token-of-alice".to_owned(),
            "a.b.c".to_owned(),
            token("{}"),
            token(r#"{"exp":"soon"}"#),
            token(r#"{"exp":-1}"#),
            token("exp"),
        ] {
            assert_eq!(ends(&bad), None, "{bad}");
        }
    }
}
