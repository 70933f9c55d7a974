//! Hashes of passwords, as crypt(5) writes them.

/// How long the hash itself is, by the method that stands before it.
const LENGTHS: [(&str, usize); 12] = [
    ("1", 22),
    ("2a", 53),
    ("2b", 53),
    ("2x", 53),
    ("2y", 53),
    ("3", 32),
    ("5", 43),
    ("6", 86),
    ("7", 43),
    ("gy", 43),
    ("sha1", 28),
    ("y", 43),
];

/// Whether a password can have this hash. `!`, `*` and what else no method writes
/// lock a user's password.
pub(crate) fn can_match(hash: &str) -> bool {
    let plain = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'/'))
    };
    if let Some(rest) = hash.strip_prefix('$') {
        let Some((method, rest)) = rest.split_once('$') else { return false };
        // Sun's has a salt that may be empty.
        let own = rest.rsplit('$').next().unwrap_or_default();
        let sun = method.strip_prefix("md5").is_some_and(|it| it.is_empty() || it.starts_with(','));
        return match LENGTHS.iter().find(|(known, _)| *known == method) {
            Some((_, length)) => rest.contains('$') && own.len() == *length && plain(own),
            None => sun && own.len() == 22 && plain(own),
        };
    }
    match hash.strip_prefix('_') {
        Some(rest) => rest.len() == 19 && plain(rest),
        None => hash.len() == 13 && plain(hash),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_that_a_method_writes_can_match() {
        for hash in [
            "$6$salt$IxDD3jeSOb5eB1CX5LBsqZFVkJdido3OUILO5Ifz5iwMuTS4XMS130MTSuDDl3aCI6WouIL9AjRbLCelDCy.g.",
            "$6$rounds=5000$salt$IxDD3jeSOb5eB1CX5LBsqZFVkJdido3OUILO5Ifz5iwMuTS4XMS130MTSuDDl3aCI6WouIL9AjRbLCelDCy.g.",
            "$5$salt$Gcm6FsVtF/Qa77ZKD.iwsJlCVPY0XSMgLJL0Hnww/c1",
            "$1$salt$qJH7.N4xYta3aEG/dfqo/0",
            "$y$j9T$F5Jx5fExrKuPp53xLKQ..1$X3DX6M94c7o.9agCG9G317fhZg9SqC.5i5rd.RhAtQ7",
            "$2b$05$abcdefghijklmnopqrstuuLcI5gZ0ztMFtPcqTBIrqa0UoOvi9P1K",
            "abJnggxhB/yWI",
            "_J9..CCCCXBrJUJV154M",
        ] {
            assert!(can_match(hash), "{hash}");
        }
    }

    #[test]
    fn a_hash_that_nothing_writes_locks() {
        let good = "$6$salt$IxDD3jeSOb5eB1CX5LBsqZFVkJdido3OUILO5Ifz5iwMuTS4XMS130MTSuDDl3aCI6WouIL9AjRbLCelDCy.g.";
        for hash in [
            "!",
            "!!",
            "*",
            "x",
            "*0",
            "*LK*",
            "NP",
            "secret",
            "$6$x",
            "$6$$",
            "$6$salt$",
            "$",
            &format!("!{good}"),
            &format!("*{good}"),
            good.strip_suffix('.').unwrap(),
            &good.replace("$6$", "$9$"),
            "abJnggxhB/yW!",
            "_J9..CCCC",
        ] {
            assert!(!can_match(hash), "{hash}");
        }
    }
}
