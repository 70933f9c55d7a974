//! What sshd takes for a key in a file of authorized keys: sshd(8), AUTHORIZED_KEYS FILE FORMAT.

/// The kinds of keys, and of how many strings the bytes of one are made, its kind included.
const KINDS: [(&str, usize); 8] = [
    ("ssh-ed25519", 2),
    ("ssh-rsa", 3),
    ("ssh-dss", 5),
    ("ecdsa-sha2-nistp256", 3),
    ("ecdsa-sha2-nistp384", 3),
    ("ecdsa-sha2-nistp521", 3),
    ("sk-ssh-ed25519@openssh.com", 3),
    ("sk-ecdsa-sha2-nistp256@openssh.com", 4),
];

const VENDOR: &str = "@openssh.com";
/// Stands in place of it in the kinds of certificates.
const CERTIFICATE: &str = "-cert-v01@openssh.com";

/// Options in front of a key; most of them may have a `no-` before them.
const FLAGS: [&str; 9] = [
    "agent-forwarding",
    "cert-authority",
    "port-forwarding",
    "pty",
    "restrict",
    "touch-required",
    "user-rc",
    "verify-required",
    "x11-forwarding",
];

/// Options with a value in quotes.
const WITH_VALUE: [&str; 8] = [
    "command",
    "environment",
    "expiry-time",
    "from",
    "permitlisten",
    "permitopen",
    "principals",
    "tunnel",
];

const BLANKS: [char; 2] = [' ', '\t'];

/// Whether an entry of `sshAuthorizedKeys` has a line that can be a key. Each line of it becomes one of
/// the file.
pub(super) fn can_be_key(entry: &str) -> bool {
    entry.lines().map(|line| line.trim_start_matches(BLANKS)).any(|line| {
        !line.starts_with('#') && (is_key(line) || behind_options(line).is_some_and(is_key))
    })
}

/// Whether a line begins with a kind and the bytes of a key of that kind.
fn is_key(line: &str) -> bool {
    let mut words = line.split(BLANKS).filter(|word| !word.is_empty());
    let (Some(kind), Some(base64)) = (words.next(), words.next()) else { return false };
    let Ok(bytes) = base64_simd::STANDARD.decode_to_vec(base64) else { return false };
    let is_named = string(&bytes).is_some_and(|(first, _)| first == kind.as_bytes());
    is_named && behind_key(kind, &bytes).is_some_and(<[u8]>::is_empty)
}

/// What follows a key, or a certificate, of a kind that is known.
fn behind_key<'b>(kind: &str, bytes: &'b [u8]) -> Option<&'b [u8]> {
    let strings = |kind: &str| KINDS.iter().find(|(known, _)| *known == kind).map(|it| it.1);
    match kind.strip_suffix(CERTIFICATE) {
        None => behind_strings(bytes, strings(kind)?),
        Some(name) => {
            let of_key = strings(name).or_else(|| strings(&format!("{name}{VENDOR}")))?;
            behind_certificate(bytes, of_key)
        }
    }
}

/// What follows a certificate: besides the strings of its key it has a nonce, numbers, whose it is and
/// from when to when, and a signature.
fn behind_certificate(bytes: &[u8], of_key: usize) -> Option<&[u8]> {
    let (serial_and_type, times) = (12, 16);
    let bytes = behind_strings(bytes, of_key + 1)?.get(serial_and_type..)?;
    behind_strings(behind_strings(bytes, 2)?.get(times..)?, 5)
}

fn behind_strings(bytes: &[u8], count: usize) -> Option<&[u8]> {
    (0..count).try_fold(bytes, |bytes, _| string(bytes).map(|(_, rest)| rest))
}

/// The first string of some bytes, which has its length before it, and the rest.
fn string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

/// What follows the options at the beginning of a line; None: there are none, or one that sshd does not
/// know, for which it leaves the line out.
fn behind_options(line: &str) -> Option<&str> {
    let (mut begin, mut is_quoted, mut is_escaped) = (0, false, false);
    for (at, char) in line.char_indices() {
        match char {
            '"' if !is_escaped => is_quoted = !is_quoted,
            ',' | ' ' | '\t' if !is_quoted => {
                let (option, rest) = (line.get(begin..at)?, line.get(at + 1..)?);
                if !is_option(option) {
                    return None;
                }
                if char != ',' {
                    return Some(rest);
                }
                begin = at + 1;
            }
            _ => {}
        }
        is_escaped = char == '\\';
    }
    None
}

fn is_option(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    match text.split_once('=') {
        Some((name, value)) => {
            let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
            WITH_VALUE.contains(&name) && inner.is_some()
        }
        None => FLAGS.contains(&text.strip_prefix("no-").unwrap_or(&text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ED25519: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIPgKTZHpZAtQ8Vyne53HVEL6SK3JWn+pVA7mcREx4d9k";
    const RSA: &str = "AAAAB3NzaC1yc2EAAAADAQABAAAAgQDbq7GXvF7GPIdEty375Q1jrA337ICC4GUTWKlVRCr11NZ3uVLr\
        ApaNrt8rW4AzS2MgIur1N6VAcjCBAjChbkDdmLC03ysWw3dryA1+Oovus0z4NmVTabbn7p5/WMLVrYwD\
        qVOPAzMxHdyvoVHnoA6DBeqUv83HRGepI/vIelrwxQ==";
    const ECDSA: &str = "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBORLFTmgtiopF5U5yFBdLo6ZpRWN\
        5vO8BQEsyOLK6myJECKQljU6d/EnedamWaBBgyWLdXhJaSR1fQFhpfGX9fU=";
    const CERTIFIED: &str = "AAAAIHNzaC1lZDI1NTE5LWNlcnQtdjAxQG9wZW5zc2guY29tAAAAIPUUwUXOU9m6QrMmp/YCFmtOXARE\
        +tYdxhEyPvTadCkXAAAAIPgKTZHpZAtQ8Vyne53HVEL6SK3JWn+pVA7mcREx4d9kAAAAAAAAAAAAAAAB\
        AAAAAXgAAAAIAAAABGNvcmUAAAAAAAAAAP//////////AAAAAAAAAIIAAAAVcGVybWl0LVgxMS1mb3J3\
        YXJkaW5nAAAAAAAAABdwZXJtaXQtYWdlbnQtZm9yd2FyZGluZwAAAAAAAAAWcGVybWl0LXBvcnQtZm9y\
        d2FyZGluZwAAAAAAAAAKcGVybWl0LXB0eQAAAAAAAAAOcGVybWl0LXVzZXItcmMAAAAAAAAAAAAAAGgA\
        AAATZWNkc2Etc2hhMi1uaXN0cDI1NgAAAAhuaXN0cDI1NgAAAEEE5EsVOaC2KikXlTnIUF0ujpmlFY3m\
        87wFASzI4srqbIkQIpCWNTp38Sd51qZZoEGDJYt1eElpJHV9AWGl8Zf19QAAAGUAAAATZWNkc2Etc2hh\
        Mi1uaXN0cDI1NgAAAEoAAAAhAP6cBtG57QEFBLt1HsLBeT/Q0Q6V6fQEc2XSvHUdQFVJAAAAIQCunuZH\
        YKcShUix75xyuR+wDTLaqCwBZAD5t10Cqfs1oQ==";

    /// The base64 of a key whose strings are these.
    fn made_of(strings: &[&str]) -> String {
        let bytes = strings.iter().flat_map(|string| {
            let length = u32::try_from(string.len()).unwrap().to_be_bytes();
            length.into_iter().chain(string.bytes())
        });
        base64_simd::STANDARD.encode_to_string(bytes.collect::<Vec<u8>>())
    }

    #[test]
    fn a_line_is_a_key_where_sshd_reads_one() {
        let sk = "sk-ssh-ed25519@openssh.com";
        for entry in [
            format!("ssh-ed25519 {ED25519}"),
            format!("ssh-ed25519 {ED25519} core@host of mine"),
            format!(" \tssh-ed25519 \t {ED25519}\tcore@host\r\n"),
            format!("ssh-rsa {RSA} core@host"),
            format!("ecdsa-sha2-nistp256 {ECDSA} core@host"),
            format!("ssh-ed25519-cert-v01@openssh.com {CERTIFIED} core@host"),
            format!("{sk} {} core@host", made_of(&[sk, "bytes", "ssh:"])),
            format!("restrict ssh-ed25519 {ED25519} core@host"),
            format!("no-pty,X11-Forwarding ssh-ed25519 {ED25519} core@host"),
            format!("command=\"echo \\\"a, b\\\" c\",from=\"10.0.0.0/8\"  ssh-ed25519 {ED25519}"),
            format!("cert-authority,principals=\"core\" ssh-rsa {RSA}"),
            format!("# note\nssh-ed25519 {ED25519} core@host"),
            format!("\n\nssh-ed25519 {ED25519} core@host\n# note\n"),
            format!("garbage\nssh-ed25519 {ED25519} core@host"),
        ] {
            assert!(can_be_key(&entry), "{entry}");
        }
    }

    #[test]
    fn usual_mistakes_are_no_keys() {
        let (begin, end) = ED25519.split_at(40);
        let (rsa_begin, rsa_end) = RSA.split_at(64);
        let private = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAE\n\
                       -----END OPENSSH PRIVATE KEY-----\n";
        let wrong_kind = made_of(&["ssh-rsa", "bytes"]);
        for entry in [
            String::new(),
            "# ssh-ed25519".to_owned(),
            format!("# ssh-ed25519 {ED25519} core@host"),
            "garbage".to_owned(),
            "hello world".to_owned(),
            "<your key here>".to_owned(),
            "ssh-ed25519".to_owned(),
            "ssh-ed25519 xyz".to_owned(),
            "ssh-ed25519 AAAA core@host".to_owned(),
            format!("{ED25519} core@host"),
            format!("ssh-ed25519{ED25519} core@host"),
            format!("ssh-ed25519\n{ED25519} core@host"),
            format!("ssh-ed25519 {begin}\n{end} core@host"),
            format!("ssh-ed25519 {begin} {end} core@host"),
            format!("ssh-rsa {rsa_begin}\n{rsa_end} core@host"),
            format!("ssh-ed25519 {begin} core@host"),
            format!("ssh-edd25519 {ED25519} core@host"),
            format!("SSH-ED25519 {ED25519} core@host"),
            format!("rsa-sha2-512 {RSA} core@host"),
            format!("ssh-rsa {ED25519} core@host"),
            format!("ssh-ed25519 {wrong_kind} core@host"),
            format!("ssh-ed25519 \"{ED25519}\" core@host"),
            format!("github.com ssh-ed25519 {ED25519}"),
            format!("ssh-ed25519-cert-v01@openssh.com {ED25519}"),
            format!("command=echo ssh-ed25519 {ED25519}"),
            format!("command=\"echo ssh-ed25519 {ED25519}"),
            format!("restricted ssh-ed25519 {ED25519}"),
            format!("restrict, no-pty ssh-ed25519 {ED25519}"),
            format!("restrict # ssh-ed25519 {ED25519}"),
            private.to_owned(),
            format!(
                "---- BEGIN SSH2 PUBLIC KEY ----\nComment: \"core\"\n{ED25519}\n\
                 ---- END SSH2 PUBLIC KEY ----"
            ),
        ] {
            assert!(!can_be_key(&entry), "{entry}");
        }
    }
}
