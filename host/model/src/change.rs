//! A difference between two node configs, as it is offered to policies.

use std::borrow::Cow;
use std::fmt;

/// One difference between two node configs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Change<'a> {
    /// `file:/etc/foo`, `unit:crio.service`, `kernel-arguments`, …
    pub id: String,
    /// What the node has.
    pub before: State<'a>,
    /// What it is to get.
    pub after: State<'a>,
}

/// Something that is the same on both sides, offered beside the changes to a
/// policy that claims it `with-unchanged`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Entry<'a> {
    /// As [`Change::id`].
    pub id: String,
    /// As it stands on both sides.
    pub state: State<'a>,
    /// Whether it is a secret that its state does not show to be one.
    pub was_secret: bool,
}

/// What was done to a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Edit {
    /// It was not there before.
    Added,
    /// It is there on both sides.
    Changed,
    /// It is not there any more.
    Removed,
}

impl Change<'_> {
    /// Added, changed or removed.
    pub fn edit(&self) -> Edit {
        match (&self.before, &self.after) {
            (State::Absent, _) => Edit::Added,
            (_, State::Absent) => Edit::Removed,
            _ => Edit::Changed,
        }
    }
}

/// One side of a change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum State<'a> {
    /// The config says nothing of it.
    Absent,
    /// Of `file:PATH`.
    File(FileState<'a>),
    /// Of `unit:NAME`.
    Unit(UnitState<'a>),
    /// Of `ssh-keys:USER`, `kernel-arguments` (in order) and `extensions` (sorted).
    List(Vec<Cow<'a, str>>),
    /// Of `kernel-type`, `os-image` and `password:USER`.
    Text(Cow<'a, str>),
    /// Of `password:USER` for whoever may not see it.
    Token(Token),
}

/// The bytes of a file, as far as whoever sees this may see them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Content<'a> {
    /// The config sets none.
    Absent,
    /// Decoded: no data URL, no base64, no gzip.
    Bytes(Cow<'a, [u8]>),
    /// In place of bytes that are a secret on the node.
    Token(Token),
}

/// Stands for a secret in all that one call offers: equal exactly where the
/// contents of one file are, and saying nothing else. Written `secret:1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token(pub u32);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "secret:{}", self.0)
    }
}

/// A file as it stands on the node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileState<'a> {
    /// The decoded bytes.
    pub content: Content<'a>,
    /// Permission bits, the default (0o644) filled in.
    pub mode: u32,
    /// A name, or a number in decimal; `root` unless set (0 is `root`).
    pub user: Cow<'a, str>,
    /// As `user`.
    pub group: Cow<'a, str>,
}

/// A systemd unit as the config sets it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UnitState<'a> {
    /// The unit file, if the config brings one.
    pub contents: Content<'a>,
    /// None: left to the system's presets.
    pub enabled: Option<bool>,
    /// Whether it is linked to `/dev/null`; None: as it was. Policies are shown that it is where only the
    /// other side of a change takes that away.
    pub masked: Option<bool>,
    /// In order of name.
    pub dropins: Vec<DropinState<'a>>,
}

/// A piece of a unit in its `.d` directory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DropinState<'a> {
    /// `10-limits.conf`
    pub name: Cow<'a, str>,
    /// What is in it.
    pub contents: Content<'a>,
}
