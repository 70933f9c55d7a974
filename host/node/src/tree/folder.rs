//! A folder that is open, and what can be done to the names in it.

mod change;

use super::syscall::Witness;
use cap_std::fs::Dir;
use rustix::buffer::spare_capacity;
use rustix::fs::{AtFlags, Mode, OFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use tread_model::digest::Digest;

/// A folder that is open: nobody can put another one in its place.
#[derive(Clone)]
pub struct Folder {
    dir: Arc<Dir>,
    /// From the root of the tree, without links; empty for the root itself.
    path: String,
    witness: Arc<dyn Witness>,
    /// Whether what is mounted once somebody looks is mounted on the way to what is below it.
    pub(super) automounts: bool,
}

/// What stands under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A folder.
    Folder,
    /// A FIFO, a socket or a device.
    Other,
}

impl Kind {
    pub(super) fn of_mode(mode: u32) -> Kind {
        match rustix::fs::FileType::from_raw_mode(mode) {
            rustix::fs::FileType::RegularFile => Kind::File,
            rustix::fs::FileType::Symlink => Kind::Link,
            rustix::fs::FileType::Directory => Kind::Folder,
            _ => Kind::Other,
        }
    }

    /// In a sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::File => "a file",
            Kind::Link => "a link",
            Kind::Folder => "a folder",
            Kind::Other => "a FIFO, a socket or a device",
        }
    }
}

/// Whom a file belongs to, and who may do what with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Owner {
    /// The user's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
    /// The permissions, with setuid, setgid and sticky.
    pub mode: u32,
}

/// What tells one state of a name from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// What it is.
    pub kind: Kind,
    /// Whose it is.
    pub owner: Owner,
    /// How many bytes it has.
    pub size: u64,
    /// The mount that it is on.
    pub mount: u64,
    /// Whether it was made unchangeable, even for root (`chattr +i`, `chattr +a`).
    pub immutable: bool,
    inode: u64,
    modified: (i64, u32),
}

impl Stat {
    /// Whether both are one file, which nobody wrote in between.
    pub fn is_same_file(&self, other: &Stat) -> bool {
        self == other
    }

    /// Whether it was written after the other one.
    pub fn is_later(&self, other: &Stat) -> bool {
        self.modified > other.modified
    }
}

/// What makes a name unchangeable.
const IMMUTABLE: StatxAttributes = StatxAttributes::IMMUTABLE.union(StatxAttributes::APPEND);

/// What the kernel keeps of extended attributes at most: of one, and of all names.
const MOST_OF_ATTRIBUTES: usize = 65_536;

/// Attributes that sign the contents: of no use to others.
const OF_CONTENTS: [&[u8]; 3] = [b"security.ima", b"security.evm", b"security.capability"];

/// An extended attribute: `security.selinux` and its label, …
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Attribute {
    /// Its name, with its namespace.
    pub name: Vec<u8>,
    /// What it is set to.
    pub value: Vec<u8>,
}

/// What stands under a name: enough to know it again, and to say what differs.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "is", rename_all = "lowercase")]
pub enum Found {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// Of what it holds.
        digest: Digest,
        /// Whose it is.
        #[serde(flatten)]
        owner: Owner,
    },
    /// A symbolic link.
    Link {
        /// Where it leads.
        target: String,
    },
    /// One field of a line in a file; nothing else of the file counts.
    Field {
        /// Of what stands in it.
        digest: Digest,
    },
    /// A folder, a FIFO, a socket or a device; a link whose target is not valid text, or a
    /// file larger than any of a config.
    Other,
}

/// The most bytes that are read to know a file: more than any file of a config has. Whoever
/// owns the file could have them read for hours.
const MOST_SEEN: u64 = 1 << 30;

/// The digest of all that a file holds; nothing if that is more than any config writes.
fn digest_of(file: std::fs::File) -> io::Result<Option<Digest>> {
    if file.metadata()?.len() > MOST_SEEN {
        return Ok(None);
    }
    let mut file = file.take(MOST_SEEN);
    let mut digest = Digest::of_pieces();
    let mut piece = vec![0; 64 << 10];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(Some(digest.finish())),
            Ok(read) => digest.add(piece.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}

impl Folder {
    pub(super) fn new(dir: Arc<Dir>, path: String, witness: Arc<dyn Witness>) -> Folder {
        Folder { dir, path, witness, automounts: true }
    }

    /// A folder in this one that is already open.
    pub(super) fn below(&self, name: &str, opened: OwnedFd) -> Folder {
        let dir = Arc::new(Dir::from(opened));
        let (path, witness) = (self.path_of(name), Arc::clone(&self.witness));
        Folder { dir, path, witness, automounts: self.automounts }
    }

    /// From the root of the tree, without links.
    pub fn path(&self) -> &str {
        if self.path.is_empty() { "/" } else { &self.path }
    }

    /// The path of a name in it.
    pub fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// A folder in it; a link is none. What is mounted there once somebody looks is mounted.
    pub fn folder(&self, name: &str) -> io::Result<Folder> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::PATH;
        let opened = rustix::fs::openat(self, name, flags, Mode::empty())?;
        Ok(self.below(name, opened))
    }

    /// The names in it, sorted; those that are not valid text are left out.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in self.dir.entries()? {
            names.extend(entry?.file_name().into_string().ok());
        }
        names.sort();
        Ok(names)
    }

    /// What stands under a name, itself and not where it leads; nothing if it is free.
    pub fn stat(&self, name: &str) -> io::Result<Option<Stat>> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
        match rustix::fs::statx(self, name, flags, wanted) {
            Ok(stat) => Ok(Some(Stat {
                kind: Kind::of_mode(stat.stx_mode.into()),
                owner: Owner {
                    uid: stat.stx_uid,
                    gid: stat.stx_gid,
                    mode: u32::from(stat.stx_mode) & 0o7777,
                },
                size: stat.stx_size,
                mount: stat.stx_mnt_id,
                immutable: stat.stx_attributes.intersects(IMMUTABLE),
                inode: stat.stx_ino,
                modified: (stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
            })),
            // No file system has a name of this length: there is nothing.
            Err(Errno::NOENT | Errno::NAMETOOLONG) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// What the folder itself is.
    pub fn own_stat(&self) -> io::Result<Stat> {
        self.stat(".")?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Of which kind its file system is, by the kernel's number for that, which has 32 bits.
    pub fn file_system(&self) -> io::Result<u32> {
        let number = i128::from(rustix::fs::fstatfs(self)?.f_type) & i128::from(u32::MAX);
        u32::try_from(number).map_err(io::Error::other)
    }

    /// The number of the folder itself in its file system: another folder there has another one.
    pub fn number(&self) -> io::Result<u64> {
        self.own_stat().map(|stat| stat.inode)
    }

    /// What a regular file holds; nothing if the name is free. A FIFO or a device is
    /// never opened for reading, nor is a link followed.
    pub fn read(&self, name: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = self.open(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        match bytes.len() as u64 > most {
            true => Err(io::Error::other(format!("it has more than {most} bytes"))),
            false => Ok(Some(bytes)),
        }
    }

    /// Opens a regular file to read it.
    fn open(&self, name: &str) -> io::Result<Option<std::fs::File>> {
        // Without NONBLOCK the opening of a FIFO waits for whoever writes into it.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        match self.stat(name)? {
            None => return Ok(None),
            Some(stat) if stat.kind != Kind::File => {
                return Err(io::Error::other(format!("it is {}", stat.kind.as_str())));
            }
            Some(_) => {}
        }
        match rustix::fs::openat(self, name, flags, Mode::empty()) {
            Ok(file) => match Kind::of_mode(rustix::fs::fstat(&file)?.st_mode) {
                Kind::File => Ok(Some(file.into())),
                other => Err(io::Error::other(format!("it is {}", other.as_str()))),
            },
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// What stands under a name, with the digest of what it holds.
    pub fn see(&self, name: &str) -> io::Result<Found> {
        let Some(stat) = self.stat(name)? else { return Ok(Found::Absent) };
        Ok(match stat.kind {
            Kind::Folder | Kind::Other => Found::Other,
            Kind::Link => match rustix::fs::readlinkat(self, name, Vec::new())?.into_string() {
                Ok(target) => Found::Link { target },
                Err(_) => Found::Other,
            },
            Kind::File => {
                let Some(file) = self.open(name)? else { return Ok(Found::Absent) };
                match digest_of(file)? {
                    Some(digest) => Found::File { digest, owner: stat.owner },
                    None => Found::Other,
                }
            }
        })
    }

    /// Where a symbolic link leads.
    pub fn link(&self, name: &str) -> io::Result<String> {
        let target = rustix::fs::readlinkat(self, name, Vec::new())?;
        target.into_string().map_err(|_| io::Error::other("its target is not valid text"))
    }

    /// An extended attribute of the folder itself, where there is one of this name.
    pub fn own_attribute(&self, name: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let readable = rustix::fs::openat(self, ".", flags, Mode::empty())?;
        let mut value = Vec::with_capacity(MOST_OF_ATTRIBUTES);
        match rustix::fs::fgetxattr(&readable, name, spare_capacity(&mut value)) {
            Ok(_) => Ok(Some(value)),
            Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The attributes that a file keeps when its contents change.
    pub fn lasting_attributes(&self, name: &str) -> io::Result<Vec<Attribute>> {
        let mut attributes = self.attributes(name)?;
        attributes.retain(|attribute| !OF_CONTENTS.contains(&attribute.name.as_slice()));
        Ok(attributes)
    }

    /// The extended attributes of a file, by name.
    pub fn attributes(&self, name: &str) -> io::Result<Vec<Attribute>> {
        let Some(file) = self.open(name)? else { return Ok(Vec::new()) };
        let mut names = Vec::with_capacity(MOST_OF_ATTRIBUTES);
        match rustix::fs::flistxattr(&file, spare_capacity(&mut names)) {
            Ok(_) => {}
            Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
            Err(errno) => return Err(errno.into()),
        }
        let mut all = Vec::new();
        for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let mut value = Vec::with_capacity(MOST_OF_ATTRIBUTES);
            rustix::fs::fgetxattr(&file, name, spare_capacity(&mut value))?;
            all.push(Attribute { name: name.to_vec(), value });
        }
        Ok(all)
    }
}
