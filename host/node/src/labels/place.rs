//! Where the host's policy is, and whether there is one.

use super::error::LabelError;
use crate::tree::{PathError, Tree};
use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// The name of the attribute that holds a label.
pub(super) const ATTRIBUTE: &[u8] = b"security.selinux";

const CONFIG: &str = "/etc/selinux/config";

/// The longest label.
const MOST_OF_LABEL: usize = 4096;

/// Why no labels are set on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disabled {
    /// There is no `/etc/selinux/config`.
    NoConfig,
    /// It says `SELINUX=disabled`.
    ByConfig,
    /// The policy that it names has no file contexts.
    NoPolicy,
    /// The file system keeps no labels.
    NoAttributes,
}

/// The folder of the host's policy.
pub(super) struct Place(String);

impl Place {
    pub(super) fn of(tree: &Tree) -> Result<Result<Place, Disabled>, LabelError> {
        let Some(config) = tree.read(CONFIG, 1 << 20)? else { return Ok(Err(Disabled::NoConfig)) };
        match policy(&String::from_utf8_lossy(&config)) {
            None => Ok(Err(Disabled::ByConfig)),
            Some(name) if is_name(name) => Ok(Ok(Place(format!("/etc/selinux/{name}")))),
            Some(name) => Err(LabelError::Policy(name.to_owned())),
        }
    }

    pub(super) fn file(&self, name: &str) -> String {
        format!("{}/contexts/files/{name}", self.0)
    }
}

/// The policy that a config names; nothing if it says that there is none. As libselinux
/// reads it: the first line that says how it is enforced counts, and the last one that
/// names the policy.
fn policy(config: &str) -> Option<&str> {
    let enforced = config.lines().filter_map(|line| line.strip_prefix("SELINUX="));
    let mut enforced = enforced.filter_map(|word| {
        let is = |other: &str| begins(word.trim_ascii_start(), other).is_some();
        match is("disabled") {
            true => Some(false),
            false => (is("enforcing") || is("permissive")).then_some(true),
        }
    });
    if enforced.next() == Some(false) {
        return None;
    }
    let mut lines = config.lines().rev();
    let named = lines.find_map(|line| begins(line.trim_ascii_start(), "SELINUXTYPE="));
    let unseen = |it: char| it.is_ascii_whitespace() || it.is_ascii_control();
    Some(named.unwrap_or("targeted").trim_matches(unseen))
}

/// What follows a word, in letters of any case.
fn begins<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let (first, rest) = text.split_at_checked(word.len())?;
    first.eq_ignore_ascii_case(word).then_some(rest)
}

fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
}

/// Whether the file system of `/etc` keeps labels.
pub(super) fn keeps_labels(tree: &Tree) -> Result<bool, LabelError> {
    let failed = |errno: Errno| PathError::io("/etc", errno.into());
    let Some(folder) = tree.folder("/etc")? else { return Ok(false) };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(&folder, ".", flags, Mode::empty()).map_err(failed)?;
    let mut label = Vec::with_capacity(MOST_OF_LABEL);
    match rustix::fs::fgetxattr(&folder, ATTRIBUTE, spare_capacity(&mut label)) {
        Ok(_) | Err(Errno::NODATA | Errno::RANGE) => Ok(true),
        Err(Errno::OPNOTSUPP) => Ok(false),
        Err(errno) => Err(failed(errno).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::policy;

    #[test]
    fn the_config_names_the_policy_as_libselinux_reads_it() {
        let cases = [
            ("SELINUX=enforcing\nSELINUXTYPE=targeted\n", Some("targeted")),
            ("# SELINUX=disabled\nSELINUX= Permissive\nSELINUXTYPE= mls \r\n", Some("mls")),
            ("SELINUX=Disabled\nSELINUXTYPE=targeted\n", None),
            ("SELINUX=perhaps\nSELINUX=disabled\n", None),
            ("SELINUX=enforcing\nSELINUX=disabled\n", Some("targeted")),
            ("selinuxtype=a\n  SELINUXTYPE=b\n#SELINUXTYPE=c\n", Some("b")),
            ("", Some("targeted")),
            ("SELINUXTYPE=../../etc\n", Some("../../etc")),
        ];
        for (config, expected) in cases {
            assert_eq!(policy(config), expected, "{config:?}");
        }
    }
}
