//! What a policy is asked about.

/// The bytes of a file, as far as the policy may see them.
///
/// ```
/// use tread_guest_sdk::Content;
/// // Of a secret only this much is known: whether it is the same.
/// let (before, after) = (Content::Digest("secret:1".into()), Content::Digest("secret:2".into()));
/// assert!(before != after && before.text().is_none());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The configuration sets no content.
    Absent,
    /// Decoded: no data URL, no base64, no gzip.
    Bytes(Vec<u8>),
    /// A token in place of bytes that are a secret on the node: `secret:1`,
    /// `secret:2`, … in order within the call. Equal tokens mean equal bytes, of
    /// one file: two files never have a token in common. Nothing else can be known
    /// of them.
    Digest(String),
}

impl Content {
    /// The content as text: none if it is absent, a digest, or not UTF-8.
    ///
    /// ```
    /// use tread_guest_sdk::Content;
    /// assert_eq!(Content::Bytes(b"server a".to_vec()).text(), Some("server a"));
    /// assert_eq!(Content::Bytes(vec![0xff]).text(), None);
    /// ```
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// The bytes: none if they are absent, or only their digest is known.
    ///
    /// ```
    /// use tread_guest_sdk::Content;
    /// assert_eq!(Content::Bytes(vec![1]).bytes(), Some(&[1][..]));
    /// assert_eq!(Content::Absent.bytes(), None);
    /// ```
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Content::Bytes(bytes) => Some(bytes),
            Content::Absent | Content::Digest(_) => None,
        }
    }
}

/// A file as it stands on the node.
///
/// ```
/// use tread_guest_sdk::test;
/// let change = test::file("/etc/motd", "old", "new");
/// let file = change.after.as_file().unwrap();
/// assert_eq!((file.content.text(), file.mode, file.user.as_str()), (Some("new"), 0o644, "root"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// What is in it.
    pub content: Content,
    /// Permission bits, the default filled in: `0o644`.
    pub mode: u32,
    /// A name, or a number in decimal; `root` unless set.
    pub user: String,
    /// As `user`.
    pub group: String,
}

/// A piece of a unit in its `.d` directory.
///
/// ```
/// use tread_guest_sdk::{Content, Dropin};
/// let contents = Content::Bytes(b"[Service]\nLimitNOFILE=65536\n".to_vec());
/// let dropin = Dropin { name: "10-limits.conf".into(), contents };
/// assert!(dropin.contents.text().unwrap().contains("LimitNOFILE"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropin {
    /// `10-limits.conf`
    pub name: String,
    /// What is in it.
    pub contents: Content,
}

/// A systemd unit as the configuration sets it.
///
/// ```
/// use tread_guest_sdk::test;
/// let change = test::unit("app.service", "[Service]", "[Service]\nNice=1");
/// let unit = change.after.as_unit().unwrap();
/// assert!(unit.enabled.is_none() && !unit.masked && unit.dropins.is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// The unit file, if the configuration brings one.
    pub contents: Content,
    /// None: left to the system's presets.
    pub enabled: Option<bool>,
    /// Linked to `/dev/null`.
    pub masked: bool,
    /// In order of name.
    pub dropins: Vec<Dropin>,
}

/// One side of a change.
///
/// ```
/// use tread_guest_sdk::{State, test};
/// let change = test::list("kernel-arguments", &[], &["quiet"]);
/// assert!(matches!(&change.after, State::List(arguments) if arguments == &["quiet"]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The configuration says nothing of it.
    Absent,
    /// Of `file:PATH`.
    File(File),
    /// Of `unit:NAME`.
    Unit(Unit),
    /// Of `ssh-keys:USER`, `kernel-arguments` (in order) and `extensions` (sorted). Without items it is
    /// [`State::Absent`].
    List(Vec<String>),
    /// Of `kernel-type`, `os-image`, and `password:USER` where the policy may see it.
    Text(String),
    /// A token in place of a text that the policy may not see, as in [`Content`].
    Digest(String),
}

impl State {
    /// Whether the configuration says nothing of it.
    ///
    /// ```
    /// use tread_guest_sdk::State;
    /// assert!(State::Absent.is_absent());
    /// ```
    pub fn is_absent(&self) -> bool {
        matches!(self, State::Absent)
    }

    /// The file, if this is one.
    ///
    /// ```
    /// use tread_guest_sdk::test;
    /// let change = test::file("/etc/motd", "old", "new");
    /// assert_eq!(change.after.as_file().map(|file| file.mode), Some(0o644));
    /// ```
    pub fn as_file(&self) -> Option<&File> {
        match self {
            State::File(file) => Some(file),
            _ => None,
        }
    }

    /// The unit, if this is one.
    ///
    /// ```
    /// use tread_guest_sdk::test;
    /// let change = test::unit("a.service", "[Service]", "[Service]\nNice=1");
    /// assert!(change.after.as_unit().is_some_and(|unit| !unit.masked));
    /// ```
    pub fn as_unit(&self) -> Option<&Unit> {
        match self {
            State::Unit(unit) => Some(unit),
            _ => None,
        }
    }

    /// The list; an absent one is empty. Empty for anything else, too.
    ///
    /// ```
    /// use tread_guest_sdk::State;
    /// assert_eq!(State::List(vec!["quiet".into()]).as_list(), ["quiet"]);
    /// assert!(State::Absent.as_list().is_empty());
    /// ```
    pub fn as_list(&self) -> &[String] {
        match self {
            State::List(list) => list,
            _ => &[],
        }
    }

    /// The text, if this is one: a kernel type, an OS image, a password hash,
    /// or the text of a file.
    ///
    /// ```
    /// use tread_guest_sdk::{State, test};
    /// assert_eq!(State::Text("realtime".into()).as_text(), Some("realtime"));
    /// assert_eq!(test::file("/etc/motd", "old", "new").before.as_text(), Some("old"));
    /// ```
    pub fn as_text(&self) -> Option<&str> {
        match self {
            State::Text(text) => Some(text),
            State::File(file) => file.content.text(),
            _ => None,
        }
    }
}

/// What was done to a thing.
///
/// ```
/// use tread_guest_sdk::{Edit, test};
/// assert_eq!(test::file_removed("/etc/motd", "old").edit(), Edit::Removed);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// It was not there before.
    Added,
    /// It is there on both sides.
    Changed,
    /// It is not there any more.
    Removed,
}

/// One difference between two configurations of a node.
///
/// ```
/// use tread_guest_sdk::test;
/// let change = test::file("/etc/motd", "old", "new");
/// assert_eq!(change.id, "file:/etc/motd");
/// assert_eq!((change.before.as_text(), change.after.as_text()), (Some("old"), Some("new")));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// `file:/etc/chrony.conf`, `unit:crio.service`, `kernel-arguments`, …
    pub id: String,
    /// What the node has. Both sides are never [`State::Absent`].
    pub before: State,
    /// What it is to get.
    pub after: State,
}

impl Change {
    /// What kind of thing changed: the id up to the colon.
    ///
    /// ```
    /// use tread_guest_sdk::test;
    /// assert_eq!(test::file("/etc/motd", "old", "new").kind(), "file");
    /// assert_eq!(test::list("kernel-arguments", &[], &["quiet"]).kind(), "kernel-arguments");
    /// ```
    pub fn kind(&self) -> &str {
        split(&self.id).0
    }

    /// Which one: the id after the colon, or nothing.
    ///
    /// ```
    /// use tread_guest_sdk::test;
    /// assert_eq!(test::unit("crio.service", "a", "b").name(), "crio.service");
    /// assert_eq!(test::list("kernel-arguments", &[], &["quiet"]).name(), "");
    /// ```
    pub fn name(&self) -> &str {
        split(&self.id).1
    }

    /// The path, if a file changed.
    ///
    /// ```
    /// use tread_guest_sdk::test;
    /// assert_eq!(test::file("/etc/motd", "old", "new").path(), Some("/etc/motd"));
    /// assert_eq!(test::unit("crio.service", "a", "b").path(), None);
    /// ```
    pub fn path(&self) -> Option<&str> {
        self.id.strip_prefix("file:")
    }

    /// Added, changed or removed.
    ///
    /// ```
    /// use tread_guest_sdk::{Edit, test};
    /// assert_eq!(test::file_added("/etc/motd", "new").edit(), Edit::Added);
    /// ```
    pub fn edit(&self) -> Edit {
        match (&self.before, &self.after) {
            (State::Absent, _) => Edit::Added,
            (_, State::Absent) => Edit::Removed,
            _ => Edit::Changed,
        }
    }
}

/// Something that the policy claims with
/// [`Claim::with_unchanged`](crate::Claim::with_unchanged), the same on both sides.
///
/// ```
/// use tread_guest_sdk::test;
/// let beside = test::unchanged_file("/etc/app.d/10-defaults.conf", "port = 80");
/// assert_eq!(beside.state.as_text(), Some("port = 80"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// As [`Change::id`].
    pub id: String,
    /// As it stands on both sides.
    pub state: State,
}

impl Entry {
    /// What kind of thing it is: the id up to the colon.
    ///
    /// ```
    /// use tread_guest_sdk::test;
    /// assert_eq!(test::unchanged_file("/etc/motd", "text").kind(), "file");
    /// ```
    pub fn kind(&self) -> &str {
        split(&self.id).0
    }

    /// Which one: the id after the colon, or nothing.
    ///
    /// ```
    /// use tread_guest_sdk::test;
    /// assert_eq!(test::unchanged_file("/etc/motd", "text").name(), "/etc/motd");
    /// ```
    pub fn name(&self) -> &str {
        split(&self.id).1
    }

    /// The path, if this is a file.
    ///
    /// ```
    /// use tread_guest_sdk::test;
    /// assert_eq!(test::unchanged_file("/etc/motd", "text").path(), Some("/etc/motd"));
    /// ```
    pub fn path(&self) -> Option<&str> {
        self.id.strip_prefix("file:")
    }
}

/// Everything that one plan offers to the policy.
///
/// ```
/// use tread_guest_sdk::{Context, test};
///
/// /// What `/etc/app.conf` says after the change, whether or not it changes.
/// fn main_file<'a>(context: &Context<'a>) -> Option<&'a str> {
///     let changed = context.changes.iter().find(|it| it.path() == Some("/etc/app.conf"));
///     let same = || context.unchanged.iter().find(|it| it.path() == Some("/etc/app.conf"));
///     changed.map(|it| &it.after).or_else(|| same().map(|it| &it.state))?.as_text()
/// }
///
/// let (changes, unchanged) = ([], [test::unchanged_file("/etc/app.conf", "port = 80")]);
/// let context = Context { changes: &changes, unchanged: &unchanged };
/// assert_eq!(main_file(&context), Some("port = 80"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// All the changes that the policy claims, in the order of their ids.
    pub changes: &'a [Change],
    /// What it claims
    /// [`with_unchanged`](crate::Claim::with_unchanged) and did not change.
    pub unchanged: &'a [Entry],
}

fn split(id: &str) -> (&str, &str) {
    id.split_once(':').unwrap_or((id, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_a_colon_stays_whole() {
        let id = "file:/etc/a:b".to_string();
        let change = Change { id, before: State::Absent, after: State::Text(String::new()) };
        assert_eq!(change.path(), Some("/etc/a:b"));
        assert_eq!(change.name(), "/etc/a:b");
    }
}
