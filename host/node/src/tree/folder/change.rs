//! What tread does to the names in a folder. Each function is one system call, which a
//! witness sees before and after.

use super::{Attribute, Folder, Kind, Owner};
use crate::tree::syscall::Syscall;
use rustix::fs::{AtFlags, FallocateFlags, Gid, Mode, OFlags, RenameFlags, Uid, XattrFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;

/// As much as is put aside of one name.
const MOST_ASIDE: usize = 20;

impl Folder {
    /// Does one system call between the witness's two looks at it.
    fn witnessed<T>(
        &self,
        syscall: &Syscall<'_>,
        done: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        self.witness.before(syscall)?;
        let value = done()?;
        self.witness.after(syscall)?;
        Ok(value)
    }

    /// A new file with these bytes, which is root's alone until it is complete. The
    /// name has to be free.
    pub fn create(
        &self,
        name: &str,
        bytes: &[u8],
        owner: Owner,
        attributes: &[Attribute],
    ) -> io::Result<()> {
        let path = self.path_of(name);
        self.witnessed(&Syscall::Create { path: &path, bytes }, || {
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file: File =
                rustix::fs::openat(self, name, flags, Mode::RUSR | Mode::WUSR)?.into();
            file.write_all(bytes)?;
            let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
            rustix::fs::fchown(&file, Some(uid), Some(gid))?;
            for attribute in attributes {
                set(&file, attribute)?;
            }
            // After the owner, since a change of it clears setuid, and after the attributes,
            // since an access list has a mode of its own.
            Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(owner.mode))?)
        })
    }

    /// Adds bytes to the end of a file, which is made if it is not there, and has them
    /// on the disk.
    pub fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.path_of(name);
        let file = self.witnessed(&Syscall::Append { path: &path, bytes }, || {
            let flags = OFlags::WRONLY
                | OFlags::CREATE
                | OFlags::APPEND
                | OFlags::NOFOLLOW
                | OFlags::CLOEXEC;
            let mut file: File =
                rustix::fs::openat(self, name, flags, Mode::RUSR | Mode::WUSR)?.into();
            file.write_all(bytes)?;
            Ok(file)
        })?;
        self.witnessed(&Syscall::Sync { path: &path }, || file.sync_all())
    }

    /// Keeps room on the disk for what is added to a file later, as far as the file system can. The
    /// file stays as it is.
    pub fn reserve(&self, name: &str, bytes: u64) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file: File = rustix::fs::openat(self, name, flags, Mode::empty())?.into();
        match rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, bytes) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            reserved => Ok(reserved?),
        }
    }

    /// A file keeps its first bytes only.
    pub fn cut(&self, name: &str, bytes: u64) -> io::Result<()> {
        let path = self.path_of(name);
        self.witnessed(&Syscall::Cut { path: &path, bytes }, || {
            let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file: File = rustix::fs::openat(self, name, flags, Mode::empty())?.into();
            file.set_len(bytes)
        })
    }

    /// What a file holds, and what it is, is on the disk afterwards.
    pub fn sync_file(&self, name: &str) -> io::Result<()> {
        let path = self.path_of(name);
        self.witnessed(&Syscall::Sync { path: &path }, || {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file: File = rustix::fs::openat(self, name, flags, Mode::empty())?.into();
            file.sync_all()
        })
    }

    /// What stands in the folder is on the disk afterwards.
    pub fn sync(&self) -> io::Result<()> {
        self.witnessed(&Syscall::SyncFolder { path: self.path() }, || {
            // The folder is open only as a place; to be synced it has to be readable.
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let readable: File = rustix::fs::openat(self, ".", flags, Mode::empty())?.into();
            readable.sync_all()
        })
    }

    /// A second name, in a folder of the same mount, for what stands under one here.
    pub fn link_to(&self, name: &str, other: &Folder, other_name: &str) -> io::Result<()> {
        let (from, to) = (self.path_of(name), other.path_of(other_name));
        self.witnessed(&Syscall::Link { from: &from, to: &to }, || {
            Ok(rustix::fs::linkat(self, name, other, other_name, AtFlags::empty())?)
        })
    }

    /// Two names change places at one instant.
    pub fn exchange(&self, name: &str, other: &Folder, other_name: &str) -> io::Result<()> {
        let (one, two) = (self.path_of(name), other.path_of(other_name));
        self.witnessed(&Syscall::Exchange { one: &one, other: &two }, || {
            let flags = RenameFlags::EXCHANGE;
            Ok(rustix::fs::renameat_with(self, name, other, other_name, flags)?)
        })
    }

    /// Moves a name to a place that has to be free.
    pub fn rename(&self, name: &str, other: &Folder, other_name: &str) -> io::Result<()> {
        let (from, to) = (self.path_of(name), other.path_of(other_name));
        self.witnessed(&Syscall::Rename { from: &from, to: &to }, || {
            let flags = RenameFlags::NOREPLACE;
            Ok(rustix::fs::renameat_with(self, name, other, other_name, flags)?)
        })
    }

    /// Moves a name to a place, whatever stands there.
    pub fn replace(&self, name: &str, other: &Folder, other_name: &str) -> io::Result<()> {
        let (from, to) = (self.path_of(name), other.path_of(other_name));
        self.witnessed(&Syscall::Replace { from: &from, to: &to }, || {
            Ok(rustix::fs::renameat(self, name, other, other_name)?)
        })
    }

    /// As [`Folder::replace`] within a folder of tread's own: what somebody put there that
    /// cannot be replaced is put aside.
    pub fn replace_own(&self, next: &str, name: &str) -> io::Result<()> {
        let is_folder = |name: &str| -> io::Result<Option<bool>> {
            Ok(self.stat(name)?.map(|stat| stat.kind == Kind::Folder))
        };
        match is_folder(name)? {
            Some(true) => self.put_aside(name)?,
            Some(false) if is_folder(next)? == Some(true) => self.put_aside(name)?,
            _ => {}
        }
        self.replace(next, self, name)
    }

    /// As [`Folder::remove`] within a folder of tread's own: a folder that somebody put there is
    /// put aside.
    pub fn remove_own(&self, name: &str) -> io::Result<()> {
        match self.stat(name)?.map(|stat| stat.kind) {
            Some(Kind::Folder) => self.put_aside(name),
            _ => self.remove(name),
        }
    }

    /// What stands under a name is called `NAME.aside` from now on, with all that is in it.
    pub fn put_aside(&self, name: &str) -> io::Result<()> {
        let called = |count| match count {
            0 => format!("{name}.aside"),
            count => format!("{name}.aside-{count}"),
        };
        for aside in (0..MOST_ASIDE).map(called) {
            match self.rename(name, self, &aside) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                renamed => return renamed,
            }
        }
        Err(io::Error::other(format!(
            "it has to be put aside, and there is no room for it: remove {name}.aside and the like"
        )))
    }

    /// A symbolic link; the name has to be free.
    pub fn symlink(&self, name: &str, target: &str) -> io::Result<()> {
        let path = self.path_of(name);
        self.witnessed(&Syscall::Symlink { path: &path, target }, || {
            Ok(rustix::fs::symlinkat(target, self, name)?)
        })
    }

    /// A name goes away; whether it was there does not matter.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.path_of(name);
        self.witnessed(&Syscall::Remove { path: &path }, || {
            gone(rustix::fs::unlinkat(self, name, AtFlags::empty()))
        })
    }

    /// A folder of root's, which all may read; the name has to be free.
    pub fn make_folder(&self, name: &str) -> io::Result<()> {
        self.make_folder_with(name, 0o755)
    }

    /// A folder of root's that nobody else may enter; the name has to be free.
    pub fn make_private_folder(&self, name: &str) -> io::Result<()> {
        self.make_folder_with(name, 0o700)
    }

    fn make_folder_with(&self, name: &str, mode: u32) -> io::Result<()> {
        let path = self.path_of(name);
        self.witnessed(&Syscall::MakeFolder { path: &path }, || {
            Ok(rustix::fs::mkdirat(self, name, Mode::from_raw_mode(mode))?)
        })?;
        // Whatever the process's umask is. By what is opened: whoever owns the folder may
        // have put a link in its place.
        let made = self.folder(name)?;
        self.witnessed(&Syscall::Give { path: &path }, || {
            Ok(rustix::fs::chmodat(&made, ".", Mode::from_raw_mode(mode), AtFlags::empty())?)
        })
    }

    /// A folder in this one becomes somebody else's.
    pub fn give(&self, name: &str, owner: Owner) -> io::Result<()> {
        let folder = self.folder(name)?;
        let path = self.path_of(name);
        self.witnessed(&Syscall::Give { path: &path }, || {
            let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
            let flags = AtFlags::EMPTY_PATH;
            rustix::fs::chownat(&folder, "", Some(uid), Some(gid), flags)?;
            let mode = Mode::from_raw_mode(owner.mode);
            Ok(rustix::fs::chmodat(&folder, ".", mode, AtFlags::empty())?)
        })
    }

    /// A folder or a link gets extended attributes; a link itself, and not where it leads.
    pub fn label(&self, name: &str, attributes: &[Attribute]) -> io::Result<()> {
        if attributes.is_empty() {
            return Ok(());
        }
        let path = self.path_of(name);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(self, name, flags, Mode::empty())?;
        // What is open as a place has no call of its own for this; its name there leads to it
        // and no further.
        let at = format!("/proc/self/fd/{}", opened.as_raw_fd());
        self.witnessed(&Syscall::Label { path: &path }, || {
            for Attribute { name, value } in attributes {
                rustix::fs::setxattr(&at, name.as_slice(), value, XattrFlags::empty())?;
            }
            Ok(())
        })
    }

    /// A file gets some attributes, and loses others; its mode is this afterwards.
    pub fn set_attributes(
        &self,
        name: &str,
        owner: Owner,
        (new, gone): (&[Attribute], &[&[u8]]),
    ) -> io::Result<()> {
        let path = self.path_of(name);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.witnessed(&Syscall::Label { path: &path }, || {
            let file: File = rustix::fs::openat(self, name, flags, Mode::empty())?.into();
            for name in gone {
                match rustix::fs::fremovexattr(&file, *name) {
                    Ok(()) | Err(Errno::NODATA) => {}
                    Err(errno) => return Err(errno.into()),
                }
            }
            for attribute in new {
                set(&file, attribute)?;
            }
            // An access list has a mode of its own.
            Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(owner.mode))?)
        })
    }

    /// A folder goes away if it is empty.
    pub fn remove_folder(&self, name: &str) -> io::Result<()> {
        let path = self.path_of(name);
        self.witnessed(&Syscall::RemoveFolder { path: &path }, || {
            gone(rustix::fs::unlinkat(self, name, AtFlags::REMOVEDIR))
        })
    }
}

fn gone(removed: Result<(), Errno>) -> io::Result<()> {
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn set(file: &File, attribute: &Attribute) -> io::Result<()> {
    let set = rustix::fs::fsetxattr(
        file,
        attribute.name.as_slice(),
        &attribute.value,
        XattrFlags::empty(),
    );
    Ok(set?)
}
