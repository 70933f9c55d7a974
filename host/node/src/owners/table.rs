//! The lines of passwd(5) and group(5).

/// A user whom the host knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// Its number.
    pub uid: u32,
    /// The number of its first group.
    pub gid: u32,
    /// The folder where it lives.
    pub home: String,
    /// Whether its password is in /etc/shadow.
    pub shadowed: bool,
}

/// A group that the host knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    /// Its name.
    pub(super) name: String,
    /// Its number.
    pub(super) gid: u32,
}

/// The users of a passwd file. Lines that glibc would skip are skipped: comments, lines
/// with too few fields or no numbers, and those of the compatibility mode (`+`, `-`).
pub(super) fn accounts(text: &str) -> impl Iterator<Item = Account> {
    text.lines().filter_map(|line| {
        let mut fields = line.trim_start().split(':');
        let name = name(fields.next()?)?;
        let shadowed = fields.next()? == "x";
        let (uid, gid) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let home = fields.nth(1).unwrap_or_default();
        Some(Account { name, uid, gid, home: home.to_owned(), shadowed })
    })
}

/// The groups of a group file.
pub(super) fn groups(text: &str) -> impl Iterator<Item = Group> {
    text.lines().filter_map(|line| {
        let mut fields = line.trim_start().split(':');
        let name = name(fields.next()?)?;
        let _password = fields.next()?;
        Some(Group { name, gid: fields.next()?.parse().ok()? })
    })
}

fn name(field: &str) -> Option<String> {
    let fine = !field.is_empty() && !field.starts_with(['+', '-', '#']);
    fine.then(|| field.to_owned())
}
