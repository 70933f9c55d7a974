//! `verification.hash`: `sha256-` or `sha512-`, and the digest in hexadecimal of
//! what a file is to hold.

use sha2::{Digest as _, Sha256, Sha512};

/// What is wrong with a hash; `bytes` are what it is of, if they are known.
pub(crate) fn fault(hash: &str, bytes: Option<&[u8]>) -> Option<String> {
    const FORM: &str = "Write `sha256-` or `sha512-`, and then the digest in hexadecimal digits";
    let Some((name, sum)) = hash.split_once('-') else {
        return Some(format!("Ignition takes no hash of this form. {FORM}."));
    };
    let length = match name {
        "sha256" => 64,
        "sha512" => 128,
        _ => return Some(format!("Ignition knows no such hash. {FORM}.")),
    };
    if sum.len() != length {
        let found = sum.len();
        return Some(format!("The digest has {found} characters, and needs {length}. {FORM}."));
    }
    if !sum.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Some(format!("The digest has a character that is no hexadecimal digit. {FORM}."));
    }
    let digest = match name {
        "sha256" => Sha256::digest(bytes?).to_vec(),
        _ => Sha512::digest(bytes?).to_vec(),
    };
    let real: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    (!real.eq_ignore_ascii_case(sum)).then(|| {
        "The contents do not have this hash, so that no machine with this config would boot. \
         Correct the contents, or remove `verification`."
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_has_a_known_name_its_length_and_what_the_contents_have() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let right = format!("sha256-{empty}");
        assert_eq!(fault(&right, Some(b"")), None);
        assert_eq!(fault(&right.replace('e', "E"), Some(b"")), None);
        assert_eq!(fault(&right, None), None);
        let long = format!("sha512-{empty}{empty}");
        assert_eq!(fault(&long, None), None);
        for (hash, bytes, want) in [
            (right.as_str(), Some(&b"x"[..]), "do not have this hash"),
            (&long, Some(b""), "do not have this hash"),
            (empty, None, "no hash of this form"),
            ("", None, "no hash of this form"),
            ("md5-d41d8cd98f00b204e9800998ecf8427e", None, "no such hash"),
            ("SHA256-00", None, "no such hash"),
            (right.strip_suffix('5').unwrap(), None, "has 63 characters, and needs 64"),
            (&format!("sha512-{empty}"), None, "has 64 characters, and needs 128"),
            (&right.replace('3', "g"), None, "no hexadecimal digit"),
        ] {
            let found = fault(hash, bytes).unwrap();
            assert!(found.contains(want), "{hash}: {found}");
        }
    }
}
