//! Where the SDK comes from, as a line of Cargo.toml.

use std::path::Path;

const NAME: &str = "tread-guest-sdk";

/// What stands behind `tread-guest-sdk =`: for a version, a directory, or a
/// git URL with a revision. None: the version of this program.
pub(super) fn dependency(sdk: Option<&str>) -> Result<String, String> {
    let Some(sdk) = sdk else { return Ok(quoted(env!("CARGO_PKG_VERSION"))) };
    if sdk.contains("://") || sdk.starts_with("git@") {
        return git(sdk);
    }
    let path = Path::new(sdk);
    if is_version(sdk) && !path.exists() {
        return Ok(quoted(sdk));
    }
    let inside = path.join("guest-sdk");
    let found = [path, &inside].into_iter().find(|dir| is_sdk(dir)).ok_or_else(|| {
        format!(
            "--sdk {sdk}: expected a version such as {}, a directory with the crate {NAME}, or a \
             git URL with #REVISION; there is no Cargo.toml of {NAME} at that place",
            env!("CARGO_PKG_VERSION")
        )
    })?;
    let whole =
        found.canonicalize().map_err(|error| format!("--sdk {sdk} cannot be found: {error}"))?;
    match whole.to_str() {
        Some(text) => Ok(format!("{{ path = {} }}", quoted(text))),
        None => Err(format!("--sdk {sdk}: its path is no UTF-8, which Cargo.toml cannot hold")),
    }
}

fn git(sdk: &str) -> Result<String, String> {
    let sdk = sdk.strip_prefix("git+").unwrap_or(sdk);
    let Some((url, revision)) = sdk.split_once('#').filter(|(_, revision)| !revision.is_empty())
    else {
        return Err(format!(
            "--sdk {sdk}: add the revision, {sdk}#REVISION, so that the policy is built from the \
             same SDK tomorrow"
        ));
    };
    if !url.contains("://") {
        return Err(format!("--sdk {sdk}: write the URL as ssh://git@HOST/PATH#REVISION"));
    }
    Ok(format!("{{ git = {}, rev = {} }}", quoted(url), quoted(revision)))
}

fn is_sdk(dir: &Path) -> bool {
    std::fs::read_to_string(dir.join("Cargo.toml"))
        .is_ok_and(|text| text.contains(&format!("name = \"{NAME}\"")))
}

/// `1`, `0.1` or `1.4.0-rc.1`.
fn is_version(text: &str) -> bool {
    let (numbers, rest) = text.split_once(['-', '+']).unwrap_or((text, "0"));
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b".-+".contains(&byte);
    numbers.split('.').count() <= 3
        && numbers.split('.').all(number)
        && !rest.is_empty()
        && rest.bytes().all(fine)
}

/// A string of TOML, whose escapes are those of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_a_directory_and_a_git_revision_are_told_apart() {
        let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let path = quoted(sdk.join("guest-sdk").canonicalize().unwrap().to_str().unwrap());
        let direct = sdk.join("guest-sdk");
        for (given, expected) in [
            (None, quoted(env!("CARGO_PKG_VERSION"))),
            (Some("1.2.3"), "\"1.2.3\"".to_owned()),
            (Some("0.1.0-rc.1"), "\"0.1.0-rc.1\"".to_owned()),
            (Some(sdk.to_str().unwrap()), format!("{{ path = {path} }}")),
            (Some(direct.to_str().unwrap()), format!("{{ path = {path} }}")),
            (
                Some("https://git.example.com/tread.git#0123abcd"),
                "{ git = \"https://git.example.com/tread.git\", rev = \"0123abcd\" }".to_owned(),
            ),
            (
                Some("git+ssh://git@example.com/tread#v1"),
                "{ git = \"ssh://git@example.com/tread\", rev = \"v1\" }".to_owned(),
            ),
        ] {
            assert_eq!(dependency(given), Ok(expected), "{given:?}");
        }
    }

    #[test]
    fn what_is_no_sdk_is_an_error_that_says_what_is_expected() {
        let here = env!("CARGO_MANIFEST_DIR");
        for (given, part) in [
            ("nowhere", "expected a version"),
            (here, "expected a version"),
            ("https://git.example.com/tread.git", "#REVISION"),
            ("https://git.example.com/tread.git#", "#REVISION"),
            ("git@example.com:tread#v1", "ssh://"),
            ("1.2.3.4", "expected a version"),
        ] {
            let message = dependency(Some(given)).unwrap_err();
            assert!(message.contains(part), "{part:?} in {message}");
        }
    }
}
