//! The hash of a password.

use std::fmt;

/// Longer than any method writes.
const MOST: usize = 1024;

/// The hash of a password: it is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Hash(Vec<u8>);

impl fmt::Debug for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Hash(not shown)")
    }
}

impl Hash {
    /// What a config says; why it cannot stand in a line, without saying it.
    pub fn new(text: &str) -> Result<Hash, String> {
        let spoils = |it: char| it == ':' || it.is_control();
        if text.contains(spoils) {
            return Err("its passwordHash has a colon, a line break or another control \
                        character, which would change other fields of /etc/shadow; write it as \
                        `mkpasswd` prints it"
                .to_owned());
        }
        match text.len() > MOST {
            true => Err(format!(
                "its passwordHash has more than {MOST} bytes, and no hash has; write it as \
                 `mkpasswd` prints it"
            )),
            false => Ok(Hash(text.as_bytes().to_vec())),
        }
    }

    /// No password matches it; keys still do.
    pub fn locked() -> Hash {
        Hash(b"*".to_vec())
    }

    /// What stands in a field.
    pub(super) fn of_field(field: &[u8]) -> Hash {
        Hash(field.to_vec())
    }

    /// What was kept of a field, which is none any more if it would end it.
    pub fn kept(bytes: Vec<u8>) -> Option<Hash> {
        let spoils = |byte: &u8| matches!(byte, b':' | b'\n' | b'\0');
        (!bytes.iter().any(spoils)).then_some(Hash(bytes))
    }

    /// Whether anybody may log in without a password.
    pub fn is_open(&self) -> bool {
        self.0.is_empty()
    }

    /// For the file, and for a copy that only root reads.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
